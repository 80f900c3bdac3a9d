"""What the file says of itself: shapes that are stated, and the format it is written in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx
import pytest
from onnx import helper, parser

import surgeon
from surgeon.errors import SurgeonError, VerifyError
from surgeon.inspection import inspect
from surgeon.steps.irversion import least_ir_version, lower_ir_version

NETWORK = """
<ir_version: 10, opset_import: ["": 17]>
g (float[n,3,H,W] x, float[2,3,3,3] w) => (float[m,2,p,q] y, float[1,1,1,1] z)
  <float[7,7,7,7] b> {
  a = Conv <pads = [1, 1, 1, 1]> (x, w)
  b = Relu (a)
  c = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (b)
  z = ReduceMax <keepdims = 1> (c)
  y = Sigmoid (a)
}
"""


def sizes(value: onnx.ValueInfoProto) -> list[int | str]:
    return [d.dim_param or d.dim_value for d in value.type.tensor_type.shape.dim]


def test_sizes_are_stated_as_far_as_they_are_proven() -> None:
    model = parser.parse_model(NETWORK)
    result = surgeon.apply(model, "state-shapes").model.to_proto()
    stated = {value.name: sizes(value) for value in result.graph.value_info}
    assert stated["a"] == ["n", 2, "H", "W"]
    assert stated["b"] == ["n", 2, "H", "W"]  # the file said otherwise
    assert stated["c"] == ["n", 2, "H//2", "W//2"]
    outputs = {value.name: sizes(value) for value in result.graph.output}
    assert outputs == {"y": ["n", 2, "H", "W"], "z": [1, 1, 1, 1]}
    onnx.checker.check_model(result, full_check=True)


def test_what_is_stated_already_is_left_as_it_is() -> None:
    once = surgeon.apply(parser.parse_model(NETWORK), "state-shapes").model
    again = surgeon.apply(once.to_proto(), "state-shapes")
    assert not again.model.changed


CHAIN = """
<ir_version: 8, opset_import: ["": 17]>
g (float[n,3,h,w] x, float[n,k] z) => (float[n,3,h,w] y, float[n,3,p,?] q, float[m,k] o) {
  r = Relu (x)
  y = Exp (r)
  s = Relu (z)
  o = Exp (s)
  t = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (r)
  q = Relu (t)
}
"""


def stated(model: onnx.ModelProto, **options: Any) -> dict[str, list[int | str]]:
    """The shapes that a file says of its values after `state-shapes`; a second run adds nothing."""
    result = surgeon.apply(model, "state-shapes", **options).model.to_proto()
    onnx.checker.check_model(result, full_check=True)
    assert not surgeon.apply(result, "state-shapes", **options).model.changed
    return {v.name: sizes(v) for v in (*result.graph.value_info, *result.graph.output)}


@pytest.mark.parametrize("said", ["h % 2 == 0", "h % 4 == 2", "h >= 7", "h <= 90", "n <= 5"])
def test_a_size_of_which_more_is_known_keeps_its_name(said: str) -> None:
    found = stated(parser.parse_model(CHAIN), assume=[said])
    assert found["r"] == found["y"] == ["n", 3, "h", "w"]
    assert found["t"] == ["n", 3, "2*((h + 2)//4) - 1" if "4" in said else "h//2", "w//2"]


def test_of_names_that_are_assumed_to_be_equal_an_output_keeps_its_own() -> None:
    found = stated(parser.parse_model(CHAIN), assume=["h == w"])
    assert found["r"] == ["n", 3, "w", "w"]
    assert found["y"] == ["n", 3, "h", "w"]


def test_a_size_that_is_given_another_name_is_stated_by_it() -> None:
    found = stated(parser.parse_model(CHAIN), shape={"x": ["batch", 3, "h", "w"]})
    assert found["r"] == found["y"] == ["batch", 3, "h", "w"]
    assert found["s"] == ["n", "k"]


def test_an_output_keeps_its_name_for_a_size_that_is_no_inputs() -> None:
    found = stated(parser.parse_model(CHAIN))
    assert found["q"] == ["n", 3, "p", "w//2"]
    assert found["o"] == ["n", "k"]


def test_a_formula_is_not_what_the_file_calls_another_size() -> None:
    model = parser.parse_model(CHAIN)
    for value in (model.graph.input[1], model.graph.output[2]):
        value.type.tensor_type.shape.dim[1].dim_param = "h//2"
    found = stated(model)
    assert found["s"] == ["n", "h//2"]
    assert found["t"] == ["n", 3, 0, "w//2"]


def test_a_formula_is_of_names_that_are_read_in_one_way() -> None:
    model = parser.parse_model(CHAIN)
    for value in (model.graph.input[0], model.graph.output[0]):
        value.type.tensor_type.shape.dim[2].dim_param = "h - 1"
    found = stated(model)
    assert found["r"] == ["n", 3, "h - 1", "w"]
    assert found["t"] == ["n", 3, 0, "w//2"]


def test_a_formula_of_an_output_that_is_not_so_is_written_anew() -> None:
    model = parser.parse_model(CHAIN)
    model.graph.output[1].type.tensor_type.shape.dim[2].dim_param = "h//3"
    assert stated(model)["q"] == ["n", 3, "h//2", "w//2"]


def test_nodes_are_sorted() -> None:
    """As the page of surgeries says."""
    model = parser.parse_model(CHAIN)
    nodes = [*model.graph.node]
    del model.graph.node[:]
    model.graph.node.extend(reversed(nodes))
    assert inspect(model).unsorted
    assert not inspect(surgeon.apply(model, "state-shapes").model.to_proto()).unsorted


def below_zero(size: int = -1) -> onnx.ModelProto:
    """As scripts write what they do not know."""
    model = parser.parse_model(CHAIN)
    for value in (model.graph.input[0], model.graph.output[0]):
        value.type.tensor_type.shape.dim[0].dim_value = size
    return model


def test_a_size_below_0_is_one_that_nobody_names() -> None:
    model = below_zero()
    assert inspect(model).below_zero == ("x", "y")
    assert inspect(model).inputs[0].shape == (None, 3, "h", "w")
    result = surgeon.apply(model, "state-shapes").model.to_proto()
    assert sizes(result.graph.input[0]) == sizes(result.graph.output[0]) == [0, 3, "h", "w"]
    assert inspect(result).below_zero == ()


@pytest.mark.parametrize("given", ["batch", 5])
def test_a_size_below_0_is_given_a_name_or_a_number(given: str | int) -> None:
    result = surgeon.apply(below_zero(), "clean", shape={"x": [given, 3, "h", "w"]})
    assert result.report.verdict is not None
    assert result.report.verdict.status == "equivalent"
    graph = result.model.to_proto().graph
    assert sizes(graph.input[0]) == sizes(graph.output[0]) == [given, 3, "h", "w"]


def test_a_size_of_0_is_one_and_can_be_meant_otherwise() -> None:
    with pytest.raises(SurgeonError, match=r"give its number, 0\. Where that stands for") as found:
        surgeon.apply(below_zero(0), "clean", shape={"x": ["n", 3, "h", "w"]})
    assert "type.tensor_type.shape.dim[0].Clear()" in str(found.value)


def test_who_reads_names_alone_is_told_no_more(tmp_path: Path) -> None:
    recipe = tmp_path / "names.yaml"
    recipe.write_text("surgeon: 1\nname: names\nsteps:\n  - state-shapes: names\n")
    result = surgeon.apply(parser.parse_model(CHAIN), "state-shapes", recipe).model.to_proto()
    found = {v.name: sizes(v) for v in (*result.graph.value_info, *result.graph.output)}
    assert found["r"] == found["y"] == ["n", 3, "h", "w"]
    assert found["t"] == found["q"] == ["n", 3, 0, 0]


def test_a_long_formula_stays_open() -> None:
    model = parser.parse_model(CHAIN)
    name = "height_of_the_image_that_is_given_in_pixels_of_the_camera_x"
    for value in (model.graph.input[0], model.graph.output[0]):
        value.type.tensor_type.shape.dim[2].dim_param = name
    assert stated(model)["t"] == ["n", 3, 0, "w//2"]


def test_an_opset_is_asked_for_with_its_format() -> None:
    model = parser.parse_model(NETWORK)  # at opset 17 already, in IR version 10
    result = surgeon.apply(model, "clean", opset=17)
    assert result.model.to_proto().ir_version == 8
    older = surgeon.apply(model, "clean", opset=13)
    assert older.model.to_proto().ir_version == 7
    assert surgeon.apply(model, "clean").model.to_proto().ir_version == 10


def test_what_an_older_format_has_not_is_named(tmp_path: Path) -> None:
    model = parser.parse_model(NETWORK)
    model.graph.initializer.append(helper.make_tensor("few", onnx.TensorProto.INT4, [2], [1, 2]))
    assert least_ir_version(model) == 10
    with pytest.raises(SurgeonError, match="needs IR version 10"):
        lower_ir_version(model, 8)
    recipe = tmp_path / "format.yaml"
    recipe.write_text("surgeon: 1\nname: format\nsteps:\n  - ir-version: 8\n")
    result = surgeon.apply(model, recipe, verify=False)
    assert result.report.failures == (
        "step `ir-version` was skipped: what is in the file needs IR version 10",
    )
    with pytest.raises(VerifyError):
        surgeon.apply(model, recipe, verify=False, strict=True)
