"""Operators whose shape is that of another, of operands at other places: quantized ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import onnx

from surgeon.facts.fact import Fact
from surgeon.facts.question import Question
from surgeon.facts.shapes import FUNCTIONS

_INT32, _UINT8 = int(onnx.TensorProto.INT32), int(onnx.TensorProto.UINT8)


class Form(NamedTuple):
    """What an operator computes.

    Attributes:
        like: The standard operator whose shape its result has.
        operands: Where the operands of that are.
        typed: The operand that has the output's dtype; None where every result has the next.
        untyped: The dtype where that operand is left out.
    """

    like: str
    operands: tuple[int, ...]
    typed: int | None = 0
    untyped: int = 0


STANDARD: Mapping[str, Form] = MappingProxyType(
    {
        "ConvInteger": Form("Conv", (0, 1), None, _INT32),
        "DequantizeLinear": Form("Identity", (0,), 1),
        "MatMulInteger": Form("MatMul", (0, 1), None, _INT32),
        "QLinearConv": Form("Conv", (0, 3), 7),
        "QLinearMatMul": Form("MatMul", (0, 3), 7),
        "QuantizeLinear": Form("Identity", (0,), 2, _UINT8),
    }
)


def by_form(form: Form, question: Question) -> list[Fact] | None:
    """What is known of the outputs of an operator of this form; None where nothing is."""
    inputs = question.inputs
    operands = [inputs[i] if i < len(inputs) else None for i in form.operands]
    return known(question, form.like, operands, form.typed, form.untyped)


def known(
    question: Question,
    like: str,
    operands: Sequence[Fact | None],
    typed: int | None,
    untyped: int = 0,
) -> list[Fact] | None:
    """The fact of the first output, and of further ones nothing."""
    found = FUNCTIONS[like](Question(operands, question.attributes, 1, question.fresh))
    if not found or found[0] is None:
        return None
    told = int(question.attributes.get("output_dtype") or 0)  # of the quantizers of opset 21 on
    source = question.inputs[typed] if typed is not None and question.has(typed) else None
    return [Fact(told or (untyped if source is None else source.dtype), found[0])]
