"""PyTorch's operator schemas as text, and values bound to their parameters.

The node says nothing of its arguments' types: a 0-d array may be a tensor, an int or a dtype. The
schema says it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np

# PyTorch's ScalarType numbers (c10/core/ScalarType.h); they are not ONNX's.
SCALAR_TYPES: Mapping[int, np.dtype[Any]] = {
    0: np.dtype(np.uint8),
    1: np.dtype(np.int8),
    2: np.dtype(np.int16),
    3: np.dtype(np.int32),
    4: np.dtype(np.int64),
    5: np.dtype(np.float16),
    6: np.dtype(np.float32),
    7: np.dtype(np.float64),
    9: np.dtype(np.complex64),
    10: np.dtype(np.complex128),
    11: np.dtype(np.bool_),
    15: np.dtype(ml_dtypes.bfloat16),
}
_ENUMS: Mapping[str, Any] = {"Mean": 1, "Sum": 2, "contiguous_format": None}
_PARAMETER = re.compile(
    r"(?P<type>\w+)(?:\([^)]*\))?(?P<inner>\?)?(?P<list>\[(?P<count>\d*)\])?(?P<optional>\?)?"
    r"\s+(?P<name>\w+)(?:\s*=\s*(?P<default>.+))?$"
)


class Mismatch(Exception):
    """The arguments do not fit this schema; the text says why."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a schema.

    Attributes:
        name: As PyTorch spells it.
        type: `Tensor`, `int`, `float`, `bool`, `Scalar`, `str`, `ScalarType`, or another.
        is_list: `Tensor[]`, `int[2]`.
        count: The 2 of `int[2]`, where one number stands for all; 0 elsewhere.
        optional: None is allowed.
        default: Used where the node gives nothing; `...` where it has to.
    """

    name: str
    type: str
    is_list: bool
    count: int
    optional: bool
    default: Any


@dataclass(frozen=True, slots=True)
class Schema:
    """An operator's signature."""

    name: str
    overload: str
    parameters: tuple[Parameter, ...]


@cache
def parse_schema(text: str) -> Schema:
    """Read a schema in the syntax of PyTorch's native_functions.yaml."""
    found = re.match(r"(?:\w+::)?(\w+)(?:\.(\w+))?\((.*)\)\s*->", text)
    if not found:
        raise ValueError(f"not a schema: {text!r}")
    name, overload, inside = found[1], found[2] or "", found[3]
    parts = [part.strip() for part in _split(inside)]
    parameters = tuple(_parameter(part) for part in parts if part not in ("*", ""))
    return Schema(name, overload, parameters)


