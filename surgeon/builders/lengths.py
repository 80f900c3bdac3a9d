"""The shape of a value, read where it is known first."""

from __future__ import annotations

import onnx_graphsurgeon as gs

from surgeon.facts.fact import same_dims
from surgeon.match import Match, producer_of
from surgeon.rewrite import Draft, Refused

_MOST = 16  # nodes behind that are looked at


def shape_of_source(draft: Draft, match: Match) -> gs.Tensor:
    """The Shape of a value further behind with provably the same, where x is read for it alone."""
    facts, x = draft.facts, match.root.inputs[0]
    if draft.surgery.is_output(x) or any(node.op != "Shape" for node in x.outputs):
        raise Refused("more is read of it than its shape")
    shape = facts.of(x).shape
    if shape is None:
        raise Refused("its shape is not known")
    found, pending, seen = x, [x], 0
    while pending and seen < _MOST:
        node = producer_of(pending.pop(0))
        seen += 1
        if node is None or not draft.holds(node):
            continue
        for tensor in node.inputs:
            if isinstance(tensor, gs.Variable) and not tensor.is_empty():
                pending.append(tensor)
                if same_dims(facts.of(tensor).shape, shape):
                    found = tensor
    if found is x:
        raise Refused("nothing behind it provably has its shape")
    draft.premises.append(x)
    y: gs.Tensor = draft.op("Shape", found, **match.root.attrs)
    return y
