"""Counting what falls where, and differences of neighbours."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import onnx_graphsurgeon as gs

from surgeon import dims
from surgeon.builders.aten_shape.call import LARGEST, NARROW, TYPE, Call, Size
from surgeon.builders.aten_shape.indices import gather
from surgeon.facts.kinds import FLOATS
from surgeon.rewrite import Refused


def counted(c: Call, places: gs.Tensor, bins: Size | int, weight: gs.Tensor | None) -> gs.Tensor:
    """How many of some places, of rank 1, are 0, 1, ... bins - 1; or the sum of their weights."""
    row = c.unsqueeze(places, [0])
    here = c.op("Equal", row, c.unsqueeze(c.count(bins), [1]))
    if weight is None:
        terms = c.cast(here, TYPE.INT64)
    else:
        terms = c.where(here, c.unsqueeze(weight, [0]), c.number(0, c.dtype(weight)))
    return c.op("ReduceSum", terms, c.ints([1], "axes"), keepdims=0)


def _bincount(c: Call) -> gs.Tensor:
    """As many bins as the largest value says, at least `minlength`.

    Of no values PyTorch counts zeros, whatever they were to weigh.
    """
    x = c.cast(c.tensor(), TYPE.INT64)
    given = c.args.given.get("minlength")
    least = c.scalar(given) if isinstance(given, gs.Tensor) else c.integer("minlength")
    weight = None if c.sizes(x) == [0] else c.args.optional("weights")
    if weight is not None and c.dtype(weight) != TYPE.FLOAT:
        weight = c.cast(weight, TYPE.DOUBLE)
    largest = c.op("Concat", c.flat(x), c.vector([c.sub(least, 1)], "least"), axis=0)
    last = c.op("ReduceMax", largest, c.ints([0], "axes"), keepdims=1)
    bins = Size(None, lambda: c.op("Add", last, c.ints([1], "one")))
    return counted(c, c.flat(x), bins, weight)


def _searched(c: Call) -> gs.Tensor:
    """`searchsorted` and `bucketize`: how many of the borders are before each value."""
    bucketize = c.node.op == "bucketize"
    line, x = c.tensor("boundaries" if bucketize else "sorted_sequence"), c.tensor("self")
    right = bool(c.value("right"))
    if not bucketize:
        side = c.value("side") if c.args.schema.takes("side") else None
        right = right or side == "right"
        if c.args.schema.takes("sorter") and c.has("sorter"):
            line = gather(c, line, c.tensor("sorter"), c.rank(line) - 1)
    line, x = c.promoted([line, x])
    dtype, rank = c.dtype(x), c.rank(line)
    if rank > 1 and c.rank(x) != rank:
        raise Refused(f"values of rank {c.rank(x)} are looked for in rank {rank}")
    if dtype in NARROW:
        line, x = c.cast(line, TYPE.INT32), c.cast(x, TYPE.INT32)
    line = c.unsqueeze(line, [rank - 1]) if rank > 1 else line
    wide = c.unsqueeze(x, [c.rank(x)])
    if right:
        before = c.op("Not", c.op("Less", wide, line))
    else:
        before = c.op("Less", line, wide)
        if dtype in FLOATS:  # NaN stands behind everything
            before = c.op("Or", before, c.op("IsNaN", wide))
    number = TYPE.INT32 if c.value("out_int32") else TYPE.INT64
    axis = c.ints([c.rank(x)], "axes")
    return c.op("ReduceSum", c.cast(before, number), axis, keepdims=0)


def _diff(c: Call) -> gs.Tensor:
    """Each element less the one before it, `n` times; not even joined to others if that is none."""
    x, times = c.tensor(), c.integer("n")
    if times == 0:
        return x
    rank = c.rank(x)
    axis = c.axis(c.integer("dim"), rank)
    parts = [c.args.optional("prepend"), x, c.args.optional("append")]
    y = c.concat(c.promoted([t for t in parts if t is not None]), axis)
    dtype = c.dtype(y)
    for _ in range(times):
        later, earlier = c.slice(y, axis, 1, LARGEST), c.slice(y, axis, 0, -1)
        if dtype == TYPE.BOOL:
            y = c.op("Xor", later, earlier)
        elif dtype in NARROW:
            wide = [c.cast(t, TYPE.INT32) for t in (later, earlier)]
            y = c.cast(c.op("Sub", *wide), dtype)
        else:
            y = c.op("Sub", later, earlier)
    return y


def _one_more(c: Call, indices: gs.Tensor) -> gs.Tensor:
    """As many classes as the largest index asks for, which a negative number says."""
    most = c.op("ReduceMax", indices, keepdims=1)
    more: gs.Tensor = c.op("Add", most, c.ints([1], "one"))
    return more


def _one_hot(c: Call) -> gs.Tensor:
    x, depth = c.cast(c.tensor(), TYPE.INT64), c.listed("num_classes")[0]
    if isinstance(depth, int):
        classes = c.ints([depth], "depth") if depth >= 0 else _one_more(c, c.flat(x))
    else:
        classes = depth.make()
        if depth.dim is None or not dims.not_negative(depth.dim):
            none = c.ints([0], "none")  # beside the indices: a number may be given where none is
            counted = _one_more(c, c.op("Concat", c.flat(x), none, axis=0))
            classes = c.op("Where", c.op("Less", classes, none), counted, classes)
    values = c.draft.constant(np.asarray([0, 1], np.int64), "values")
    if c.rank(x):
        return c.op("OneHot", x, classes, values, axis=-1)
    row = c.op("OneHot", c.flat(x), classes, values, axis=-1)  # of no axis onnxruntime makes none
    return c.op("Reshape", row, c.ints([-1], "target"))


LOWERINGS: Mapping[str, Callable[[Call], Any]] = {
    "one_hot": _one_hot,
    "bincount": _bincount,
    **dict.fromkeys(("searchsorted", "bucketize"), _searched),
    "diff": _diff,
}
