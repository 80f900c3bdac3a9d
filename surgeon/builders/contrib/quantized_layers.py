"""Layers on quantized values, as onnxruntime's quantizer and its optimizer write them.

Their products are of whole numbers, as in the kernels, and the rest is in floats.
"""

from __future__ import annotations

from typing import Any

import onnx_graphsurgeon as gs

from surgeon.builders.bench import Bench, operand
from surgeon.builders.contrib.attention import merged_attention
from surgeon.builders.contrib.normed import mask_index, summed_rows
from surgeon.builders.contrib.quantized import product_of_bytes
from surgeon.builders.layouts import channels_first, channels_last
from surgeon.builders.pairs import scale_of, zero_of
from surgeon.builders.standardising import layer_normalised
from surgeon.match import Match
from surgeon.rewrite import Draft, Refused

_BYTES_IN_POOLS = 12  # the opset from which MaxPool takes 8 bits


def quantized_attention(draft: Draft, match: Match) -> Any:
    """`com.microsoft.QAttention (x, w, b, scales, mask, zeros, past)`: products of 8 bits."""
    node, c = match.root, Bench(draft)
    x, weights, bias, mask = (operand(node, at) for at in (0, 1, 2, 5))
    if x is None or weights is None:
        raise Refused("its input or its weights are missing")
    if node.attrs.get("past_present_share_buffer"):
        raise Refused("its past and present share one buffer, whose length only the caller knows")
    if node.attrs.get("do_rotary"):
        raise Refused("it turns queries and keys by their places, which is not written here")
    whole = product_of_bytes(
        c,
        (x, scale_of(c, node, 3), zero_of(c, node, 6)),
        (weights, scale_of(c, node, 4), zero_of(c, node, 7)),
        bias,
    )
    return merged_attention(c, node, whole, weights, mask=mask, past=operand(node, 8))


def quantized_embed_layer_norm(draft: Draft, match: Match) -> Any:
    """`com.microsoft.QEmbedLayerNormalization`: rows of tables of 8 bits, summed and normalised.

    Tables, scale and shift are dequantized, the tables once their rows are taken. The second output
    is as that of `EmbedLayerNormalization`.
    """
    node, c = match.root, Bench(draft)
    ids, segments, mask = (operand(node, at) for at in (0, 1, 7))
    if ids is None:
        raise Refused("its places are missing")

    def plain(at: int, scale: int, zero: int, rows: Any = None) -> gs.Tensor:
        table = operand(node, at)
        if table is None:
            raise Refused("a table, its places, a scale or a shift is missing")
        held = table if rows is None else rows(table)
        wide: gs.Tensor = c.op(
            "DequantizeLinear", held, scale_of(c, node, scale), zero_of(c, node, zero)
        )
        return wide

    def placed(table: gs.Tensor) -> gs.Tensor:
        return c.slice(table, 0, 0, c.size(ids, 1))

    words = plain(2, 8, 13, lambda table: c.op("Gather", table, ids, axis=0))
    kinds = None
    if segments is not None:
        kinds = plain(4, 10, 15, lambda table: c.op("Gather", table, segments, axis=0))
    total = summed_rows(c, words, plain(3, 9, 14, placed), kinds)
    eps = float(node.attrs.get("epsilon", 1e-12))
    y = layer_normalised(draft, total, 1, plain(5, 11, 16), plain(6, 12, 17), eps)
    return y, mask_index(c, node, ids, mask, instead=y)


def quantized_conv(draft: Draft, match: Match) -> gs.Tensor:
    """`com.microsoft.QLinearConv`: ONNX's own, of channels that may come last."""
    node, c = match.root, Bench(draft)
    attributes = dict(node.attrs)
    rest = [operand(node, at) for at in range(1, len(node.inputs))]
    if not attributes.pop("channels_last", 0):
        return c.op("QLinearConv", node.inputs[0], *rest, **attributes)
    y = c.op("QLinearConv", channels_first(c, node.inputs[0]), *rest, **attributes)
    return channels_last(c, y)


def max_pool_of_bytes(draft: Draft, match: Match) -> gs.Tensor:
    """`com.microsoft.NhwcMaxPool (x)`: a MaxPool of 8 bits whose channels come last."""
    node, c = match.root, Bench(draft)
    if c.opset < _BYTES_IN_POOLS:
        raise Refused(f"MaxPool takes 8 bits from opset {_BYTES_IN_POOLS} on, here it is {c.opset}")
    return channels_last(c, c.op("MaxPool", channels_first(c, node.inputs[0]), **node.attrs))
