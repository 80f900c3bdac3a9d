"""Reductions over segments of an axis, which lengths or borders say."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import onnx_graphsurgeon as gs

from surgeon.builders.aten_shape.call import TYPE, Call
from surgeon.rewrite import Refused

# What ONNX calls a reduction, and what it gives of nothing.
_KINDS: Mapping[str, tuple[str, float]] = {
    "sum": ("ReduceSum", 0.0),
    "mean": ("ReduceSum", 0.0),
    "prod": ("ReduceProd", 1.0),
    "max": ("ReduceMax", -np.inf),
    "min": ("ReduceMin", np.inf),
}


def _segment_reduce(c: Call) -> gs.Tensor:
    """Every element of the axis is held against the borders of every segment.

    The first value of a segment is `initial`, which counts among what a mean adds up, and not among
    how many they are; the mean of nothing is NaN without it.
    """
    data, kind = c.tensor("data"), str(c.value("reduce"))
    if kind not in _KINDS or c.has("indices"):
        raise Refused(f"it reduces by {kind!r}, or by indices, which PyTorch does not have")
    given, wide = c.dtype(data), TYPE.FLOAT
    if given == TYPE.DOUBLE:
        wide = TYPE.DOUBLE
    elif given not in (TYPE.FLOAT, TYPE.FLOAT16, TYPE.BFLOAT16):
        raise Refused("PyTorch reduces segments of floats alone")
    starts, ends = _borders(c)
    axis, rank = c.axis(c.integer("axis"), c.rank(data)), c.rank(data)
    if c.rank(starts) != axis + 1:
        raise Refused(f"its axis is {axis}, and its segments have the rank {c.rank(starts)}")
    places = c.count(c.size(data, axis))
    before = c.op("Less", places, c.unsqueeze(starts, [axis + 1]))
    inside = c.op("And", c.op("Not", before), c.op("Less", places, c.unsqueeze(ends, [axis + 1])))
    inside = c.unsqueeze(inside, list(range(axis + 2, rank + 1)))
    operator, neutral = _KINDS[kind]
    values = c.unsqueeze(c.cast(data, wide), [axis])
    values = c.op("Where", inside, values, c.number(neutral, wide))
    lengths = c.unsqueeze(c.op("Sub", ends, starts), list(range(axis + 1, rank)))
    y = _reduced(c, operator, values, axis + 1)
    initial = c.value("initial")
    if initial is not None:
        y = _with_initial(c, kind, y, c.number(initial, wide))
    if kind == "mean":
        y = _mean(c, y, c.cast(lengths, wide), bare=initial is None)
    return c.cast(y, given)


def _borders(c: Call) -> tuple[gs.Tensor, gs.Tensor]:
    """The first place of each segment, and the one behind its last, int64 [..., segments]."""
    if c.has("lengths"):
        lengths = c.cast(c.tensor("lengths"), TYPE.INT64)
        last = c.rank(lengths) - 1
        count = c.count(c.size(lengths, last))
        # onnxruntime has sums so far of int64 from opset 11 on; this is one of all of them
        after = c.op("Less", count, c.unsqueeze(count, [1]))
        ends = c.op("MatMul", lengths, c.cast(c.op("Not", after), TYPE.INT64))
        return c.op("Sub", ends, lengths), ends
    if not c.has("offsets"):
        raise Refused("neither lengths nor offsets of its segments are given")
    offsets = c.cast(c.tensor("offsets"), TYPE.INT64)
    last = c.rank(offsets) - 1
    return c.slice(offsets, last, 0, -1), c.slice(offsets, last, 1, np.iinfo(np.int64).max)


def _reduced(c: Call, operator: str, values: gs.Tensor, axis: int) -> gs.Tensor:
    axes = c.ints([axis], "axes")
    if operator not in ("ReduceMax", "ReduceMin"):
        made: gs.Tensor = c.op(operator, values, axes, keepdims=0)
        return made
    # NaN wins, whatever a runtime makes of it
    nan = c.op("IsNaN", values)
    dtype = c.dtype(values)
    y = c.op(operator, c.op("Where", nan, c.number(0, dtype), values), axes, keepdims=0)
    some = c.op("ReduceMax", c.cast(nan, TYPE.INT32), axes, keepdims=0)
    return c.where(c.cast(some, TYPE.BOOL), c.number(np.nan, dtype), y)


def _with_initial(c: Call, kind: str, y: gs.Tensor, initial: gs.Tensor) -> gs.Tensor:
    made: gs.Tensor
    if kind in ("max", "min"):
        less = c.op("Less", y, initial) if kind == "max" else c.op("Less", initial, y)
        made = c.op("Where", less, initial, y)
    else:
        made = c.op("Mul" if kind == "prod" else "Add", y, initial)
    return made


def _mean(c: Call, total: gs.Tensor, count: gs.Tensor, *, bare: bool) -> gs.Tensor:
    """Without an initial value 0 / 0 is NaN; with one, that of nothing stays."""
    if not bare:
        one = c.number(1, c.dtype(count))
        count = c.op("Where", c.op("Less", count, one), one, count)
    made: gs.Tensor = c.op("Div", total, count)
    return made


LOWERINGS: Mapping[str, Callable[[Call], Any]] = {"segment_reduce": _segment_reduce}
