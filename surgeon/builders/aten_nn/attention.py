"""PyTorch's attention: the product of heads, and the fused layers of `torch.nn.modules`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import onnx
import onnx_graphsurgeon as gs

from surgeon.arguments import Arguments, bind
from surgeon.builders import parts
from surgeon.builders.scalar_types import finfo
from surgeon.builders.standardising import layer_normalised
from surgeon.match import Match
from surgeon.rewrite import Draft, Refused

_BOOL = onnx.TensorProto.BOOL
_OF_EITHER_CORNER = (
    "_scaled_dot_product_flash_attention",
    "_scaled_dot_product_cudnn_attention",
    "_scaled_dot_product_fused_attention_overrideable",
)
# What adds any mask to the scores, also one of truth values, which its caller makes numbers of.
_ADDING = ("_scaled_dot_product_attention_math",)
# What changes a kernel's sequences or scores in ways that are not written here.
_VARIANTS = (
    "cu_seqlens_q cu_seqlens_k cum_seq_q cum_seq_k seqlen_k seqused_k alibi_slopes block_table"
)
_SRC, _PADDING, _WHOLE = 0, 1, 2  # MultiheadAttention.merge_masks: [L, S], [B, S], [B, H, L, S]


def native_multi_head_attention(draft: Draft, match: Match) -> Any:
    """`aten._native_multi_head_attention`: the result, and the weights where they are wanted."""
    args = bind(match.root, draft.facts)
    inputs = [args.tensor(name) for name in ("query", "key", "value")]
    wanted = bool(args.value("need_weights"))
    y, weights = _heads_together(draft, args, inputs, int(args.value("num_head")))
    if wanted and args.value("average_attn_weights"):
        weights = draft.op("ReduceMean", weights, draft.constant([1], "axes"), keepdims=0)
    if not wanted and any(parts.is_read(draft, t) for t in match.root.outputs[1:]):
        raise Refused("its weights are read, which it does not give")
    return y, weights


def transformer_encoder_layer(draft: Draft, match: Match) -> Any:
    """`aten._transformer_encoder_layer_fwd`: attention, then products, with their inputs added."""
    args = bind(match.root, draft.facts)
    x = args.tensor("src")
    eps, first = float(args.value("eps")), bool(args.value("norm_first"))

    def normal(t: gs.Tensor, which: int) -> gs.Tensor:
        weight, bias = args.tensor(f"norm_weight_{which}"), args.tensor(f"norm_bias_{which}")
        return layer_normalised(draft, t, 1, weight, bias, eps)

    def attended(t: gs.Tensor) -> gs.Tensor:
        return _heads_together(draft, args, [t, t, t], int(args.value("num_heads")))[0]

    def forward(t: gs.Tensor) -> gs.Tensor:
        inner = parts.linear(draft, t, args.tensor("ffn_weight_1"), args.tensor("ffn_bias_1"))
        inner = parts.gelu(draft, inner) if args.value("use_gelu") else draft.op("Relu", inner)
        return parts.linear(draft, inner, args.tensor("ffn_weight_2"), args.tensor("ffn_bias_2"))

    for which, sublayer in ((1, attended), (2, forward)):
        if first:
            x = draft.op("Add", x, sublayer(normal(x, which)))
        else:
            x = normal(draft.op("Add", x, sublayer(x)), which)
    return x


def _heads_together(
    draft: Draft, args: Arguments, inputs: list[gs.Tensor], heads: int
) -> tuple[gs.Tensor, gs.Tensor]:
    """Multi-head attention with one weight for queries, keys and values; and its probabilities."""
    if any(parts.rank_of(draft, t) != 3 for t in inputs):
        raise Refused("its input has no batch")
    width, rest = divmod(int(args.value("embed_dim")), heads)
    if rest:
        raise Refused(f"{heads} heads do not share {args.value('embed_dim')} channels")
    sides = []
    for index, t in enumerate(_projected(draft, args, inputs, width * heads)):
        split = draft.op("Reshape", t, draft.constant([0, 0, heads, width], "heads"))
        # keys are turned, as the product wants them
        order = [0, 2, 3, 1] if index == 1 else [0, 2, 1, 3]
        sides.append(draft.op("Transpose", split, perm=order))
    query, key, value = sides
    scale = draft.constant(np.array(1 / math.sqrt(width), parts.numpy_dtype(draft, query)), "scale")
    scores = _masked(draft, args, draft.op("MatMul", draft.op("Mul", query, scale), key))
    probabilities = draft.op("Softmax", scores, axis=3)
    y = draft.op("Transpose", draft.op("MatMul", probabilities, value), perm=[0, 2, 1, 3])
    y = draft.op("Reshape", y, draft.constant([0, 0, heads * width], "channels"))
    y = parts.linear(draft, y, args.tensor("proj_weight"), args.tensor("proj_bias"))
    return y, probabilities


def _projected(
    draft: Draft, args: Arguments, inputs: list[gs.Tensor], channels: int
) -> list[gs.Tensor]:
    weight, bias = args.tensor("qkv_weight"), args.tensor("qkv_bias")
    sizes = draft.constant([channels] * 3, "sizes")
    if all(t is inputs[0] for t in inputs):
        whole = parts.linear(draft, inputs[0], weight, bias)
        return list(draft.op("Split", whole, sizes, outputs=3, axis=2))
    weights, biases = (draft.op("Split", t, sizes, outputs=3, axis=0) for t in (weight, bias))
    return [parts.linear(draft, t, w, b) for t, w, b in zip(inputs, weights, biases, strict=True)]


def _masked(draft: Draft, args: Arguments, scores: gs.Tensor) -> gs.Tensor:
    """Scores with minus infinity where the mask is set, whatever the mask's dtype."""
    mask = args.optional("mask")
    if mask is None:
        return scores
    has_kind = args.schema.takes("mask_type")
    kind = args.value("mask_type") if has_kind else None
    rank = parts.rank_of(draft, mask)
    if {None: 4, _SRC: 2, _PADDING: 2, _WHOLE: 4}.get(kind) != rank:
        raise Refused(f"what a mask of rank {rank} stands for is not said")
    mask = parts.cast(draft, mask, _BOOL)
    if kind == _PADDING:
        mask = parts.unsqueeze(draft, mask, 1, 2)
    endless = draft.constant(np.array(-np.inf, parts.numpy_dtype(draft, scores)), "masked")
    return parts.choose(draft, mask, endless, scores)


