"""Sorting, and what is found by comparing neighbours: TopK, Unique, Compress."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import onnx_graphsurgeon as gs

from surgeon import dims
from surgeon.builders.aten_shape.call import TYPE, Call, Size
from surgeon.builders.bench import Bench, dim_of
from surgeon.dims import Dim
from surgeon.facts.kinds import FLOATS
from surgeon.rewrite import Refused

_TOPK = frozenset({TYPE.FLOAT, TYPE.DOUBLE, TYPE.INT64, TYPE.INT32})
_MOST_COMPARED = 4096  # elements that are each compared with every other


def topk(
    c: Bench, x: gs.Tensor, axis: int, count: Size | int, *, largest: bool
) -> tuple[gs.Tensor, gs.Tensor]:
    """The greatest or least elements of an axis and where they stand, in order."""
    dtype, rank = c.dtype(x), c.rank(x)
    if rank == 0:
        x = c.op("Reshape", x, c.ints([1], "target"))
        count = 1 if count == 0 else count  # a number stays one
    if count == 0:  # which `k` may not be before opset 10
        some = c.slice(x, axis, 0, 0)
        return some, c.filled(c.sizes(some), 0, TYPE.INT64)
    work = x
    if dtype not in _TOPK:
        work = c.cast(x, TYPE.FLOAT if dtype in FLOATS else TYPE.INT32)
    if c.opset >= 11:
        k = c.vector([count], "k")
        values, indices = c.op(
            "TopK", work, k, axis=axis, largest=int(largest), sorted=1, outputs=2
        )
    elif c.dtype(work) == TYPE.INT64 or (c.opset < 10 and not isinstance(count, int)):
        work = work if dtype in FLOATS else c.cast(work, TYPE.INT64)
        values, indices = _by_rank(c, work, axis, count, largest=largest)
    else:  # of floats alone, and the greatest alone
        work = work if dtype in FLOATS else c.cast(work, TYPE.DOUBLE)  # which holds 32 bits
        turned = work if largest else c.op("Neg", work)
        values, indices = c.op("TopK", turned, c.vector([count], "k"), axis=axis, outputs=2)
        if not largest:
            values = c.op("Neg", values)
    values = c.cast(values, dtype)
    if rank == 0:
        scalar = c.ints([], "scalar")
        values, indices = c.op("Reshape", values, scalar), c.op("Reshape", indices, scalar)
    return values, indices


def _by_rank(
    c: Bench, x: gs.Tensor, axis: int, count: Size | int, *, largest: bool
) -> tuple[gs.Tensor, gs.Tensor]:
    """As `topk`: each is compared with every other to find its place in the order.

    NaN stands behind all numbers, and before them where the largest come first.
    """
    rank, length = c.rank(x), c.size(x, axis)
    if isinstance(length, int) and length > _MOST_COMPARED:
        raise Refused(f"before opset 11 each of {length} elements is compared with every other")
    after = [*range(1, rank - axis)]
    own, other = c.unsqueeze(x, [axis + 1]), c.unsqueeze(x, [axis])
    places = c.count(length)
    mine, its = c.unsqueeze(places, [1, *(i + 1 for i in after)]), c.unsqueeze(places, after)
    before = c.op("Less", own, other) if largest else c.op("Less", other, own)
    equal = c.op("Equal", own, other)
    if c.dtype(x) in FLOATS:
        strange = [c.op("IsNaN", t) for t in (own, other)]
        equal = c.op("Or", equal, c.op("And", *strange))
        one, two = strange[::-1] if largest else strange
        before = c.op("Or", before, c.op("And", one, c.op("Not", two)))
    tie = c.op("And", equal, c.op("Less", its, mine))
    before = c.cast(c.op("Or", before, tie), TYPE.INT64)
    axes = c.ints([axis + 1], "axes")
    place = c.unsqueeze(c.op("ReduceSum", before, axes, keepdims=0), [axis])
    hit = c.op("Equal", place, c.unsqueeze(c.count(count), [1, *(i + 1 for i in after)]))
    values, indices = (
        c.op("ReduceSum", c.op("Where", hit, t, c.number(0, c.dtype(t))), axes, keepdims=0)
        for t in (other, its)
    )
    return values, indices


def _sorted(c: Call) -> tuple[gs.Tensor, gs.Tensor]:
    x = c.tensor()
    rank = c.rank(x)
    if c.node.op == "msort":
        return topk(c, x, 0, c.size(x, 0) if rank else 1, largest=False)
    axis = c.axis(c.integer("dim"), rank)
    descending = bool(c.value("descending"))
    return topk(c, x, axis, c.size(x, axis) if rank else 1, largest=descending)


def _argsort(c: Call) -> gs.Tensor:
    return _sorted(c)[1]


def _msort(c: Call) -> gs.Tensor:
    return _sorted(c)[0]


def _topk(c: Call) -> tuple[gs.Tensor, gs.Tensor]:
    x = c.tensor()
    axis = c.axis(c.integer("dim"), c.rank(x))
    count = c.scalar(c.tensor("k"))
    return topk(c, x, axis, count, largest=bool(c.value("largest")))


def _unique(c: Call) -> tuple[gs.Tensor, ...]:
    x = c.tensor()
    dtype = c.dtype(x)
    work = x
    if dtype not in (TYPE.FLOAT, TYPE.DOUBLE, TYPE.INT64):
        work = c.cast(x, TYPE.FLOAT if dtype in FLOATS else TYPE.INT64)
    axis = {}
    if c.node.op == "unique_dim":
        axis = {"axis": c.axis(c.integer("dim"), c.rank(x))}
    if c.opset < 11 and not axis:
        values, inverse, counts = _of_sorted(c, c.flat(work))
    else:
        values, _, inverse, counts = c.op("Unique", work, sorted=1, outputs=4, **axis)
    if not axis:
        asked = [bool(c.value(name)) for name in ("return_inverse", "return_counts")]
        inverse = c.reshape(inverse, c.sizes(x)) if asked[0] else c.ints([], "unread")
        counts = counts if asked[1] else c.ints([], "unread")
    return c.cast(values, dtype), inverse, counts


def _unique_consecutive(c: Call) -> tuple[gs.Tensor, ...]:
    """Runs of equal elements; with a dim, of equal slices along it."""
    x, axis = c.tensor(), 0
    whole = not c.has("dim")
    if not whole:
        axis = c.axis(c.integer("dim"), c.rank(x))
    line = c.flat(x) if whole or c.rank(x) == 0 else x
    begins = _beginnings(c, line, axis)
    values = c.op("Compress", line, begins, axis=axis)
    counts = _lengths(c, begins, c.size(line, axis))
    if whole and not bool(c.value("return_inverse")):  # along a dim, PyTorch gives it in any case
        inverse = c.ints([], "unread")
    else:
        inverse = _numbers(c, begins)
        inverse = c.reshape(inverse, c.sizes(x)) if whole else inverse
    if whole and not bool(c.value("return_counts")):
        counts = c.ints([], "unread")
    return values, inverse, counts


def _of_sorted(c: Call, line: gs.Tensor) -> tuple[gs.Tensor, gs.Tensor, gs.Tensor]:
    """What Unique gives of a line, from the runs of the sorted line: no Unique is needed."""
    length = c.size(line, 0)
    values, order = topk(c, line, 0, length, largest=False)
    begins = _beginnings(c, values, 0)
    start = c.filled([length], 0, TYPE.INT64)
    inverse = c.op("ScatterElements", start, order, _numbers(c, begins), axis=0)
    return c.op("Compress", values, begins, axis=0), inverse, _lengths(c, begins, length)


def _beginnings(c: Call, line: gs.Tensor, axis: int) -> gs.Tensor:
    """Where slices along an axis differ from those before them; the first one begins a run."""
    behind, before = c.slice(line, axis, 1, 2**62), c.slice(line, axis, 0, -1)
    changes = c.op("Not", c.op("Equal", behind, before))
    if others := [i for i in range(c.rank(line)) if i != axis]:
        count = c.op("ReduceSum", c.cast(changes, TYPE.INT64), c.ints(others, "axes"), keepdims=0)
        changes = c.cast(count, TYPE.BOOL)
    first = c.slice(c.filled([c.size(line, axis)], 1, TYPE.BOOL), 0, 0, 1)
    return c.concat([first, changes], 0)


def _lengths(c: Call, begins: gs.Tensor, length: Size | int) -> gs.Tensor:
    """How long each run is."""
    places = c.flat(c.op("NonZero", begins))
    ends = c.concat([c.slice(places, 0, 1, 2**62), c.slice(c.vector([length]), 0, 0, 1)], 0)
    if isinstance(length, int) and length == 0:
        ends = places
    made: gs.Tensor = c.op("Sub", ends, places)
    return made


def _numbers(c: Call, begins: gs.Tensor) -> gs.Tensor:
    """Of the run in which each stands."""
    so_far = c.op("CumSum", c.cast(begins, TYPE.INT64), c.number(0, TYPE.INT64))
    made: gs.Tensor = c.op("Sub", so_far, c.ints([1], "one"))
    return made


def _repeat_interleave(c: Call) -> gs.Tensor:
    if c.args.schema.overload == "Tensor":
        repeats = c.tensor("repeats")
        return c.cast(_places(c, c.cast(repeats, TYPE.INT64)), c.dtype(repeats))
    x = c.tensor()
    if not c.has("dim"):
        x, axis = c.flat(x), 0
    else:
        axis = c.axis(c.integer("dim"), c.rank(x))
    if c.rank(x) == 0:
        x = c.op("Reshape", x, c.ints([1], "target"))
    given = c.tensor("repeats")
    lengths = c.sizes(x)
    array = c.facts.array(given)
    single = (array is not None and array.size == 1) or c.facts.of(given).rank == 0
    if single:
        times = c.scalar(given)
        wide = c.unsqueeze(x, [axis + 1])
        repeats_ = [1] * (len(lengths) + 1)
        tiled = c.op("Tile", wide, c.vector([*repeats_[: axis + 1], times, *repeats_[axis + 2 :]]))
        return c.reshape(
            tiled, [*lengths[:axis], c.mul(lengths[axis], times), *lengths[axis + 1 :]]
        )
    repeats = c.cast(given, TYPE.INT64)
    if not _as_many(c.shape(repeats), lengths[axis]):  # one number is for all
        repeats = c.op("Expand", repeats, c.vector([lengths[axis]]))
    return c.op("Gather", x, _places(c, repeats), axis=axis)


def _as_many(shape: tuple[Dim, ...] | None, length: Size | int) -> bool:
    """Whether there is provably one number for each element."""
    dim = dim_of(length)
    return shape is not None and dim is not None and dims.equal(shape[0], dim) is True


def _places(c: Call, repeats: gs.Tensor) -> gs.Tensor:
    """0 as often as the first number says, 1 as the second, ..."""
    ends = c.op("CumSum", repeats, c.number(0, TYPE.INT64))
    total = c.op("ReduceSum", repeats, c.ints([0], "axes"), keepdims=1)
    place = c.unsqueeze(c.count(Size(None, lambda: total)), [1])
    past = c.op("Not", c.op("Less", place, c.unsqueeze(ends, [0])))
    return c.op("ReduceSum", c.cast(past, TYPE.INT64), c.ints([1], "axes"), keepdims=0)


LOWERINGS: Mapping[str, Callable[[Call], Any]] = {
    "sort": _sorted,
    "argsort": _argsort,
    "msort": _msort,
    "topk": _topk,
    **dict.fromkeys(("_unique2", "unique_dim"), _unique),
    **dict.fromkeys(("unique_consecutive", "unique_dim_consecutive"), _unique_consecutive),
    "repeat_interleave": _repeat_interleave,
}
