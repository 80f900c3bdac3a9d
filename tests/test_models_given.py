"""What is given as a model, wherever one is asked for: as it stands, and never as it once was."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
import onnx.parser
import onnx_graphsurgeon as gs
import pytest

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


def test_the_text_of_what_a_call_gives(tmp_path: Path) -> None:
    path = tmp_path / "in.onnx"
    model = rewritten(path)
    result = surgeon.apply(path, MEND)
    assert surgeon.shown(result) == surgeon.shown(result.report)
    texts = {
        "HardSwish": result,
        "equivalent: its output agrees": surgeon.verify(path, model),
        "3 nodes": surgeon.extract(path, outputs=["y"]),
        "1 node of 3": surgeon.reduce(path, lambda p: "HardSwish" in operators(onnx.load(p))),
        "It passes as it came": surgeon.adapt(path, lambda p: True),
        "2 nodes the same": surgeon.difference(path, model),
        "opset": surgeon.inspect(path),
    }
    for phrase, found in texts.items():
        assert phrase in surgeon.shown(found)
    with pytest.raises(surgeon.RecipeError, match="`int` has no text"):
        surgeon.shown(7)
