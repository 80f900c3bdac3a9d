"""Reductions beside views of what they reduce to."""

from __future__ import annotations

import onnx_graphsurgeon as gs

from surgeon.facts.fact import same_dims
from surgeon.match import Match, attribute_of
from surgeon.rewrite import Draft, Refused


def reduced_axes(draft: Draft, match: Match) -> gs.Tensor:
    """Axes of length 1 that a reduction keeps and a view drops, or the other way round."""
    root, work = match.root, match.nodes[1]
    shape = draft.facts.of(work.inputs[0]).shape
    out = draft.facts.of(root.outputs[0]).shape
    if shape is None or out is None:
        raise Refused("a shape is not known")
    axes = _axes(draft, work, len(shape))
    dropped = [size for axis, size in enumerate(shape) if axis not in axes]
    kept = [1 if axis in axes else size for axis, size in enumerate(shape)]
    keeps = same_dims(out, tuple(kept))
    if not keeps and not same_dims(out, tuple(dropped)):
        raise Refused("the view does more than drop or put in the reduced axes")
    attributes = dict(work.attrs)
    attributes["keepdims"] = int(keeps)
    operands = [work.inputs[0]]
    if work.op not in ("ArgMax", "ArgMin"):
        operands.append(draft.constant(sorted(axes), "axes"))
        attributes.pop("noop_with_empty_axes", None)
    y: gs.Tensor = draft.op(work.op, *operands, **attributes)
    return y


def _axes(draft: Draft, node: gs.Node, rank: int) -> set[int]:
    """The axes that a node reduces, from 0."""
    if node.op in ("ArgMax", "ArgMin"):
        return {int(attribute_of(node, "axis")) % rank}
    given = len(node.inputs) > 1 and not node.inputs[1].is_empty()
    array = draft.facts.array(node.inputs[1]) if given else None
    if array is None or not array.size:
        raise Refused("its axes are not named")
    return {int(axis) % rank for axis in array.reshape(-1).tolist()}
