"""Activations and sums that are spelled out along axes: LogSoftmax, Hardmax, reductions."""

from __future__ import annotations

import onnx_graphsurgeon as gs

from surgeon.builders import parts
from surgeon.builders.bench import Bench
from surgeon.facts.kinds import FLOATS
from surgeon.match import Match, attribute_of
from surgeon.rewrite import Draft, Refused


def log_softmax_as_difference(draft: Draft, match: Match) -> gs.Tensor:
    """LogSoftmax: x - max - log(sum(exp(x - max)))."""
    c, node = Bench(draft), match.root
    x = node.inputs[0]
    if c.dtype(x) not in FLOATS:
        raise Refused("its input is not of floats")
    axes = [_axis_of_softmax(c, node)]
    below = c.op("Sub", x, reduced(c, "ReduceMax", x, axes, keepdims=1))
    total = reduced(c, "ReduceSum", c.op("Exp", below), axes, keepdims=1)
    y: gs.Tensor = c.op("Sub", below, c.op("Log", total))
    return y


def hardmax_as_places(draft: Draft, match: Match) -> gs.Tensor:
    """Hardmax: where a place is that of the first greatest element."""
    c, node = Bench(draft), match.root
    x = node.inputs[0]
    axis = _axis_of_softmax(c, node)
    rank = parts.rank_of(draft, x)
    place = c.op("ArgMax", x, axis=axis, keepdims=1)
    count = c.count(c.size(x, axis))
    if behind := rank - 1 - axis:
        count = c.unsqueeze(count, [1 + n for n in range(behind)])
    return c.cast(c.op("Equal", place, count), c.dtype(x))


def _axis_of_softmax(c: Bench, node: gs.Node) -> int:
    """The axis of a softmax, from the front."""
    rank = c.rank(node.inputs[0])
    if not rank:
        raise Refused("its input has no axis")
    axis = attribute_of(node, "axis")
    return c.axis(-1 if axis is None else int(axis), rank)


def reduced(c: Bench, op: str, x: gs.Tensor, axes: list[int], *, keepdims: int) -> gs.Tensor:
    """A reduction along axes, as an operand or as an attribute."""
    made: gs.Tensor = c.op(op, x, c.ints(axes, "axes"), keepdims=keepdims)
    return made
