"""What singular values and eigenvalues decide (torch.linalg), by LAPACK in float64."""

# ruff: noqa: D103 - each function means what PyTorch documents for its schema, in TABLE

from __future__ import annotations

from typing import Any

import numpy as np

from surgeon.reference.errors import Unsuited
from surgeon.reference.operators.linear_algebra import broad
from surgeon.reference.operators.precision import Array, Row, narrow

LOST = 1e-3  # of the result: what rounding the matrix may change without the result being of use


def _values(x: Any) -> Any:
    return np.linalg.svd(x, compute_uv=False)


def svdvals(A: Array, driver: Any = None) -> Array:  # noqa: N803
    return narrow(_values(broad(A)), A.real)


def eigvalsh(self: Array, UPLO: str) -> Array:  # noqa: N803
    if self.shape[-1] != self.shape[-2]:
        raise Unsuited("its matrices are not square")
    found = np.linalg.eigvalsh(broad(self), "U" if UPLO.upper() == "U" else "L")
    return narrow(found, self.real)


def nuclear_norm(self: Array, keepdim: bool) -> Array:
    return nuclear_norm_over(self, [-2, -1], keepdim)


def nuclear_norm_over(self: Array, dim: Any, keepdim: bool) -> Array:
    norm = np.linalg.norm(broad(self), "nuc", axis=tuple(dim), keepdims=keepdim)
    return narrow(np.asarray(norm), self.real)


def cond(self: Array, p: Any = None) -> Array:
    if p not in (None, 2, -2):
        raise Unsuited(f"its `p` is {p!r}")
    s = _values(broad(self))
    if (s[..., -1:] < s[..., :1] * np.finfo(self.dtype).eps / LOST).any():
        raise Unsuited("a matrix is too near to a singular one")
    most, least = s.max(-1), s.min(-1)
    return narrow(least / most if p == -2 else most / least, self.real)


def _kept(x: Any, like: Array, absolute: Any, share: Any) -> tuple[Any, Any]:
    """The singular values, and which of them are above the cut; none may be near it."""
    s = _values(x)
    largest = s.max(-1, keepdims=True, initial=0)
    rounding = max(like.shape[-2:]) * np.finfo(like.dtype).eps

    def batched(value: Any) -> Any:
        value = np.asarray(value, np.float64)
        return value[..., None] if value.ndim else value

    low = batched(0.0 if absolute is None else absolute)
    if share is None:
        cut = np.maximum(low, np.where(low > 0, 0, rounding) * largest)
    else:
        cut = np.maximum(low, batched(share) * largest)
    if (np.abs(s - cut) <= rounding * largest / 2).any() and s.size and largest.any():
        raise Unsuited("a singular value is too near to where they count as 0")
    return s, s > cut


def _lower(x: Any) -> Any:
    """Of a symmetric matrix the lower triangle is read."""
    if x.shape[-1] != x.shape[-2]:
        raise Unsuited("its matrices are not square")
    below = np.tril(x, -1)
    return below + np.conj(np.swapaxes(below, -1, -2)) + np.tril(np.triu(x)).real


def matrix_rank(input: Array, atol: Any = None, rtol: Any = None, hermitian: bool = False) -> Array:
    x = _lower(broad(input)) if hermitian else broad(input)
    return np.asarray(_kept(x, input, atol, rtol)[1].sum(-1), np.int64)


def matrix_rank_above(input: Array, tol: Any, hermitian: bool) -> Array:
    return matrix_rank(input, tol, 0.0, hermitian)


def _pseudo_inverse(x: Any, like: Array, absolute: Any, share: Any) -> Any:
    s, kept = _kept(x, like, absolute, share)
    largest = s.max(-1, keepdims=True, initial=0)
    if (kept & (s * LOST < largest * np.finfo(like.dtype).eps)).any():
        raise Unsuited("a matrix is too near to one of less rank")
    u, s, vh = np.linalg.svd(x, full_matrices=False)
    inverted = np.where(kept, 1 / np.where(kept, s, 1), 0)
    return np.einsum("...ki,...k,...jk->...ij", np.conj(vh), inverted, np.conj(u))


def pinverse(self: Array, rcond: float) -> Array:
    return narrow(_pseudo_inverse(broad(self), self, None, rcond), self)


