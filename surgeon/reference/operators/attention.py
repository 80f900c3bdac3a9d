"""Scaled dot product attention and its kernels, head by head in float64."""

# ruff: noqa: D103 - each function means what PyTorch documents for its schema, in TABLE

from __future__ import annotations

import math
from typing import Any

import numpy as np

from surgeon.reference.errors import Unsuited
from surgeon.reference.operators.math_reductions import logsumexp
from surgeon.reference.operators.precision import Array, Row, narrow, wide


def weights(scores: Any, kept: Any) -> Any:
    """Shares of e^score among those that are kept; NaN where none is."""
    powers = np.where(kept, np.exp(scores - np.where(kept, scores, -np.inf).max(-1)[..., None]), 0)
    return powers / powers.sum(-1)[..., None]


def turned(matrices: Any) -> Any:
    return np.swapaxes(matrices, -1, -2)


def scaled_dot_product_attention(
    query: Array,
    key: Array,
    value: Array,
    attn_mask: Array | None,
    dropout_p: float,
    is_causal: bool,
    scale: float | None,
    enable_gqa: bool = False,
) -> Array:
    if dropout_p > 0:
        raise Unsuited("it drops out at random")
    k, v = wide(key), wide(value)
    if enable_gqa:
        group = query.shape[-3] // k.shape[-3]
        k, v = (np.repeat(t, group, axis=-3) for t in (k, v))
    shares = _shares(*_scores(wide(query), k, v, attn_mask, is_causal, scale))
    return narrow(shares @ v, query)


def _shares(scores: Any, kept: Array) -> Any:
    """What each key has in a row; nothing where the mask hides all of it."""
    return np.where(kept.any(axis=-1, keepdims=True), weights(scores, kept), 0)


def _scores(
    q: Any, k: Any, v: Any, attn_mask: Array | None, is_causal: bool, scale: float | None
) -> tuple[Any, Array]:
    """The scores [..., L, S], and which of them count."""
    if q.shape[-1] != k.shape[-1] or k.shape[-2] != v.shape[-2]:  # which a product may broadcast
        raise Unsuited(
            "its keys are of another size than its queries, or not as many as its values"
        )
    scores = q @ turned(k)
    scores = scores / math.sqrt(q.shape[-1]) if scale is None else scores * scale
    kept: Array = np.ones(scores.shape, bool)
    if is_causal:
        rows, columns = np.indices(scores.shape[-2:])
        kept = np.broadcast_to(columns <= rows, scores.shape)
    elif attn_mask is not None and attn_mask.dtype == np.bool_:
        kept = np.broadcast_to(attn_mask, scores.shape)
    elif attn_mask is not None:
        scores = scores + wide(attn_mask)
        kept = np.asarray(scores > -np.inf)
    return scores, kept


def flash_attention_for_cpu(
    query: Array,
    key: Array,
    value: Array,
    dropout_p: float,
    is_causal: bool,
    attn_mask: Array | None,
    scale: float | None,
) -> Any:
    y = scaled_dot_product_attention(query, key, value, attn_mask, dropout_p, is_causal, scale)
    scores, kept = _scores(wide(query), wide(key), wide(value), attn_mask, is_causal, scale)
    sums = logsumexp(np.where(kept, scores, -np.inf), -1, False)
    summed = np.float32 if query.dtype.itemsize == 2 else query.dtype
    return y, np.where(kept.any(axis=-1), sums, 0).astype(summed)


def flash_attention_for_cpu_backward(
    grad_out: Array,
    query: Array,
    key: Array,
    value: Array,
    out: Array,
    logsumexp: Array,
    dropout_p: float,
    is_causal: bool,
    attn_mask: Array | None,
    scale: float | None,
) -> Any:
    if dropout_p > 0:
        raise Unsuited("it drops out at random")
    q, k, v, gradient = wide(query), wide(key), wide(value), wide(grad_out)
    # `logsumexp` says of these scores what they say themselves
    shares = _shares(*_scores(q, k, v, attn_mask, is_causal, scale))
    towards = gradient @ turned(v)
    slope = shares * (towards - (gradient * wide(out)).sum(axis=-1, keepdims=True))
    slope = slope / math.sqrt(q.shape[-1]) if scale is None else slope * scale
    return (
        narrow(slope @ k, query),
        narrow(turned(slope) @ q, key),
        narrow(turned(shares) @ gradient, value),
    )


def attention_of_any_mask(
    query: Array,
    key: Array,
    value: Array,
    attn_mask: Array | None,
    *rest: Any,
    **named: Any,
) -> Any:
    """The kernel beneath: a mask of truth values is added as 0 and 1."""
    if attn_mask is not None:
        attn_mask = attn_mask.astype(query.dtype)
    return attention_math(query, key, value, attn_mask, *rest, **named)


def attention_math(
    query: Array,
    key: Array,
    value: Array,
    attn_mask: Array | None,
    dropout_p: float,
    is_causal: bool,
    dropout_mask: Array | None,
    scale: float | None,
    enable_gqa: bool = False,
) -> Any:
    y = scaled_dot_product_attention(
        query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa
    )
    return y, None


def attention_with_weights(
    query: Array,
    key: Array,
    value: Array,
    attn_mask: Array | None,
    dropout_p: float,
    need_attn_weights: bool,
    is_causal: bool,
) -> Any:
    def attended(values: Array) -> Array:
        rest = (attn_mask, dropout_p, is_causal, None)
        return scaled_dot_product_attention(query, key, values, *rest)

    units = np.broadcast_to(
        np.eye(key.shape[-2], dtype=value.dtype), (*key.shape[:-1], key.shape[-2])
    )
    return attended(value), attended(units) if need_attn_weights else None


