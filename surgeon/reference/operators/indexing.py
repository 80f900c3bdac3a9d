"""PyTorch operators: indexing."""

# ruff: noqa: D103, E501 - each function means what PyTorch documents for its schema, in TABLE

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from surgeon.reference.errors import Unsuited
from surgeon.reference.operators import borders, products
from surgeon.reference.operators.precision import Array, Row
from surgeon.reference.operators.shapes import axis_of


def along(array: Array, axis: int, index: Any) -> Any:
    return (slice(None),) * axis_of(axis, array.ndim) + (index,)


def dynamic_slice(self: Array, starts: Array | None, ends: Array | None, axes: Array) -> Array:
    """ONNX's operator on trial: from `starts` up to `ends` along each of `axes`."""
    for place, axis in enumerate(axes):
        length = self.shape[axis]
        start = 0 if starts is None else starts[place]
        end = length if ends is None else ends[place]
        first, last = (int(np.clip(b + length * (b < 0), 0, length)) for b in (start, end))
        self = np.take(self, np.arange(first, max(first, last)), axis)
    return self


def slice_(self: Array, dim: int, start: int | None, end: int | None, step: int) -> Array:
    return np.asarray(self[along(self, dim, slice(start, end, step))])


def select(self: Array, dim: int, index: int) -> Array:
    length = self.shape[axis_of(dim, self.ndim)]
    if not -length <= index < length:
        raise Unsuited(f"index {index} of {length} elements")
    return np.asarray(self[along(self, dim, index)])


def narrow(self: Array, dim: int, start: int, length: int) -> Array:
    size = self.shape[axis_of(dim, self.ndim)]
    begin = start + size if start < 0 else start
    if begin < 0 or begin + length > size:
        raise Unsuited(f"elements {begin} to {begin + length} of {size}")
    return np.asarray(self[along(self, dim, slice(begin, begin + length))])


def flip(self: Array, dims: list[int]) -> Array:
    return np.flip(self, tuple(axis_of(d, self.ndim) for d in dims)) if self.ndim else self


def fliplr(self: Array) -> Array:
    return np.fliplr(self)


def flipud(self: Array) -> Array:
    return np.flipud(self)


def rot90(self: Array, k: int, dims: list[int]) -> Array:
    return np.rot90(self, k, (dims[0], dims[1]))


def roll(self: Array, shifts: list[int], dims: list[int]) -> Array:
    return np.roll(self, shifts, tuple(dims)) if dims else np.roll(self, shifts[0])


def unfold(self: Array, dimension: int, size: int, step: int) -> Array:
    if self.ndim == 0:
        return self.reshape(1)
    axis = axis_of(dimension, self.ndim)
    windows = np.lib.stride_tricks.sliding_window_view(self, size, axis)
    return np.array(windows[along(self, axis, slice(None, None, step))])


def diagonal(self: Array, offset: int, dim1: int, dim2: int) -> Array:
    length = max(0, min(self.shape[dim1] - max(-offset, 0), self.shape[dim2] - max(offset, 0)))
    return np.diagonal(self, offset, dim1, dim2)[..., :length]


def diag(self: Array, diagonal: int) -> Array:
    return np.diag(self, diagonal)


def diagflat(self: Array, offset: int) -> Array:
    return np.diagflat(self, offset)


def diag_embed(self: Array, offset: int, dim1: int, dim2: int) -> Array:
    length = self.shape[-1]
    out = np.zeros((*self.shape[:-1], length + abs(offset), length + abs(offset)), self.dtype)
    place = np.arange(length)
    out[..., place + max(-offset, 0), place + max(offset, 0)] = self
    return np.moveaxis(out, (-2, -1), (dim1, dim2))


def trace(self: Array) -> Array:
    return np.asarray(np.trace(self), np.int64 if self.dtype.kind in "iub" else self.dtype)


def split(self: Array, split_size: int, dim: int) -> list[Array]:
    axis = axis_of(dim, self.ndim)
    length = self.shape[axis]
    if split_size == 0:
        return [self]
    return np.split(self, range(split_size, length, split_size), axis)


def split_with_sizes(self: Array, split_sizes: list[int], dim: int) -> list[Array]:
    if sum(split_sizes) != self.shape[dim]:
        raise Unsuited(f"sizes {split_sizes} of {self.shape[dim]} elements")
    return np.split(self, np.cumsum(split_sizes)[:-1], axis_of(dim, self.ndim))


