"""Counting what falls where, and differences of neighbours."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import onnx_graphsurgeon as gs

from surgeon.builders.aten_shape.call import FLOATS, LARGEST, NARROW, TYPE, Call, Size
from surgeon.rewrite import Refused


def _counted(c: Call, places: gs.Tensor, bins: Size | int, weight: gs.Tensor | None) -> gs.Tensor:
    """How many of some places, of rank 1, are 0, 1, ... bins - 1; or the sum of their weights."""
    row = c.unsqueeze(places, [0])
    here = c.op("Equal", row, c.unsqueeze(c.count(bins), [1]))
    if weight is None:
        terms = c.cast(here, TYPE.INT64)
    else:
        terms = c.where(here, c.unsqueeze(weight, [0]), c.number(0, c.dtype(weight)))
    return c.op("ReduceSum", terms, c.ints([1], "axes"), keepdims=0)


def _bincount(c: Call) -> gs.Tensor:
    """As many bins as the largest value says, at least `minlength`."""
    x = c.cast(c.tensor(), TYPE.INT64)
    least = c.integer("minlength")
    weight = c.args.optional("weights")
    if weight is not None and c.dtype(weight) != TYPE.FLOAT:
        weight = c.cast(weight, TYPE.DOUBLE)
    largest = c.op("Concat", c.flat(x), c.ints([least - 1], "least"), axis=0)
    last = c.op("ReduceMax", largest, c.ints([0], "axes"), keepdims=1)
    bins = Size(None, lambda: c.op("Add", last, c.ints([1], "one")))
    return _counted(c, c.flat(x), bins, weight)


def _histc(c: Call) -> gs.Tensor:
    """Bins of one width from `min` to `max`, the last with its upper border."""
    x = c.flat(c.tensor())
    dtype, bins = c.dtype(x), c.integer("bins")
    if dtype not in (TYPE.FLOAT, TYPE.DOUBLE):
        raise Refused("PyTorch has no histogram of half precision or of integers")
    low, high = _borders(c, x, dtype)
    width, above = c.op("Sub", high, low), c.op("Sub", x, low)
    count = c.number(bins, dtype)
    if c.facts.model.is_before(1, 11):  # the quotient came first
        ratio = c.op("Mul", c.op("Div", above, width), count)
    else:
        ratio = c.op("Div", c.op("Mul", above, count), width)
    # NaN is neither below nor above, and no number either
    strange = c.op("Or", c.op("Less", x, low), c.op("Less", high, x))
    strange = c.op("Or", strange, c.op("IsNaN", x))
    last = c.number(bins - 1, dtype)
    ratio = c.op("Where", strange, c.number(-1, dtype), c.op("Min", c.op("Floor", ratio), last))
    return c.cast(_counted(c, c.cast(ratio, TYPE.INT64), bins, None), dtype)


def _borders(c: Call, x: gs.Tensor, dtype: int) -> tuple[gs.Tensor, gs.Tensor]:
    low, high = float(c.value("min")), float(c.value("max"))
    if low != high:
        return c.number(low, dtype), c.number(high, dtype)
    ends = [c.op(f"Reduce{end}", x, c.ints([0], "axes"), keepdims=1) for end in ("Min", "Max")]
    apart = c.cast(c.op("Less", *ends), dtype)
    off = c.op("Sub", c.number(1, dtype), apart)  # 1 where all elements are one number
    return c.op("Sub", ends[0], off), c.op("Add", ends[1], off)


def _histogram(c: Call) -> tuple[gs.Tensor, gs.Tensor]:
    """Bins between given borders, or of one width; the last with its upper border."""
    x = c.flat(c.tensor())
    dtype = c.dtype(x)
    if dtype not in (TYPE.FLOAT, TYPE.DOUBLE):
        raise Refused("PyTorch has no histogram of half precision or of integers")
    if c.args.schema.overload == "bins_tensor":
        edges = c.tensor("bins")
        if c.dtype(edges) != dtype or c.rank(edges) != 1:
            raise Refused("its borders are no row in the dtype of its input")
    else:
        edges = _even_borders(c, x, c.integer("bins"))
    column = c.unsqueeze(edges, [1])
    row = c.unsqueeze(x, [0])
    from_here = c.op("Not", c.op("Less", row, c.slice(column, 0, 0, -1)))
    below = c.op("Less", row, c.slice(column, 0, 1, LARGEST))
    # the highest border belongs to the last bin; NaN is neither below nor above it
    above = c.op("Less", c.slice(column, 0, -1, LARGEST), row)
    at_end = c.op("Not", c.op("Or", above, c.op("IsNaN", row)))
    bins = c.sub(c.size(edges, 0), 1)
    last = c.op("Equal", c.unsqueeze(c.count(bins), [1]), c.vector([c.sub(bins, 1)], "last"))
    here = c.op("And", from_here, c.op("Or", below, c.op("And", at_end, last)))
    weight = c.args.optional("weight")
    terms = c.cast(here, dtype)
    if weight is not None:
        terms = c.where(here, c.unsqueeze(c.flat(weight), [0]), c.number(0, dtype))
    counts = c.op("ReduceSum", terms, c.ints([1], "axes"), keepdims=0)
    if c.value("density"):
        widths = c.op("Sub", c.slice(edges, 0, 1, LARGEST), c.slice(edges, 0, 0, -1))
        total = c.op("ReduceSum", counts, c.ints([0], "axes"), keepdims=1)
        counts = c.op("Div", counts, c.op("Mul", total, widths))
    return counts, edges


def _even_borders(c: Call, x: gs.Tensor, bins: int) -> gs.Tensor:
    """From one end to the other, counted from the nearer end as `linspace` does."""
    dtype, given = c.dtype(x), c.value("range")
    kind = np.dtype(np.float32 if dtype == TYPE.FLOAT else np.float64)
    if bins < 1:
        raise Refused(f"it has {bins} bins")
    at = np.arange(bins + 1).astype(kind)
    first = at < (bins + 1) // 2
    if given is not None:
        low, high = np.asarray(given, kind)
        if low == high:
            low, high = np.asarray([low - 0.5, high + 0.5], kind)
        step = np.asarray((high - low) / bins, kind)
        line = np.where(first, low + step * at, high - step * (bins - at))
        return c.draft.constant(line.astype(kind), "borders")
    if c.size(x, 0) == 0:
        raise Refused("it has no elements to take its range from")
    ends = [c.op(f"Reduce{end}", x, c.ints([0], "axes"), keepdims=1) for end in ("Min", "Max")]
    apart = c.cast(c.op("Not", c.op("Less", *ends)), dtype)
    room = c.op("Mul", apart, c.number(0.5, dtype))  # where all elements are one number
    start, end = c.op("Sub", ends[0], room), c.op("Add", ends[1], room)
    by = c.op("Div", c.op("Sub", end, start), c.number(bins, dtype))
    up = c.op("Add", start, c.op("Mul", by, c.draft.constant(at, "places")))
    back = c.draft.constant((bins - at).astype(kind), "places")
    down = c.op("Sub", end, c.op("Mul", by, back))
    return c.op("Where", c.draft.constant(first, "nearer"), up, down)


def _searched(c: Call) -> gs.Tensor:
    """`searchsorted` and `bucketize`: how many of the borders are before each value."""
    bucketize = c.node.op == "bucketize"
    line, x = c.tensor("boundaries" if bucketize else "sorted_sequence"), c.tensor("self")
    right = bool(c.value("right"))
    if not bucketize:
        side = c.value("side") if c.args.schema.position("side") is not None else None
        right = right or side == "right"
        if c.args.schema.position("sorter") is not None and c.has("sorter"):
            line = c.op("GatherElements", line, c.tensor("sorter"), axis=c.rank(line) - 1)
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
    """Each element less the one before it, `n` times."""
    x = c.tensor()
    rank = c.rank(x)
    axis = c.axis(c.integer("dim"), rank)
    parts = [c.args.optional("prepend"), x, c.args.optional("append")]
    y = c.concat(c.promoted([t for t in parts if t is not None]), axis)
    dtype = c.dtype(y)
    for _ in range(c.integer("n")):
        later, earlier = c.slice(y, axis, 1, LARGEST), c.slice(y, axis, 0, -1)
        if dtype == TYPE.BOOL:
            y = c.op("Xor", later, earlier)
        elif dtype in NARROW:
            wide = [c.cast(t, TYPE.INT32) for t in (later, earlier)]
            y = c.cast(c.op("Sub", *wide), dtype)
        else:
            y = c.op("Sub", later, earlier)
    return y


LOWERINGS: Mapping[str, Callable[[Call], Any]] = {
    "bincount": _bincount,
    "histc": _histc,
    "histogram": _histogram,
    **dict.fromkeys(("searchsorted", "bucketize"), _searched),
    "diff": _diff,
}
