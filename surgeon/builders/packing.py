"""Packed sequences: steps of samples of unequal lengths, laid end to end, step after step.

The samples stand in the order of their lengths, the longest first, so the batch sizes of all steps
(torch.nn.utils.rnn.PackedSequence) say where each step of each sample stands.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_graphsurgeon as gs

from surgeon.builders.bench import TYPE, Bench, Size


@dataclass(frozen=True, slots=True)
class Places:
    """Where the steps of packed samples stand.

    Attributes:
        inside: [T, B], whether a sample has this step.
        rows: [T, B], the row of the packed data; 0 behind a sample's end.
        lengths: [B], how long each sample is.
    """

    inside: gs.Tensor
    rows: gs.Tensor
    lengths: gs.Tensor


def places_of(c: Bench, sizes: gs.Tensor) -> Places:
    """By the batch sizes, int64; constants where these are known."""
    known = c.facts.array(sizes)
    if known is not None and known.size:
        inside_, starts = np.arange(known[0]) < known[:, None], np.cumsum(known) - known
        rows_ = np.where(inside_, starts[:, None] + np.arange(known[0]), 0)
        made = (inside_, rows_.astype(np.int64), inside_.sum(0, dtype=np.int64))
        return Places(*(c.draft.constant(array, "places") for array in made))
    samples = c.unsqueeze(c.count(c.scalar(c.slice(sizes, 0, 0, 1))), [0])
    column = c.unsqueeze(sizes, [1])
    inside = c.op("Less", samples, column)
    rows = c.op("Add", c.unsqueeze(_before(c, sizes), [1]), samples)
    lengths = c.op("ReduceSum", c.cast(inside, TYPE.INT64), c.ints([0], "axes"), keepdims=0)
    return Places(inside, c.op("Where", inside, rows, c.number(0, TYPE.INT64)), lengths)


def _before(c: Bench, sizes: gs.Tensor) -> gs.Tensor:
    """The sum of all that stand before each."""
    made: gs.Tensor
    if c.opset >= 11:
        made = c.op("CumSum", sizes, c.number(0, TYPE.INT64), exclusive=1)
        return made
    step = c.count(c.size(sizes, 0))
    earlier = c.op("Less", c.unsqueeze(step, [0]), c.unsqueeze(step, [1]))
    shares = c.op("Where", earlier, c.unsqueeze(sizes, [0]), c.number(0, TYPE.INT64))
    made = c.op("ReduceSum", shares, c.ints([1], "axes"), keepdims=0)
    return made


def taken(c: Bench, x: gs.Tensor, inside: gs.Tensor) -> gs.Tensor:
    """Of [T, B, ...] the rows where a condition [T, B] holds, step after step."""
    known = c.facts.array(inside)
    if known is not None:
        places = c.ints_of(np.flatnonzero(known), "places")
    else:
        places = c.flat(c.op("NonZero", c.flat(inside)))
    rest: list[Size | int] = [c.size(x, axis) for axis in range(2, c.rank(x))]
    if all(isinstance(n, int) for n in rest):
        rows = c.op("Reshape", x, c.ints([-1, *(n for n in rest if isinstance(n, int))], "rows"))
    else:
        rows = c.reshape(x, [c.mul(c.size(x, 0), c.size(x, 1)), *rest])
    made: gs.Tensor = c.op("Gather", rows, places, axis=0)
    return made
