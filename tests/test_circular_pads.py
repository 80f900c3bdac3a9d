"""Circular padding as PyTorch 1.12 and 1.13 write it, against what it is."""

from __future__ import annotations

import numpy as np
import onnxruntime as ort
import pytest
from onnx import parser

import surgeon

# `F.pad(x, (2, 1), mode="circular")`
INPUTS = """
<ir_version: 7, opset_import: ["": 13]>
g (float[b,2,t] x) => (float[b,2,u] y)
<int64[1] axes = {2}, int64[1] start = {-2}, int64[1] end = {-1}, int64[1] zero = {0},
 int64[1] two = {2}, int64[1] along = {2}> {
  l = Slice (x, start, end, axes)
  r = Slice (x, zero, two, along)
  y = Concat <axis = 2> (l, x, r)
}"""
ATTRIBUTES = """
<ir_version: 4, opset_import: ["": 9]>
g (float[b,2,t] x) => (float[b,2,u] y) {
  l = Slice <axes = [2], starts = [-2], ends = [-1]> (x)
  r = Slice <axes = [2], starts = [0], ends = [2]> (x)
  y = Concat <axis = 2> (l, x, r)
}"""


@pytest.mark.parametrize("text", [INPUTS, ATTRIBUTES], ids=["inputs", "attributes"])
def test_it_is_told_and_mended_where_somebody_asks(text: str) -> None:
    model = parser.parse_model(text)
    assert surgeon.inspect(model).misexported == {"circular-pads": ("y",)}
    kept = surgeon.apply(model, "clean", require="equivalent")
    assert any("put `circular-pads` in front" in remark for remark in kept.report.remarks)
    made = surgeon.apply(model, "circular-pads", "clean").model.to_proto()
    assert surgeon.inspect(made).misexported == {}
    x = np.random.default_rng(0).normal(size=(3, 2, 5)).astype(np.float32)
    session = ort.InferenceSession(made.SerializeToString())
    wanted = np.pad(x, ((0, 0), (0, 0), (2, 1)), mode="wrap")
    np.testing.assert_array_equal(session.run(None, {"x": x})[0], wanted)


@pytest.mark.parametrize(
    ("old", "new"),
    [("{-1}", "{9223372036854775807}"), ("(l, x, r)", "(l, r, x)"), ("axes = {2}", "axes = {1}")],
)
def test_others_are_not(old: str, new: str) -> None:
    assert surgeon.inspect(parser.parse_model(INPUTS.replace(old, new))).misexported == {}
