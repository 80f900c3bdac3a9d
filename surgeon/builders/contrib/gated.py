"""Gates and norms of linear attention and of hyper-connections, as onnxruntime-genai writes them.

The formulas are those of onnxruntime's `ContribOperators.md`; halves are widened where it says so.
"""

from __future__ import annotations

import math
from typing import Any

import onnx_graphsurgeon as gs

from surgeon import dims
from surgeon.builders.bench import TYPE, Bench, operand
from surgeon.builders.contrib.settings import refuse_read, settings, width_of
from surgeon.builders.contrib.streams import by_branches
from surgeon.builders.standardising import rms_normalised
from surgeon.facts.kinds import HALVES
from surgeon.match import Match
from surgeon.rewrite import Draft, Refused

_FLOAT = int(TYPE.FLOAT)
_LEAST_DOT = 1e-6


def gated_rms_norm(draft: Draft, match: Match) -> gs.Tensor:
    """`com.microsoft.GatedRMSNorm (x, scale, gate)`: x / rms (x) * scale * f (gate).

    The mean of squares is over as many neighbours as `scale` has numbers.
    """
    node, c = match.root, Bench(draft)
    given = settings(node, 3, 3, {"activation": "silu", "epsilon": 1e-5})
    x, scale, gate = node.inputs[:3]
    if given["activation"] not in ("silu", "swish", "sigmoid"):
        raise Refused(f"no function is known for its activation {given['activation']!r}")
    whole = c.sizes(x)
    if not whole or c.rank(scale) != 1 or (groups := c.size(scale, 0)) == 0:
        raise Refused("its scale is no row of numbers, or its input none of such rows")
    wide = c.reshape(c.cast(x, _FLOAT), [*whole[:-1], c.div(whole[-1], groups), groups])
    y = rms_normalised(draft, wide, 1, scale, float(given["epsilon"]))
    gate = c.cast(gate, _FLOAT)
    share = c.op("Sigmoid", gate)
    if given["activation"] != "sigmoid":
        share = c.op("Mul", gate, share)
    return c.cast(c.op("Mul", c.reshape(y, whole), share), c.dtype(x))


def branchwise_rms_norm(draft: Draft, match: Match) -> gs.Tensor:
    """`com.microsoft.BranchwiseRMSNorm (x, scale)`: each branch divided by the root of its mean."""
    node, c = match.root, Bench(draft)
    given = settings(node, 1, 2, {"num_branches": 0, "epsilon": 1e-5})
    x, scale = node.inputs[0], operand(node, 1)
    grouped = by_branches(c, x, int(given["num_branches"]))
    if scale is not None:
        scale = _scale_of(c, c.cast(scale, _FLOAT), grouped)
    y = rms_normalised(draft, grouped, 1, scale, float(given["epsilon"]))
    return c.cast(c.reshape(y, c.sizes(x)), c.dtype(x))


def _scale_of(c: Bench, scale: gs.Tensor, grouped: gs.Tensor) -> gs.Tensor:
    """A scale as it broadcasts over branches: one number a channel, or one of every branch."""
    if c.rank(scale) != 1:
        return scale
    own, shape = c.shape(scale), c.shape(grouped)
    if own is None or shape is None:
        raise Refused("whether its scale has a number a branch is not known")
    if dims.equal(own[0], shape[-1]) is True:
        return scale
    if dims.equal(own[0], shape[-2] * shape[-1]) is not True:
        raise Refused("whether its scale has a number a branch is not known")
    return c.reshape(scale, c.sizes(grouped)[-2:])


def linear_attention_gate(draft: Draft, match: Match) -> Any:
    """`com.microsoft.LinearAttentionGate (a, dt_bias, decay_scale, b)`: the decay, and the rate.

    decay_scale * softplus (a + dt_bias), and sigmoid (b).
    """
    node, c = match.root, Bench(draft)
    settings(node, 3, 4)
    a, bias, scale = node.inputs[:3]
    dtype, rate = c.dtype(a), operand(node, 3)
    grown = c.op("Softplus", c.op("Add", c.cast(a, _FLOAT), bias))
    decay = c.cast(c.op("Mul", grown, scale), dtype)
    if rate is None:
        refuse_read(draft, node, 1, "its rate without what it is of")
        return decay, decay
    return decay, c.cast(c.op("Sigmoid", c.cast(rate, _FLOAT)), dtype)


def gated_add(draft: Draft, match: Match) -> gs.Tensor:
    """`com.microsoft.GatedAdd (x, y, gate)`: x + y * gate, with a number of the gate a row."""
    node, c = match.root, Bench(draft)
    settings(node, 3, 4)
    if operand(node, 3) is not None:
        raise Refused("its gate is projected, which onnxruntime does on CUDA alone, in bfloat16")
    x, y, gate = node.inputs[:3]
    made: gs.Tensor = c.op("Add", x, c.op("Mul", y, gate))
    return made


def scaled_silu(draft: Draft, match: Match) -> gs.Tensor:
    """`com.microsoft.ScaledSiLU (x, scale)`: z * sigmoid (z) of z = scale * x, each rounded."""
    node, c = match.root, Bench(draft)
    alpha = float(settings(node, 1, 2, {"alpha": 1.0})["alpha"])
    x, scale = node.inputs[0], operand(node, 1)
    dtype = c.dtype(x)
    factor = c.number(alpha, _FLOAT) if scale is None else c.cast(scale, _FLOAT)
    if scale is not None and c.shape(scale) != ():
        factor = c.op("Reshape", factor, c.ints([], "scalar"))
    z = x
    if scale is not None or alpha != 1:
        z = c.cast(c.op("Mul", c.cast(x, _FLOAT), factor), dtype)
    made: gs.Tensor = c.op("Mul", z, c.op("Sigmoid", z))
    return made


def engram_gate(draft: Draft, match: Match) -> Any:
    """`com.microsoft.EngramGate (key, query, value, ...)`: a value times sigmoids of products.

    gate = sigmoid (sign (dot) * sqrt (max (|dot|, 1e-6))), where dot is the product of the key and
    the query, each normalised, over the root of how wide they are.
    """
    node, c = match.root, Bench(draft)
    epsilon = float(settings(node, 5, 6, {"epsilon": 1e-5})["epsilon"])
    key, query, value, key_scale, query_scale = node.inputs[:5]
    last, dtype = operand(node, 5), c.dtype(key)
    width = width_of(draft, key, query, key_scale, query_scale, what="its keys are")
    sides = (
        rms_normalised(draft, c.cast(t, _FLOAT), 1, scale, epsilon)
        for t, scale in ((key, key_scale), (query, query_scale))
    )
    product = c.op("ReduceSum", c.op("Mul", *sides), c.ints([-1], "axes"), keepdims=1)
    dot = c.op("Mul", product, c.number(1 / math.sqrt(width), _FLOAT))
    size = c.op("Max", c.op("Abs", dot), c.number(_LEAST_DOT, _FLOAT))
    gate = c.op("Sigmoid", c.op("Mul", c.op("Sign", dot), c.op("Sqrt", size)))
    wide = c.op("Mul", gate, c.unsqueeze(c.cast(value, _FLOAT), [2]))
    y = c.cast(wide, dtype)
    if last is None:
        refuse_read(draft, node, 1, "its normalised value without a scale")
        return y, y
    read = wide if dtype not in HALVES else c.cast(y, _FLOAT)
    return y, c.cast(rms_normalised(draft, read, 1, last, epsilon), dtype)
