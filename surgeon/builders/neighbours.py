"""Normalisations of old networks in arithmetic: LRN over neighbouring channels, and MVN.

Source of the formulas: ONNX's documentation of both operators.
"""

from __future__ import annotations

import onnx_graphsurgeon as gs

from surgeon.builders.bench import TYPE, Bench
from surgeon.builders.spelled import reduced
from surgeon.facts.kinds import FLOATS, HALVES
from surgeon.match import Match, attribute_of
from surgeon.rewrite import Draft, Refused

_RANK = 2  # the least of what has channels
_EPSILON = 1e-9  # as ONNX has it beside the deviation


def responses_of_neighbours(draft: Draft, match: Match) -> gs.Tensor:
    """LRN: x / (bias + alpha / size * sum of squares of the channels around) ** beta.

    The sum by the size is a mean of windows along the channels, with zeros around. Halves are
    widened meanwhile, which hold no square from 256 on.
    """
    c, node = Bench(draft), match.root
    x, dtype = node.inputs[0], c.dtype(node.inputs[0])
    if dtype not in FLOATS:
        raise Refused("its input is not of floats")
    x = c.cast(x, TYPE.FLOAT) if dtype in HALVES else x
    sizes, size = c.sizes(x), int(attribute_of(node, "size") or 1)
    if len(sizes) < _RANK:
        raise Refused("it has no channels")
    alpha, beta, bias = (
        default if (value := attribute_of(node, name)) is None else float(value)
        for name, default in (("alpha", 1e-4), ("beta", 0.75), ("bias", 1.0))
    )
    plane = c.reshape(c.op("Mul", x, x), [sizes[0], 1, sizes[1], c.product(sizes[2:])])
    means = c.op(
        "AveragePool",
        plane,
        kernel_shape=[size, 1],
        pads=[(size - 1) // 2, 0, size // 2, 0],
        strides=[1, 1],
        count_include_pad=1,
    )
    scaled = c.op("Mul", c.reshape(means, sizes), c.number(alpha, c.dtype(x)))
    total = c.op("Add", scaled, c.number(bias, c.dtype(x)))
    return c.cast(c.op("Div", x, c.op("Pow", total, c.number(beta, c.dtype(x)))), dtype)


def deviations_along_axes(draft: Draft, match: Match) -> gs.Tensor:
    """MeanVarianceNormalization: (x - mean) / (deviation + 1e-9)."""
    c, node = Bench(draft), match.root
    x = node.inputs[0]
    if c.dtype(x) not in FLOATS:
        raise Refused("its input is not of floats")
    given = attribute_of(node, "axes")
    rank = c.rank(x)
    axes = [c.axis(int(axis), rank) for axis in ((0, 2, 3) if given is None else given)]
    below = c.op("Sub", x, reduced(c, "ReduceMean", x, axes, keepdims=1))
    squares = reduced(c, "ReduceMean", c.op("Mul", below, below), axes, keepdims=1)
    deviation = c.op("Add", c.op("Sqrt", squares), c.number(_EPSILON, c.dtype(x)))
    y: gs.Tensor = c.op("Div", below, deviation)
    return y
