"""Output shapes of onnxruntime's own operators that its quantizer and its optimizer write.

Each is told by the standard operator that it computes, of operands at other places; the documents
are onnxruntime's `ContribOperators.md`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import onnx

from surgeon.facts.fact import Fact
from surgeon.facts.question import Question, Shape
from surgeon.facts.shapes import FUNCTIONS

DOMAIN = "com.microsoft"
_UINT8 = int(onnx.TensorProto.UINT8)


class _Form(NamedTuple):
    """What a contrib operator computes.

    Attributes:
        like: The standard operator.
        operands: Where its operands are.
        typed: The operand that has the output's dtype.
        untyped: The dtype where that operand is left out.
    """

    like: str
    operands: tuple[int, ...]
    typed: int = 0
    untyped: int = 0


_FORMS: Mapping[str, _Form] = MappingProxyType(
    {
        **dict.fromkeys(
            (
                "Gelu FastGelu QuickGelu BiasGelu BiasAdd BiasSoftmax RotaryEmbedding GroupNorm "
                "SkipLayerNormalization SkipSimplifiedLayerNormalization QLinearSigmoid "
                "QLinearLeakyRelu QLinearSoftmax"
            ).split(),
            _Form("Identity", (0,)),
        ),
        "QuantizeLinear": _Form("Identity", (0,), 2, _UINT8),
        "DequantizeLinear": _Form("Identity", (0,), 1),
        "QLinearAdd": _Form("Add", (0, 3)),
        "QLinearMul": _Form("Mul", (0, 3)),
        "QLinearGlobalAveragePool": _Form("GlobalAveragePool", (0,)),
        "QLinearAveragePool": _Form("AveragePool", (0,)),
        "QGemm": _Form("Gemm", (0, 3), 8, int(onnx.TensorProto.FLOAT)),
        "FusedConv": _Form("Conv", (0, 1)),
        "FusedGemm": _Form("Gemm", (0, 1)),
        "DynamicQuantizeMatMul": _Form("MatMul", (0, 1)),
        "MatMulIntegerToFloat": _Form("MatMul", (0, 1), 2),
    }
)


def facts(op: str, question: Question) -> list[Fact] | None:
    """What is known of the outputs of an operator of `com.microsoft`; None where nothing is."""
    inputs = question.inputs
    if op == "DynamicQuantizeLSTM":
        return _lstm(question)
    if op == "QLinearConcat":
        return _known(question, "Concat", inputs[2::3], 2)
    form = _FORMS.get(op)
    if form is None or question.attributes.get("channels_last"):
        return None
    operands = [inputs[i] if i < len(inputs) else None for i in form.operands]
    return _known(question, form.like, operands, form.typed, form.untyped)


def _known(
    question: Question, like: str, operands: Sequence[Fact | None], typed: int, untyped: int = 0
) -> list[Fact] | None:
    """The fact of the first output, and of further ones nothing."""
    found = FUNCTIONS[like](Question(operands, question.attributes, 1, question.fresh))
    if not found or found[0] is None:
        return None
    source = question.inputs[typed] if question.has(typed) else None
    return [Fact(untyped if source is None else source.dtype, found[0])]


def _lstm(question: Question) -> list[Fact] | None:
    shape, hidden = question.shape(0), question.attributes.get("hidden_size")
    if shape is None or len(shape) != 3 or not isinstance(hidden, int):
        return None
    directions = 1 + (question.attributes.get("direction") in ("bidirectional", b"bidirectional"))
    state: Shape = (directions, shape[1], hidden)
    dtype = question.inputs[0].dtype if question.inputs[0] else 0
    return [Fact(dtype, (shape[0], *state)), Fact(dtype, state), Fact(dtype, state)]
