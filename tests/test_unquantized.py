"""Quantized networks in floats again: their levels gone, the ends of them kept."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import parser
from packaging.version import Version

import surgeon
from surgeon.runtime import NotRunnable, RunFailed, Session

NETWORK = """
<ir_version: 8, opset_import: ["": 13]>
g (float[N, 2, 5, 5] x) => (float[N, 3, 3, 3] y)
<int8[3, 2, 3, 3] w, float[3] ws = {{0.02, 0.03, 0.01}}, int8[3] wz = {{0, 0, 0}},
 int32[3] b = {{100, -200, 50}}, float[3] bs, int32[3] bz = {{0, 0, 0}},
 float xs = {{{scale}}}, uint8 xz = {{128}}, float ys = {{{wide}}}, uint8 yz = {{0}}> {{
  xq = QuantizeLinear (x, xs, xz)
  xf = DequantizeLinear (xq, xs, xz)
  wf = DequantizeLinear <axis = 0> (w, ws, wz)
  bf = DequantizeLinear <axis = 0> (b, bs, bz)
  c = Conv (xf, wf, bf)
  yq = QuantizeLinear (c, ys, yz)
  y = DequantizeLinear (yq, ys, yz)
}}"""


def network(scale: float) -> tuple[onnx.ModelProto, np.ndarray]:
    """A Conv whose Relu the quantizer left to the levels, and its weights in floats."""
    model = parser.parse_model(NETWORK.format(scale=scale, wide=8 * scale))
    levels = np.random.default_rng(0).integers(-127, 128, (3, 2, 3, 3)).astype(np.int8)
    steps = np.array([0.02, 0.03, 0.01], np.float32)
    for name, array in {"w": levels, "bs": steps * np.float32(scale)}.items():
        model.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    return model, levels * steps.reshape(3, 1, 1, 1)


@pytest.mark.parametrize("scale", [0.01, 0.5, 20.0])
def test_rounding_goes_and_the_ends_stay_whatever_the_scale(scale: float) -> None:
    model, weights = network(scale)
    result = surgeon.apply(model, "qdq-to-floats", "clean", allow=["approximate"])
    assert not result.report.refusals
    made = result.model.to_proto()
    assert [node.op_type for node in made.graph.node] == ["Clip", "Conv", "Clip"]
    held = {t.name: onnx.numpy_helper.to_array(t) for t in made.graph.initializer}
    assert np.allclose(held[made.graph.node[1].input[1]], weights)
    x = np.random.default_rng(1).normal(size=(2, 2, 5, 5)).astype("f") * 30 * scale
    found, first = (Session(each).run({"x": x}, ["y"])["y"] for each in (made, model))
    assert (found >= 0).all()  # the Relu
    assert np.abs(found - first).max() <= 8 * scale  # a level


def test_by_itself_the_rounding_stays() -> None:
    model, _ = network(0.5)
    result = surgeon.apply(model, "qdq-to-floats", require="equivalent")
    made = result.model.to_proto()
    operators = {node.op_type for node in made.graph.node}
    assert "Round" in operators
    assert not any("Linear" in operator for operator in operators)


TYPED = """
<ir_version: 11, opset_import: ["": 23]>
g (int8[N,3] q) => (float[N,3] y) <float16 s = {11878}, int8[3] w = {3, -9, 7}> {
  a = DequantizeLinear <output_dtype = 1> (q, s)
  b = DequantizeLinear <output_dtype = 1> (w, s)
  y = Mul (a, b)
}"""


def test_levels_have_the_type_that_is_asked_for_and_not_their_scale_s() -> None:
    model = parser.parse_model(TYPED)
    try:
        Session(model).run({"q": np.zeros((1, 3), np.int8)})
    except (NotRunnable, RunFailed):
        pytest.skip("this onnxruntime runs no DequantizeLinear of another type than its scale's")
    result = surgeon.apply(model, "qdq-to-floats", require="equivalent")
    after = result.model.to_proto()
    assert [node.op_type for node in after.graph.node] == ["Cast", "Mul", "Mul"]
    assert {t.data_type for t in after.graph.initializer} == {onnx.TensorProto.FLOAT}


@pytest.mark.skipif(
    Version(onnxruntime.__version__) < Version("1.32"), reason="it rounds halves otherwise"
)
class TestHalvesInLevels:
    """By steps that are no powers of two, where halves and float32 give other levels."""

    @pytest.mark.parametrize(("levels", "step"), [("uint8", 11878), ("uint16", 5145)])
    def test_they_are_divided_in_float32_below_opset_23(self, levels: str, step: int) -> None:
        text = f"""(float16[N,64] x) => ({levels}[N,64] q)
            <float16 s = {{{step}}}, {levels} z = {{3}}> {{ q = QuantizeLinear (x, s, z) }}"""
        self.check(21, text, "qdq-to-floats", {"qdq-to-floats/rounded-to-levels": 1})

    def test_from_then_on_in_halves_or_in_what_precision_says(self) -> None:
        text = """(float16[N,64] x, float[N,64] w) => (uint8[N,64] p, uint8[N,64] q, uint8[N,64] r)
            <float16 s = {11878}, float t = {0.1}, uint8 z = {3}> {
            p = QuantizeLinear (x, s, z)
            q = QuantizeLinear <precision = 10> (w, t, z)
            r = QuantizeLinear <precision = 1> (x, s, z) }"""
        self.check(23, text, "qdq-to-floats", {"qdq-to-floats/rounded-to-levels": 3})

    def test_onnxruntime_s_own_says_float32_from_then_on(self) -> None:
        text = """(float16[N,64] x) => (uint8[N,64] y) <float16 s = {11878}, uint8 z = {3}> {
            y = com.microsoft.QuantizeLinear (x, s, z) }"""
        made = self.check(23, text, "contrib", {"contrib/quantize-linear": 1})
        (node,) = made.graph.node
        assert (node.domain, node.attribute[0].name, node.attribute[0].i) == ("", "precision", 1)

    @staticmethod
    def check(opset: int, text: str, recipe: str, fired: dict[str, int]) -> onnx.ModelProto:
        head = f'<ir_version: 10, opset_import: ["": {opset}, "com.microsoft": 1]> g '
        found = surgeon.apply(parser.parse_model(head + text), recipe, allow="approximate")
        assert found.report.fired == fired
        assert found.report.verdict is not None
        assert found.report.verdict.status == "equivalent"
        return found.model.to_proto()