def scaled_dot_product_attention(draft: Draft, match: Match) -> Any:
    """`aten.scaled_dot_product_attention` and its kernels: softmax(Q K^T scale + mask) V."""
    args = bind(match.root, draft.facts)
    if args.schema.overload == "quantized":
        raise Refused("its inputs are quantised in PyTorch's own way")
    query, key, value = (args.tensor(name) for name in ("query", "key", "value"))
    _refuse_dropout(args)
    if args.schema.takes("enable_gqa") and args.value("enable_gqa"):
        rank = parts.rank_of(draft, query)
        key, value = (_repeated_heads(draft, query, t, rank) for t in (key, value))
    biased = args.schema.takes("attn_bias")
    mask = args.optional("attn_bias" if biased else "attn_mask")
    causal = bool(args.value("is_causal"))
    if causal and mask is not None:
        raise Refused("it has a mask and is causal as well, which PyTorch refuses")
    if args.schema.takes("dropout_mask") and args.has("dropout_mask"):
        raise Refused("its seventh argument is no flag: it was exported by torch 1.13 or drops out")
    if causal and match.root.op in _OF_EITHER_CORNER:
        _refuse_corner(draft, query, key)
    if mask is not None and match.root.op in _ADDING and not draft.facts.model.is_before(2, 0):
        mask = parts.cast(draft, mask, draft.facts.of(query).dtype)
    return _attended(draft, args, (query, key, value), mask, causal=causal)[0]


def attention_with_sums(draft: Draft, match: Match) -> Any:
    """`aten._scaled_dot_product_flash_attention_for_cpu` with what its gradient reads."""
    args = bind(match.root, draft.facts)
    _refuse_dropout(args)
    query, key, value = (args.tensor(name) for name in ("query", "key", "value"))
    mask, causal = args.optional("attn_mask"), bool(args.value("is_causal"))
    scores = _scores(draft, args, query, key, mask, causal=causal)
    y = draft.op("MatMul", _shares(draft, scores, mask), value)
    dtype = parts.numpy_dtype(draft, query)
    sums = _logarithms_of_sums(draft, scores, dtype)
    if dtype.itemsize == 2:  # as it adds them up
        sums = draft.op("Cast", sums, to=onnx.TensorProto.FLOAT)
    return y, sums


def attention_backward(draft: Draft, match: Match) -> Any:
    """`aten._scaled_dot_product_flash_attention_for_cpu_backward`: of queries, keys and values.

    With P the softmax, D = P (dO V^T - rows of sum(dO O)): D K, D^T Q, both scaled, and P^T dO.
    """
    args = bind(match.root, draft.facts)
    _refuse_dropout(args)
    query, key, value = (args.tensor(name) for name in ("query", "key", "value"))
    gradient, out = args.tensor("grad_out"), args.tensor("out")
    rank = parts.rank_of(draft, query)
    turn = [*range(rank - 2), rank - 1, rank - 2]
    mask, causal = args.optional("attn_mask"), bool(args.value("is_causal"))
    # `logsumexp` says of the scores what they say themselves
    shares = _shares(draft, _scores(draft, args, query, key, mask, causal=causal), mask)
    axes = draft.constant([-1], "axes")
    mean = draft.op("ReduceSum", draft.op("Mul", gradient, out), axes, keepdims=1)
    slope = draft.op("MatMul", gradient, draft.op("Transpose", value, perm=turn))
    slope = draft.op("Mul", shares, draft.op("Sub", slope, mean))
    slope = draft.op("Mul", slope, _scale(draft, args, query, rank))
    return (
        draft.op("MatMul", slope, key),
        draft.op("MatMul", draft.op("Transpose", slope, perm=turn), query),
        draft.op("MatMul", draft.op("Transpose", shares, perm=turn), gradient),
    )


