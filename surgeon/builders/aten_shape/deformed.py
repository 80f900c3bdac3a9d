"""torchvision's deformable convolution: DeformConv, or samples, a channel for each tap."""

from __future__ import annotations

import numpy as np
import onnx_graphsurgeon as gs

from surgeon.builders.aten_nn.grids import sampled
from surgeon.builders.aten_shape.call import TYPE, Call, Size
from surgeon.facts.kinds import HALVES
from surgeon.rewrite import Refused

_FIRST_OPSET = 19  # of DeformConv


def deform_conv2d(c: Call) -> gs.Tensor:
    """`torchvision.deform_conv2d`: each tap of the kernel reads at a place of its own."""
    weight, groups = c.tensor("weight"), c.integer("groups")
    shape = c.shape(weight)
    kernel = [d for d in (shape or ())[2:] if isinstance(d, int)]
    if shape is None or len(kernel) != 2:
        raise Refused("the size of its kernel is known at run time only")
    if c.opset < _FIRST_OPSET:
        if not isinstance(shape[1], int):
            raise Refused("the number of its channels is known at run time only")
        return _of_samples(c, shape[1] * groups, kernel)
    mask = [c.tensor("mask")] if _is_masked(c) else []
    pads = [c.integer(n) for n in ("pad_h", "pad_w")]
    y: gs.Tensor = c.op(
        "DeformConv",
        c.tensor("input"),
        weight,
        c.tensor("offset"),
        c.args.optional("bias"),
        *mask,
        kernel_shape=kernel,
        strides=[c.integer(n) for n in ("stride_h", "stride_w")],
        pads=pads * 2,
        dilations=[c.integer(n) for n in ("dilation_h", "dilation_w")],
        group=groups,
        offset_group=c.integer("offset_groups"),
    )
    return y


def _is_masked(c: Call) -> bool:
    """Whether samples are weighed; torchvision before 0.9 knew no mask."""
    return c.args.schema.takes("use_mask") and bool(c.value("use_mask"))


def _of_samples(c: Call, channels: int, kernel: list[int]) -> gs.Tensor:
    """A grid of all taps is sampled in the image, and a 1x1 convolution sums over taps.

    Offset groups are images of their own meanwhile, as each has its own grid.
    """
    x, offset, weight = (c.tensor(n) for n in ("input", "offset", "weight"))
    dtype, parts, taps = c.dtype(x), c.integer("offset_groups"), kernel[0] * kernel[1]
    kind = TYPE.FLOAT if dtype in HALVES else dtype
    rows, columns = c.size(offset, 2), c.size(offset, 3)
    tall = c.mul(taps, rows)
    moved = _apart(c, c.cast(offset, kind), 2 * taps, parts)
    heights, widths = np.indices(kernel).reshape(2, taps)
    along_width = _places(c, moved, widths, "w", c.size(x, 3), c.count(columns))
    downward = c.unsqueeze(c.count(rows), [1])
    along_height = _places(c, moved, heights, "h", c.size(x, 2), downward)
    each = c.vector([0, tall, columns, 1], "points")
    grid = c.concat([c.op("Reshape", p, each) for p in (along_width, along_height)], 3)
    images = _apart(c, c.cast(x, kind), channels // parts, parts)
    taken = sampled(c.draft, images, grid, "bilinear", "zeros", corners=False)
    if _is_masked(c):
        mask = c.op("Reshape", c.cast(c.tensor("mask"), kind), c.vector([-1, 1, tall, columns]))
        taken = c.op("Mul", taken, mask)
    taken = c.op("Reshape", taken, c.vector([-1, channels * taps, rows, columns], "taps"))
    flat = c.op("Reshape", weight, c.ints([0, -1, 1, 1], "flat"))
    return c.op(
        "Conv",
        c.cast(taken, dtype),
        flat,
        c.args.optional("bias"),
        kernel_shape=[1, 1],
        group=c.integer("groups"),
    )


def _apart(c: Call, x: gs.Tensor, each: int, parts: int) -> gs.Tensor:
    """Groups of channels as images."""
    return x if parts == 1 else c.op("Reshape", x, c.ints([-1, each, 0, 0], "apart"))


def _places(
    c: Call,
    moved: gs.Tensor,
    taps: np.ndarray[tuple[int], np.dtype[np.int64]],
    axis: str,
    length: Size | int,
    along: gs.Tensor,
) -> gs.Tensor:
    """Where each tap reads along an axis, as GridSample counts: -1 and 1 are the image's borders.

    Args:
        c: The call.
        moved: By how many pixels the taps are moved, [n, 2 * taps, rows, columns], y before x.
        taps: Where each tap stands in the kernel along the axis.
        axis: `h` or `w`.
        length: The image's length along the axis, in pixels.
        along: 0, 1, ..., as it broadcasts over rows and columns.
    """
    dtype = c.dtype(moved)
    stride, pad, dilation = (c.integer(f"{n}_{axis}") for n in ("stride", "pad", "dilation"))
    own = c.op("Gather", moved, c.ints_of(2 * np.arange(len(taps)) + (axis == "w")), axis=1)
    first = c.ints_of((2 * (taps * dilation - pad) + 1).reshape(-1, 1, 1), "first")
    twice = c.op("Add", c.op("Mul", along, c.number(2 * stride, TYPE.INT64)), first)
    size = c.cast(c.vector([length], "size"), dtype)
    middle = c.op("Sub", c.op("Div", c.cast(twice, dtype), size), c.number(1, dtype))
    return c.op("Add", c.op("Mul", own, c.op("Div", c.number(2, dtype), size)), middle)
