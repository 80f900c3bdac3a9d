"""Adaptive pooling: torch.nn.AdaptiveAvgPool and AdaptiveMaxPool.

Bin i of O over a length I covers floor(i*I/O) to ceil((i+1)*I/O) (ATen/native/AdaptivePooling.h).
"""

# ruff: noqa: D103 - each function means what PyTorch documents for its schema, in TABLE

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from surgeon.reference.errors import Unsuited
from surgeon.reference.operators import windows as _pools
from surgeon.reference.operators.precision import Array, Row, is_float, narrow, wide


def bins(length: int, count: int) -> list[tuple[int, int]]:
    """First and last-plus-one position of every bin."""
    return [(i * length // count, -((-(i + 1) * length) // count)) for i in range(count)]


def _check(x: Array, output_size: list[int], axes: int) -> None:
    if x.ndim not in (axes + 1, axes + 2):
        raise Unsuited(f"its input has rank {x.ndim}, not {axes + 1} or {axes + 2}")
    if len(output_size) != axes:
        raise Unsuited(f"its output size has {len(output_size)} numbers, not {axes}")
    if min(output_size) < 0:
        raise Unsuited(f"its output size is {output_size}")
    if 0 in x.shape[1:]:
        raise Unsuited(f"its input is empty: {list(x.shape)}")


def _average(x: Array, output_size: list[int], axes: int) -> Array:
    _check(x, output_size, axes)
    if x.dtype == np.int64:
        return _average_of_integers(x, output_size, axes)
    y = wide(x)
    for axis, count in zip(range(x.ndim - axes, x.ndim), output_size, strict=True):
        if count == y.shape[axis]:
            continue
        moved = np.moveaxis(y, axis, 0)
        means = [moved[a:b].mean(axis=0) for a, b in bins(y.shape[axis], count)]
        y = np.moveaxis(np.array(means).reshape((count, *moved.shape[1:])), 0, axis)
    return narrow(y, x)


def _average_of_integers(x: Array, output_size: list[int], axes: int) -> Array:
    """Releases before 2.2 had it: what a quotient leaves over is dropped, as C++ does."""
    y = np.empty((*x.shape[:-axes], *output_size), np.int64)
    windows = [bins(n, count) for n, count in zip(x.shape[-axes:], output_size, strict=True)]
    for at in itertools.product(*(range(count) for count in output_size)):
        box = x[_trailing(tuple(slice(*windows[axis][i]) for axis, i in enumerate(at)))]
        total = box.sum(axis=tuple(range(-axes, 0)))
        count = int(np.prod(box.shape[-axes:]))
        y[_trailing(at)] = np.sign(total) * (np.abs(total) // count)
    return y


def _maximum(x: Array, output_size: list[int], axes: int) -> tuple[Array, Array]:
    _check(x, output_size, axes)
    if not is_float(x):
        raise Unsuited(f"its input is {x.dtype.name}")
    lead, plane = x.shape[:-axes], x.shape[-axes:]
    places = np.arange(int(np.prod(plane)), dtype=np.int64).reshape(plane)
    values = np.empty((*lead, *output_size), x.dtype)
    indices = np.empty((*lead, *output_size), np.int64)
    windows = [bins(n, count) for n, count in zip(plane, output_size, strict=True)]
    for at in itertools.product(*(range(count) for count in output_size)):
        box = tuple(slice(*windows[axis][i]) for axis, i in enumerate(at))
        window = x[_trailing(box)].reshape(*lead, -1)
        best = _last_nan_or_first_maximum(window)
        values[_trailing(at)] = np.take_along_axis(window, best[..., None], -1)[..., 0]
        indices[_trailing(at)] = places[box].reshape(-1)[best]
    return values, indices


def _trailing(index: tuple[Any, ...]) -> tuple[Any, ...]:
    return (..., *index)


def _last_nan_or_first_maximum(window: Array) -> Array:
    """PyTorch walks a window with `value > best or isnan(value)`."""
    nan = np.isnan(window)
    best = np.argmax(window, axis=-1)
    last = window.shape[-1] - 1 - np.argmax(nan[..., ::-1], axis=-1)
    chosen: Array = np.where(nan.any(axis=-1), last, best)
    return chosen


def adaptive_avg_pool1d(self: Array, output_size: list[int]) -> Array:
    return _average(self, output_size, 1)


def adaptive_avg_pool2d(self: Array, output_size: list[int]) -> Array:
    return _average(self, output_size, 2)


def adaptive_avg_pool3d(self: Array, output_size: list[int]) -> Array:
    return _average(self, output_size, 3)


def adaptive_max_pool1d(self: Array, output_size: list[int]) -> tuple[Array, Array]:
    return _maximum(self, output_size, 1)


def adaptive_max_pool2d(self: Array, output_size: list[int]) -> tuple[Array, Array]:
    return _maximum(self, output_size, 2)


def adaptive_max_pool3d(self: Array, output_size: list[int]) -> tuple[Array, Array]:
    return _maximum(self, output_size, 3)


TABLE: tuple[Row, ...] = (
    ("adaptive_avg_pool1d(Tensor self, int[1] output_size) -> Tensor", adaptive_avg_pool1d),
    ("adaptive_avg_pool2d(Tensor self, SymInt[2] output_size) -> Tensor", adaptive_avg_pool2d),
    ("_adaptive_avg_pool2d(Tensor self, SymInt[2] output_size) -> Tensor", adaptive_avg_pool2d),
    ("adaptive_avg_pool3d(Tensor self, SymInt[3] output_size) -> Tensor", adaptive_avg_pool3d),
    ("_adaptive_avg_pool3d(Tensor self, SymInt[3] output_size) -> Tensor", adaptive_avg_pool3d),
    (
        "adaptive_max_pool1d(Tensor self, int[1] output_size) -> (Tensor, Tensor)",
        adaptive_max_pool1d,
    ),
    (
        "adaptive_max_pool2d(Tensor self, int[2] output_size) -> (Tensor out, Tensor indices)",
        adaptive_max_pool2d,
    ),
    (
        "adaptive_max_pool3d(Tensor self, int[3] output_size) -> (Tensor out, Tensor indices)",
        adaptive_max_pool3d,
    ),
    *_pools.TABLE,
)
