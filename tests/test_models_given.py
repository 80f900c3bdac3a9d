"""What is given as a model, wherever one is asked for: as it stands, and never as it once was."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.numpy_helper
import onnx.parser
import onnx_graphsurgeon as gs
import pytest
from command import run

import surgeon

TEXT = """<ir_version: 8, opset_import: ["": 17]>
g (float[N,4] x) => (float[N,4] y) {
  a = Relu (x)
  b = HardSwish (a)
  y = Neg (b)
}"""
MEND = "activations-decompose"


def operators(model: onnx.ModelProto) -> set[str]:
    return {node.op_type for node in model.graph.node}


def rewritten(path: Path) -> surgeon.Model:
    onnx.save(onnx.parser.parse_model(TEXT), path)
    model = surgeon.apply(path, MEND).model
    assert "HardSwish" not in operators(model.to_proto())
    return model


@pytest.mark.slow
def test_a_result_is_worked_on_as_it_stands(tmp_path: Path) -> None:
    model = rewritten(tmp_path / "in.onnx")
    again = surgeon.apply(model, "clean")
    assert "HardSwish" not in operators(again.model.to_proto())
    assert again.report.before == {"Relu": 1, "Mul": 2, "Add": 1, "Clip": 1, "Neg": 1}
    part = surgeon.extract(model, inputs=["x"], outputs=["b"]).model
    assert "Clip" in operators(part.to_proto())
    small = surgeon.reduce(model, lambda path: "Clip" in operators(onnx.load(path)))
    assert [node.operator for node in small.nodes] == ["Clip"]
    assert surgeon.inspect(model).operators["Clip"] == 1
    assert surgeon.verify(tmp_path / "in.onnx", model).status == "equivalent"
    assert "HardSwish" in dict(surgeon.difference(tmp_path / "in.onnx", model).operators)


def test_both_runs_are_in_the_log_of_a_result_of_a_result(tmp_path: Path) -> None:
    model = surgeon.apply(rewritten(tmp_path / "in.onnx"), "nan-forms", "opset-17").model
    assert surgeon.inspect(model).made[0] == MEND


@pytest.mark.parametrize("recipe", [MEND, "pads-fold"], ids=["changed", "as it came"])
def test_a_result_comes_back_from_another_process_as_it_stands(tmp_path: Path, recipe: str) -> None:
    """Of weights outside the file only the folder goes with it."""
    proto = onnx.parser.parse_model(TEXT)
    proto.graph.node[-1].CopyFrom(onnx.helper.make_node("Add", ["b", "w"], ["y"]))
    weights = np.arange(400, dtype=np.float32).reshape(100, 4)
    proto.graph.initializer.append(onnx.numpy_helper.from_array(weights, "w"))
    path, other = tmp_path / "in" / "in.onnx", tmp_path / "other"
    path.parent.mkdir()
    other.mkdir()
    onnx.save(proto, path, save_as_external_data=True, location="w.data", size_threshold=0)
    result = surgeon.apply(path, recipe)
    again = pickle.loads(pickle.dumps(result))
    assert again.report == result.report
    again.model.save(other / "again.onnx")
    assert operators(onnx.load(other / "again.onnx")) == operators(result.model.to_proto())
    result.model.save(other / "out.onnx")
    assert (other / "again.onnx").read_bytes() == (other / "out.onnx").read_bytes()
    sealed = run("log", "--check", other / "again.onnx")
    assert sealed.exit_code == (0 if result.model.changed else 1), sealed.output


@pytest.mark.parametrize("form", [str, Path, onnx.load, lambda p: gs.import_onnx(onnx.load(p))])
def test_every_form_is_taken(tmp_path: Path, form: Callable[[Any], Any]) -> None:
    path = tmp_path / "in.onnx"
    onnx.save(onnx.parser.parse_model(TEXT), path)
    given = form(path)
    assert surgeon.inspect(given).operators["HardSwish"] == 1
    assert surgeon.apply(given, MEND).report.status == "equivalent"
    assert surgeon.verify(given, given).status == "equivalent"
    assert surgeon.difference(given, given).same


@pytest.mark.parametrize(
    "ask", [surgeon.inspect, lambda m: surgeon.verify(m, m), lambda m: surgeon.difference(m, m)]
)
def test_what_is_no_model_is_named(ask: Callable[[Any], Any]) -> None:
    with pytest.raises(surgeon.RecipeError, match="`int` is no model"):
        ask(7)


def test_a_result_goes_on_in_graphsurgeon_and_back(tmp_path: Path) -> None:
    graph = gs.import_onnx(rewritten(tmp_path / "in.onnx").to_proto())
    next(node for node in graph.nodes if node.op == "Neg").op = "Abs"
    result = surgeon.apply(graph, "clean")
    assert operators(result.model.to_proto()) == {"Relu", "Mul", "Add", "Clip", "Abs"}


@pytest.mark.slow
def test_the_text_of_what_a_call_gives(tmp_path: Path) -> None:
    path = tmp_path / "in.onnx"
    model = rewritten(path)
    result = surgeon.apply(path, MEND)
    assert surgeon.shown(result) == surgeon.shown(result.report)
    wrong = onnx.load(path)
    wrong.graph.node[-1].op_type = "Sin"
    texts = {
        "HardSwish": result,
        "equivalent: its output agrees": surgeon.verify(path, model),
        "3 nodes": surgeon.extract(path, outputs=["y"]),
        "1 node of 3": surgeon.reduce(path, lambda p: "HardSwish" in operators(onnx.load(p))),
        "It passes as it came": surgeon.adapt(path, lambda p: True),
        "2 nodes the same": surgeon.difference(path, model),
        "opset": surgeon.inspect(path),
        "= HardSwish (": surgeon.nodes(path),
        "repaired   in.onnx": next(surgeon.batch(tmp_path, tmp_path / "out", MEND)),
        "the models part at": surgeon.verify(path, wrong, bisect=True),
    }
    for phrase, found in texts.items():
        assert phrase in surgeon.shown(found)
    with pytest.raises(surgeon.RecipeError, match="`int` has no text"):
        surgeon.shown(7)


def test_bytes_are_told_how_to_become_a_model() -> None:
    with pytest.raises(surgeon.RecipeError, match="load_from_string"):
        surgeon.apply(onnx.parser.parse_model(TEXT).SerializeToString(), "clean")


def test_a_model_in_memory_does_not_say_where_its_weights_lie(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    weights = onnx.numpy_helper.from_array(np.ones((2, 2), np.float32), "w")
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 17]>
        g (float[N,2] x, float[2,2] w) => (float[N,2] y) { a = Identity (x) y = MatMul (a, w) }"""
    )
    del model.graph.input[1]
    model.graph.initializer.append(weights)
    path = tmp_path / "in.onnx"
    onnx.save(model, path, save_as_external_data=True, location="weights", size_threshold=0)
    given = onnx.load(path, load_external_data=False)
    with pytest.raises(surgeon.ModelError, match=r"weights lie in `weights`.*\n.*Give its path"):
        surgeon.apply(given, "clean")
    assert surgeon.apply(onnx.load(path), "clean").report.status == "equivalent"
    monkeypatch.chdir(tmp_path)  # where onnx and onnxruntime look
    assert surgeon.apply(given, "clean").report.status == "equivalent"


@pytest.mark.parametrize(
    ("options", "mend"),
    [
        ({"opset": "17"}, r"`opset` is a `str`.*\n.*without quotes"),
        ({"shape": {"x": "2,4"}}, r"is a text\n.*\[2, 4\]"),
    ],
)
def test_texts_of_the_command_line_are_no_options_of_python(
    options: dict[str, Any], mend: str
) -> None:
    with pytest.raises(surgeon.RecipeError, match=mend):
        surgeon.apply(onnx.parser.parse_model(TEXT), "clean", **options)


def test_the_memory_of_a_worker_is_a_number() -> None:
    given: Any = "8G"
    with (
        pytest.raises(surgeon.RecipeError, match="`memory` is a `str`"),
        surgeon.isolation(memory=given),
    ):
        pass
