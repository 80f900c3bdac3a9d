"""PyTorch operators: views, sizes, permutations, concatenation."""

# ruff: noqa: D103 - each function means what PyTorch documents for its schema, in TABLE

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from surgeon.reference.errors import Unsuited
from surgeon.reference.operators.math_types import mixed
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


def _of_one_dtype(tensors: list[Array]) -> list[Array]:
    return [x.astype(mixed(tensors)) for x in tensors]


def cat(tensors: list[Array], dim: int) -> Array:
    # Empty 1-d tensors are skipped, for the sake of old programs (torch.cat's documentation).
    kept = [x for x in tensors if x.shape != (0,)] or tensors
    if not kept:
        raise Unsuited("the list is empty")
    axis = axis_of(dim, kept[0].ndim)
    shapes = {x.shape[:axis] + x.shape[axis + 1 :] for x in kept}
    if len(shapes) > 1 or any(x.ndim != kept[0].ndim or x.ndim == 0 for x in kept):
        raise Unsuited(f"shapes {[list(x.shape) for x in kept]} along dim {dim}")
    return np.concatenate(kept, axis, dtype=mixed(tensors), casting="unsafe")


def same(self: Array) -> Array:
    return self


def view_like(self: Array, other: Array) -> Array:
    return view(self, list(other.shape))


def unflatten(self: Array, dim: int, sizes: list[int]) -> Array:
    axis = axis_of(dim, self.ndim)
    return view(
        self, [*self.shape[:axis], *_solved(sizes, self.shape[axis]), *self.shape[axis + 1 :]]
    )


