"""What is made large, or given more axes, before an operation that does so anyway."""

from __future__ import annotations

import onnx_graphsurgeon as gs

from surgeon.builders.fills import fill_of, without_fill
from surgeon.builders.leading import without_leading
from surgeon.builders.spreads import rows_without_expand, without_expand
from surgeon.match import Match
from surgeon.rewrite import Draft, Refused


def broadcast_anyway(draft: Draft, match: Match) -> gs.Tensor:
    """An operation of each element, or rows of a table, with what its operand was made from."""
    e, root = match.values["e"], match.root
    assert e is not None
    maker = e.inputs[0].op
    if len(root.inputs) > 1 and root.op != "Gather" and fill_of(draft.facts, e) is not None:
        try:
            return without_fill(draft, match)
        except Refused:
            if maker != "Expand":
                raise
    if maker == "Expand":
        return (rows_without_expand if root.op == "Gather" else without_expand)(draft, match)
    if maker in ("Reshape", "Unsqueeze"):
        return without_leading(draft, match)
    raise Refused("its operand provably holds neither one number nor an axis more than it needs")
