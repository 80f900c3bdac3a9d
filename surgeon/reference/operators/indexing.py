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


def _along(array: Array, axis: int, index: Any) -> Any:
    return (slice(None),) * axis_of(axis, array.ndim) + (index,)


def slice_(self: Array, dim: int, start: int | None, end: int | None, step: int) -> Array:
    return np.asarray(self[_along(self, dim, slice(start, end, step))])


def select(self: Array, dim: int, index: int) -> Array:
    length = self.shape[axis_of(dim, self.ndim)]
    if not -length <= index < length:
        raise Unsuited(f"index {index} of {length} elements")
    return np.asarray(self[_along(self, dim, index)])


def narrow(self: Array, dim: int, start: int, length: int) -> Array:
    size = self.shape[axis_of(dim, self.ndim)]
    begin = start + size if start < 0 else start
    if begin < 0 or begin + length > size:
        raise Unsuited(f"elements {begin} to {begin + length} of {size}")
    return np.asarray(self[_along(self, dim, slice(begin, begin + length))])


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
    return np.array(windows[_along(self, axis, slice(None, None, step))])


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
    return [self[_along(self, axis, slice(a, b))] for a, b in pairwise(bounds)]


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
    return np.asarray(self[_keys(indices)])


def _keys(indices: list[Array | None]) -> tuple[Any, ...]:
    keys: list[Any] = []
    for key in indices:
        if key is None:
            keys.append(slice(None))
        else:
            keys.append(key.astype(np.bool_) if key.dtype == np.uint8 else key)
    return tuple(keys)


def index_put(self: Array, indices: list[Array | None], values: Array, accumulate: bool) -> Array:
    out = self.copy()
    if accumulate:
        np.add.at(out, _keys(indices), values.astype(self.dtype))
    else:
        out[_keys(indices)] = values
    return out


def index_select(self: Array, dim: int, index: Array) -> Array:
    if self.ndim == 0:
        return self
    axis = axis_of(dim, self.ndim)
    return np.take(self, _inside(index.reshape(-1), self.shape[axis]), axis)


def index_copy(self: Array, dim: int, index: Array, source: Array) -> Array:
    out = self.copy()
    _inside(index, out.shape[axis_of(dim, out.ndim)] if out.ndim else 1)
    out[_along(out, dim, index.reshape(-1))] = source
    return out


def index_add(self: Array, dim: int, index: Array, source: Array, alpha: Any) -> Array:
    out = self.copy()
    _inside(index, out.shape[axis_of(dim, out.ndim)] if out.ndim else 1)
    np.add.at(out, _along(out, dim, index), (source * alpha).astype(self.dtype))
    return out


def index_fill(self: Array, dim: int, index: Array, value: Any) -> Array:
    out = self.copy()
    out[_along(out, dim, index)] = value
    return out


def gather(self: Array, dim: int, index: Array, sparse_grad: bool) -> Array:
    if self.ndim == 0:
        return self
    return np.asarray(self[_places(self, index, axis_of(dim, self.ndim))])


def _places(x: Array, index: Array, axis: int) -> tuple[Any, ...]:
    where: list[Any] = list(np.indices(index.shape))
    where[axis] = _inside(index, x.shape[axis] if x.ndim else 1)
    return tuple(where)


def _inside(index: Array, length: int) -> Array:
    """The index, which may not count from the end: PyTorch refuses that in most operators."""
    if index.size and (index.min() < 0 or index.max() >= length):
        raise Unsuited(f"an index outside {length} elements")
    return index


def scatter(self: Array, dim: int, index: Array, src: Array) -> Array:
    out = self.copy()
    out[_places(self, index, axis_of(dim, self.ndim))] = src[tuple(map(slice, index.shape))]
    return out


def scatter_value(self: Array, dim: int, index: Array, value: Any) -> Array:
    out = self.copy()
    out[_places(self, index, axis_of(dim, self.ndim))] = value
    return out


def scatter_with(self: Array, dim: int, index: Array, src: Array, reduce: str) -> Array:
    out = self.copy()
    function: Any = {"add": np.add, "multiply": np.multiply}[reduce]
    function.at(
        out, _places(self, index, axis_of(dim, self.ndim)), src[tuple(map(slice, index.shape))]
    )
    return out


def scatter_add(self: Array, dim: int, index: Array, src: Array) -> Array:
    return scatter_with(self, dim, index, src, "add")


def scatter_reduce(
    self: Array, dim: int, index: Array, src: Array, reduce: str, include_self: bool
) -> Array:
    axis = axis_of(dim, self.ndim)
    _inside(index, self.shape[axis] if self.ndim else 1)
    out = self.astype(np.float64) if self.dtype.kind == "f" else self.copy()
    groups: dict[tuple[int, ...], list[Any]] = {}
    for place in np.ndindex(index.shape):
        to = list(place)
        to[axis] = int(index[place])
        groups.setdefault(tuple(to), []).append(src[place])
    for at, values in groups.items():
        group = np.asarray([*([out[at]] if include_self else []), *values])
        if reduce == "mean":
            total = group.sum()
            out[at] = total / len(group) if self.dtype.kind == "f" else total // len(group)
        else:
            kinds: dict[str, Any] = {"sum": np.sum, "prod": np.prod, "amax": np.max, "amin": np.min}
            out[at] = kinds[reduce](group)
    return out.astype(self.dtype)


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


