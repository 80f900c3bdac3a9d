"""What typer makes of the commands, and of their parameters' values.

Typer (from 0.29 on) lets pydantic convert every value, also of options that are not given: 80 ms
for imports, in a command that needs 200 for all the rest. Here what is None or already what the
annotation says passes as it is, and a text becomes a Path; anything else typer converts and checks.

And typer makes all commands before it runs one, each from its function's signature.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, MutableMapping
from functools import partial
from pathlib import Path
from typing import Any, get_args, get_origin

import typer
from typer.core import TyperCommand, TyperGroup


class Command(TyperCommand):
    """A command that converts what needs conversion alone."""

    def get_params(self, ctx: Any) -> list[Any]:
        """As click says: its own parameters, and `--help`."""
        return _lightened(super().get_params(ctx))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """As click says; of an option that has one value, a second one is refused.

        Raises:
            typer.BadParameter: One is given twice. Click takes the last, and says nothing.
        """
        if not ctx.resilient_parsing:  # as for completion
            _, _, order = self.make_parser(ctx).parse_args(args=list(args))
            for at, param in enumerate(order):
                if param in order[:at] and _has_one_value(param):
                    said = f"`{param.opts[-1]}` is given twice: leave one out."
                    raise typer.BadParameter(said, ctx=ctx)
        return super().parse_args(ctx, args)


class Group(TyperGroup):
    """A group of commands: the same for what stands before a command's name."""

    def get_params(self, ctx: Any) -> list[Any]:
        """As click says: its own parameters, those of completion, and `--help`."""
        return _lightened(super().get_params(ctx))


class Made(MutableMapping[str, Any]):
    """Commands by their names, each made when it is asked for."""

    def __init__(self, makers: Mapping[str, Callable[[], Any]]) -> None:
        """Nothing is made yet."""
        self._makers = dict(makers)
        self._made: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        """The command.

        Raises:
            KeyError: There is none of that name.
        """
        if name not in self._made:
            self._made[name] = self._makers[name]()
        return self._made[name]

    def __setitem__(self, name: str, command: Any) -> None:
        """Have `command` under that name."""
        self._makers[name] = lambda: command
        self._made[name] = command

    def __delitem__(self, name: str) -> None:
        """Have none under that name."""
        del self._makers[name]
        self._made.pop(name, None)

    def __iter__(self) -> Iterator[str]:
        """The names, in the order of the help."""
        return iter(self._makers)

    def __len__(self) -> int:
        """How many there are."""
        return len(self._makers)


def _has_one_value(param: Any) -> bool:
    return not (param.param_type_name == "argument" or param.multiple or param.is_flag)


def _lightened(params: list[Any]) -> list[Any]:
    for param in params:
        described = getattr(param, "type_descriptor", None)  # older typers convert by themselves
        if described is not None:
            param.process_value = _passing(param, described.annotation)
    return params


def _passing(param: Any, annotation: Any) -> Callable[[Any, Any], Any]:
    """`param.process_value`, which converts only what is not yet of `annotation`.

    Args:
        param: An option or argument of typer's.
        annotation: A class, or a list of one.
    """
    convert = partial(type(param).process_value, param)
    several = get_origin(annotation) is list
    kind = get_args(annotation)[0] if several else annotation

    def process(context: Any, value: Any) -> Any:
        values = list(value or ()) if several else [] if value is None else [value]
        if kind is Path:
            values = [Path(one) if isinstance(one, str) else one for one in values]
        if (param.required and not values) or not all(isinstance(one, kind) for one in values):
            return convert(context, value)  # or says what is missing or wrong
        ready = values if several else values[0] if values else None
        return param.callback(context, param, ready) if param.callback else ready

    return process
