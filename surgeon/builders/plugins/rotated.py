"""OpenMMLab's plugins for boxes that are turned: what they suppress, and what is read of them."""

from __future__ import annotations

import math

import numpy as np
import onnx_graphsurgeon as gs

from surgeon.builders.bench import TYPE, Bench, Size
from surgeon.builders.plugins import called
from surgeon.builders.plugins.chosen import LEAST, in_row, never_none
from surgeon.builders.turns import in_turns
from surgeon.match import Match
from surgeon.rewrite import Draft, Refused

_SIGNS = np.array([[-1, 1, 1, -1], [-1, -1, 1, 1]], np.float32)  # of corners, along both sides


def nms_rotated(draft: Draft, match: Match) -> gs.Tensor:
    """`mmdeploy.NMSRotated (boxes, scores)`: what no better box overlaps too much.

    Boxes are [images, count, 5] and scores [images, classes, count], and [image, class, box] comes
    out; or [count, 5] and [count], and the boxes' places come out.
    """
    node, c = match.root, Bench(draft)
    said = called.said(node)
    boxes, scores = (c.cast(t, TYPE.FLOAT) for t in node.inputs[:2])
    single = c.rank(boxes) == 2
    if single:
        called.of_rank(c, 1, scores)
        boxes, scores = c.unsqueeze(boxes, [0]), c.unsqueeze(scores, [0, 1])
    called.of_rank(c, 3, boxes, scores)
    least = max(float(said.get("score_threshold", -math.inf if single else 0.0)), LEAST)
    boxes, scores = never_none(c, boxes, scores, 2)
    images, classes, count = (c.size(scores, axis) for axis in range(3))
    good = c.op("Greater", scores, c.number(least, TYPE.FLOAT))
    width = _most(c, good)
    best, order = c.op(
        "TopK", scores, c.vector([width], "width"), outputs=2, axis=2, largest=1, sorted=1
    )
    flat = c.op("Reshape", order, c.vector([images, -1], "rows"))
    rows = c.op("Reshape", boxes, c.ints([-1, 5], "flat"))
    taken = c.op("Gather", rows, in_row(c, flat, images, count), axis=0)
    taken = c.op("Reshape", taken, c.vector([images, classes, width, 5], "sorted"))
    good = c.op("Greater", best, c.number(least, TYPE.FLOAT))
    left = _Turned(c, taken).left(good, width, float(said.get("iou_threshold", 0.5)))
    found = c.permute(c.op("NonZero", left), [1, 0])  # image, class, place in the order
    steps = c.vector([c.mul(classes, width), width, 1], "steps")
    where = c.op("ReduceSum", c.op("Mul", found, steps), c.ints([1], "axes"), keepdims=1)
    line = c.op("Reshape", order, c.ints([-1], "line"))
    places = c.op("Gather", line, where, axis=0)
    if single:
        return c.flat(places)
    made: gs.Tensor = c.op("Concat", c.slice(found, 1, 0, 2), places, axis=1)
    return made


def _most(c: Bench, good: gs.Tensor) -> Size:
    """How many boxes of a class are good at most, and one at least, as a length."""

    def make() -> gs.Tensor:
        ones = c.op("ReduceSum", c.cast(good, TYPE.FLOAT), c.ints([2], "axes"), keepdims=0)
        every = c.concat([c.op("Reshape", ones, c.ints([-1], "flat")), _one(c)], 0)
        most = c.op("ReduceMax", every, c.ints([0], "axes"), keepdims=1)
        return c.cast(most, TYPE.INT64)

    return Size(None, make)


def _one(c: Bench) -> gs.Tensor:
    return c.draft.constant(np.ones(1, np.float32), "one")


