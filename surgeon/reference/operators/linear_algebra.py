"""Linear algebra (torch.linalg), by LAPACK in float64."""

# ruff: noqa: D103, N803 - each function means what PyTorch documents for its schema, in TABLE

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from surgeon.reference.errors import Unsuited
from surgeon.reference.operators.precision import Array, Row, narrow, wide


def _defined(function: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return function(*arguments)
    except np.linalg.LinAlgError as error:
        raise Unsuited(str(error)) from None


_LOST = 1e-3  # of the result: what rounding the matrix may change without the result being of use


def _apart(a: Any, like: Array) -> Any:
    """The matrices, which must be far enough from singular ones for their dtype."""
    if a.size and (np.linalg.cond(a) * np.finfo(like.dtype).eps > _LOST).any():
        raise Unsuited("a matrix is too near to a singular one")
    return a


def broad(x: Array) -> Any:
    """In double precision, complex values too."""
    return x.astype(np.complex128) if x.dtype.kind == "c" else wide(x)


def inverse(A: Array) -> Array:
    return narrow(_defined(np.linalg.inv, _apart(broad(A), A)), A)


def inverse_of_self(self: Array) -> Array:
    return inverse(self)


def _no_info(A: Array) -> Array:
    """LAPACK's word that it went well; where it did not, numpy has no result."""
    return np.zeros(A.shape[:-2], np.int32)


def inverse_ex(A: Array, check_errors: bool) -> Any:
    return inverse(A), _no_info(A)


def solve(A: Array, B: Array, left: bool = True) -> Array:
    a, b = broad(A), broad(B)
    vector = b.ndim == 1 or (b.ndim == a.ndim - 1 and b.shape == a.shape[:-1])
    if vector:
        b = b[..., None]
    if not left:
        a, b = a.swapaxes(-1, -2), b.swapaxes(-1, -2)
    a, b = _beside(a, b)  # by an older numpy one axis less makes vectors of B
    x = _defined(np.linalg.solve, _apart(a, A), b)
    x = x if left else x.swapaxes(-1, -2)
    return narrow(x[..., 0] if vector else x, A if A.dtype.kind == "c" else B)


def old_solve(self: Array, A: Array) -> Any:
    return narrow(_defined(np.linalg.solve, _apart(wide(A), A), wide(self)), self), None


def solve_ex(A: Array, B: Array, left: bool, check_errors: bool) -> Any:
    return solve(A, B, left), _no_info(A)


def _triangle(a: Any, upper: bool, unit: bool) -> Any:
    a = np.triu(a) if upper else np.tril(a)
    if unit:
        a = a - a * np.eye(a.shape[-1]) + np.eye(a.shape[-1])
    return a


def triangular_solve(
    self: Array, A: Array, upper: bool, transpose: bool, unitriangular: bool
) -> Any:
    a = _triangle(broad(A), upper, unitriangular)
    a = a.swapaxes(-1, -2) if transpose else a
    b = broad(self)
    a, b = _beside(a, b)
    return narrow(_defined(np.linalg.solve, _apart(a, A), b), self), A


def _beside(a: Any, b: Any) -> tuple[Any, Any]:
    """Both with as many matrices, of whatever sides."""
    lots = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return np.broadcast_to(a, (*lots, *a.shape[-2:])), np.broadcast_to(b, (*lots, *b.shape[-2:]))


def solve_triangular(self: Array, B: Array, upper: bool, left: bool, unitriangular: bool) -> Array:
    a, b = _triangle(broad(self), upper, unitriangular), broad(B)
    if not left:
        a, b = a.swapaxes(-1, -2), b.swapaxes(-1, -2)
    a, b = _beside(a, b)
    x = _defined(np.linalg.solve, _apart(a, self), b)
    return narrow(x if left else x.swapaxes(-1, -2), self)


def det(A: Array) -> Array:
    return narrow(np.asarray(np.linalg.det(broad(A))), A)


def det_of_self(self: Array) -> Array:
    return det(self)


def slogdet(A: Array) -> Any:
    sign, size = np.linalg.slogdet(broad(A))
    return narrow(np.asarray(sign), A), narrow(np.asarray(size), A.real)


def det_with_factors(A: Array) -> Any:
    return det(A), None, None


def slogdet_with_factors(A: Array) -> Any:
    return *slogdet(A), None, None


def solve_with_factors(A: Array, B: Array, left: bool, check_errors: bool) -> Any:
    return solve(A, B, left), None, None, None


def slogdet_of_self(self: Array) -> Any:
    return slogdet(self)


def logdet(self: Array) -> Array:
    sign, size = np.linalg.slogdet(broad(self))
    if self.dtype.kind == "c":
        return narrow(np.log(sign) + size, self)
    return narrow(np.where(sign < 0, np.nan, size), self)


def cholesky(self: Array, upper: bool) -> Array:
    a = np.conj(broad(self).swapaxes(-1, -2)) if upper else broad(self)
    factor = _defined(np.linalg.cholesky, a)
    return narrow(np.conj(factor.swapaxes(-1, -2)) if upper else factor, self)


def cholesky_ex(self: Array, upper: bool, check_errors: bool) -> Any:
    return cholesky(self, upper), _no_info(self)


def _product(factor: Array, upper: bool) -> Any:
    if factor.shape[-1] != factor.shape[-2]:
        raise Unsuited("its factor is not square")
    lower = np.tril(np.conj(broad(factor).swapaxes(-1, -2)) if upper else broad(factor))
    return lower @ np.conj(lower.swapaxes(-1, -2))


def cholesky_solve(self: Array, input2: Array, upper: bool) -> Array:
    a, b = _product(input2, upper), broad(self)
    a, b = _beside(a, b)
    return narrow(_defined(np.linalg.solve, _apart(a, self), b), self)


def cholesky_inverse(self: Array, upper: bool) -> Array:
    return narrow(_defined(np.linalg.inv, _apart(_product(self, upper), self)), self)


def qr(self: Array, some: bool) -> Any:
    return linalg_qr(self, "reduced" if some else "complete")


def linalg_qr(A: Array, mode: str) -> Any:
    if mode == "r":
        return None, narrow(np.asarray(np.linalg.qr(broad(A), "r")), A)
    q, r = np.linalg.qr(broad(A), "reduced" if mode == "reduced" else "complete")
    return narrow(q, A), narrow(r, A)


def matrix_exp(self: Array) -> Array:
    """By Pade's quotient of degree 8, of A halved until its norm is below 1/2."""
    a = broad(self)
    if a.shape[-1] != a.shape[-2]:
        raise Unsuited("its matrices are not square")
    norm = float(np.abs(a).sum(-2).max(initial=0.0))
    halvings = max(0, math.frexp(norm)[1] + 1) if math.isfinite(norm) else 0
    a = a / 2.0**halvings
    power = above = below = np.broadcast_to(np.eye(a.shape[-1]), a.shape)
    factor, degree = 1.0, 8
    for k in range(1, degree + 1):
        factor *= (degree - k + 1) / (k * (2 * degree - k + 1))
        power = power @ a
        above, below = above + factor * power, below + (-1) ** k * factor * power
    y = np.linalg.solve(below, above) if math.isfinite(norm) else a * np.nan
    for _ in range(halvings):
        y = y @ y
    return narrow(y, self)


_OTHERS = "bool check_errors=False"
_UPPER = "bool upper=False"


def _unpacked(factors: Any, pivots: Array) -> Any:
    """The matrix that LAPACK's factors and exchanges of rows stand for."""
    size = factors.shape[-1]
    whole = (np.tril(factors, -1) + np.eye(size)) @ np.triu(factors)
    for place in np.ndindex(whole.shape[:-2]):
        for row in reversed(range(size)):
            other = int(pivots[place][row]) - 1
            if not 0 <= other < size:
                raise Unsuited("a pivot is no row")
            whole[place][[row, other]] = whole[place][[other, row]]
    return whole


def lu_solve(LU: Array, pivots: Array, B: Array, left: bool = True, adjoint: bool = False) -> Array:
    a, b = _unpacked(wide(LU), pivots), wide(B)
    a = a.swapaxes(-1, -2) if adjoint else a
    if not left:
        x = _defined(np.linalg.solve, a.swapaxes(-1, -2), b.swapaxes(-1, -2))
        return narrow(x.swapaxes(-1, -2), LU)
    return narrow(_defined(np.linalg.solve, a, b), LU)


def old_lu_solve(self: Array, LU_data: Array, LU_pivots: Array) -> Array:
    return lu_solve(LU_data, LU_pivots, self)


TABLE: tuple[Row, ...] = (
    ("_linalg_det(Tensor A) -> (Tensor, Tensor, Tensor)", det_with_factors),
    ("_linalg_slogdet(Tensor A) -> (Tensor, Tensor, Tensor, Tensor)", slogdet_with_factors),
    (
        "_linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False) "
        "-> (Tensor, Tensor, Tensor, Tensor)",
        solve_with_factors,
    ),
    ("inverse(Tensor self) -> Tensor", inverse_of_self),
    ("linalg_inv(Tensor A) -> Tensor", inverse),
    (f"linalg_inv_ex(Tensor A, *, {_OTHERS}) -> (Tensor, Tensor)", inverse_ex),
    ("solve(Tensor self, Tensor A) -> (Tensor, Tensor)", old_solve),
    ("linalg_solve(Tensor A, Tensor B, *, bool left=True) -> Tensor", solve),
    (
        f"linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, {_OTHERS}) -> (Tensor, Tensor)",
        solve_ex,
    ),
    (
        "triangular_solve(Tensor self, Tensor A, bool upper=True, bool transpose=False, "
        "bool unitriangular=False) -> (Tensor, Tensor)",
        triangular_solve,
    ),
    (
        "linalg_solve_triangular(Tensor self, Tensor B, *, bool upper, bool left=True, "
        "bool unitriangular=False) -> Tensor",
        solve_triangular,
    ),
    ("det(Tensor self) -> Tensor", det_of_self),
    ("linalg_det(Tensor A) -> Tensor", det),
    ("slogdet(Tensor self) -> (Tensor, Tensor)", slogdet_of_self),
    ("linalg_slogdet(Tensor A) -> (Tensor, Tensor)", slogdet),
    ("logdet(Tensor self) -> Tensor", logdet),
    (f"cholesky(Tensor self, {_UPPER}) -> Tensor", cholesky),
    (f"linalg_cholesky(Tensor self, *, {_UPPER}) -> Tensor", cholesky),
    (f"linalg_cholesky_ex(Tensor self, *, {_UPPER}, {_OTHERS}) -> (Tensor, Tensor)", cholesky_ex),
    (f"cholesky_solve(Tensor self, Tensor input2, {_UPPER}) -> Tensor", cholesky_solve),
    (f"cholesky_inverse(Tensor self, {_UPPER}) -> Tensor", cholesky_inverse),
    ("qr(Tensor self, bool some=True) -> (Tensor, Tensor)", qr),
    ("linalg_qr(Tensor A, str mode='reduced') -> (Tensor, Tensor)", linalg_qr),
    ("matrix_exp(Tensor self) -> Tensor", matrix_exp),
    ("linalg_matrix_exp(Tensor self) -> Tensor", matrix_exp),
    (
        "linalg_lu_solve(Tensor LU, Tensor pivots, Tensor B, *, bool left=True, "
        "bool adjoint=False) -> Tensor",
        lu_solve,
    ),
    ("lu_solve(Tensor self, Tensor LU_data, Tensor LU_pivots) -> Tensor", old_lu_solve),
)
