"""Standard nodes of complex values, which no runtime computes, by onnx's own reference."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx

from surgeon.reference.errors import NoWitness

_OF_TWO_NUMBERS = frozenset("Add Sub Mul Div MatMul Einsum Concat".split())


def is_complex(value: Any) -> bool:
    """Whether it is an array of complex values."""
    return isinstance(value, np.ndarray) and value.dtype.kind == "c"


def run(
    node: onnx.NodeProto, given: Mapping[str, Any], opsets: Mapping[str, int]
) -> dict[str, Any]:
    """What a node makes of its operands, by name.

    Raises:
        NoWitness: It is not defined for complex values in Python either.
    """
    from onnx.reference import ReferenceEvaluator

    if node.op_type == "Abs":  # of complex values it is real, which onnx does not expect
        return {node.output[0]: np.abs(given[node.input[0]])}
    if node.op_type in _OF_TWO_NUMBERS:  # PyTorch takes one that is real beside them
        common = np.result_type(*given.values())
        given = {name: value.astype(common) for name, value in given.items()}
    try:
        made = ReferenceEvaluator(node, opsets=dict(opsets)).run(None, dict(given))
    except Exception as error:  # whatever Python has against complex values
        where = f"node '{node.name or node.output[0]}'"
        raise NoWitness(node.op_type, where=where, why=str(error)) from None
    return dict(zip(node.output, made, strict=False))
