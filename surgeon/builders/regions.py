"""RoiAlign without it: the elements around each sample, gathered and weighed."""

from __future__ import annotations

import numpy as np
import onnx_graphsurgeon as gs

from surgeon.builders.bench import TYPE, Bench, Size
from surgeon.facts.fact import Array
from surgeon.match import Match, attribute_of
from surgeon.rewrite import Draft, Refused

_WIDE = (TYPE.FLOAT, TYPE.DOUBLE)
_FIRST_SHIFTED = 16  # the opset from which pixels may be where their middles are
_FIRST_EQUAL_OF_FLOATS = 11
_MOST_TAPS = 1 << 10  # elements that one bin is a mean of


def roi_align_as_gathers(draft: Draft, match: Match) -> gs.Tensor:
    """RoiAlign of a known number of samples in each bin, as the mean of what is around them."""
    return _Regions(draft, match.root).result()


class _Regions:
    """Samples stand in rows and columns, and so do the elements around them."""

    def __init__(self, draft: Draft, node: gs.Node) -> None:
        self.c = c = Bench(draft)
        self.x, self.rois, self.images = node.inputs
        self.count = int(attribute_of(node, "sampling_ratio"))
        self.bins = [int(attribute_of(node, f"output_{n}")) for n in ("height", "width")]
        self.scale = float(attribute_of(node, "spatial_scale"))
        way = attribute_of(node, "coordinate_transformation_mode")
        self.shifted = c.opset >= _FIRST_SHIFTED and way == "half_pixel"
        if attribute_of(node, "mode") != "avg":
            raise Refused("it takes the greatest, of which runtimes make different things")
        if self.count < 1:
            raise Refused("how many samples a bin has is known at run time only")
        if (2 * self.count) ** 2 > _MOST_TAPS:
            raise Refused("a bin has very many samples")
        self.dtype = c.dtype(self.x)
        if self.dtype not in _WIDE or c.rank(self.x) != 4:
            raise Refused("it is not of planes in single or double precision")
        if c.opset < _FIRST_EQUAL_OF_FLOATS:
            raise Refused("floats are compared from opset 11 on")
        self.sizes = c.sizes(self.x)

    def number(self, value: float) -> gs.Tensor:
        return self.c.number(value, self.dtype)

    def numbers(self, values: Array) -> gs.Tensor:
        kind = np.float32 if self.dtype == TYPE.FLOAT else np.float64
        return self.c.draft.constant(values.astype(kind), "numbers")

    def as_float(self, size: Size | int) -> gs.Tensor:
        if isinstance(size, int):
            return self.number(size)
        return self.c.cast(size.tensor, self.dtype)

    def _by(self, x: gs.Tensor, count: int) -> gs.Tensor:
        made: gs.Tensor = x if count == 1 else self.c.op("Div", x, self.number(count))
        return made

    def result(self) -> gs.Tensor:
        c, (batch, channels, rows, columns) = self.c, self.sizes
        (down, in_down, share_down), (across, in_across, share_across) = (
            self._along(axis, size) for axis, size in enumerate((rows, columns))
        )
        width = c.vector([columns], "width")
        flat = c.op("Add", c.op("Mul", down, width), across)
        there = c.op("Mul", in_down, in_across)  # what is outside reads the first element
        flat = c.op("Mul", flat, c.cast(there, TYPE.INT64))
        plane = c.vector([c.mul(rows, columns)], "plane")
        first = c.op("Gather", c.op("Mul", c.count(batch), plane), self.images, axis=0)
        flat = c.op("Add", flat, c.unsqueeze(first, [1, 2, 3, 4]))
        share = c.op("Mul", c.op("Mul", share_down, share_across), there)
        bins, taps = self.bins[0] * self.bins[1], (2 * self.count) ** 2
        flat = c.op("Reshape", flat, c.ints([-1, bins, taps], "taps"))
        share = c.op("Reshape", share, c.ints([-1, bins, 1, taps], "shares"))
        table = c.op("Transpose", self.x, perm=[0, 2, 3, 1])
        table = c.reshape(table, [c.mul(c.mul(batch, rows), columns), channels])
        values = c.op("Gather", table, flat, axis=0)  # [regions, bins, taps, channels]
        total = c.squeeze(c.op("MatMul", share, values), [2])
        mean = self._by(total, self.count**2)
        turned = c.op("Transpose", mean, perm=[0, 2, 1])
        return c.reshape(turned, [c.size(self.rois, 0), channels, *self.bins])

    def _along(self, axis: int, size: Size | int) -> tuple[gs.Tensor, gs.Tensor, gs.Tensor]:
        """Of rows or columns: which are read, whether their sample is inside, and their shares.

        Each is [regions, rows of bins, columns of bins, rows of taps, columns of taps], of length 1
        along the other axis.
        """
        c, place = self.c, 1 - axis  # regions say columns first
        ends = [c.slice(self.rois, 1, place + n, place + n + 1) for n in (0, 2)]
        if self.scale != 1:
            ends = [c.op("Mul", end, self.number(self.scale)) for end in ends]
        if self.shifted:
            ends = [c.op("Sub", end, self.number(0.5)) for end in ends]
        start, length = ends[0], c.op("Sub", ends[1], ends[0])
        if not self.shifted:
            length = c.op("Max", length, self.number(1))
        step = self._by(length, self.bins[axis])
        first, step = (c.unsqueeze(value, [2]) for value in (start, step))  # [regions, 1, 1]
        bins = self.numbers(np.arange(self.bins[axis]).reshape(-1, 1))
        middles = self.numbers(np.arange(self.count) + 0.5)
        begins = c.op("Add", first, c.op("Mul", step, bins))
        inside = self._by(c.op("Mul", step, middles), self.count)
        at = c.op("Add", begins, inside)  # [regions, bins, samples]
        end = self.as_float(size)
        kept = c.op("Min", c.op("Max", at, self.number(-1)), end)
        there = c.cast(c.op("Equal", at, kept), self.dtype)
        last = c.op("Sub", end, self.number(1))
        at = c.op("Min", c.op("Max", at, self.number(0)), last)
        low = c.op("Floor", at)
        high = c.op("Min", c.op("Add", low, self.number(1)), last)
        beyond = c.op("Sub", at, low)
        shares = [c.op("Sub", self.number(1), beyond), beyond]
        found = [
            c.cast(c.concat([low, high], 2), TYPE.INT64),
            c.concat([there, there], 2),
            c.concat(shares, 2),
        ]
        beside = [2, 4] if axis == 0 else [1, 3]
        taken, inner, share = (c.unsqueeze(value, beside) for value in found)
        return taken, inner, share
