"""The losses of classes that ONNX has operators for, and what max pooling found put back."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_graphsurgeon as gs

from surgeon.builders.bench import TYPE, Bench, Size, operand
from surgeon.facts.kinds import FLOATS, HALVES
from surgeon.match import Match, attribute_of
from surgeon.rewrite import Draft, Refused


def negative_log_likelihood(draft: Draft, match: Match) -> gs.Tensor:
    """NegativeLogLikelihoodLoss: minus the score of the class that is right, weighed."""
    return _likelihood(Bench(draft), match.root, match.root.inputs[0])


def softmax_cross_entropy(draft: Draft, match: Match) -> Any:
    """SoftmaxCrossEntropyLoss: the same of the logarithms of a softmax, which it gives too."""
    c = Bench(draft)
    scores = c.op("LogSoftmax", match.root.inputs[0], axis=1)
    return _likelihood(c, match.root, scores), scores


def _likelihood(c: Bench, node: gs.Node, scores: gs.Tensor) -> gs.Tensor:
    if c.opset < 13:
        raise Refused("below opset 13 LogSoftmax is of all the last axes, and Equal of few types")
    target, weight, ignored = node.inputs[1], operand(node, 2), attribute_of(node, "ignore_index")
    dtype, kind = c.dtype(scores), c.dtype(target)
    reduction = attribute_of(node, "reduction")
    if reduction not in ("none", "mean", "sum"):
        raise Refused(f"there is no reduction `{reduction}`")
    if dtype not in FLOATS - HALVES:
        raise Refused("its scores are halves, whose sum it adds up in another precision")
    known = None
    if ignored is not None:
        known = c.op("Not", c.op("Equal", target, c.number(ignored, kind)))
        target = c.where(known, target, c.number(0, kind))
    found = c.op("GatherElements", scores, c.unsqueeze(target, [1]), axis=1)
    loss = c.op("Neg", c.squeeze(found, [1]))
    share = None if weight is None else c.op("Gather", weight, target, axis=0)
    if known is not None:
        counted = c.cast(known, dtype)
        share = counted if share is None else c.op("Mul", share, counted)
    if share is not None:
        loss = c.op("Mul", loss, share)
    if reduction == "none":
        return loss
    if reduction == "mean" and share is None:
        return c.op("ReduceMean", loss, keepdims=0)
    total: gs.Tensor = c.op("ReduceSum", loss, keepdims=0)
    return total if reduction == "sum" else c.op("Div", total, c.op("ReduceSum", share, keepdims=0))


def max_unpool_as_scatter(draft: Draft, match: Match) -> gs.Tensor:
    """MaxUnpool: values at the places of all elements where MaxPool found them, zeros elsewhere."""
    node, c = match.root, Bench(draft)
    x, places = node.inputs[:2]
    if operand(node, 2) is not None:
        raise Refused("its output's shape is given, of which its places may or may not be")
    kernel = [int(k) for k in attribute_of(node, "kernel_shape")]
    count = len(kernel)
    strides = [int(n) for n in attribute_of(node, "strides") or [1] * count]
    pads = [int(n) for n in attribute_of(node, "pads") or [0, 0] * count]
    sizes: list[Size | int] = [c.size(x, 0), c.size(x, 1)]
    for axis in range(count):
        steps = c.mul(c.sub(c.size(x, 2 + axis), 1), strides[axis])
        sizes.append(c.add(steps, kernel[axis] - pads[axis] - pads[count + axis]))
    whole = c.filled([c.product(sizes)], 0, c.dtype(x))
    flat = c.ints_of(np.asarray([-1]), "flat")
    values, indices = (c.op("Reshape", t, flat) for t in (x, c.cast(places, TYPE.INT64)))
    return c.reshape(c.op("ScatterElements", whole, indices, values, axis=0), sizes)
