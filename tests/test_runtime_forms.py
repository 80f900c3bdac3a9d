"""Forms that runtimes other than onnxruntime want, where ONNX takes others as well."""

from __future__ import annotations

import onnx
import pytest
from onnx import parser

import surgeon


def repaired(recipe: str, text: str) -> onnx.GraphProto:
    model = parser.parse_model(text)
    return surgeon.apply(model, recipe, verify=False).model.to_proto().graph


@pytest.mark.parametrize(
    ("recipe", "text", "kernel"),
    [
        (
            "lightconv",
            """<ir_version: 8, opset_import: ["": 13, "DynamicconvSpace": 1]>
            g (float[b,6,t] x, float[b,2,3,t] w) => (float[b,6,t] y) {
              y = DynamicconvSpace.dynamicconv_forward <padding_l = 1> (x, w)
            }""",
            [3],
        ),
        (
            "refused-forms",
            """<ir_version: 8, opset_import: ["": 13]>
            g (float[N,2,8,9] x, float[4,2,3,1] w) => (float[N,4,6,9] y) {
              y = Conv <kernel_shape: ints = []> (x, w)
            }""",
            [3, 1],
        ),
    ],
)
def test_a_convolution_says_how_large_its_kernel_is(
    recipe: str, text: str, kernel: list[int]
) -> None:
    conv = next(node for node in repaired(recipe, text).node if node.op_type == "Conv")
    sizes = {a.name: list(a.ints) for a in conv.attribute}
    assert sizes["kernel_shape"] == kernel
