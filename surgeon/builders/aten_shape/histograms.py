"""Histograms of one dimension and of several: bins between borders, given or evenly laid."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import onnx_graphsurgeon as gs

from surgeon.builders.aten_shape.call import LARGEST, TYPE, Call, Size
from surgeon.builders.aten_shape.counts import counted
from surgeon.rewrite import Refused

_MOST_BINS = 1 << 16  # of all dimensions together: each is compared with every sample


# So many ones a half counts one by one: the next is lost to rounding.
_COUNTED: Mapping[int, int] = {TYPE.FLOAT16: 1 << 11, TYPE.BFLOAT16: 1 << 8}


def _histc(c: Call) -> gs.Tensor:
    """Bins of one width from `min` to `max`, the last with its upper border.

    Runtimes compute halves in single precision: each result is rounded by casts.
    """
    x = c.flat(c.tensor())
    own, bins = c.dtype(x), c.counted("bins")
    is_old = c.facts.model.is_before(1, 11)
    many = c.size(x, 0)
    if own not in _COUNTED or is_old or not isinstance(many, int) or many > _COUNTED[own]:
        _check(own)
    dtype = TYPE.FLOAT if own in _COUNTED else own

    x = c.cast(x, dtype)
    low, high = (c.through(y, own) for y in _borders(c, x, dtype))
    width, above = (c.through(c.op("Sub", y, low), own) for y in (high, x))
    count = c.through(_in(c, bins, dtype), own)
    if is_old:  # the quotient came first
        ratio = c.op("Mul", c.op("Div", above, width), count)
    else:
        ratio = c.through(c.op("Div", c.through(c.op("Mul", above, count), own), width), own)
    # NaN is neither below nor above, and no number either
    strange = c.op("Or", c.op("Less", x, low), c.op("Less", high, x))
    strange = c.op("Or", strange, c.op("IsNaN", x))
    last = _in(c, c.sub(bins, 1), dtype)
    ratio = c.op("Where", strange, c.number(-1, dtype), c.op("Min", c.op("Floor", ratio), last))
    return c.cast(counted(c, c.cast(ratio, TYPE.INT64), bins, None), own)


def _in(c: Call, number: Size | int, dtype: int) -> gs.Tensor:
    """A number of bins in a dtype; it may be known at run time only."""
    return c.number(number, dtype) if isinstance(number, int) else c.cast(number.tensor, dtype)


def _check(dtype: int) -> None:
    if dtype in (TYPE.FLOAT16, TYPE.BFLOAT16):
        raise Refused("PyTorch counts in half precision too, where what is many is counted wrong")
    if dtype not in (TYPE.FLOAT, TYPE.DOUBLE):
        raise Refused("PyTorch has no histogram of integers")


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
    _check(dtype)
    if c.args.schema.overload == "bins_tensor":
        edges = c.tensor("bins")
        if c.dtype(edges) != dtype or c.rank(edges) != 1:
            raise Refused("its borders are no row in the dtype of its input")
    else:
        edges = _even_borders(c, x, c.integer("bins"), c.value("range"))
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


def _even_borders(c: Call, x: gs.Tensor, bins: int, given: Any) -> gs.Tensor:
    """From one end to the other, counted from the nearer end as `linspace` does."""
    dtype = c.dtype(x)
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


def _several(c: Call) -> gs.Tensor:
    """Samples on the last axis, a bin for each of their coordinates; the last bins have their ends.

    What lies outside along one dimension is in no bin.
    """
    x = c.tensor()
    dtype, columns = c.dtype(x), _columns(c, x)
    borders = _borders_of_several(c, columns)
    lengths = [c.size(edges, 0) for edges in borders]
    bins = [length - 1 for length in lengths if isinstance(length, int)]
    if len(bins) < len(lengths) or not all(n > 0 for n in bins):
        raise Refused("how many bins it has is known at run time only")
    if np.prod(bins) > _MOST_BINS:
        raise Refused(f"it has {np.prod(bins)} bins; each is compared with every sample")
    place, outside = c.number(0, TYPE.INT64), None
    for column, edges, count in zip(columns, borders, bins, strict=True):
        low, high = c.slice(edges, 0, 0, 1), c.slice(edges, 0, -1, LARGEST)
        wide, begins = c.unsqueeze(column, [1]), c.slice(edges, 0, 0, -1)
        reached = c.cast(c.op("Not", c.op("Less", wide, begins)), TYPE.INT64)
        mine = c.op("ReduceSum", reached, c.ints([1], "axes"), keepdims=0)
        place = c.op("Add", c.op("Mul", place, c.ints([count], "bins")), mine)
        place = c.op("Sub", place, c.ints([1], "one"))
        beyond = c.op("Or", c.op("Less", column, low), c.op("Less", high, column))
        beyond = c.op("Or", beyond, c.op("IsNaN", column))
        outside = beyond if outside is None else c.op("Or", outside, beyond)
    assert outside is not None
    place = c.where(outside, c.ints([-1], "none"), place)
    weight = c.args.optional("weight")
    weight = None if weight is None else c.flat(c.cast(weight, dtype))
    found = c.cast(counted(c, place, int(np.prod(bins)), weight), dtype)
    found = c.reshape(found, bins)
    return _dense(c, found, borders) if c.value("density") else found


def _columns(c: Call, x: gs.Tensor) -> list[gs.Tensor]:
    """The coordinates of all samples, one by one."""
    _check(c.dtype(x))
    rank = c.rank(x)
    depth = c.size(x, rank - 1) if rank > 1 else None
    if not isinstance(depth, int) or depth < 1:
        raise Refused("how many coordinates a sample has is not known")
    rows = c.op("Reshape", x, c.ints([-1, depth], "rows"))
    return [c.op("Gather", rows, c.number(i, TYPE.INT64), axis=1) for i in range(depth)]


def edges_of_several(c: Call, count: int) -> list[gs.Tensor]:
    """The list of borders that comes with the counts."""
    return _borders_of_several(c, _columns(c, c.tensor()))


def _borders_of_several(c: Call, columns: list[gs.Tensor]) -> list[gs.Tensor]:
    """The borders along each dimension."""
    bins = next(p for p in c.args.schema.parameters if p.name == "bins")
    counts: list[int] = []
    if bins.type == "Tensor":
        borders = c.args.tensors("bins")
        number = c.facts.array(borders[0]) if len(borders) == 1 else None
        if number is not None and not number.ndim:  # one count for all, which is no list
            counts = [int(number)] * len(columns)
    if bins.type == "Tensor" and not counts:
        if len(borders) != len(columns):
            raise Refused(f"it has {len(borders)} rows of borders for {len(columns)} dimensions")
        if any(c.rank(e) != 1 or c.dtype(e) != c.dtype(columns[0]) for e in borders):
            raise Refused("its borders are no rows in the dtype of its input")
        return borders
    counts = counts or [int(n) for n in np.ravel(c.value("bins"))]
    counts = counts * len(columns) if not bins.is_list else counts
    given = c.value("range")
    if len(counts) != len(columns) or (given is not None and len(given) != 2 * len(columns)):
        raise Refused(f"its bins or their range are not those of {len(columns)} dimensions")
    ranges = [None if given is None else given[2 * i : 2 * i + 2] for i in range(len(columns))]
    return [_even_borders(c, *each) for each in zip(columns, counts, ranges, strict=True)]


def _dense(c: Call, found: gs.Tensor, borders: list[gs.Tensor]) -> gs.Tensor:
    """Shares of the sum, for each unit of volume."""
    found = c.op("Div", found, c.op("ReduceSum", found, keepdims=0))
    for axis, edges in enumerate(borders):
        widths = c.op("Sub", c.slice(edges, 0, 1, LARGEST), c.slice(edges, 0, 0, -1))
        behind = len(borders) - axis - 1
        widths = c.unsqueeze(widths, range(1, behind + 1)) if behind else widths
        found = c.op("Div", found, widths)
    return found


_SEVERAL = ("histogramdd", "_histogramdd_from_bin_cts", "_histogramdd_from_bin_tensors")
LOWERINGS: Mapping[str, Callable[[Call], Any]] = {
    "histc": _histc,
    "histogram": _histogram,
    **dict.fromkeys(_SEVERAL, _several),
}
