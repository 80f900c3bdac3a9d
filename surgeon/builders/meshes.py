"""Places of a mesh: along each axis of the data a line of indices, and every combination of them.

So exporters write `data[:, 1:3] = updates`: a Range, constants or a slice of either for each axis,
expanded against each other and joined.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import onnx_graphsurgeon as gs

from surgeon import dims
from surgeon.builders.bench import LARGEST, TYPE, Bench, Size
from surgeon.builders.chains import lone_cut
from surgeon.dims import Dim
from surgeon.facts.fact import Array
from surgeon.match import producer_of
from surgeon.rewrite import Refused

BETWEEN = ("Expand", "Reshape", "Unsqueeze", "Squeeze", "Cast", "Identity", "Slice")
# Types that hold every place of a tensor.
WIDE = (TYPE.INT32, TYPE.INT64, TYPE.UINT32, TYPE.UINT64, TYPE.FLOAT, TYPE.DOUBLE)
LARGEST_MASK = 1 << 20  # elements of a constant mask; beyond, the node costs less


@dataclass(frozen=True, slots=True)
class Line:
    """The indices into one axis: a slice of it, or single places.

    Attributes:
        start: Where the slice begins, as Slice has it.
        end: Where it ends; `LARGEST` for the end of the axis.
        values: The places, without twins; None for a slice.
        along: The axis of the places' own shape that the line runs along; None for one place.
        limit: For a count from 0, the length that it counts to.
        counted: The places of such a count, as the model computes them.
    """

    start: int = 0
    end: int = LARGEST
    values: Array | None = None
    along: int | None = None
    limit: Dim | None = None
    counted: gs.Tensor | None = None


def line_of(values: Array, along: int | None = None) -> Line:
    """Constant places as a slice, where they follow one another."""
    low, high = int(values[0]), int(values[-1]) + 1
    if (values == np.arange(low, low + len(values))).all() and (low >= 0) == (high > 0):
        return Line(low, LARGEST if low < 0 and high == 0 else high, None, along)
    if len(np.unique(values)) < len(values):
        raise Refused("an index stands twice, for which the standard gives no result")
    return Line(0, 0, values, along)


def write(
    c: Bench,
    data: gs.Tensor,
    new: gs.Tensor,
    lines: Sequence[Line],
    first: int,
    combine: str | None,
    shape: Sequence[Dim],
    depth: int = 0,
) -> gs.Tensor:
    """`data` with `new` at every combination of places.

    Args:
        c: Where the nodes are made.
        data: What is written into; of the axes that were cut already, the part.
        new: As long as the lines along their axes, else as `data`.
        lines: The places along the axes from `first` on.
        first: The axis of the first line.
        combine: An operator that joins what is there with what is new, or None.
        shape: Of the whole data.
        depth: How many of the lines are done.
    """
    open_lines = [i for i in range(depth, len(lines)) if not is_whole(lines[i], shape[first + i])]
    if not open_lines:
        return c.op(combine, data, new) if combine else new
    line, axis = lines[depth], first + depth
    if depth not in open_lines:
        return write(c, data, new, lines, first, combine, shape, depth + 1)
    if len(open_lines) > 1 or combine:
        part = _part(c, data, line, axis)
        new = write(c, part, new, lines, first, combine, shape, depth + 1)
    if line.values is not None:
        return _chosen(c, data, new, line.values, axis, shape)
    parts = [new] if line.start == 0 else [c.slice(data, axis, 0, line.start), new]
    if line.end != LARGEST and not dims.equal(shape[axis], line.end):
        parts.append(c.slice(data, axis, line.end, LARGEST))
    return c.concat(parts, axis)


def is_whole(line: Line, length: Dim) -> bool:
    """Whether a line runs along the whole of an axis."""
    if line.values is not None or line.start != 0:
        return False
    return line.end == LARGEST or dims.equal(length, line.end) is True


def _part(c: Bench, data: gs.Tensor, line: Line, axis: int) -> gs.Tensor:
    if line.values is None:
        return c.slice(data, axis, line.start, line.end)
    return c.op("Gather", data, c.ints_of(line.values), axis=axis)


def _chosen(
    c: Bench, data: gs.Tensor, new: gs.Tensor, places: Array, axis: int, shape: Sequence[Dim]
) -> gs.Tensor:
    """Single places of an axis, chosen by a mask."""
    length = shape[axis]
    if not isinstance(length, int):
        raise Refused(
            f"it writes along a dimension of {length}, known at run time only; see `--shape`"
        )
    if length > LARGEST_MASK:
        raise Refused(f"a mask of [{length}] would be a large constant")
    number, held = np.zeros(length, np.int64), np.zeros(length, bool)
    number[places], held[places] = np.arange(len(places)), True
    wide = c.op("Gather", new, c.ints_of(number, "lines"), axis=axis)
    mask = held.reshape([length, *[1] * (len(shape) - 1 - axis)])
    return c.where(c.draft.constant(mask, "mask"), wide, data)


# ------------------------------------------------------------------ reading a mesh


def lines_of(
    c: Bench, indices: gs.Tensor, shape: Sequence[Dim], *, read: bool = False
) -> list[Line]:
    """The lines that the indices are the mesh of, one for each axis of `shape` that they index.

    Where they are read at, and not written to, a count may be of another length than the axis.

    Raises:
        Refused: They are not provably a mesh, or one place may stand twice.
    """
    whole = c.shape(indices)
    if whole is None or not isinstance(whole[-1], int):
        raise Refused("the shape of its indices is not known")
    parts = [line_through(c, t) for t in _columns(c, indices, whole[-1])]
    lines = [
        line if read and _is_count(line) else _counted(line, d)
        for line, d in zip(parts, shape, strict=False)
    ]
    used = [line.along for line in lines if line.along is not None]
    if used != sorted(set(used)):
        raise Refused("its indices do not follow the order of the axes")
    if any(d != 1 and axis not in used for axis, d in enumerate(whole[:-1])):
        raise Refused("whether a place is written twice is known at run time only")
    return lines


def _is_count(line: Line) -> bool:
    """Whether it is a count from 0 with all of its places."""
    return line.limit is not None and (line.start, line.end) == (0, LARGEST)


def _columns(c: Bench, indices: gs.Tensor, count: int) -> list[gs.Tensor]:
    """The indices into each axis."""
    node, array = producer_of(indices), c.facts.array(indices)
    if count == 1:
        return [indices]
    if array is not None and array.dtype != object:
        return [c.ints_of(array[..., i : i + 1]) for i in range(count)]
    if node is None or node.op != "Concat" or len(node.inputs) != count:
        raise Refused("its indices are known at run time only")
    return list(node.inputs)


def _counted(line: Line, length: Dim) -> Line:
    """The line for an axis of this length: a count must be of just that, places within it."""
    if line.limit is not None and dims.equal(line.limit, length) is not True:
        raise Refused(f"whether it counts to {length} is known at run time only")
    values = line.values
    if values is None:
        return line
    if isinstance(length, int):
        if ((values < -length) | (values >= length)).any():
            raise Refused(f"it writes outside the {length} elements of an axis")
        values = np.where(values < 0, values + length, values)
    elif (values < 0).any() and not (values < 0).all():
        raise Refused(f"whether two places on {length} elements are one is not provable")
    return line_of(values, line.along)


def line_through(c: Bench, t: gs.Tensor) -> Line:
    """The line that a tensor of indices repeats along its other axes."""
    array, node = c.facts.array(t), producer_of(t)
    if array is not None and array.dtype != object:
        return _constant(array.astype(np.int64))
    if node is None or c.shape(t) is None:
        raise Refused("its indices are known at run time only")
    if node.op == "Range":
        return _count(c, node)
    if node.op not in BETWEEN:
        raise Refused("its indices are known at run time only")
    return line_behind(c, node, line_through(c, node.inputs[0]))


def line_behind(c: Bench, node: gs.Node, inner: Line) -> Line:
    """The line that a node out of `BETWEEN` makes of one."""
    before, shape = c.shape(node.inputs[0]), c.shape(node.outputs[0])
    if node.op == "Slice":
        return _sliced(c, node, inner)
    if node.op == "Cast" and int(node.attrs["to"]) not in WIDE:
        raise Refused("in so few bits its indices may wrap around")
    if inner.along is None or before is None or shape is None or node.op in ("Cast", "Identity"):
        return inner
    if node.op == "Expand":
        along = inner.along + len(shape) - len(before)
        if dims.equal(before[inner.along], shape[along]) is not True:
            raise Refused("whether a place is written twice is known at run time only")
        return replace(inner, along=along)
    large, small = ([i for i, d in enumerate(s) if d != 1] for s in (before, shape))
    if len(large) != len(small) or inner.along not in large:
        raise Refused("its indices are put into another shape")
    along = small[large.index(inner.along)]
    # as long as before, and as many elements in front
    same = dims.equal(before[inner.along], shape[along]) is True
    front = [dims.product(s[:axis]) for s, axis in ((before, inner.along), (shape, along))]
    if not same or dims.equal(*front) is not True:
        raise Refused("its indices are put into another shape")
    return replace(inner, along=along)


def _constant(array: Array) -> Line:
    if not array.size:
        raise Refused("it has no indices")
    varying = [i for i in range(array.ndim) if (array != array.take([0], i)).any()]
    if len(varying) > 1:
        raise Refused("its indices are no mesh")
    if not varying:
        return Line(0, 0, array.reshape(-1)[:1], None)
    line = np.moveaxis(array, varying[0], 0).reshape(array.shape[varying[0]], -1)[:, 0]
    return Line(0, 0, line, varying[0])


def _count(c: Bench, node: gs.Node) -> Line:
    values = [c.facts.of(t).value for t in node.inputs]
    if any(v is None for v in values):
        raise Refused("its indices are known at run time only")
    first, limit, step = (v.reshape(-1).tolist()[0] for v in values if v is not None)
    if first != 0 or step != 1:
        raise Refused("its indices do not count from 0 in ones")
    return Line(along=0, limit=limit, counted=node.outputs[0])


def _sliced(c: Bench, node: gs.Node, line: Line) -> Line:
    """A slice of a count."""
    cut = lone_cut(c.facts, node)
    if cut is None:
        raise Refused("the bounds of its slice are known at run time only")
    start, end, axis, step = cut
    if not _is_count(line) or step != 1 or axis % max(c.rank(node.inputs[0]), 1) != line.along:
        raise Refused("its indices are no plain slice of a count")
    if end < LARGEST and ((start < 0) != (end < 0) or start > end):
        raise Refused(f"whether {start} stands before {end} is known at run time only")
    return replace(line, start=start, end=min(end, LARGEST))


def lengths_of(c: Bench, indices: gs.Tensor, lines: Sequence[Line]) -> list[Size | int]:
    """How many places each line has."""
    return [1 if line.along is None else c.size(indices, line.along) for line in lines]
