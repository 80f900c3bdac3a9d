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


def _between(plane: Any, y: Any, x: Any, *, border: bool) -> Any:
    """Between four pixels, of all channels at once [channels, places].

    Args:
        plane: [channels, height, width].
        y: Rows of places, as fractions of pixels.
        x: Columns of places.
        border: Whether what lies less than a pixel outside is the border's, and else 0; or whether
            there are zeros all around the image.
    """
    height, width = plane.shape[-2:]
    there = (y >= -1) & (y <= height) & (x >= -1) & (x <= width)
    if border:
        y, x = np.clip(y, 0, height - 1), np.clip(x, 0, width - 1)
    y, x = np.where(there, y, 0), np.where(there, x, 0)
    top, left = np.floor(y).astype(int), np.floor(x).astype(int)
    total = np.zeros((plane.shape[0], len(y)))
    for i, j in ((0, 0), (0, 1), (1, 0), (1, 1)):
        row, column = top + i, left + j
        share = (1 - abs(y - row)) * (1 - abs(x - column))
        inside = there & (row >= 0) & (row < height) & (column >= 0) & (column < width)
        read = plane[:, np.clip(row, 0, height - 1), np.clip(column, 0, width - 1)]
        total += np.where(inside & (share != 0), read * share, 0)
    return total


def _regions(rois: Array, images: int, scale: float) -> list[tuple[int, list[float]]]:
    """The image of each region, and its left, top, right and bottom in pixels of the features."""
    found = []
    for image, *corners in wide(rois):
        if not 0 <= image < images:
            raise Unsuited(f"a region of image {image}")
        found.append((int(image), [corner * scale for corner in corners]))
    return found


def roi_align(
    input: Array,
    rois: Array,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    sampling_ratio: int,
    aligned: bool,
) -> Array:
    x, shift, bins = wide(input), 0.5 if aligned else 0.0, (pooled_height, pooled_width)
    y = np.zeros((len(rois), x.shape[1], *bins))
    for n, (image, corners) in enumerate(_regions(rois, len(x), spatial_scale)):
        left, top, right, bottom = (corner - shift for corner in corners)
        size = [bottom - top, right - left]
        if not aligned:
            size = [max(s, 1.0) for s in size]
        bin_size = [s / count for s, count in zip(size, bins, strict=True)]
        grid = [max(sampling_ratio if sampling_ratio > 0 else math.ceil(b), 0) for b in bin_size]
        if 0 in grid:
            continue
        rows, columns = (
            start + (np.arange(count * g) + 0.5) / g * b
            for start, count, g, b in zip((top, left), bins, grid, bin_size, strict=True)
        )
        places = np.meshgrid(rows, columns, indexing="ij")
        found = _between(x[image], *(p.ravel() for p in places), border=True)
        y[n] = found.reshape(-1, bins[0], grid[0], bins[1], grid[1]).mean((2, 4))
    return narrow(y, input)


def ps_roi_align(
    input: Array,
    rois: Array,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    sampling_ratio: int,
) -> tuple[Array, Array]:
    if sampling_ratio <= 0 and (wide(rois)[:, 3:] <= wide(rois)[:, 1:3]).any():
        raise Unsuited("a region without a sample, whose mean is none")
    bins = (pooled_height, pooled_width)
    channels = np.arange(input.shape[1], dtype=np.int32).reshape(-1, *bins)
    aligned = roi_align(
        input, rois, spatial_scale, pooled_height, pooled_width, sampling_ratio, True
    )
    own = np.einsum("ncijij->ncij", aligned.reshape(len(rois), len(channels), *bins, *bins))
    return own.copy(), np.broadcast_to(channels, own.shape)


