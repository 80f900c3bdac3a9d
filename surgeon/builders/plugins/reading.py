"""Plugins that read values at places which are computed: grids, the best of many, attention."""

from __future__ import annotations

import onnx_graphsurgeon as gs

from surgeon.builders.aten_nn.grids import sampled
from surgeon.builders.bench import TYPE, Bench, Size
from surgeon.builders.plugins import called
from surgeon.match import Match
from surgeon.rewrite import Draft, Refused

_MODES = ("bilinear", "nearest", "bicubic")
_PADDINGS = ("zeros", "border", "reflection")


def grid_sampler(draft: Draft, match: Match) -> gs.Tensor:
    """`mmcv.grid_sampler (x, grid)`: PyTorch's grid_sample."""
    node, c = match.root, Bench(draft)
    mode = int(called.said(node).get("interpolation_mode", 0))
    padding = int(called.said(node).get("padding_mode", 0))
    if mode not in range(3) or padding not in range(3):
        raise Refused(f"its modes are {mode} and {padding}, which nothing documents")
    x, grid = node.inputs
    if c.rank(x) not in (4, 5):
        raise Refused(f"its input has rank {c.rank(x)}, not 4 or 5")
    corners = bool(called.said(node).get("align_corners", 0))
    made: gs.Tensor = sampled(draft, x, grid, _MODES[mode], _PADDINGS[padding], corners=corners)
    return made


def gather_topk(draft: Draft, match: Match) -> gs.Tensor:
    """`mmdeploy.GatherTopk (data, indices)`: the axes in front of the last one of both go along."""
    c = Bench(draft)
    data, indices = match.root.inputs
    along = c.rank(indices) - 1
    indices = c.cast(indices, TYPE.INT64)
    if along == 0:
        made: gs.Tensor = c.op("Gather", data, indices, axis=0)
        return made
    gathered: gs.Tensor = c.op(
        "GatherND", data, c.unsqueeze(indices, [along + 1]), batch_dims=along
    )
    return gathered


def deformable_attention(draft: Draft, match: Match, *, joined: bool) -> gs.Tensor:
    """Deformable DETR's: samples of each level, weighted and added up.

    Args:
        draft: Where the nodes go.
        match: (value, sizes of levels, where they begin, places, weights).
        joined: Whether the heads of a query come in one row.
    """
    c = Bench(draft)
    value, shapes, begins, places, weights = match.root.inputs
    shape = c.shape(places)
    if shape is None or len(shape) != 6 or not isinstance(shape[3], int):
        raise Refused("how many levels there are is not known")
    levels, dtype = shape[3], c.dtype(value)
    images, heads, depth = (c.size(value, axis) for axis in (0, 2, 3))
    queries, points = c.size(places, 1), c.size(places, 4)
    each = c.mul(images, heads)
    x = c.op("Reshape", c.permute(value, [0, 2, 3, 1]), c.vector([each, depth, -1], "heads"))
    grids = c.op("Sub", c.op("Mul", places, c.number(2, dtype)), c.number(1, dtype))
    grids = c.permute(grids, [3, 0, 2, 1, 4, 5])  # levels, images, heads, queries, points
    weights = c.permute(weights, [3, 0, 2, 1, 4])
    shapes, begins = c.cast(shapes, TYPE.INT64), c.cast(begins, TYPE.INT64)
    total: gs.Tensor | None = None
    for level in range(levels):
        begin = _number(c, begins, [level])
        tall, broad = (_number(c, shapes, [level, axis]) for axis in (0, 1))
        image = c.slice(x, 2, begin, c.add(begin, c.mul(tall, broad)))
        image = c.op("Reshape", image, c.vector([each, depth, tall, broad], "image"))
        grid = c.op(
            "Reshape", _level(c, grids, level), c.vector([each, queries, points, 2], "grid")
        )
        share = c.op(
            "Reshape", _level(c, weights, level), c.vector([each, 1, queries, points], "share")
        )
        taken = sampled(draft, image, grid, "bilinear", "zeros", corners=False)
        part = c.op("ReduceSum", c.op("Mul", taken, share), c.ints([3], "points"), keepdims=0)
        total = part if total is None else c.op("Add", total, part)
    if total is None:
        raise Refused("it has no level")
    y = c.op("Reshape", total, c.vector([images, c.mul(heads, depth), queries], "joined"))
    y = c.permute(y, [0, 2, 1])
    if joined:
        return y
    made: gs.Tensor = c.op("Reshape", y, c.vector([images, queries, heads, depth], "apart"))
    return made


def _level(c: Bench, x: gs.Tensor, level: int) -> gs.Tensor:
    made: gs.Tensor = c.op("Gather", x, c.number(level, TYPE.INT64), axis=0)
    return made


def _number(c: Bench, x: gs.Tensor, place: list[int]) -> Size | int:
    """An element of sizes that are known, or known at run time."""
    array = c.facts.array(x)
    if array is not None:
        return int(array[tuple(place)])
    one = x
    for axis, index in enumerate(place):
        last = axis == len(place) - 1
        at = c.ints([index], "index") if last else c.number(index, TYPE.INT64)
        one = c.op("Gather", one, at, axis=0)
    return Size(None, lambda: one)
