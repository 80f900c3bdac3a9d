"""Singular vectors and eigenvectors (torch.linalg), by LAPACK in float64, turned about.

`x` and `-x`, and a complex one times any phase, are vectors of the same direction, and PyTorch's
documentation leaves open which it gives. So do these: which it is changes with the matrix, so that
a model whose results hang on it is seen to have others.
"""

# ruff: noqa: D103 - each function means what PyTorch documents for its schema, in TABLE

from __future__ import annotations

import zlib
from typing import Any

import numpy as np

from surgeon.reference.errors import Unsuited
from surgeon.reference.operators.linear_algebra import broad
from surgeon.reference.operators.precision import Array, Row, narrow
from surgeon.reference.operators.singular_values import LOST


def _chance(x: Array) -> np.random.Generator:
    """Numbers that no rounding of the matrices changes."""
    return np.random.default_rng(zlib.crc32(np.packbits(x > 0).tobytes()))


def _none_is_told(values: Array, like: Array) -> Unsuited | None:
    """Why vectors are not told: of two equal values any of a plane are."""
    if values.shape[-1] > 1:
        nearest = np.abs(np.diff(values, axis=-1)).min(-1)
        largest = np.abs(values).max(-1)
        if (nearest * LOST <= largest * np.finfo(like.dtype).eps).any():
            return Unsuited("two of its values are equal, and their vectors may be any of a plane")
    return None


def _decomposed(x: Array, *, full: bool) -> tuple[Any, Array, Any]:
    """U, S and V^H."""
    u, s, vh = np.linalg.svd(broad(x), full_matrices=full)
    if (nothing := _none_is_told(s, x)) is not None:
        return nothing, narrow(s, x.real), nothing
    chance, count = _chance(x.real), s.shape[-1]
    signs = _directions(chance, x, s.shape)
    # the vectors of a value of 0 have nothing to do with each other
    lone = s <= s.max(-1, keepdims=True, initial=0) * max(x.shape[-2:]) * np.finfo(x.dtype).eps
    others = np.where(lone, _directions(chance, x, s.shape), signs)
    u[..., :count] *= signs[..., None, :]
    vh[..., :count, :] *= np.conj(others)[..., :, None]
    for spare in (u[..., count:], np.swapaxes(vh[..., count:, :], -1, -2)):
        if more := spare.shape[-1]:  # any that complete the others
            spare[...] = spare @ np.linalg.qr(_drawn(chance, x, (more, more)))[0]
    return narrow(u, x), narrow(s, x.real), narrow(vh, x)


def _directions(chance: np.random.Generator, x: Array, shape: tuple[int, ...]) -> Any:
    """Signs, or phases of complex vectors."""
    if x.dtype.kind == "c":
        return np.exp(2j * np.pi * chance.random(shape))
    return chance.choice([-1.0, 1.0], shape)


def _drawn(chance: np.random.Generator, x: Array, shape: tuple[int, ...]) -> Any:
    real = chance.normal(size=shape)
    return real + 1j * chance.normal(size=shape) if x.dtype.kind == "c" else real


def svd(self: Array, some: bool, compute_uv: bool) -> Any:
    u, s, vh = svd_of_old(self, not some, compute_uv)
    return u, s, np.swapaxes(vh, -1, -2) if isinstance(vh, np.ndarray) else vh


def linalg_svd(A: Array, full_matrices: bool, driver: Any = None) -> Any:  # noqa: N803
    return _decomposed(A, full=full_matrices)


def svd_of_old(self: Array, full_matrices: bool, compute_uv: bool) -> Any:
    if compute_uv:
        return _decomposed(self, full=full_matrices)
    return None, narrow(np.linalg.svd(broad(self), compute_uv=False), self.real), None


def svd_of_itself(
    A: Array,  # noqa: N803
    full_matrices: bool,
    compute_uv: bool,
    driver: Any = None,
) -> Any:
    return svd_of_old(A, full_matrices, compute_uv)


def eigh(self: Array, UPLO: str) -> Any:  # noqa: N803
    if self.shape[-1] != self.shape[-2]:
        raise Unsuited("its matrices are not square")
    values, vectors = np.linalg.eigh(broad(self), "U" if UPLO.upper() == "U" else "L")
    signs = _directions(_chance(self.real), self, values.shape)
    told = narrow(vectors * signs[..., None, :], self)
    return narrow(values, self.real), _none_is_told(values, self) or told


def eigh_of_itself(A: Array, UPLO: str, compute_v: bool) -> Any:  # noqa: N803
    return eigh(A, UPLO)


def symeig(self: Array, eigenvectors: bool, upper: bool) -> Any:
    return eigh(self, "U" if upper else "L")


TABLE: tuple[Row, ...] = (
    (
        "svd(Tensor self, bool some=True, bool compute_uv=True) -> (Tensor, Tensor, Tensor)",
        svd,
    ),
    (
        "linalg_svd(Tensor A, bool full_matrices=True, *, str? driver=None) "
        "-> (Tensor, Tensor, Tensor)",
        linalg_svd,
    ),
    (
        "linalg_svd(Tensor self, bool full_matrices=True, bool compute_uv=True) "
        "-> (Tensor, Tensor, Tensor)",
        svd_of_old,
    ),
    (
        "_linalg_svd(Tensor A, bool full_matrices=False, bool compute_uv=True, *, "
        "str? driver=None) -> (Tensor, Tensor, Tensor)",
        svd_of_itself,
    ),
    ("linalg_eigh(Tensor self, str UPLO='L') -> (Tensor, Tensor)", eigh),
    (
        "_linalg_eigh(Tensor A, str UPLO='L', bool compute_v=True) -> (Tensor, Tensor)",
        eigh_of_itself,
    ),
    (
        "symeig(Tensor self, bool eigenvectors=False, bool upper=True) -> (Tensor, Tensor)",
        symeig,
    ),
)
