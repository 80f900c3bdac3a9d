"""Networks in bfloat16, of which onnxruntime computes nothing on a CPU: repaired and compared."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnx.parser
import pytest

import surgeon
from surgeon.inspection import inspect
from surgeon.reference import open_reference
from surgeon.reference.arguments import Call
from surgeon.reference.witness import NumpyWitness
from surgeon.runtime import NotRunnable, Session

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
NETWORK = """<ir_version: 8, opset_import: ["": 17]>
g (bfloat16[N,2,6] x) => (bfloat16[N,3,2] y) <bfloat16[3,2,3] w, bfloat16[3] b> {
  a = Conv <strides = [2]> (x, w, b)
  c = Sigmoid (a)
  d = Mul (a, c)
  e = Identity (d)
  y = Softmax <axis = -1> (e)
}"""


def network(text: str = NETWORK) -> onnx.ModelProto:
    """The network with weights drawn."""
    model = onnx.parser.parse_model(text)
    rng = np.random.default_rng(0)
    for value in model.graph.value_info:  # what has no numbers in the text
        shape = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
        drawn = np.asarray(rng.normal(size=shape), BFLOAT16)
        model.graph.initializer.append(onnx.numpy_helper.from_array(drawn, value.name))
    del model.graph.value_info[:]
    return model


def fed() -> dict[str, np.ndarray]:
    return {"x": np.random.default_rng(1).normal(size=(2, 2, 6)).astype(BFLOAT16)}


@pytest.mark.parametrize("allow", [[], ["approximate"]])
def test_a_network_that_does_not_load_is_computed_in_float32(allow: list[str]) -> None:
    model = network()
    with pytest.raises(NotRunnable):
        Session(model)
    result = surgeon.apply(model, "bfloat16-in-float32", "clean", allow=allow)
    proto = result.model.to_proto()
    assert result.report.verdict.status == "equivalent"
    [wanted] = open_reference(model).run(fed()).values()
    [found] = Session(proto).run(fed()).values()
    assert found.dtype == wanted.dtype == BFLOAT16
    apart = np.abs(found.astype(np.float32) - wanted.astype(np.float32)).max()
    assert apart == 0 if not allow else apart < 0.02
    casts = [node for node in proto.graph.node if node.op_type == "Cast"]
    assert len(casts) == 2 or not allow  # of what goes in and out


def test_each_operator_is_rounded_once() -> None:
    """As PyTorch's kernels round: what is summed up within one is not."""
    model = network("""<ir_version: 8, opset_import: ["": 17]>
    g (bfloat16[N,2,6] x) => (bfloat16[N,2] y) {
      a = Add (x, x)
      y = ReduceMean <axes = [2], keepdims = 0> (a)
    }""")
    [found] = open_reference(model).run(fed()).values()
    doubled = (fed()["x"].astype(np.float32) * 2).astype(BFLOAT16).astype(np.float32)
    np.testing.assert_array_equal(found, doubled.mean(-1).astype(BFLOAT16))


def test_what_aten_writes_is_valid_in_bfloat16() -> None:
    """Below opset 22 ONNX has no Conv of it: what takes its place is computed in float32."""
    model = network("""<ir_version: 8, opset_import: ["": 13, "org.pytorch.aten": 1]>
    g (bfloat16[N,2,6] x) => (bfloat16[N,3,6] y)
      <bfloat16[3,2,1] w, bfloat16[3] b, int64[1] one = {1}, int64[1] none = {0},
       int64 groups = {1}> {
      y = org.pytorch.aten.conv1d (x, w, b, one, none, one, groups)
    }""")
    result = surgeon.apply(model, "aten")
    assert result.report.verdict.status == "equivalent"
    [wanted] = open_reference(model).run(fed()).values()
    [found] = Session(result.model.to_proto()).run(fed()).values()
    np.testing.assert_array_equal(found, wanted)


GRID = """<ir_version: 8, opset_import: ["": 13, "org.pytorch.aten": 1]>
g (bfloat16[N,2,6] x, bfloat16[N,3,4,2] at) => (bfloat16[N,1,3,4] y)
  <int64 zero = {0}, bool no = {0}, int64[1] one = {1}> {
  p = Unsqueeze (x, one)
  y = org.pytorch.aten.grid_sampler_2d (p, at, zero, zero, no)
}"""
PUT = """<ir_version: 8, opset_import: ["": 18, "org.pytorch.aten": 1]>
g (bfloat16[N,2,6] x, int64[K] at) => (bfloat16[N,2,6] y) <bool yes = {1}> {
  a = Identity (x)
  l = SequenceConstruct (at)
  y = org.pytorch.aten.index_put (a, l, x, yes)
}"""


@pytest.mark.parametrize(
    ("text", "more"),
    [
        (GRID, np.linspace(-1, 1, 48).reshape(2, 3, 4, 2).astype(BFLOAT16)),
        (PUT, np.array([1, 1])),
    ],
    ids=["a grid", "a list beside it"],
)
def test_operators_of_pytorch_are_lowered_and_witnessed(text: str, more: Any) -> None:
    model = network(text)
    result = surgeon.apply(model, "aten", "bfloat16-in-float32")
    assert result.report.verdict.status == "equivalent"
    feeds = {**fed(), "at": more}
    [wanted] = open_reference(model).run(feeds).values()
    [found] = Session(result.model.to_proto()).run(feeds).values()
    apart = np.abs(found.astype(np.float32) - wanted.astype(np.float32)).max()
    assert apart < 0.05  # each step is rounded


