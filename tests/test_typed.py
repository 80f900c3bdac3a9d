"""Numbers as operands in rules that are written in Python."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.parser
import pytest

import surgeon
from surgeon.match import Match
from surgeon.rewrite import Draft


def rule(operand: object, op: str = "Mul") -> surgeon.Rule:
    @surgeon.rule(match="y = Neg (x)", why="Tried here.", exact="approximate")
    def numbers(build: Draft, match: Match) -> object:
        return build.op(op, match.values["x"], operand)

    return numbers


def made(operand: object, kind: str = "float", op: str = "Mul", opset: int = 17) -> onnx.ModelProto:
    text = f"g ({kind}[2] x) => ({kind}[2] y) {{ y = Neg (x) }}"
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": {opset}]> {text}')
    allow = ["approximate"]
    result = surgeon.apply(model, rule(operand, op), allow=allow, verify=False)
    return result.model.to_proto()


@pytest.mark.parametrize(
    ("kind", "operand", "dtype"),
    [
        ("float", -1, np.float32),
        ("float", -1.0, np.float32),
        ("double", -1.0, np.float64),
        ("float16", [-1, -1.0], np.float16),
        ("int32", -1, np.int32),
        ("float", np.float32([-1]), np.float32),
    ],
)
def test_a_number_has_the_type_of_what_stands_beside(
    kind: str, operand: object, dtype: type
) -> None:
    (constant,) = made(operand, kind).graph.initializer
    array = onnx.numpy_helper.to_array(constant)
    assert array.dtype == dtype
    assert array.ravel()[0] == -1


def test_without_one_beside_floats_are_single_and_whole_numbers_long() -> None:
    (power,) = made(2.5, op="Pow").graph.initializer
    assert power.data_type == onnx.TensorProto.FLOAT
    (places,) = made([0, 1], op="Gather").graph.initializer
    assert places.data_type == onnx.TensorProto.INT64


@pytest.mark.parametrize(
    ("kind", "operand", "why"), [("int32", -0.5, "fractions"), ("int8", -300, "holds -300")]
)
def test_a_number_that_the_type_does_not_hold_is_a_refusal(
    kind: str, operand: object, why: str
) -> None:
    text = f"g ({kind}[2] x) => ({kind}[2] y) {{ y = Neg (x) }}"
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 17]> {text}')
    report = surgeon.apply(model, rule(operand), allow=["approximate"]).report
    (miss,) = report.misses
    assert why in miss.reason
    assert not report.failures
