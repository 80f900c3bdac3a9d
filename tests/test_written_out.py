"""Functions of a model's own are written out for steps that know nothing of them."""

from __future__ import annotations

import onnx
import pytest

import surgeon

# Called twice, and of more nodes than a call: `clean` alone keeps it.
TEXT = """<ir_version: 8, opset_import: ["": 17, "mine": 1]>
g (float[2,4] x) => (float[2,4] y) { h = mine.Block (x) y = mine.Block (h) }
<domain: "mine", opset_import: ["": 17]> Block (x) => (y)
{ r = Relu (x) s = Sigmoid (r) t = Tanh (s) u = Mul (t, r) y = Neg (u) }"""


@pytest.mark.parametrize("opset", [13, 21])
def test_for_another_opset(opset: int) -> None:
    result = surgeon.apply(onnx.parser.parse_model(TEXT), "clean", opset=opset)
    after = result.model.to_proto()
    assert (result.report.status, result.model.opset) == ("equivalent", opset)
    assert not after.functions
    assert len(after.graph.node) == 10


@pytest.mark.parametrize("recipe", ["any-batch", "any-size"])
def test_for_another_batch_or_size(recipe: str) -> None:
    text = TEXT.replace("[2,4]", "[2,3,4,4]")
    result = surgeon.apply(onnx.parser.parse_model(text), recipe)
    assert not result.report.failures
    assert not result.model.to_proto().functions
    assert any(dim.dim_param for dim in _dims(result.model.to_proto()))


def test_for_nothing_they_stay() -> None:
    result = surgeon.apply(onnx.parser.parse_model(TEXT), "clean")
    assert [f.name for f in result.model.to_proto().functions] == ["Block"]


def _dims(proto: onnx.ModelProto) -> list[onnx.TensorShapeProto.Dimension]:
    return list(proto.graph.input[0].type.tensor_type.shape.dim)
