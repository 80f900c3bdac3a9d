"""onnxruntime's operators that it has kernels for on GPUs alone, by its `ContribOperators.md`.

What it runs on CPUs it runs itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import onnx

from surgeon.reference.errors import Unsuited
from surgeon.reference.libraries import onnxruntime_fused, onnxruntime_spectra
from surgeon.reference.operators.math_activations import softmax
from surgeon.reference.operators.precision import Array, narrow, wide
from surgeon.reference.plugins.layers import normalised

DOMAINS = ("com.microsoft",)
Said = Mapping[str, Any]
_erf = np.vectorize(math.erf, otypes=[np.float64])


def group_norm(said: Said, x: Array, gamma: Array, beta: Array) -> Array:
    """By groups of channels, which come last unless `channels_last` is 0; SiLU is activation 1."""
    return narrow(_by_groups(said, wide(x), gamma, beta), x)


def skip_group_norm(
    said: Said, x: Array, gamma: Array, beta: Array, skip: Array, bias: Array | None = None
) -> tuple[Array, Array]:
    """The same of a sum, and the sum; what has two axes is added at every place."""
    if not said.get("channels_last", 1):
        raise Unsuited("its channels do not come last")
    total = wide(x) + (wide(skip)[:, None, None] if skip.ndim == 2 else wide(skip))
    if bias is not None:
        total = total + wide(bias)
    return narrow(_by_groups(said, total, gamma, beta), x), narrow(total, x)


def _by_groups(said: Said, x: Array, gamma: Array, beta: Array) -> Array:
    last, groups = said.get("channels_last", 1), said["groups"]
    if said["activation"] not in (0, 1):
        raise Unsuited(f"its activation is {said['activation']}")
    first = np.moveaxis(x, -1, 1) if last else x
    y = normalised(first, groups, gamma, beta, said.get("epsilon", 1e-5))
    if said["activation"]:
        y = y / (1 + np.exp(-y))
    return np.moveaxis(y, 1, -1) if last else y


def bias_add(said: Said, x: Array, bias: Array, skip: Array) -> Array:
    """The sum of all three."""
    return narrow(wide(x) + wide(bias) + wide(skip), x)


def bias_split_gelu(said: Said, x: Array, bias: Array) -> Array:
    """Of the sum's halves the left one times GELU of the right one."""
    left, right = np.split(wide(x) + wide(bias), 2, axis=-1)
    return narrow(left * 0.5 * right * (1 + _erf(right / math.sqrt(2))), x)


def gemm_fast_gelu(said: Said, x: Array, weight: Array, bias: Array | None = None) -> Array:
    """A product, a bias, and GELU by a tangent."""
    y = wide(x) @ wide(weight)
    if bias is not None:
        y = y + wide(bias)
    inner = y * (0.035677408136300125 * y * y + 0.7978845608028654)
    return narrow(0.5 * y * (1 + np.tanh(inner)), x)


def bias_softmax(said: Said, x: Array, bias: Array) -> Array:
    """A softmax of the sum, which is one of floats, over all axes from `axis` on."""
    least = np.result_type(x, np.float32)
    total = wide(x.astype(least) + bias.astype(least))
    axis = said.get("axis", 1) % x.ndim
    flat = total.reshape(*total.shape[:axis], -1)
    return narrow(softmax(flat, -1, None).reshape(x.shape), x)


def conv_channels_last(said: Said, x: Array, weight: Array, bias: Array | None = None) -> Array:
    """A plane's convolution; the channels of input, weight and output come last."""
    return onnxruntime_fused.fused_conv_channels_last(said, x, np.moveaxis(weight, -1, 1), bias)