class _Turned:
    """Boxes [images, classes, count, 5] in order, and their corners [..., count, 4]."""

    def __init__(self, c: Bench, boxes: gs.Tensor) -> None:
        self.c = c
        x, y, w, h, angle = (self._column(boxes, i) for i in range(5))
        self.cos, self.sin, self.x, self.y = c.op("Cos", angle), c.op("Sin", angle), x, y
        half = c.number(0.5, TYPE.FLOAT)
        self.half_w, self.half_h = (c.op("Mul", c.op("Abs", side), half) for side in (w, h))
        self.area = c.op("Mul", w, h)
        right, down = (
            c.op("Mul", c.unsqueeze(side, [3]), c.draft.constant(signs, "corners"))
            for side, signs in zip((self.half_w, self.half_h), _SIGNS, strict=True)
        )
        cos, sin = c.unsqueeze(self.cos, [3]), c.unsqueeze(self.sin, [3])
        across = c.op("Sub", c.op("Mul", right, cos), c.op("Mul", down, sin))
        along = c.op("Add", c.op("Mul", right, sin), c.op("Mul", down, cos))
        self.corners_x = c.op("Add", across, c.unsqueeze(x, [3]))
        self.corners_y = c.op("Add", along, c.unsqueeze(y, [3]))

    def _column(self, boxes: gs.Tensor, index: int) -> gs.Tensor:
        made: gs.Tensor = self.c.op("Gather", boxes, self.c.number(index, TYPE.INT64), axis=3)
        return made

    def left(self, good: gs.Tensor, width: Size, overlap: float) -> gs.Tensor:
        """Which of the good ones are left, turn by turn from the best on."""
        numbers = self.c.unsqueeze(self.c.count(width), [1])

        def step(draft: Draft, state: list[gs.Tensor], number: gs.Tensor) -> list[gs.Tensor]:
            c, (alive,) = Bench(draft), state
            share = self._share(c, number)
            close = c.op("Greater", share, c.number(overlap, TYPE.FLOAT))
            places = c.op("Greater", self._places, number)  # those that come later
            close = c.op("And", c.op("And", close, places), c.op("Gather", alive, number, axis=2))
            return [c.op("And", alive, c.op("Not", close))]

        self._places = self.c.count(width)
        return in_turns(self.c.draft, [good], numbers, step)[0]

    def _share(self, c: Bench, number: gs.Tensor) -> gs.Tensor:
        """What one box and each share of what either has."""
        shared = self._shared(c, number)
        both = c.op("Add", c.op("Gather", self.area, number, axis=2), self.area)
        made: gs.Tensor = c.op("Div", shared, c.op("Sub", both, shared))
        return made

    def _shared(self, c: Bench, number: gs.Tensor) -> gs.Tensor:
        """The area that one box has of each.

        The corners of each are seen from the one, whose sides are upright then. Along each edge,
        as far as it is between left and right, the height above the box's middle is added up, cut
        at bottom and top.
        """

        def of_one(x: gs.Tensor) -> gs.Tensor:
            return c.unsqueeze(c.op("Gather", x, number, axis=2), [3])

        cos, sin = of_one(self.cos), of_one(self.sin)
        right = c.op("Sub", self.corners_x, of_one(self.x))
        down = c.op("Sub", self.corners_y, of_one(self.y))
        u = c.op("Add", c.op("Mul", right, cos), c.op("Mul", down, sin))
        v = c.op("Sub", c.op("Mul", down, cos), c.op("Mul", right, sin))
        following = c.ints([1, 2, 3, 0], "following")
        du, dv = (c.op("Sub", c.op("Gather", t, following, axis=3), t) for t in (u, v))
        half_w, half_h = of_one(self.half_w), of_one(self.half_h)
        zero, one = c.number(0, TYPE.FLOAT), c.number(1, TYPE.FLOAT)
        begin, end = _crossings(c, u, du, half_w, zero, one)
        low, high = _crossings(c, v, dv, half_h, begin, end)
        t = c.concat([c.unsqueeze(x, [4]) for x in (begin, low, high, end)], 4)
        u, v, du, dv, half_h = (c.unsqueeze(x, [4]) for x in (u, v, du, dv, half_h))
        u = c.op("Add", u, c.op("Mul", t, du))
        v = c.op("Add", v, c.op("Mul", t, dv))
        v = c.op("Max", c.op("Min", v, half_h), c.op("Neg", half_h))
        steps = c.op("Sub", c.slice(u, 4, 1, 4), c.slice(u, 4, 0, 3))
        heights = c.op("Add", c.slice(v, 4, 1, 4), c.slice(v, 4, 0, 3))
        total = c.op("ReduceSum", c.op("Mul", steps, heights), c.ints([3, 4], "axes"), keepdims=0)
        made: gs.Tensor = c.op("Mul", c.op("Abs", total), c.number(0.5, TYPE.FLOAT))
        return made


def _crossings(
    c: Bench, x: gs.Tensor, dx: gs.Tensor, half: gs.Tensor, least: gs.Tensor, most: gs.Tensor
) -> tuple[gs.Tensor, gs.Tensor]:
    """Where along its edges a coordinate comes in between -half and half, and leaves; in bounds."""
    safe = c.where(c.is_nought(dx), c.number(1, TYPE.FLOAT), dx)
    ways = [c.op("Div", c.op("Sub", side, x), safe) for side in (c.op("Neg", half), half)]
    first, last = c.op("Min", *ways), c.op("Max", *ways)
    low, high = (c.op("Max", c.op("Min", t, most), least) for t in (first, last))
    return low, high


