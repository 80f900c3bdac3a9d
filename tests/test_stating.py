"""What the file says of itself: shapes that are stated, and the format it is written in."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from onnx import helper, parser

import surgeon
from surgeon.errors import SurgeonError, VerifyError
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
    assert stated["c"] == ["n", 2, 0, 0]  # computed, and so open
    outputs = {value.name: sizes(value) for value in result.graph.output}
    assert outputs == {"y": ["n", 2, "H", "W"], "z": [1, 1, 1, 1]}
    onnx.checker.check_model(result, full_check=True)


def test_what_is_stated_already_is_left_as_it_is() -> None:
    once = surgeon.apply(parser.parse_model(NETWORK), "state-shapes").model
    again = surgeon.apply(once.to_proto(), "state-shapes")
    assert not again.model.changed


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
