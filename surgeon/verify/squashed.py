"""Outputs whose rounding is that of 1, however small they are.

A Sigmoid is 0.5 and half a tanh, so that of -17 it is 0.0 or 6e-8: both are right to the last place
of what was added. So it is with 1 less a cosine. An error in it is no share of its own size.
"""

from __future__ import annotations

import onnx

from surgeon.chance import operator_of

_SQUASHING = frozenset(
    "Sigmoid HardSigmoid sigmoid hardsigmoid special_expit cosine_embedding_loss".split()
)
_MOVES = frozenset(
    "Identity Reshape Transpose Squeeze Unsqueeze Flatten Slice Gather Concat Split Cast".split()
)


def squashed_outputs(model: onnx.ModelProto) -> frozenset[str]:
    """The outputs that such an operator gives, as it is or moved."""
    found: set[str] = set()
    known = -1
    while len(found) > known:  # once, unless nodes stand before what they read
        known = len(found)
        for node in model.graph.node:
            operator = operator_of(node)
            moved = operator in _MOVES and not found.isdisjoint(node.input)
            if moved or operator in _SQUASHING:
                found.update(node.output)
    return frozenset(value.name for value in model.graph.output if value.name in found)