def attention_with_weights(draft: Draft, match: Match) -> Any:
    """`aten._scaled_dot_product_attention` of torch 1.13: the result, and the weights if wanted."""
    args = bind(match.root, draft.facts)
    _refuse_dropout(args)
    wanted = any(parts.is_read(draft, t) for t in match.root.outputs[1:])
    if wanted and not args.value("need_attn_weights"):
        raise Refused("its weights are read, which it does not give")
    query, key, value = (args.tensor(name) for name in ("query", "key", "value"))
    causal = bool(args.value("is_causal"))
    return _attended(draft, args, (query, key, value), args.optional("attn_mask"), causal=causal)


def attention_forward(draft: Draft, match: Match) -> Any:
    """`aten._efficient_attention_forward` and `_flash_attention_forward`.

    The kernels under the operators for scaled products: their heads stand behind the sequence.
    """
    args = bind(match.root, draft.facts)
    inputs = [args.tensor(name) for name in ("query", "key", "value")]
    _refuse_variants(draft, args, inputs)
    _refuse_dropout(args)
    # sdp_utils: 0 for no mask, 1 for one from the upper left corner, 2 from the lower right one
    efficient = args.schema.takes("custom_mask_type")
    kind = int(args.value("custom_mask_type" if efficient else "is_causal"))
    mask = args.optional("bias")
    if kind and mask is not None:
        raise Refused("it has a mask and is causal as well")
    turned = [draft.op("Transpose", t, perm=[0, 2, 1, 3]) for t in inputs]
    if kind == 2 or (kind and not efficient):
        _refuse_corner(draft, turned[0], turned[1])
    y = _attended(draft, args, (turned[0], turned[1], turned[2]), mask, causal=bool(kind))
    return draft.op("Transpose", y[0], perm=[0, 2, 1, 3])


def _refuse_variants(draft: Draft, args: Arguments, inputs: list[gs.Tensor]) -> None:
    if args.schema.overload == "quantized":
        raise Refused("its inputs are quantised in PyTorch's own way")
    for name in _VARIANTS.split():
        if args.has(name):
            raise Refused(f"`{name}` is given: sequences of unequal lengths, or scores of its own")
    for name in ("window_size", "window_size_left", "window_size_right"):
        if args.schema.takes(name) and args.value(name) not in (None, -1):
            raise Refused(f"`{name}` is {args.value(name)}: it attends to a window")
    if any(parts.rank_of(draft, t) != 4 for t in inputs):
        raise Refused("its inputs have no four axes: batch, sequence, heads, channels")
    heads = {parts.lengths_of(draft, t, 4)[2].static for t in inputs}
    if len(heads) > 1 or None in heads:
        raise Refused("whether every head of queries has keys of its own is not known")


def _attended(
    draft: Draft,
    args: Arguments,
    inputs: tuple[gs.Tensor, gs.Tensor, gs.Tensor],
    mask: gs.Tensor | None,
    *,
    causal: bool,
) -> tuple[gs.Tensor, gs.Tensor]:
    """softmax(Q K^T scale + mask) V, of [..., L, E], [..., S, E] and [..., S, V]; the softmax."""
    query, key, value = inputs
    scores = _scores(draft, args, query, key, mask, causal=causal)
    probabilities = _shares(draft, scores, mask)
    return draft.op("MatMul", probabilities, value), probabilities


def _shares(draft: Draft, scores: gs.Tensor, mask: gs.Tensor | None) -> gs.Tensor:
    """The softmax of each row."""
    probabilities: gs.Tensor = draft.op("Softmax", scores, axis=-1)
    if mask is not None and not draft.facts.model.is_before(2, 5):
        # rows of which everything is masked became 0 in 2.5; before, they were NaN
        most = draft.op("ReduceMax", scores, draft.constant([-1], "axes"), keepdims=1)
        dtype = parts.numpy_dtype(draft, scores)
        empty, zero = _hidden(draft, most, dtype), _number(draft, 0, dtype)
        return parts.choose(draft, empty, zero, probabilities)
    return probabilities


