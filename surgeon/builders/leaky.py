"""Relu with a slope below 0, as frameworks spell it out: LeakyRelu, or PRelu of several slopes."""

from __future__ import annotations

import numpy as np
import onnx_graphsurgeon as gs

from surgeon.builders.bench import TYPE, Bench
from surgeon.facts.fact import Array, same_dims
from surgeon.match import Match
from surgeon.rewrite import Draft, Refused


def leaky(draft: Draft, match: Match, slope: Array) -> gs.Tensor:
    """y = x where that is above 0, else slope * x.

    Args:
        draft: Where the nodes are made.
        match: What names `x`.
        slope: One number, or such as the axes of x have.
    """
    c, x = Bench(draft), match.values["x"]
    assert x is not None
    if c.dtype(x) != TYPE.FLOAT:
        raise Refused("onnxruntime has these operators of float32 alone")
    shape = c.shape(x)
    if shape is None or not same_dims(shape, c.shape(match.root.outputs[0])):
        raise Refused("the slopes may make the result larger")
    numbers = np.asarray(slope, np.float32)
    if not np.isfinite(numbers).all():
        raise Refused("a slope is no number")
    y: gs.Tensor
    if numbers.size == 1:
        y = c.op("LeakyRelu", x, alpha=float(numbers.reshape(())))
    else:
        y = c.op("PRelu", x, draft.constant(numbers, "slope"))
    return y
