"""What stands at a place in the order: quantiles, medians without NaN, and the most frequent."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import onnx_graphsurgeon as gs

from surgeon.builders.aten_math.ordered import of_nothing
from surgeon.builders.aten_shape.call import TYPE, Call
from surgeon.builders.aten_shape.indices import gather
from surgeon.builders.aten_shape.order import topk
from surgeon.builders.nearer import between
from surgeon.facts.kinds import FLOATS
from surgeon.rewrite import Refused

_REAL = (TYPE.FLOAT, TYPE.DOUBLE)
_INTEGERS = (TYPE.INT32, TYPE.INT64)


def _in_rows(c: Call) -> tuple[gs.Tensor, int | None]:
    """The input with the axis of the order last, and which it was; None for all of them."""
    x = c.tensor()
    if not c.args.schema.takes("dim") or c.value("dim") is None:
        return c.flat(x), None
    rank = c.rank(x)
    axis = c.axis(c.integer("dim"), rank)
    if rank == 0:
        return c.flat(x), 0
    order = [i for i in range(rank) if i != axis] + [axis]
    return c.permute(x, order), axis


def _put_back(c: Call, y: gs.Tensor, axis: int | None) -> gs.Tensor:
    """A result without the axis of the order, in the shape that `keepdim` asks for."""
    if not c.args.schema.takes("keepdim") or not bool(c.value("keepdim")):
        return y
    rank = c.rank(c.tensor())
    if rank == 0:
        return y
    return c.unsqueeze(y, [axis] if axis is not None else list(range(rank)))


def _known_length(c: Call, x: gs.Tensor) -> None:
    if c.size(x, c.rank(x) - 1) == 0:
        raise Refused("it has no elements to order")


def _sorted(c: Call, x: gs.Tensor) -> tuple[gs.Tensor, gs.Tensor, gs.Tensor]:
    """A row in order with NaN at its end as infinity, the order, and how many are no NaN."""
    last, dtype = c.rank(x) - 1, c.dtype(x)
    if dtype not in FLOATS:
        values, order = topk(c, x, last, c.size(x, last), largest=False)
        return values, order, c.vector([c.size(x, last)], "length")
    strange = c.op("IsNaN", x)
    clean = c.where(strange, c.number(np.inf, dtype), x)
    values, order = topk(c, clean, last, c.size(x, last), largest=False)
    numbers = c.cast(c.op("Not", strange), TYPE.INT64)
    count = c.op("ReduceSum", numbers, c.ints([last], "axes"), keepdims=1)
    return values, order, count


def _quantile(c: Call) -> gs.Tensor:
    """Between the two neighbours of q (n - 1), or one of them; NaN where there is one."""
    x, axis = _in_rows(c)
    dtype = c.dtype(x)
    if dtype not in _REAL:
        raise Refused("PyTorch has quantiles of single and double precision alone")
    _known_length(c, x)
    way = str(c.value("interpolation"))
    if way not in ("linear", "lower", "higher", "midpoint", "nearest"):
        raise Refused(f"PyTorch has no interpolation {way!r}")
    last = c.rank(x) - 1
    q = c.cast(c.tensor("q"), dtype)
    many = c.rank(q) == 1
    q = c.flat(q)
    values, _, count = _sorted(c, x)
    length = c.vector([c.size(x, last)], "length")
    clean = c.op("Equal", count, length)
    share = count if c.node.op == "nanquantile" else length
    steps = c.op("Sub", c.cast(share, dtype), c.number(1, dtype))
    place = c.op("Max", c.op("Mul", q, steps), c.number(0, dtype))
    found = _between(c, values, place, way)
    none = c.op("Equal", count, c.ints([0], "none"))
    spoilt = none if c.node.op == "nanquantile" else c.op("Not", clean)
    found = c.where(spoilt, c.number(np.nan, dtype), found)
    if not many:
        return _put_back(c, c.squeeze(found, [last]), axis)
    found = c.permute(found, [last, *range(last)])
    if not bool(c.value("keepdim")):
        return found
    rank = c.rank(c.tensor())
    axes = [] if rank == 0 else [axis + 1] if axis is not None else list(range(1, rank + 1))
    return c.unsqueeze(found, axes)


def _between(c: Call, values: gs.Tensor, place: gs.Tensor, way: str) -> gs.Tensor:
    dtype = c.dtype(values)
    if way == "nearest":
        return _at(c, values, c.op("Round", place))
    if way in ("lower", "higher"):
        return _at(c, values, c.op("Floor" if way == "lower" else "Ceil", place))
    low = c.op("Floor", place)
    below, above = _at(c, values, low), _at(c, values, c.op("Ceil", place))
    rest = c.number(0.5, dtype) if way == "midpoint" else c.op("Sub", place, low)
    return between(c, below, above, rest)


def _at(c: Call, values: gs.Tensor, place: gs.Tensor) -> gs.Tensor:
    """The elements of each row at places that the rows share, or have of their own."""
    index, last = c.cast(place, TYPE.INT64), c.rank(values) - 1
    if c.rank(index) == 1:
        return c.op("Gather", values, index, axis=last)
    wide = c.vector([*c.sizes(values)[:last], c.size(index, c.rank(index) - 1)])
    return gather(c, values, c.op("Expand", index, wide), last)


def _nan_median(c: Call) -> tuple[gs.Tensor, gs.Tensor]:
    """The lower of the two in the middle of what is no NaN."""
    x, axis = _in_rows(c)
    dtype = c.dtype(x)
    if dtype == TYPE.BOOL:
        raise Refused("PyTorch has no median of booleans")
    if axis is None and c.sizes(x) == [0]:
        return c.number(of_nothing(dtype), dtype), c.number(0, TYPE.INT64)
    _known_length(c, x)
    last = c.rank(x) - 1
    values, order, count = _sorted(c, x)
    middle = c.op("Div", c.op("Sub", count, c.ints([1], "one")), c.ints([2], "two"))
    middle = c.op("Max", middle, c.ints([0], "zero"))
    if dtype in FLOATS:
        none = c.op("Equal", count, c.ints([0], "none"))
        value = c.where(none, c.number(np.nan, dtype), gather(c, values, middle, last))
        index = c.where(none, c.number(0, TYPE.INT64), gather(c, order, middle, last))
    else:
        value, index = (c.op("Gather", t, middle, axis=last) for t in (values, order))
    return _put_back(c, c.squeeze(value, [last]), axis), _put_back(
        c, c.squeeze(index, [last]), axis
    )


def _mode(c: Call) -> tuple[gs.Tensor, gs.Tensor]:
    """The least of the most frequent values, and where it stands last."""
    x, axis = _in_rows(c)
    dtype = c.dtype(x)
    if dtype not in (*_REAL, *_INTEGERS):  # compared in what holds them
        x = c.cast(x, TYPE.FLOAT if dtype in FLOATS else TYPE.INT32)
    _known_length(c, x)
    last = c.rank(x) - 1
    equal = c.op("Equal", c.unsqueeze(x, [last + 1]), c.unsqueeze(x, [last]))
    often = c.op("ReduceSum", c.cast(equal, TYPE.INT64), c.ints([last + 1], "axes"), keepdims=0)
    axes = c.ints([last], "axes")
    most = c.op("Equal", often, c.op("ReduceMax", often, axes, keepdims=1))
    greatest = c.op("ReduceMax", x, axes, keepdims=1)
    least = c.op("ReduceMin", c.where(most, x, greatest), axes, keepdims=1)
    here = c.cast(c.op("Equal", x, least), TYPE.INT64)
    place = c.op("Mul", here, c.count(c.size(x, last)))
    index = c.op("ReduceMax", place, axes, keepdims=0)
    least = c.cast(c.squeeze(least, [last]), dtype)
    return _put_back(c, least, axis), _put_back(c, index, axis)


LOWERINGS: Mapping[str, Callable[[Call], Any]] = {
    **dict.fromkeys(("quantile", "nanquantile"), _quantile),
    "nanmedian": _nan_median,
    "mode": _mode,
}
