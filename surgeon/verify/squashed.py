"""Outputs whose rounding is that of 1, however small they are.

A Sigmoid is 0.5 and half a tanh, so that of -17 it is 0.0 or 6e-8: both are right to the last place
of what was added. An error in it is no share of its own size.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import onnx

from surgeon.chance import operator_of

# The largest number that each adds up.
_SUMS: Mapping[str, float] = MappingProxyType(
    dict.fromkeys(("Sigmoid", "HardSigmoid", "sigmoid", "hardsigmoid", "special_expit"), 1.0)
)
_MOVES = frozenset(
    "Identity Reshape Transpose Squeeze Unsqueeze Flatten Slice Gather Concat Split Cast".split()
)


def squashed_outputs(model: onnx.ModelProto) -> dict[str, float]:
    """The outputs that such an operator gives, as it is or moved; each with the magnitude."""
    found: dict[str, float] = {}
    for node in model.graph.node:
        operator = operator_of(node)
        held = _SUMS.get(operator, 0.0)
        if operator in _MOVES:
            held = max((found.get(name, 0.0) for name in node.input), default=0.0)
        if held:
            found.update(dict.fromkeys(node.output, held))
    return {value.name: found[value.name] for value in model.graph.output if value.name in found}
