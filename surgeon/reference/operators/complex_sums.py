"""PyTorch's statistics and sums of exponentials of complex values, in double precision."""

# ruff: noqa: D103 - each function means what PyTorch documents for its schema

from __future__ import annotations

from typing import Any

import numpy as np

from surgeon.reference.errors import Unsuited
from surgeon.reference.operators.math_norms import vector_norm
from surgeon.reference.operators.precision import Array, narrow
from surgeon.reference.operators.shapes import axis_of


def _wide(x: Any) -> Any:
    return np.asarray(x).astype(np.complex128)


def cov(
    self: Array, correction: int, fweights: Array | None = None, aweights: Array | None = None
) -> Array:
    if self.ndim not in (1, 2):
        raise Unsuited(f"its input has rank {self.ndim}")
    shares = None if aweights is None else aweights.astype(np.float64)
    found = np.cov(_wide(self), ddof=correction, fweights=fweights, aweights=shares)
    return narrow(found, self)


def corrcoef(self: Array) -> Array:
    return narrow(np.corrcoef(_wide(self)), self)


def _added(first: Any, second: Any) -> Any:
    """log(e^a + e^b) with the angle of the larger, and so much more as the sum is turned from it.

    A difference that has no real part left adds nothing.
    """
    swaps = first.real < second.real
    low, high = np.where(swaps, first, second), np.where(swaps, second, first)
    there = np.isfinite(low.real) | (low.real != high.real)
    share = np.exp(np.where(there & np.isfinite(low.real), low - high, -np.inf))
    whole = 1 + share
    turned = high.imag + np.arctan2(whole.imag, whole.real)
    made = np.where(there, high.real + np.log(np.abs(whole)) + 1j * turned, low)
    if np.isposinf(high.real).any():
        raise Unsuited("an exponential is infinite")
    broken = np.isnan(first) | np.isnan(second)
    return np.where(broken, complex(np.nan, np.nan), made)


def logaddexp(self: Any, other: Any) -> Array:
    kind = np.result_type(self, other)
    return np.asarray(_added(*np.broadcast_arrays(_wide(self), _wide(other)))).astype(kind)


def logcumsumexp(self: Array, dim: int) -> Array:
    """One by one, from nothing on."""
    if self.ndim == 0:
        return self
    axis = axis_of(dim, self.ndim)
    rows = np.moveaxis(_wide(self), axis, 0)
    state = np.full(rows.shape[1:], complex(-np.inf, 0))
    found = np.empty_like(rows)
    for place, row in enumerate(rows):
        state = _added(row, state)
        found[place] = state
    return narrow(np.moveaxis(found, 0, axis), self)


def ldexp(self: Any, other: Any) -> Array:
    kind = np.result_type(self, other) if np.asarray(other).dtype.kind in "fc" else self.dtype
    return np.asarray(_wide(self) * np.exp2(_wide(other))).astype(kind)


def renorm(self: Array, p: float, dim: int, maxnorm: float) -> Array:
    rows = np.moveaxis(_wide(self), axis_of(dim, self.ndim), 0)
    lengths = vector_norm(np.abs(rows).reshape(len(rows), -1), p, [1], False, None)
    shares = np.where(lengths > maxnorm, maxnorm / (lengths + 1e-7), 1.0)
    scaled = rows * shares.reshape(-1, *[1] * (self.ndim - 1))
    return narrow(np.moveaxis(scaled, 0, axis_of(dim, self.ndim)), self)


def vander(x: Array, N: int | None = None, increasing: bool = True) -> Array:  # noqa: N803
    x = np.atleast_1d(x)
    powers = np.arange(x.shape[-1] if N is None else N)
    made = np.where(powers == 0, 1, _wide(x)[..., None] ** powers)
    return narrow(made if increasing else made[..., ::-1], x)
