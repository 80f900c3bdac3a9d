"""Values that are continued by their own first and last element, a Pad of the edges; Pads moved."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_graphsurgeon as gs

from surgeon import dims
from surgeon.builders.bench import TYPE
from surgeon.builders.chains import lone_cut
from surgeon.builders.cleaning import order_of
from surgeon.builders.padded import sides_of
from surgeon.facts.fact import same_dims
from surgeon.links import maker_of
from surgeon.match import Match, attribute_of
from surgeon.rewrite import Draft, Refused

_REPEATED = frozenset({"Expand", "Tile"})
_UNPADDED = frozenset({TYPE.STRING, TYPE.INT16, TYPE.UINT16})  # onnxruntime has no Pad of these


def edges_as_pad(draft: Draft, match: Match) -> gs.Tensor:
    """The first element of an axis some times, the value, and the last some times, as one Pad."""
    root, facts = match.root, draft.facts
    operands = list(root.inputs)
    rank = facts.of(root.outputs[0]).rank
    if rank is None or not 2 <= len(operands) <= 3:
        raise Refused("it does not join a value with one or two others, or its rank is not known")
    if facts.of(root.outputs[0]).dtype in _UNPADDED:
        raise Refused("onnxruntime has no Pad of its element type")
    axis = int(attribute_of(root, "axis")) % rank
    for place in range(len(operands)):
        x = operands[place]
        before, after = operands[:place], operands[place + 1 :]
        if len(before) > 1 or len(after) > 1:
            continue
        counts = [_count(draft, t, x, axis, 0) for t in before] or [0]
        counts += [_count(draft, t, x, axis, -1) for t in after] or [0]
        known = [count for count in counts if count is not None]
        if len(known) == 2:
            break
    else:
        raise Refused("what stands beside no operand is its own first or last element")
    shape = facts.of(x).shape
    assert shape is not None
    if dims.at_most(1, shape[axis]) is not True:
        raise Refused("its axis may be empty")
    amounts = [0] * (2 * rank)
    amounts[axis], amounts[rank + axis] = known
    y: gs.Tensor = draft.op("Pad", x, draft.constant(amounts, "amounts"), mode="edge")
    return y


def _count(draft: Draft, tensor: gs.Tensor, x: gs.Tensor, axis: int, number: int) -> int | None:
    """How often a value is the first (0) or last (-1) element of another; None where it is not."""
    facts = draft.facts
    own, whole = facts.of(tensor).shape, facts.of(x).shape
    if own is None or whole is None or len(own) != len(whole):
        return None
    count = own[axis]
    if not isinstance(count, int) or not same_dims(
        (*own[:axis], whole[axis], *own[axis + 1 :]), whole
    ):
        return None
    node = maker_of(tensor)
    if node is not None and node.op in _REPEATED and not node.domain:
        tensor = node.inputs[0]
        once = facts.of(tensor).shape
        if once is None or not same_dims(once, (*own[:axis], 1, *own[axis + 1 :])):
            return None
        node = maker_of(tensor)
    elif count != 1:
        return None
    if node is None or node.domain or not node.inputs or node.inputs[0] is not x:
        return None
    if node.op == "Gather":
        index = facts.array(node.inputs[1])
        along = int(attribute_of(node, "axis")) % len(whole)
        found = index is not None and index.shape == (1,) and along == axis and index[0] == number
        return count if found else None
    return count if node.op == "Slice" and _takes(draft, node, len(whole), axis, number) else None


def _takes(draft: Draft, node: gs.Node, rank: int, axis: int, number: int) -> bool:
    """Whether a Slice takes one element of one axis, the first or the last."""
    cut = lone_cut(draft.facts, node)
    if cut is None:
        return False
    start, end, along, step = cut
    if along % rank != axis or step != 1 or start != number:
        return False
    return end == 1 if number == 0 else end >= 1 << 31


def pad_between(draft: Draft, match: Match) -> gs.Tensor:
    """A Pad between two Transposes that undo one another, of the value itself."""
    outer, pad, inner = match.nodes[:3]
    rank = draft.facts.of(inner.inputs[0]).rank
    if rank is None:
        raise Refused("its rank is not known")
    first, second = (order_of(node, rank) for node in (inner, outer))
    if [first[axis] for axis in second] != list(range(rank)):
        raise Refused("the Transposes do not undo one another")
    return _turned(draft, pad, inner.inputs[0], second)


def pad_behind_transpose(draft: Draft, match: Match) -> gs.Tensor:
    """A Pad in front of the Transpose of what a window slides over, behind it."""
    window, transpose, pad = match.nodes[:3]
    x = pad.inputs[0]
    order = order_of(transpose, draft.facts.of(x).rank)
    turned = _turned(draft, pad, draft.op("Transpose", x, perm=order), order)
    made: gs.Tensor = draft.op(window.op, turned, *window.inputs[1:], **window.attrs)
    return made


def _turned(draft: Draft, pad: gs.Node, x: gs.Tensor, order: Sequence[int]) -> gs.Tensor:
    """The Pad of a value whose axes are in this order of those that it had."""
    sides = sides_of(draft, pad, len(order))
    turned = [sides[axis] for axis in (*order, *(axis + len(order) for axis in order))]
    more = [tensor for tensor in pad.inputs[2:3] if not tensor.is_empty()]
    pads = draft.constant(np.array(turned, np.int64), "pads")
    made: gs.Tensor = draft.op("Pad", x, pads, *more, **pad.attrs)
    return made
