"""Plugins that are small layers: normalisations, running extremes, attention, copies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surgeon.reference.errors import NoWitness, Unsuited
from surgeon.reference.operators.precision import narrow, wide

Array = NDArray[Any]
Said = Mapping[str, Any]


def normalised(x: Array, groups: int, scale: Any, bias: Any, eps: float) -> Array:
    """By groups of channels, of [N, C, ...]; scale and bias are numbers a channel."""
    parts = wide(x).reshape(len(x), groups, -1)
    parts = (parts - parts.mean(-1, keepdims=True)) / np.sqrt(parts.var(-1, keepdims=True) + eps)
    column = (-1, *[1] * (x.ndim - 2))
    factors = (np.asarray(v, np.float64).reshape(column) for v in (scale, bias))
    scale, bias = factors
    return narrow(parts.reshape(x.shape) * scale + bias, x)


def instance_norm(values: list[Any], said: Said) -> Array:
    """TensorRT's plugin/instanceNormalizationPlugin/README.md; mmdeploy's has inputs alone."""
    if said.get("relu", 0):
        raise NoWitness("InstanceNormalization_TRT", where="", why="a Relu behind it")
    x = values[0]
    scale = values[1] if len(values) > 1 else said["scales"]
    bias = values[2] if len(values) > 2 else said["biases"]
    return normalised(x, x.shape[1], scale, bias, said.get("epsilon", 1e-5))


def group_norm(values: list[Any], said: Said) -> Array:
    """TensorRT's plugin/groupNormalizationPlugin/README.md."""
    eps = said.get("eps", said.get("epsilon", 1e-5))
    return normalised(values[0], said["num_groups"], values[1], values[2], eps)


def leaky_relu(values: list[Any], said: Said) -> Array:
    """TensorRT's `LReLU_TRT`."""
    x = wide(values[0])
    return narrow(np.where(x > 0, x, x * said["negSlope"]), values[0])


def corner_pool(values: list[Any], said: Said) -> Array:
    """mmcv's: the largest of a place and all below (0), above (1), to the right (2), the left."""
    (x,), mode = values, said["mode"]
    if mode not in range(4):
        raise Unsuited(f"its mode is {mode}")
    axis = 2 if mode < 2 else 3
    if mode in (1, 3):
        return np.maximum.accumulate(x, axis)
    return np.flip(np.maximum.accumulate(np.flip(x, axis), axis), axis)


def _running(values: list[Any], said: Said, sign: int) -> tuple[Array, Array]:
    """As torch.cummax: of equals the later one counts."""
    x, axis = np.asarray(values[0]), said["dim"]
    lines = np.moveaxis(x, axis, -1)
    best, where = lines.copy(), np.zeros(lines.shape, np.int64)
    for place in range(1, lines.shape[-1]):
        before, new = best[..., place - 1], lines[..., place]
        later = (sign * new >= sign * before) | np.isnan(new)
        best[..., place] = np.where(later, new, before)
        where[..., place] = np.where(later, place, where[..., place - 1])
    return np.moveaxis(best, -1, axis), np.moveaxis(where, -1, axis)


def running_largest(values: list[Any], said: Said) -> tuple[Array, Array]:
    """`cummax`."""
    return _running(values, said, 1)


def running_least(values: list[Any], said: Said) -> tuple[Array, Array]:
    """`cummin`."""
    return _running(values, said, -1)


def attention(values: list[Any], said: Said) -> tuple[Array, Array]:
    """mmdeploy's `ScaledDotProductAttentionTRT (q, k, v, mask?)`, and its weights."""
    q, k, v = (wide(x) for x in values[:3])
    scores = q / np.sqrt(q.shape[-1]) @ np.swapaxes(k, -1, -2)
    if len(values) > 3:
        scores = scores + wide(values[3])
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    return narrow(weights @ v, values[0]), narrow(weights, values[0])


def grid_priors(values: list[Any], said: Said) -> Array:
    """mmdeploy's `GridPriorsTRT`: the anchors at every place, row by row."""
    base, tall, broad = np.asarray(values[0]), len(values[1]), len(values[2])
    found = np.zeros((tall, broad, len(base), 4), base.dtype)
    for row, column in np.ndindex(tall, broad):
        right, down = column * said["stride_w"], row * said["stride_h"]
        found[row, column] = base + np.asarray([right, down, right, down], base.dtype)
    return found.reshape(-1, 4)


def copied(values: list[Any], said: Said) -> Array:
    """Caffe2's names and copies between devices."""
    return np.asarray(values[0])


def resized(values: list[Any], said: Said) -> Array:
    """Caffe2's `ResizeNearest` and `UpsampleNearest`: element i is that at floor(i / scale)."""
    x = np.asarray(values[0])
    if said.get("order", "NCHW") != "NCHW":
        raise NoWitness("ResizeNearest", where="", why="channels come last")
    for axis, name in ((2, "height_scale"), (3, "width_scale")):
        scale = np.float32(said[name] if name in said else said.get("scale", 1))
        count = int(np.float32(x.shape[axis]) * scale)
        places = np.floor(np.arange(count, dtype=np.float32) / scale).astype(int)
        x = np.take(x, np.minimum(places, x.shape[axis] - 1), axis)
    return x


TABLE: Mapping[str, Callable[[list[Any], dict[str, Any]], Any]] = {
    "InstanceNormalization_TRT": instance_norm,
    "MMCVInstanceNormalization": instance_norm,
    "GroupNormalizationPlugin": group_norm,
    "LReLU_TRT": leaky_relu,
    "MMCVCornerPool": corner_pool,
    "cummax": running_largest,
    "cummin": running_least,
    "ScaledDotProductAttentionTRT": attention,
    "GridPriorsTRT": grid_priors,
    "AliasWithName": copied,
    "CopyCPUToGPU": copied,
    "CopyGPUToCPU": copied,
    "ResizeNearest": resized,
    "UpsampleNearest": resized,
}
