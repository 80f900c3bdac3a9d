"""Places that are counted through axes joined to one: i * T + j in a matrix of T columns."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import onnx_graphsurgeon as gs

from surgeon import dims
from surgeon.builders.bench import Bench
from surgeon.builders.meshes import BETWEEN, Line, is_whole, line_behind, line_through
from surgeon.builders.views import KEEP_ORDER, as_shape
from surgeon.dims import Dim
from surgeon.facts.fact import Array
from surgeon.match import Match, attribute_of, producer_of
from surgeon.rewrite import Draft, Refused
from surgeon.standard import STANDARD

Shape = tuple[Dim, ...]
_MOST = 8  # terms of a sum: no exporter joins more axes


def joined_places(draft: Draft, match: Match) -> gs.Tensor:
    """Every row of axes that were joined, in order, as a view of what they were joined from.

    So exporters write `mask[batch, position]`: the first axes become one, and the indices into each
    are multiplied by how many rows a step along it is.
    """
    c, root = Bench(draft), match.root
    flat, places = root.inputs
    whole, index, out = c.shape(flat), c.shape(places), c.shape(root.outputs[0])
    source = before_views(flat)
    shape = c.shape(source)
    if attribute_of(root, "axis") or not whole or index is None or out is None or shape is None:
        raise Refused("it is along another axis, or a shape is not known")
    axes = _joined(shape, whole[0])
    left = list(_terms(c, places, len(index)))
    used: list[int] = []
    for axis in axes:
        if shape[axis] == 1:
            continue
        step = math.prod(shape[axis + 1 : len(axes)])
        place = next((i for i, (by, _) in enumerate(left) if dims.equal(by, step) is True), None)
        if place is None:
            raise Refused(f"nothing that it adds up provably goes along axis {axis}")
        _, line = left.pop(place)
        counted = line.limit is None or dims.equal(line.limit, shape[axis]) is True
        if line.along is None or not counted or not is_whole(line, shape[axis]):
            raise Refused(f"whether it takes every place of axis {axis} is not provable")
        used.append(line.along)
    if left or used != sorted(set(used)):
        raise Refused("its indices do not follow the order of the axes")
    if any(d != 1 and axis not in used for axis, d in enumerate(index)):
        raise Refused("it takes places twice")
    draft.premises.append(places)
    return as_shape(draft, source, out)


def before_views(tensor: gs.Tensor) -> gs.Tensor:
    """What a value is, in the same order, before Reshapes and the like."""
    node = producer_of(tensor)
    while node is not None and node.op in KEEP_ORDER and (node.domain or "") in STANDARD:
        tensor = node.inputs[0]
        node = producer_of(tensor)
    return tensor


def _joined(shape: Shape, length: Dim) -> range:
    """The first axes, which make one of this length together."""
    for count in range(len(shape), 1, -1):
        if dims.equal(math.prod(shape[:count]), length) is True:
            return range(count)
    raise Refused("it takes from no axes that were joined")


def _terms(c: Bench, places: gs.Tensor, rank: int) -> Iterator[tuple[Dim, Line]]:
    """What is added up to the places: each a line of indices, and what they are multiplied by."""
    pending = [places]
    for _ in range(2 * _MOST):
        if not pending:
            return
        term = pending.pop()
        node = producer_of(term)
        if node is not None and node.op == "Add":
            pending += node.inputs
            continue
        own = c.rank(term)
        for by, line in _lines(c, term):
            yield by, line if line.along is None else replace(line, along=line.along + rank - own)
    raise Refused("its indices are a sum of too many terms")


def _lines(c: Bench, term: gs.Tensor) -> Iterator[tuple[Dim, Line]]:
    """The lines of one term, each with what it is multiplied by, in front of views or behind."""
    array, node = c.facts.array(term), producer_of(term)
    if array is not None and array.dtype != object:
        yield from _counts(array.astype(np.int64))
    elif node is not None and node.op == "Mul":
        sizes = [size_of(c, t) for t in node.inputs]
        known = [i for i, size in enumerate(sizes) if size is not None]
        if len(known) != 1:
            raise Refused("its indices are known at run time only")
        size = sizes[known[0]]
        for by, line in _lines(c, node.inputs[1 - known[0]]):
            yield by * size, line  # type: ignore[operator] # one of those that are known
    elif node is not None and node.op in BETWEEN:
        for by, line in _lines(c, node.inputs[0]):
            yield by, line_behind(c, node, line)
    else:
        yield 1, line_through(c, term)


def _counts(array: Array) -> Iterator[tuple[int, Line]]:
    """Constant places that count along axes, as a count along each; none where all are 0.

    Raises:
        Refused: They do not, or not from 0.
    """
    left = array
    for axis, length in enumerate(array.shape):
        step = int(array.take(1, axis).flat[0] - array.flat[0]) if length > 1 else 0
        if step:
            count = np.arange(length).reshape([-1, *[1] * (array.ndim - 1 - axis)])
            left = left - step * count
            yield step, Line(0, length, None, axis)
    if left.any():
        raise Refused("its constant indices do not count from 0 along axes")


def size_of(c: Bench, tensor: gs.Tensor) -> Dim | None:
    """A number that is constant, or the length of something."""
    fact = c.facts.of(tensor)
    value = fact.value if fact.value is not None else c.facts.array(tensor)
    if value is None or value.size != 1:
        return None
    found: Dim = value.reshape(-1).tolist()[0]
    return found
