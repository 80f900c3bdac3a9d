"""Shifts of signed integers, which PyTorch's exporter rounds towards zero."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import parser

import surgeon
from surgeon.errors import ModelError
from surgeon.misexported import misexported

# What torch.onnx (2.13, the exporter of TorchScript) writes of `x >> k`.
WRITTEN = """<ir_version: 7, opset_import: ["": {opset}]>
g ({dtype}[n,1] x, {dtype}[3] k) => ({dtype}[n,3] y) {{
    f = Cast <to = 1> (k)
    two = Constant <value = float {{2.0}}> ()
    p = Pow (two, f)
    c = Cast <to = {to}> (p)
    y = Div (x, c)
}}"""


@pytest.mark.parametrize("opset", [11, 13, 18])
@pytest.mark.parametrize(("dtype", "to"), [("int32", 6), ("int64", 7)])
@pytest.mark.parametrize("recipes", [["floor-shifts"], ["floor-shifts", "clean"]])
def test_they_are_rounded_down(dtype: str, to: int, opset: int, recipes: list[str]) -> None:
    model = parser.parse_model(WRITTEN.format(opset=opset, dtype=dtype, to=to))
    result = surgeon.apply(model, *recipes)
    session = ort.InferenceSession(result.model.to_proto().SerializeToString())
    least = np.iinfo(dtype).min
    x = np.array([[5], [-5], [0], [-1], [-8], [least], [2**30]], dtype)
    k = np.array([0, 2, 3], dtype)
    np.testing.assert_array_equal(session.run(None, {"x": x, "k": k})[0], x >> k)


@pytest.mark.parametrize("opset", [11, 13])
def test_bytes_below_opset_14(opset: int) -> None:
    model = parser.parse_model(f"""<ir_version: 7, opset_import: ["": {opset}]>
g (int8[n] x) => (int8[n] y) {{
    one = Constant <value = float {{1.0}}> ()
    two = Constant <value = float {{2.0}}> ()
    p = Pow (two, one)
    c = Cast <to = 3> (p)
    a = Cast <to = 7> (x)
    b = Cast <to = 7> (c)
    q = Div (a, b)
    y = Cast <to = 3> (q)
}}""")
    assert surgeon.inspect(model).misexported == {"floor-shifts": ("q",)}
    made = surgeon.apply(model, "floor-shifts").model.to_proto()
    x = np.arange(-128, 128).astype(np.int8)
    session = ort.InferenceSession(made.SerializeToString())
    np.testing.assert_array_equal(session.run(None, {"x": x})[0], x >> 1)


def test_they_are_named_and_stay_where_nobody_asks() -> None:
    model = parser.parse_model(WRITTEN.format(opset=13, dtype="int32", to=6))
    assert surgeon.inspect(model).misexported == {"floor-shifts": ("y",)}
    result = surgeon.apply(model, "clean", require="equivalent")
    assert any("`x >> k`" in remark for remark in result.report.remarks)


@pytest.mark.parametrize(
    ("old", "new"), [("float {{2.0}}", "float {{3.0}}"), ("Div (x, c)", "Mul (x, c)")]
)
def test_others_are_not(old: str, new: str) -> None:
    text = WRITTEN.replace(old, new).format(opset=13, dtype="int32", to=6)
    model = parser.parse_model(text)
    assert surgeon.inspect(model).misexported == {}
    remarks = surgeon.apply(model, "floor-shifts", "clean").report.remarks
    assert "`floor-shifts/shift-rounds-down` found nothing to change" in remarks


def test_constants_without_their_numbers_are_passed_by() -> None:
    model = parser.parse_model(WRITTEN.format(opset=13, dtype="int32", to=6))
    two = next(node for node in model.graph.node if node.op_type == "Constant")
    two.attribute[0].t.ClearField("float_data")
    two.attribute[0].t.ClearField("raw_data")
    assert misexported(model) == {}


def test_a_file_whose_names_are_no_texts_is_refused_for_that() -> None:
    model = parser.parse_model(WRITTEN.format(opset=13, dtype="int32", to=6))
    model.graph.initializer.add(name="nnnn", dims=[1], data_type=1, float_data=[1.0])
    broken = onnx.ModelProto.FromString(model.SerializeToString().replace(b"nnnn", b"nn\xef\xef"))
    with pytest.raises(ModelError):
        surgeon.apply(broken, "clean")


@pytest.mark.parametrize("op", ["Div", "Add", "Pow", "Concat", "ScatterND", "Cast", "ReduceSum"])
def test_nodes_without_operands_are_passed_by(op: str) -> None:
    node = onnx.helper.make_node(op, [], [])
    behind = [onnx.helper.make_node(name, ["y"], ["z"]) for name in ("Div", "Pow", "Add", "Concat")]
    made = onnx.helper.make_node(op, [], ["y"])
    graph = onnx.helper.make_graph([node, made, *behind], "g", [], [])
    assert misexported(onnx.helper.make_model(graph)) == {}
