"""Dropout and random slopes, as they are in training."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import onnx_graphsurgeon as gs

from surgeon.builders.aten_random.sources import Like, computed, uniform
from surgeon.builders.aten_shape.call import Call
from surgeon.rewrite import Refused

# What the dropped become: selu's limit on the left (Klambauer et al., Self-Normalizing Neural
# Networks, 2017, equation 14).
_ALPHA = 1.6732632423543772 * 1.0507009873554805


def _kept(c: Call, like: Like, p: float, kind: int) -> gs.Tensor:
    """Where something stays: true with chance 1 - p."""
    if not 0 <= p <= 1:
        raise Refused(f"PyTorch drops nothing with a chance of {p}")
    return c.op("Less", uniform(c, like, kind), c.number(1 - p, kind))


def _channels(c: Call, x: gs.Tensor) -> Like:
    """The sizes of one number for each channel."""
    rank = c.rank(x)
    if rank < 2:
        raise Refused(f"its input has rank {rank}, and no channels")
    return [c.size(x, 0), c.size(x, 1), *[1] * (rank - 2)]


def _dropout(c: Call) -> gs.Tensor:
    x, p = c.tensor("input"), float(c.value("p"))
    if not bool(c.value("train")):
        raise Refused("it drops nothing: it was exported for inference")
    return _dropped(c, x, _channels(c, x) if c.node.op.startswith("feature") else x, p)[0]


def _dropped(c: Call, x: gs.Tensor, like: Like, p: float) -> tuple[gs.Tensor, gs.Tensor]:
    dtype = c.dtype(x)
    mask = _kept(c, like, p, computed(dtype))
    if p == 1:
        return c.op("Mul", x, c.cast(mask, dtype)), mask
    scaled = c.op("Mul", c.cast(mask, dtype), c.number(1 / (1 - p), dtype))
    return c.op("Mul", x, scaled), mask


def _native_dropout(c: Call) -> tuple[gs.Tensor, gs.Tensor]:
    x = c.tensor("input")
    if c.has("train") and not bool(c.value("train")):
        return x, c.op("Expand", c.draft.constant(np.asarray(True), "kept"), c.op("Shape", x))
    return _dropped(c, x, x, float(c.value("p")))


def _alpha_dropout(c: Call) -> gs.Tensor:
    """What is dropped becomes selu's least value; mean and variance are then put right."""
    x, p = c.tensor("input"), float(c.value("p"))
    if not bool(c.value("train")):
        raise Refused("it drops nothing: it was exported for inference")
    dtype = c.dtype(x)
    if p == 1:
        return c.op("Mul", x, c.number(0, dtype))
    like = _channels(c, x) if c.node.op.startswith("feature") else x
    kept = c.cast(_kept(c, like, p, computed(dtype)), dtype)
    a = 1 / math.sqrt((_ALPHA**2 * p + 1) * (1 - p))
    lost = c.op("Mul", c.op("Sub", kept, c.number(1, dtype)), c.number(_ALPHA * a, dtype))
    shift = c.op("Add", lost, c.number(_ALPHA * a * p, dtype))
    return c.op("Add", c.op("Mul", x, c.op("Mul", kept, c.number(a, dtype))), shift)


def _rrelu(c: Call) -> tuple[gs.Tensor, gs.Tensor]:
    """A slope for each element on the left, and what each element was multiplied by."""
    x = c.tensor()
    if not bool(c.value("training")):
        raise Refused("it draws nothing: it was exported for inference")
    low, high = float(c.value("lower")), float(c.value("upper"))
    dtype = c.dtype(x)
    kind = computed(dtype)
    slopes = c.op("Mul", uniform(c, x, kind), c.number(high - low, kind))
    slopes = c.cast(c.op("Add", slopes, c.number(low, kind)), dtype)
    positive = c.op("Less", c.number(0, dtype), x)
    noise = c.where(positive, c.number(1, dtype), slopes)
    return c.op("Mul", x, noise), noise


LOWERINGS: Mapping[str, Callable[[Call], Any]] = {
    **dict.fromkeys(("dropout", "feature_dropout"), _dropout),
    **dict.fromkeys(("alpha_dropout", "feature_alpha_dropout"), _alpha_dropout),
    "native_dropout": _native_dropout,
    **dict.fromkeys(("rrelu", "rrelu_with_noise", "rrelu_with_noise_functional"), _rrelu),
}
