"""PyTorch's quantised tensors, taken in where they are read: ONNX has whole numbers and floats.

A quantised tensor is what `quantize_per_tensor` gives, or, as exporters write it, a TupleConstruct
of whole numbers, their scale and their zero point. What lies between these and a `dequantize` or
`int_repr` is computed in floats that are rounded to the steps where PyTorch rounds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import onnx_graphsurgeon as gs

from surgeon.builders.aten_quantized import choosing, decomposed
from surgeon.builders.aten_quantized.chain import Chain
from surgeon.builders.aten_quantized.scheme import to_whole
from surgeon.builders.bench import TYPE
from surgeon.links import maker_of
from surgeon.match import Match
from surgeon.rewrite import Draft, Refused


def quantized_read(draft: Draft, match: Match, operators: bool = False) -> gs.Tensor:
    """`dequantize`, `int_repr`, `q_scale`, ...: of a chain that begins with quantised values.

    Args:
        draft: Where the nodes go.
        match: What reads the quantised tensor.
        operators: Whether operators may stand between whose kernels round in ways of their own.
    """
    root = match.root
    chain = Chain(draft, operators=operators)
    x, scheme = chain.floats(root.inputs[0])
    if operators and not chain.met:
        raise Refused("no operator of quantised tensors stands before it")
    if root.op == "dequantize":
        return x
    if root.op == "int_repr":
        made = maker_of(x)
        if made is not None and made.op == "DequantizeLinear":  # of which it is the other half
            whole: gs.Tensor = made.inputs[0]
            return whole
        return to_whole(chain.bench, x, scheme)
    per_channel = root.op.startswith("q_per_channel")
    if per_channel != (scheme.axis is not None):
        raise Refused(f"`aten.{root.op}` is of tensors quantised in the other way")
    if root.op.endswith("axis"):
        return draft.constant(np.asarray(scheme.axis, np.int64))
    if "scale" in root.op:
        return chain.bench.cast(scheme.told, TYPE.DOUBLE)
    return chain.bench.cast(scheme.zero, TYPE.INT64)


TABLE: Mapping[str, Callable[..., Any]] = {
    "quantized_read": quantized_read,
    **choosing.TABLE,
    **decomposed.TABLE,
}
