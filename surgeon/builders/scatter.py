"""ScatterND and ScatterElements at indices known beforehand: Slice and Concat, or Gather and Where.

The standard gives no result for an index that stands twice, so such a node is left as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx_graphsurgeon as gs

from surgeon.builders.bench import LARGEST, Bench
from surgeon.builders.meshes import LARGEST_MASK, Line, lengths_of, lines_of, write
from surgeon.dims import Dim
from surgeon.facts.fact import Array
from surgeon.match import Match, attribute_of
from surgeon.rewrite import Draft, Refused

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
    shape = c.shape(lines.data)
    assert shape is not None
    box = [
        Line(int(a), LARGEST if a < 0 and b == 0 else int(b))
        for a, b in zip(low, high, strict=True)
    ]
    return write(c, lines.data, new, box, lines.axis, lines.combine, shape)


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
    if int(np.prod(lengths, dtype=object)) > LARGEST_MASK:
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


# ------------------------------------------------------------------ meshes


def scatter_mesh(draft: Draft, match: Match) -> gs.Tensor:
    """ScatterND at a mesh of slices and constant places: `data[:, 1:3] = updates`."""
    c, node = Bench(draft), match.root
    data, indices, updates = node.inputs
    one_dtype(c, node)
    shape = c.shape(data)
    if shape is None:
        raise Refused(f"the rank of `{data.name}` is not known")
    lines = lines_of(c, indices, shape)
    draft.premises.append(indices)
    if len(lines) > 1 or c.rank(indices) > 2:
        sizes = [*lengths_of(c, indices, lines), *c.sizes(data)[len(lines) :]]
        updates = c.reshape(updates, sizes)
    return write(c, data, updates, lines, 0, _combine(node), shape)
