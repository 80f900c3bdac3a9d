"""Layers on quantized values, as onnxruntime's quantizer and its optimizer write them.

Their products are of whole numbers, as in the kernels, and the rest is in floats.
"""

from __future__ import annotations

from typing import Any

import onnx_graphsurgeon as gs

from surgeon.builders.bench import Bench, operand
from surgeon.builders.contrib.attention import merged_attention
from surgeon.builders.contrib.normed import mask_index, summed_rows, words_of
from surgeon.builders.contrib.quantized import product_of_bytes
from surgeon.builders.contrib.settings import settings
from surgeon.builders.layouts import channels_first, channels_last
from surgeon.builders.pairs import scale_of, zero_of
from surgeon.builders.standardising import layer_normalised
from surgeon.match import Match
from surgeon.rewrite import Draft, Refused

_ATTENTION = {"num_heads": None, "unidirectional": 0, "scale": 0.0, "mask_filter_value": -10000.0}
_ATTENTION_UNWRITTEN = {"do_rotary": 0, "past_present_share_buffer": 0}
_BYTES_IN_POOLS = 12  # the opset from which MaxPool takes 8 bits


def quantized_attention(draft: Draft, match: Match) -> Any:
    """`com.microsoft.QAttention (x, w, b, scales, mask, zeros, past)`: products of 8 bits."""
    node, c = match.root, Bench(draft)
    settings(node, 5, 9, _ATTENTION, unwritten=_ATTENTION_UNWRITTEN)
    x, weights, bias = node.inputs[:3]
    whole = product_of_bytes(
        c,
        (x, scale_of(c, node, 3), zero_of(c, node, 6)),
        (weights, scale_of(c, node, 4), zero_of(c, node, 7)),
        bias,
    )
    mask, past = operand(node, 5), operand(node, 8)
    return merged_attention(c, node, whole, weights, mask=mask, past=past)


def quantized_embed_layer_norm(draft: Draft, match: Match) -> Any:
    """`com.microsoft.QEmbedLayerNormalization`: rows of tables of 8 bits, summed and normalised.

    Tables, scale and shift are dequantized, the tables once their rows are taken. The second output
    is as that of `EmbedLayerNormalization`.
    """
    node, c = match.root, Bench(draft)
    given = settings(node, 1, 18, {"epsilon": 1e-12})
    ids, segments, mask = node.inputs[0], operand(node, 1), operand(node, 7)
    length = words_of(c, ids)

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
        return c.slice(table, 0, 0, length)

    words = plain(2, 8, 13, lambda table: c.op("Gather", table, ids, axis=0))
    kinds = None
    if segments is not None:
        kinds = plain(4, 10, 15, lambda table: c.op("Gather", table, segments, axis=0))
    total = summed_rows(c, words, plain(3, 9, 14, placed), kinds)
    y = layer_normalised(
        draft, total, 1, plain(5, 11, 16), plain(6, 12, 17), float(given["epsilon"])
    )
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
