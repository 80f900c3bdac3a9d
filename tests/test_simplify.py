"""The onnxsim step: simplifies, and changes nothing of the interface."""

from __future__ import annotations

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
