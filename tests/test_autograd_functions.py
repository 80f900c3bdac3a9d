"""The recipe `autograd-functions`: numbers worked out by hand.

Each is asked of the witness, which runs the file as it came, and of onnxruntime, which runs what
the recipe makes of it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import parser

import surgeon
from surgeon.inspection import inspect
from surgeon.reference import Reference
from surgeon.runtime import Session
from surgeon.spelling import home

Array = np.ndarray[Any, Any]
F = np.float32
X = np.arange(9, dtype=F).reshape(1, 1, 3, 3)


def both(text: str, feeds: dict[str, Any]) -> list[Array]:
    """What the witness says of a model's `y`, and what onnxruntime says of the result."""
    model = parser.parse_model(text)
    result = surgeon.apply(model, "autograd-functions")
    assert result.report.status == "equivalent"
    mended = result.model.to_proto()
    assert {node.domain for node in mended.graph.node} <= {"", "ai.onnx"}
    onnx.checker.check_model(mended, full_check=True)
    return [Reference(model).run(feeds)["y"], Session(mended).run(feeds)["y"]]


def dcn(operator: str, said: str, opset: int, channels: int = 2) -> str:
    return f"""
        <ir_version: 8, opset_import: ["": {opset}, "mine": 1]>
        g (float[1,1,3,3] x, float[1,{channels},3,3] o, float[1,1,3,3] m) => (float[1,1,3,3] y)
        <float[1,1,1,1] w = {{2}}, float[1] b = {{100}}>
        {{ y = {operator} <{said}> (x, o, m, w, b) }}
    """


@pytest.mark.parametrize("opset", [11, 16, 19])
@pytest.mark.parametrize(
    ("operator", "said"),
    [
        ("DCNv2", "stride = [1, 1], padding = [0, 0], dilation = [1, 1], deformable_group = 1"),
        ("mine.DCNv2_2", "stride = 1, padding = 0, dilation = 1, deformable_groups = 1"),
        ("mine.DCNv2", 'stride_h = "1", stride_w = "1", padding_h = "0", padding_w = "0", '
         'dilation_h = "1", dilation_w = "1", deformable_groups = "1", name = "DCNv2"'),
        ("ModulatedDeformConvFunction", "stride = 1, padding = 0, dilation = 1, groups = 1, "
         "deformable_groups = 1, im2col_step = 64"),
    ],
)  # fmt: skip
def test_offsets_are_down_first_and_then_to_the_right(operator: str, said: str, opset: int) -> None:
    offset = np.zeros((1, 2, 3, 3), F)
    offset[0, 0], offset[0, 1] = 1, 0.5  # a row further down, and half a column to the right
    mask = np.full((1, 1, 3, 3), 0.5, F)
    feeds = {"x": X, "o": offset, "m": mask}
    for found in both(dcn(operator, said, opset), feeds):
        # between 3 and 4, between 4 and 5, half of 5; then between 6 and 7, ...; and nothing
        assert found[0, 0].tolist() == [[103.5, 104.5, 102.5], [106.5, 107.5, 104], [100] * 3]


@pytest.mark.parametrize("opset", [11, 19])
def test_without_shares_all_samples_count_alike(opset: int) -> None:
    text = f"""
        <ir_version: 8, opset_import: ["": {opset}]>
        g (float[1,1,3,3] x, float[1,4,3,2] o) => (float[1,1,3,2] y)
        <float[1,1,1,2] w = {{1, 10}}>
        {{ y = DeformConvFunction
             <stride = 1, padding = 0, dilation = 1, groups = 1, deformable_groups = 1> (x, o, w) }}
    """
    offset = np.zeros((1, 4, 3, 2), F)
    offset[0, 2] = 1  # the second tap of both stands a row further down
    for found in both(text, {"x": X, "o": offset}):
        assert found[0, 0].tolist() == [[40, 51], [73, 84], [6, 7]]


@pytest.mark.parametrize(
    ("said", "channels", "why"),
    [
        ("padding = 0, dilation = 1, deformable_groups = 1", 2, "it does not state its `stride`"),
        ("stride = 1, padding = 0, dilation = 1", 2, "it does not state its `deformable_groups`"),
        ("stride = 1, padding = 0, dilation = 1, deformable_groups = 1", 3,
         "its offsets have 3 channels, where its kernel has 2"),
        ("stride = 1, padding = 0, dilation = 1, deformable_groups = 1, act = 2", 2,
         "what its `act` means is not known"),
        ("stride = [1, 1, 1], padding = 0, dilation = 1, deformable_groups = 1", 2,
         "its `stride` is [1, 1, 1], not two numbers"),
        ('stride = "x", padding = 0, dilation = 1, deformable_groups = 1', 2,
         "its arguments are no whole numbers"),
    ],
)  # fmt: skip
def test_what_the_node_does_not_tell_is_not_guessed(said: str, channels: int, why: str) -> None:
    model = parser.parse_model(dcn("DCNv2", said, 19, channels))
    result = surgeon.apply(model, "autograd-functions", verify=False)
    assert not result.report.changes
    assert why in " ".join(miss.reason for miss in result.report.misses)


NUMBERS = np.asarray([-4, -1, 0, 2, 5], F)


@pytest.mark.parametrize("opset", [9, 14, 18])
@pytest.mark.parametrize(
    ("operator", "wanted"),
    [
        ("SwishImplementation", [-0.07194484, -0.26894143, 0, 1.7615942, 4.9665356]),
        ("mine.Swish", [-0.07194484, -0.26894143, 0, 1.7615942, 4.9665356]),
        ("MishImplementation", [-0.07259175, -0.30340144, 0, 1.9439590, 4.9995522]),
        ("mine.Mish", [-0.07259175, -0.30340144, 0, 1.9439590, 4.9995522]),
        ("Hardswish", [0, -1 / 3, 0, 5 / 3, 5]),
        ("mine.HardSwish", [0, -1 / 3, 0, 5 / 3, 5]),
    ],
)
def test_activations_are_what_their_papers_define(
    operator: str, wanted: list[float], opset: int
) -> None:
    text = f"""
        <ir_version: 8, opset_import: ["": {opset}, "mine": 1]>
        g (float[N] x) => (float[N] y) {{ y = {operator} (x) }}
    """
    for found in both(text, {"x": NUMBERS}):
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("domain", "operator", "named"),
    [
        ("", "DCNv2", "autograd"),
        ("yolact", "DCNv2", "autograd"),
        ("mine", "Mish", "autograd"),
        ("", "Mish", ""),  # ONNX's
        ("", "HardSwish", ""),
        ("org.openvinotoolkit", "Swish", "org.openvinotoolkit"),
        ("com.microsoft", "Swish", "com.microsoft"),
        ("aten", "Mish", "aten"),
        ("mmcv", "ModulatedDeformConv2d", "mmcv"),
        ("mine", "Anything", "mine"),
    ],
)
def test_a_name_is_an_authors_where_no_tool_has_it(domain: str, operator: str, named: str) -> None:
    assert home(domain, operator) == named


def test_inspect_names_the_recipe(tmp_path: Any) -> None:
    said = "stride = 1, padding = 0, dilation = 1, deformable_groups = 1"
    onnx.save(parser.parse_model(dcn("mine.DCNv2", said, 19)), tmp_path / "model.onnx")
    (foreign,) = inspect(tmp_path / "model.onnx").foreign
    assert (foreign.operator, foreign.recipes) == ("autograd.DCNv2", ("autograd-functions",))
    assert foreign.spelled == ("mine.DCNv2",)
