"""The recipe `contrib`: what onnxruntime's own operators compute, standard ones compute too.

onnxruntime, whose operators they are, is the witness: it runs each model before and after.
"""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnxruntime_cases import CASES, Case, bytes_of, model_of, normal
from onnxruntime_layers import LAYERS

import surgeon
from surgeon.builders.contrib.refused import REASONS
from surgeon.errors import SurgeonError
from surgeon.recipe import Recipe
from surgeon.runtime import Session, release

RECIPE = Recipe.load("contrib")
NODES = {**CASES, **LAYERS}
OPSETS = (13, *(pytest.param(opset, marks=pytest.mark.slow) for opset in (12, 17, 21)))


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("name", NODES)
def test_standard_operators_compute_the_same(name: str, opset: int) -> None:
    case = NODES[name]
    if opset < case.since:
        pytest.skip(f"needs opset {case.since}")
    if case.op == "LayerNormalization" and opset >= 17:
        pytest.skip("standard from opset 17")
    proto = model_of(case, opset)
    if "causal" in case.attributes and tuple(map(int, release().split(".")[:2])) < (1, 32):
        pytest.skip("this onnxruntime knows no attention of that kind")
    wanted = Session(proto).run(dict(case.inputs))
    for output in proto.graph.output:
        value = wanted[output.name]
        kind = helper.np_dtype_to_tensor_dtype(value.dtype)
        output.CopyFrom(helper.make_tensor_value_info(output.name, kind, value.shape))
    result = surgeon.apply(proto, RECIPE)
    assert result.model.changed, result.report.misses
    out = result.model.to_proto()
    assert {node.domain for node in out.graph.node} == {""}
    onnx.checker.check_model(out, full_check=True)
    for got, value in Session(out).run(dict(case.inputs)).items():
        np.testing.assert_allclose(value, wanted[got], rtol=1e-4, atol=case.tolerance)


def test_what_the_optimizer_named_it_may_name_again() -> None:
    """Its MatMulAddFusion calls a constant `gemm_input_shape` though there is one in the file."""
    proto = onnx.parser.parse_model(
        """
        <ir_version: 8, opset_import: ["": 13, "com.microsoft": 1]>
        g (float[2,3,4] x) => (float[2,3,5] y)
          <int64[2] gemm_input_shape = {6, 4}, int64[3] gemm_output_shape = {2, 3, 4}> {
          r = Reshape (x, gemm_input_shape)
          h = Relu (r)
          s = Reshape (h, gemm_output_shape)
          n = com.microsoft.Gelu (s)
          m = MatMul (n, w)
          y = Add (m, b)
        }
        """
    )
    for name, value in (("w", normal(4, 5)), ("b", normal(5))):
        proto.graph.initializer.append(numpy_helper.from_array(value, name))
    out = surgeon.apply(proto, RECIPE).model.to_proto()
    feeds = {"x": normal(2, 3, 4)}
    (wanted,) = Session(proto).run(feeds).values()
    (found,) = Session(out, optimise=True).run(feeds).values()
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


def test_every_operator_that_the_recipe_refuses_has_its_reason() -> None:
    rules = {rule.id: rule for rule in RECIPE.rules}
    (pattern,) = rules["contrib-refused"].match.nodes
    assert sorted(pattern.operators) == sorted(REASONS)


OPERATORS = {
    (node.domain or "", op)
    for rule in RECIPE.rules
    for node in rule.match.nodes
    for op in node.operators
}


