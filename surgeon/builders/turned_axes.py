"""Operators that name axes of their first operand, in front of Transposes: along others then."""

from __future__ import annotations

import numpy as np
import onnx_graphsurgeon as gs

from surgeon.builders.bench import Bench, operand
from surgeon.builders.cleaning import order_of, reduced
from surgeon.facts.fact import Array
from surgeon.match import Match, attribute_of
from surgeon.rewrite import Draft, Refused

_LEVELS = frozenset({"DequantizeLinear", "QuantizeLinear"})
NAMING = _LEVELS | {"Gather", "Pad", "Slice", "Tile"}
_BY_AXES = {"Slice": 3, "Pad": 3}  # which of their operands names axes
_PLACES = frozenset({"ArgMax", "ArgMin"})
_SLICE_KEEPS_NAMES = 10  # the opset whose Slice is inferred wrongly: see `bench.nameless`


def may_name_others(draft: Draft, node: gs.Node, rank: int) -> bool:
    """Whether a node of `NAMING` can do along other axes what it does."""
    if isinstance(node.inputs[0], gs.Constant):
        return False
    if node.op == "Slice" and draft.facts.opset == _SLICE_KEEPS_NAMES:
        return False
    if node.op == "Gather":
        return draft.facts.of(node.inputs[1]).rank == 1
    if node.op in _LEVELS:
        steps = draft.facts.of(node.inputs[1]).rank
        return not attribute_of(node, "block_size") and steps in (0, 1)
    return _axes(draft, node, rank) is not None and (
        node.op == "Slice" or _counts(draft, node) is not None
    )


def _counts(draft: Draft, node: gs.Node) -> Array | None:
    """What a Pad or a Tile is told for its axes."""
    told = operand(node, 1)
    return None if told is None else draft.facts.array(told)


def _named(node: gs.Node) -> gs.Tensor | None:
    """The operand that names axes, of a node that has one."""
    place = _BY_AXES.get(node.op)
    return None if place is None else operand(node, place)


def _axes(draft: Draft, node: gs.Node, rank: int) -> list[int] | None:
    """The axes that a Slice, Pad or Tile works along, as it names them; None if computed."""
    if (named := _named(node)) is not None:
        array = draft.facts.array(named)
        return None if array is None else [int(axis) % rank for axis in array.reshape(-1)]
    if node.op != "Slice":
        return list(range(rank))
    shape = draft.facts.of(node.inputs[1]).shape
    return list(range(shape[0])) if shape and isinstance(shape[0], int) else None


def along_others(draft: Draft, node: gs.Node, x: gs.Tensor, order: list[int]) -> gs.Tensor:
    """The node of x, whose axes are those of its operand in this order."""
    c, rank = Bench(draft), len(order)
    attributes, operands = dict(node.attrs), [x, *node.inputs[1:]]
    if node.op == "Gather" or (node.op in _LEVELS and draft.facts.of(node.inputs[1]).rank == 1):
        attributes["axis"] = order.index(int(attribute_of(node, "axis")) % rank)
    elif node.op == "Slice" or _named(node) is not None:
        axes = _axes(draft, node, rank)
        assert axes is not None
        operands[3:4] = [c.ints([order.index(axis) for axis in axes], "axes")]
    elif node.op not in _LEVELS:
        counts = _counts(draft, node)
        assert counts is not None
        turned = counts.reshape(-1, rank)[:, order].reshape(-1)
        operands[1] = c.ints_of(np.ascontiguousarray(turned), "counts")
    y: gs.Tensor = draft.op(node.op, *operands, **attributes)
    return y


def reduced_before_transpose(draft: Draft, match: Match) -> gs.Tensor:
    """What is reduced behind a Transpose, as it stood, where the rest keeps its order."""
    node, inner = match.root, match.nodes[1]
    rank = draft.facts.of(inner.inputs[0]).rank
    order = order_of(inner, rank)
    count, attributes, x = len(order), dict(node.attrs), inner.inputs[0]
    if node.op in _PLACES:
        axes = {int(attribute_of(node, "axis")) % count}
    else:
        axes = {*reduced(draft, node, count)}
    left = [axis for place, axis in enumerate(order) if place not in axes]
    gone = sorted(order[place] for place in axes)
    if attribute_of(node, "keepdims") and left:
        raise Refused("it keeps its axes where the Transpose put them")
    if left != sorted(left):
        raise Refused("the axes that stay are in another order")
    y: gs.Tensor
    if node.op in _PLACES:
        y = draft.op(node.op, x, **{**attributes, "axis": gone[0]})
    else:
        y = draft.op(node.op, x, draft.constant(gone, "axes"), **attributes)
    return y
