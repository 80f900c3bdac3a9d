"""The greatest, or the least, of values and several constants: of one constant in their place."""

from __future__ import annotations

import numpy as np
import onnx_graphsurgeon as gs

from surgeon.facts.fact import Array
from surgeon.match import Match, producer_of
from surgeon.rewrite import Draft, Refused


def constants_of_greatest(draft: Draft, match: Match) -> gs.Tensor:
    """y = Max or Min of several constants, or of one and of a Max or Min of another."""
    root, surgery = match.root, draft.surgery
    computed: list[gs.Tensor] = []
    known: list[Array] = []
    widest = len(root.inputs)
    waiting = [(tensor, True) for tensor in reversed(root.inputs)]
    while waiting:
        tensor, opens = waiting.pop()
        array = draft.facts.array(tensor)
        node = producer_of(tensor) if opens and array is None else None
        alone = len(tensor.outputs) == 1 and not surgery.is_output(tensor)
        if array is not None:
            known.append(array)
        elif node is not None and node.op == root.op and alone and draft.holds(node):
            widest = max(widest, len(node.inputs))
            waiting.extend((operand, False) for operand in reversed(node.inputs))
        else:
            computed.append(tensor)
    if len(known) < 2:
        raise Refused("no two constants are compared")
    if not computed or len(computed) >= widest:
        raise Refused("there would be more operands than now, and many compilers take two")
    if any(array.dtype.kind not in "iuf" or np.isnan(array).any() for array in known):
        raise Refused("a constant is no number")
    made = known[0]
    for array in known[1:]:
        made = (np.maximum if root.op == "Max" else np.minimum)(made, array)
    if made.size > max(array.size for array in known):
        raise Refused("together the constants are larger than each")
    y: gs.Tensor = draft.op(root.op, *computed, draft.constant(made, "bound"))
    return y
