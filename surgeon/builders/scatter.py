"""ScatterND and ScatterElements at indices known beforehand: Slice and Concat, or Gather and Where.

The standard gives no result for an index that stands twice, so such a node is left as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx_graphsurgeon as gs

from surgeon.builders.bench import LARGEST, Bench
from surgeon.builders.meshes import LARGEST_MASK, Line, lengths_of, line_of, lines_of, write
from surgeon.dims import Dim
from surgeon.facts.fact import Array, same_dims
from surgeon.match import Match, attribute_of
from surgeon.rewrite import Draft, Refused

_COMBINED = {"add": "Add", "mul": "Mul", "max": "Max", "min": "Min"}


@dataclass(frozen=True, slots=True)
class _Lines:
    """What a ScatterND writes: a line of the updates at each place of the first axes of the data.

    Attributes:
        data: What is written into.
        places: [lines, axes], no two alike; counted from the front, but on an axis of run-time
            length maybe all from behind.
        updates: As the node has them; the lines may lie along several axes in front.
        combine: The operator of `reduction`; None where the update replaces the element.
    """

    data: gs.Tensor
    places: Array
    updates: gs.Tensor
    combine: str | None


def scatter_box(draft: Draft, match: Match) -> gs.Tensor:
    """ScatterND at every place of a box, in any order: the box between slices of the data."""
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
        new = c.op("Gather", _flat(c, lines), c.ints_of(order, "order"), axis=0)
    else:
        new = lines.updates
    new = c.reshape(new, [*sizes, *c.sizes(lines.data)[len(sizes) :]])
    shape = c.shape(lines.data)
    assert shape is not None
    box = [
        Line(int(a), LARGEST if a < 0 and b == 0 else int(b))
        for a, b in zip(low, high, strict=True)
    ]
    return write(c, lines.data, new, box, 0, lines.combine, shape)


def scatter_grid(draft: Draft, match: Match) -> gs.Tensor:
    """ScatterND at constant places: the line for each place is gathered, and chosen by a mask."""
    c = Bench(draft)
    lines = _lines(c, match.root)
    shape, depth = c.shape(lines.data), lines.places.shape[1]
    assert shape is not None
    lengths = [d for d in shape[:depth] if isinstance(d, int)]
    if len(lengths) < depth:
        unknown = next(d for d in shape[:depth] if not isinstance(d, int))
        raise Refused(
            f"it writes along a dimension of {unknown}, known at run time only; see `--shape`"
        )
    if int(np.prod(lengths, dtype=object)) > LARGEST_MASK:
        raise Refused(f"a mask of {lengths} would be a large constant")
    number, held = np.zeros(lengths, np.int64), np.zeros(lengths, bool)
    at = tuple(lines.places.T)
    number[at], held[at] = np.arange(len(lines.places)), True
    new = c.op("Gather", _flat(c, lines), c.ints_of(number, "lines"), axis=0)
    if lines.combine:
        new = c.op(lines.combine, lines.data, new)
    after = len(shape) - depth
    mask = c.draft.constant(held.reshape([*lengths, *[1] * after]), "mask")
    return c.where(mask, new, lines.data)


# ------------------------------------------------------------------ what is written where


def _lines(c: Bench, node: gs.Node) -> _Lines:
    """The places and the lines that go there.

    Raises:
        Refused: They are not known, or one stands twice.
    """
    one_dtype(c, node)
    array, shape = c.facts.array(node.inputs[1]), c.shape(node.inputs[0])
    if array is None or array.dtype == object:
        raise Refused("its indices are known at run time only")
    if shape is None:
        raise Refused(f"the rank of `{node.inputs[0].name}` is not known")
    data, _, updates = node.inputs
    depth = int(array.shape[-1])
    if depth == 0:
        raise Refused("its indices have no axis")
    places = _counted(array.astype(np.int64).reshape(-1, depth), shape[:depth])
    if len(np.unique(places, axis=0)) < len(places):
        raise Refused("an index stands twice, for which the standard gives no result")
    return _Lines(data, places, updates, combined_by(node))


def one_dtype(c: Bench, node: gs.Node) -> None:
    """Refuse a scatter that no runtime loads: its updates are to be cast first.

    Raises:
        Refused: The data and the updates have, or may have, two dtypes.
    """
    if c.dtype(node.inputs[0]) != c.dtype(node.inputs[2]):
        raise Refused("its data and updates have two dtypes; `scatter-cast` mends that")


def _flat(c: Bench, lines: _Lines) -> gs.Tensor:
    """The updates with their lines along one axis."""
    count, depth = lines.places.shape
    return c.reshape(lines.updates, [int(count), *c.sizes(lines.data)[int(depth) :]])


def combined_by(node: gs.Node) -> str | None:
    """The operator that joins what is there with an update; None where the update replaces it."""
    reduction = attribute_of(node, "reduction") or "none"
    name = reduction.decode(errors="replace") if isinstance(reduction, bytes) else str(reduction)
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
    return write(c, data, updates, lines, 0, combined_by(node), shape)


# ------------------------------------------------------------------ elements


def scatter_elements(draft: Draft, match: Match) -> gs.Tensor:
    """ScatterElements at constant indices: whole planes of a box, or element by element."""
    c, node = Bench(draft), match.root
    data, indices, updates = node.inputs
    one_dtype(c, node)
    array, shape = c.facts.array(indices), c.shape(data)
    if array is None or array.dtype == object:
        raise Refused("its indices are known at run time only")
    if shape is None:
        raise Refused(f"the rank of `{data.name}` is not known")
    if not same_dims(c.shape(updates), tuple(int(n) for n in array.shape)):
        raise Refused("its updates are not provably of the shape of its indices")
    if not array.size:
        return data
    axis = int(attribute_of(node, "axis") or 0) % len(shape)
    planes = np.moveaxis(array.astype(np.int64), axis, 0).reshape(array.shape[axis], -1)
    if (planes != planes[:, :1]).any():
        return _each_element(c, node, array.astype(np.int64), axis, shape)
    places = _counted(planes[:, :1], shape[axis : axis + 1])[:, 0]
    lines = [line_of(places) if i == axis else Line(0, n) for i, n in enumerate(array.shape)]
    return write(c, data, updates, lines, 0, combined_by(node), shape)


def _each_element(
    c: Bench, node: gs.Node, array: Array, axis: int, shape: Sequence[Dim]
) -> gs.Tensor:
    """Every element of its own place: a constant table of the data's shape says from where."""
    data, _, updates = node.inputs
    lengths = [d for d in shape if isinstance(d, int)]
    if len(lengths) < len(shape):
        raise Refused(
            "elements of one plane across its axis go to several places, and a dimension is known "
            "at run time only; see `--shape`"
        )
    if int(np.prod(lengths, dtype=object)) > LARGEST_MASK:
        raise Refused(f"a mask of {lengths} would be a large constant")
    at = np.indices(array.shape)
    at[axis] = _counted(array.reshape(-1, 1), shape[axis : axis + 1]).reshape(array.shape)
    places = np.ravel_multi_index(tuple(at), lengths).reshape(-1)
    if len(np.unique(places)) < len(places):
        raise Refused("an index stands twice, for which the standard gives no result")
    number, held = np.zeros(int(np.prod(lengths)), np.int64), np.zeros(int(np.prod(lengths)), bool)
    number[places], held[places] = np.arange(len(places)), True
    new = c.op("Gather", c.flat(updates), c.ints_of(number.reshape(lengths), "elements"), axis=0)
    combine = combined_by(node)
    new = c.op(combine, data, new) if combine else new
    return c.where(c.draft.constant(held.reshape(lengths), "mask"), new, data)
