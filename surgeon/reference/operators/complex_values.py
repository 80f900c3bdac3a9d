"""PyTorch operators whose meaning for complex values is another than that for real ones.

Each takes the arguments of the operator's schema by name (documentation of torch, "Complex
Numbers", and of each operator), computes in double precision and rounds once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from surgeon.reference.by_onnx import is_complex
from surgeon.reference.errors import Unsuited
from surgeon.reference.operators import complex_sums, math_norms
from surgeon.reference.operators.math_reductions import Dims, over
from surgeon.reference.operators.math_types import reduced
from surgeon.reference.operators.precision import Array
from surgeon.reference.operators.shapes import axis_of


def of_complex(operator: str, operands: Sequence[Any]) -> Callable[..., Any] | None:
    """The function for these operands; None where the one for real values does."""
    return _FUNCTIONS.get(operator) if any(is_complex(x) for x in operands) else None


def _wide(x: Array) -> Any:
    return x.astype(np.complex128)


def _single(function: Callable[[Any], Any]) -> Callable[..., Array]:
    def run(self: Array) -> Array:
        return np.asarray(function(_wide(self))).astype(self.dtype)

    return run


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def _sign(x: Any) -> Any:
    sizes = np.abs(x)
    return np.where(sizes == 0, 0, x / np.where(sizes == 0, 1, sizes))


def angle(self: Array) -> Array:
    """In the dtype of the parts."""
    return np.asarray(np.angle(_wide(self))).astype(self.real.dtype)


def _reduced(function: Callable[..., Any]) -> Callable[..., Array]:
    def run(
        self: Array, dim: Dims = None, keepdim: bool = False, dtype: Any = None, **rest: Any
    ) -> Array:
        found = over(function, _wide(self), dim, keepdim)
        return np.asarray(found).astype(dtype or self.dtype)

    return run


def _scanned(function: Callable[..., Any]) -> Callable[..., Array]:
    def run(self: Array, dim: int, dtype: Any = None) -> Array:
        x = _wide(self)
        found = function(x, axis=axis_of(dim, x.ndim)) if x.ndim else x
        return np.asarray(found).astype(dtype or self.dtype)

    return run


def vdot(self: Array, other: Array) -> Array:
    """The first one conjugated."""
    return np.asarray(np.vdot(_wide(self), _wide(other))).astype(self.dtype)


def l1_loss(self: Array, target: Array, reduction: int) -> Array:
    """Of magnitudes, and so real."""
    apart = np.abs(_wide(self) - _wide(target))
    return reduced(apart, reduction, np.result_type(self, target).type(0).real.dtype)


def logsumexp(self: Array, dim: Dims, keepdim: bool) -> Array:
    """As it is documented."""
    found = np.log(over(np.sum, np.exp(_wide(self)), dim, keepdim))
    return np.asarray(found).astype(self.dtype)


def trapezoid(y: Array, dim: int, dx: Any = 1, x: Any = None) -> Array:
    """All areas added up."""
    return np.asarray(_areas(y, dim, dx, x).sum(axis=axis_of(dim, y.ndim)).astype(y.dtype))


def cumulative_trapezoid(y: Array, dim: int, dx: Any = 1, x: Any = None) -> Array:
    """As many areas as there are, one after the other."""
    sums = np.cumsum(_areas(y, dim, dx, x), axis=axis_of(dim, y.ndim))
    return np.asarray(sums).astype(y.dtype)


def _areas(y: Array, dim: int, dx: Any, x: Any) -> Any:
    """Between each two neighbours along an axis."""
    axis = axis_of(dim, y.ndim)
    wide = np.moveaxis(_wide(y), axis, -1)
    width = np.asarray(dx) if x is None else np.diff(np.moveaxis(x, axis if x.ndim > 1 else 0, -1))
    return np.moveaxis((wide[..., 1:] + wide[..., :-1]) / 2 * width, -1, axis)


def isclose(self: Array, other: Array, rtol: float, atol: float, equal_nan: bool) -> Array:
    """By the magnitude of the difference."""
    a, b = _wide(self), _wide(other)
    near = np.isfinite(a - b) & (np.abs(a - b) <= atol + np.abs(rtol * b))
    if equal_nan:
        near |= np.isnan(a) & np.isnan(b)
    return np.asarray(near | (a == b))


def allclose(**given: Any) -> Array:
    """Whether it is so everywhere."""
    return np.asarray(bool(isclose(**given).all()))


def float_power(self: Any, exponent: Any) -> Array:
    """In double precision, whatever it is of."""
    return np.power(np.asarray(self, np.complex128), np.asarray(exponent, np.complex128))


def adjoint(self: Array) -> Array:
    """Turned and conjugated."""
    return np.conj(self) if self.ndim < 2 else np.conj(self.swapaxes(-1, -2))


def _of_sizes(function: Callable[..., Any]) -> Callable[..., Array]:
    """A norm that depends on the magnitudes alone."""

    def run(self: Array, **rest: Any) -> Array:
        if rest.get("ord", rest.get("p")) == "nuc":
            raise Unsuited("the nuclear norm is one of singular values")
        sizes = np.abs(_wide(self)).astype(self.real.dtype)
        return np.asarray(function(sizes, **rest))

    return run


def linalg_norm(self: Array, ord: Any, dim: Dims, keepdim: bool, dtype: Any) -> Array:
    """Of vectors by the magnitudes; of matrices as of real ones."""
    over = list(range(self.ndim)) if dim is None else list(np.ravel(dim))
    if ord is None or len(over) == 1:
        return _of_sizes(math_norms.linalg_norm)(
            self, ord=ord, dim=dim, keepdim=keepdim, dtype=dtype
        )
    return math_norms.matrix_norm(self, ord, over, keepdim, dtype)


_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    **{
        name: _single(getattr(np, name))
        for name in (
            *("exp", "log", "log2", "log10", "sqrt", "square", "reciprocal"),
            *("sin", "cos", "tan", "sinh", "cosh", "tanh", "expm1", "log1p", "sinc"),
            *("arcsin", "arccos", "arctan", "arcsinh", "arccosh", "arctanh"),
        )
    },
    **{f"special_{name}": _single(getattr(np, name)) for name in ("expm1", "log1p", "sinc")},
    **{
        f"a{name}": _single(getattr(np, f"arc{name}"))
        for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")
    },
    "l1_loss": l1_loss,
    "logsumexp": logsumexp,
    "trapezoid": trapezoid,
    "cumulative_trapezoid": cumulative_trapezoid,
    "isclose": isclose,
    "allclose": allclose,
    "float_power": float_power,
    "sigmoid": _single(_sigmoid),
    "silu": _single(lambda z: z * _sigmoid(z)),
    "rsqrt": _single(lambda z: 1 / np.sqrt(z)),
    "exp2": _single(lambda z: np.power(2, z)),
    "sgn": _single(_sign),
    "angle": angle,
    "sum": _reduced(np.sum),
    "mean": _reduced(np.mean),
    "prod": _reduced(np.prod),
    "cumsum": _scanned(np.cumsum),
    "cumprod": _scanned(np.cumprod),
    "vdot": vdot,
    **dict.fromkeys(("adjoint", "mH", "matrix_H"), adjoint),
    "norm": _of_sizes(math_norms.norm),
    "linalg_vector_norm": _of_sizes(math_norms.vector_norm),
    "frobenius_norm": _of_sizes(math_norms.norm),
    "linalg_norm": linalg_norm,
    **{
        name: getattr(complex_sums, name)
        for name in ("cov", "corrcoef", "logaddexp", "logcumsumexp", "ldexp", "renorm", "vander")
    },
    "linalg_vander": complex_sums.vander,
}
