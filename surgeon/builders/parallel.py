"""Convolutions of one value side by side, whose results are added up: one of them takes all.

So networks are trained that are one Conv a layer afterwards: 3x3 and 1x1 kernels and a
normalisation of the value itself. A smaller kernel is a larger one with zeros around it.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import onnx_graphsurgeon as gs

from surgeon.builders.batch_norm import factor_and_shift
from surgeon.builders.bench import Bench
from surgeon.builders.linear import bias_of, narrow
from surgeon.builders.own_constants import own_weight
from surgeon.builders.padded import told_pads
from surgeon.facts.fact import Array
from surgeon.match import Match, attribute_of
from surgeon.rewrite import Draft, Refused


class _Kernel(NamedTuple):
    """What a Conv does: weight and bias in float64, and its numbers for each axis."""

    weight: Array
    bias: Array
    group: int
    strides: list[int]
    dilations: list[int]
    pads: list[int]


def conv_and_conv(draft: Draft, match: Match) -> gs.Tensor:
    """The sum of two Convs of one value as one Conv."""
    first, second = (_only(draft, t).inputs[0] for t in match.root.inputs)
    x: gs.Tensor = first.inputs[0]
    if second.inputs[0] is not x:
        raise Refused("they are Convs of two values")
    both = [(_kernel(draft, node), node) for node in (first, second)]
    both.sort(key=lambda pair: -math.prod(pair[0].weight.shape[2:]))
    (large, node), (small, _) = both
    return _made(draft, node, x, _sum(large, small))


def conv_and_norm(draft: Draft, match: Match) -> gs.Tensor:
    """The sum of a Conv and a BatchNormalization of one value as one Conv."""
    tensors = [_only(draft, t) for t in match.root.inputs]
    node = next(t.inputs[0] for t in tensors if t.inputs[0].op == "Conv")
    norm = next(t.inputs[0] for t in tensors if t.inputs[0].op == "BatchNormalization")
    x: gs.Tensor = node.inputs[0]
    if norm.inputs[0] is not x:
        raise Refused("they are of two values")
    kernel, (factor, shift) = _kernel(draft, node), factor_and_shift(draft, norm)
    inside = kernel.weight.shape[1]
    if len(factor) != kernel.weight.shape[0] or len(factor) != inside * kernel.group:
        raise Refused("the Conv gives another number of channels than it reads")
    each = np.arange(len(factor))
    weight = np.zeros((len(factor), inside, *[1] * len(kernel.strides)))
    weight[each, each % inside] = factor.reshape(-1, *[1] * len(kernel.strides))
    ones, none = [1] * len(kernel.strides), [0] * 2 * len(kernel.strides)
    return _made(
        draft, node, x, _sum(kernel, _Kernel(weight, shift, kernel.group, ones, ones, none))
    )


def _only(draft: Draft, tensor: gs.Tensor) -> gs.Tensor:
    if len(tensor.outputs) != 1 or draft.surgery.is_output(tensor):
        raise Refused("something else reads a summand")
    return tensor


def _kernel(draft: Draft, node: gs.Node) -> _Kernel:
    weight, bias = own_weight(draft, node), bias_of(draft, node)
    rank = weight.ndim - 2
    pads = told_pads(node, rank)
    if pads is None:
        raise Refused("pads are not told as numbers")
    numbers = [
        [int(n) for n in attribute_of(node, name) or default]
        for name, default in (("strides", [1] * rank), ("dilations", [1] * rank))
    ]
    offset = np.zeros(weight.shape[0])
    if bias is not None:
        offset = offset + bias.astype(np.float64)
    group = int(attribute_of(node, "group") or 1)
    return _Kernel(weight.astype(np.float64), offset, group, numbers[0], numbers[1], pads)


def _sum(large: _Kernel, small: _Kernel) -> tuple[Array, Array]:
    """The weight and bias of the larger with the smaller taken in.

    Raises:
        Refused: The smaller reads elsewhere than within the larger, or in other steps.
    """
    if large.group != small.group or large.strides != small.strides:
        raise Refused("they are of other groups or steps")
    if large.weight.shape[:2] != small.weight.shape[:2]:
        raise Refused("they are of other groups or steps")
    rank, weight = len(large.strides), large.weight.copy()
    places: list[slice] = [slice(None), slice(None)]
    for axis in range(rank):
        k, own = large.weight.shape[axis + 2], small.weight.shape[axis + 2]
        step = large.dilations[axis]
        if own > 1 and small.dilations[axis] != step:
            raise Refused("they are dilated in other ways")
        begin = large.pads[axis] - small.pads[axis]
        end = large.pads[axis + rank] - small.pads[axis + rank]
        at, off = divmod(begin, step)
        if off or at < 0 or at + own > k or begin + end != (k - own) * step:
            raise Refused("one reads elsewhere than within the other's window")
        places.append(slice(at, at + own))
    weight[tuple(places)] += small.weight
    return weight, large.bias + small.bias


def _made(draft: Draft, node: gs.Node, x: gs.Tensor, whole: tuple[Array, Array]) -> gs.Tensor:
    c, kind = Bench(draft), own_weight(draft, node)
    operands = [
        draft.constant(narrow(array, kind), name)
        for array, name in zip(whole, ("weight", "bias"), strict=True)
    ]
    y: gs.Tensor = c.op("Conv", x, *operands, **node.attrs)
    return y
