"""Output shapes of onnxruntime's own operators that its quantizer and its optimizer write.

Each is told by the standard operator that it computes, of operands at other places; the documents
are onnxruntime's `ContribOperators.md`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import onnx

from surgeon.dims import Dim
from surgeon.facts.fact import Fact
from surgeon.facts.likeness import Form, by_form, known
from surgeon.facts.question import Question, Shape

DOMAIN = "com.microsoft"
_UINT8 = int(onnx.TensorProto.UINT8)


_FORMS: Mapping[str, Form] = MappingProxyType(
    {
        **dict.fromkeys(
            (
                "Gelu FastGelu QuickGelu BiasGelu BiasAdd BiasSoftmax RotaryEmbedding GroupNorm "
                "SkipLayerNormalization SkipSimplifiedLayerNormalization QLinearSigmoid "
                "QLinearLeakyRelu QLinearSoftmax"
            ).split(),
            Form("Identity", (0,)),
        ),
        "QuantizeLinear": Form("Identity", (0,), 2, _UINT8),
        "DequantizeLinear": Form("Identity", (0,), 1),
        "QLinearAdd": Form("Add", (0, 3)),
        "QLinearMul": Form("Mul", (0, 3)),
        "QLinearWhere": Form("Where", (0, 1, 4), 1),
        "QLinearGlobalAveragePool": Form("GlobalAveragePool", (0,)),
        "QLinearAveragePool": Form("AveragePool", (0,)),
        "QGemm": Form("Gemm", (0, 3), 8, int(onnx.TensorProto.FLOAT)),
        "FusedConv": Form("Conv", (0, 1)),
        "QLinearConv": Form("Conv", (0, 3), 7),
        "GemmFastGelu": Form("MatMul", (0, 1)),
        "FusedGemm": Form("Gemm", (0, 1)),
        "DynamicQuantizeMatMul": Form("MatMul", (0, 1)),
        "MatMulIntegerToFloat": Form("MatMul", (0, 1), 2),
    }
)


def facts(op: str, question: Question) -> list[Fact] | None:
    """What is known of the outputs of an operator of `com.microsoft`; None where nothing is."""
    inputs = question.inputs
    if op in _ALONE:
        return _ALONE[op](question)
    if op == "QLinearConcat":
        return known(question, "Concat", inputs[2::3], 2)
    form = _FORMS.get(op)
    if form is None or question.attributes.get("channels_last"):
        return None
    return by_form(form, question)


def _lstm(question: Question) -> list[Fact] | None:
    shape, hidden = question.shape(0), question.attributes.get("hidden_size")
    if shape is None or len(shape) != 3 or not isinstance(hidden, int):
        return None
    directions = 1 + (question.attributes.get("direction") in ("bidirectional", b"bidirectional"))
    state: Shape = (directions, shape[1], hidden)
    dtype = question.inputs[0].dtype if question.inputs[0] else 0
    return [Fact(dtype, (shape[0], *state)), Fact(dtype, state), Fact(dtype, state)]


def _product(question: Question) -> list[Fact] | None:
    """A MatMul of operands that may be transposed first, and their rows stand before the batch."""
    sides: list[Fact | None] = []
    for index, side in enumerate("AB"):
        shape, fact = question.shape(index), question.inputs[index]
        if shape is None or fact is None:
            return None
        if len(shape) > 1 and question.attributes.get(f"transBatch{side}"):
            shape = (*shape[1:-1], shape[0], shape[-1])
        if len(shape) > 1 and question.attributes.get(f"trans{side}"):
            shape = (*shape[:-2], shape[-1], shape[-2])
        sides.append(Fact(fact.dtype, shape))
    return known(question, "MatMul", sides, 0)


def _like_first(question: Question, axes: int, width: Dim | None) -> list[Fact] | None:
    """The first axes of operand 0, and a width."""
    shape, fact = question.shape(0), question.inputs[0]
    if shape is None or fact is None or width is None or len(shape) < axes:
        return None
    return [Fact(fact.dtype, (*shape[:axes], width))]


def _attention(question: Question) -> list[Fact] | None:
    widths, weights = question.attributes.get("qkv_hidden_sizes"), question.shape(1)
    width: Dim | None = None if not widths else int(widths[-1])
    if width is None and weights and isinstance(weights[-1], int):
        width = weights[-1] // 3
    return _like_first(question, 2, width)


def _heads(question: Question) -> list[Fact] | None:
    query, value = question.shape(0), question.shape(2)
    if query is None or value is None or len(query) != 3 or len(value) not in (3, 4):
        return None
    heads = 1 if len(value) == 3 else int(question.attributes["num_heads"])
    return _like_first(question, 2, value[-1] * heads)


def _embedding(question: Question) -> list[Fact] | None:
    ids, table = question.shape(0), question.inputs[2]
    if ids is None or table is None or table.shape is None:
        return None
    rows = Fact(table.dtype, (*ids, table.shape[-1]))
    return [rows, Fact(int(onnx.TensorProto.INT32), ids[:1]), rows]


def _quantized_attention(question: Question) -> list[Fact] | None:
    """That of `Attention`, in the dtype of its bias."""
    bias, weights = question.inputs[2], question.shape(1)
    if bias is None or not weights or not isinstance(weights[-1], int):
        return None
    found = _like_first(question, 2, weights[-1] // 3)
    return found and [Fact(bias.dtype, found[0].shape)]


def _quantized_embedding(question: Question) -> list[Fact] | None:
    found, scale = _embedding(question), question.inputs[8]
    if found is None or scale is None:
        return None
    return [Fact(scale.dtype, found[0].shape), found[1]]


def _named_weights(question: Question) -> list[Fact] | None:
    shape, turned = question.shape(0), question.attributes.get("transB", 1)
    width = question.attributes.get("N" if turned else "K")
    return _like_first(question, len(shape or ()) - 1, width if shape else None)


def _half_as_wide(question: Question) -> list[Fact] | None:
    shape = question.shape(0)
    width = shape[-1] if shape else None
    return _like_first(question, 2, width // 2 if isinstance(width, int) else None)


def _sum(question: Question) -> list[Fact] | None:
    """A result and the sum that it is of, both like operand 0."""
    fact = question.inputs[0]
    return None if fact is None else [Fact(fact.dtype, fact.shape)] * 2


_ALONE: Mapping[str, Callable[[Question], list[Fact] | None]] = {
    "Attention": _attention,
    "BiasSplitGelu": _half_as_wide,
    "DynamicQuantizeLSTM": _lstm,
    "EmbedLayerNormalization": _embedding,
    "FusedMatMul": _product,
    "FusedMatMulActivation": _product,
    "MatMulBnb4": _named_weights,
    "MatMulNBits": _named_weights,
    "MultiHeadAttention": _heads,
    "QAttention": _quantized_attention,
    "QEmbedLayerNormalization": _quantized_embedding,
    "SkipGroupNorm": _sum,
    "TransposeMatMul": _product,
}
