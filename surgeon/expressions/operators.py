"""Comparison and arithmetic of expressions, three-valued: a bool or value, or `Unknown`."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from surgeon import dims
from surgeon.functions.values import (
    MAX_ITEMS,
    Array,
    Undecided,
    Unknown,
    array_of,
    bounded,
    describe,
    is_captured,
    items_of,
    require_room,
    scalar_of,
)

ARITHMETIC: Mapping[str, Callable[[Any, Any], Any]] = MappingProxyType(
    {
        "+": operator.add,
        "-": operator.sub,
        "*": operator.mul,
        "//": operator.floordiv,
        "%": operator.mod,
        "/": operator.truediv,
        "**": operator.pow,
    }
)
_LARGEST = 2.0**62


def equals(left: object, right: object) -> bool | Unknown:
    """Equality; of sequences and arrays element by element, where one difference decides.

    A float constant of a model and a number of the recipe are compared in the constant's type:
    float32's 0.1 equals 0.1.
    """
    if type(left) is int and type(right) is int:  # most are
        return left == right
    if isinstance(left, Unknown):
        return left
    if isinstance(right, Unknown):
        return right
    if is_captured(left) or is_captured(right):
        if left is None or right is None or left is right:
            return left is right
        return Unknown("a value of the graph is compared; compare its `.value` or `.name`")
    if _is_sequence(left) or _is_sequence(right):
        return _is_sequence(left) and _is_sequence(right) and _sequences_equal(left, right)
    left, right = _aligned(left, right)
    if isinstance(left, dims.Expr) or isinstance(right, dims.Expr):
        whole = (_whole(left), _whole(right))
        if whole[0] is None or whole[1] is None:
            return False
        verdict = dims.equal(whole[0], whole[1])
        return Unknown(f"{left} == {right} is open") if verdict is None else verdict
    return bool(left == right)


def _is_sequence(value: object) -> bool:
    return isinstance(value, list | tuple) or (isinstance(value, np.ndarray) and value.ndim > 0)


def _sequences_equal(left: Any, right: Any) -> bool | Unknown:
    if len(left) != len(right):
        return False
    if isinstance(left, np.ndarray) and isinstance(right, np.ndarray):
        if left.shape != right.shape:
            return False
        if not (left.dtype.hasobject or right.dtype.hasobject):
            return bool(np.array_equal(left, right))
    unknown = None
    try:
        pairs = zip(items_of(left), items_of(right), strict=True)
    except Undecided as reason:
        return Unknown(str(reason))
    for one, other in pairs:
        verdict = equals(one, other)
        if verdict is False:
            return False
        if isinstance(verdict, Unknown):
            unknown = unknown or verdict
    return unknown or True


def _aligned(left: object, right: object) -> tuple[Any, Any]:
    """Both as Python's scalars, a float of the recipe rounded to the type of a constant."""
    return _rounded(left, right), _rounded(right, left)


def _rounded(value: object, other: object) -> Any:
    kind = getattr(other, "dtype", None)
    if type(value) is float and isinstance(kind, np.dtype) and kind.kind == "f":
        with np.errstate(all="ignore"):
            return np.asarray(value).astype(kind).item()
    return scalar_of(value)


def _whole(value: object) -> dims.Dim | None:
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    return value if isinstance(value, int | dims.Expr) else None


def ordered(symbol: str, left: object, right: object) -> bool | Unknown:
    """`left < right`, `<=`, `>` or `>=`, of numbers and dims."""
    if symbol in (">", ">="):
        return ordered("<" if symbol == ">" else "<=", right, left)
    for value in (left, right):
        if isinstance(value, Unknown):
            return value
    low, high = _aligned(left, right)
    for value in (low, high):
        if not isinstance(value, int | float | dims.Expr):
            return Unknown(f"{describe(value)} is not a number")
    if not (isinstance(low, dims.Expr) or isinstance(high, dims.Expr)):
        return bool(low < high if symbol == "<" else low <= high)
    first, second = _whole(low), _whole(high)
    if first is None or second is None:
        return Unknown(f"{describe(low)} {symbol} {describe(high)} is open")
    if symbol == "<=":
        verdict = dims.at_most(first, second)
    else:
        reverse = dims.at_most(second, first)
        verdict = None if reverse is None else not reverse
    return Unknown(f"{first} {symbol} {second} is open") if verdict is None else verdict


def contains(item: object, collection: object) -> bool | Unknown:
    """`item in collection`: true as soon as one equals it, whatever is unknown."""
    for value in (item, collection):
        if isinstance(value, Unknown):
            return value
    if isinstance(item, str) and isinstance(collection, str):
        return item in collection
    unknown = None
    try:
        members = items_of(collection)
    except Undecided as reason:
        return Unknown(str(reason))
    for member in members:
        verdict = equals(item, member)
        if verdict is True:
            return True
        if isinstance(verdict, Unknown):
            unknown = unknown or verdict
    return unknown or False


