"""OpenVINO's operators, which NNCF and exports for OpenVINO write.

Documents: OpenVINO, "Operation specifications": FakeQuantize-1, Swish-4, NormalizeL2-1,
GroupNormalization-12, and the ONNX frontend's attributes of these.
"""

# ruff: noqa: D103 - each function means what OpenVINO documents for the operator of its name

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from surgeon.reference.operators.precision import narrow, wide

DOMAINS = ("org.openvinotoolkit",)
HOMELESS = frozenset({"FakeQuantize", "ExperimentalDetectronGroupNorm"})  # without a domain too
Array = np.ndarray[Any, Any]


def fake_quantize(
    attributes: Mapping[str, Any], x: Any, low: Any, high: Any, to_low: Any, to_high: Any
) -> Array:
    x, low, high, to_low, to_high = np.broadcast_arrays(x, low, high, to_low, to_high)
    steps = x.dtype.type(int(attributes["levels"]) - 1)
    found: Array = np.empty_like(x)
    below, above = x <= np.minimum(low, high), x > np.maximum(low, high)
    found[below], found[above & ~below] = to_low[below], to_high[above & ~below]
    i = ~(below | above)
    level = np.rint((x[i] - low[i]) / (high[i] - low[i]) * steps)
    found[i] = level / steps * (to_high[i] - to_low[i]) + to_low[i]
    return found


def swish(attributes: Mapping[str, Any], x: Any, beta: Any = 1.0) -> Array:
    value = wide(x)
    return narrow(value / (1 + np.exp(-np.asarray(beta, np.float64).reshape(()) * value)), x)


def group_norm(attributes: Mapping[str, Any], x: Any, scale: Any, bias: Any) -> Array:
    groups, eps = int(attributes["num_groups"]), attributes.get("eps", 1e-6)
    parts = wide(x).reshape(len(x), groups, -1)
    middle = parts.mean(2, keepdims=True)
    spread = ((parts - middle) ** 2).mean(2, keepdims=True)
    y = ((parts - middle) / np.sqrt(spread + eps)).reshape(x.shape)
    column = (-1, *[1] * (x.ndim - 2))
    return narrow(y * wide(scale).reshape(column) + wide(bias).reshape(column), x)


def normalize(attributes: Mapping[str, Any], x: Any, weights: Any) -> Array:
    value = wide(x)
    axes = tuple(range(1, x.ndim)) if attributes.get("across_spatial", 0) else (1,)
    length = np.sqrt((value**2).sum(axes, keepdims=True) + attributes.get("eps", 0.0))
    factors = wide(weights)
    if not attributes.get("channel_shared", 0):
        factors = factors.reshape(-1, *[1] * (x.ndim - 2))
    return narrow(value / length * factors, x)


TABLE: Mapping[str, Callable[..., Any]] = {
    "FakeQuantize": fake_quantize,
    "Swish": swish,
    "GroupNorm": group_norm,
    "ExperimentalDetectronGroupNorm": group_norm,
    "Normalize": normalize,
}
