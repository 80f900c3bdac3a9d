"""Rows of one table that are looked up in several steps and joined: looked up in one."""

from __future__ import annotations

import onnx_graphsurgeon as gs

from surgeon.match import Match, attribute_of, producer_of
from surgeon.rewrite import Draft, Refused


def joined_lookups(draft: Draft, match: Match) -> gs.Tensor:
    """y = Concat of Gathers of one value along its axis, as a Gather by the joined indices."""
    root, facts = match.root, draft.facts
    nodes: list[gs.Node] = []
    for tensor in root.inputs:
        node = producer_of(tensor)
        if (
            node is None
            or node.op != "Gather"
            or node.inputs[0] is not root.inputs[0].inputs[0].inputs[0]
        ):
            raise Refused("its operands are not all Gathers of one value")
        if len(tensor.outputs) > 1 or draft.surgery.is_output(tensor) or not draft.holds(node):
            raise Refused("something else reads what is looked up")
        nodes.append(node)
    rank = facts.of(root.outputs[0]).rank
    if len(nodes) < 2 or rank is None:
        raise Refused("it joins one operand, or its rank is not known")
    axis = int(attribute_of(root, "axis")) % rank
    table, indices = nodes[0].inputs[0], [node.inputs[1] for node in nodes]
    if any(facts.of(index).rank != 1 for index in indices) or facts.of(table).rank != rank:
        raise Refused("not all its indices are lists")
    if any(int(attribute_of(node, "axis")) % rank != axis for node in nodes):
        raise Refused("they look along another axis than it joins")
    if len({facts.of(index).dtype for index in indices}) > 1:
        raise Refused("their indices are of several types")
    joined = draft.op("Concat", *indices, axis=0)
    y: gs.Tensor = draft.op("Gather", table, joined, axis=axis)
    return y