def _split(text: str) -> list[str]:
    """Cut at the commas outside brackets."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter in "([") - (letter in ")]")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


def _parameter(text: str) -> Parameter:
    found = _PARAMETER.match(text)
    if not found:
        raise ValueError(f"not a parameter: {text!r}")
    kind = "int" if found["type"] == "SymInt" else found["type"]
    return Parameter(
        name=found["name"],
        type=kind,
        is_list=found["list"] is not None,
        count=int(found["count"] or 0),
        optional=found["optional"] is not None
        or (found["inner"] is not None and not found["list"]),
        default=... if found["default"] is None else _default(found["default"]),
    )


def _default(text: str) -> Any:
    if text in _ENUMS:
        return _ENUMS[text]
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def bind(
    schema: Schema, values: Sequence[Any], attributes: Mapping[str, Any], *, cut: bool = False
) -> dict[str, Any]:
    """Every parameter's value by name, as Python has it.

    Args:
        schema: The signature.
        values: What the node's inputs hold, in order; None for an empty name.
        attributes: Arguments by name.
        cut: Whether sizes may be fractions, and are cut.

    Raises:
        Mismatch: The values are too many, too few or of another kind.
    """
    names = {parameter.name for parameter in schema.parameters}
    if unknown := attributes.keys() - names:
        raise Mismatch(f"it has no parameter `{min(unknown)}`")
    left = [p for p in schema.parameters if p.name not in attributes]
    reason = Mismatch("it takes no arguments")
    for pairs in _pairings(left, list(values)):
        try:
            return _bind(schema, {**attributes, **pairs}, cut=cut)
        except Mismatch as error:
            reason = error
    raise reason


def _bind(schema: Schema, given: Mapping[str, Any], *, cut: bool) -> dict[str, Any]:
    bound: dict[str, Any] = {}
    for parameter in schema.parameters:
        if parameter.name in given:
            value = given[parameter.name]
            if cut and "size" in parameter.name and isinstance(value, np.ndarray):
                value = np.trunc(value) if value.dtype.kind == "f" else value
            bound[parameter.name] = _convert(parameter, value)
            continue
        if parameter.default is ... and not parameter.optional:
            raise Mismatch(f"`{parameter.name}` is not given")
        default = None if parameter.default is ... else parameter.default
        if parameter.is_list and isinstance(default, int):
            default = [default] * max(1, parameter.count)
        bound[parameter.name] = default
    return bound


def _pairings(parameters: Sequence[Parameter], values: list[Any]) -> Iterator[dict[str, Any]]:
    """Values to parameters by position, in the ways that may be meant.

    Up to torch 1.8 a list of tensors may stand flattened among the inputs. How many of the values
    after it belong to it depends on how many parameters the operator had in that release.
    """
    names = [parameter.name for parameter in parameters]
    lists = [i for i, p in enumerate(parameters) if p.is_list and p.type == "Tensor"]
    if len(lists) == 2 and not isinstance(values[lists[0]], list):
        # an LSTM has two states, and then its weights (torch.nn.LSTM)
        end = lists[0] + 2
        values = [*values[: lists[0]], values[lists[0] : end], *values[end:]]
    at = lists[-1] if lists else len(values)
    if at >= len(values) or isinstance(values[at], list):
        if len(values) > len(names):
            raise Mismatch(f"{len(values)} arguments are given, it takes {len(names)}")
        yield dict(zip(names, values, strict=False))
        return
    later = parameters[at + 1 :]
    needed = sum(p.default is ... and not p.optional for p in later)
    for after in range(len(later), needed - 1, -1):
        end = len(values) - after
        if end > at:
            packed = [*values[:at], values[at:end], *values[end:]]
            yield dict(zip(names, packed, strict=False))


def _convert(parameter: Parameter, value: Any) -> Any:
    if value is None:
        if parameter.optional:
            return None
        if parameter.default is not ...:
            return parameter.default
        if parameter.type in ("Generator", "MemoryFormat", "Device", "Layout"):
            return None
        raise Mismatch(f"`{parameter.name}` is None")
    if parameter.type == "Tensor":
        return _tensors(parameter, value)
    if parameter.type == "t":  # whatever a list of TorchScript holds
        return value
    if parameter.type == "Dictionary":
        if isinstance(value, dict):
            return value
        raise Mismatch(f"`{parameter.name}` is no dictionary")
    if parameter.type == "Numbers" and isinstance(value, np.ndarray):
        if value.ndim == 1 and value.dtype == np.int64:  # a list of integers, as exporters write it
            return value
        raise Mismatch(f"`{parameter.name}` is no list of integers")
    if parameter.type in ("List", "Numbers"):
        if isinstance(value, (list, tuple)) or (isinstance(value, np.ndarray) and value.ndim == 1):
            return value
        raise Mismatch(f"`{parameter.name}` is no list")
    if not parameter.is_list:
        return _scalar(parameter, value)
    if isinstance(value, np.ndarray) and value.ndim == 0:
        return [_scalar(parameter, value)] * max(1, parameter.count)
    if isinstance(value, (int, float)):
        return [_scalar(parameter, value)] * max(1, parameter.count)
    if isinstance(value, np.ndarray) and value.ndim > 1:
        raise Mismatch(f"`{parameter.name}` has rank {value.ndim}")
    items = [_scalar(parameter, item) for item in value]
    if parameter.count > 1 and len(items) == 1:
        items *= parameter.count
    return items


def _tensors(parameter: Parameter, value: Any) -> Any:
    if parameter.is_list:
        if not isinstance(value, (list, tuple)):
            raise Mismatch(f"`{parameter.name}` is no list")
        return list(value)
    if not isinstance(value, np.ndarray):
        if isinstance(value, (bool, int, float, np.generic)):  # a number is a tensor of rank 0
            return np.asarray(value)
        raise Mismatch(f"`{parameter.name}` is no tensor")
    return value


def _word(value: Any) -> str | None:
    """A text, which may be a constant of the standard's own kind; None for anything else."""
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value.item()
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return value if isinstance(value, str) else None


def _scalar(parameter: Parameter, value: Any) -> Any:
    word = _word(value)
    if word is not None:
        if parameter.type in ("str", "Device", "Dimname"):
            return word
        raise Mismatch(f"`{parameter.name}` is a text")
    if parameter.type == "str":
        raise Mismatch(f"`{parameter.name}` is no text")
    if isinstance(value, (list, tuple, dict)):  # of tensors, which need not be of one shape
        raise Mismatch(f"`{parameter.name}` is a list")
    array = np.asarray(value)
    if array.dtype.kind in "OUS":
        raise Mismatch(f"`{parameter.name}` holds texts")
    if array.size != 1 or array.ndim > (parameter.type != "ScalarType"):  # nor is a list a dtype
        raise Mismatch(f"`{parameter.name}` has shape {list(array.shape)}")
    number = array.reshape(()).item() if array.dtype.kind in "biufc" else float(array.reshape(()))
    if parameter.type == "int":
        if isinstance(number, float) and not number.is_integer():
            raise Mismatch(f"`{parameter.name}` is {number}, no integer")
        return int(number)
    if parameter.type == "float":
        return float(number)
    if parameter.type == "bool":
        if number not in (0, 1):  # a correction, where another signature has the truth
            raise Mismatch(f"`{parameter.name}` is {number}, and no bool")
        return bool(number)
    if parameter.type == "ScalarType":
        if int(number) not in SCALAR_TYPES:
            raise Mismatch(f"`{parameter.name}` is {number}, no dtype known here")
        return SCALAR_TYPES[int(number)]
    return number
