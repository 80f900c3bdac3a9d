"""Plugins of networks that see from above (BEVFormer_tensorrt): grids, rotations, inverses.

Documents: DerryHub/BEVFormer_tensorrt, `det2trt/models/functions`. Names that end in 2 are the
same, with another kernel for halves.
"""

from __future__ import annotations

import math

import numpy as np
import onnx_graphsurgeon as gs

from surgeon.builders.aten_linalg.solving import inverse as inverse_of
from surgeon.builders.aten_nn.grids import sampled
from surgeon.builders.bench import TYPE, Bench, Size
from surgeon.builders.plugins import called
from surgeon.builders.plugins.called import Called
from surgeon.match import Match
from surgeon.rewrite import Draft, Refused

_MODES = ("bilinear", "nearest", "bicubic")
_PADDINGS = ("zeros", "border", "reflection")
_REACH = 10  # what the borders of an image are called, where PyTorch says 1


def grid_sampler(draft: Draft, match: Match) -> gs.Tensor:
    """`GridSampler2DTRT (x, grid)`: the grid has its coordinates as channels, from -10 to 10."""
    node, c = match.root, Bench(draft)
    said = called.said(node)
    x, grid = node.inputs
    rank = 5 if "3D" in str(node.op) else 4
    called.of_rank(c, rank, x, grid)
    mode, padding = (int(said.get(n, 0)) for n in ("interpolation_mode", "padding_mode"))
    if mode not in range(3) or padding not in range(3):
        raise Refused(f"its modes are {mode} and {padding}, which nothing documents")
    places = c.permute(grid, [0, *range(2, rank), 1])
    places = c.op("Div", places, c.number(_REACH, c.dtype(grid)))
    corners = bool(said.get("align_corners", 0))
    made: gs.Tensor = sampled(draft, x, places, _MODES[mode], _PADDINGS[padding], corners=corners)
    return made


def inverse(draft: Draft, match: Match) -> gs.Tensor:
    """`InverseTRT (x)`: of square matrices."""
    x = match.root.inputs[0]
    return inverse_of(Called(draft, match.root, "linalg_inv", {"A": x}), x)


def rotate(draft: Draft, match: Match) -> gs.Tensor:
    """`RotateTRT (image, angle, center)`: by degrees, counter-clockwise; outside are zeros."""
    node, c = match.root, Bench(draft)
    image, angle, center = node.inputs
    called.of_rank(c, 3, image)
    mode = int(called.said(node).get("interpolation", -1))
    if mode not in (0, 1):
        raise Refused(f"its `interpolation` is {mode}, not 0 or 1")
    if c.dtype(image) != TYPE.FLOAT:
        raise Refused("only single precision is rotated here")
    if c.shape(center) != (2,):
        raise Refused("its center is not known to be two numbers")
    turn = c.op("Reshape", c.cast(angle, TYPE.FLOAT), c.ints([], "scalar"))
    turn = c.op("Mul", turn, c.number(-math.pi / 180, TYPE.FLOAT))
    cos, sin = c.op("Cos", turn), c.op("Sin", turn)
    center = c.cast(center, TYPE.FLOAT)
    sizes = [c.size(image, axis) for axis in (2, 1)]  # broad, tall
    half = [c.op("Mul", _floats(c, size), c.number(0.5, TYPE.FLOAT)) for size in sizes]
    middles = [c.slice(center, 0, at, at + 1) for at in (0, 1)]
    # pixels from the center on, [broad] and [tall, 1]
    columns, rows = (
        c.op("Sub", c.op("Add", c.cast(c.count(size), TYPE.FLOAT), _half(c)), middle)
        for size, middle in zip(sizes, middles, strict=True)
    )
    rows = c.column(rows)
    off = [c.op("Sub", middle, side) for middle, side in zip(middles, half, strict=True)]
    across = c.op("Add", c.op("Mul", columns, cos), c.op("Mul", rows, sin))
    along = c.op("Sub", c.op("Mul", rows, cos), c.op("Mul", columns, sin))
    places = [
        c.unsqueeze(c.op("Div", c.op("Add", place, shift), side), [0, 3])
        for place, shift, side in zip((across, along), off, half, strict=True)
    ]
    grid = c.op("Concat", *places, axis=3)
    y = sampled(draft, c.unsqueeze(image, [0]), grid, _MODES[mode], "zeros", corners=False)
    return c.squeeze(y, [0])


def _floats(c: Bench, size: Size | int) -> gs.Tensor:
    if isinstance(size, int):
        return c.draft.constant(np.asarray([size], np.float32), "size")
    return c.cast(size.tensor, TYPE.FLOAT)


def _half(c: Bench) -> gs.Tensor:
    return c.number(0.5, TYPE.FLOAT)
