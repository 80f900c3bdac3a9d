"""OpenVINO's small layers, and what there is nothing for."""

from __future__ import annotations

import onnx_graphsurgeon as gs

from surgeon.builders.bench import Bench, operand
from surgeon.builders.plugins.called import said
from surgeon.builders.plugins.layers import in_groups_normalised
from surgeon.match import Match
from surgeon.rewrite import Draft, Refused

_EPS = 1e-6  # of a normalisation that says none


def swish(draft: Draft, match: Match) -> gs.Tensor:
    """`Swish (x, beta?)`: x * sigmoid(beta * x)."""
    node, c = match.root, Bench(draft)
    x, beta = node.inputs[0], operand(node, 1)
    inner = x
    if beta is not None:
        if any(size != 1 for size in c.shape(beta) or (0,)):
            raise Refused("its beta is not known to be one number")
        inner = c.op("Mul", x, c.op("Reshape", beta, c.ints([], "scalar")))
    made: gs.Tensor = c.op("Mul", x, c.op("Sigmoid", inner))
    return made


def group_norm(draft: Draft, match: Match) -> gs.Tensor:
    """`GroupNorm (x, scale, bias)`: instances of groups, and factors of channels."""
    c, (x, scale, bias) = Bench(draft), match.root.inputs
    eps = float(said(match.root).get("eps", _EPS))
    return in_groups_normalised(draft, match.root, x, c.flat(scale), c.flat(bias), eps)


def normalize(draft: Draft, match: Match) -> gs.Tensor:
    """`Normalize (x, weights)`: by the root of the sum of squares of channels, or of all of it."""
    node, c = match.root, Bench(draft)
    x, weights = node.inputs
    given, rank, dtype = said(node), c.rank(x), c.dtype(x)
    axes = list(range(1, rank)) if given.get("across_spatial", 0) else [1]
    total = c.op("ReduceSum", c.op("Mul", x, x), c.ints(axes, "axes"), keepdims=1)
    if eps := float(given.get("eps", 0.0)):
        total = c.op("Add", total, c.number(eps, dtype))
    y = c.op("Div", x, c.op("Sqrt", total))
    if given.get("channel_shared", 0):
        if c.shape(weights) not in ((), (1,)):
            raise Refused("its channels share weights that are not known to be one number")
        made: gs.Tensor = c.op("Mul", y, c.op("Reshape", weights, c.ints([], "scalar")))
    else:
        made = c.op("Mul", y, c.column(weights, rank - 1))
    return made
