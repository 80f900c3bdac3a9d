"""ScatterND and ScatterElements at computed indices: for every place, which update goes there.

Every place of the axis is compared with every index, so the work grows with their product. Of
updates for one place the last is taken, as onnxruntime does; the standard has no result for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
import onnx_graphsurgeon as gs

from surgeon import dims
from surgeon.builders.bench import TYPE, Bench, Size, dim_of
from surgeon.builders.fills import number_of
from surgeon.builders.meshes import Line, write
from surgeon.builders.scatter import combined_by, one_dtype
from surgeon.facts.kinds import FLOATS
from surgeon.match import Match, attribute_of, producer_of
from surgeon.rewrite import Draft, Refused

_LARGEST_TABLE = 1 << 22  # comparisons; beyond, the node costs less


@dataclass(frozen=True, slots=True)
class _Table:
    """Which index names which place.

    Attributes:
        equal: bool; along `axis` the places, along the next the updates.
        places: int64, 0 and on along `axis`, and of as many axes as the data.
        updates: How many there are along the axis.
        axis: Of the places.
    """

    equal: gs.Tensor
    places: gs.Tensor
    updates: Size | int
    axis: int


def scatter_lines_computed(draft: Draft, match: Match) -> gs.Tensor:
    """ScatterND at computed indices: lines of the data and of the updates, gathered from one."""
    c, node = Bench(draft), match.root
    data, indices, updates = node.inputs
    one_dtype(c, node)
    known, shape = c.shape(indices), c.shape(data)
    depth = known[-1] if known else None
    if shape is None or known is None or not isinstance(depth, int) or depth == 0:
        raise Refused("the rank of its data, or how many axes it indexes, is not known")
    if c.facts.array(indices) is not None:
        raise Refused("its indices are known beforehand")
    lengths, behind = c.sizes(data)[:depth], c.sizes(data)[depth:]
    lines = c.product(lengths)
    where = _line_numbers(c, indices, lengths)
    data = data if depth == 1 else c.reshape(data, [lines, *behind])
    if len(known) != 2:
        updates = c.reshape(updates, [c.product(c.sizes(indices)[:-1]), *behind])
    table = _table(c, where, lines, 0, 1)
    combine = combined_by(node)
    if combine:
        y = _combined(c, data, updates, table, combine)
    else:
        held = _alike(c, updates, table, data)
        y = held if held is not None else _last(c, data, updates, table)
    return y if depth == 1 else c.reshape(y, c.sizes(node.inputs[0]))


def scatter_elements_computed(draft: Draft, match: Match) -> gs.Tensor:
    """ScatterElements at computed indices: elements of the data and of the updates, gathered."""
    c, node = Bench(draft), match.root
    data, indices, updates = node.inputs
    one_dtype(c, node)
    shape, covered = c.shape(data), c.shape(indices)
    if shape is None or covered is None or len(shape) != len(covered):
        raise Refused("the ranks of its data and indices are not known, or not one")
    if c.facts.array(indices) is not None:
        raise Refused("its indices are known beforehand")
    axis = int(attribute_of(node, "axis") or 0) % len(shape)
    pairs = enumerate(zip(shape, covered, strict=True))
    corner = [Line() if i == axis else _corner(i, *pair) for i, pair in pairs]
    part = data
    for i, line in enumerate(corner):
        if line != Line():
            part = c.slice(part, i, 0, line.end)
    where = _looked_up(c, indices, c.size(data, axis), 1)
    table = _table(c, where, c.size(data, axis), axis, len(shape))
    combine = combined_by(node)
    if combine:
        new = _combined(c, part, updates, table, combine)
    else:
        held = _alike(c, updates, table, part)
        new = held if held is not None else _last(c, part, updates, table)
    return new if part is data else write(c, data, new, corner, 0, None, shape)


# ------------------------------------------------------------------ indices


def _corner(axis: int, length: dims.Dim, covered: dims.Dim) -> Line:
    """The part of an axis that the indices cover, from its first element on."""
    if dims.equal(length, covered) is True:
        return Line()
    if isinstance(length, int) and isinstance(covered, int):
        return Line(0, covered)
    raise Refused(
        f"whether its indices cover the {length} elements of axis {axis} is known at run time only"
        "; see `--shape` and `--assume`"
    )


def _looked_up(c: Bench, indices: gs.Tensor, length: Size | int, step: Size | int) -> gs.Tensor:
    """Indices among the places of their axis, each so many elements from the next.

    One from behind is counted from there, and one outside ends the run, as it did.
    """
    places = c.count(length)
    if isinstance(length, int) and isinstance(step, int):
        places = c.ints_of(np.arange(length) * step, "places")
    elif step != 1:
        places = c.op("Mul", places, c.vector([step], "step"))
    made: gs.Tensor = c.op("Gather", places, indices, axis=0)
    return made


def _line_numbers(c: Bench, indices: gs.Tensor, lengths: Sequence[Size | int]) -> gs.Tensor:
    """Which line of the data each row of indices names, as int64 of rank 1."""
    last, where = c.rank(indices) - 1, None
    for axis, length in enumerate(lengths):
        along = indices
        if len(lengths) > 1:
            along = c.op("Gather", indices, c.ints([axis], "axis"), axis=last)
        place = _looked_up(c, along, length, c.product(lengths[axis + 1 :]))
        where = place if where is None else c.op("Add", where, place)
    made: gs.Tensor = c.op("Reshape", where, c.ints([-1], "target"))
    return made


def _table(c: Bench, where: gs.Tensor, length: Size | int, axis: int, rank: int) -> _Table:
    """Every place of the axis beside every index."""
    updates = c.size(where, axis)
    _bounded([length, *c.sizes(where)])
    places = c.unsqueeze(c.count(length), list(range(1, rank - axis)))
    beside = c.unsqueeze(places, [1])  # the axis of the updates is the next
    equal = c.op("Equal", c.unsqueeze(where, [axis]), beside)
    return _Table(equal, places, updates, axis)


def _bounded(sizes: Sequence[Size | int]) -> None:
    known = list(map(dim_of, sizes))
    most = [d if isinstance(d, int) else dims.bounds(d)[1] for d in known if d is not None]
    if np.prod([max(n, 1) for n in most if n is not None], dtype=object) > _LARGEST_TABLE:
        raise Refused(f"it would compare {' times '.join(map(str, known))} places and indices")


# ------------------------------------------------------------------ updates


def _last(c: Bench, data: gs.Tensor, updates: gs.Tensor, table: _Table) -> gs.Tensor:
    """What the last update for each place is, else the data."""
    axis, length = table.axis, c.size(data, table.axis)
    number = c.count(table.updates)
    rows = c.op("Add", number, c.op("Reshape", c.vector([length]), c.ints([], "scalar")))
    rows = c.unsqueeze(rows, list(range(1, c.rank(table.equal) - axis - 1)))
    named = c.op("Where", table.equal, rows, c.number(-1, TYPE.INT64))
    last = c.op("ReduceMax", named, c.ints([axis + 1], "axes"), keepdims=0)
    source = c.op("Max", last, table.places)
    whole = c.concat([data, updates], axis)
    if c.rank(table.equal) == 2:
        return c.op("Gather", whole, source, axis=axis)
    return c.op("GatherElements", whole, source, axis=axis)


def _alike(c: Bench, updates: gs.Tensor, table: _Table, data: gs.Tensor) -> gs.Tensor | None:
    """Where all updates are one value: that, wherever an index is; None where they are not."""
    value = _value(c, updates)
    if value is None:
        return None
    counted = c.cast(table.equal, TYPE.INT32)
    hit = c.op("ReduceMax", counted, c.ints([table.axis + 1], "axes"), keepdims=0)
    hit = c.op("Greater", hit, c.number(0, TYPE.INT32))  # of no index at all the least integer
    hit = c.unsqueeze(hit, list(range(c.rank(hit), c.rank(data))))
    return c.where(hit, value, data)


def _value(c: Bench, updates: gs.Tensor) -> gs.Tensor | None:
    array = c.facts.array(updates)
    if array is not None:
        first = array.reshape(-1)[:1]
        alike = (
            array.dtype != object and array.size and array.tobytes() == first.tobytes() * array.size
        )
        return c.draft.constant(first.reshape(()), "value") if alike else None
    node = producer_of(updates)
    while node is not None and node.op in ("Reshape", "Unsqueeze", "Squeeze", "Identity"):
        node = producer_of(node.inputs[0])
    if node is not None and node.op == "Expand":
        shape = c.shape(node.inputs[0])
        if shape is not None and all(d == 1 for d in shape):
            return c.op("Reshape", node.inputs[0], c.ints([], "scalar"))
    if node is not None and node.op == "ConstantOfShape":
        return c.draft.constant(number_of(node).reshape(()), "value")
    return None


def _combined(
    c: Bench, data: gs.Tensor, updates: gs.Tensor, table: _Table, combine: str
) -> gs.Tensor:
    """The data and all updates for a place: their sum, product, greatest or least."""
    dtype, axis = c.dtype(data), table.axis
    if dtype == TYPE.BOOL:
        raise Refused("it combines booleans")
    _bounded([c.size(data, axis), *c.sizes(updates)])
    wide = TYPE.FLOAT if dtype in (TYPE.FLOAT16, TYPE.BFLOAT16) else dtype
    data, updates = c.cast(data, wide), c.unsqueeze(c.cast(updates, wide), [axis])
    rank = c.rank(updates)
    equal = c.unsqueeze(table.equal, list(range(c.rank(table.equal), rank)))
    axes = c.ints([axis + 1], "axes")
    neutral = c.number(_neutral(combine, wide), wide)
    reduce = {"Add": "ReduceSum", "Mul": "ReduceProd", "Max": "ReduceMax", "Min": "ReduceMin"}
    taken = c.where(equal, updates, neutral)
    found = c.op(reduce[combine], taken, axes, keepdims=0)
    if combine in ("Add", "Mul"):
        return c.cast(c.op(combine, data, found), dtype)
    if dtype in FLOATS:  # reductions leave NaN out, or not, as they come to it
        lost = c.op("And", equal, c.op("IsNaN", updates))
        lost = c.op("ReduceMax", c.cast(lost, TYPE.INT32), axes, keepdims=0)
        lost = c.op("Greater", lost, c.number(0, TYPE.INT32))
        found = c.where(lost, c.number(np.nan, wide), found)
    return c.cast(c.op(combine, data, found), dtype)


def _neutral(combine: str, dtype: int) -> Any:
    if combine in ("Add", "Mul"):
        return 0 if combine == "Add" else 1
    kind = onnx.helper.tensor_dtype_to_np_dtype(dtype)
    if dtype in FLOATS:
        return -np.inf if combine == "Max" else np.inf
    return np.iinfo(kind).min if combine == "Max" else np.iinfo(kind).max
