"""Segments of an axis (torch.segment_reduce), each reduced by itself."""

# ruff: noqa: D103 - each function means what PyTorch documents for its schema, in TABLE

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from surgeon.reference.errors import Unsuited
from surgeon.reference.operators.precision import Array, Row, narrow, wide

_OF_NOTHING: Mapping[str, float] = {"max": -np.inf, "min": np.inf, "sum": 0, "mean": 0, "prod": 1}
_REDUCERS: Mapping[str, Callable[..., Any]] = {
    "max": np.max,
    "min": np.min,
    "sum": np.sum,
    "mean": np.sum,
    "prod": np.prod,
}


def segment_reduce(
    data: Array,
    reduce: str,
    lengths: Array | None,
    indices: Array | None,
    offsets: Array | None,
    axis: int,
    unsafe: bool,
    initial: float | None,
) -> Array:
    if lengths is not None:
        borders = np.cumsum(lengths, -1)
        borders = np.concatenate([np.zeros_like(borders[..., :1]), borders], -1)
    elif offsets is not None:
        borders = offsets
    else:
        raise Unsuited("nothing says where its segments end")
    axis %= data.ndim
    x, lots = wide(data), borders.shape[:-1]
    if x.shape[:axis] != lots or borders.shape[-1] == 0:
        raise Unsuited(f"its data has the shape {list(x.shape)}, its borders {list(borders.shape)}")
    count = borders.shape[-1] - 1
    y = np.empty((*lots, count, *x.shape[axis + 1 :]))
    for place in np.ndindex(*lots):
        for index in range(count):
            first, end = int(borders[place][index]), int(borders[place][index + 1])
            if not 0 <= first <= end <= x.shape[axis]:
                raise Unsuited(f"a segment is [{first}, {end}) of {x.shape[axis]}")
            y[(*place, index)] = _one(x[place][first:end], reduce, initial)
    return narrow(y, data)


def _one(rows: Any, reduce: str, initial: float | None) -> Any:
    first = _OF_NOTHING[reduce] if initial is None else initial
    total = np.full(rows.shape[1:], first)
    if len(rows):
        total = _REDUCERS[reduce](np.concatenate([total[None], rows]), axis=0)
    if reduce != "mean":
        return total
    if not len(rows):
        return total if initial is not None else total * np.nan
    return total / len(rows)


TABLE: tuple[Row, ...] = (
    (
        "segment_reduce(Tensor data, str reduce, *, Tensor? lengths=None, Tensor? indices=None, "
        "Tensor? offsets=None, int axis=0, bool unsafe=False, Scalar? initial=None) -> Tensor",
        segment_reduce,
    ),
)
