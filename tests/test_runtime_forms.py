"""Forms that runtimes other than onnxruntime want, where ONNX takes others as well."""

from __future__ import annotations

import onnx
import pytest
from onnx import numpy_helper, parser

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


def test_cuts_of_several_axes_are_one_slice_below_opset_10() -> None:
    graph = repaired(
        "no-ops",
        """<ir_version: 4, opset_import: ["": 9]>
        g (float[2,3,4,5] x) => (float[2,3,2,3] y) {
          m = Slice <axes = [2], starts = [0], ends = [2]> (x)
          y = Slice <axes = [3], starts = [2], ends = [9223372036854775807]> (m)
        }""",
    )
    assert [node.op_type for node in graph.node] == ["Slice"]
    sizes = {a.name: list(a.ints) for a in graph.node[0].attribute}
    assert sizes["axes"] == [2, 3]
    assert sizes["starts"] == [0, 2]


@pytest.mark.parametrize(
    ("batch", "targets"), [("2", [[0, 2, -1], [2, 4, 3]]), ("n", [[0, 2, 6], [0, 4, 3]])]
)
def test_group_normalisation_is_reshaped_as_exporters_do(
    batch: str, targets: list[list[int]]
) -> None:
    graph = repaired(
        "aten",
        f"""<ir_version: 8, opset_import: ["": 13, "org.pytorch.aten": 1]>
        g (float[{batch},4,3] x) => (float[{batch},4,3] y)
          <float[4] w = {{1, 2, 3, 4}}, float[4] b = {{1, 2, 3, 4}}, int64 groups = {{2}},
           double eps = {{0.001}}, bool no = {{0}}> {{
          y = org.pytorch.aten.group_norm (x, groups, w, b, eps, no)
        }}""",
    )
    constants = {i.name: numpy_helper.to_array(i).tolist() for i in graph.initializer}
    views = [node.input[1] for node in graph.node if node.op_type == "Reshape"]
    assert [constants[name] for name in views] == targets