@pytest.mark.parametrize("dtype", [BFLOAT16, np.float16])
def test_what_norms_of_halves_keep_is_in_float32(dtype: Any) -> None:
    """The numbers are those of PyTorch 2.13."""
    x = np.array([1.5 / 2**12], dtype)
    y, inverse = NumpyWitness()(Call("_fused_rms_norm", "", {}), [x, [1], None, None], where="")
    assert y.dtype == dtype
    assert inverse.dtype == np.float32
    np.testing.assert_allclose(inverse, [1986.8519], rtol=1e-6)
    np.testing.assert_allclose(y.astype(np.float32), [0.7266], rtol=2**-8)


X = np.array([1.5, -0.25, -2.25])
OF_PYTORCH = [  # whose numbers are those of PyTorch 2.13
    ("add", [X, X, 1.5], [3.75, -0.625, -5.625]),
    ("sub", [X, 2.0, 0.5], [0.5, -1.25, -3.25]),
    ("addcmul", [X, X, X, 0.5], [2.625, -0.21875, 0.28125]),
    ("signbit", [X], [False, True, True]),
    ("nan_to_num", [np.array([np.nan, 2.0])], [0.0, 2.0]),
    ("fmod", [X, np.array([0, 2, 2], np.int32)], [np.nan, -0.25, -0.25]),
    ("isclose", [np.array([np.nan, 1.0]), np.array([np.nan, 2.0]), 0.0, 0.0, True], [True, False]),
    ("scatter_reduce", [X, 0, np.array([0, 0, 1]), X * 2, "mean", True], [4 / 3, -2.375, -2.25]),
    ("stack", [[X[:2], np.array([1, 2])]], [[1.5, -0.25], [1, 2]]),
    ("cat", [[X[:1], np.array([1.25], np.float16)]], [1.5, 1.25]),
]


@pytest.mark.parametrize(("operator", "values", "wanted"), OF_PYTORCH)
def test_the_witness_takes_bfloat16_for_floats(
    operator: str, values: list[Any], wanted: list[Any]
) -> None:
    def short(value: Any) -> Any:
        if isinstance(value, list):
            return [short(each) for each in value]
        is_double = isinstance(value, np.ndarray) and value.dtype == np.float64
        return value.astype(BFLOAT16) if is_double else value

    found = NumpyWitness()(Call(operator, "", {}), short(values), where="")
    np.testing.assert_allclose(found.astype(np.float64), wanted, rtol=2**-8)
    if np.asarray(wanted).dtype == np.float64:
        assert found.dtype == (np.float32 if operator == "cat" else BFLOAT16)


def test_what_is_rounded_on_the_way_runs_too() -> None:
    """Neither an input nor a weight is in bfloat16 here."""
    text = """<ir_version: 8, opset_import: ["": 17]>
    g (float[N,6] x) => (float[N,6] y) {
      a = Cast <to = 16> (x)
      b = Mul (a, a)
      y = Cast <to = 1> (b)
    }"""
    x = np.random.default_rng(1).normal(size=(2, 6)).astype(np.float32)
    result = surgeon.apply(network(text), "bfloat16-in-float32")
    [found] = Session(result.model.to_proto()).run({"x": x}).values()
    short = x.astype(BFLOAT16).astype(np.float32)
    np.testing.assert_array_equal(found, (short * short).astype(BFLOAT16).astype(np.float32))
    assert result.report.verdict.status == "equivalent"


def test_what_helps_is_said(tmp_path: Path) -> None:
    path = tmp_path / "short.onnx"
    onnx.save(network(), path)
    assert inspect(path).bfloat16 == 3
    with pytest.raises(surgeon.SurgeonError, match="does not load") as caught:
        surgeon.apply(path, "clean")
    assert "`bfloat16-in-float32`" in caught.value.mend


def test_weights_take_what_stands_beside_them() -> None:
    text = """<ir_version: 10, opset_import: ["": 22]>
    g (bfloat16[N,2,6] x) => (bfloat16[N,3,4] y)
    <bfloat16[3,2,3] w, bfloat16[3] s, bfloat16[3] b, bfloat16[3] m, bfloat16[3] v> {
      c = Conv (x, w)
      y = BatchNormalization (c, s, b, m, v)
    }"""
    model = network(text)
    ones = onnx.numpy_helper.from_array(np.ones(3, BFLOAT16), "v")
    model.graph.initializer[4].CopyFrom(ones)
    result = surgeon.apply(model, "batch-norm", verify=False)
    assert [node.op_type for node in result.model.to_proto().graph.node] == ["Conv"]


def test_below_opset_13_no_cast_takes_it_and_none_is_tried_without_end() -> None:
    proto = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 10]>
        g (bfloat16[N,2,3] x) => (bfloat16[N,6] y)
        <int64 zero = {0}, int64[1] rest = {-1}, int64[1] first = {0}> {
          s = Shape (x)
          n = Gather <axis = 0> (s, zero)
          l = Unsqueeze <axes = [0]> (n)
          t = Concat <axis = 0> (l, rest)
          y = Reshape (x, t)
        }"""
    )
    assert not surgeon.apply(proto, "shape-chains", verify=False, check=False).report.failures


def test_the_ends_of_its_range_are_its_own() -> None:
    proto = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 17]>
        g (bfloat16[N,3] x) => (bfloat16[N,1] y) { y = ReduceLogSumExp <axes = [1]> (x) }"""
    )
    report = surgeon.apply(proto, "reductions-decompose", verify=False, check=False).report
    assert not report.failures
    assert {change.rule for change in report.changes} == {"exponentials-as-sum"}
