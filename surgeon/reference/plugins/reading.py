"""Plugins that read values at places which are computed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surgeon.reference.errors import Unsuited
from surgeon.reference.operators import grids
from surgeon.reference.operators.precision import narrow, wide

Array = NDArray[Any]
Said = Mapping[str, Any]


def grid_sampler(values: list[Any], said: Said) -> Array:
    """mmcv's, as torch.nn.functional.grid_sample."""
    mode, padding = said.get("interpolation_mode", 0), said.get("padding_mode", 0)
    found: Array = grids.grid_sampler(
        values[0], values[1], mode, padding, bool(said.get("align_corners", 0))
    )
    return found


def gather_topk(values: list[Any], said: Said) -> Array:
    """mmdeploy's `GatherTopk`: data [A..., G, C...] at indices [A..., K]."""
    data, indices = np.asarray(values[0]), np.asarray(values[1])
    shape = indices.shape[:-1]
    if data.shape[: len(shape)] != shape:
        raise Unsuited("indices and data have different sizes in front")
    found = np.zeros((*indices.shape, *data.shape[indices.ndim :]), data.dtype)
    for place in np.ndindex(*shape):
        found[place] = data[place][indices[place]]
    return found


def deformable_attention(values: list[Any], said: Said) -> Array:
    """Deformable DETR's, level by level and corner by corner.

    A point is read between four pixels of its level, of which those outside are 0; 0 and 1 are the
    image's borders.
    """
    value, shapes, begins, places, weights = values
    x, places, weights = wide(value), wide(places), wide(weights)
    images, length, heads, depth = x.shape
    ends = [int(b) + int(h) * int(w) for b, (h, w) in zip(begins, shapes, strict=True)]
    if (np.asarray(shapes) < 1).any() or (np.asarray(begins) < 0).any() or max(ends) > length:
        raise Unsuited("its levels are no parts of the value")
    found = np.zeros((*places.shape[:3], depth))
    n, _, h, _ = np.ogrid[:images, : places.shape[1], :heads, : places.shape[4]]
    for level, ((tall, broad), begin) in enumerate(zip(shapes, begins, strict=True)):
        column = places[:, :, :, level, :, 0] * int(broad) - 0.5
        row = places[:, :, :, level, :, 1] * int(tall) - 0.5
        top, left = np.floor(row).astype(int), np.floor(column).astype(int)
        for i, j in ((top, left), (top, left + 1), (top + 1, left), (top + 1, left + 1)):
            there = (i >= 0) & (i < tall) & (j >= 0) & (j < broad)
            share = there * (1 - abs(row - i)) * (1 - abs(column - j))
            pixel = x[n, np.where(there, int(begin) + i * int(broad) + j, 0), h]
            found += ((weights[:, :, :, level] * share)[..., None] * pixel).sum(3)
    return narrow(found, value)


def side_by_side(values: list[Any], said: Said) -> Array:
    """mmcv's gives the heads of a query in one row."""
    found = deformable_attention(values, said)
    return found.reshape(*found.shape[:2], -1)


TABLE: Mapping[str, Callable[[list[Any], dict[str, Any]], Any]] = {
    "grid_sampler": grid_sampler,
    "GatherTopk": gather_topk,
    "MultiscaleDeformableAttnPlugin_TRT": deformable_attention,
    "MMCVMultiScaleDeformableAttention": side_by_side,
    "MMCVMultiScaleDeformableAttn": side_by_side,
    "MMCVMultiScaleDeformAttn": side_by_side,
}