def _solved(sizes: list[int], length: int) -> list[int]:
    rest = math.prod(n for n in sizes if n != -1)
    return [length // rest if n == -1 else n for n in sizes]


def squeeze_axes(self: Array, dim: list[int]) -> Array:
    axes = [axis_of(d, self.ndim) for d in dim] if self.ndim else []
    return self.squeeze(tuple(a for a in axes if self.shape[a] == 1))


def swap_axes(self: Array, axis0: int, axis1: int) -> Array:
    return transpose(self, axis0, axis1)


def matrix_transpose(self: Array) -> Array:
    return np.swapaxes(self, -1, -2)


def movedim(self: Array, source: list[int], destination: list[int]) -> Array:
    return np.moveaxis(self, source, destination)


def movedim_one(self: Array, source: int, destination: int) -> Array:
    return np.moveaxis(self, source, destination) if self.ndim else self


def item(self: Array) -> Array:
    if self.size != 1:
        raise Unsuited(f"its input has {self.size} elements")
    return self.reshape(())


def is_nonzero(self: Array) -> Array:
    return np.asarray(bool(item(self)))


def reshape_alias(self: Array, size: list[int], stride: list[int]) -> Array:
    return reshape(self, size)


def numel(self: Array) -> Array:
    return np.asarray(self.size, np.int64)


def rank_of(self: Array) -> Array:
    return np.asarray(self.ndim, np.int64)


def expand(self: Array, size: list[int], implicit: bool = False) -> Array:
    old = [1] * (len(size) - self.ndim) + list(self.shape)
    return np.broadcast_to(
        self, [a if n == -1 else n for a, n in zip(old, size, strict=True)]
    ).copy()


def broadcast_to(self: Array, size: list[int]) -> Array:
    return expand(self, size)


def expand_as(self: Array, other: Array) -> Array:
    return expand(self, list(other.shape))


def repeat(self: Array, repeats: list[int]) -> Array:
    if len(repeats) < self.ndim:
        raise Unsuited(f"repeats {repeats} for an input of rank {self.ndim}")
    return np.tile(self, repeats)


def tile(self: Array, dims: list[int]) -> Array:
    return np.tile(self, dims)


def stack(tensors: list[Array], dim: int) -> Array:
    return np.stack(_of_one_dtype(tensors), dim)


def atleast_1d(self: Array) -> Array:
    return np.atleast_1d(self)


def atleast_2d(self: Array) -> Array:
    return np.atleast_2d(self)


def atleast_3d(self: Array) -> Array:
    return np.atleast_3d(self)


def each_of(function: Callable[[Array], Array]) -> Callable[[list[Array]], list[Array]]:
    """The same of every tensor of a list."""

    def of_list(tensors: list[Array]) -> list[Array]:
        return [function(each) for each in tensors]

    return of_list


def hstack(tensors: list[Array]) -> Array:
    return np.hstack(_of_one_dtype(tensors))


def vstack(tensors: list[Array]) -> Array:
    return np.vstack(_of_one_dtype(tensors))


def dstack(tensors: list[Array]) -> Array:
    return np.dstack(_of_one_dtype(tensors))


def column_stack(tensors: list[Array]) -> Array:
    return np.column_stack(_of_one_dtype(tensors))


def pixel_shuffle(self: Array, upscale_factor: int) -> Array:
    r = upscale_factor
    *batch, c, h, w = self.shape
    if c % (r * r):
        raise Unsuited(f"{c} channels are no multiple of {r * r}")
    out = np.empty((*batch, c // (r * r), h * r, w * r), self.dtype)
    for i in range(r):
        for j in range(r):
            out[..., i::r, j::r] = self[..., i * r + j :: r * r, :, :]
    return out


def pixel_unshuffle(self: Array, downscale_factor: int) -> Array:
    r = downscale_factor
    *batch, c, h, w = self.shape
    if h % r or w % r:
        raise Unsuited(f"{h} by {w} is no multiple of {r}")
    out = np.empty((*batch, c * r * r, h // r, w // r), self.dtype)
    for i in range(r):
        for j in range(r):
            out[..., i * r + j :: r * r, :, :] = self[..., i::r, j::r]
    return out


def channel_shuffle(self: Array, groups: int) -> Array:
    count = self.shape[1]
    order = np.arange(count).reshape(groups, count // groups).T.reshape(-1)
    return np.take(self, order, 1)


def kron(self: Array, other: Array) -> Array:
    dtype = mixed([self, other])
    return np.kron(self.astype(dtype), other.astype(dtype))


def block_diag(tensors: list[Array]) -> Array:
    blocks = [np.atleast_2d(t) for t in tensors]
    out = np.zeros(np.sum([b.shape for b in blocks], 0), mixed(tensors))
    row = column = 0
    for block in blocks:
        out[row : row + block.shape[0], column : column + block.shape[1]] = block
        row, column = row + block.shape[0], column + block.shape[1]
    return out


def one_hot(self: Array, num_classes: int) -> Array:
    depth = int(self.max()) + 1 if num_classes < 0 else num_classes
    if self.size and (self.min() < 0 or self.max() >= depth):
        raise Unsuited(f"a class outside {depth}")
    return np.asarray(np.eye(depth, dtype=np.int64)[self])


def tril(self: Array, diagonal: int) -> Array:
    return np.tril(self, diagonal)


def triu(self: Array, diagonal: int) -> Array:
    return np.triu(self, diagonal)


def meshgrid(tensors: list[Array]) -> list[Array]:
    return [np.array(a) for a in np.meshgrid(*[t.reshape(-1) for t in tensors], indexing="ij")]


def meshgrid_indexing(tensors: list[Array], indexing: str) -> list[Array]:
    flat = [t.reshape(-1) for t in tensors]
    return [np.array(a) for a in np.meshgrid(*flat, indexing="xy" if indexing == "xy" else "ij")]


def broadcast_tensors(tensors: list[Array]) -> list[Array]:
    return [np.array(a) for a in np.broadcast_arrays(*tensors)]


def cartesian_prod(tensors: list[Array]) -> Array:
    if len(tensors) == 1:
        return tensors[0]
    grids = np.meshgrid(*tensors, indexing="ij")
    return np.stack([g.reshape(-1) for g in grids], 1)


def contiguous(self: Array, memory_format: Any) -> Array:
    return self


TABLE: tuple[Row, ...] = (
    ("flatten.using_ints(Tensor(a) self, int start_dim=0, int end_dim=-1) -> Tensor(a)", flatten),
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
    (
        "contiguous(Tensor self, *, MemoryFormat memory_format=contiguous_format) -> Tensor",
        contiguous,
    ),
    ("clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor", contiguous),
    ("detach(Tensor self) -> Tensor", same),
    ("alias(Tensor self) -> Tensor", same),
    ("_unsafe_view(Tensor self, SymInt[] size) -> Tensor", view),
    ("view_as(Tensor self, Tensor other) -> Tensor", view_like),
    ("reshape_as(Tensor self, Tensor other) -> Tensor", view_like),
    ("unflatten.int(Tensor self, int dim, SymInt[] sizes) -> Tensor", unflatten),
    ("squeeze.dims(Tensor self, int[] dim) -> Tensor", squeeze_axes),
    ("swapaxes(Tensor self, int axis0, int axis1) -> Tensor", swap_axes),
    ("swapdims(Tensor self, int dim0, int dim1) -> Tensor", transpose),
    ("mT(Tensor self) -> Tensor", matrix_transpose),
    ("movedim.int(Tensor self, int source, int destination) -> Tensor", movedim_one),
    ("movedim.intlist(Tensor self, int[] source, int[] destination) -> Tensor", movedim),
    ("moveaxis.int(Tensor self, int source, int destination) -> Tensor", movedim_one),
    ("moveaxis.intlist(Tensor self, int[] source, int[] destination) -> Tensor", movedim),
    ("numel(Tensor self) -> int", numel),
    ("item(Tensor self) -> Scalar", item),
    ("is_nonzero(Tensor self) -> bool", is_nonzero),
    ("_shape_as_tensor(Tensor self) -> Tensor", size),
    (
        "_reshape_alias(Tensor self, SymInt[] size, SymInt[] stride) -> Tensor",
        reshape_alias,
    ),
    ("dim(Tensor self) -> int", rank_of),
    ("expand(Tensor self, SymInt[] size, *, bool implicit=False) -> Tensor", expand),
    ("broadcast_to(Tensor self, SymInt[] size) -> Tensor", broadcast_to),
    ("expand_as(Tensor self, Tensor other) -> Tensor", expand_as),
    ("repeat(Tensor self, SymInt[] repeats) -> Tensor", repeat),
    ("tile(Tensor self, SymInt[] dims) -> Tensor", tile),
    ("concat(Tensor[] tensors, int dim=0) -> Tensor", cat),
    ("concatenate(Tensor[] tensors, int dim=0) -> Tensor", cat),
    ("stack(Tensor[] tensors, int dim=0) -> Tensor", stack),
    ("hstack(Tensor[] tensors) -> Tensor", hstack),
    ("vstack(Tensor[] tensors) -> Tensor", vstack),
    ("row_stack(Tensor[] tensors) -> Tensor", vstack),
    ("dstack(Tensor[] tensors) -> Tensor", dstack),
    ("column_stack(Tensor[] tensors) -> Tensor", column_stack),
    *(
        row
        for count, function in ((1, atleast_1d), (2, atleast_2d), (3, atleast_3d))
        for row in (
            (f"atleast_{count}d(Tensor self) -> Tensor", function),
            (f"atleast_{count}d.Sequence(Tensor[] tensors) -> Tensor[]", each_of(function)),
        )
    ),
    ("pixel_shuffle(Tensor self, int upscale_factor) -> Tensor", pixel_shuffle),
    ("pixel_unshuffle(Tensor self, int downscale_factor) -> Tensor", pixel_unshuffle),
    ("channel_shuffle(Tensor self, SymInt groups) -> Tensor", channel_shuffle),
    ("kron(Tensor self, Tensor other) -> Tensor", kron),
    ("block_diag(Tensor[] tensors) -> Tensor", block_diag),
    ("one_hot(Tensor self, int num_classes=-1) -> Tensor", one_hot),
    ("tril(Tensor self, int diagonal=0) -> Tensor", tril),
    ("triu(Tensor self, int diagonal=0) -> Tensor", triu),
    ("meshgrid(Tensor[] tensors) -> Tensor[]", meshgrid),
    ("meshgrid.indexing(Tensor[] tensors, *, str indexing) -> Tensor[]", meshgrid_indexing),
    ("broadcast_tensors(Tensor[] tensors) -> Tensor[]", broadcast_tensors),
    ("cartesian_prod(Tensor[] tensors) -> Tensor", cartesian_prod),
)
