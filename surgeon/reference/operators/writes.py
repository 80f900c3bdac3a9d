"""PyTorch operators: writing at indices into a copy."""

# ruff: noqa: D103, E501 - each function means what PyTorch documents for its schema, in TABLE

from __future__ import annotations

import math
from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from surgeon.reference.errors import Unsuited
from surgeon.reference.operators.indexing import along, inside, keys_of, places
from surgeon.reference.operators.precision import Array, Row, is_float
from surgeon.reference.operators.shapes import axis_of


def index_put(self: Array, indices: list[Array | None], values: Array, accumulate: bool) -> Array:
    out = self.copy()
    lines = _apart(self, _lines(self, indices), values) if len(indices) > 1 else indices
    keys = keys_of([_unfolded(self, index) for index in lines])
    values = _at_places(values, out[keys].shape)
    if accumulate:
        np.add.at(out, keys, values.astype(self.dtype))
    else:
        out[keys] = values
    return out


def index_put_impl(
    self: Array, indices: list[Array | None], values: Array, accumulate: bool, unsafe: bool
) -> Array:
    return index_put(self, indices, values, accumulate)


def _at_places(values: Array, places: tuple[int, ...]) -> Array:
    """The values; as PyTorch 1.5 to 1.10 write `x[:, 2] = v`, they lack axes of one place.

    And 1.5 to 1.8 flatten indices of several axes, but not the values.
    """
    try:
        return np.broadcast_to(values, places)
    except ValueError:
        longer = [[n for n in shape if n != 1] for shape in (values.shape, places)]
        flat = values.ndim > len(places) and values.size == math.prod(places)
        return values.reshape(places) if longer[0] == longer[1] or flat else values


def _unfolded(self: Array, index: Array | None) -> Array | None:
    """The index; as PyTorch 1.5 to 1.8 write it, a mask of several axes is one line of them all."""
    if index is None or index.dtype not in (np.bool_, np.uint8) or index.ndim != 1:
        return index
    if not self.ndim or index.size == self.shape[0]:
        return index
    sizes = np.cumprod(self.shape).tolist()
    if index.size not in sizes:
        return index
    return index.reshape(self.shape[: sizes.index(index.size) + 1])


def _lines(self: Array, indices: list[Array | None]) -> list[Array | None]:
    """The indices; as PyTorch from 1.9 on writes them, a mask beside others has axes of 1 behind.

    Where the data have such an axis, it may be what the mask covers. Where it stands beside a slice
    of several columns, it says the rows, each of which has all of these.
    """
    told: list[Array | None] = []
    for at, index in enumerate(indices):
        mask = index is not None and index.dtype in (np.bool_, np.uint8)
        lined = index is not None and mask and index.ndim > 1 and index.size == len(index)
        if index is not None and lined and self.shape[at + 1 : at + 2] != (1,):
            alone = all(i is None or i is index or i.size == 1 for i in indices)
            rows = np.flatnonzero(index)
            index = index.reshape(-1) if alone else rows.reshape(-1, *index.shape[1:])
        told.append(index)
    return told


def _apart(self: Array, indices: list[Array | None], values: Array) -> list[Array | None]:
    """The indices; as PyTorch 1.5 to 1.8 write them, lines of what broadcast to the values' axes.

    Raises:
        Unsuited: A line is as long as several of them.
    """
    given = [(at, index) for at, index in enumerate(indices) if index is not None]
    room = values.ndim - self.ndim + len(given)
    first = given[0][0] if given else 0
    lines = all(i.ndim == 1 and i.dtype.kind == "i" for _, i in given)
    joined = given and given[-1][0] - first == len(given) - 1
    if not lines or not joined or room < 2 or len({i.size for _, i in given} - {1}) < 2:
        return indices
    axes, told = values.shape[first : first + room], list(indices)
    for at, index in given:
        alike = [axis for axis, size in enumerate(axes) if size == index.size]
        if index.size == math.prod(axes):
            told[at] = index.reshape(axes)
        elif index.size != 1 and len(alike) != 1:
            raise Unsuited("its indices do not say which of them belong together")
        elif index.size != 1:
            told[at] = np.expand_dims(index, tuple(a for a in range(room) if a != alike[0]))
    return told


