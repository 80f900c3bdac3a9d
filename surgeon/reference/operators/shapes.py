"""Data movement: views, sizes, permutations, concatenation."""

# ruff: noqa: D103 - each function means what PyTorch documents for its schema, in TABLE

from __future__ import annotations

import math

import numpy as np

from surgeon.reference.errors import Unsuited
from surgeon.reference.operators.precision import Array, Row


def axis_of(dim: int, rank: int) -> int:
    """A dim counted from the front; a scalar counts as rank 1, as PyTorch has it."""
    room = max(rank, 1)
    if not -room <= dim < room:
        raise Unsuited(f"dim {dim} is outside the rank {rank}")
    return dim % room


def flatten(self: Array, start_dim: int, end_dim: int) -> Array:
    if self.ndim == 0:
        return self.reshape(1)
    start, end = axis_of(start_dim, self.ndim), axis_of(end_dim, self.ndim)
    if start > end:
        raise Unsuited(f"start_dim {start_dim} comes after end_dim {end_dim}")
    middle = math.prod(self.shape[start : end + 1])
    return self.reshape(*self.shape[:start], middle, *self.shape[end + 1 :])


def view(self: Array, size: list[int]) -> Array:
    if any(n < -1 for n in size) or size.count(-1) > 1:
        raise Unsuited(f"shape {size}")
    known = math.prod(n for n in size if n != -1)
    whole = known == self.size if -1 not in size else known and self.size % known == 0
    if not whole:
        raise Unsuited(f"shape {size} for an input of {self.size} elements")
    return self.reshape(size)


def reshape(self: Array, shape: list[int]) -> Array:
    return view(self, shape)


def size_of_axis(self: Array, dim: int) -> Array:
    return np.asarray(self.shape[axis_of(dim, self.ndim)] if self.ndim else 1, np.int64)


def size(self: Array) -> Array:
    return np.asarray(self.shape, np.int64)


def unsqueeze(self: Array, dim: int) -> Array:
    return np.expand_dims(self, axis_of(dim, self.ndim + 1))


def squeeze(self: Array) -> Array:
    return self.squeeze()


def squeeze_axis(self: Array, dim: int) -> Array:
    axis = axis_of(dim, self.ndim)
    return self.squeeze(axis) if self.ndim and self.shape[axis] == 1 else self


def transpose(self: Array, dim0: int, dim1: int) -> Array:
    if self.ndim == 0:
        return self
    return np.swapaxes(self, axis_of(dim0, self.ndim), axis_of(dim1, self.ndim))


def permute(self: Array, dims: list[int]) -> Array:
    axes = [axis_of(dim, self.ndim) for dim in dims]
    if sorted(axes) != list(range(self.ndim)):
        raise Unsuited(f"dims {dims} of an input of rank {self.ndim}")
    return self.transpose(axes)


def t(self: Array) -> Array:
    if self.ndim > 2:
        raise Unsuited(f"its input has rank {self.ndim}")
    return self.T


def numpy_t(self: Array) -> Array:
    return self.T


def cat(tensors: list[Array], dim: int) -> Array:
    # Empty 1-d tensors are skipped, for the sake of old programs (torch.cat's documentation).
    kept = [x for x in tensors if x.shape != (0,)] or tensors
    if not kept:
        raise Unsuited("the list is empty")
    axis = axis_of(dim, kept[0].ndim)
    shapes = {x.shape[:axis] + x.shape[axis + 1 :] for x in kept}
    if len(shapes) > 1 or any(x.ndim != kept[0].ndim or x.ndim == 0 for x in kept):
        raise Unsuited(f"shapes {[list(x.shape) for x in kept]} along dim {dim}")
    return np.concatenate(kept, axis)


TABLE: tuple[Row, ...] = (
    ("flatten.using_ints(Tensor(a) self, int start_dim=0, int end_dim=-1) -> Tensor(a)", flatten),
    ("view(Tensor(a) self, SymInt[] size) -> Tensor(a)", view),
    ("reshape(Tensor(a) self, SymInt[] shape) -> Tensor(a)", reshape),
    ("size.int(Tensor self, int dim) -> int", size_of_axis),
    ("size(Tensor self) -> int[]", size),
    ("unsqueeze(Tensor(a) self, int dim) -> Tensor(a)", unsqueeze),
    ("squeeze.dim(Tensor(a) self, int dim) -> Tensor(a)", squeeze_axis),
    ("squeeze(Tensor(a) self) -> Tensor(a)", squeeze),
    ("transpose.int(Tensor(a) self, int dim0, int dim1) -> Tensor(a)", transpose),
    ("permute(Tensor(a) self, int[] dims) -> Tensor(a)", permute),
    ("t(Tensor(a) self) -> Tensor(a)", t),
    ("numpy_T(Tensor(a) self) -> Tensor(a)", numpy_t),
    ("cat(Tensor[] tensors, int dim=0) -> Tensor", cat),
)
