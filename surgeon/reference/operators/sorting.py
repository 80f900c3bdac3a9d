"""PyTorch operators: order, distinct elements, repeats."""

# ruff: noqa: D103, E501 - each function means what PyTorch documents for its schema, in TABLE

from __future__ import annotations

import numpy as np

from surgeon.reference.errors import Unsuited
from surgeon.reference.operators.indexing import along
from surgeon.reference.operators.precision import Array, Row
from surgeon.reference.operators.shapes import axis_of


def sort(self: Array, dim: int, descending: bool) -> tuple[Array, Array]:
    axis = axis_of(dim, self.ndim)
    if self.ndim == 0:
        return self, np.asarray(0, np.int64)
    if descending:  # equal elements keep their order
        count = self.shape[axis]
        order = count - 1 - np.argsort(np.flip(self, axis), axis, kind="stable")
        order = np.flip(order, axis)
    else:
        order = np.argsort(self, axis, kind="stable")
    return np.take_along_axis(self, order, axis), order.astype(np.int64)


def sort_stable(self: Array, stable: bool, dim: int, descending: bool) -> tuple[Array, Array]:
    return sort(self, dim, descending)


def argsort(self: Array, dim: int, descending: bool) -> Array:
    return sort(self, dim, descending)[1]


def argsort_stable(self: Array, stable: bool, dim: int, descending: bool) -> Array:
    return sort(self, dim, descending)[1]


def msort(self: Array) -> Array:
    return np.sort(self, 0) if self.ndim else self


def topk(self: Array, k: int, dim: int, largest: bool, sorted: bool) -> tuple[Array, Array]:
    values, places = sort(self, dim, largest)
    if self.ndim == 0:
        return values, places
    if not 0 <= k <= self.shape[dim]:
        raise Unsuited(f"{k} of {self.shape[dim]} elements")
    part = along(self, dim, slice(0, k))
    return values[part], places[part]


def unique2(
    self: Array, sorted: bool, return_inverse: bool, return_counts: bool
) -> tuple[Array, ...]:
    values, inverse, counts = np.unique(self, return_inverse=True, return_counts=True)
    nothing = np.zeros(0, np.int64)
    inverse = inverse.reshape(self.shape) if return_inverse else nothing
    return values, inverse, counts if return_counts else nothing


def unique_dim(
    self: Array, dim: int, sorted: bool, return_inverse: bool, return_counts: bool
) -> tuple[Array, ...]:
    return np.unique(self, axis=dim, return_inverse=True, return_counts=True)


def unique_consecutive(
    self: Array, return_inverse: bool, return_counts: bool, dim: int | None
) -> tuple[Array, ...]:
    axis = 0 if dim is None else axis_of(dim, self.ndim)
    lines = self.reshape(-1) if dim is None else np.moveaxis(self, axis, 0)
    begins = np.asarray(
        [i == 0 or bool((lines[i] != lines[i - 1]).any()) for i in range(len(lines))], np.bool_
    )
    nothing = np.zeros(0, np.int64)
    inverse: Array = np.cumsum(begins) - 1
    counts = np.diff([*np.flatnonzero(begins), len(lines)]).astype(np.int64)
    if dim is None:  # along a dim PyTorch gives both, asked for or not
        inverse = inverse.reshape(self.shape) if return_inverse else nothing
        counts = counts if return_counts else nothing
    return np.moveaxis(lines[begins], 0, axis), inverse, counts


def unique_dim_consecutive(
    self: Array, dim: int, return_inverse: bool, return_counts: bool
) -> tuple[Array, ...]:
    return unique_consecutive(self, return_inverse, return_counts, dim)


def repeat_each(repeats: Array, output_size: int | None) -> Array:
    return np.repeat(np.arange(repeats.size, dtype=repeats.dtype), repeats)


def repeat_interleave(
    self: Array, repeats: Array, dim: int | None, output_size: int | None
) -> Array:
    return np.repeat(self, repeats.reshape(-1), dim)


def repeat_interleave_int(
    self: Array, repeats: int, dim: int | None, output_size: int | None
) -> Array:
    return np.repeat(self, repeats, dim)


TABLE: tuple[Row, ...] = (
    ("sort(Tensor self, int dim=-1, bool descending=False) -> (Tensor, Tensor)", sort),
    (
        "sort.stable(Tensor self, *, bool? stable, int dim=-1, bool descending=False) -> (Tensor, Tensor)",
        sort_stable,
    ),
    ("argsort(Tensor self, int dim=-1, bool descending=False) -> Tensor", argsort),
    (
        "argsort.stable(Tensor self, *, bool stable, int dim=-1, bool descending=False) -> Tensor",
        argsort_stable,
    ),
    ("msort(Tensor self) -> Tensor", msort),
    (
        "topk(Tensor self, SymInt k, int dim=-1, bool largest=True, bool sorted=True) -> (Tensor, Tensor)",
        topk,
    ),
    (
        "_unique2(Tensor self, bool sorted=True, bool return_inverse=False, bool return_counts=False) -> (Tensor, Tensor, Tensor)",
        unique2,
    ),
    (
        "unique_dim(Tensor self, int dim, bool sorted=True, bool return_inverse=False, bool return_counts=False) -> (Tensor, Tensor, Tensor)",
        unique_dim,
    ),
    (
        "unique_consecutive(Tensor self, bool return_inverse=False, bool return_counts=False, int? dim=None) -> (Tensor, Tensor, Tensor)",
        unique_consecutive,
    ),
    (
        "unique_dim_consecutive(Tensor self, int dim, bool return_inverse=False, bool return_counts=False) -> (Tensor, Tensor, Tensor)",
        unique_dim_consecutive,
    ),
    (
        "repeat_interleave.Tensor(Tensor repeats, *, SymInt? output_size=None) -> Tensor",
        repeat_each,
    ),
    (
        "repeat_interleave.self_int(Tensor self, SymInt repeats, int? dim=None, *, SymInt? output_size=None) -> Tensor",
        repeat_interleave_int,
    ),
    (
        "repeat_interleave.self_Tensor(Tensor self, Tensor repeats, int? dim=None, *, SymInt? output_size=None) -> Tensor",
        repeat_interleave,
    ),
)