def _lined(function: Callable[..., Array]) -> Callable[..., Array]:
    """What has no axis counts as a line of one element."""

    @wraps(function)
    def run(self: Array, *rest: Any, **named: Any) -> Array:
        if self.ndim:
            return np.asarray(function(self, *rest, **named))
        lines = [np.atleast_1d(v) if isinstance(v, np.ndarray) else v for v in rest]
        of = {k: np.atleast_1d(v) if isinstance(v, np.ndarray) else v for k, v in named.items()}
        return np.asarray(function(self.reshape(1), *lines, **of)).reshape(())

    return run


def _one_for_each(self: Array, dim: int, index: Array, source: Array) -> None:
    """The source holds as much for each index as goes there; nothing broadcasts."""
    wanted = list(self.shape)
    if wanted:
        wanted[axis_of(dim, self.ndim)] = index.size
    if source.ndim and list(source.shape) != wanted:
        raise Unsuited(f"a source of shape {list(source.shape)} for {wanted}")


@_lined
def index_copy(self: Array, dim: int, index: Array, source: Array) -> Array:
    out = self.copy()
    inside(index, out.shape[axis_of(dim, out.ndim)] if out.ndim else 1)
    _one_for_each(self, dim, index, source)
    out[along(out, dim, index.reshape(-1))] = source
    return out


@_lined
def index_add(self: Array, dim: int, index: Array, source: Array, alpha: Any) -> Array:
    out = self.copy()
    inside(index, out.shape[axis_of(dim, out.ndim)] if out.ndim else 1)
    _one_for_each(self, dim, index, source)
    np.add.at(
        out,
        along(out, dim, index),
        (source * np.asarray(alpha).astype(self.dtype)).astype(self.dtype),
    )
    return out


@_lined
def index_fill(self: Array, dim: int, index: Array, value: Any) -> Array:
    out = self.copy()
    out[along(out, dim, index)] = value
    return out


def _written(index: Array, src: Array) -> Array:
    """The part of `src` that an index writes; PyTorch wants one that is no larger."""
    if any(a > b for a, b in zip(index.shape, src.shape, strict=True)):
        raise Unsuited(f"an index of shape {list(index.shape)} for {list(src.shape)}")
    return src[tuple(map(slice, index.shape))]


@_lined
def scatter(self: Array, dim: int, index: Array, src: Array) -> Array:
    out = self.copy()
    out[places(self, index, axis_of(dim, self.ndim))] = _written(index, src)
    return out


@_lined
def scatter_value(self: Array, dim: int, index: Array, value: Any) -> Array:
    out = self.copy()
    out[places(self, index, axis_of(dim, self.ndim))] = value
    return out


@_lined
def scatter_with(self: Array, dim: int, index: Array, src: Array, reduce: str) -> Array:
    out = self.copy()
    function: Any = {"add": np.add, "multiply": np.multiply}[reduce]
    function.at(out, places(self, index, axis_of(dim, self.ndim)), _written(index, src))
    return out


@_lined
def scatter_value_with(self: Array, dim: int, index: Array, value: Any, reduce: str) -> Array:
    return scatter_with(self, dim, index, np.full(index.shape, value, self.dtype), reduce)


@_lined
def scatter_add(self: Array, dim: int, index: Array, src: Array) -> Array:
    return scatter_with(self, dim, index, src, "add")


