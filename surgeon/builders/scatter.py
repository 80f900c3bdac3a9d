"""ScatterND and ScatterElements at indices known beforehand: Slice and Concat, or Gather and Where.

The standard gives no result for an index that stands twice, so such a node is left as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx_graphsurgeon as gs

from surgeon import dims
from surgeon.builders.bench import LARGEST, Bench, Size
from surgeon.builders.selections import producer_of
from surgeon.dims import Dim
from surgeon.facts.fact import Array
from surgeon.match import Match, attribute_of
from surgeon.rewrite import Draft, Refused

_LARGEST_MASK = 1 << 20  # elements of the constant mask; beyond, the node costs less
_COMBINED = {"add": "Add", "mul": "Mul", "max": "Max", "min": "Min"}


@dataclass(frozen=True, slots=True)
class _Lines:
    """What a scatter writes: a line of the updates at each place of some axes of the data.

    Attributes:
        data: What is written into.
        axis: The first of the axes that the places speak of.
        places: [lines, axes], no two alike; counted from the front, but on an axis of run-time
            length maybe all from behind.
        updates: As the node has them.
        planes: Whether they lie along `axis`, one line after the other; a ScatterND's may lie along
            several axes in front.
        combine: The operator of `reduction`; None where the update replaces the element.
    """

    data: gs.Tensor
    axis: int
    places: Array
    updates: gs.Tensor
    planes: bool
    combine: str | None


def scatter_box(draft: Draft, match: Match) -> gs.Tensor:
    """A scatter at every place of a box, in any order: the box between slices of the data."""
    c = Bench(draft)
    lines = _lines(c, match.root)
    places = lines.places
    if not places.size:
        return lines.data
    low, high = places.min(0), places.max(0) + 1
    if int(np.prod(high - low, dtype=object)) != len(places):
        raise Refused("its indices do not fill a box")
    order, sizes = np.lexsort(places.T[::-1]), [int(n) for n in high - low]
    if (order != np.arange(len(order))).any():
        new = c.op("Gather", _flat(c, lines), c.ints_of(order, "order"), axis=lines.axis)
    else:
        new = lines.updates
    if not lines.planes:
        new = c.reshape(new, [*sizes, *c.sizes(lines.data)[len(sizes) :]])
    box = [(int(a), int(b)) for a, b in zip(low, high, strict=True)]
    return _between(c, lines, lines.data, new, box)


def _between(
    c: Bench,
    lines: _Lines,
    data: gs.Tensor,
    new: gs.Tensor,
    box: Sequence[tuple[int, int]],
    depth: int = 0,
) -> gs.Tensor:
    """`data` with the box of its axes from `depth` on written: before it, the box, behind it."""
    shape, axis = c.shape(lines.data), lines.axis + depth
    assert shape is not None
    open_axes = [i for i in range(depth, len(box)) if not _is_whole(shape[lines.axis + i], *box[i])]
    if not open_axes:
        return c.op(lines.combine, data, new) if lines.combine else new
    low, high = box[depth]
    if depth not in open_axes:
        return _between(c, lines, data, new, box, depth + 1)
    end = LARGEST if low < 0 and high == 0 else high
    if len(open_axes) > 1 or lines.combine:
        new = _between(c, lines, c.slice(data, axis, low, end), new, box, depth + 1)
    parts = [new] if low == 0 else [c.slice(data, axis, 0, low), new]
    if end != LARGEST and not dims.equal(shape[axis], end):
        parts.append(c.slice(data, axis, end, LARGEST))
    return c.concat(parts, axis)


def _is_whole(length: Dim, low: int, high: int) -> bool:
    return low == 0 and dims.equal(length, high) is True


def scatter_grid(draft: Draft, match: Match) -> gs.Tensor:
    """A scatter at constant places: the line for each place is gathered, and chosen by a mask."""
    c = Bench(draft)
    lines = _lines(c, match.root)
    shape, depth = c.shape(lines.data), lines.places.shape[1]
    assert shape is not None
    inside = shape[lines.axis : lines.axis + depth]
    lengths = [d for d in inside if isinstance(d, int)]
    if len(lengths) < depth:
        unknown = next(d for d in inside if not isinstance(d, int))
        raise Refused(
            f"it writes along a dimension of {unknown}, known at run time only; see `--shape`"
        )
    if int(np.prod(lengths, dtype=object)) > _LARGEST_MASK:
        raise Refused(f"a mask of {lengths} would be a large constant")
    number, held = np.zeros(lengths, np.int64), np.zeros(lengths, bool)
    at = tuple(lines.places.T)
    number[at], held[at] = np.arange(len(lines.places)), True
    new = c.op("Gather", _flat(c, lines), c.ints_of(number, "lines"), axis=lines.axis)
    if lines.combine:
        new = c.op(lines.combine, lines.data, new)
    after = len(shape) - depth - lines.axis
    mask = c.draft.constant(held.reshape([*lengths, *[1] * after]), "mask")
    return c.where(mask, new, lines.data)


# ------------------------------------------------------------------ what is written where


def _lines(c: Bench, node: gs.Node) -> _Lines:
    """The places and the lines that go there.

    Raises:
        Refused: They are not known, one stands twice, or elements of a plane go to several.
    """
    one_dtype(c, node)
    array, shape = c.facts.array(node.inputs[1]), c.shape(node.inputs[0])
    if array is None or array.dtype == object:
        raise Refused("its indices are known at run time only")
    if shape is None:
        raise Refused(f"the rank of `{node.inputs[0].name}` is not known")
    read = _of_nd if node.op == "ScatterND" else _of_elements
    lines = read(c, node, array.astype(np.int64), shape)
    if len(np.unique(lines.places, axis=0)) < len(lines.places):
        raise Refused("an index stands twice, for which the standard gives no result")
    return lines


def one_dtype(c: Bench, node: gs.Node) -> None:
    """Refuse a scatter that no runtime loads: its updates are to be cast first.

    Raises:
        Refused: The data and the updates have, or may have, two dtypes.
    """
    if c.dtype(node.inputs[0]) != c.dtype(node.inputs[2]):
        raise Refused("its data and updates have two dtypes; `scatter-cast` mends that")


def _of_nd(c: Bench, node: gs.Node, array: Array, shape: Sequence[Dim]) -> _Lines:
    data, _, updates = node.inputs
    depth = int(array.shape[-1])
    if depth == 0:
        raise Refused("its indices have no axis")
    places = _counted(array.reshape(-1, depth), shape[:depth])
    return _Lines(data, 0, places, updates, False, _combine(node))


def _flat(c: Bench, lines: _Lines) -> gs.Tensor:
    """The updates with their lines along one axis."""
    if lines.planes:
        return lines.updates
    count, depth = lines.places.shape
    return c.reshape(lines.updates, [int(count), *c.sizes(lines.data)[int(depth) :]])


def _of_elements(c: Bench, node: gs.Node, array: Array, shape: Sequence[Dim]) -> _Lines:
    data, _, updates = node.inputs
    axis = int(attribute_of(node, "axis") or 0) % len(shape)
    if any(array.shape[i] != d for i, d in enumerate(shape) if i != axis):
        raise Refused("it writes a part of the planes across its axis")
    planes = np.moveaxis(array, axis, 0).reshape(array.shape[axis], -1)
    if (planes != planes[:, :1]).any():
        raise Refused("elements of one plane across its axis go to several places")
    places = planes[:, :1] if planes.size else np.zeros((0, 1), np.int64)
    counted = _counted(places, shape[axis : axis + 1])
    return _Lines(data, axis, counted, updates, True, _combine(node))


def _combine(node: gs.Node) -> str | None:
    reduction = attribute_of(node, "reduction") or "none"
    name = reduction.decode() if isinstance(reduction, bytes) else str(reduction)
    return _COMBINED.get(name)


def _counted(places: Array, shape: Sequence[Dim]) -> Array:
    """The places counted from the front wherever the length is known."""
    columns = []
    for column, length in zip(places.T, shape, strict=True):
        if isinstance(length, int):
            if ((column < -length) | (column >= length)).any():
                raise Refused(f"it writes outside the {length} elements of an axis")
            column = np.where(column < 0, column + length, column)
        elif (column < 0).any() and not (column < 0).all():
            raise Refused(f"whether two places on {length} elements are one is not provable")
        columns.append(column)
    return np.stack(columns, 1)


# ------------------------------------------------------------------ slices of run-time length


def scatter_range(draft: Draft, match: Match) -> gs.Tensor:
    """ScatterND at a slice of 0, 1, ... along the first axis: `data[a:b] = updates`."""
    c, node = Bench(draft), match.root
    data, indices, updates = node.inputs
    one_dtype(c, node)
    if _combine(node):
        raise Refused("it combines what is there with the update")
    start, end = _slice_of_count(c, indices, c.size(data, 0))
    parts = [] if start == 0 else [c.slice(data, 0, 0, start)]
    parts.append(updates)
    if end != LARGEST:
        parts.append(c.slice(data, 0, end, LARGEST))
    return c.concat(parts, 0)


def _slice_of_count(c: Bench, indices: gs.Tensor, length: Size | int) -> tuple[int, int]:
    """The bounds of the slice of 0 .. length - 1 that the indices are, one a row."""
    shape, x = c.shape(indices), indices
    if shape is None or len(shape) != 2 or shape[1] != 1:
        raise Refused("it does not write at indices of the first axis alone")
    start, end = 0, LARGEST
    while (node := producer_of(x)) is not None and node.op != "Range":
        if node.op == "Slice" and (start, end) == (0, LARGEST):
            start, end = _bounds(c, node)
        elif node.op not in ("Unsqueeze", "Squeeze", "Reshape", "Cast", "Identity"):
            node = None
            break
        x = node.inputs[0]
    counts = None if node is None else [c.facts.of(t).value for t in node.inputs]
    if counts is None or any(v is None for v in counts):
        raise Refused("its indices are not provably a slice of 0, 1, ... to the end of the axis")
    first, limit, step = (v.reshape(-1).tolist()[0] for v in counts if v is not None)
    dim = length if isinstance(length, int) else length.dim
    if first != 0 or step != 1 or dim is None or dims.equal(limit, dim) is not True:
        raise Refused("its indices are not provably a slice of 0, 1, ... to the end of the axis")
    if end != LARGEST and ((start < 0) != (end < 0) or start > end):
        raise Refused(f"whether {start} stands before {end} is known at run time only")
    return start, end


def _bounds(c: Bench, node: gs.Node) -> tuple[int, int]:
    values = [c.facts.array(t) for t in node.inputs[1:] if not t.is_empty()]
    if any(v is None or v.size != 1 or v.dtype == object for v in values):
        raise Refused("the bounds of its slice are known at run time only")
    numbers = [int(v.reshape(-1)[0]) for v in values if v is not None]
    start, end, axis, step = [*numbers, *(0, 1)[len(numbers) - 2 :]]
    if axis != 0 or step != 1:
        raise Refused("the bounds of its slice are not of step 1")
    return start, end
