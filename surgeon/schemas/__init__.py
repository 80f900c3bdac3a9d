"""PyTorch's operator schemas, as data: the names, types and defaults of every argument."""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple


class Parameter(NamedTuple):
    """One parameter of an operator.

    Attributes:
        name: As PyTorch spells it.
        type: `Tensor`, `int`, `float`, `number`, `bool`, `str`, ...
        is_list: Whether it is a list of them.
        optional: Whether None is allowed.
        required: Whether it has no default.
        default: What stands for it where the node says nothing.
    """

    name: str
    type: str
    is_list: bool
    optional: bool
    required: bool
    default: Any = None

    @property
    def is_tensors(self) -> bool:
        """Whether it is a list of tensors, which exporters may flatten into the inputs."""
        return self.is_list and self.type == "Tensor"


class Schema(NamedTuple):
    """One overload of an operator."""

    name: str
    overload: str
    parameters: tuple[Parameter, ...]

    def position(self, name: str) -> int | None:
        """Where a parameter stands; None for one that the overload lacks."""
        return next((i for i, p in enumerate(self.parameters) if p.name == name), None)

    def takes(self, name: str) -> bool:
        """Whether the overload has a parameter of this name."""
        return self.position(name) is not None


@cache
def overloads(operator: str) -> tuple[Schema, ...]:
    """Every overload of an ATen operator, the one without a name first; empty for no operator."""
    found = [_read(line) for line in _lines().get(operator, ())]
    return tuple(sorted(found, key=lambda s: (s.overload != "", s.overload, -len(s.parameters))))


def ends_with_out(operator: str, count: int) -> bool:
    """Whether the last of so many arguments is what the result is written to (`out=`).

    It stands behind all that an overload takes, where no other one takes a tensor.
    """
    schemas = [schema.parameters for schema in overloads(operator)]
    last = count - 1
    there = [parameters[last] for parameters in schemas if len(parameters) > last]
    return (
        any(len(parameters) == last for parameters in schemas)
        and not any(each.type == "Tensor" for each in there)
        and not any(each.is_tensors for parameters in schemas for each in parameters)
    )


def is_known(operator: str) -> bool:
    """Whether PyTorch has an operator of this name."""
    return operator in _lines()


def operators() -> Collection[str]:
    """The names of all operators."""
    return _lines().keys()


@cache
def _lines() -> Mapping[str, Sequence[str]]:
    table: dict[str, list[str]] = {}
    text = Path(__file__).with_name("aten.txt").read_text(encoding="utf-8")
    for line in text.splitlines():
        head = line.partition("(")[0]
        name = head if head.startswith("__") else head.partition(".")[0]
        table.setdefault(name.partition(".")[0], []).append(line)
    return table


def _read(line: str) -> Schema:
    head, _, rest = line.partition("(")
    name, _, overload = head.partition(".")
    parameters = [_parameter(part) for part in _split(rest.rstrip(")")) if part != "*"]
    return Schema(name, overload, tuple(parameters))


def _split(text: str) -> list[str]:
    """The parts between commas that stand in no bracket or quote."""
    parts, depth, start, quote = [], 0, 0, ""
    for index, letter in enumerate(text):
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"":
            quote = letter
        elif letter in "[({":
            depth += 1
        elif letter in "])}":
            depth -= 1
        elif letter == "," and depth == 0:
            parts.append(text[start:index].strip())
            start = index + 1
    parts.append(text[start:].strip())
    return [part for part in parts if part]


def _parameter(text: str) -> Parameter:
    head, equals, default = text.partition("=")
    kind, _, name = head.strip().rpartition(" ")
    optional = kind.endswith("?")
    kind = kind.removesuffix("?")
    is_list = kind.endswith("[]")
    kind = kind.removesuffix("[]").removesuffix("?")
    value: Any = None
    if equals:
        try:
            value = ast.literal_eval(default)
        except (ValueError, SyntaxError):
            value = None  # a generator, a layout: nothing an exported graph could need
    return Parameter(name, kind, is_list, optional, not equals, value)
