"""Hyper-connections: several streams that are mixed in front of a block and behind it.

The formulas are those of onnxruntime's `ContribOperators.md`; all is computed in float32.
"""

from __future__ import annotations

import onnx_graphsurgeon as gs

from surgeon.builders.bench import TYPE, Bench, operand
from surgeon.builders.contrib.settings import settings, width_of
from surgeon.match import Match
from surgeon.rewrite import Draft, Refused

_FLOAT = int(TYPE.FLOAT)


def hyper_connection_in_front(draft: Draft, match: Match) -> gs.Tensor:
    """`com.microsoft.HyperConnectionPreMix (streams, gate)`: the sum of gated streams, scaled."""
    node, c = match.root, Bench(draft)
    given = settings(node, 2, 2, {"num_branches": 0, "reduction_scale": 1.0})
    streams, gate = node.inputs[:2]
    grouped = by_branches(c, streams, int(given["num_branches"]))
    y = c.op("Mul", grouped, _gate(c, gate, grouped, int(given["num_branches"])))
    axis = c.ints([c.rank(grouped) - 2], "axes")
    y = c.op("ReduceSum", y, axis, keepdims=0)
    scale = float(given["reduction_scale"])
    y = y if scale == 1 else c.op("Mul", y, c.number(scale, _FLOAT))
    return c.cast(y, c.dtype(streams))


def hyper_connection_behind(draft: Draft, match: Match) -> gs.Tensor:
    """`com.microsoft.HyperConnectionPostMix (x, block, gate, mix)`: mix^T x + gate * block."""
    node, c = match.root, Bench(draft)
    count = int(settings(node, 3, 4, {"num_branches": 0})["num_branches"])
    streams, block, gate = node.inputs[:3]
    mix = operand(node, 3)
    grouped = by_branches(c, streams, count)
    rank = c.rank(grouped)
    added = c.unsqueeze(c.cast(block, _FLOAT), [rank - 2])
    added = c.op("Mul", _gate(c, gate, grouped, 0), added)
    if mix is not None:
        turned = c.permute(c.cast(mix, _FLOAT), [*range(rank - 2), rank - 1, rank - 2])
        grouped = c.op("MatMul", turned, grouped)
    y = c.reshape(c.op("Add", grouped, added), c.sizes(streams))
    return c.cast(y, c.dtype(streams))


def by_branches(c: Bench, streams: gs.Tensor, count: int) -> gs.Tensor:
    """[..., streams, width] in float32; without a number of streams they have an axis.

    Raises:
        Refused: It has one axis, and no number of streams.
    """
    sizes = c.sizes(streams)
    wide = c.cast(streams, _FLOAT)
    if count:
        return c.reshape(wide, [*sizes[:-1], count, c.div(sizes[-1], count)])
    if len(sizes) < 2:
        raise Refused("its input has one axis, and no branches")
    return wide


def _gate(c: Bench, gate: gs.Tensor, grouped: gs.Tensor, count: int) -> gs.Tensor:
    """A gate as it broadcasts over streams: a number of each, or one of each channel of each.

    Args:
        c: Where the nodes go.
        gate: [..., streams], with an axis of 1 or of the width behind, or flat as streams are.
        grouped: [..., streams, width].
        count: How many streams lie in one axis, where the gate may lie so, too; else 0.
    """
    wide, rank = c.cast(gate, _FLOAT), c.rank(grouped)
    if c.rank(gate) == rank:
        return wide
    if count and width_of(c.draft, gate, what="its gate is") != count:
        return c.reshape(wide, c.sizes(grouped))
    return c.unsqueeze(wide, [rank - 1])
