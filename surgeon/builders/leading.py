"""Axes of length 1 in front of all others, which broadcasting puts there itself."""

from __future__ import annotations

import onnx_graphsurgeon as gs

from surgeon.builders.views import KEEP_ORDER, source_of
from surgeon.facts import Facts
from surgeon.facts.elementwise import BINARY, UNARY
from surgeon.facts.fact import same_dims
from surgeon.match import Match, attribute_of
from surgeon.rewrite import Draft, Refused
from surgeon.standard import STANDARD

_MOST = 16  # nodes behind that are asked


def without_leading(draft: Draft, match: Match) -> gs.Tensor:
    """An operation of each element without an axis of 1 that was put in front of an operand.

    Another operand has that axis, or nothing that reads the result needs it there.
    """
    root, facts, u = match.root, draft.facts, match.values["e"]
    assert u is not None
    rank = facts.of(root.outputs[0]).rank
    found = _before(facts, u)
    if found is None or rank is None:
        raise Refused("no value behind it is without leading axes of 1")
    source, count = found
    operands = [source if t is u else t for t in root.inputs]
    if root.op == "Gather":
        if root.inputs[0] is u or attribute_of(root, "axis"):
            raise Refused("its rows are along another axis")
        given = False
    else:
        ranks = [facts.of(t).rank for t in operands]
        if any(r is None for r in ranks):
            raise Refused("a rank is not known")
        most = max(r for r in ranks if r is not None)
        given, count = most == rank, rank - most
    if not given and not _unneeded(draft, root.outputs[0], count, [_MOST]):
        raise Refused("nothing else provably gives the result that axis, and something may need it")
    made: gs.Tensor = draft.op(root.op, *operands, **root.attrs)
    if given:
        return made
    later: gs.Tensor = draft.op("Unsqueeze", made, draft.constant(list(range(count)), "axes"))
    return later


def constant_without_leading(draft: Draft, match: Match) -> gs.Tensor:
    """An operation of each element without axes of 1 in front that a constant alone brings along.

    Nothing that reads the result needs them there.
    """
    root, facts = match.root, draft.facts
    arrays = [facts.array(t) for t in root.inputs]
    ranks = [facts.of(t).rank for t, a in zip(root.inputs, arrays, strict=True) if a is None]
    rank = facts.of(root.outputs[0]).rank
    if len(ranks) != 1 or ranks[0] is None or rank is None or ranks[0] >= rank:
        raise Refused("no constant has more axes than what is computed")
    count, most = rank - ranks[0], ranks[0]
    if not _unneeded(draft, root.outputs[0], count, [_MOST]):
        raise Refused("something may need the axes in front")
    operands = list(root.inputs)
    for place, array in enumerate(arrays):
        if array is None or array.ndim <= most:
            continue
        in_front = array.ndim - most
        if any(length != 1 for length in array.shape[:in_front]):
            raise Refused("the constant has more than one element along its axes in front")
        operands[place] = draft.constant(array.reshape(array.shape[in_front:]), "operand")
    made = draft.op(root.op, *operands, **root.attrs)
    later: gs.Tensor = draft.op("Unsqueeze", made, draft.constant(list(range(count)), "axes"))
    return later


def _before(facts: Facts, u: gs.Tensor) -> tuple[gs.Tensor, int] | None:
    """The value that leading axes of 1 were put in front of, and how many."""
    shape = facts.of(u).shape
    if shape is None:
        return None
    ones = next((axis for axis, dim in enumerate(shape) if dim != 1), len(shape))
    for count in range(ones, 0, -1):
        found = source_of(u, facts, shape[count:])
        if found is not None and same_dims(facts.of(found[0]).shape, shape[count:]):
            return found[0], count
    return None


def _unneeded(draft: Draft, tensor: gs.Tensor, count: int, left: list[int]) -> bool:
    """Whether all that reads a value computes the same without its first axes, which are of 1."""
    facts, rank = draft.facts, draft.facts.of(tensor).rank
    left[0] -= 1
    if rank is None or left[0] < 0 or draft.surgery.is_output(tensor) or not tensor.outputs:
        return False
    for node in tensor.outputs:
        if (node.domain or "") not in STANDARD:
            return False
        if node.op in KEEP_ORDER - {"Identity"} and node.inputs[0] is tensor:
            continue  # it sees the order of elements, which is the same
        if node.op in BINARY and (node.op == "Where" or len(node.inputs) == 2):
            others = [facts.of(t).rank for t in node.inputs if t is not tensor]
            if any(r is None for r in others):
                return False
            most = max((r for r in others if r is not None), default=0)
            if most >= rank:
                continue
            if most > rank - count:
                return False
        elif node.op == "Gather":
            if (
                node.inputs[1] is not tensor
                or node.inputs[0] is tensor
                or attribute_of(node, "axis")
            ):
                return False
        elif node.op not in UNARY:
            return False
        if not _unneeded(draft, node.outputs[0], count, left):
            return False
    return True
