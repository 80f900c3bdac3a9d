"""What operators gave in older releases of PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np

from surgeon.reference.errors import Unsuited
from surgeon.reference.operators.math_reductions import argmax, argmin
from surgeon.reference.operators.math_types import result_type
from surgeon.reference.operators.precision import Array
from surgeon.reference.operators.shapes import axis_of


def cut_quotient(first: Any, second: Any) -> Array:
    """The quotient of integers, rounded to zero.

    Raises:
        Unsuited: One is divided by zero.
    """
    if not second.all():
        raise Unsuited("integers are divided by zero")
    dtype = result_type(first, second)
    wide = (v.astype(np.int64) for v in (first, second))  # the least number has no magnitude
    first, second = np.broadcast_arrays(*wide)
    quotient = np.abs(first) // np.abs(second)
    quotient = np.where((first < 0) == (second < 0), quotient, -quotient)
    return np.asarray(quotient, dtype)


def cosine(x1: Any, x2: Any, dim: int, eps: float) -> Any:
    """The product of both norms is at least eps (documentation of 1.11)."""
    first, second = (np.asarray(x, np.float64) for x in np.broadcast_arrays(x1, x2))
    norms = np.linalg.norm(np.atleast_1d(first), axis=dim) * np.linalg.norm(
        np.atleast_1d(second), axis=dim
    )
    return np.asarray(np.atleast_1d(first * second).sum(dim) / np.maximum(norms, eps))


def without_keys(result: Any, mask: Any) -> Any:
    """Attention as before 2.5: NaN for a query of which every key is masked."""
    if mask is None:
        return result
    kept = mask if mask.dtype == np.bool_ else mask > -np.inf
    empty = ~kept.any(-1)
    found = np.array(result)
    found[np.broadcast_to(empty, found.shape[:-1])] = np.nan
    return found


def last_place(operator: str, self: Array, dim: int | None = None, keepdim: bool = False) -> Array:
    """`argmax` or `argmin` as older releases: the last of equals, but of NaN the first."""
    find = argmax if operator in ("argmax", "max") else argmin
    if self.ndim == 0 or self.size == 0:
        return find(self, dim, keepdim)
    line, along = (self.reshape(-1), 0) if dim is None else (self, axis_of(dim, self.ndim))
    strange = np.isnan(line) if line.dtype.kind == "f" else np.zeros(line.shape, np.bool_)
    last = line.shape[along] - 1 - find(np.flip(line, along), along, True)
    found = np.where(strange.any(along, keepdims=True), strange.argmax(along, keepdims=True), last)
    shape = [1] * self.ndim if dim is None and keepdim else found.shape
    return np.asarray(found.reshape(shape) if keepdim else found.squeeze(along))


def zero_of_none(
    result: Any, self: Array, target: Array, weight: Array | None, reduction: int, ignore_index: int
) -> Any:
    """A likelihood, whose mean over targets of no weight in all is 0; of no targets it is none."""
    kept = target != ignore_index
    weights = np.ones(self.shape[1 if self.ndim > 1 else 0]) if weight is None else weight
    if reduction != 1 or not target.size or (weights[np.where(kept, target, 0)] * kept).sum():
        return result
    first, *rest = result if isinstance(result, tuple) else (result,)
    return (np.zeros_like(first), *rest) if rest else np.zeros_like(first)
