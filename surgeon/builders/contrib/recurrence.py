"""Layers that keep a state from token to token: causal convolutions, linear attention."""

from __future__ import annotations

from typing import Any

import onnx_graphsurgeon as gs

from surgeon.builders import causal, parts
from surgeon.builders.bench import Bench, operand
from surgeon.builders.contrib.settings import refuse_read, settings
from surgeon.builders.linear_attention import packed_linear_attention
from surgeon.match import Match
from surgeon.rewrite import Draft, Refused

_CONV = {"activation": "none", "dilation": 1, "channels_last": 0}
_CONV_UNWRITTEN = {
    "ndim": 1,
    "state_window": 0,
    "state_update_capacity": 0,
    "state_channels_last": -1,
    "state_length": 0,
    "input_channel_offset": 0,
    "input_channels": 0,
}


def causal_conv(draft: Draft, match: Match) -> Any:
    """`com.microsoft.CausalConvWithState (x, w, bias, past)`: as ONNX's own, or channels last."""
    node, c = match.root, Bench(draft)
    given = settings(node, 2, 4, _CONV, unwritten=_CONV_UNWRITTEN)
    refuse_read(draft, node, 2, "its compact state")
    x, weight = node.inputs[:2]
    last, past = bool(given["channels_last"]), operand(node, 3)
    if c.rank(weight) != 3 or c.rank(x) < 3 or (past is not None and c.rank(past) != c.rank(x)):
        raise Refused("its input, its weight or its past has too few axes")
    channels = c.size(weight, 0)
    inner = _channels_first(c, x, channels) if last else x
    before = past if past is None or not last else _channels_first(c, past, channels)
    y, whole, kept = causal.causal_conv(
        c, inner, weight, operand(node, 2), before, given["activation"], int(given["dilation"])
    )
    sizes = c.sizes(x)
    if last:
        y = c.reshape(c.permute(y, [0, 2, 1]), sizes)
    if len(node.outputs) < 2 or not parts.is_read(draft, node.outputs[1]):
        return y, y
    state = causal.last_places(c, whole, kept)
    if last:
        state = c.reshape(c.permute(state, [0, 2, 1]), [sizes[0], kept, *sizes[2:]])
    return y, state


def _channels_first(c: Bench, x: gs.Tensor, channels: Any) -> gs.Tensor:
    """[batch, length, ...] as [batch, channels, length]."""
    batch, length = c.sizes(x)[:2]
    return c.permute(c.reshape(x, [batch, length, channels]), [0, 2, 1])


_LINEAR = {
    "q_num_heads": None,
    "kv_num_heads": None,
    "update_rule": "gated_delta",
    "scale": 0.0,
    "chunk_size": 64,  # how kernels part their work
}


def linear_attention(draft: Draft, match: Match) -> Any:
    """`com.microsoft.LinearAttention (q, k, v, state, decay, rate)`: as ONNX's own.

    Keys may have fewer heads than values, which then share them.
    """
    given = settings(match.root, 3, 6, _LINEAR, unwritten={"state_window": 0})
    return packed_linear_attention(draft, match.root, given.__getitem__)
