"""A part of the way from one value to another, as PyTorch rounds it."""

from __future__ import annotations

import numpy as np
import onnx_graphsurgeon as gs

from surgeon.builders.bench import Bench


def between(c: Bench, start: gs.Tensor, end: gs.Tensor, weight: gs.Tensor) -> gs.Tensor:
    """start + weight * (end - start), counted from the nearer end: at weight 1 it is the end.

    Of infinite ends it is one of them, or NaN (`lerp`, ATen/native/Lerp.h).

    Args:
        c: Where the nodes go.
        start: Floats.
        end: Floats of the same dtype.
        weight: The part, of that dtype; where it is known, one of both ways is enough.
    """
    dtype, number = c.dtype(weight), c.facts.array(weight)
    near = None if number is None else np.abs(number) < 0.5
    distance = c.op("Sub", end, start)
    if near is None or not near.all():
        rest = c.op("Sub", c.number(1, dtype), weight)
        from_end: gs.Tensor = c.op("Sub", end, c.op("Mul", distance, rest))
        if near is not None and not near.any():
            return from_end
    from_start: gs.Tensor = c.op("Add", start, c.op("Mul", distance, weight))
    if near is not None and near.all():
        return from_start
    is_near = c.op("Less", c.op("Abs", weight), c.number(0.5, dtype))
    chosen: gs.Tensor = c.op("Where", is_near, from_start, from_end)
    return chosen
