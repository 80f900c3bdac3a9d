"""Operands whose rank nobody knows: what depends on it is refused."""

from __future__ import annotations

import onnx
import pytest
from onnx import TensorProto, helper

import surgeon

FLOAT, DOUBLE, INT64, UINT8 = (
    TensorProto.FLOAT,
    TensorProto.DOUBLE,
    TensorProto.INT64,
    TensorProto.UINT8,
)


def one_node(operator: str, kinds: list[int], opset: int = 17) -> onnx.ModelProto:
    """A model of one ATen node on tensors of unknown rank."""
    inputs = []
    for index, kind in enumerate(kinds):
        inputs.append(onnx.ValueInfoProto(name=f"x{index}"))
        inputs[-1].type.tensor_type.elem_type = kind
    name, _, overload = operator.partition(".")
    node = helper.make_node(
        "ATen",
        [given.name for given in inputs],
        ["y"],
        domain="org.pytorch.aten",
        operator=name,
        overload_name=overload,
    )
    graph = helper.make_graph([node], "g", inputs, [onnx.ValueInfoProto(name="y")])
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("org.pytorch.aten", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize(("small", "large"), [(FLOAT, DOUBLE), (UINT8, INT64)])
def test_the_wider_dtype_of_a_scalar_counts_for_nothing(
    small: int, large: int, first: bool
) -> None:
    kinds = [small, large] if first else [large, small]
    with pytest.raises(surgeon.SurgeonError, match="the rank of an operand decides on the dtype"):
        surgeon.apply(one_node("add.Tensor", kinds), "aten", verify=False)


@pytest.mark.parametrize("kinds", [[FLOAT, FLOAT], [UINT8, FLOAT]])
def test_a_dtype_of_another_category_counts_anyway(kinds: list[int]) -> None:
    made = surgeon.apply(one_node("mul.Tensor", kinds), "aten", verify=False).model.to_proto()
    assert made.graph.node[-1].op_type == "Mul"


@pytest.mark.parametrize("operator", ["pow.Tensor_Tensor", "special_zeta"])
def test_no_body_gives_what_has_no_rank(operator: str) -> None:
    kind = INT64 if operator.startswith("pow") else FLOAT
    with pytest.raises(surgeon.SurgeonError, match="rank of"):
        surgeon.apply(one_node(operator, [kind, kind], 9), "aten", verify=False)