def pinv(self: Array, atol: Any = None, rtol: Any = None, hermitian: bool = False) -> Array:
    x = _lower(broad(self)) if hermitian else broad(self)
    return narrow(_pseudo_inverse(x, self, atol, rtol), self)


def pinv_above(self: Array, rcond: Any, hermitian: bool) -> Array:
    return pinv(self, None, rcond, hermitian)


def lstsq(self: Array, b: Array, rcond: Any, driver: Any) -> Any:
    """The solution, the residuals, the ranks and the singular values.

    Residuals are of what is higher than wide and of full rank, and never by `gelsy`, the default.
    """
    vector = b.ndim == 1 or (b.ndim == self.ndim - 1 and b.shape == self.shape[:-1])
    right = broad(b)[..., None] if vector else broad(b)
    x = _pseudo_inverse(broad(self), self, None, rcond) @ right
    ranks = matrix_rank(self, None, rcond)
    none = np.zeros(0, self.real.dtype)
    high, wide_ = self.shape[-2:]
    driver = driver or "gelsy"
    residuals = none
    if high > wide_ and driver != "gelsy" and (driver == "gels" or (ranks == wide_).all()):
        residuals = narrow(np.square(np.abs(broad(self) @ x - right)).sum(-2), self.real)
    return (
        narrow(x[..., 0] if vector else x, self),
        residuals,
        np.zeros(0, np.int64) if driver == "gels" else ranks,
        svdvals(self) if driver in ("gelsd", "gelss") else none,
    )


_HERMITIAN = "bool hermitian=False) -> Tensor"
_FLOATS = "*, float? atol=None, float? rtol=None, "
_TENSORS = "*, Tensor? atol=None, Tensor? rtol=None, "

TABLE: tuple[Row, ...] = (
    ("linalg_svdvals(Tensor A, *, str? driver=None) -> Tensor", svdvals),
    ("linalg_eigvalsh(Tensor self, str UPLO='L') -> Tensor", eigvalsh),
    ("nuclear_norm(Tensor self, bool keepdim=False) -> Tensor", nuclear_norm),
    ("nuclear_norm.dim(Tensor self, int[2] dim, bool keepdim=False) -> Tensor", nuclear_norm_over),
    ("linalg_cond(Tensor self, Scalar? p=None) -> Tensor", cond),
    ("linalg_matrix_rank(Tensor input, float tol, " + _HERMITIAN, matrix_rank_above),
    (
        "linalg_matrix_rank(Tensor self, float? tol=None, " + _HERMITIAN,
        lambda self, tol, hermitian: matrix_rank(self, tol, 0.0 if tol else None, hermitian),
    ),
    ("linalg_matrix_rank.tol_tensor(Tensor input, Tensor tol, " + _HERMITIAN, matrix_rank_above),
    ("linalg_matrix_rank.atol_rtol_float(Tensor input, " + _FLOATS + _HERMITIAN, matrix_rank),
    ("linalg_matrix_rank.atol_rtol_tensor(Tensor input, " + _TENSORS + _HERMITIAN, matrix_rank),
    (
        "matrix_rank(Tensor self, bool symmetric=False) -> Tensor",
        lambda self, symmetric: matrix_rank(self, hermitian=symmetric),
    ),
    (
        "matrix_rank.tol(Tensor self, float tol, bool symmetric=False) -> Tensor",
        lambda self, tol, symmetric: matrix_rank_above(self, tol, symmetric),
    ),
    ("pinverse(Tensor self, float rcond=1e-15) -> Tensor", pinverse),
    ("linalg_pinv(Tensor self, float rcond, " + _HERMITIAN, pinv_above),
    ("linalg_pinv.rcond_tensor(Tensor self, Tensor rcond, " + _HERMITIAN, pinv_above),
    ("linalg_pinv.atol_rtol_float(Tensor self, " + _FLOATS + _HERMITIAN, pinv),
    ("linalg_pinv.atol_rtol_tensor(Tensor self, " + _TENSORS + _HERMITIAN, pinv),
    (
        "linalg_lstsq(Tensor self, Tensor b, float? rcond=None, *, str? driver=None) "
        "-> (Tensor, Tensor, Tensor, Tensor)",
        lstsq,
    ),
)
