"""torchvision's operators on regions (torchvision.ops), box by box and pixel by pixel."""

# ruff: noqa: D103 - each function means what torchvision documents for its schema, in TABLE

from __future__ import annotations

import math
from typing import Any

import numpy as np

from surgeon.reference.errors import Unsuited
from surgeon.reference.operators.precision import Array, Row, narrow, wide


def nms(dets: Array, scores: Array, iou_threshold: float) -> Array:
    boxes = wide(dets).astype(np.float32)
    sides = boxes[:, 2:] - boxes[:, :2]
    if dets.ndim != 2 or (sides < 0).any():
        raise Unsuited("a box ends before it begins")
    areas = sides[:, 0] * sides[:, 1]
    kept: list[int] = []
    for i in np.argsort(-wide(scores), kind="stable"):
        better = boxes[kept]
        inner = np.clip(
            np.minimum(better[:, 2:], boxes[i, 2:]) - np.maximum(better[:, :2], boxes[i, :2]),
            0,
            None,
        ).prod(1)
        shares = inner / (areas[kept] + areas[i] - inner)
        if not (shares > np.float32(iou_threshold)).any():
            kept.append(int(i))
    return np.asarray(kept, np.int64)


def _pixel(plane: Any, y: float, x: float) -> Any:
    """Between four pixels; 0 for what lies a pixel or more outside (all channels at once)."""
    height, width = plane.shape[-2:]
    if y < -1 or y > height or x < -1 or x > width:
        return np.zeros(plane.shape[0])
    y, x = min(max(y, 0), height - 1), min(max(x, 0), width - 1)
    top, left = int(y), int(x)
    below, right = min(top + 1, height - 1), min(left + 1, width - 1)
    v, u = y - top, x - left
    upper = plane[:, top, left] * (1 - u) + plane[:, top, right] * u
    lower = plane[:, below, left] * (1 - u) + plane[:, below, right] * u
    return upper * (1 - v) + lower * v


def roi_align(
    input: Array,
    rois: Array,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    sampling_ratio: int,
    aligned: bool,
) -> Array:
    x, shift = wide(input), 0.5 if aligned else 0.0
    y = np.zeros((len(rois), x.shape[1], pooled_height, pooled_width))
    for n, (image, *corners) in enumerate(wide(rois)):
        if not 0 <= image < len(x):
            raise Unsuited(f"a region of image {image}")
        left, top, right, bottom = (c * spatial_scale - shift for c in corners)
        size = [bottom - top, right - left]
        if not aligned:
            size = [max(s, 1.0) for s in size]
        bins = [size[0] / pooled_height, size[1] / pooled_width]
        grid = [sampling_ratio if sampling_ratio > 0 else math.ceil(b) for b in bins]
        for i, j in np.ndindex(pooled_height, pooled_width):
            places = [
                (
                    top + (i + (p + 0.5) / grid[0]) * bins[0],
                    left + (j + (q + 0.5) / grid[1]) * bins[1],
                )
                for p in range(grid[0])
                for q in range(grid[1])
            ]
            total = sum((_pixel(x[int(image)], a, b) for a, b in places), np.zeros(x.shape[1]))
            y[n, :, i, j] = total / max(len(places), 1)
    return narrow(y, input)


def _zero_outside(plane: Any, y: float, x: float) -> Any:
    """Between four pixels, with zeros around the image."""
    top, left = math.floor(y), math.floor(x)
    total = np.zeros(plane.shape[0])
    for i, j in ((0, 0), (0, 1), (1, 0), (1, 1)):
        row, column = top + i, left + j
        if 0 <= row < plane.shape[1] and 0 <= column < plane.shape[2]:
            total = total + plane[:, row, column] * (1 - abs(y - row)) * (1 - abs(x - column))
    return total


def deform_conv2d(
    input: Array, weight: Array, offset: Array, mask: Array, bias: Array, **sizes: int
) -> Array:
    x, w, moved = wide(input), wide(weight), wide(offset)
    rows, columns = weight.shape[2:]
    out, groups, parts = weight.shape[0], sizes["groups"], sizes["offset_groups"]
    height, width = offset.shape[2:]
    moved = moved.reshape(len(x), parts, rows, columns, 2, height, width)
    shares = np.ones((len(x), parts, rows, columns, height, width))
    if sizes["use_mask"]:
        shares = wide(mask).reshape(shares.shape)
    each = x.shape[1] // parts
    taken = np.zeros((len(x), x.shape[1], rows, columns, height, width))
    for n, g, r, c, i, j in np.ndindex(len(x), parts, rows, columns, height, width):
        dy, dx = moved[n, g, r, c, :, i, j]
        place = (
            i * sizes["stride_h"] - sizes["pad_h"] + r * sizes["dilation_h"] + dy,
            j * sizes["stride_w"] - sizes["pad_w"] + c * sizes["dilation_w"] + dx,
        )
        channels = slice(g * each, (g + 1) * each)
        found = _zero_outside(x[n, channels], *place)
        taken[n, channels, r, c, i, j] = found * shares[n, g, r, c, i, j]
    split = taken.reshape(len(x), groups, -1, rows, columns, height, width)
    kernels = w.reshape(groups, out // groups, -1, rows, columns)
    y = np.einsum("ngcrsij,gocrs->ngoij", split, kernels).reshape(len(x), out, height, width)
    return narrow(y + wide(bias)[:, None, None], input)


_ROI = (
    "Tensor input, Tensor rois, float spatial_scale, int pooled_height, int pooled_width, "
    "int sampling_ratio, bool aligned"
)
TABLE: tuple[Row, ...] = (
    ("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor", nms),
    (f"roi_align({_ROI}) -> Tensor", roi_align),
    (
        "deform_conv2d(Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias, "
        "int stride_h, int stride_w, int pad_h, int pad_w, int dilation_h, int dilation_w, "
        "int groups, int offset_groups, bool use_mask) -> Tensor",
        deform_conv2d,
    ),
)
