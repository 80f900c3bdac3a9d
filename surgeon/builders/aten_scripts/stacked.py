"""Lists as the exporter reads them, below opset 11 above all: as tensors along a first axis."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_graphsurgeon as gs

from surgeon.bodies.listed import elements
from surgeon.builders.aten_scripts.operands import sequence, within
from surgeon.builders.bench import Bench
from surgeon.builders.chains import lone_cut
from surgeon.facts.fact import same_dims
from surgeon.match import Match, attribute_of
from surgeon.rewrite import Draft, Refused


def stacked_read(draft: Draft, match: Match) -> gs.Tensor:
    """An element, a part or the length of a list of known elements, read off a tensor of them."""
    c, node = Bench(draft), match.root
    items = elements(node.inputs[0])
    assert items is not None
    if node.op == "Shape":
        return _shape(c, node, items)
    if node.op == "Slice":
        return _part(c, node, items)
    if int(attribute_of(node, "axis")) != 0:
        raise Refused("it reads along another axis than the list's")
    at = draft.facts.array(node.inputs[1])
    if at is None or at.size != 1 or at.ndim > 1:
        made: gs.Tensor = c.op("Gather", _stack(c, items), node.inputs[1], axis=0)
        return made
    return c.unsqueeze(items[within(int(at.item()), items)], [0] * at.ndim)


def part_of_list(draft: Draft, match: Match) -> gs.Tensor:
    """A part of a list of known elements, which the exporter cuts out as if it were a tensor."""
    c, node = Bench(draft), match.root
    items, cut = elements(node.inputs[0]), lone_cut(c.facts, node)
    assert items is not None
    if cut is None or cut[2] != 0:
        raise Refused("its bounds are computed, or along another axis than the list's")
    start, end, _, step = cut
    return sequence(c, items[start:end:step])


def _shape(c: Bench, node: gs.Node, items: Sequence[gs.Tensor]) -> gs.Tensor:
    count = c.ints([len(items)], "count")
    if attribute_of(node, "start") or attribute_of(node, "end") is not None or not items:
        raise Refused("it reads other sizes than the list's length")
    return c.concat([count, c.op("Shape", items[0])], 0)


def _part(c: Bench, node: gs.Node, items: Sequence[gs.Tensor]) -> gs.Tensor:
    cut = lone_cut(c.facts, node)
    if cut is None:
        raise Refused("its bounds are computed, or of several axes")
    start, end, axis, step = cut
    if axis != 0 or step < 1:
        raise Refused("it reads along another axis than the list's, or from behind")
    return _stack(c, items[start:end:step])


def _stack(c: Bench, items: Sequence[gs.Tensor]) -> gs.Tensor:
    """The elements side by side along a new first axis; all must be of one type and shape."""
    if not items:
        raise Refused("no element is left")
    first, *others = (c.facts.of(item) for item in items)
    if any(not f.dtype or f.dtype != first.dtype for f in others):
        raise Refused("its elements are not provably of one type")
    if any(not same_dims(f.shape, first.shape) for f in others):
        raise Refused("its elements are not provably of one shape")
    return c.concat([c.unsqueeze(item, [0]) for item in items], 0)
