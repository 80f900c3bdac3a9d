"""Batches that are merged in front of products, and parted again behind them.

MatMul treats each matrix of a batch by itself, however many axes the batch has: a Reshape that
makes one axis of them, as bmm wants it, and one that parts them again are not needed.
"""

from __future__ import annotations

import onnx_graphsurgeon as gs

from surgeon import dims
from surgeon.builders.cleaning import order_of
from surgeon.builders.views import as_shape
from surgeon.dims import Dim
from surgeon.facts.elementwise import ELEMENTWISE
from surgeon.match import Match, attribute_of, producer_of
from surgeon.rewrite import Draft, Refused

_EACH = ELEMENTWISE | {"Clip"}  # of each element; their other operands are single numbers


def parted_batch(draft: Draft, match: Match) -> gs.Tensor:
    """y = Reshape (z), which parts the first axis of products whose operands were merged to it."""
    root = match.root
    merged, parted = (draft.facts.of(t).shape for t in (root.inputs[0], root.outputs[0]))
    if merged is None or parted is None or not 3 <= len(merged) < len(parted):
        raise Refused("it parts no axis, or a shape is not known")
    lead = parted[: len(parted) - len(merged) + 1]
    if parted[len(lead) :] != merged[1:] or dims.product(lead) != merged[0]:
        raise Refused("it does more than part the first axis")
    return _lifted(draft, root.inputs[0], lead)


def _lifted(draft: Draft, tensor: gs.Tensor, lead: tuple[Dim, ...]) -> gs.Tensor:
    """The value with its first axis parted into `lead`.

    Raises:
        Refused: That takes a Reshape, or something else reads the value as it is.
    """
    node = producer_of(tensor)
    if node is None or not draft.holds(node):
        raise Refused(f"nothing computes {tensor.name!r} here")
    if node.op == "Reshape":
        return _before(draft, node, lead)
    if len(tensor.outputs) != 1 or draft.surgery.is_output(tensor):
        raise Refused(f"{tensor.name!r} is read elsewhere too")
    rank = draft.facts.of(node.inputs[0]).rank
    if rank is None:
        raise Refused(f"the rank of {node.inputs[0].name!r} is not known")
    extra, attributes, place = len(lead) - 1, dict(node.attrs), 0
    if node.op == "MatMul":
        if any(draft.facts.of(t).rank != 3 for t in node.inputs):
            raise Refused("its MatMul is not of two batches of matrices")
        return draft.op("MatMul", *(_lifted(draft, t, lead) for t in node.inputs))
    if node.op == "Transpose":
        order = order_of(node, rank)
        if order[0]:
            raise Refused("its Transpose moves the batch")
        attributes["perm"] = [*range(len(lead)), *(axis + extra for axis in order[1:])]
    elif node.op in ("Softmax", "LogSoftmax"):
        axis = int(attribute_of(node, "axis")) % rank
        if not axis:
            raise Refused(f"its {node.op} is along the batch")
        attributes["axis"] = axis + extra
    else:
        several = [at for at, t in enumerate(node.inputs) if draft.facts.of(t).shape != ()]
        if node.op not in _EACH or len(several) != 1:
            raise Refused(f"{node.op} is not known to treat each of the batch by itself")
        place = several[0]
    operands = list(node.inputs)
    operands[place] = _lifted(draft, operands[place], lead)
    return draft.op(node.op, *operands, **attributes)


def _before(draft: Draft, node: gs.Node, lead: tuple[Dim, ...]) -> gs.Tensor:
    """What a Reshape merges the first axes of; or the same by a Reshape that parts them as well.

    Raises:
        Refused: It has other sizes, and something else reads the merged axes.
    """
    merged: gs.Tensor = node.outputs[0]
    before, after = draft.facts.of(node.inputs[0]).shape, draft.facts.of(merged).shape
    if before is None or after is None:
        raise Refused(f"a shape at {node.name!r} is not known")
    if dims.equal(after[0], dims.product(lead)) is not True:
        raise Refused(f"{node.name!r} makes another batch, which the product repeats")
    wanted = (*lead, *after[1:])
    if before != wanted and (len(merged.outputs) != 1 or draft.surgery.is_output(merged)):
        raise Refused(f"{node.name!r} does not merge axes as they are parted")
    return as_shape(draft, merged, wanted)