def split_sizes(self: Array, split_size: list[int], dim: int) -> list[Array]:
    return split_with_sizes(self, split_size, dim)


def chunk(self: Array, chunks: int, dim: int) -> list[Array]:
    length = self.shape[axis_of(dim, self.ndim)]
    return split(self, -(-length // chunks), dim) if length else [self] * chunks


def unbind(self: Array, dim: int) -> list[Array]:
    axis = axis_of(dim, self.ndim)
    return [np.asarray(np.take(self, i, axis)) for i in range(self.shape[axis])]


def tensor_split(self: Array, sections: int, dim: int) -> list[Array]:
    return np.array_split(self, sections, axis_of(dim, self.ndim))


def tensor_split_at(self: Array, indices: list[int], dim: int) -> list[Array]:
    axis = axis_of(dim, self.ndim)
    bounds = [None, *indices, None]
    return [self[along(self, axis, slice(a, b))] for a, b in pairwise(bounds)]


def tensor_split_by(self: Array, tensor_indices_or_sections: Array, dim: int) -> list[Array]:
    given = tensor_indices_or_sections
    if given.ndim == 0:
        return tensor_split(self, int(given), dim)
    return tensor_split_at(self, [int(at) for at in given], dim)


def hsplit(self: Array, sections: int | list[int]) -> list[Array]:
    return np.hsplit(self, sections)


def vsplit(self: Array, sections: int | list[int]) -> list[Array]:
    return np.vsplit(self, sections)


def dsplit(self: Array, sections: int | list[int]) -> list[Array]:
    return np.dsplit(self, sections)


def _at(function: Callable[[Array, Any], list[Array]]) -> Callable[..., list[Array]]:
    return lambda self, indices: function(self, indices)


def nonzero(self: Array) -> Array:
    return np.argwhere(self)


def where_true(condition: Array) -> list[Array]:
    flat = np.flatnonzero(condition)
    return [np.asarray(a) for a in np.unravel_index(flat, condition.shape)]


def nonzero_numpy(self: Array) -> list[Array]:
    return [np.asarray(a) for a in np.nonzero(self)]


def index(self: Array, indices: list[Array | None]) -> Array:
    return np.asarray(self[keys_of(indices)])


def keys_of(indices: list[Array | None]) -> tuple[Any, ...]:
    keys: list[Any] = []
    for key in indices:
        if key is None:
            keys.append(slice(None))
        else:
            keys.append(key.astype(np.bool_) if key.dtype == np.uint8 else key)
    return tuple(keys)


def index_select(self: Array, dim: int, index: Array) -> Array:
    if self.ndim == 0:
        return self
    axis = axis_of(dim, self.ndim)
    return np.take(self, inside(index.reshape(-1), self.shape[axis]), axis)


def gather(self: Array, dim: int, index: Array, sparse_grad: bool) -> Array:
    if self.ndim == 0:
        inside(index, 1)
        return np.full(index.shape, self)
    if index.ndim == 0:  # of a single axis, one element
        return np.asarray(self[inside(index, len(self))])
    return np.asarray(self[places(self, index, axis_of(dim, self.ndim))])


def places(x: Array, index: Array, axis: int) -> tuple[Any, ...]:
    where: list[Any] = list(np.indices(index.shape))
    where[axis] = inside(index, x.shape[axis] if x.ndim else 1)
    return tuple(where)


def inside(index: Array, length: int) -> Array:
    """The index, which may not count from the end: PyTorch refuses that in most operators."""
    if index.size and (index.min() < 0 or index.max() >= length):
        raise Unsuited(f"an index outside {length} elements")
    return index


def take(self: Array, index: Array) -> Array:
    return np.take(self.reshape(-1), index)


def take_along_dim(self: Array, indices: Array, dim: int | None) -> Array:
    if dim is None:
        return np.take(self.reshape(-1), indices.reshape(-1))
    axis = axis_of(dim, self.ndim)
    mine, its = list(self.shape), list(indices.shape)
    for i in range(self.ndim):
        if i != axis:
            mine[i] = its[i] = max(mine[i], its[i])
    return np.take_along_axis(np.broadcast_to(self, mine), np.broadcast_to(indices, its), axis)


def embedding(
    weight: Array, indices: Array, padding_idx: int, scale_grad_by_freq: bool, sparse: bool
) -> Array:
    return np.asarray(weight[inside(indices, weight.shape[0])])


def masked_select(self: Array, mask: Array) -> Array:
    x, chosen = np.broadcast_arrays(self, mask)
    return x[chosen.astype(np.bool_)]


TABLE: tuple[Row, ...] = (
    (
        "DynamicSlice(Tensor self, Tensor? starts, Tensor? ends, Tensor axes) -> Tensor",
        dynamic_slice,
    ),
    ("Unsqueeze(Tensor? self, int[] axes) -> Tensor?", lambda self, axes: None),
    # TorchScript gives every argument, and a tensor's are five
    (
        "slice.t(List self, int? start, int? end, int step) -> t[]",
        lambda self, start, end, step: self[slice(start, end, step)],
    ),
    (
        "slice.Tensor(Tensor self, int dim=0, int? start=None, int? end=None, int step=1) -> Tensor",
        slice_,
    ),
    ("__getitem__.t(List list, int idx) -> t", lambda list, idx: np.asarray(list[idx])),
    # a list that stands flattened among the inputs
    ("__getitem__(Tensor[] list, int idx) -> Tensor", lambda list, idx: list[idx]),
    ("select.int(Tensor self, int dim, int index) -> Tensor", select),
    ("narrow(Tensor self, int dim, int start, int length) -> Tensor", narrow),
    ("flip(Tensor self, int[] dims) -> Tensor", flip),
    ("fliplr(Tensor self) -> Tensor", fliplr),
    ("flipud(Tensor self) -> Tensor", flipud),
    ("rot90(Tensor self, int k=1, int[] dims=[0,1]) -> Tensor", rot90),
    ("roll(Tensor self, int[1] shifts, int[1] dims=[]) -> Tensor", roll),
    ("unfold(Tensor self, int dimension, int size, int step) -> Tensor", unfold),
    ("diagonal(Tensor self, int offset=0, int dim1=0, int dim2=1) -> Tensor", diagonal),
    ("diag(Tensor self, int diagonal=0) -> Tensor", diag),
    ("diagflat(Tensor self, int offset=0) -> Tensor", diagflat),
    ("diag_embed(Tensor self, int offset=0, int dim1=-2, int dim2=-1) -> Tensor", diag_embed),
    ("trace(Tensor self) -> Tensor", trace),
    ("split.Tensor(Tensor self, int split_size, int dim=0) -> Tensor[]", split),
    ("split.sizes(Tensor self, int[] split_size, int dim=0) -> Tensor[]", split_sizes),
    ("split_with_sizes(Tensor self, int[] split_sizes, int dim=0) -> Tensor[]", split_with_sizes),
    ("chunk(Tensor self, int chunks, int dim=0) -> Tensor[]", chunk),
    ("unbind.int(Tensor self, int dim=0) -> Tensor[]", unbind),
    *(
        row
        for split in (hsplit, vsplit, dsplit)
        for row in (
            (f"{split.__name__}.int(Tensor self, int sections) -> Tensor[]", split),
            (f"{split.__name__}.array(Tensor self, int[] indices) -> Tensor[]", _at(split)),
        )
    ),
    (
        "tensor_split.tensor_indices_or_sections(Tensor self, Tensor tensor_indices_or_sections, "
        "int dim=0) -> Tensor[]",
        tensor_split_by,
    ),
    ("tensor_split.sections(Tensor self, int sections, int dim=0) -> Tensor[]", tensor_split),
    ("tensor_split.indices(Tensor self, int[] indices, int dim=0) -> Tensor[]", tensor_split_at),
    ("nonzero(Tensor self) -> Tensor", nonzero),
    ("argwhere(Tensor self) -> Tensor", nonzero),
    ("nonzero_numpy(Tensor self) -> Tensor[]", nonzero_numpy),
    ("where(Tensor condition) -> Tensor[]", where_true),
    ("index.Tensor(Tensor self, Tensor?[] indices) -> Tensor", index),
    ("index_select(Tensor self, int dim, Tensor index) -> Tensor", index_select),
    ("gather(Tensor self, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor", gather),
    ("take(Tensor self, Tensor index) -> Tensor", take),
    ("take_along_dim(Tensor self, Tensor indices, int? dim=None) -> Tensor", take_along_dim),
    (
        "embedding(Tensor weight, Tensor indices, SymInt padding_idx=-1, bool scale_grad_by_freq=False, bool sparse=False) -> Tensor",
        embedding,
    ),
    ("masked_select(Tensor self, Tensor mask) -> Tensor", masked_select),
    *borders.TABLE,
    *products.TABLE,
)
