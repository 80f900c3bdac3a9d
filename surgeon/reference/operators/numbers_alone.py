"""PyTorch operators of Python's numbers alone, as C and Python's `math` have them.

An overload of a number of any type (`.Scalar`) is computed in single precision by PyTorch.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from surgeon.reference.errors import Unsuited
from surgeon.reference.operators.precision import Array, Row


def _told(function: Callable[..., Any], *numbers: float) -> float:
    """What C gives where Python raises: no number, or infinity."""
    try:
        return float(function(*numbers))
    except ValueError:
        return math.nan
    except OverflowError:
        return math.inf


def _of_float(function: Callable[..., Any], *, single: bool = False) -> Callable[..., Array]:
    def run(a: Array) -> Array:
        kind = np.float32 if a.dtype == np.float32 else np.float64  # where it was rounded before
        number = np.float32(a.item()).item() if single else a.item()
        found = _told(function, number)
        return np.asarray(np.float32(found) if single else found, kind)

    return run


def _of_two(function: Callable[..., Any]) -> Callable[..., Array]:
    def run(a: Array, b: Array) -> Array:
        kind = np.float32 if np.float32 in (a.dtype, b.dtype) else np.float64
        return np.asarray(_told(function, float(a.item()), float(b.item())), kind)

    return run


def _asks(function: Callable[[float], bool]) -> Callable[..., Array]:
    def run(a: Array) -> Array:
        return np.asarray(function(a.item()))

    return run


def _log(x: float) -> float:
    return -math.inf if x == 0 else math.log(x)


def _angle(x: float) -> float:
    return x if math.isnan(x) else (math.pi if x < 0 else 0.0)


def _in_base(a: float, b: float) -> float:
    return float(np.divide(_told(_log, a), _told(_log, b)))


def _lgamma(x: float) -> float:
    return math.inf if x <= 0 and x == math.floor(x) else math.lgamma(x)


def _remainder(a: float, b: float) -> float:
    if not b:
        raise Unsuited("a division by 0")
    return a % b


def _negative(a: Array) -> Array:
    return np.asarray(-a.item(), a.dtype)


def _divisor(a: Array, b: Array) -> Array:
    return np.asarray(math.gcd(int(a.item()), int(b.item())), np.int64)


def _cut_quotient(a: Array, b: Array) -> Array:
    first, second = int(a.item()), int(b.item())
    if not second:
        raise Unsuited("a division by 0")
    found = abs(first) // abs(second)
    return np.asarray(found if (first < 0) == (second < 0) else -found, np.int64)


def _quotient_and_rest(a: Array, b: Array) -> tuple[Array, Array]:
    if not b.item():
        raise Unsuited("a division by 0")
    kind = np.result_type(a, b) if a.dtype.kind == b.dtype.kind == "f" else np.float64
    whole = a.dtype.kind == b.dtype.kind == "i"
    first, second = divmod(a.item(), b.item())
    return np.asarray(first, np.int64 if whole else kind), np.asarray(
        second, np.int64 if whole else kind
    )


def _fraction_and_whole(a: Array) -> tuple[Array, Array]:
    kind = np.float32 if a.dtype == np.float32 else np.float64
    first, second = math.modf(a.item())
    return np.asarray(first, kind), np.asarray(second, kind)


def _factorial(a: Array) -> Array:
    number = int(a.item())
    if not 0 <= number <= 20:
        raise Unsuited(f"the factorial of {number} is none, or has more than 64 bits")
    return np.asarray(math.factorial(number), np.int64)


_LOGS: tuple[tuple[str, Callable[[float], float]], ...] = (
    ("log", _log),
    ("log10", lambda x: -math.inf if x == 0 else math.log10(x)),
    ("log1p", lambda x: -math.inf if x == -1 else math.log1p(x)),
)
_OF_FLOATS: tuple[tuple[str, Callable[[float], float]], ...] = (
    *((name, getattr(math, name)) for name in ("acos", "acosh", "asin", "asinh", "atan")),
    *((name, getattr(math, name)) for name in ("cos", "cosh", "sin", "sinh", "tan", "tanh")),
    *((name, getattr(math, name)) for name in ("exp", "expm1", "sqrt", "erf", "erfc")),
    ("atanh", lambda x: math.copysign(math.inf, x) if abs(x) == 1 else math.atanh(x)),
    *((name, getattr(math, name)) for name in ("gamma", "degrees", "radians", "fabs")),
    *_LOGS,
    ("lgamma", _lgamma),
    ("angle", _angle),
    ("round", round),
)
_OF_PAIRS: tuple[tuple[str, str, Callable[[float, float], float]], ...] = (
    ("atan2", "Scalar_Scalar", math.atan2),
    ("copysign", "", math.copysign),
    ("fmod", "", math.fmod),
    ("mathremainder", "", math.remainder),
    ("log", "Scalar_Scalar", _in_base),
)
_MIXED = "float int_float float_int"
_NAMES = {"log": "int_int int_float float_int float_float"}
TABLE: tuple[Row, ...] = (
    *(
        (f"{name}.{kind}(Tensor a) -> float", _of_float(function, single=kind == "Scalar"))
        for name, function in _OF_FLOATS
        for kind in ("int", "float", "Scalar")
    ),
    *(
        (f"{name}.{overload}(Tensor a, Tensor b) -> float", _of_two(function))
        for name, of_any, function in _OF_PAIRS
        for overload in f"{_NAMES.get(name, f'int {_MIXED}')} {of_any}".split()
    ),
    *(
        (f"remainder.{overload}(Tensor a, Tensor b) -> float", _of_two(_remainder))
        for overload in _MIXED.split()
    ),
    ("mathremainder(Tensor a, Tensor b) -> float", _of_two(math.remainder)),
    *(
        (f"{name}.float(Tensor a) -> bool", _asks(getattr(math, name)))
        for name in ("isnan", "isinf", "isfinite")
    ),
    *((f"neg.{kind}(Tensor a) -> Scalar", _negative) for kind in ("int", "float", "Scalar")),
    ("gcd.int(Tensor a, Tensor b) -> int", _divisor),
    ("__round_to_zero_floordiv.int(Tensor a, Tensor b) -> int", _cut_quotient),
    ("factorial.int(Tensor a) -> int", _factorial),
    *(
        (f"divmod.{kind}(Tensor a, Tensor b) -> (Scalar, Scalar)", _quotient_and_rest)
        for kind in ("int", "float", "int_float", "float_int")
    ),
    ("modf(Tensor a) -> (float, float)", _fraction_and_whole),
)
