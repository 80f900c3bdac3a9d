"""Crops of images, as onnxruntime has them from TensorFlow."""

from __future__ import annotations

import numpy as np
import onnx_graphsurgeon as gs

from surgeon.builders.bench import TYPE, Bench, Size
from surgeon.builders.contrib.settings import settings
from surgeon.builders.layouts import channels_last
from surgeon.match import Match
from surgeon.rewrite import Draft, Refused

_FLOAT, _INT64 = int(TYPE.FLOAT), int(TYPE.INT64)
_LARGEST = 1 << 16  # rows or columns of a crop


def crop_and_resize(draft: Draft, match: Match) -> gs.Tensor:
    """`com.microsoft.CropAndResize (x, rois, batch_indices, crop_size)`, corners aligned.

    Row i of a crop is row y1 (H - 1) + i (y2 - y1) (H - 1) / (crop_height - 1) of the image; a
    crop of one row has that in the middle. What lies outside of the image is the extrapolation.
    """
    node, c = match.root, Bench(draft)
    given = settings(node, 4, 4, {"mode": "bilinear", "extrapolation_value": 0.0})
    x, rois, batch, crop = node.inputs[:4]
    if given["mode"] not in ("bilinear", "nearest"):
        raise Refused(f"nothing is known of its mode {given['mode']!r}")
    if c.dtype(x) != _FLOAT:
        raise Refused("onnxruntime has it for float32 only")
    known = draft.facts.array(crop)
    if known is None or known.shape != (2,):
        raise Refused("how large its crops are is computed where it runs")
    height, width = (int(n) for n in known)
    if not (0 < height <= _LARGEST and 0 < width <= _LARGEST):
        raise Refused(f"no crop is of {height} by {width}")
    lines = [
        _Line(c, rois, *each) for each in ((height, c.size(x, 2), 0), (width, c.size(x, 3), 1))
    ]
    pixels = _Pixels(c, x, batch)
    if given["mode"] == "nearest":
        half = c.number(0.5, _FLOAT)
        y = pixels.at(*(c.op("Floor", c.op("Add", line.places, half)) for line in lines))
    else:
        y = _bilinear(c, pixels, *lines)
    inside = c.op("And", c.unsqueeze(lines[0].inside, [2, 3]), c.unsqueeze(lines[1].inside, [1, 3]))
    outside = c.number(float(given["extrapolation_value"]), _FLOAT)
    return c.permute(c.where(inside, y, outside), [0, 3, 1, 2])


class _Line:
    """The rows, or the columns, of an image that the crops have.

    Attributes:
        places: [rois, rows of a crop], float32, moved into the image where they are outside of it.
        inside: Which of them lie inside.
    """

    def __init__(
        self, c: Bench, rois: gs.Tensor, count: int, length: Size | int, side: int
    ) -> None:
        last = c.cast(c.vector([c.sub(length, 1)]), _FLOAT)
        ends = [c.slice(rois, 1, at, at + 1) for at in (side, side + 2)]
        low, high = (c.op("Mul", end, last) for end in ends)
        if count == 1:
            middle = c.op("Mul", c.op("Add", low, high), c.number(0.5, _FLOAT))
            found = middle
        else:
            whole = c.op("Mul", c.op("Sub", ends[1], ends[0]), last)
            step = c.op("Div", whole, c.number(count - 1, _FLOAT))
            between = c.draft.constant(np.arange(1, count - 1, dtype=np.float32), "places")
            inner = c.op("Add", low, c.op("Mul", step, between))
            found = c.concat([low, inner, high] if count > 2 else [low, high], 1)
        zero = c.number(0, _FLOAT)
        self.inside = c.op(
            "Not", c.op("Or", c.op("Less", found, zero), c.op("Greater", found, last))
        )
        self.places = c.op("Min", c.op("Max", found, zero), last)


class _Pixels:
    """The pixels of all images, one behind the other."""

    def __init__(self, c: Bench, x: gs.Tensor, batch: gs.Tensor) -> None:
        self._c, (_, channels, height, self._width) = c, c.sizes(x)
        self._flat = c.op("Reshape", channels_last(c, x), c.vector([-1, channels]))
        in_one = c.vector([c.mul(height, self._width)])
        self._first = c.op("Mul", c.unsqueeze(c.cast(batch, _INT64), [1, 2]), in_one)

    def at(self, rows: gs.Tensor, columns: gs.Tensor) -> gs.Tensor:
        """Those of whole rows and columns ([rois, height] and [rois, width]), channels last."""
        c = self._c
        row, column = (c.unsqueeze(c.cast(t, _INT64), [a]) for t, a in ((rows, 2), (columns, 1)))
        before = c.op("Mul", row, c.vector([self._width]))
        places = c.op("Add", c.op("Add", self._first, before), column)
        made: gs.Tensor = c.op("Gather", self._flat, places, axis=0)
        return made


def _bilinear(c: Bench, pixels: _Pixels, rows: _Line, columns: _Line) -> gs.Tensor:
    """Between the four pixels around each place."""
    (top, bottom), (left, right) = (
        [c.op(operator, line.places) for operator in ("Floor", "Ceil")] for line in (rows, columns)
    )
    down = c.unsqueeze(c.op("Sub", rows.places, top), [2, 3])
    along = c.unsqueeze(c.op("Sub", columns.places, left), [1, 3])
    upper, lower = (
        _between(c, pixels.at(row, left), pixels.at(row, right), along) for row in (top, bottom)
    )
    return _between(c, upper, lower, down)


def _between(c: Bench, a: gs.Tensor, b: gs.Tensor, share: gs.Tensor) -> gs.Tensor:
    """A + (b - a) * share."""
    made: gs.Tensor = c.op("Add", a, c.op("Mul", c.op("Sub", b, a), share))
    return made
