"""Distances of an order that is not even, of which PyTorch's exporter leaves the signs."""

from __future__ import annotations

import numpy as np
import onnxruntime as ort
import pytest
from onnx import parser

import surgeon

# What torch.onnx (2.13, the exporter of TorchScript) writes of `torch.cdist(x, y, p)`.
WRITTEN = """<ir_version: 7, opset_import: ["": {opset}]>
g (float[n,1,3] x, float[1,m,3] y) => (float[n,m] z) {{
    inverse = Constant <value = float {{{inverse}}}> ()
    d = Sub (x, y)
    order = Constant <value = float {{{order}}}> ()
    e = Pow (d, order)
    axes = Constant <value = int64[1] {{-1}}> ()
    s = ReduceSum <keepdims = 0> (e, axes)
    z = Pow (s, inverse)
}}"""


def _written(order: float, opset: int = 13) -> str:
    return WRITTEN.format(opset=opset, order=f"{order:.1f}", inverse=f"{1 / (order + 1e-6):.9f}")


@pytest.mark.parametrize("opset", [13, 17, 20])
@pytest.mark.parametrize("order", [1.0, 1.5, 3.0])
@pytest.mark.parametrize("recipes", [["absolute-distances"], ["absolute-distances", "clean"]])
def test_they_are_sums_of_absolute_values(order: float, opset: int, recipes: list[str]) -> None:
    result = surgeon.apply(parser.parse_model(_written(order, opset)), *recipes)
    session = ort.InferenceSession(result.model.to_proto().SerializeToString())
    random = np.random.default_rng(0)
    x, y = (random.standard_normal(shape).astype(np.float32) for shape in ((4, 1, 3), (1, 5, 3)))
    meant = (np.abs(x - y) ** order).sum(-1) ** (1 / order)
    np.testing.assert_allclose(session.run(None, {"x": x, "y": y})[0], meant, rtol=1e-4)


def test_they_are_named_and_stay_where_nobody_asks() -> None:
    model = parser.parse_model(_written(3.0))
    assert surgeon.inspect(model).misexported == {"absolute-distances": ("z",)}
    result = surgeon.apply(model, "clean")
    assert any("`cdist`" in remark for remark in result.report.remarks)


@pytest.mark.parametrize("text", [_written(2.0), _written(3.0).replace("Sub (x", "Add (x")])
def test_others_are_not(text: str) -> None:
    model = parser.parse_model(text)
    assert surgeon.inspect(model).misexported == {}
    remarks = surgeon.apply(model, "absolute-distances", "clean").report.remarks
    told = "`absolute-distances/powers-of-absolute-values` found nothing to change"
    assert told in remarks


@pytest.mark.parametrize("opset", [13, 17, 20])
def test_an_infinite_order_is_the_greatest_difference(opset: int) -> None:
    model = parser.parse_model(WRITTEN.format(opset=opset, order="inf", inverse="0.0"))
    assert surgeon.inspect(model).misexported == {"absolute-distances": ("z",)}
    made = surgeon.apply(model, "absolute-distances").model.to_proto()
    random = np.random.default_rng(0)
    x, y = (random.standard_normal(shape).astype(np.float32) for shape in ((4, 1, 3), (1, 5, 3)))
    found = ort.InferenceSession(made.SerializeToString()).run(None, {"x": x, "y": y})[0]
    np.testing.assert_array_equal(found, np.abs(x - y).max(-1))
