"""Arrays that operators ask for, or that random numbers hardly ever are."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from ml_dtypes import finfo

Array = np.ndarray[Any, Any]


def ordered(values: Array) -> Array:
    """Rows that rise."""
    return np.sort(values, -1) if values.ndim else values


def definite(values: Array) -> Array:
    """Positive definite matrices; what is no square matrix stays."""
    if values.ndim < 2 or values.shape[-1] != values.shape[-2]:
        return values
    return np.asarray(values @ values.swapaxes(-1, -2) + values.shape[-1] * np.eye(len(values.T)))


def pivoted(values: Array) -> Array:
    """Matrices far from singular, whose elimination comes nowhere without an exchange of rows."""
    rows, columns = values.shape[-2:] if values.ndim > 1 else (0, 0)
    if min(rows, columns) < 2:
        return values
    low = min(rows, columns)
    at = np.arange(low)
    made = values * (0.3 / math.sqrt(max(rows, columns)))
    made[..., at, at] = 0
    made[..., at, (at + 1) % low] += 1 + at / low
    return made


def multiplied(values: Array) -> Array:
    """Floats no larger than that the product of as many as lie along any axis is finite.

    In which order they are multiplied decides whether an infinity meets a zero.
    """
    if values.dtype.kind in "iubO":
        return values
    most = float(finfo(values.dtype).max) / 2  # type: ignore[no-untyped-call]
    end = most ** (1 / max(1, *values.shape, 1))
    return np.clip(values, -end, end).astype(values.dtype)


def one_true(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """One truth, and no other."""
    truths = np.zeros(shape, bool)
    if truths.size:
        truths.flat[rng.integers(truths.size)] = True
    return truths


def alternating(shape: tuple[int, ...]) -> Array:
    """Levels that alternate along each axis: rows, columns and all differ in their largest."""
    signs = [(-1.0) ** at for at in np.indices(shape)]
    return np.asarray(sum(signs, np.zeros(shape)))
