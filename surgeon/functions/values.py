"""What expressions compute with: plain values, `Unknown`, and the bounds they are held to."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np

from surgeon.document import suggest

MAX_ITEMS = 10_000
MAX_BYTES = 64 * 1024 * 1024  # of what is made of nothing as large
_GROWTH = 8  # times as large as an operand: a float64 where a weight has 8 bits

DTYPES = frozenset(
    {"bool", "string", "bfloat16", "float16", "float32", "float64", "complex64", "complex128"}
    | {f"{sign}int{bits}" for sign in ("", "u") for bits in (4, 8, 16, 32, 64)}
    | {"float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float4_e2m1fn"}
)
"""The names of element types, which are literals in expressions."""

ELSEWHERE: Mapping[str, str] = MappingProxyType(
    {
        **{"float": "float32", "double": "float64", "half": "float16", "long": "int64"},
        **{"int": "int32", "short": "int16", "char": "int8", "byte": "uint8", "boolean": "bool"},
    }
)
"""What ONNX, PyTorch and C call some of them."""


def dtype_meant(name: str) -> str:
    """A mend for what is no name of an element type."""
    meant = ELSEWHERE.get(name.casefold(), "")
    return f"Write `{meant}`." if meant else suggest(name, DTYPES)


Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Unknown:
    """The answer of an expression that cannot be decided, and why."""

    reason: str


class Captured(Protocol):
    """A value of the graph, as expressions see it."""

    def attribute(self, name: str) -> object:
        """One of its properties: a plain value, a dim, a tuple of dims, an array, or `Unknown`."""


class Undecided(Exception):
    """Leaves a function that cannot answer."""


def is_captured(value: object) -> bool:
    """Whether it is a value of the graph, and not a plain one."""
    return callable(getattr(type(value), "attribute", None))


def decided(name: str, function: Callable[..., object]) -> Callable[..., object]:
    """The function, with `Unknown` in place of every failure and of every result too large."""

    @functools.wraps(function)
    def answer(*args: object, **kwargs: object) -> object:
        for value in (*args, *kwargs.values()):
            if isinstance(value, Unknown):
                return value
        try:
            return bounded(function(*args, **kwargs), *args)
        except Undecided as reason:
            return Unknown(str(reason))
        except (TypeError, ValueError, ArithmeticError, LookupError, AttributeError) as error:
            return Unknown(f"`{name}`: {error}")

    return answer


def _room(operands: Sequence[object]) -> int:
    """How many bytes a result may have."""
    sizes = [value.nbytes for value in operands if isinstance(value, np.ndarray)]
    return max(MAX_BYTES, _GROWTH * max(sizes, default=0))


def bounded(value: object, *operands: object) -> object:
    """The value itself, or `Unknown` if it is larger than an expression may make it of these."""
    if isinstance(value, int) and not -(2**63) <= value <= 2**63:
        return Unknown("the result is above 2**63")
    if isinstance(value, complex):
        return Unknown("the result is no real number")
    if isinstance(value, str | list | tuple) and len(value) > MAX_ITEMS:
        return Unknown(f"the result has more than {MAX_ITEMS} items")
    if isinstance(value, np.ndarray) and value.nbytes > (room := _room(operands)):
        return Unknown(f"the result is larger than {room // 2**20} MiB")
    return value


def items_of(value: object) -> list[Any]:
    """The items of a list, tuple or array; not decided for anything else."""
    if isinstance(value, np.ndarray) and value.ndim:
        if len(value) > MAX_ITEMS or value.size > 100 * MAX_ITEMS:
            raise Undecided(f"an array of shape {list(value.shape)} is too large to look through")
        return list(value) if value.ndim > 1 or value.dtype.kind == "f" else list(value.tolist())
    if isinstance(value, list | tuple):
        if len(value) > MAX_ITEMS:
            raise Undecided(f"a list of more than {MAX_ITEMS} items is too long to look through")
        return list(value)
    raise Undecided(f"{describe(value)} is no list")


def describe(value: object) -> str:
    """A value in a reader's words."""
    if isinstance(value, list | tuple):
        shown = [describe(item) for item in value[:12]]
        return f"[{', '.join(shown)}{', ...' if len(value) > 12 else ''}]"
    if isinstance(value, np.ndarray):
        if value.size > 12:
            return f"an array of shape {list(value.shape)}"
        return describe(value.tolist())
    if isinstance(value, np.generic):
        return describe(value.item())
    if isinstance(value, str):
        return value if value in DTYPES else repr(value)
    if value is None:
        return "missing"
    if isinstance(value, Unknown):
        return "unknown"
    if is_captured(value):
        return "a value of the graph"
    return str(value)