def relative_position_bias(said: Said, table: Array, queries: Array, keys: Array) -> Array:
    """T5's: each pair of places has a bucket, by a logarithm where they are far apart.

    The table's numbers are in the order of [heads, buckets], whatever its shape says. Source:
    `_relative_position_bucket` of Hugging Face's T5.
    """
    buckets, heads = table.shape
    own = table.reshape(heads, buckets)
    distance = np.arange(int(keys.item()))[None] - np.arange(int(queries.item()))[:, None]
    place = np.zeros(distance.shape, np.int64)
    if said.get("is_bidirectional", 0):
        buckets //= 2
        place, distance = place + (distance > 0) * buckets, np.abs(distance)
    else:
        distance = -np.minimum(distance, 0)
    near = buckets // 2
    growth = np.float32(math.log(said["max_distance"] / near))
    far = np.log(np.maximum(distance, near).astype(np.float32) / np.float32(near)) / growth
    far = near + (far * np.float32(buckets - near)).astype(np.int64)
    place += np.where(distance < near, distance, np.minimum(far, buckets - 1))
    return own[:, place][None]


def gated_relative_position_bias(
    said: Said,
    x: Array,
    x_bias: Array,
    added: Array,
    weight: Array,
    bias: Array,
    scale: Array,
    offsets: Array | None = None,
) -> Array:
    """WavLM's: what is added, times a gate that each query gives."""
    if offsets is not None:
        raise Unsuited("its batch is packed")
    heads = said["num_heads"]
    query = (wide(x) + wide(x_bias)).reshape(*x.shape[:2], heads, -1).swapaxes(1, 2)
    gates = query @ wide(weight) + wide(bias)
    gates = gates.reshape(*gates.shape[:3], 2, -1).sum(-1)
    update, reset = np.split(1 / (1 + np.exp(-gates)), 2, axis=-1)
    return narrow((update * (reset * wide(scale) - 1) + 2) * wide(added), x)


def packed_attention(
    said: Said, query: Array, key: Array | None = None, value: Any = None, *rest: Any
) -> Array:
    """`MultiHeadAttention` of what is packed, `[batch, length, heads, 3 or 2, width]`."""
    if value is not None or any(each is not None for each in rest):
        raise Unsuited("it has a bias, a mask or a state")
    if key is None:
        q, k, v = (wide(part) for part in np.moveaxis(query, 3, 0))
    else:
        k, v = (wide(part) for part in np.moveaxis(key, 3, 0))
        q = wide(query).reshape(*query.shape[:2], *k.shape[2:])
    scores = np.einsum("bqhd,bkhd->bhqk", q, k)
    scores = scores * (said.get("scale") or 1 / math.sqrt(q.shape[-1]))
    if said.get("unidirectional"):
        length, total = scores.shape[2:]
        ahead = np.arange(total)[None] > np.arange(total - length, total)[:, None]
        scores = np.where(ahead, np.finfo(np.float32).min, scores)
    y = np.einsum("bhqk,bkhd->bqhd", softmax(scores, -1, None), v)
    return narrow(y.reshape(*y.shape[:2], -1), query)


def embedding(said: Said, weight: Array, indices: Array, *training: Array) -> Array:
    """Rows of a table; what else is given counts for gradients."""
    return np.take(weight, indices, axis=0)


def is_known(node: onnx.NodeProto) -> bool:
    """Whether it is executed here: an operator of `TABLE`, of attention only what is packed."""
    packed = len(node.input) < 3 or not node.input[2]
    return node.op_type in TABLE and (node.op_type != "MultiHeadAttention" or packed)


TABLE: Mapping[str, Callable[..., Any]] = {
    **onnxruntime_fused.TABLE,
    **onnxruntime_spectra.TABLE,
    "BiasAdd": bias_add,
    "BiasSoftmax": bias_softmax,
    "BiasSplitGelu": bias_split_gelu,
    "GatedRelativePositionBias": gated_relative_position_bias,
    "GemmFastGelu": gemm_fast_gelu,
    "GroupNorm": group_norm,
    "MultiHeadAttention": packed_attention,
    "NhwcConv": conv_channels_last,
    "RelativePositionBias": relative_position_bias,
    "SkipGroupNorm": skip_group_norm,
    "TorchEmbedding": embedding,
}
