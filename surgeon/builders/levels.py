"""The whole number of steps that a value is rounded to: quantisation in arithmetic of floats."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_graphsurgeon as gs

from surgeon.rewrite import Draft


def levels(
    draft: Draft,
    x: gs.Tensor,
    scale: gs.Tensor,
    zero: gs.Tensor,
    low: float,
    high: float,
    *,
    together: bool = False,
) -> gs.Tensor:
    """clip(round(x / scale) + zero, low, high), of float32 or float64 and as it.

    PyTorch multiplies by the reciprocal of the scale, which is in single precision.

    Args:
        draft: Where the nodes go.
        x: The value.
        scale: The size of a step in float32, as a shape that goes with the value's.
        zero: The level of 0, likewise, in the value's dtype.
        low: The least level.
        high: The greatest.
        together: Whether the level of 0 is added before it is rounded, as it need not be whole.
    """
    wide = draft.facts.of(x).dtype == onnx.TensorProto.DOUBLE
    dtype = np.float64 if wide else np.float32
    least, most = (draft.constant(np.asarray(end, dtype), "level") for end in (low, high))
    inverse = draft.op("Reciprocal", scale)
    if wide:
        inverse = draft.op("Cast", inverse, to=onnx.TensorProto.DOUBLE)
    steps = draft.op("Mul", x, inverse)
    if together:
        steps = draft.op("Add", steps, zero)
        if wide:  # PyTorch rounds the sum to single precision before it rounds it to steps
            steps = draft.op("Cast", steps, to=onnx.TensorProto.FLOAT)
        steps = draft.op("Round", steps)
        if wide:
            steps = draft.op("Cast", steps, to=onnx.TensorProto.DOUBLE)
    else:
        steps = draft.op("Add", draft.op("Round", steps), zero)
    steps = draft.op("Max", steps, least)
    made: gs.Tensor = draft.op("Min", steps, most)
    return made