@pytest.mark.slow
@pytest.mark.parametrize("operator", sorted(OPERATORS), ids=".".join)
@pytest.mark.parametrize("shape", [[2, 3], [0, 2, 4], [1, 2, 3, 3], [], None])
def test_a_node_that_lacks_operands_and_attributes_stays(
    operator: tuple[str, str], shape: list[int] | None
) -> None:
    """It is refused with a reason, and no rule fails."""
    domain, op = operator
    for count in (0, 1, 3, 4, 6, 9):
        for left_out in range(-1, count):
            names = ["" if i == left_out else f"x{i}" for i in range(count)]
            inputs = [
                helper.make_tensor_value_info(n, TensorProto.FLOAT, shape) for n in names if n
            ]
            graph = helper.make_graph(
                [helper.make_node(op, names, ["y", "z"], domain=domain)],
                "g",
                inputs,
                [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
            )
            versions = {"": 17, "com.microsoft": 1} | ({domain: 1} if domain else {})
            imports = [helper.make_opsetid(*each) for each in versions.items()]
            proto = helper.make_model(graph, opset_imports=imports, ir_version=8)
            try:
                report = surgeon.apply(proto, RECIPE, allow=["approximate"]).report
            except SurgeonError:  # a rewrite of what onnxruntime does not load
                continue
            assert not [miss for miss in report.misses if "Error" in miss.reason], names


@pytest.mark.slow
@pytest.mark.parametrize("opset", [13, 21])
def test_weights_that_4_bits_name_stay_few_bits_where_they_are_many(opset: int) -> None:
    """They are folded into floats below the limit of what is folded alone."""
    rows, columns = 2500, 2048
    case = Case(
        "MatMulBnb4",
        {"a": normal(3, columns)},
        {"b": bytes_of(rows * columns // 2), "m": np.abs(normal(rows * columns // 64))},
        attributes={"K": columns, "N": rows, "block_size": 64, "quant_type": 1},
    )
    proto = model_of(case, opset)
    proto.graph.output[0].CopyFrom(
        helper.make_tensor_value_info("y0", TensorProto.FLOAT, [3, rows])
    )
    out = surgeon.apply(proto, RECIPE).model.to_proto()
    kinds = {initializer.data_type for initializer in out.graph.initializer}
    assert (TensorProto.UINT4 if opset >= 21 else TensorProto.UINT8) in kinds
    (wanted,), (found,) = (Session(p).run(dict(case.inputs)).values() for p in (proto, out))
    np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-3)


WRITTEN_BY_PYTORCH = [
    ("Inverse", {"x": normal(2, 3, 3)}, {}),
    ("Trilu", {"x": normal(2, 3, 4)}, {"upper": 0}),
    ("Trilu", {"x": normal(3, 4)}, {}),
    ("CDist", {"a": normal(3, 4), "b": normal(5, 4)}, {"metric": "euclidean"}),
    ("CDist", {"a": normal(3, 4), "b": normal(5, 4)}, {}),
    *(
        (
            "GridSample",
            {"x": normal(2, 3, 5, 6), "grid": normal(2, 4, 3, 2)},
            {"mode": mode, "padding_mode": padding, "align_corners": aligned},
        )
        for mode in ("bilinear", "nearest", "bicubic")
        for padding, aligned in (("zeros", 0), ("border", 1), ("reflection", 0))
        if (mode, padding) != ("nearest", "reflection")  # onnxruntime's takes another at a tie
    ),
]


@pytest.mark.slow
@pytest.mark.parametrize("opset", [9, 13, 16, 20])
@pytest.mark.parametrize(
    ("op", "inputs", "attributes"), WRITTEN_BY_PYTORCH, ids=[case[0] for case in WRITTEN_BY_PYTORCH]
)
def test_what_pytorch_wrote_as_the_runtimes_own_is_standard(
    op: str, inputs: dict[str, np.ndarray], attributes: dict[str, object], opset: int
) -> None:
    """The domain of `onnxruntime.tools.pytorch_export_contrib_ops`, by the recipe `aten`."""
    proto = model_of(Case(op, inputs, attributes=attributes), opset)
    (wanted,) = Session(proto).run(dict(inputs)).values()
    proto.graph.output[0].CopyFrom(
        helper.make_tensor_value_info("y0", TensorProto.FLOAT, wanted.shape)
    )
    out = surgeon.apply(proto, "aten").model.to_proto()
    assert {node.domain for node in out.graph.node} == {""}
    (found,) = Session(out).run(dict(inputs)).values()
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)