@_lined
def scatter_reduce(
    self: Array, dim: int, index: Array, src: Array, reduce: str, include_self: bool
) -> Array:
    axis = axis_of(dim, self.ndim)
    inside(index, self.shape[axis] if self.ndim else 1)
    out = self.astype(np.float64) if is_float(self) else self.copy()
    groups: dict[tuple[int, ...], list[Any]] = {}
    for place in np.ndindex(index.shape):
        to = list(place)
        to[axis] = int(index[place])
        groups.setdefault(tuple(to), []).append(src[place])
    for at, values in groups.items():
        group = np.asarray([*([out[at]] if include_self else []), *values])
        if reduce == "mean" and is_float(self):
            out[at] = group.mean()
        elif reduce == "mean":
            count = np.asarray(len(group)).astype(out.dtype)
            if count <= 0:
                raise Unsuited(f"{len(group)} are more than {out.dtype.name} counts")
            out[at] = group.sum(dtype=out.dtype) // count  # what is added up wraps
        else:
            kinds: dict[str, Any] = {"sum": np.sum, "prod": np.prod, "amax": np.max, "amin": np.min}
            out[at] = kinds[reduce](group).astype(out.dtype)
    return out.astype(self.dtype)


def put(self: Array, index: Array, source: Array, accumulate: bool) -> Array:
    out = self.reshape(-1).copy()
    if source.size != index.size:
        raise Unsuited(f"{source.size} values for {index.size} places")
    if accumulate:
        np.add.at(out, index.reshape(-1), source.reshape(-1))
    else:
        out[index.reshape(-1)] = source.reshape(-1)
    return out.reshape(self.shape)


def select_scatter(self: Array, src: Array, dim: int, index: int) -> Array:
    out = self.copy()
    place = along(out, dim, index)
    if out[place].shape != src.shape:
        raise Unsuited(f"a part of shape {list(out[place].shape)} for {list(src.shape)}")
    out[place] = src
    return out


def slice_scatter(
    self: Array, src: Array, dim: int, start: int | None, end: int | None, step: int
) -> Array:
    out = self.copy()
    place = along(out, dim, slice(start, end, step))
    if out[place].shape != src.shape:
        raise Unsuited(f"a part of shape {list(out[place].shape)} for {list(src.shape)}")
    out[place] = src
    return out


@_lined
def index_reduce(
    self: Array, dim: int, index: Array, source: Array, reduce: str, include_self: bool
) -> Array:
    """Line by line: those of the source that the index sends to one place, with its own."""
    kinds: dict[str, Any] = {"prod": np.prod, "amax": np.max, "amin": np.min, "mean": np.mean}
    if not is_float(self) and reduce == "mean":
        raise Unsuited("a mean of integers")
    _one_for_each(self, dim, index, source)
    out = np.moveaxis(self.copy(), dim, 0)
    lines = np.moveaxis(source, dim, 0)
    for place in np.unique(index):
        own = [out[place]] if include_self else []
        out[place] = kinds[reduce](np.stack([*own, *lines[index == place]]), axis=0)
    return np.moveaxis(out, 0, dim)


TABLE: tuple[Row, ...] = (
    (
        "index_reduce(Tensor self, int dim, Tensor index, Tensor source, str reduce, *, "
        "bool include_self=True) -> Tensor",
        index_reduce,
    ),
    (
        "index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor",
        index_put,
    ),
    (
        "_index_put_impl(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False, "
        "bool unsafe=False) -> Tensor",
        index_put_impl,
    ),
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
    ("scatter.value(Tensor self, int dim, Tensor index, Scalar value) -> Tensor", scatter_value),
    ("scatter.src(Tensor self, int dim, Tensor index, Tensor src) -> Tensor", scatter),
    (
        "scatter.reduce(Tensor self, int dim, Tensor index, Tensor src, *, str reduce) -> Tensor",
        scatter_with,
    ),
    (
        "scatter.value_reduce(Tensor self, int dim, Tensor index, Scalar value, *, str reduce)"
        " -> Tensor",
        scatter_value_with,
    ),
    ("scatter_add(Tensor self, int dim, Tensor index, Tensor src) -> Tensor", scatter_add),
    (
        "scatter_reduce.two(Tensor self, int dim, Tensor index, Tensor src, str reduce, *, bool include_self=True) -> Tensor",
        scatter_reduce,
    ),
    ("put(Tensor self, Tensor index, Tensor source, bool accumulate=False) -> Tensor", put),
    ("select_scatter(Tensor self, Tensor src, int dim, SymInt index) -> Tensor", select_scatter),
    (
        "slice_scatter(Tensor self, Tensor src, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> Tensor",
        slice_scatter,
    ),
)
