"""Mixtures of experts: every token by the few experts that its router chose.

All experts compute of all tokens, and what a token did not choose counts for nothing: so it works
for any number of tokens, and takes as much more work as there are experts for one that is chosen.
What a router chooses, and of equal ones the last, is that of onnxruntime's kernels for CPUs
(`moe_cpu.cc`, `moe_quantization_cpu.cc`); two layers in front (`fc3`, `swiglu_fusion` of 0 or 2),
`relu2` and `geglu`, which these lack, are those of its documentation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import onnx_graphsurgeon as gs

from surgeon.builders import parts
from surgeon.builders.bench import LARGEST, TYPE, Bench, operand
from surgeon.builders.contrib.settings import settings, width_of
from surgeon.match import Match
from surgeon.rewrite import Draft, Refused

_FLOAT = int(TYPE.FLOAT)
USUAL: Mapping[str, Any] = {
    "k": 1,
    "activation_type": "relu",
    "activation_alpha": 1.0,
    "activation_beta": 0.0,
    "swiglu_fusion": 0,
    "swiglu_limit": math.inf,
    "normalize_routing_weights": 0,
}
UNWRITTEN: Mapping[str, Any] = {"use_sparse_mixer": 0, "swiglu_limit_after_activation": 0}
_GATED = ("swiglu", "geglu")


@dataclass(frozen=True, slots=True)
class Layer:
    """A product of each expert, in float32.

    Attributes:
        weight: [experts, in, out].
        bias: [experts, out]; None for none.
    """

    weight: gs.Tensor
    bias: gs.Tensor | None

    def of(self, c: Bench, x: gs.Tensor) -> gs.Tensor:
        """[experts, tokens, out] of [experts or 1, tokens, in]."""
        y: gs.Tensor = c.op("MatMul", x, self.weight)
        return y if self.bias is None else c.op("Add", y, c.unsqueeze(self.bias, [1]))


@dataclass(frozen=True, slots=True)
class Experts:
    """What each expert computes.

    Attributes:
        first: Its first layer; of what is fused, gates and values as one.
        last: Its last.
        beside: What the first is multiplied by; None for nothing.
    """

    first: Layer
    last: Layer
    beside: Layer | None


def mixture(draft: Draft, match: Match) -> gs.Tensor:
    """`com.microsoft.MoE (x, router, w1, b1, w2, b2, w3, b3)`, in float32.

    Shares are the softmax of all that a router gives, of which the largest are chosen.
    """
    node, c = match.root, Bench(draft)
    given = settings(node, 3, 8, USUAL, unwritten=UNWRITTEN)
    first, last, beside = (_layer(c, node, at) for at in (2, 4, 6))
    if first is None or last is None:
        raise Refused("an expert's weights are missing")
    scores = c.op("Softmax", c.cast(node.inputs[1], _FLOAT), axis=1)
    values, places = largest(c, scores, int(given["k"]))
    if given["normalize_routing_weights"]:
        values = c.op("Div", values, c.op("ReduceSum", values, c.ints([1], "axes"), keepdims=1))
    shares = spread(c, scores, values, places)
    return mixed(c, node, given, Experts(first, last, beside), shares)


def _layer(c: Bench, node: gs.Node, at: int) -> Layer | None:
    weight, bias = operand(node, at), operand(node, at + 1)
    if weight is None:
        return None
    turned = c.permute(c.cast(weight, _FLOAT), [0, 2, 1])
    return Layer(turned, None if bias is None else c.cast(bias, _FLOAT))


def largest(c: Bench, scores: gs.Tensor, count: int) -> tuple[gs.Tensor, gs.Tensor]:
    """The largest of each row and their places from the end, of equal ones the last."""
    found, places = c.op("TopK", backwards(c, scores), c.ints([count], "k"), outputs=2, axis=1)
    return found, places


def backwards(c: Bench, x: gs.Tensor) -> gs.Tensor:
    """Each row from its end."""
    return c.slice(x, 1, -1, -LARGEST, -1)


def spread(c: Bench, scores: gs.Tensor, values: gs.Tensor, places: gs.Tensor) -> gs.Tensor:
    """[experts, tokens, 1]: the share of each expert, and 0 where it is not chosen."""
    nothing = c.filled(c.sizes(scores), 0, _FLOAT)
    filled = c.op("ScatterElements", nothing, places, values, axis=1)
    return c.unsqueeze(c.permute(backwards(c, filled), [1, 0]), [2])


def mixed(
    c: Bench, node: gs.Node, given: Mapping[str, Any], experts: Experts, shares: gs.Tensor
) -> gs.Tensor:
    """The sum of what each token's experts give, times their shares.

    What is not chosen may be infinite, and is left out by a choice, not by a product with 0.
    """
    x = node.inputs[0]
    flat = c.cast(x, _FLOAT)
    if c.rank(x) != 2:
        flat = c.op("Reshape", flat, c.ints([-1, _width(c, x, experts)], "tokens"))
    inner = _activated(c, given, experts, c.unsqueeze(flat, [0]))
    weighted = c.op("Mul", experts.last.of(c, inner), shares)
    nothing = c.number(0, _FLOAT)
    chosen = c.where(c.op("Greater", shares, nothing), weighted, nothing)
    y = c.op("ReduceSum", chosen, c.ints([0], "axes"), keepdims=0)
    return c.cast(c.reshape(y, c.sizes(x)), c.dtype(x))


def _width(c: Bench, x: gs.Tensor, experts: Experts) -> int:
    shape = c.shape(experts.first.weight)
    if shape is not None and isinstance(shape[1], int):
        return shape[1]
    return width_of(c.draft, x, what="its tokens are")


def _activated(c: Bench, given: Mapping[str, Any], experts: Experts, x: gs.Tensor) -> gs.Tensor:
    """What the last layer is of: a function of the first, or one of it and what stands beside."""
    kind, fusion = str(given["activation_type"]), int(given["swiglu_fusion"])
    h = experts.first.of(c, x)
    beside = None if experts.beside is None else experts.beside.of(c, x)
    if kind not in _GATED:
        if kind not in _FUNCTIONS:
            raise Refused(f"no function is known for its activation {kind!r}")
        y = _FUNCTIONS[kind](c, h)
        return y if beside is None else c.op("Mul", y, beside)
    if fusion == 0 and kind == "swiglu":
        if beside is None:
            raise Refused("its gates have no values beside them")
        gate, value = h, beside
    elif fusion in (1, 2) and beside is None:
        gate, value = _apart(c, h, in_turn=fusion == 1)
    else:
        raise Refused(f"no {kind!r} of a `swiglu_fusion` of {fusion} is known")
    if kind == "geglu":
        made: gs.Tensor = c.op("Mul", parts.tanh_gelu(c.draft, gate), value)
        return made
    return _swiglu(c, given, gate, value)


def _apart(c: Bench, h: gs.Tensor, *, in_turn: bool) -> tuple[gs.Tensor, gs.Tensor]:
    """Gates and values, which lie in turn, or one behind the other."""
    if in_turn:
        gate, value = (c.slice(h, 2, start, LARGEST, 2) for start in (0, 1))
        return gate, value
    half = width_of(c.draft, h, what="what is fused is") // 2
    return c.slice(h, 2, 0, half), c.slice(h, 2, half, 2 * half)


def _swiglu(c: Bench, given: Mapping[str, Any], gate: gs.Tensor, value: gs.Tensor) -> gs.Tensor:
    """gate sigmoid (alpha gate) (value + beta), the gate bounded above, the value on both sides."""
    alpha, beta = float(given["activation_alpha"]), float(given["activation_beta"])
    limit = float(given["swiglu_limit"])
    if math.isnan(limit) or limit < 0:
        raise Refused(f"its limit is {limit}")
    if limit < math.inf:
        low, high = c.number(-limit, _FLOAT), c.number(limit, _FLOAT)
        gate, value = c.op("Min", gate, high), c.op("Clip", value, low, high)
    inner = gate if alpha == 1 else c.op("Mul", gate, c.number(alpha, _FLOAT))
    y = c.op("Mul", gate, c.op("Sigmoid", inner))
    made: gs.Tensor = c.op(
        "Mul", y, value if beta == 0 else c.op("Add", value, c.number(beta, _FLOAT))
    )
    return made


def _squared(c: Bench, x: gs.Tensor) -> gs.Tensor:
    y = c.op("Relu", x)
    made: gs.Tensor = c.op("Mul", y, y)
    return made


_FUNCTIONS: Mapping[str, Callable[[Bench, gs.Tensor], gs.Tensor]] = {
    "relu": lambda c, x: c.op("Relu", x),
    "relu2": _squared,
    "gelu": lambda c, x: parts.tanh_gelu(c.draft, x),
    "silu": lambda c, x: c.op("Mul", x, c.op("Sigmoid", x)),
    "identity": lambda c, x: x,
}
