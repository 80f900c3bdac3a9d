"""Quantized operators as ones in floats, between DequantizeLinear and QuantizeLinear."""

from __future__ import annotations

import onnx_graphsurgeon as gs

from surgeon.builders.bench import TYPE, Bench, operand
from surgeon.facts.kinds import HALVES
from surgeon.match import Match
from surgeon.opsets import PRECISION
from surgeon.rewrite import Draft, Refused

_FLOAT = int(TYPE.FLOAT)
_PER_AXIS = 13  # the opset from which scales may stand along an axis


def qlinear_conv_as_pairs(draft: Draft, match: Match) -> gs.Tensor:
    """QLinearConv (x, xs, xz, w, ws, wz, ys, yz, b): a Conv, its bias in units of xs ws."""
    node, c = match.root, Bench(draft)
    sides, bias = [widened(c, node, 0), widened(c, node, 3)], operand(node, 8)
    if bias is not None:
        sides.append(bias_of_product(c, node, bias))
    return narrowed(c, node, c.op("Conv", *sides, **node.attrs), 6)


def qlinear_matmul_as_pairs(draft: Draft, match: Match) -> gs.Tensor:
    """QLinearMatMul (a, as, az, b, bs, bz, ys, yz): a MatMul; scales of b may be of its columns."""
    node, c = match.root, Bench(draft)
    if c.facts.of(scale_of(c, node, 1)).shape != ():
        raise Refused("the scales of its first operand stand along an axis")
    columns = c.rank(node.inputs[3]) - 1
    y = c.op("MatMul", widened(c, node, 0), widened(c, node, 3, axis=columns))
    return narrowed(c, node, y, 6)


def bias_of_product(c: Bench, node: gs.Node, bias: gs.Tensor, axis: int = 0) -> gs.Tensor:
    """A bias in whole numbers, in floats: its unit is that of the product of both operands."""
    scale = c.op("Mul", *(scale_of(c, node, index) for index in (1, 4)))
    return _dequantized(c, bias, scale, None, axis)


def widened(c: Bench, node: gs.Node, at: int, axis: int = 0) -> gs.Tensor:
    """A quantized operand in floats; its scale and zero point stand behind it.

    Args:
        c: The draft, and what is known.
        node: The quantized operator.
        at: The operand's place.
        axis: Along which its scales stand, where it has several.
    """
    x = operand(node, at)
    if x is None:
        raise Refused("an operand is missing")
    if c.dtype(x) == _FLOAT:
        return x
    return _dequantized(c, x, scale_of(c, node, at + 1), zero_of(c, node, at + 2), axis)


def narrowed(c: Bench, node: gs.Node, y: gs.Tensor, at: int) -> gs.Tensor:
    """A result, quantized; its scale and zero point are these operands of the node."""
    made: gs.Tensor = c.op("QuantizeLinear", y, scale_of(c, node, at), zero_of(c, node, at + 1))
    return made


def scale_of(c: Bench, node: gs.Node, at: int) -> gs.Tensor:
    """The scale that a node has at a place: a number, or a vector of several."""
    scale = operand(node, at)
    if scale is None:
        raise Refused("a scale is missing")
    return _number(c, scale)


def zero_of(c: Bench, node: gs.Node, at: int) -> gs.Tensor | None:
    """The same of a zero point, which may be missing."""
    zero = operand(node, at)
    return None if zero is None else _number(c, zero)


def _number(c: Bench, vector: gs.Tensor) -> gs.Tensor:
    """The one element of a vector that has no more; else the vector."""
    if c.rank(vector) > 1:
        raise Refused("a scale or a zero point is no number and no vector, as ONNX has them")
    if c.shape(vector) != (1,):
        return vector
    made: gs.Tensor = c.op("Reshape", vector, c.ints([], "scalar"))
    return made


def divided_in_float32(c: Bench, x: gs.Tensor) -> dict[str, int]:
    """What a QuantizeLinear says that divides halves in float32, as it does at older opsets."""
    return {"precision": _FLOAT} if c.opset >= PRECISION and c.dtype(x) in HALVES else {}


def _dequantized(
    c: Bench, x: gs.Tensor, scale: gs.Tensor, zero: gs.Tensor | None, axis: int
) -> gs.Tensor:
    if zero is not None and c.shape(zero) != c.shape(scale):
        raise Refused("scales and zero points are not as many, and a pair wants one of each")
    made: gs.Tensor = c.op("DequantizeLinear", x, scale, zero, **along(c, scale, axis))
    return made


def along(c: Bench, scale: gs.Tensor, axis: int) -> dict[str, int]:
    """The axis of a QuantizeLinear or DequantizeLinear, where it has a scale for each place."""
    if not c.rank(scale):
        return {}
    if c.opset < _PER_AXIS:
        raise Refused(f"scales along an axis need opset {_PER_AXIS}, and the model has {c.opset}")
    return {"axis": axis}
