"""Networks in halves and in double precision, computed in float32 between inputs and outputs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest
from command import run

import surgeon
from surgeon.runtime import NotRunnable, Session

NETWORK = """<ir_version: 8, opset_import: ["": 17]>
g (TYPE[N,2,6] x) => (TYPE[N,3,2] y) <TYPE[3,2,3] w, TYPE zero = {0}, TYPE six = {6}> {
  a = Conv <strides = [2]> (x, w)
  b = Clip (a, zero, six)
  c = Mul (a, b)
  d = Transpose <perm = [0, 2, 1]> (c)
  e = Exp (d)
  f = Transpose <perm = [0, 2, 1]> (e)
  y = Softmax <axis = -1> (f)
}"""
TYPES = {"float16": np.float16, "float64": np.float64}


def network(dtype: str) -> onnx.ModelProto:
    model = onnx.parser.parse_model(
        NETWORK.replace("TYPE", "double" if dtype == "float64" else dtype)
    )
    weights = np.random.default_rng(0).normal(size=(3, 2, 3)).astype(TYPES[dtype])
    model.graph.initializer.append(onnx.numpy_helper.from_array(weights, "w"))
    del model.graph.value_info[:]
    return model


def computed(model: onnx.ModelProto) -> set[int]:
    """The element types of what is computed."""
    inferred = onnx.shape_inference.infer_shapes(model)
    return {v.type.tensor_type.elem_type for v in inferred.graph.value_info}


@pytest.mark.parametrize("dtype", TYPES)
def test_a_network_is_computed_in_float32(dtype: str) -> None:
    result = surgeon.apply(network(dtype), f"{dtype}-in-float32", "clean", allow=["approximate"])
    proto = result.model.to_proto()
    assert result.report.verdict.status == "equivalent"
    assert computed(proto) == {onnx.TensorProto.FLOAT}
    assert [n.op_type for n in proto.graph.node].count("Cast") == 2
    x = np.random.default_rng(1).normal(size=(2, 2, 6)).astype(TYPES[dtype])
    [y] = Session(proto).run({"x": x}).values()
    assert y.dtype == TYPES[dtype]


def test_halves_are_rounded_where_nothing_else_is_allowed() -> None:
    model = network("float16")
    result = surgeon.apply(model, "float16-in-float32", "clean")
    x = np.random.default_rng(1).normal(size=(2, 2, 6)).astype(np.float16)
    [wanted], [found] = (
        Session(proto).run({"x": x}).values() for proto in (model, result.model.to_proto())
    )
    np.testing.assert_array_equal(found, wanted)
    assert onnx.TensorProto.FLOAT16 in computed(result.model.to_proto())


def test_doubles_are_left_where_nothing_else_is_allowed() -> None:
    result = surgeon.apply(network("float64"), "float64-in-float32")
    assert not result.model.changed


def test_inspect_says_what_doubles_need(tmp_path: Path) -> None:
    model = network("float64")
    with pytest.raises(NotRunnable):
        Session(model)
    path = tmp_path / "doubles.onnx"
    onnx.save(model, str(path))
    said = run("inspect", path).output
    assert "4 inputs, constants and Casts in double precision" in said
    assert "float64-in-float32 --allow approximate" in " ".join(said.split())


def test_a_bound_of_halves_that_is_left_out_is_the_last_half() -> None:
    model = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["": 17]>
g (float16[N] x) => (float16[N] y, float16[N] z) <float16 six = {17920}> {
  y = Clip (x, , six)
  z = Clip (x, six)
}""")
    made = surgeon.apply(model, "float16-in-float32").model.to_proto()
    x = np.array([-np.inf, np.inf, 0, 7], np.float16)
    before, after = (Session(proto).run({"x": x}) for proto in (model, made))
    assert before["y"][0] == -65504
    assert before["z"][1] == 65504
    for name, values in before.items():
        np.testing.assert_array_equal(after[name], values)
