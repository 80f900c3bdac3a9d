"""PyTorch operators: arithmetic, comparisons, elementary functions."""

# ruff: noqa: D103 - each function means what PyTorch documents for its schema, in TABLE

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from surgeon.reference.errors import Unsuited
from surgeon.reference.operators import (
    math_activations,
    math_losses,
    math_norms,
    math_reductions,
)
from surgeon.reference.operators.math_types import between, common, cut, real, result_type, tensor
from surgeon.reference.operators.precision import Array, Row, erf, is_float
from surgeon.reference.operators.scripts import together


def _binary(
    function: Callable[[Any, Any], Any], *, floating: bool = False
) -> Callable[[Any, Any], Array]:
    """A function of two operands in their common dtype; floats are computed in float64."""

    def run(self: Any, other: Any) -> Array:
        a, b, dtype = common(self, other, floating=floating)
        return cut(function(a, b), dtype)

    return run


def _compared(function: Callable[[Any, Any], Any]) -> Any:
    def run(self: Any, other: Any) -> Array:
        dtype = result_type(self, other)
        a, b = tensor(self).astype(dtype), tensor(other).astype(dtype)
        return np.asarray(function(a, b))

    return run


def _unary(function: Callable[[Any], Any]) -> Any:
    """A function of one real; integers become float32 first."""

    def run(self: Array) -> Array:
        x, dtype = real(self)
        return cut(function(x), dtype)

    return run


def sinc(self: Array) -> Array:
    """Of pi * x as the dtype has it: at whole numbers all of the result is that rounding.

    Halves are computed in single precision.
    """
    x, dtype = real(self)
    single = np.dtype(np.float64 if dtype == np.float64 else np.float32)
    angle = (x.astype(single) * single.type(np.pi)).astype(np.float64)
    with np.errstate(all="ignore"):
        return cut(np.where(x == 0, 1.0, np.sin(angle) / angle), dtype)


def _kept(function: Callable[[Any], Any]) -> Any:
    """A function of floats that leaves integers alone."""

    def run(self: Array) -> Array:
        return cut(function(self.astype(np.float64)), self.dtype) if is_float(self) else self

    return run


def _of(number: float, dtype: np.dtype[Any]) -> float:
    """A factor beside values of a dtype: whole where they are."""
    return int(number) if dtype.kind in "iu" else number


def add(self: Any, other: Any, alpha: float) -> Array:
    a, b, dtype = common(self, other)
    if dtype == np.bool_:
        return a | (b & bool(alpha))
    return cut(a + b * _of(alpha, dtype), dtype)


def sub(self: Any, other: Any, alpha: float) -> Array:
    if result_type(self, other) == np.bool_:
        raise Unsuited("booleans are not subtracted")
    a, b, dtype = common(self, other)
    return cut(a - b * _of(alpha, dtype), dtype)


def rsub(self: Any, other: Any, alpha: float) -> Array:
    return sub(other, self, alpha)


def _floored(a: Any, b: Any) -> Any:
    if a.dtype.kind != "f":
        return a // b
    rest = np.fmod(a, b)
    quotient = (a - rest) / b
    quotient = quotient - ((rest != 0) & ((b < 0) != (rest < 0)))
    low = np.floor(quotient)
    low = low + (quotient - low > 0.5)
    return np.where(b == 0, a / b, low)


def _truncated(a: Any, b: Any) -> Any:
    if a.dtype.kind == "f":
        return np.trunc(a / b)
    return (a - np.fmod(a, b)) // b  # the least of a type has no magnitude in it


def _modulo(a: Any, b: Any) -> Any:
    if a.dtype.kind != "f":
        return np.mod(a, b)
    rest = np.fmod(a, b)
    return np.where((rest != 0) & ((b < 0) != (rest < 0)), rest + b, rest)


