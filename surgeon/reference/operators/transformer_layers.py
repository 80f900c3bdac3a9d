"""Layers around attention (torch.nn.MultiheadAttention, TransformerEncoderLayer), in float64."""

# ruff: noqa: D103 - each function means what PyTorch documents for its schema, in TABLE

from __future__ import annotations

import math
from typing import Any

import numpy as np

from surgeon.reference.errors import Unsuited
from surgeon.reference.operators.attention import turned, weights
from surgeon.reference.operators.precision import Array, Row, erf, narrow, wide


def _linear(x: Any, weight: Array, bias: Array) -> Any:
    return x @ wide(weight).T + wide(bias)


def _kept(mask: Array | None, kind: int | None, batch: int, heads: int, scores: Any) -> Any:
    """Which scores count: a set element of the mask hides."""
    if mask is None:
        return np.ones(scores.shape, bool)
    if kind == 1:
        if mask.shape != (batch, scores.shape[-1]):
            raise Unsuited(f"a padding mask of shape {list(mask.shape)}")
        mask = mask[:, None, None, :]
    elif (kind == 0 and mask.ndim != 2) or (kind != 0 and mask.shape != scores.shape):
        raise Unsuited(f"a mask of shape {list(mask.shape)}")
    return np.broadcast_to(mask == 0, scores.shape)


def _heads(
    inputs: tuple[Any, Any, Any],
    heads: int,
    qkv: tuple[Array, Array],
    proj: tuple[Array, Array],
    mask: Array | None,
    kind: int | None,
) -> tuple[Any, Any]:
    query, key, value = (x.shape for x in inputs)
    if not query[0] == key[0] == value[0] or key[1] != value[1]:  # which a product may broadcast
        raise Unsuited("its inputs have different batches, or not as many keys as values")
    size = query[-1]
    width = size // heads
    sides = [
        _linear(x, qkv[0][i * size : (i + 1) * size], qkv[1][i * size : (i + 1) * size])
        for i, x in enumerate(inputs)
    ]
    q, k, v = (s.reshape(*s.shape[:2], heads, width).swapaxes(1, 2) for s in sides)
    scores = q @ turned(k) / math.sqrt(width)
    shares = weights(scores, _kept(mask, kind, len(scores), heads, scores))
    y = (shares @ v).swapaxes(1, 2).reshape(*query[:2], size)
    return _linear(y, *proj), shares


def native_multi_head_attention(
    query: Array,
    key: Array,
    value: Array,
    embed_dim: int,
    num_head: int,
    qkv_weight: Array,
    qkv_bias: Array,
    proj_weight: Array,
    proj_bias: Array,
    mask: Array | None,
    need_weights: bool,
    average_attn_weights: bool,
    mask_type: int | None,
) -> Any:
    if not query.shape == key.shape == value.shape or query.ndim != 3:
        raise Unsuited("its three inputs are not of one shape")
    inputs = (wide(query), wide(key), wide(value))
    y, shares = _heads(
        inputs, num_head, (qkv_weight, qkv_bias), (proj_weight, proj_bias), mask, mask_type
    )
    if not need_weights:
        return narrow(y, query), None
    return narrow(y, query), narrow(shares.mean(1) if average_attn_weights else shares, query)


def _normal(x: Any, weight: Array, bias: Array, eps: float) -> Any:
    gap = x - x.mean(-1, keepdims=True)
    return gap / np.sqrt(x.var(-1, keepdims=True) + eps) * wide(weight) + wide(bias)


def transformer_encoder_layer(
    src: Array,
    embed_dim: int,
    num_heads: int,
    qkv_weight: Array,
    qkv_bias: Array,
    proj_weight: Array,
    proj_bias: Array,
    use_gelu: bool,
    norm_first: bool,
    eps: float,
    norm_weight_1: Array,
    norm_bias_1: Array,
    norm_weight_2: Array,
    norm_bias_2: Array,
    ffn_weight_1: Array,
    ffn_bias_1: Array,
    ffn_weight_2: Array,
    ffn_bias_2: Array,
    mask: Array | None,
    mask_type: int | None,
) -> Array:
    def attended(x: Any) -> Any:
        pair = ((qkv_weight, qkv_bias), (proj_weight, proj_bias))
        return _heads((x, x, x), num_heads, *pair, mask, mask_type)[0]

    def forward(x: Any) -> Any:
        inner = _linear(x, ffn_weight_1, ffn_bias_1)
        gelu = inner * 0.5 * (1 + erf(inner / math.sqrt(2)))
        return _linear(gelu if use_gelu else np.maximum(inner, 0), ffn_weight_2, ffn_bias_2)

    x = wide(src)
    first, second = (norm_weight_1, norm_bias_1, eps), (norm_weight_2, norm_bias_2, eps)
    if norm_first:
        x = x + attended(_normal(x, *first))
        x = x + forward(_normal(x, *second))
    else:
        x = _normal(x + attended(x), *first)
        x = _normal(x + forward(x), *second)
    return narrow(x, src)


_QKV = "Tensor qkv_weight, Tensor qkv_bias, Tensor proj_weight, Tensor proj_bias"
_NORMS = ", ".join(f"Tensor norm_weight_{i}, Tensor norm_bias_{i}" for i in (1, 2))
_FFN = ", ".join(f"Tensor ffn_weight_{i}, Tensor ffn_bias_{i}" for i in (1, 2))
TABLE: tuple[Row, ...] = (
    (
        "_native_multi_head_attention(Tensor query, Tensor key, Tensor value, int embed_dim, "
        f"int num_head, {_QKV}, "
        "Tensor? mask=None, bool need_weights=True, bool average_attn_weights=True, "
        "int? mask_type=None) -> (Tensor, Tensor)",
        native_multi_head_attention,
    ),
    (
        f"_transformer_encoder_layer_fwd(Tensor src, int embed_dim, int num_heads, {_QKV}, "
        f"bool use_gelu, bool norm_first, float eps, {_NORMS}, {_FFN}, Tensor? mask=None, "
        "int? mask_type=None) -> Tensor",
        transformer_encoder_layer,
    ),
)
