"""Expands in front of operators that broadcast their operands anyway."""

from __future__ import annotations

import onnx_graphsurgeon as gs

from surgeon.match import Match
from surgeon.rewrite import Draft, Refused


def without_expand(draft: Draft, match: Match) -> gs.Tensor:
    """y of an Expand and other operands that give the result every axis which the Expand gives."""
    root, facts = match.root, draft.facts
    expanded, x = match.values["e"], match.values["x"]
    assert x is not None
    shape, out = facts.of(x).shape, facts.of(root.outputs[0]).shape
    others = [facts.of(t).shape for t in root.inputs if t is not expanded]
    if shape is None or out is None or len(shape) > len(out):
        raise Refused("a shape is not known")
    own = (1,) * (len(out) - len(shape)) + tuple(shape)
    for place, (mine, wanted) in enumerate(zip(own, out, strict=True)):
        behind = len(out) - place
        given = any(o is not None and len(o) >= behind and o[-behind] == wanted for o in others)
        if mine != wanted and not (mine == 1 and given):
            raise Refused(f"nothing else provably gives the result its axis {place} of {wanted}")
    operands = [x if t is expanded else t for t in root.inputs]
    made: gs.Tensor = draft.op(root.op, *operands, **root.attrs)
    return made
