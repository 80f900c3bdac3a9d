"""The best of many, image by image, in tensors of a fixed size: what plugins for boxes share."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_graphsurgeon as gs

from surgeon import dims
from surgeon.builders.bench import TYPE, Bench, Size
from surgeon.rewrite import Refused

LEAST = float(np.finfo(np.float32).min)  # below every score


class Chosen:
    """The places of the best, with which their values are read.

    Attributes:
        places: Where they stood, int64 [images, most]; where there is none, anything.
        scores: [images, most]; where there is none, anything.
        valid: Where there is one, bool [images, most].
    """

    def __init__(self, c: Bench, keys: gs.Tensor, most: int) -> None:
        """The best by keys [images, count], of which `LEAST` is none; the first of equals leads."""
        self.c = c
        shape = c.shape(keys)
        count = None if shape is None else shape[1]
        short = not isinstance(count, int) or count < most
        if short:
            more = most if not isinstance(count, int) else most - count
            pads, least = c.ints([0, 0, 0, more], "pads"), c.number(LEAST, TYPE.FLOAT)
            keys = c.op("Pad", keys, pads, least)
        self.scores, places = c.op(
            "TopK", keys, c.ints([most], "most"), outputs=2, axis=1, largest=1, sorted=1
        )
        self.valid = c.op("Greater", self.scores, c.number(LEAST, TYPE.FLOAT))
        self.places = c.op("Where", self.valid, places, c.ints([0], "none")) if short else places

    def count(self) -> gs.Tensor:
        """How many there are, int32 [images, 1]."""
        c = self.c
        ones = c.cast(self.valid, TYPE.INT32)
        made: gs.Tensor = c.op("ReduceSum", ones, c.ints([1], "axes"), keepdims=1)
        return made

    def or_else(self, x: gs.Tensor, other: float) -> gs.Tensor:
        """Values [images, most, ...], and another where there is none."""
        c = self.c
        valid = self.valid if c.rank(x) == 2 else c.unsqueeze(self.valid, [2])
        return c.where(valid, x, c.number(other, c.dtype(x)))


def never_none(
    c: Bench, boxes: gs.Tensor, scores: gs.Tensor, axis: int
) -> tuple[gs.Tensor, gs.Tensor]:
    """Boxes [images, count, ...] and scores, with one more that is never chosen where one may lack.

    How many there are may depend on the data, and no Reshape tells an axis of 0 from one to copy.

    Args:
        c: The bench.
        boxes: The boxes.
        scores: Their scores.
        axis: The axis of these along which the boxes are.
    """
    if all(
        shape is not None and dims.is_filled(shape[at])
        for shape, at in ((c.shape(boxes), 1), (c.shape(scores), axis))
    ):
        return boxes, scores
    padded = []
    for x, at, value in ((boxes, 1, 0), (scores, axis, LEAST)):
        pads = np.zeros(2 * c.rank(x), np.int64)
        pads[c.rank(x) + at] = 1
        padded.append(c.op("Pad", x, c.ints_of(pads, "pads"), c.number(value, TYPE.FLOAT)))
    return padded[0], padded[1]


def in_row(c: Bench, places: gs.Tensor, images: Size | int, count: Size | int) -> gs.Tensor:
    """Places [images, some] among `count` of each image, as those among all of all images."""
    if images == 1:
        return places
    begins = c.op("Mul", c.column(c.count(images)), c.vector([count], "count"))
    made: gs.Tensor = c.op("Add", places, begins)
    return made


def at(c: Bench, x: gs.Tensor, places: gs.Tensor) -> gs.Tensor:
    """What stands of x [images, count] or [images, count, 4] at places that are `in_row`."""
    target = [-1] if c.rank(x) == 2 else [-1, 4]
    flat = c.op("Reshape", x, c.ints(target, "flat"))
    made: gs.Tensor = c.op("Gather", flat, places, axis=0)
    return made


def suppressed(
    c: Bench,
    boxes: gs.Tensor,
    scores: gs.Tensor,
    most: Size | int,
    overlap: float,
    score: float | None,
) -> gs.Tensor:
    """What NonMaxSuppression leaves, as [image, class, box].

    Args:
        c: The bench.
        boxes: Of two corners [images, count, 4].
        scores: [images, classes, count].
        most: How many of a class at most.
        overlap: What overlaps by more is suppressed.
        score: What does not exceed it is left out; None for nothing.
    """
    if not 0 <= overlap <= 1:
        raise Refused(f"ONNX takes no overlap of {overlap}: it wants 0 to 1")
    limits = [c.draft.constant(np.asarray([overlap], np.float32), "overlap")]
    if score is not None:
        limits.append(c.draft.constant(np.asarray([score], np.float32), "score"))
    made: gs.Tensor = c.op("NonMaxSuppression", boxes, scores, c.vector([most], "most"), *limits)
    return made


def keys_of(
    c: Bench,
    scores: gs.Tensor,
    found: gs.Tensor,
    sizes: Sequence[Size | int],
    weights: Sequence[Size | int],
) -> gs.Tensor:
    """Scores [images, count] of what was found, and `LEAST` of all others.

    Args:
        c: The bench.
        scores: In the order that the weights say, of any shape.
        found: [image, class, box].
        sizes: Of the images, and of all scores of one.
        weights: How far one image, one class and one box stand from the next.
    """
    steps = c.op("Mul", found, c.vector(weights, "steps"))
    places = c.op("ReduceSum", steps, c.ints([1], "axes"), keepdims=0)
    kept = c.op("Gather", c.op("Reshape", scores, c.ints([-1], "flat")), places, axis=0)
    none = c.filled([c.product(sizes)], LEAST, TYPE.FLOAT)
    marked = c.op("ScatterElements", none, places, kept, axis=0)
    images, count = sizes
    told = [images if isinstance(images, int) else -1, count if isinstance(count, int) else -1]
    target = c.ints(told, "target") if told.count(-1) < 2 else c.vector([images, count], "target")
    made: gs.Tensor = c.op("Reshape", marked, target)
    return made


def just_below(value: float) -> float:
    """The next smaller number of single precision: `>` by it is `>=` by the value."""
    return float(np.nextafter(np.float32(value), np.float32(-np.inf)))


def in_order(c: Bench, boxes: gs.Tensor) -> tuple[gs.Tensor, gs.Tensor]:
    """The lower and the upper corners of boxes whose corners stand in any order."""
    axis = c.rank(boxes) - 1
    first, second = c.slice(boxes, axis, 0, 2), c.slice(boxes, axis, 2, 4)
    return c.op("Min", first, second), c.op("Max", first, second)


def without_turned(c: Bench, boxes: gs.Tensor, extra: float) -> gs.Tensor:
    """Boxes that are longer by a pixel or not, and those that end before they begin without area.

    ONNX takes the corners of these in the other order, and the plugins take them for nothing.
    """
    axis = c.rank(boxes) - 1
    begins, ends = c.slice(boxes, axis, 0, 2), c.slice(boxes, axis, 2, 4)
    if extra:
        ends = c.op("Add", ends, c.number(extra, TYPE.FLOAT))
    return c.concat([begins, c.op("Max", begins, ends)], axis)


def corners_of(c: Bench, boxes: gs.Tensor) -> gs.Tensor:
    """The corners of boxes that are said by their middles and sizes."""
    axis = c.rank(boxes) - 1
    half = c.op("Mul", c.slice(boxes, axis, 2, 4), c.number(0.5, TYPE.FLOAT))
    middles = c.slice(boxes, axis, 0, 2)
    return c.concat([c.op("Sub", middles, half), c.op("Add", middles, half)], axis)