def roi_align_rotated(draft: Draft, match: Match) -> gs.Tensor:
    """`MMCVRoIAlignRotated (x, rois)`: the mean of samples in each bin of each turned region."""
    node, c = match.root, Bench(draft)
    said = called.said(node)
    x, rois = node.inputs[:2]
    called.of_rank(c, 4, x)
    called.of_rank(c, 2, rois)
    dtype, shape = c.dtype(x), c.shape(rois)
    if shape is None or shape[1] != 6:
        raise Refused("its regions are no rows of six numbers")
    ratio = said.get("sampling_ratio", 0)
    sizes = [said.get(name) for name in ("output_height", "output_width")]
    if not all(isinstance(n, int) and n > 0 for n in (ratio, *sizes)):
        raise Refused("how many samples a bin has depends on the region: give `sampling_ratio`")
    x, rois = c.cast(x, TYPE.FLOAT), c.cast(rois, TYPE.FLOAT)
    y_of, x_of = _samples(c, said, rois, [int(ratio * n) for n in sizes if n])
    rows = c.op("Reshape", c.permute(x, [0, 2, 3, 1]), c.vector([-1, c.size(x, 1)], "pixels"))
    image = c.cast(_of_region(c, rois, 0), TYPE.INT64)
    first = c.op("Mul", image, c.vector([c.mul(c.size(x, 2), c.size(x, 3))], "image"))
    taken = _between(c, rows, first, (y_of, c.size(x, 2)), (x_of, c.size(x, 3)))
    bins = [-1, sizes[0], ratio, sizes[1], ratio]
    taken = c.op("Reshape", taken, c.vector([*map(int, bins), c.size(x, 1)], "bins"))
    mean = c.op("ReduceMean", taken, c.ints([2, 4], "axes"), keepdims=0)
    return c.cast(c.permute(mean, [0, 3, 1, 2]), dtype)


def _of_region(c: Bench, rois: gs.Tensor, index: int) -> gs.Tensor:
    """A number of each region, [regions, 1, 1]."""
    return c.unsqueeze(c.slice(rois, 1, index, index + 1), [2])


def _samples(
    c: Bench, said: dict[str, object], rois: gs.Tensor, counts: list[int]
) -> tuple[gs.Tensor, gs.Tensor]:
    """Rows and columns of all samples, [regions, rows, columns], in pixels of the features."""
    scale = c.number(float(str(said.get("spatial_scale", 1.0))), TYPE.FLOAT)
    aligned = bool(said.get("aligned", 1))
    right, down, width, height = (c.op("Mul", _of_region(c, rois, i), scale) for i in range(1, 5))
    if aligned:
        right, down = (c.op("Sub", t, c.number(0.5, TYPE.FLOAT)) for t in (right, down))
    else:
        width, height = (c.op("Max", t, c.number(1, TYPE.FLOAT)) for t in (width, height))
    angle = _of_region(c, rois, 5)
    cos, sin = c.op("Cos", angle), c.op("Sin", angle)
    if bool(said.get("clockwise", 0)):
        sin = c.op("Neg", sin)
    steps = [((np.arange(n) + 0.5) / n - 0.5).astype(np.float32) for n in counts]
    rows = c.op("Mul", height, c.draft.constant(steps[0].reshape(1, -1, 1), "rows"))
    columns = c.op("Mul", width, c.draft.constant(steps[1].reshape(1, 1, -1), "columns"))
    y = c.op("Sub", c.op("Mul", rows, cos), c.op("Mul", columns, sin))
    x = c.op("Add", c.op("Mul", rows, sin), c.op("Mul", columns, cos))
    return c.op("Add", y, down), c.op("Add", x, right)


def _between(
    c: Bench,
    rows: gs.Tensor,
    first: gs.Tensor,
    down: tuple[gs.Tensor, Size | int],
    right: tuple[gs.Tensor, Size | int],
) -> gs.Tensor:
    """Values between four pixels [regions, rows, columns, channels].

    Less than a pixel outside they are the border's, and further off 0.
    """
    zero, one = c.number(0, TYPE.FLOAT), c.number(1, TYPE.FLOAT)
    there: gs.Tensor | None = None
    low: list[gs.Tensor] = []
    high: list[gs.Tensor] = []
    shares: list[gs.Tensor] = []
    for place, length in (down, right):
        size = c.cast(c.vector([length], "length"), TYPE.FLOAT)
        last = c.op("Sub", size, one)
        outside = c.op(
            "Or", c.op("Less", place, c.number(-1, TYPE.FLOAT)), c.op("Greater", place, size)
        )
        there = outside if there is None else c.op("Or", there, outside)
        place = c.op("Min", c.op("Max", place, zero), last)
        floor = c.op("Floor", place)
        shares.append(c.op("Sub", place, floor))
        low.append(c.cast(floor, TYPE.INT64))
        high.append(c.cast(c.op("Min", c.op("Add", floor, one), last), TYPE.INT64))
    width = c.vector([right[1]], "width")
    total: gs.Tensor | None = None
    for i, row in enumerate((low[0], high[0])):
        begin = c.op("Add", first, c.op("Mul", row, width))
        for j, column in enumerate((low[1], high[1])):
            weights = [
                share if taken else c.op("Sub", one, share)
                for share, taken in zip(shares, (i, j), strict=True)
            ]
            pixel = c.op("Gather", rows, c.op("Add", begin, column), axis=0)
            part = c.op("Mul", pixel, c.unsqueeze(c.op("Mul", *weights), [3]))
            total = part if total is None else c.op("Add", total, part)
    assert there is not None
    assert total is not None
    return c.where(c.unsqueeze(there, [3]), zero, total)