def put(self: Array, index: Array, source: Array, accumulate: bool) -> Array:
    out = self.reshape(-1).copy()
    if accumulate:
        np.add.at(out, index.reshape(-1), source.reshape(-1))
    else:
        out[index.reshape(-1)] = source.reshape(-1)
    return out.reshape(self.shape)


def embedding(
    weight: Array, indices: Array, padding_idx: int, scale_grad_by_freq: bool, sparse: bool
) -> Array:
    return np.asarray(weight[_inside(indices, weight.shape[0])])


def masked_select(self: Array, mask: Array) -> Array:
    x, chosen = np.broadcast_arrays(self, mask)
    return x[chosen.astype(np.bool_)]


def select_scatter(self: Array, src: Array, dim: int, index: int) -> Array:
    out = self.copy()
    out[_along(out, dim, index)] = src
    return out


def slice_scatter(
    self: Array, src: Array, dim: int, start: int | None, end: int | None, step: int
) -> Array:
    out = self.copy()
    out[_along(out, dim, slice(start, end, step))] = src
    return out


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
    return np.sort(self, 0)


def topk(self: Array, k: int, dim: int, largest: bool, sorted: bool) -> tuple[Array, Array]:
    values, places = sort(self, dim, largest)
    if self.ndim == 0:
        return values, places
    if k > self.shape[dim]:
        raise Unsuited(f"{k} of {self.shape[dim]} elements")
    part = _along(self, dim, slice(0, k))
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
    if dim is not None and self.ndim != 1:
        raise Unsuited("it compares slices")
    flat = self.reshape(-1)
    begins = np.concatenate([np.ones(min(flat.size, 1), np.bool_), flat[1:] != flat[:-1]])
    nothing = np.zeros(0, np.int64)
    inverse = (np.cumsum(begins) - 1).reshape(self.shape) if return_inverse else nothing
    counts = np.diff([*np.flatnonzero(begins), flat.size]) if return_counts else nothing
    return flat[begins], inverse, counts.astype(np.int64)


def repeat_each(repeats: Array, output_size: int | None) -> Array:
    return np.repeat(np.arange(repeats.size), repeats)


def repeat_interleave(
    self: Array, repeats: Array, dim: int | None, output_size: int | None
) -> Array:
    return np.repeat(self, repeats.reshape(-1), dim)


def repeat_interleave_int(
    self: Array, repeats: int, dim: int | None, output_size: int | None
) -> Array:
    return np.repeat(self, repeats, dim)


TABLE: tuple[Row, ...] = (
    (
        "slice.Tensor(Tensor self, int dim=0, int? start=None, int? end=None, int step=1) -> Tensor",
        slice_,
    ),
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
    ("tensor_split.sections(Tensor self, int sections, int dim=0) -> Tensor[]", tensor_split),
    ("tensor_split.indices(Tensor self, int[] indices, int dim=0) -> Tensor[]", tensor_split_at),
    ("nonzero(Tensor self) -> Tensor", nonzero),
    ("argwhere(Tensor self) -> Tensor", nonzero),
    ("nonzero_numpy(Tensor self) -> Tensor[]", nonzero_numpy),
    ("where(Tensor condition) -> Tensor[]", where_true),
    ("index.Tensor(Tensor self, Tensor?[] indices) -> Tensor", index),
    (
        "index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor",
        index_put,
    ),
    ("index_select(Tensor self, int dim, Tensor index) -> Tensor", index_select),
    ("index_copy(Tensor self, int dim, Tensor index, Tensor source) -> Tensor", index_copy),
    (
        "index_add(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor",
        index_add,
    ),
    (
        "index_fill.int_Scalar(Tensor self, int dim, Tensor index, Scalar value) -> Tensor",
        index_fill,
    ),
    (
        "index_fill.int_Tensor(Tensor self, int dim, Tensor index, Tensor value) -> Tensor",
        index_fill,
    ),
    ("gather(Tensor self, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor", gather),
    ("scatter.value(Tensor self, int dim, Tensor index, Scalar value) -> Tensor", scatter_value),
    ("scatter.src(Tensor self, int dim, Tensor index, Tensor src) -> Tensor", scatter),
    (
        "scatter.reduce(Tensor self, int dim, Tensor index, Tensor src, *, str reduce) -> Tensor",
        scatter_with,
    ),
    ("scatter_add(Tensor self, int dim, Tensor index, Tensor src) -> Tensor", scatter_add),
    (
        "scatter_reduce.two(Tensor self, int dim, Tensor index, Tensor src, str reduce, *, bool include_self=True) -> Tensor",
        scatter_reduce,
    ),
    ("take(Tensor self, Tensor index) -> Tensor", take),
    ("take_along_dim(Tensor self, Tensor indices, int? dim=None) -> Tensor", take_along_dim),
    ("put(Tensor self, Tensor index, Tensor source, bool accumulate=False) -> Tensor", put),
    (
        "embedding(Tensor weight, Tensor indices, SymInt padding_idx=-1, bool scale_grad_by_freq=False, bool sparse=False) -> Tensor",
        embedding,
    ),
    ("masked_select(Tensor self, Tensor mask) -> Tensor", masked_select),
    ("select_scatter(Tensor self, Tensor src, int dim, SymInt index) -> Tensor", select_scatter),
    (
        "slice_scatter(Tensor self, Tensor src, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> Tensor",
        slice_scatter,
    ),
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
    *borders.TABLE,
    *products.TABLE,
)