def div(self: Any, other: Any, rounding_mode: str | None = None) -> Array:
    if rounding_mode is None:
        return _binary(np.divide, floating=True)(self, other)
    _no_zero(self, other)
    return _binary({"floor": _floored, "trunc": _truncated}[rounding_mode])(self, other)


def _no_zero(a: Any, b: Any) -> None:
    if result_type(a, b).kind in "biu" and (tensor(b) == 0).any():
        raise Unsuited("an integer is divided by zero")


def floor_divide(self: Any, other: Any) -> Array:
    return div(self, other, "floor")


def remainder(self: Any, other: Any) -> Array:
    _no_zero(self, other)
    return _binary(_modulo)(self, other)


def fmod(self: Any, other: Any) -> Array:
    _no_zero(self, other)
    return _binary(np.fmod)(self, other)


def power(self: Any, exponent: Any) -> Array:
    dtype = result_type(self, exponent)
    whole = dtype in (np.float32, np.float64)
    if whole and tensor(exponent).ndim == 0 and tensor(exponent) == -0.5:
        with np.errstate(all="ignore"):  # `rsqrt`: of -0.0 and -inf another than the power
            return cut(1 / np.sqrt(tensor(self).astype(np.float64)), dtype)
    if dtype.kind not in "iu" or not (tensor(exponent) < 0).any():
        return _binary(np.power)(self, exponent)
    if tensor(exponent).ndim == 0:
        raise Unsuited("a negative power of integers")
    real, _ = np.broadcast_arrays(tensor(self).astype(np.float64), exponent)
    below = np.where(real == 0, 0, np.trunc(np.where(real == 0, 1, real) ** exponent.clip(None, 0)))
    return np.where(exponent < 0, below, _binary(np.power)(self, abs(exponent))).astype(dtype)


def float_power(self: Any, exponent: Any) -> Array:
    return np.power(tensor(self).astype(np.float64), tensor(exponent).astype(np.float64))


def addcmul(self: Array, tensor1: Array, tensor2: Array, value: float) -> Array:
    product = mul(tensor1, tensor2)
    return add(self, product, value)


def mul(self: Any, other: Any) -> Array:
    a, b, dtype = common(self, other)
    return a & b if dtype == np.bool_ else cut(a * b, dtype)


def addcdiv(self: Array, tensor1: Array, tensor2: Array, value: float) -> Array:
    a, b, dtype = common(tensor1, tensor2)
    wide = np.complex128 if self.dtype.kind == "c" else np.float64
    return cut(self.astype(wide) + value * (a / b), result_type(self, np.zeros(1, dtype)))


def lerp(self: Array, end: Array, weight: Any) -> Array:
    a, b, dtype = common(self, end)
    return cut(between(a, b, tensor(weight).astype(a.dtype)), dtype)


def negative(self: Array) -> Array:
    if self.dtype == np.bool_:
        raise Unsuited("its input is bool")
    return -self


def absolute(self: Array) -> Array:
    return np.asarray(np.abs(self))


def square(self: Array) -> Array:
    made: Array = np.square(self.astype(np.int64) if self.dtype == np.bool_ else self)
    return made


def _logical(function: Any) -> Any:
    return lambda self, other: function(tensor(self).astype(bool), tensor(other).astype(bool))


def _bits(function: Any) -> Any:
    def run(self: Any, other: Any) -> Array:
        a, b, dtype = common(self, other)
        if dtype.kind not in "biu":
            raise Unsuited("floats have no bits")
        return cut(function(a, b), dtype)

    return run


def _shift(*, left: bool) -> Any:
    """By more bits than there are, or by fewer than none, nothing is left but the sign of `>>`.

    So PyTorch has it since 2.1; before, it was as the machine had it.
    """

    def run(self: Any, other: Any) -> Array:
        a, b, dtype = common(self, other)
        if dtype.kind not in "iu":
            raise Unsuited(f"{dtype.name} is not shifted")
        far = (b < 0) | (b >= 8 * dtype.itemsize)
        shifted = (np.left_shift if left else np.right_shift)(a, np.where(far, 0, b))
        sign = 0 if left else np.where(a < 0, -1, 0)
        return np.where(far, sign, shifted).astype(dtype)

    return run