def scalar_of(value: object) -> Any:
    """Python's number (or text) for a numpy scalar or an array without dims; else the value."""
    if isinstance(value, np.generic) or (isinstance(value, np.ndarray) and value.ndim == 0):
        return value.item()
    return value


def integer_of(value: object) -> int:
    """An integer; raises `Undecided` for everything else."""
    if isinstance(value, Unknown):
        raise Undecided(value.reason)
    value = scalar_of(value)
    if not isinstance(value, int):
        raise Undecided(f"{describe(value)} is not an integer")
    return int(value)


def number_of(value: object) -> Any:
    """An integer or a float; raises `Undecided` for everything else."""
    if isinstance(value, Unknown):
        raise Undecided(value.reason)
    value = scalar_of(value)
    if not isinstance(value, int | float):
        raise Undecided(f"{describe(value)} is not a number")
    return value


def shape_of(value: object) -> tuple[int, ...]:
    """One integer or a list of them, as a tuple."""
    sizes = items_of(value) if not isinstance(scalar_of(value), int) else [value]
    return tuple(integer_of(size) for size in sizes)


def dtype_of(name: object) -> np.dtype[Any]:
    """Numpy's type for the name of an element type; texts are objects."""
    if not isinstance(name, str) or name not in DTYPES:
        raise Undecided(f"{describe(name)} is no dtype")
    if name == "string":
        return np.dtype(object)
    try:
        return np.dtype(name)
    except TypeError:
        pass
    try:
        import ml_dtypes
    except ImportError:
        raise Undecided(f"{name} needs the package ml_dtypes") from None
    found: np.dtype[Any] = np.dtype(getattr(ml_dtypes, name))
    return found


def array_of(value: object) -> Array:
    """An array of a value; integers are int64, other numbers float64."""
    if isinstance(value, np.ndarray):
        return value
    if isinstance(value, np.generic):
        return np.asarray(value)

    def plain(item: object) -> object:
        if isinstance(item, list | tuple | np.ndarray) and not isinstance(scalar_of(item), float):
            return [plain(inner) for inner in items_of(item)]
        item = scalar_of(item)
        if isinstance(item, Unknown):
            raise Undecided(item.reason)
        if not isinstance(item, int | float | str):
            raise Undecided(f"{describe(item)} is not a number")
        return item

    content = plain(value)
    array = np.array(content)
    if array.dtype.kind == "U":
        return np.array(content, dtype=object)
    if array.dtype.hasobject or array.dtype.kind == "u":
        raise Undecided(f"{describe(value)} does not fit int64")
    return array.astype(np.int64) if array.dtype.kind == "i" else array


def require_room(shape: Sequence[int], dtype: np.dtype[Any], *operands: object) -> None:
    """Raise `Undecided` if an array would be larger than an expression may make it of these."""
    if any(size < 0 for size in shape):
        raise Undecided(f"{list(shape)} is no shape")
    if math.prod(shape) * dtype.itemsize > (room := _room(operands)):
        raise Undecided(f"the result is larger than {room // 2**20} MiB")


def cast_array(array: Array, dtype: np.dtype[Any]) -> Array:
    """The array in another type; `Undecided` where an integer would not be the number it was."""
    require_room(array.shape, dtype, array)
    if dtype.kind in "iu" and array.size:
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise Undecided("an infinite number has no integer")
        limits = np.iinfo(dtype)
        if array.dtype.kind in "iuf" and not (
            limits.min <= array.min().item() and array.max().item() <= limits.max
        ):
            raise Undecided(f"a number does not fit {dtype}")
    with np.errstate(all="ignore"):
        return array.astype(dtype)