def _hidden(draft: Draft, most: gs.Tensor, dtype: np.dtype[Any]) -> gs.Tensor:
    """Where the largest score of a row says that the mask hides all of it."""
    made: gs.Tensor = draft.op("Less", most, _number(draft, finfo(dtype).min, dtype))
    return made


def _logarithms_of_sums(draft: Draft, scores: gs.Tensor, dtype: np.dtype[Any]) -> gs.Tensor:
    """log(sum(e^score)) of each row, [..., L]; 0 where everything is masked."""
    axes, zero = draft.constant([-1], "axes"), _number(draft, 0, dtype)
    most = draft.op("ReduceMax", scores, axes, keepdims=1)
    hidden = _hidden(draft, most, dtype)
    safe = parts.choose(draft, hidden, zero, most)
    total = draft.op("ReduceSum", draft.op("Exp", draft.op("Sub", scores, safe)), axes, keepdims=1)
    sums = draft.op("Add", safe, draft.op("Log", total))
    return parts.squeeze(draft, parts.choose(draft, hidden, zero, sums), -1)


def _scores(
    draft: Draft,
    args: Arguments,
    query: gs.Tensor,
    key: gs.Tensor,
    mask: gs.Tensor | None,
    *,
    causal: bool,
) -> gs.Tensor:
    """Q K^T scale + mask, [..., L, S]."""
    rank = parts.rank_of(draft, query)
    dtype = parts.numpy_dtype(draft, query)
    turned = [*range(parts.rank_of(draft, key))]
    turned[-2:] = turned[:-3:-1]
    scaled = draft.op("Mul", query, _scale(draft, args, query, rank))
    scores = draft.op("MatMul", scaled, draft.op("Transpose", key, perm=turned))
    if causal:
        earlier = _causal(draft, query, key)
        scores = parts.choose(draft, earlier, _number(draft, -np.inf, dtype), scores)
    elif mask is not None and draft.facts.of(mask).dtype == _BOOL:
        hidden = draft.op("Not", mask)
        scores = parts.choose(draft, hidden, _number(draft, -np.inf, dtype), scores)
    elif mask is not None:
        scores = draft.op("Add", scores, parts.cast(draft, mask, draft.facts.of(query).dtype))
    return scores


def _refuse_dropout(args: Arguments) -> None:
    if float(args.value("dropout_p")) > 0:
        raise Refused("it drops out at random: it was exported in training mode")


def _refuse_corner(draft: Draft, query: gs.Tensor, key: gs.Tensor) -> None:
    """A kernel whose causal mask starts in a corner of its own, unless the mask is square."""
    shapes = [draft.facts.of(t).shape for t in (query, key)]
    if any(s is None for s in shapes) or len({s[-2] for s in shapes if s is not None}) > 1:
        raise Refused(
            "it is causal, and queries and keys are not known to be as many: where its mask "
            "starts is the kernel's; export `scaled_dot_product_attention` itself"
        )


def _number(draft: Draft, value: float, dtype: np.dtype[Any]) -> gs.Tensor:
    return draft.constant(np.array(value, dtype), "number")


def _scale(draft: Draft, args: Arguments, query: gs.Tensor, rank: int) -> gs.Tensor:
    """By what scores are multiplied: what is given, or 1 / sqrt(E)."""
    given = args.value("scale") if args.schema.takes("scale") else None
    dtype = parts.numpy_dtype(draft, query)
    if given is not None:
        return _number(draft, float(given), dtype)
    width = parts.lengths_of(draft, query, rank)[-1]
    if width.static is not None:
        return _number(draft, 1 / math.sqrt(width.static), dtype)
    wide = parts.cast(draft, width.make(), draft.facts.of(query).dtype)
    return draft.op("Reciprocal", draft.op("Sqrt", wide))


def _repeated_heads(draft: Draft, query: gs.Tensor, t: gs.Tensor, rank: int) -> gs.Tensor:
    """Grouped queries: each head of keys stands for as many heads of queries."""
    axis = rank - 3
    mine, its = (parts.lengths_of(draft, x, rank)[axis].static for x in (query, t))
    if mine is None or its is None or mine % its:
        raise Refused("how many heads share one head of keys is not known")
    if mine == its:
        return t
    heads = np.repeat(np.arange(its), mine // its)
    return draft.op("Gather", t, draft.constant(heads, "heads"), axis=axis)


def _causal(draft: Draft, query: gs.Tensor, key: gs.Tensor) -> gs.Tensor:
    """[L, S], true where a key comes behind its query."""
    lengths = [parts.lengths_of(draft, t, parts.rank_of(draft, t))[-2] for t in (query, key)]
    rows, columns = (parts.counting(draft, length) for length in lengths)
    return draft.op("Less", parts.unsqueeze(draft, rows, 1), parts.unsqueeze(draft, columns, 0))
