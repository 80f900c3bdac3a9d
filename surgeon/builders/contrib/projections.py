"""Products that onnxruntime's optimizers put together with what stands around them.

What they compute is told by the documentation of each operator (`ContribOperators.md`); GPUs alone
have kernels, so the witness has functions of its own.
"""

from __future__ import annotations

from typing import Any

import onnx_graphsurgeon as gs

from surgeon.builders.bench import TYPE, Bench, operand, whole_number
from surgeon.builders.contrib.settings import refuse_read, settings, width_of
from surgeon.builders.standardising import rms_normalised
from surgeon.match import Match
from surgeon.rewrite import Draft, Refused

_FLOAT = int(TYPE.FLOAT)
_DOMAIN = "com.microsoft"
_TO_INT8 = 4  # the accuracy at which a kernel may round its other operand to 8 bits
_PACKED = {"K": None, "bits": 4, "block_size": None, "accuracy_level": 0}
_GATE = {"activation_alpha": 1.0, "activation_beta": 0.0, "limit": 0.0}


def swiglu(draft: Draft, match: Match) -> gs.Tensor:
    """`com.microsoft.SwiGLU (gate, up)`: of one operand both, the gate in front."""
    node, c = match.root, Bench(draft)
    given = settings(node, 1, 2, {**_GATE, "round_activation": 0})
    gate, up = node.inputs[0], operand(node, 1)
    if up is None:
        gate, up = _halves(c, gate)
    return _gated(c, gate, up, given, rounded=bool(given["round_activation"]))


def router_gate_up(draft: Draft, match: Match) -> tuple[gs.Tensor, gs.Tensor]:
    """`com.microsoft.RouterGateUpProj (x, w)`: a product, of which one part is gated."""
    node, c = match.root, Bench(draft)
    given = settings(node, 2, 2, {**_GATE, "activation": "swiglu", "router_size": None})
    if given["activation"] != "swiglu":
        raise Refused(f"nothing is known of its activation {given['activation']!r}")
    size, width = whole_number(node, "router_size"), width_of(draft, node.inputs[1], what="it is")
    y = c.op("MatMul", *node.inputs)
    gate, up = _halves(c, c.slice(y, -1, size, width))
    return c.slice(y, -1, 0, size), _gated(c, gate, up, given)


def _halves(c: Bench, x: gs.Tensor) -> tuple[gs.Tensor, gs.Tensor]:
    width = width_of(c.draft, x, what="its input is")
    return c.slice(x, -1, 0, width // 2), c.slice(x, -1, width // 2, width)


def _gated(
    c: Bench, gate: gs.Tensor, up: gs.Tensor, given: dict[str, Any], *, rounded: bool = False
) -> gs.Tensor:
    """g sigmoid (alpha g) (l + beta) of the clamped gate and of the other, in float32."""
    alpha, beta, limit = (
        float(given[key]) for key in ("activation_alpha", "activation_beta", "limit")
    )
    dtype = c.dtype(gate)
    g, linear = c.cast(gate, _FLOAT), c.cast(up, _FLOAT)
    if limit > 0:
        least, most = c.number(-limit, _FLOAT), c.number(limit, _FLOAT)
        g, linear = c.op("Min", g, most), c.op("Max", c.op("Min", linear, most), least)
    inner = g if alpha == 1 else c.op("Mul", g, c.number(alpha, _FLOAT))
    y = c.op("Mul", g, c.op("Sigmoid", inner))
    if rounded:
        y = c.cast(c.cast(y, dtype), _FLOAT)
    if beta:
        linear = c.op("Add", linear, c.number(beta, _FLOAT))
    return c.cast(c.op("Mul", y, linear), dtype)


def n_bits_qkv(draft: Draft, match: Match) -> tuple[gs.Tensor, ...]:
    """`com.microsoft.MatMulNBitsQkv (a, skip, scale, ...)`: three products of a norm."""
    return _qkv(draft, match, most=_TO_INT8 - 1)


def n_bits_qkv_in_floats(draft: Draft, match: Match) -> tuple[gs.Tensor, ...]:
    """The same where its kernel may round the other operand."""
    return _qkv(draft, match, most=_TO_INT8)


def n_bits_mlp(draft: Draft, match: Match) -> tuple[gs.Tensor, ...]:
    """`com.microsoft.MatMulNBitsMlp (a, skip, scale, ...)`: silu (gate) times up, two products."""
    return _mlp(draft, match, most=_TO_INT8 - 1)


def n_bits_mlp_in_floats(draft: Draft, match: Match) -> tuple[gs.Tensor, ...]:
    """The same where its kernel may round the other operand."""
    return _mlp(draft, match, most=_TO_INT8)


def _qkv(draft: Draft, match: Match, *, most: int) -> tuple[gs.Tensor, ...]:
    node, c = match.root, Bench(draft)
    given = settings(node, 1, 12, {**_PACKED, "Nq": None, "Nkv": None, "epsilon": 1e-6})
    total, scale = _summed(c, node), operand(node, 2)
    if scale is None:
        raise Refused("it lacks the scale of its norm")
    x = rms_normalised(draft, total, 1, scale, float(given["epsilon"]))
    made = [
        _product(c, node, x, at, whole_number(node, rows), most)
        for at, rows in ((3, "Nq"), (6, "Nkv"), (9, "Nkv"))
    ]
    return (*made, total)


def _mlp(draft: Draft, match: Match, *, most: int) -> tuple[gs.Tensor, ...]:
    node, c = match.root, Bench(draft)
    given = settings(node, 1, 9, {**_PACKED, "N": None, "epsilon": 1e-5, "activation": None})
    if given["activation"] != "silu":
        raise Refused(f"nothing is known of its activation {given['activation']!r}")
    total, scale = _summed(c, node), operand(node, 2)
    x = total
    if scale is not None:
        x = rms_normalised(draft, total, 1, scale, float(given["epsilon"]))
    gate, up = (_product(c, node, x, at, whole_number(node, "N"), most) for at in (3, 6))
    return c.op("Mul", c.op("Mul", gate, c.op("Sigmoid", gate)), up), total


def _summed(c: Bench, node: gs.Node) -> gs.Tensor:
    skip = operand(node, 1)
    if skip is not None:
        made: gs.Tensor = c.op("Add", node.inputs[0], skip)
        return made
    refuse_read(c.draft, node, 3 if node.op == "MatMulNBitsQkv" else 1, "its sum, of one operand")
    return node.inputs[0]


def _product(c: Bench, node: gs.Node, x: gs.Tensor, at: int, rows: int, most: int) -> gs.Tensor:
    """A MatMulNBits of the weight, scales and bias that begin at an operand."""
    if int(node.attrs.get("accuracy_level", 0)) > most:
        raise Refused("its kernel may round its input to 8 bits (`accuracy_level` is 4)")
    said: dict[str, Any] = {key: whole_number(node, key) for key in ("K", "block_size")}
    said["bits"] = int(node.attrs.get("bits", _PACKED["bits"]))
    b, scales, bias = (operand(node, at + place) for place in range(3))
    if b is None or scales is None:
        raise Refused("it lacks a weight, or the scales of one")
    tail = () if bias is None else (None, None, bias)
    made: gs.Tensor = c.draft.op("MatMulNBits", x, b, scales, *tail, domain=_DOMAIN, N=rows, **said)
    return made
