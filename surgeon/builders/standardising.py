"""What normalisations are made of: mean and variance taken out, one number for each channel."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_graphsurgeon as gs

from surgeon.builders import parts
from surgeon.rewrite import Draft


def vector_of(draft: Draft, value: float, size: int, dtype: np.dtype[Any]) -> gs.Tensor:
    """One number for each of `size` channels."""
    return draft.constant(np.full(size, value, dtype), "weight" if value else "bias")


def column_of(draft: Draft, vector: gs.Tensor, rank: int) -> gs.Tensor:
    """A vector over the channels, as it broadcasts over [N, C, ...]."""
    if rank == 2:
        return vector
    array = draft.facts.array(vector)
    if array is not None and array.dtype != object and array.size < 1 << 20:
        return draft.constant(array.reshape(-1, *[1] * (rank - 2)), "weight")
    return draft.op("Reshape", vector, draft.constant([-1, *[1] * (rank - 2)], "column"))


def in_groups(draft: Draft, x: gs.Tensor, groups: int) -> gs.Tensor:
    """[N, C, ...] as [N, groups, rest]; the rest is spelled out where all but the batch is known.

    What the runtime has to infer it cannot where there are no samples. Where all is known it is
    inferred, as exporters write it: converters know the normalisation by that.
    """
    shape = draft.facts.of(x).shape or ()
    if _is_told(shape):
        return draft.op("Reshape", x, draft.constant([0, groups, -1], "groups"))
    known = [d for d in shape[1:] if isinstance(d, int)]
    told = len(shape) > 1 and len(known) == len(shape) - 1 and 0 not in known
    rest = math.prod(known) // groups if told else -1
    made: gs.Tensor = draft.op("Reshape", x, draft.constant([0, groups, rest], "groups"))
    return made


def _is_told(shape: Sequence[object]) -> bool:
    """Whether every size is known, and none is 0."""
    return bool(shape) and all(isinstance(size, int) and size for size in shape)


def standardised(
    draft: Draft, x: gs.Tensor, axes: list[int], eps: float, dtype: np.dtype[Any]
) -> tuple[gs.Tensor, gs.Tensor, gs.Tensor]:
    """(x - mean) / sqrt(variance + eps), the mean, and the reciprocal of the deviation."""
    over = draft.constant(axes, "axes")
    mean = draft.op("ReduceMean", x, over, keepdims=1)
    gap = draft.op("Sub", x, mean)
    variance = draft.op("ReduceMean", draft.op("Mul", gap, gap), over, keepdims=1)
    safe = draft.op("Add", variance, draft.constant(np.array(eps, dtype), "eps"))
    inverse = draft.op("Reciprocal", draft.op("Sqrt", safe))
    return draft.op("Mul", gap, inverse), mean, inverse


def groups_normalised(
    draft: Draft, x: gs.Tensor, groups: int, eps: float, dtype: np.dtype[Any]
) -> gs.Tensor:
    """(x - mean) / sqrt(variance + eps) of each group of the channels of [N, C, ...]."""
    grouped = in_groups(draft, x, groups)
    if dtype.name in ("float32", "float16"):  # what every runtime has InstanceNormalization for
        ones, zeros = (vector_of(draft, v, groups, dtype) for v in (1, 0))
        y = draft.op("InstanceNormalization", grouped, ones, zeros, epsilon=eps)
    else:
        y = standardised(draft, grouped, [2], eps, dtype)[0]
    return shaped_like(draft, y, x)


def shaped_like(draft: Draft, y: gs.Tensor, x: gs.Tensor) -> gs.Tensor:
    """Reshape `y` to the shape of `x`, of which it has the batch."""
    shape = draft.facts.of(x).shape
    if shape is not None and _is_told(shape):
        return draft.op("Reshape", y, draft.constant(list(shape), "shape"))
    if shape is not None and sum(not isinstance(d, int) for d in shape[1:]) <= 1:
        target = [0, *(d if isinstance(d, int) else -1 for d in shape[1:])]
        return draft.op("Reshape", y, draft.constant(target, "shape"))
    return draft.op("Reshape", y, draft.op("Shape", x))


def layer_normalised(
    draft: Draft,
    x: gs.Tensor,
    count: int,
    weight: gs.Tensor | None,
    bias: gs.Tensor | None,
    eps: float,
) -> gs.Tensor:
    """Layer normalisation over the last `count` axes.

    onnxruntime has the variance from a difference of means, which is less precise than doubles are.
    """
    dtype = parts.numpy_dtype(draft, x)
    if draft.facts.opset >= 17 and dtype != np.float64:
        if weight is None:
            shape = draft.facts.of(x).shape
            last = [d for d in (shape or ())[-count:] if isinstance(d, int)]
            if len(last) == count:
                weight = draft.constant(np.ones(last, dtype), "weight")
        if weight is not None:
            return draft.op("LayerNormalization", x, weight, bias, axis=-count, epsilon=eps)
    return spelled_layer_norm(draft, x, count, weight, bias, eps)[0]


def spelled_layer_norm(
    draft: Draft,
    x: gs.Tensor,
    count: int,
    weight: gs.Tensor | None,
    bias: gs.Tensor | None,
    eps: float,
) -> tuple[gs.Tensor, gs.Tensor, gs.Tensor]:
    """The same by means; and the mean and the reciprocal of the deviation."""
    dtype = parts.numpy_dtype(draft, x)
    y, mean, inverse = standardised(draft, x, list(range(-count, 0)), eps, dtype)
    if weight is not None:
        y = draft.op("Mul", y, weight)
    if bias is not None:
        y = draft.op("Add", y, bias)
    return y, mean, inverse


def rms_normalised(
    draft: Draft, x: gs.Tensor, count: int, weight: gs.Tensor | None, eps: float
) -> gs.Tensor:
    """x / sqrt(mean(x * x) + eps) * weight over the last `count` axes; half is widened for it."""
    double = parts.numpy_dtype(draft, x) == np.float64
    number = parts.DOUBLE if double else parts.FLOAT
    values = parts.cast(draft, x, number)
    axes = draft.constant(list(range(-count, 0)), "axes")
    square = draft.op("ReduceMean", draft.op("Mul", values, values), axes, keepdims=1)
    least = draft.constant(np.array(eps, np.float64 if double else np.float32), "eps")
    y = draft.op("Div", values, draft.op("Sqrt", draft.op("Add", square, least)))
    if weight is not None:
        y = draft.op("Mul", y, parts.cast(draft, weight, number))
    return parts.cast(draft, y, draft.facts.of(x).dtype)
