"""Operators on quantized values, as onnxruntime's quantizer writes them, in ONNX's own.

What has an operator of its own in floats becomes that one between DequantizeLinear and
QuantizeLinear; a product of dynamically quantized values is MatMulInteger and its scales.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import onnx
import onnx_graphsurgeon as gs

from surgeon import dims
from surgeon.builders.bench import TYPE, Bench, operand, whole_number
from surgeon.builders.pairs import (
    along,
    bias_of_product,
    divided_in_float32,
    narrowed,
    scale_of,
    widened,
    zero_of,
)
from surgeon.dims import Dim
from surgeon.match import Match
from surgeon.rewrite import Draft, Refused

_FLOAT = int(TYPE.FLOAT)
_BYTES = frozenset({int(TYPE.INT8), int(TYPE.UINT8)})
_NEW_SOFTMAX = 13  # the opset from which it is along one axis
_WIDER = 21  # the opset from which 16 and 4 bits have these operators
# Operators on quantized values: the one in floats, and how many operands are quantized.
_LIKE: Mapping[str, tuple[str, int]] = {
    "QLinearAdd": ("Add", 2),
    "QLinearAveragePool": ("AveragePool", 1),
    "QLinearGlobalAveragePool": ("GlobalAveragePool", 1),
    "QLinearLeakyRelu": ("LeakyRelu", 1),
    "QLinearMul": ("Mul", 2),
    "QLinearReduceMean": ("ReduceMean", 1),
    "QLinearSigmoid": ("Sigmoid", 1),
    "QLinearSoftmax": ("Softmax", 1),
}


def qlinear(draft: Draft, match: Match) -> gs.Tensor:
    """An operator of `_LIKE` on values with a scale and a zero point each, and so its result.

    For functions of one value onnxruntime's kernels have a table of all 256 results, which these
    are; others round on the way, by which a result may be one unit off.
    """
    node, c = match.root, Bench(draft)
    op, count = _LIKE[node.op]
    attributes = dict(node.attrs)
    if attributes.pop("channels_last", 0):
        raise Refused("its channels come last, where no standard operator has them")
    since = int(attributes.pop("opset", _NEW_SOFTMAX))
    if op == "Softmax" and (since < _NEW_SOFTMAX) != (c.opset < _NEW_SOFTMAX):
        raise Refused(f"it is the Softmax of opset {since}, and the model has {c.opset}")
    sides = [widened(c, node, 3 * index) for index in range(count)]
    axes = attributes.pop("axes", None)
    if axes is not None:
        sides.append(c.ints([int(axis) for axis in axes], "axes"))
    return narrowed(c, node, c.op(op, *sides, **attributes), 3 * count)


def qlinear_concat(draft: Draft, match: Match) -> gs.Tensor:
    """`com.microsoft.QLinearConcat (scale, zero, x1, scale1, zero1, ...)`."""
    node, c = match.root, Bench(draft)
    places, axis = range(2, len(node.inputs), 3), whole_number(node, "axis")
    first, *rest = (c.shape(node.inputs[at]) for at in places)
    if first is None or not all(_fits(first, shape, axis) for shape in rest):
        # onnxruntime's kernel does not look, and gives whatever stands behind the shorter one
        raise Refused("that its parts have the same sizes is not known; put `clean` in front")
    return narrowed(c, node, c.op("Concat", *(widened(c, node, at) for at in places), axis=axis), 0)


def _fits(first: Sequence[Dim], other: Sequence[Dim] | None, axis: int) -> bool:
    """Whether two parts are provably of the same sizes but along the axis that they are joined."""
    if other is None or len(first) != len(other):
        return False
    joined = axis % len(first)
    pairs = enumerate(zip(first, other, strict=True))
    return all(at == joined or dims.equal(*pair) is True for at, pair in pairs)


def qlinear_where(draft: Draft, match: Match) -> gs.Tensor:
    """`com.microsoft.QLinearWhere (condition, x, .., y, .., scale, zero)`."""
    node, c = match.root, Bench(draft)
    y = c.op("Where", node.inputs[0], widened(c, node, 1), widened(c, node, 4))
    return narrowed(c, node, y, 7)


def qgemm(draft: Draft, match: Match) -> gs.Tensor:
    """`com.microsoft.QGemm`: of quantized matrices, with a bias of their products' scale.

    Its kernel adds the bias up with the products, and multiplies both by `alpha`.
    """
    node, c = match.root, Bench(draft)
    a, b = widened(c, node, 0), widened(c, node, 3, axis=0 if node.attrs.get("transB") else 1)
    operands, bias = [a, b], operand(node, 6)
    if bias is not None:
        operands.append(bias_of_product(c, node, bias, axis=c.rank(bias) - 1))
    alpha = node.attrs.get("alpha", 1.0)
    factors = {"beta": alpha} if bias is not None and alpha != 1 else {}
    y: gs.Tensor = c.op("Gemm", *operands, **node.attrs, **factors)
    return y if operand(node, 7) is None else narrowed(c, node, y, 7)


def quantize_linear(draft: Draft, match: Match) -> gs.Tensor:
    """`com.microsoft.QuantizeLinear` and `DequantizeLinear`, as ONNX has them."""
    node, c = match.root, Bench(draft)
    low = c.dtype(node.inputs[0] if node.op == "DequantizeLinear" else node.outputs[0])
    if low not in _BYTES and low != TYPE.INT32 and c.opset < _WIDER:
        name = onnx.TensorProto.DataType.Name(low).lower()
        raise Refused(f"{node.op} of {name} needs opset {_WIDER}, and the model has {c.opset}")
    attributes = along(c, node.inputs[1], int(node.attrs.get("axis", 1)))
    if node.op == "QuantizeLinear":
        attributes |= divided_in_float32(c, node.inputs[0])
    return c.op(node.op, *(operand(node, i) for i in range(3)), **attributes)


def dynamic_quantize_matmul(draft: Draft, match: Match) -> gs.Tensor:
    """`com.microsoft.DynamicQuantizeMatMul (a, b, scale, zero, bias)`: of a, quantized here."""
    node, c = match.root, Bench(draft)
    a, scale, zero = c.op("DynamicQuantizeLinear", node.inputs[0], outputs=3)
    b, b_scale, b_zero = (operand(node, index) for index in (1, 2, 3))
    return product_of_bytes(c, (a, scale, zero), (b, b_scale, b_zero), operand(node, 4))


def matmul_integer_to_float(draft: Draft, match: Match) -> gs.Tensor:
    """`com.microsoft.MatMulIntegerToFloat (a, b, scales, zeros, bias)`."""
    node, c = match.root, Bench(draft)
    a = (node.inputs[0], scale_of(c, node, 2), zero_of(c, node, 4))
    b = (node.inputs[1], scale_of(c, node, 3), zero_of(c, node, 5))
    return product_of_bytes(c, a, b, operand(node, 6))


def product_of_bytes(c: Bench, a: Any, b: Any, bias: gs.Tensor | None) -> gs.Tensor:
    """MatMulInteger and what its result is multiplied by; each operand with scale and zero.

    Raises:
        Refused: Scales stand where a product has no place for them.
    """
    if c.facts.of(a[1]).shape != ():
        raise Refused("the scales of its first operand stand along an axis")
    if b[1] is None or c.rank(b[1]) > 1:
        raise Refused("the scales of its second operand are no number and no vector")
    whole = c.op("MatMulInteger", a[0], b[0], a[2], b[2])
    y = c.op("Mul", c.cast(whole, c.dtype(a[1])), c.op("Mul", a[1], b[1]))
    return y if bias is None else c.op("Add", y, bias)


def dynamic_quantize_lstm(draft: Draft, match: Match) -> Any:
    """`com.microsoft.DynamicQuantizeLSTM`: an LSTM of its weights in floats.

    Its kernel quantizes what it multiplies by them as well, at each step, which this one does not.
    """
    node, c = match.root, Bench(draft)
    weights = [_weights(c, node, at, 8 + 2 * (at - 1)) for at in (1, 2)]
    operands = [node.inputs[0], *weights, *(operand(node, at) for at in range(3, 8))]
    while operands[-1] is None:
        operands.pop()
    count = len(node.outputs)
    made = c.op("LSTM", *operands, outputs=count, **node.attrs)
    results = (made,) if count == 1 else tuple(made)
    return results + results[:1] * (3 - count)


def _weights(c: Bench, node: gs.Node, at: int, scales: int) -> gs.Tensor:
    """[directions, 4 hidden, width] in floats; there [directions, width, 4 hidden] in bytes."""
    scale, zero = operand(node, scales), operand(node, scales + 1)
    if scale is None or zero is None:
        raise Refused("a scale or a zero point of its weights is missing")
    axes = [1] if c.rank(scale) == 2 else [1, 2]
    wide, shift = (c.cast(t, _FLOAT) for t in (node.inputs[at], zero))
    centred = c.op("Sub", wide, c.unsqueeze(shift, axes))
    return c.permute(c.op("Mul", centred, c.unsqueeze(scale, axes)), [0, 2, 1])
