"""The onnxsim step: simplifies, and changes nothing of the interface."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import surgeon.steps.simplify
from surgeon.errors import ForeignError, VerifyError
from surgeon.runtime import Session
from surgeon.steps.simplify import simplify
from surgeon.workers import Worker

CHAIN = """<ir_version: 8, opset_import: ["": 17], producer_name: "pytorch">
g (float[2,3,4] x, float[N] unread) => (float[A,B] y) {
    s = Shape(x)
    zero = Constant <value = int64[1] {0}> ()
    one = Constant <value = int64[1] {1}> ()
    a = Slice(s, zero, one)
    rest = Constant <value = int64[1] {-1}> ()
    t = Concat <axis = 0> (a, rest)
    y = Reshape(x, t)
}"""


@pytest.mark.slow
def test_a_shape_chain_goes_and_the_interface_stays() -> None:
    model = onnx.parser.parse_model(CHAIN)
    model.metadata_props.add(key="who", value="me")
    before = model.SerializeToString()
    after = simplify(model)
    assert model.SerializeToString() == before, "the given model was touched"
    assert [node.op_type for node in after.graph.node] == ["Reshape"]
    assert list(after.graph.input) == list(model.graph.input)
    assert list(after.graph.output) == list(model.graph.output)
    assert (after.producer_name, after.metadata_props[0].value) == ("pytorch", "me")
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    feeds: dict[str, Any] = {"x": x, "unread": np.zeros(1, np.float32)}
    np.testing.assert_array_equal(Session(after).run(feeds)["y"], x.reshape(2, 12))


@pytest.mark.slow
def test_external_data_come_from_the_folder(tmp_path: Path) -> None:
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 17]> g (float[3] x) => (float[3] y) {y = Add(x, w)}'
    )
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.ones(3, np.float32), "w"))
    path = tmp_path / "model.onnx"
    onnx.save(model, path, save_as_external_data=True, location="w.bin", size_threshold=0)
    slim = onnx.load(path, load_external_data=False)
    assert Session(simplify(slim, folder=tmp_path)).run({"x": np.ones(3, np.float32)})["y"][0] == 2
    with pytest.raises(ForeignError, match="the weights lie elsewhere"):
        simplify(slim)


def test_a_tool_nobody_knows_is_refused() -> None:
    with pytest.raises(ForeignError, match="`other` is not a tool known here"):
        simplify(onnx.parser.parse_model(CHAIN), tool="other")


@pytest.mark.slow
def test_a_refusal_names_the_step() -> None:
    broken = onnx.parser.parse_model(CHAIN)
    broken.graph.node[0].input[0] = "nothing"
    with pytest.raises(ForeignError, match="simplify: onnxsim: `onnxsim` refuses the model"):
        simplify(broken)


def test_a_crash_names_the_step(monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(self: Worker, task: str, *args: Any, **kwargs: Any) -> Any:
        return original(self, "os:abort")

    original = Worker.call
    monkeypatch.setattr(Worker, "call", crash)
    with pytest.raises(ForeignError, match="simplify: onnxsim: `os:abort` crashed"):
        simplify(onnx.parser.parse_model(CHAIN))


def test_another_interface_is_refused() -> None:
    before = onnx.parser.parse_model(CHAIN)
    after = onnx.parser.parse_model(CHAIN)
    del after.graph.input[1]
    with pytest.raises(VerifyError, match=r"the inputs were \['x', 'unread'\] and are \['x'\]"):
        surgeon.steps.simplify._held(before, after, "simplify: onnxsim")
    after = onnx.parser.parse_model(CHAIN.replace("float[A,B] y", "double[A,B] y"))
    with pytest.raises(VerifyError, match="the output `y` has another type"):
        surgeon.steps.simplify._held(before, after, "simplify: onnxsim")


@pytest.mark.slow
def test_where_the_format_lists_constants_as_inputs_new_ones_are_nodes() -> None:
    model = onnx.parser.parse_model("""<ir_version: 3, opset_import: ["": 9]>
        g (float[2,3] x, float[3] w) => (float[2,3] y) <float[3] w = {1, 2, 3}> {
            a = Identity (x)  k = Add (w, w)  b = Add (a, k)  y = Mul (b, w)
        }""")
    after = simplify(model)
    assert after.ir_version == 3
    assert [node.op_type for node in after.graph.node] == ["Constant", "Add", "Mul"]
    assert [value.name for value in after.graph.input] == ["x", "w"]
    x = np.ones((2, 3), np.float32)
    np.testing.assert_array_equal(Session(after).run({"x": x})["y"][0], [3, 10, 21])
    with suppress(ForeignError):  # onnxsim of today takes no constant that is not listed
        assert [value.name for value in simplify(model, kept=True).graph.input] == ["x", "w"]


@pytest.mark.slow
def test_weights_of_a_body_may_lie_outside_and_what_is_said_of_nodes_stays(tmp_path: Path) -> None:
    model = onnx.parser.parse_model("""<ir_version: 10, opset_import: ["": 17]>
        g (bool c, float[3] x) => (float[3] y) {
            a = Identity (x)
            [pick] y = If (c) <
                then_branch = t () => (float[3] o) <float[3] w = {1, 2, 3}> { o = Add (a, w) },
                else_branch = e () => (float[3] o) { o = Neg (a) }>
        }""")
    model.graph.metadata_props.add(key="of", value="graph")
    model.graph.node[1].metadata_props.add(key="of", value="node")
    weight = model.graph.node[1].attribute[0].g.initializer[0]
    (tmp_path / "w.bin").write_bytes(onnx.numpy_helper.to_array(weight).tobytes())
    weight.ClearField("float_data")
    weight.ClearField("raw_data")
    weight.data_location = weight.EXTERNAL
    weight.external_data.add(key="location", value="w.bin")
    after = simplify(model, folder=tmp_path)
    assert [node.op_type for node in after.graph.node] == ["If"]
    assert after.graph.metadata_props[0].value == "graph"
    assert after.graph.node[0].metadata_props[0].value == "node"
    feeds: dict[str, Any] = {"c": np.array(True), "x": np.zeros(3, np.float32)}
    np.testing.assert_array_equal(Session(after).run(feeds)["y"], [1, 2, 3])


@pytest.mark.slow
def test_what_another_domain_calls_as_onnx_does_stays() -> None:
    model = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["": 17, "my": 1]>
        g (float[2,3] x) => (float[2,3] y) {
            a = my.Identity (x)  b = my.Relu (a)  c = Identity (b)  y = Relu (c)
        }
        <domain: "my", opset_import: ["": 17]> Relu (x) => (y) { y = Neg (x) }""")
    after = simplify(model)
    assert [(node.domain, node.op_type) for node in after.graph.node] == [
        *(("my", "Identity"), ("my", "Relu"), ("", "Relu")),
    ]
    assert [function.name for function in after.functions] == ["Relu"]