def roi_pool(
    input: Array, rois: Array, spatial_scale: float, pooled_height: int, pooled_width: int
) -> tuple[Array, Array]:
    x, bins = wide(input), (pooled_height, pooled_width)
    y = np.zeros((len(rois), x.shape[1], *bins))
    which = np.full(y.shape, -1, np.int32)
    single = np.float32(spatial_scale)  # products of single precision decide which pixel it is
    for n, (image, *corners) in enumerate(np.asarray(rois, np.float32)):
        if not 0 <= image < len(x):
            raise Unsuited(f"a region of image {image}")
        # C++ rounds halves away from zero
        left, top, right, bottom = (
            int(math.copysign(math.floor(abs(c * single) + 0.5), c)) for c in corners
        )
        starts, sizes = (top, left), (max(bottom - top + 1, 1), max(right - left + 1, 1))
        for i, j in np.ndindex(*bins):
            spans = []
            for place, start, size, count, most in zip(
                (i, j), starts, sizes, bins, x.shape[2:], strict=True
            ):
                each = np.float32(size) / np.float32(count)
                low = math.floor(np.float32(place) * each) + start
                high = math.ceil(np.float32(place + 1) * each) + start
                spans.append(range(min(max(low, 0), most), min(max(high, 0), most)))
            if not all(len(span) for span in spans):
                continue
            plane = x[int(image)][:, spans[0].start : spans[0].stop, spans[1].start : spans[1].stop]
            best = plane.reshape(len(plane), -1).argmax(1)
            y[n, :, i, j] = plane.reshape(len(plane), -1).max(1)
            row, column = np.divmod(best, len(spans[1]))
            which[n, :, i, j] = (row + spans[0].start) * x.shape[3] + column + spans[1].start
    return narrow(y, input), which


def deform_conv2d(
    input: Array, weight: Array, offset: Array, mask: Array, bias: Array, **sizes: int
) -> Array:
    x, w, moved = wide(input), wide(weight), wide(offset)
    rows, columns = weight.shape[2:]
    out, groups, parts = weight.shape[0], sizes["groups"], sizes["offset_groups"]
    height, width = offset.shape[2:]
    for axis, length, size, count in zip(
        "hw", x.shape[2:], (rows, columns), (height, width), strict=True
    ):
        reach = sizes[f"dilation_{axis}"] * (size - 1) + 1
        if (length + 2 * sizes[f"pad_{axis}"] - reach) // sizes[f"stride_{axis}"] + 1 != count:
            raise Unsuited("more or fewer offsets than the convolution has places")
    moved = moved.reshape(len(x), parts, rows, columns, 2, height, width)
    shares = np.ones((len(x), parts, rows, columns, height, width))
    if sizes["use_mask"]:
        shares = wide(mask).reshape(shares.shape)
    each = x.shape[1] // parts
    r, c, i, j = np.indices((rows, columns, height, width))
    top = i * sizes["stride_h"] - sizes["pad_h"] + r * sizes["dilation_h"]
    left = j * sizes["stride_w"] - sizes["pad_w"] + c * sizes["dilation_w"]
    taken = np.zeros((len(x), x.shape[1], rows, columns, height, width))
    for n, g in np.ndindex(len(x), parts):
        y_of, x_of = top + moved[n, g, :, :, 0], left + moved[n, g, :, :, 1]
        channels = slice(g * each, (g + 1) * each)
        found = _between(x[n, channels], y_of.ravel(), x_of.ravel(), border=False)
        taken[n, channels] = found.reshape(each, *top.shape) * shares[n, g]
    split = taken.reshape(len(x), groups, -1, rows, columns, height, width)
    kernels = w.reshape(groups, out // groups, -1, rows, columns)
    y = np.einsum("ngcrsij,gocrs->ngoij", split, kernels).reshape(len(x), out, height, width)
    return narrow(y + wide(bias)[:, None, None], input)


def deform_conv2d_without_mask(
    input: Array, weight: Array, offset: Array, bias: Array, **sizes: int
) -> Array:
    """As torchvision had it before 0.9."""
    return deform_conv2d(input, weight, offset, offset, bias, **sizes, use_mask=0)


_ROI = (
    "Tensor input, Tensor rois, float spatial_scale, int pooled_height, int pooled_width, "
    "int sampling_ratio"
)
TABLE: tuple[Row, ...] = (
    ("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor", nms),
    (f"roi_align({_ROI}, bool aligned=False) -> Tensor", roi_align),
    (f"ps_roi_align({_ROI}) -> (Tensor, Tensor)", ps_roi_align),
    (
        "roi_pool(Tensor input, Tensor rois, float spatial_scale, int pooled_height, "
        "int pooled_width) -> (Tensor, Tensor)",
        roi_pool,
    ),
    (
        "deform_conv2d(Tensor input, Tensor weight, Tensor offset, Tensor bias, "
        "int stride_h, int stride_w, int pad_h, int pad_w, int dilation_h, int dilation_w, "
        "int groups, int offset_groups) -> Tensor",
        deform_conv2d_without_mask,
    ),
    (
        "deform_conv2d(Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias, "
        "int stride_h, int stride_w, int pad_h, int pad_w, int dilation_h, int dilation_w, "
        "int groups, int offset_groups, bool use_mask) -> Tensor",
        deform_conv2d,
    ),
)
