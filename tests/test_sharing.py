"""Weights that stand in a file twice, once (`share-weights`)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import numpy_helper

import surgeon
from surgeon.steps.sharing import share_weights, twins_of

WORDS = """<ir_version: 8, opset_import: ["": 17]>
g (int64[N] ids, float[N,128] x) => (float[N,128] e, float[N,256] y, float[N,256] z)
{ e = Gather (table, ids) y = MatMul (x, scores) h = MatMul (x, again) z = Tanh (h) }"""


def _tied(text: str = WORDS, **more: np.ndarray) -> onnx.ModelProto:
    model = onnx.parser.parse_model(text)
    table = np.random.default_rng(0).normal(size=(256, 128)).astype(np.float32)
    weights = {"table": table, "scores": table.T.copy(), "again": table.T.copy(), **more}
    for name, array in weights.items():
        model.graph.initializer.append(numpy_helper.from_array(array, name))
    return model


def _names(model: onnx.ModelProto) -> set[str]:
    return {tensor.name for tensor in model.graph.initializer}


def test_equal_weights_and_a_transpose_are_one() -> None:
    model = _tied()
    result = surgeon.apply(model, "share-weights")
    after = result.model.to_proto()
    assert result.report.status == "equivalent"
    assert _names(after) == {"table"}
    assert sorted(n.op_type for n in after.graph.node).count("Transpose") == 1
    assert after.ByteSize() < model.ByteSize() - 2 * 4 * 256 * 128 + 2000
    (said,) = result.report.remarks
    assert said == "2 weights say what another one does, 1 turned, and went: 262,144 bytes"


def test_a_second_run_changes_nothing() -> None:
    once = surgeon.apply(_tied(), "share-weights").model
    assert surgeon.apply(once, "share-weights").report.status == "unchanged"


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("scores", np.ones((128, 256), np.float32)),
        ("scores", np.ones((128, 256), np.float32) * np.float32(-0.0)),
    ],
)
def test_what_differs_stays(name: str, array: np.ndarray) -> None:
    model = _tied(**{name: array, "again": np.full((128, 256), 0.0, np.float32)})
    assert twins_of(model) is None
    assert surgeon.apply(model, "share-weights").report.status == "unchanged"


def test_what_a_quantiser_noted_by_stays() -> None:
    model = _tied()
    names = _names(model)
    note = model.graph.quantization_annotation.add(tensor_name="x")
    for name in sorted(names):
        note.quant_parameter_tensor_names.add(key="SCALE_TENSOR", value=name)
    assert twins_of(model) is None


def test_a_symmetric_matrix_is_no_twin_of_itself() -> None:
    text = """<ir_version: 8, opset_import: ["": 17]>
    g (float[N,128] x) => (float[N,128] y) { y = MatMul (x, w) }"""
    model = onnx.parser.parse_model(text)
    model.graph.initializer.append(numpy_helper.from_array(np.eye(128, dtype=np.float32), "w"))
    assert twins_of(model) is None


def test_what_is_given_out_fed_or_named_in_a_body_stays() -> None:
    model = _tied()
    model.graph.output.append(
        onnx.helper.make_tensor_value_info("again", onnx.TensorProto.FLOAT, [128, 256])
    )
    model.graph.input.append(
        onnx.helper.make_tensor_value_info("scores", onnx.TensorProto.FLOAT, [128, 256])
    )
    assert twins_of(model) is None


def test_bodies_read_the_one_that_stays() -> None:
    text = """<ir_version: 8, opset_import: ["": 17]>
    g (float[N,128] x, bool c) => (float[N,256] y)
    { y = If (c) <then_branch = t () => (float[N,256] p) { p = MatMul (x, scores) },
                  else_branch = f () => (float[N,256] q) { q = MatMul (x, again) }> }"""
    model = _tied(text)
    result = surgeon.apply(model, "share-weights")
    assert result.report.status == "equivalent"
    assert len(_names(result.model.to_proto())) == 1


def test_data_outside_are_read_and_kept_where_they_are(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    onnx.save(_tied(), path, save_as_external_data=True, location="m.data", size_threshold=0)
    result = surgeon.apply(path, "share-weights")
    result.model.save(tmp_path / "out.onnx")
    after = onnx.load(tmp_path / "out.onnx", load_external_data=False)
    assert _names(after) == {"table"}
    assert (tmp_path / "m.data").stat().st_size == 3 * 4 * 256 * 128
    assert result.report.status == "equivalent"


def test_types_that_numpy_lacks() -> None:
    model = onnx.parser.parse_model(
        """<ir_version: 10, opset_import: ["": 21]>
        g (int64[N] i) => (bfloat16[N,64] y, bfloat16[N,64] z)
        { y = Gather (a, i) z = Gather (b, i) }"""
    )
    array = np.arange(64 * 64, dtype=np.float32).reshape(64, 64)
    for name in "ab":
        model.graph.initializer.append(
            onnx.helper.make_tensor(name, onnx.TensorProto.BFLOAT16, [64, 64], array.reshape(-1))
        )
    twins = twins_of(model)
    assert twins is not None
    assert _names(share_weights(model, twins)) == {"a"}