def _nan_wins(function: Any) -> Any:
    return _binary(function)


def sign(self: Array) -> Array:
    return (
        np.where(self != self, 0, np.sign(self)).astype(self.dtype)
        if is_float(self)
        else (self if self.dtype == np.bool_ else np.sign(self))
    )


def rounded(self: Array, decimals: int) -> Array:
    if not is_float(self):
        return self
    # In the dtype itself (of halves in single precision), where the scaled value may be a half.
    single: Any = np.float64 if self.dtype == np.float64 else np.float32
    x, scale = self.astype(single), single(10.0 ** abs(decimals))
    with np.errstate(all="ignore"):
        y = np.rint(x * scale) / scale if decimals >= 0 else np.rint(x / scale) * scale
    return cut(y, self.dtype)


def logit(self: Array, eps: float | None) -> Array:
    x, dtype = real(self)
    if eps is not None:  # both limits are rounded to the input's dtype: near 1 that is seen
        low = np.asarray(eps).astype(dtype)
        x = np.clip(x, low.astype(x.dtype), (np.asarray(1, dtype) - low).astype(x.dtype))
    return cut(np.log(x / (1 - x)), dtype)


def _xlogy(x: Any, y: Any) -> Any:
    return np.where(np.isnan(y), np.nan, np.where(x == 0, 0.0, x * np.log(y)))


_erfc = np.vectorize(math.erfc, otypes=[np.float64])


def _of_one(function: Callable[[Any], Any]) -> Any:
    return lambda self: np.asarray(function(self))


def _of_two(function: Callable[[Any, Any], Any]) -> Any:
    return lambda self, other: np.asarray(function(self, other))


def _both(name: str, parameter: str = "other") -> str:
    return f"{name}.Tensor(Tensor self, Tensor {parameter}) -> Tensor"


_UNARY: dict[str, Callable[[Any], Any]] = {
    **{
        name: getattr(np, numpy_name)
        for name, numpy_name in (
            *((n, n) for n in "exp log sqrt sin cos tan sinh cosh tanh expm1 log1p".split()),
            *((n, n) for n in "log2 log10 exp2 reciprocal deg2rad rad2deg".split()),
            *((f"a{n}", f"arc{n}") for n in "sin cos tan sinh cosh tanh".split()),
            *((f"arc{n}", f"arc{n}") for n in "sin cos tan sinh cosh tanh".split()),
            *((f"special_{n}", n) for n in "expm1 log1p exp2".split()),
        )
    },
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "erf": erf,
    "erfc": _erfc,
    "special_erf": erf,
    "special_erfc": _erfc,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "special_expit": lambda x: 1 / (1 + np.exp(-x)),
}
_KEPT: dict[str, Callable[[Any], Any]] = {
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "fix": np.trunc,
    "frac": lambda x: x - np.trunc(x),
}
_KINDS: dict[str, Callable[[Any], Any]] = {
    "isnan": np.isnan,
    "isinf": np.isinf,
    "isfinite": np.isfinite,
    "isposinf": np.isposinf,
    "isneginf": np.isneginf,
    "signbit": lambda x: np.signbit(x) if is_float(x) else x.astype(np.int64) < 0,
    "logical_not": lambda x: ~x.astype(bool),
    "bitwise_not": np.invert,
}
_COMPARED: dict[str, Callable[[Any, Any], Any]] = {
    **dict.fromkeys(("eq",), np.equal),
    **dict.fromkeys(("ne", "not_equal"), np.not_equal),
    **dict.fromkeys(("lt", "less"), np.less),
    **dict.fromkeys(("le", "less_equal"), np.less_equal),
    **dict.fromkeys(("gt", "greater"), np.greater),
    **dict.fromkeys(("ge", "greater_equal"), np.greater_equal),
}
_PAIRS: dict[str, Any] = {
    **dict.fromkeys(("mul", "multiply"), mul),
    "floor_divide": floor_divide,
    "true_divide": _binary(np.divide, floating=True),
    "remainder": remainder,
    "fmod": fmod,
    **{name: _compared(f) for name, f in _COMPARED.items()},
    "logical_and": _logical(np.logical_and),
    "logical_or": _logical(np.logical_or),
    "logical_xor": _logical(np.logical_xor),
    **{n: _bits(np.bitwise_and) for n in ("bitwise_and", "__and__")},
    **{n: _bits(np.bitwise_or) for n in ("bitwise_or", "__or__")},
    **{n: _bits(np.bitwise_xor) for n in ("bitwise_xor", "__xor__")},
    **{n: _shift(left=True) for n in ("__lshift__", "bitwise_left_shift")},
    **{n: _shift(left=False) for n in ("__rshift__", "bitwise_right_shift")},
    "maximum": _nan_wins(np.maximum),
    "minimum": _nan_wins(np.minimum),
    "fmax": _binary(np.fmax),
    "fmin": _binary(np.fmin),
    **dict.fromkeys(("atan2", "arctan2"), _binary(np.arctan2, floating=True)),
    "hypot": _binary(np.hypot, floating=True),
    "copysign": _binary(np.copysign, floating=True),
    "logaddexp": _binary(np.logaddexp, floating=True),
    "logaddexp2": _binary(np.logaddexp2, floating=True),
    "xlogy": _binary(_xlogy, floating=True),
    "special_xlogy": _binary(_xlogy, floating=True),
    "special_xlog1py": _binary(lambda x, y: _xlogy(x, y + 1), floating=True),
}
_ALPHA = "(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor"