def combine(symbol: str, left: object, right: object) -> object:
    """Arithmetic on numbers, dims and arrays; `+` joins lists, and texts."""
    for value in (left, right):
        if isinstance(value, Unknown):
            return value
    try:
        return bounded(_combine(symbol, left, right), left, right)
    except Undecided as reason:
        return Unknown(str(reason))
    except ZeroDivisionError:
        return Unknown("a division by zero")
    except (ArithmeticError, TypeError, ValueError) as error:
        return Unknown(str(error))


def _combine(symbol: str, left: Any, right: Any) -> object:
    if _is_array(left) or _is_array(right):
        return _combine_arrays(symbol, array_of(left), array_of(right))
    left, right = scalar_of(left), scalar_of(right)
    if isinstance(left, str) and isinstance(right, str) and symbol == "+":
        return left + right
    if _is_sequence(left) or _is_sequence(right):
        if symbol != "+" or not (_is_sequence(left) and _is_sequence(right)):
            raise Undecided("lists are joined by `+` and take no other part in arithmetic")
        if len(left) + len(right) > MAX_ITEMS:
            raise Undecided(f"the result has more than {MAX_ITEMS} items")
        return [*left, *right]
    for value in (left, right):
        if not isinstance(value, int | float | dims.Expr):
            raise Undecided(f"{describe(value)} is not a number")
    if isinstance(left, dims.Expr) or isinstance(right, dims.Expr):
        if symbol in ("/", "**") or isinstance(left, float) or isinstance(right, float):
            raise Undecided(f"{left} {symbol} {right} is no integer arithmetic")
    elif symbol == "**" and _is_above_64_bits(left, right):
        raise Undecided("the result is above 2**63")
    return ARITHMETIC[symbol](left, right)


def _is_above_64_bits(base: float, power: float) -> bool:
    if not (isinstance(base, int) and isinstance(power, int)):
        return False
    return power > 0 and (abs(base).bit_length() - 1) * power > 63


def _is_array(value: object) -> bool:
    return isinstance(value, np.ndarray) and value.ndim > 0


def _combine_arrays(symbol: str, left: Array, right: Array) -> Array:
    whole = np.broadcast_shapes(left.shape, right.shape)
    require_room(whole, np.dtype(np.float64), left, right)
    for array in (left, right):
        if array.dtype.kind not in "biuf":
            raise Undecided(f"an array of {array.dtype} takes no part in arithmetic")
    left, right = (_widened(array) for array in (left, right))
    with np.errstate(all="ignore"):
        if left.dtype.kind == right.dtype.kind == "i" and symbol != "/":
            if symbol in ("//", "%") and not right.all():
                raise ZeroDivisionError
            if symbol == "**" and right.size and right.min() < 0:
                raise Undecided("an integer array is raised to a negative power")
            estimate = ARITHMETIC[symbol](left.astype(np.float64), right.astype(np.float64))
            if estimate.size and not (np.abs(estimate) < _LARGEST).all():
                raise Undecided("the result is above 2**62")
        return np.asarray(ARITHMETIC[symbol](left, right))


def _widened(array: Array) -> Array:
    if array.dtype.kind == "u" and array.size and array.max() >= 2**63:
        raise Undecided("an unsigned number does not fit int64")
    return array.astype(np.int64) if array.dtype.kind in "biu" else array


def negative(value: object) -> object:
    """`-value`."""
    return combine("-", 0, value) if not isinstance(scalar_of(value), float) else -scalar_of(value)


def item_of(value: object, index: object) -> object:
    """`value[index]`; an index past the end is not decided."""
    for part in (value, index):
        if isinstance(part, Unknown):
            return part
    if not _is_sequence(value):
        return Unknown(f"{describe(value)} has no items")
    keys = index if isinstance(index, tuple) else (index,)
    if len(keys) > 1 and not _is_array(value):
        return Unknown("a list takes one index")
    keys = tuple(scalar_of(key) for key in keys)
    for key in keys:
        if isinstance(key, bool) or not isinstance(key, int | slice):
            return Unknown(f"the index {describe(key)} is not a number")
    try:
        found = value[keys if len(keys) > 1 else keys[0]]  # type: ignore[index]
    except IndexError:
        size = list(value.shape) if _is_array(value) else len(value)  # type: ignore[attr-defined, arg-type]
        shown = ", ".join(describe(key) for key in keys)
        return Unknown(f"there is no item {shown}, the size is {size}")
    return found.item() if isinstance(found, np.integer | np.bool_) else found


def slice_of(*parts: object) -> object:
    """`start:stop:step` of an index; each part an integer or None."""
    numbers = [scalar_of(part) for part in parts]
    for number in numbers:
        if isinstance(number, Unknown):
            return number
        if number is not None and (isinstance(number, bool) or not isinstance(number, int)):
            return Unknown(f"the index {describe(number)} is not a number")
    return Unknown("a slice of step 0") if numbers[2] == 0 else slice(*numbers)
