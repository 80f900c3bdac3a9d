"""Functions of expressions on numbers, dims and lists of them."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from surgeon import dims
from surgeon.functions.values import (
    MAX_ITEMS,
    Undecided,
    Unknown,
    array_of,
    describe,
    integer_of,
    items_of,
    number_of,
    scalar_of,
)


def elementwise(name: str, on_number: Callable[[Any], Any]) -> Callable[[object], object]:
    """A function of numbers that works on arrays and lists too."""

    def function(x: object) -> object:
        if isinstance(x, list | tuple):
            return [function(item) for item in items_of(x)]
        if not (isinstance(x, np.ndarray) and x.ndim):
            return on_number(number_of(x))
        if x.dtype.kind not in "biuf":
            raise Undecided(f"`{name}` needs numbers")
        kind = x.dtype if x.dtype.kind == "f" else np.dtype(np.float64)
        if name == "erf":
            return np.array([math.erf(item) for item in items_of(x.ravel())], kind).reshape(x.shape)
        with np.errstate(all="ignore"):
            return np.asarray(getattr(np, name)(x)).astype(kind)

    function.__doc__ = _OF_NUMBERS[name]
    return function


_OF_NUMBERS = {
    "sqrt": "The square root of a number, or of each of a list or an array.",
    "exp": "e to the power of a number, or of each of a list or an array.",
    "log": "The natural logarithm of a number, or of each of a list or an array.",
    "tanh": "The hyperbolic tangent of a number, or of each of a list or an array.",
    "erf": "The error function of a number, or of each of a list or an array.",
    "floor": "The integer at or below a number; of an array, floats.",
    "ceil": "The integer at or above a number; of an array, floats.",
}


def round_to(rounding: Callable[[float], int]) -> Callable[[Any], Any]:
    """A rounding of floats that leaves integers alone."""
    return lambda value: rounding(value) if isinstance(value, float) else value


def pairwise(numpy_name: str, pick: Callable[[Any, Any], Any]) -> Callable[..., object]:
    """The least or greatest of its arguments, or of one list or array; dims included."""

    def function(first: object, *others: object) -> object:
        if not others and isinstance(first, np.ndarray) and first.size:
            return getattr(np, numpy_name)(first).item()
        values = [scalar_of(v) for v in ((first, *others) if others else items_of(first))]
        if not values:
            raise Undecided("there is no item in it")
        if not all(isinstance(value, int | dims.Expr) for value in values):
            values = [number_of(value) for value in values]
            return max(values) if numpy_name == "max" else min(values)
        return functools.reduce(pick, values)

    which = "greatest" if numpy_name == "max" else "least"
    function.__doc__ = f"The {which} of its arguments, or of one list or array; dims included."
    return function


def all_of(values: object) -> object:
    """Whether all are true; false as soon as one is, whatever is unknown."""
    return _quantified(values, decisive=False)


def any_of(values: object) -> object:
    """Whether one is true; true as soon as one is, whatever is unknown."""
    return _quantified(values, decisive=True)


def _quantified(values: object, *, decisive: bool) -> object:
    if isinstance(values, np.ndarray) and values.dtype.kind == "b":
        return bool(values.any() if decisive else values.all())
    unknown = None
    for value in map(scalar_of, items_of(values)):
        if isinstance(value, Unknown):
            unknown = unknown or value
        elif not isinstance(value, bool):
            raise Undecided(f"{describe(value)} is neither true nor false")
        elif value is decisive:
            return decisive
    return unknown or (not decisive)


def _numbers(values: object) -> list[Any]:
    flat = values.ravel() if isinstance(values, np.ndarray) else values
    found = [scalar_of(value) for value in items_of(flat)]
    for value in found:
        if not isinstance(value, int | float | dims.Expr):
            raise Undecided(value.reason if isinstance(value, Unknown) else f"{describe(value)}?")
    return found


def sum_of(values: object) -> object:
    """The sum of a list or array; dims included."""
    return sum(_numbers(values))


def product(values: object) -> object:
    """The product of a list or array; dims included."""
    return functools.reduce(lambda left, right: left * right, _numbers(values), 1)


def reshape_target(source: object, wanted: object) -> object:
    """The constant operand of a Reshape from one shape to another: numbers, 0s and one -1.

    Raises:
        Undecided: Two dimensions are known at run time only.
    """
    target = dims.constant_target(_numbers(source), _numbers(wanted))
    if target is None:
        raise Undecided(f"no constant Reshape turns {describe(source)} into {describe(wanted)}")
    return target


def absolute(value: object) -> object:
    """The value without its sign; of a dim only where its sign is known."""
    if isinstance(value, np.ndarray) and value.ndim:
        return np.abs(value)
    if isinstance(value, dims.Expr):
        if dims.at_most(0, value):
            return value
        if dims.at_most(value, 0):
            return 0 - value
    return abs(number_of(value))


def length_of(value: object) -> int:
    """How many items a list, or the first axis of an array, has."""
    if isinstance(value, str | list | tuple) or (isinstance(value, np.ndarray) and value.ndim):
        return len(value)
    raise Undecided(f"{describe(value)} has no length")


def range_of(start: object, stop: object = None, step: object = 1) -> list[int]:
    """Integers from start (0) to stop, as a list."""
    first, last = (0, integer_of(start)) if stop is None else (integer_of(start), integer_of(stop))
    values = range(first, last, integer_of(step))
    if values[MAX_ITEMS : MAX_ITEMS + 1]:
        raise Undecided(f"the result has more than {MAX_ITEMS} items")
    return list(values)


def in_order(values: object) -> list[Any]:
    """The items, sorted; not decided where one is symbolic."""
    found = [scalar_of(value) for value in items_of(values)]
    if any(isinstance(value, dims.Expr | Unknown) for value in found):
        raise Undecided(f"the order of {describe(found)} is not known")
    return sorted(found)


def backwards(values: object) -> list[Any]:
    """The items in reverse."""
    return items_of(values)[::-1]


def to_integer(value: object) -> object:
    """The number without its fraction."""
    return value if isinstance(value, dims.Expr) else int(number_of(value))


def to_float(value: object) -> float:
    """The number as a float."""
    return float(number_of(value))


def rounded(value: object, digits: object = None) -> object:
    """The nearest integer, or that with so many digits."""
    if isinstance(value, dims.Expr):
        return value
    return round(number_of(value), None if digits is None else integer_of(digits))


def scalar(values: object) -> object:
    """The one element of an array or list, whatever its shape."""
    array = array_of(values)
    if array.size != 1:
        raise Undecided(f"{describe(array)} has {array.size} elements, not one")
    return array.ravel()[0]


def is_divisible(dividend: object, divisor: object) -> object:
    """Whether a division leaves no remainder, as far as it can be proven."""
    top, bottom = scalar_of(dividend), scalar_of(divisor)
    for value in (top, bottom):
        if not isinstance(value, int | dims.Expr):
            raise Undecided(f"{describe(value)} is not an integer")
    verdict = dims.equal(top % bottom, 0)
    return verdict if verdict is not None else Unknown(f"the remainder is {top % bottom}")
