"""A list of one's own: a YAML file of what a runtime takes that is not in the table."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import NoReturn

import onnx

from surgeon.document import Value, read, suggest
from surgeon.errors import RecipeError
from surgeon.functions import DTYPES
from surgeon.functions.values import dtype_meant
from surgeon.meanings import full_name
from surgeon.recipe import Rule
from surgeon.spelling import home
from surgeon.standard import STANDARD
from surgeon.targets.target import Target

_KEYS = {"title", "opsets", "operators", "limited", "limits", "types", "axes"}
_FORM = "operators: [Conv, Relu, com.example.Fused]"
_EXAMPLE = f"Write `{_FORM}`."


def plain_target(given: object) -> str | None:
    """A runtime by its name, or by the path of a list.

    Raises:
        RecipeError: It is something else.
    """
    if isinstance(given, str | os.PathLike | None):
        return None if given is None else os.fspath(given)
    raise RecipeError(
        f"`target` is a `{type(given).__name__}`, and no name or path",
        where="target",
        mend="Give the name of a runtime, or the path of the YAML file of a list.",
    )


def is_own(name: str) -> bool:
    """Whether a target is named by a file."""
    return name.endswith((".yaml", ".yml"))


def read_target(name: str) -> Target:
    """The target that a file tells of: `operators`, and what else it says.

    Args:
        name: The file's path. `operators` are names as recipes write them, those of ONNX without a
            domain; `limited` are taken with limits; `opsets` are the oldest and the newest;
            `limits` are patterns with conditions, `types` and `axes` hold for all it computes.

    Raises:
        RecipeError: The file cannot be read, or is no such list.
    """
    whole = read(Path(name), begin=_FORM)
    if not isinstance(whole.content, Mapping):
        _refuse(whole, "it is no list of what a runtime takes", _EXAMPLE)
    for key in whole.content:
        if key not in _KEYS:
            raise RecipeError(
                f"unknown key `{key}`", where=whole.key_location(key), mend=suggest(key, _KEYS)
            )
    if "operators" not in whole.content:
        _refuse(whole, "the key `operators` is missing", _EXAMPLE)
    taken = frozenset(_operators(whole.find("operators")))
    partly = frozenset(_operators(whole.find("limited")))
    if not taken and not partly:
        _refuse(whole.find("operators") or whole, "it takes no operator at all", _EXAMPLE)
    title, limits = whole.find("title"), whole.find("limits")
    return Target(
        name=name,
        title=Path(name).stem if title is None else str(title.content),
        source=name,
        opsets=_opsets(whole.find("opsets")),
        taken=taken,
        partly=partly,
        limits=_limits(limits, taken | partly),
        stated="" if limits is None else json.dumps(limits.plain(), default=str),
        types=_types(whole.find("types")),
        axes=_axes(whole.find("axes")),
    )


def _operators(given: Value | None) -> Iterator[str]:
    if given is None:
        return
    if not isinstance(given.content, tuple):
        _refuse(given, "it is no list of operators", _EXAMPLE)
    for each in given.content:
        name = each.content
        if not isinstance(name, str) or not name:
            _refuse(each, "it is no operator's name", _EXAMPLE)
        if "." not in name and name not in _standard():
            _refuse(each, f"ONNX has no operator `{name}`", suggest(name, _standard(), _DOMAIN))
        domain, _, operator = name.rpartition(".")
        yield full_name(home(domain, operator), operator)  # as recipes call what a model has


_DOMAIN = "Write one of another domain with it: `com.example.Fused`."


def _opsets(given: Value | None) -> tuple[int, int] | None:
    if given is None:
        return None
    numbers = given.plain()
    if (
        not isinstance(numbers, list)
        or [type(number) for number in numbers] != [int, int]
        or not 1 <= numbers[0] <= numbers[1]
    ):
        _refuse(given, "it is no pair of opsets", "Write the oldest and the newest: `[7, 13]`.")
    return numbers[0], numbers[1]


def _limits(given: Value | None, operators: frozenset[str]) -> tuple[Rule, ...]:
    if given is None:
        return ()
    from surgeon.recipe.reading import read_limit  # brings pydantic

    if not isinstance(given.content, tuple):
        _refuse(given, "it is no list of limits", _LIMIT)
    return tuple(read_limit(each, given.location.file, operators) for each in given.content)


_LIMIT = "Write `- match: y = Conv <kernel_shape = @k> (x, *rest)`, and `where: [...]` below."


def _types(given: Value | None) -> frozenset[str]:
    if given is None:
        return frozenset()
    if not isinstance(given.content, tuple) or not given.content:
        _refuse(given, "it is no list of element types", "Write `types: [float32, int32, bool]`.")
    for each in given.content:
        if each.content not in DTYPES:
            _refuse(
                each, f"there is no element type `{each.content}`", dtype_meant(str(each.content))
            )
    return frozenset(str(each.content) for each in given.content)


def _axes(given: Value | None) -> int | None:
    if given is None:
        return None
    if type(given.content) is not int or given.content < 1:
        _refuse(given, "it is no number of axes", "Write the most that a value has: `axes: 4`.")
    return given.content


@cache
def _standard() -> frozenset[str]:
    """The operators of ONNX, those of former opsets too."""
    schemas = onnx.defs.get_all_schemas_with_history()
    return frozenset(schema.name for schema in schemas if schema.domain in STANDARD)


def _refuse(value: Value, what: str, mend: str) -> NoReturn:
    raise RecipeError(what, where=value.location, mend=mend)
