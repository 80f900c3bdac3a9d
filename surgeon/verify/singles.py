"""Outputs in double precision that a rewrite computes in single precision."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import onnx

from surgeon.verify.measure import Measured
from surgeon.verify.verdict import OutputCheck

FEW = 8  # values that may lie near one another by chance
_FLOAT, _DOUBLE = onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE


def in_single_precision(before: onnx.ModelProto, after: onnx.ModelProto) -> frozenset[str]:
    """The outputs that `after` makes doubles of at the end, having cast to float32 on the way.

    Args:
        before: What is replaced; outputs of which it does so itself do not count.
        after: What replaces it, with the same outputs by name.
    """
    if not any(_casts_to(node, _FLOAT) for node in after.graph.node):
        return frozenset()
    return _widened(after.graph) - _widened(before.graph)


def _widened(graph: onnx.GraphProto) -> frozenset[str]:
    """The outputs that a Cast to double precision gives, behind which nothing is computed."""
    makers = {name: node for node in graph.node for name in node.output}
    found = set()
    for value in graph.output:
        node = makers.get(value.name)
        while node is not None and node.op_type == "Identity":
            node = makers.get(node.input[0])
        if node is not None and _casts_to(node, _DOUBLE):
            found.add(value.name)
    return frozenset(found)


def _casts_to(node: onnx.NodeProto, kind: int) -> bool:
    return node.op_type == "Cast" and any(a.name == "to" and a.i == kind for a in node.attribute)


def within_spread(check: OutputCheck, expected: Any) -> OutputCheck:
    """The check of few values, as if their spread were that of these, of the same output."""
    held = np.asarray(expected)[np.isfinite(expected)]
    spread = Measured(held, held, places=False).spread
    if check.max_absolute > check.tolerance * spread:
        return check
    return replace(check, agrees=True, max_relative=check.max_absolute / spread)
