"""Deformable convolution as samples: a channel for each tap, and a 1x1 convolution over taps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_graphsurgeon as gs

from surgeon.builders.bench import TYPE, Bench, Size, operand
from surgeon.facts.kinds import HALVES
from surgeon.match import Match, attribute_of
from surgeon.rewrite import Draft, Refused

_Pair = tuple[int, int]  # of height and width


@dataclass(frozen=True, slots=True)
class Deformation:
    """A deformable convolution of images.

    Attributes:
        x: Images, [n, channels, height, width].
        offset: By how many pixels each tap is moved, [n, groups * 2 * taps, rows, columns], y
            before x.
        weight: As Conv has it.
        bias: As Conv has it.
        mask: What each sample is weighed by, [n, groups * taps, rows, columns].
        strides: In pixels.
        pads: In front.
        dilations: Of the kernel.
        groups: Of the convolution.
        parts: Groups of channels that have offsets of their own.
    """

    x: gs.Tensor
    offset: gs.Tensor
    weight: gs.Tensor
    bias: gs.Tensor | None
    mask: gs.Tensor | None
    strides: _Pair
    pads: _Pair
    dilations: _Pair
    groups: int
    parts: int


def deform_conv_as_samples(draft: Draft, match: Match) -> gs.Tensor:
    """DeformConv of images."""
    node, c = match.root, Bench(draft)
    x, weight, offset = node.inputs[:3]
    if c.rank(x) != 4:
        raise Refused("its input is no batch of images")
    ones = [1, 1]
    strides, dilations = (attribute_of(node, key) or ones for key in ("strides", "dilations"))
    pads = attribute_of(node, "pads") or [0] * 4
    made = Deformation(
        x,
        offset,
        weight,
        operand(node, 3),
        operand(node, 4),
        (int(strides[0]), int(strides[1])),
        (int(pads[0]), int(pads[1])),
        (int(dilations[0]), int(dilations[1])),
        int(attribute_of(node, "group")),
        int(attribute_of(node, "offset_group")),
    )
    return of_samples(c, made)


def of_samples(c: Bench, d: Deformation) -> gs.Tensor:
    """A grid of all taps is sampled in the image, and a 1x1 convolution sums over taps.

    Offset groups are images of their own meanwhile, as each has its own grid.
    """
    from surgeon.builders.aten_nn.grids import sampled  # whose package reads this module

    shape = c.shape(d.weight) or ()
    known = [n for n in shape[1:] if isinstance(n, int)]
    if len(known) != 3:
        raise Refused("the size of its kernel, or how many channels it has, is not known")
    channels, kernel = known[0] * d.groups, known[1:]
    taps, dtype = kernel[0] * kernel[1], c.dtype(d.x)
    kind = TYPE.FLOAT if dtype in HALVES else dtype
    rows, columns = c.size(d.offset, 2), c.size(d.offset, 3)
    tall = c.mul(taps, rows)
    moved = _apart(c, c.cast(d.offset, kind), 2 * taps, d.parts)
    heights, widths = np.indices(kernel).reshape(2, taps)
    along_width = _places(c, d, moved, widths, 1, c.size(d.x, 3), c.count(columns))
    downward = c.unsqueeze(c.count(rows), [1])
    along_height = _places(c, d, moved, heights, 0, c.size(d.x, 2), downward)
    each = c.vector([0, tall, columns, 1], "points")
    grid = c.concat([c.op("Reshape", p, each) for p in (along_width, along_height)], 3)
    images = _apart(c, c.cast(d.x, kind), channels // d.parts, d.parts)
    taken = sampled(c.draft, images, grid, "bilinear", "zeros", corners=False)
    if d.mask is not None:
        mask = c.op("Reshape", c.cast(d.mask, kind), c.vector([-1, 1, tall, columns]))
        taken = c.op("Mul", taken, mask)
    taken = c.op("Reshape", taken, c.vector([-1, channels * taps, rows, columns], "taps"))
    flat = c.op("Reshape", d.weight, c.ints([0, -1, 1, 1], "flat"))
    made: gs.Tensor = c.op(
        "Conv", c.cast(taken, dtype), flat, d.bias, kernel_shape=[1, 1], group=d.groups
    )
    return made


def _apart(c: Bench, x: gs.Tensor, each: int, parts: int) -> gs.Tensor:
    """Groups of channels as images."""
    return x if parts == 1 else c.op("Reshape", x, c.ints([-1, each, 0, 0], "apart"))


def _places(
    c: Bench,
    d: Deformation,
    moved: gs.Tensor,
    taps: np.ndarray[tuple[int], np.dtype[np.int64]],
    axis: int,
    length: Size | int,
    along: gs.Tensor,
) -> gs.Tensor:
    """Where each tap reads along an axis, as GridSample counts: -1 and 1 are the image's borders.

    Args:
        c: Where the nodes go.
        d: The convolution.
        moved: Its offsets, apart.
        taps: Where each tap stands in the kernel along the axis.
        axis: 0 for the height, 1 for the width.
        length: The image's length along the axis, in pixels.
        along: 0, 1, ..., as it broadcasts over rows and columns.
    """
    dtype = c.dtype(moved)
    own = c.op("Gather", moved, c.ints_of(2 * np.arange(len(taps)) + axis), axis=1)
    start = 2 * (taps * d.dilations[axis] - d.pads[axis]) + 1
    twice = c.op("Mul", along, c.number(2 * d.strides[axis], TYPE.INT64))
    twice = c.op("Add", twice, c.ints_of(start.reshape(-1, 1, 1), "first"))
    size = c.cast(c.vector([length], "size"), dtype)
    middle = c.op("Sub", c.op("Div", c.cast(twice, dtype), size), c.number(1, dtype))
    made: gs.Tensor = c.op("Add", c.op("Mul", own, c.op("Div", c.number(2, dtype), size)), middle)
    return made