TABLE: tuple[Row, ...] = (
    # TorchScript gives every argument: of tensors these are three
    ("add.t(Numbers a, Numbers b) -> t[]", together),
    *((f"{name}(Tensor self) -> Tensor", _unary(f)) for name, f in _UNARY.items()),
    *((f"{name}(Tensor self) -> Tensor", sinc) for name in ("sinc", "special_sinc")),
    *((f"{name}(Tensor self) -> Tensor", _kept(f)) for name, f in _KEPT.items()),
    *((f"{name}(Tensor self) -> Tensor", _of_one(f)) for name, f in _KINDS.items()),
    *((_both(name), _of_two(f)) for name, f in _PAIRS.items()),
    *((f"{name}{_ALPHA}", add) for name in ("add.Tensor",)),
    *((f"{name}.Tensor{_ALPHA}", sub) for name in ("sub", "subtract")),
    (f"rsub.Tensor{_ALPHA}", rsub),
    *(
        (
            f"{name}.Tensor_mode(Tensor self, Tensor other, *, str? rounding_mode=None) -> Tensor",
            div,
        )
        for name in ("div", "divide")
    ),
    ("pow.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor", power),
    ("float_power.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor", float_power),
    ("addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor", addcmul),
    ("addcdiv(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor", addcdiv),
    ("lerp.Tensor(Tensor self, Tensor end, Tensor weight) -> Tensor", lerp),
    *((f"{name}(Tensor self) -> Tensor", negative) for name in ("neg", "negative")),
    *((f"{name}(Tensor self) -> Tensor", absolute) for name in ("abs", "absolute")),
    ("square(Tensor self) -> Tensor", square),
    *((f"{name}(Tensor self) -> Tensor", sign) for name in ("sign", "sgn")),
    ("round.decimals(Tensor self, *, int decimals=0) -> Tensor", rounded),
    *(
        (f"{name}(Tensor self, float? eps=None) -> Tensor", logit)
        for name in ("logit", "special_logit")
    ),
    *math_activations.TABLE,
    *math_reductions.TABLE,
    *math_norms.TABLE,
    *math_losses.TABLE,
)