def fused_attention(
    query: Array,
    key: Array,
    value: Array,
    attn_bias: Array | None = None,
    compute_log_sumexp: bool = False,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    return_debug_mask: bool = False,
    scale: float | None = None,
) -> Any:
    """A kernel of CUDA; what it gives besides is for training."""
    if is_causal and query.shape[-2] != key.shape[-2]:
        raise Unsuited("its causal mask is not square")
    y = scaled_dot_product_attention(query, key, value, attn_bias, dropout_p, is_causal, scale)
    return (y, *[None] * 8)


def attention_forward(
    query: Array, key: Array, value: Array, dropout_p: float, scale: float | None, **rest: Any
) -> Any:
    """A kernel of CUDA, [batch, sequence, heads, channels]; the rest is for training."""
    kind = int(rest.get("custom_mask_type", 2 * rest.get("is_causal", 0)))
    windows = ("window_size", "window_size_left", "window_size_right")
    unread = ("max_seqlen_q", "max_seqlen_k", "max_q", "max_k", "num_splits", "bias")
    known = (*windows, *unread, "custom_mask_type", "is_causal", "compute_log_sumexp")
    if any(rest.get(name) not in (None, -1) for name in windows) or any(
        v is not None for name, v in rest.items() if name not in (*known, "return_debug_mask")
    ):
        raise Unsuited("its sequences have lengths of their own, or windows")
    if kind == 2 and query.shape[1] != key.shape[1]:
        raise Unsuited("its causal mask is not square")
    q, k, v = (t.swapaxes(1, 2) for t in (query, key, value))
    y = scaled_dot_product_attention(q, k, v, rest.get("bias"), dropout_p, bool(kind), scale)
    return (y.swapaxes(1, 2), *[None] * 5)


_THREE = "Tensor query, Tensor key, Tensor value"
TABLE: tuple[Row, ...] = (
    (
        f"_efficient_attention_forward({_THREE}, Tensor? bias, Tensor? cu_seqlens_q, "
        "Tensor? cu_seqlens_k, SymInt? max_seqlen_q, SymInt? max_seqlen_k, float dropout_p, "
        "int custom_mask_type, bool compute_log_sumexp=False, *, float? scale=None, "
        "Tensor? seqlen_k=None, int? window_size=None) -> (Tensor, Tensor)",
        attention_forward,
    ),
    (
        f"_flash_attention_forward({_THREE}, Tensor? cum_seq_q, Tensor? cum_seq_k, SymInt max_q, "
        "SymInt max_k, float dropout_p, bool is_causal, bool return_debug_mask, *, "
        "float? scale=None, SymInt? window_size_left=None, SymInt? window_size_right=None, "
        "Tensor? seqused_k=None, Tensor? alibi_slopes=None, Tensor? block_table=None, "
        "int? num_splits=None) -> (Tensor, Tensor)",
        attention_forward,
    ),
    (
        f"scaled_dot_product_attention({_THREE}, Tensor? attn_mask=None, float dropout_p=0.0, "
        "bool is_causal=False, *, float? scale=None, bool enable_gqa=False) -> Tensor",
        scaled_dot_product_attention,
    ),
    (
        f"_scaled_dot_product_attention({_THREE}, Tensor? attn_mask=None, float dropout_p=0.0, "
        "bool need_attn_weights=False, bool is_causal=False) -> (Tensor, Tensor)",
        attention_with_weights,
    ),
    (
        f"_scaled_dot_product_flash_attention_for_cpu({_THREE}, float dropout_p=0.0, "
        "bool is_causal=False, *, Tensor? attn_mask=None, float? scale=None) -> (Tensor, Tensor)",
        flash_attention_for_cpu,
    ),
    (
        f"_scaled_dot_product_flash_attention_for_cpu_backward(Tensor grad_out, {_THREE}, "
        "Tensor out, Tensor logsumexp, float dropout_p, bool is_causal, *, Tensor? attn_mask=None, "
        "float? scale=None) -> (Tensor, Tensor, Tensor)",
        flash_attention_for_cpu_backward,
    ),
    *(
        (
            f"{name}({_THREE}, Tensor? attn_mask=None, float dropout_p=0.0, "
            "bool is_causal=False, Tensor? dropout_mask=None, *, float? scale=None, "
            "bool enable_gqa=False) -> (Tensor, Tensor)",
            function,
        )
        for name, function in (
            ("_scaled_dot_product_attention_math", attention_of_any_mask),
            ("_scaled_dot_product_attention_math_for_mps", attention_math),
        )
    ),
    *(
        (f"{name}({_THREE}, {rest}, *, float? scale=None) -> (Tensor, Tensor)", fused_attention)
        for name, rest in (
            (
                "_scaled_dot_product_flash_attention",
                "float dropout_p=0.0, bool is_causal=False, bool return_debug_mask=False",
            ),
            (
                "_scaled_dot_product_efficient_attention",
                "Tensor? attn_bias, bool compute_log_sumexp, float dropout_p=0.0, "
                "bool is_causal=False",
            ),
            (
                "_scaled_dot_product_cudnn_attention",
                "Tensor? attn_bias, bool compute_log_sumexp, float dropout_p=0.0, "
                "bool is_causal=False, bool return_debug_mask=False",
            ),
            (
                "_scaled_dot_product_fused_attention_overrideable",
                "Tensor? attn_bias=None, float dropout_p=0.0, bool is_causal=False, "
                "bool return_debug_mask=False",
            ),
        )
    ),
)
