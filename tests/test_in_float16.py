"""Networks in float32, computed in halves between their ends, where these hold the numbers."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest

import surgeon
from surgeon.errors import RecipeError
from surgeon.runtime import Session
from surgeon.trial.reach import Reach

RECIPE = "float32-in-float16"
HALF, SINGLE = onnx.TensorProto.FLOAT16, onnx.TensorProto.FLOAT
CNN = """<ir_version: 8, opset_import: ["": 17]>
g (float[N,3,16,16] x) => (float[N,5] y) <float[1,3,1,1] mean = {0.5, 0.4, 0.3}> {
  s = Sub (x, mean)
  a = Conv <pads = [1, 1, 1, 1]> (s, w, b)
  r = Relu (a)
  p = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (r)
  q = Conv <pads = [1, 1, 1, 1]> (p, v)
  z = Add (q, p)
  m = GlobalAveragePool (z)
  f = Flatten (m)
  y = Gemm (f, u)
}"""
ATTENTION = """<ir_version: 8, opset_import: ["": 17]>
g (float[N,6,8] x, bool[N,1,6] kept) => (float[N,6,8] y) <float low = {-3.4028234663852886e38}> {
  q = MatMul (x, w)
  k = MatMul (x, v)
  t = Transpose <perm = [0, 2, 1]> (k)
  s = MatMul (q, t)
  m = Where (kept, s, low)
  p = Softmax <axis = -1> (m)
  y = MatMul (p, q)
}"""
ADDED = ATTENTION.replace("float low", "float zero = {0}, float low").replace(
    "m = Where (kept, s, low)", "l = Where (kept, zero, low)\n m = Add (s, l)"
)
NORM = """<ir_version: 8, opset_import: ["": 17]>
g (float[N,8] x) => (float[N,8] y) <float eps = {1e-12}, float two = {2}> {
  a = MatMul (x, w)
  m = ReduceMean <axes = [-1]> (a)
  d = Sub (a, m)
  s = Pow (d, two)
  v = ReduceMean <axes = [-1]> (s)
  e = Add (v, eps)
  r = Sqrt (e)
  n = Div (d, r)
  y = MatMul (n, v2)
}"""
BRANCH = """<ir_version: 8, opset_import: ["": 17]>
g (float[N,8] x, bool c) => (float[N,8] y) {
  a = MatMul (x, w)
  y = If (c) <then_branch = then () => (float[N,8] t) { b = MatMul (a, v)
    t = Tanh (b) }, else_branch = other () => (float[N,8] o) { o = Relu (a) }>
}"""
OVERFLOW = """<ir_version: 8, opset_import: ["": 17]>
g (float[N,8] x) => (float[N,8] y) <float large = {10000}, float small = {0.0001}> {
  a = MatMul (x, w)
  b = Mul (a, large)
  c = Relu (b)
  d = Mul (c, large)
  e = Relu (d)
  f = Mul (e, small)
  h = Mul (f, small)
  y = MatMul (h, v)
}"""


def network(text: str, shapes: dict[str, tuple[int, ...]], scale: float = 0.3) -> onnx.ModelProto:
    model = onnx.parser.parse_model(text)
    rng = np.random.default_rng(0)
    for name, shape in shapes.items():
        weights = (rng.normal(size=shape) * scale).astype(np.float32)
        model.graph.initializer.append(onnx.numpy_helper.from_array(weights, name))
    return model


def applied(model: onnx.ModelProto, *recipes: str, **options: Any) -> surgeon.Result:
    return surgeon.apply(model, *(recipes or (RECIPE,)), allow=["approximate"], **options)


def operators(model: onnx.ModelProto, kind: int) -> Counter[str]:
    """What is computed in this type, without Casts."""
    graph = onnx.shape_inference.infer_shapes(model).graph
    kinds = {v.name: v.type.tensor_type.elem_type for v in (*graph.value_info, *graph.output)}
    nodes = [n for n in graph.node if n.op_type != "Cast"]
    return Counter(n.op_type for n in nodes if kinds[n.output[0]] == kind)


def casts(model: onnx.ModelProto) -> int:
    return sum(node.op_type == "Cast" for node in model.graph.node)


def error(before: onnx.ModelProto, after: onnx.ModelProto, feeds: dict[str, Any]) -> float:
    """The largest error, relative to the spread."""
    [wanted], [found] = (Session(each).run(feeds).values() for each in (before, after))
    assert found.dtype == np.float32
    return float(np.abs(wanted - found).max() / np.ptp(wanted))


def test_a_network_of_convolutions_is_computed_in_halves() -> None:
    shapes = {"w": (3, 3, 3, 3), "b": (3,), "v": (3, 3, 3, 3), "u": (3, 5)}
    model = network(CNN, shapes)
    result = applied(model)
    proto = result.model.to_proto()
    assert result.report.verdict.status == "equivalent"
    assert operators(proto, SINGLE) == {"Sub": 1}, "what is in front of the first product stays"
    assert casts(proto) == 2
    kept = {t.name: t.data_type for t in proto.graph.initializer}
    assert [n for n, kind in kept.items() if kind == SINGLE] == ["mean"]
    x = np.random.default_rng(1).random((2, 3, 16, 16), np.float32)
    assert error(model, proto, {"x": x}) < 0.005
    assert not applied(proto).model.changed, "a second run changes nothing"


def test_clean_leaves_it_in_halves() -> None:
    model = network(CNN, {"w": (3, 3, 3, 3), "b": (3,), "v": (3, 3, 3, 3), "u": (3, 5)})
    once = applied(model, "clean", RECIPE).model.to_proto()
    twice = applied(once, "clean", RECIPE, "clean").model.to_proto()
    assert operators(once, HALF) == operators(twice, HALF)
    assert casts(twice) == casts(once) == 2


def test_the_report_counts_what_stays() -> None:
    left = applied(network(NORM, {"w": (8, 8), "v2": (8, 8)})).report.remarks
    assert [text for text in left if "leaves" in text] == [
        f"`{RECIPE}` leaves 7 nodes that give float32: 2 ReduceMean, 1 Sub, 1 Pow, 1 Add, 1 Sqrt "
        "and 1 more; `surgeon explain` says why"
    ]
    one = applied(network(CNN, {"w": (3, 3, 3, 3), "b": (3,), "v": (3, 3, 3, 3), "u": (3, 5)}))
    assert any("leaves 1 node that gives float32: 1 Sub;" in text for text in one.report.remarks)
    none = network(
        CNN.replace("s = Sub (x, mean)", "s = Identity (x)"),
        {"w": (3, 3, 3, 3)} | {"b": (3,), "v": (3, 3, 3, 3), "u": (3, 5)},
    )
    assert not any("leaves" in text for text in applied(none).report.remarks)


def test_nothing_is_done_that_is_not_allowed() -> None:
    model = network(NORM, {"w": (8, 8), "v2": (8, 8)})
    assert not surgeon.apply(model, RECIPE).model.changed


@pytest.mark.parametrize("text", [ATTENTION, ADDED])
def test_a_row_that_is_masked_as_a_whole_is_shared_equally(text: str) -> None:
    model = network(text, {"w": (8, 8), "v": (8, 8)})
    proto = applied(model).model.to_proto()
    expected = SINGLE if text == ADDED else HALF
    assert operators(proto, expected)["Softmax"] == 1
    kept = np.array([[[True] * 4 + [False] * 2], [[False] * 6]])
    x = np.random.default_rng(1).normal(size=(2, 6, 8)).astype(np.float32)
    assert error(model, proto, {"x": x, "kept": kept}) < 0.005


def test_a_norm_with_a_small_epsilon_stays() -> None:
    model = network(NORM, {"w": (8, 8), "v2": (8, 8)})
    proto = applied(model).model.to_proto()
    assert operators(proto, HALF) == {"MatMul": 2}
    x = np.random.default_rng(1).normal(size=(4, 8)).astype(np.float32)
    x[0] = 0  # of no variance at all
    assert np.isfinite(Session(proto).run({"x": x})["y"]).all()
    assert error(model, proto, {"x": x[1:]}) < 0.005


def test_layer_normalization_is_of_halves() -> None:
    model = network(NORM.replace("1e-12", "1e-5"), {"w": (8, 8), "v2": (8, 8)})
    proto = applied(model, "clean", RECIPE).model.to_proto()
    assert operators(proto, HALF) == {"MatMul": 2, "LayerNormalization": 1}
    assert not operators(proto, SINGLE)


def test_bodies_are_computed_in_halves() -> None:
    model = network(BRANCH, {"w": (8, 8), "v": (8, 8)})
    proto = applied(model).model.to_proto()
    [node] = [n for n in proto.graph.node if n.op_type == "If"]
    bodies = {a.name: [n.op_type for n in a.g.node] for a in node.attribute}
    assert bodies["then_branch"] == ["MatMul", "Tanh", "Cast"]
    assert bodies["else_branch"] == ["Relu", "Cast"]
    x = np.random.default_rng(1).normal(size=(4, 8)).astype(np.float32)
    for c in (True, False):
        assert error(model, proto, {"x": x, "c": np.array(c)}) < 0.005


def test_what_leaves_the_range_of_halves_stays_and_is_told() -> None:
    model = network(OVERFLOW, {"w": (8, 8), "v": (8, 8)})
    result = applied(model, strict=False)
    proto, report = result.model.to_proto(), result.report
    assert report.verdict.status == "equivalent"
    assert operators(proto, HALF)["MatMul"] == 2
    assert operators(proto, SINGLE)["Relu"] >= 1
    assert any("values reach beyond 16384" in r.reason for r in report.refusals)
    x = np.random.default_rng(1).normal(size=(4, 8)).astype(np.float32)
    assert error(model, proto, {"x": x}) < 0.005


def test_what_the_users_own_data_make_large_stays(tmp_path: Any) -> None:
    model = network(NORM, {"w": (8, 8), "v2": (8, 8)})
    np.savez(tmp_path / "real.npz", x=np.full((2, 8), 40000, np.float32) * np.eye(2, 8, dtype="f"))
    drawn = applied(model).model.to_proto()
    real = applied(model, data=[tmp_path / "real.npz"])
    assert operators(drawn, HALF) == {"MatMul": 2}
    assert operators(real.model.to_proto(), HALF) == {"MatMul": 1}
    assert "the inputs compared" in real.report.refusals[0].reason


def test_what_values_become_is_measured() -> None:
    model = network(OVERFLOW, {"w": (8, 8), "v": (8, 8)})
    reach = Reach(surgeon.Model(model))
    reach.begin(surgeon.Recipe.load(RECIPE).rules, {"approximate"})
    assert reach.outside(["a", "h", "y"]) == ""
    assert "beyond 16384" in reach.outside(["a", "d"])
    assert reach.outside(["nothing"]) == ""


def test_the_model_is_held_to_what_a_rule_grants_it_however_often_it_fires() -> None:
    result = applied(network(CNN, {"w": (3, 3, 3, 3), "b": (3,), "v": (3, 3, 3, 3), "u": (3, 5)}))
    [tolerance] = {c.tolerance for each in result.report.verdict.comparisons for c in each.outputs}
    assert tolerance == pytest.approx(0.02)


def test_inputs_are_given_in_halves_where_that_is_asked_for() -> None:
    model = network(ATTENTION, {"w": (8, 8), "v": (8, 8)})
    result = applied(model, RECIPE, "input-types")
    kinds = {v.name: v.type.tensor_type.elem_type for v in result.model.to_proto().graph.input}
    assert kinds == {"x": HALF, "kept": onnx.TensorProto.BOOL}
    assert result.report.verdict.status == "equivalent"


def test_functions_are_computed_in_halves() -> None:
    text = """<ir_version: 8, opset_import: ["": 17, "own": 1]>
    g (float[N,8] x) => (float[N,8] y) { a = own.layer (x, w)
      y = own.layer (a, v) }
    <domain: "own", opset_import: ["": 17]>
    layer (x, w) => (y) { a = MatMul (x, w)
      y = Relu (a) }"""
    model = network(text, {"w": (8, 8), "v": (8, 8)})
    proto = applied(model, "clean", RECIPE).model.to_proto()
    assert operators(proto, HALF) == {"MatMul": 2, "Relu": 2}
    x = np.random.default_rng(1).normal(size=(4, 8)).astype(np.float32)
    assert error(model, proto, {"x": x}) < 0.005


def test_what_a_model_is_granted_is_no_less_than_a_rewrite() -> None:
    text = """surgeon: 1
name: own
rules:
  - id: tanh
    why: It is.
    exact: approximate
    bound: 0.1
    whole: 0.01
    match: y = Erf (x)
    replace: y = Tanh (x)
"""
    with pytest.raises(RecipeError, match="`whole` is for rules with a `bound`"):
        surgeon.Recipe.parse(text)
