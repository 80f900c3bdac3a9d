"""Places of several axes beside a slice, which exporters flatten one by one."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_graphsurgeon as gs

from surgeon import dims
from surgeon.builders.bench import Bench
from surgeon.dims import Dim
from surgeon.facts.fact import Array, same_dims
from surgeon.links import maker_of
from surgeon.match import Match
from surgeon.rewrite import Draft, Refused


def places_in_their_axes(draft: Draft, match: Match) -> gs.Tensor:
    """`x[i, j, :] = v` of indices with several axes, in those that the values have for them.

    PyTorch makes a column of each index where a slice follows, so that they broadcast against its
    Range, and those of different lengths against nothing. Where the node runs all the same, each is
    of one place or of all, and both broadcast and say the same in their own axes.
    """
    c, node = Bench(draft), match.root
    data, indices, updates = node.inputs
    view = maker_of(updates)
    whole = c.shape(data)
    if whole is None or view is None or view.op != "Reshape":
        raise Refused("its updates are not put into the shape of its indices")
    columns, values = _columns(c, indices), view.inputs[0]
    shape = c.shape(values) or ()
    room = len(shape) - len(whole) + len(columns)
    slices = _slices(c, columns)
    if not slices or room - slices < 2:
        raise Refused(
            "its indices are no columns beside a slice, or the values have no axes for them"
        )
    axes, heads, tails = shape[: room - slices], columns[:-slices], columns[-slices:]
    lengths = [_length(c, t) for t in heads]
    if all(dims.equal(length, lengths[0]) is True for length in lengths):
        raise Refused("its indices are of one length, and belong together as they stand")
    behind = (*(_length(c, t) for t in tails), *whole[len(columns) :])
    if not same_dims(behind, shape[room - slices :]):
        raise Refused("its values are not as long as the slice and what is behind it")
    ones = range(len(axes), room)
    placed = [c.unsqueeze(_in_axes(c, t, values, axes), ones) for t in heads] + tails
    sizes = c.vector(c.sizes(values)[:room])
    each = [c.unsqueeze(c.op("Expand", t, sizes), [room]) for t in placed]
    y: gs.Tensor = c.op("ScatterND", data, c.concat(each, room), values)
    return y


def _columns(c: Bench, indices: gs.Tensor) -> list[gs.Tensor]:
    """The index into each axis, before they are expanded against each other and joined."""
    joined = maker_of(indices)
    if joined is None or joined.op != "Concat":
        raise Refused("its indices are not joined")
    return [_column(c, part) for part in joined.inputs]


def _column(c: Bench, part: gs.Tensor) -> gs.Tensor:
    array = c.facts.array(part)
    if array is not None and array.dtype != object and array.ndim > 1:
        return c.ints_of(_line(array[..., 0]))
    last = maker_of(part)
    wide = maker_of(last.inputs[0]) if last is not None and last.op == "Unsqueeze" else None
    if wide is None or wide.op != "Expand" or not c.facts.of(wide.inputs[0]).rank:
        raise Refused("its indices are not expanded against each other")
    return wide.inputs[0]


def _line(array: Array) -> Array:
    """Places without the axes that they are repeated along, but for ones behind their own."""
    varying = [i for i in range(array.ndim) if (array != array.take([0], i)).any()]
    if len(varying) > 1:
        raise Refused("its indices are not expanded against each other")
    along = varying[0] if varying else 0
    first = tuple(
        0 if i < along else slice(None) if i == along else slice(1) for i in range(array.ndim)
    )
    line: Array = array[first] if varying else array[tuple(slice(1) for _ in range(array.ndim))]
    return line


def _slices(c: Bench, columns: Sequence[gs.Tensor]) -> int:
    """How many slices follow the indices; 0 where these are no columns beside any."""
    for count in range(1, len(columns) - 1):
        heads, tails = columns[:-count], columns[-count:]
        fits = all(_is_column(c, t, count + 1) for t in heads)
        if fits and all(_is_column(c, t, count - i) for i, t in enumerate(tails)):
            return count
    return 0


def _is_column(c: Bench, t: gs.Tensor, rank: int) -> bool:
    shape = c.shape(t)
    return shape is not None and len(shape) == rank and all(size == 1 for size in shape[1:])


def _length(c: Bench, t: gs.Tensor) -> Dim:
    return (c.shape(t) or (1,))[0]


def _in_axes(c: Bench, t: gs.Tensor, values: gs.Tensor, axes: Sequence[Dim]) -> gs.Tensor:
    """An index in the axes that it had, or in those that its length says.

    Raises:
        Refused: Neither is provable.
    """
    view = maker_of(t)
    source = view.inputs[0] if view is not None and view.op == "Reshape" else None
    before = None if source is None else c.shape(source)
    if source is not None and before and len(before) <= len(axes):
        pairs = zip(reversed(before), reversed(axes), strict=False)
        if all(size == 1 or dims.equal(size, axis) is True for size, axis in pairs):
            return source
    length = _length(c, t)
    if dims.equal(dims.product(axes), length) is True:
        return c.reshape(t, c.sizes(values)[: len(axes)])
    alike = [a for a, size in enumerate(axes) if dims.equal(size, length) is True]
    if len(alike) == 1:
        return c.unsqueeze(c.flat(t), [a for a in range(len(axes)) if a != alike[0]])
    raise Refused(f"which of the axes of its values its index of {length} goes along is not known")
