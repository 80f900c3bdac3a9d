"""Names that mean harm, in whatever a model names: no terminal and no path obeys them."""

import sys
from pathlib import Path
from typing import Any

import onnx
import pytest
from hostile_command import Runner, attempt, contents, rules, sane, save, surgeon
from hostile_models import network
from shares import every, some

__all__ = ["rules", "surgeon"]  # fixtures of `hostile_command`

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="no fork, and no limits, here")

NAMES = {
    "newlines": "a\nerror: b\r\nc",
    "escape codes": "\x1b]0;title\x07\x1b[2J\x9b31m",
    "a path": "../../../tmp/evil/\\..\\x",
    "1 MB": "n" * (1 << 20),
    "both ways": "\u202eevil\u202d\u2066",
    "NUL": "a\0b",
    "markup": "[red]x[/red] {x} %s `",
}


def renamed(name: str) -> onnx.ModelProto:
    """Everything that has a name is called so, with a number behind."""
    model = network()
    new = {"": ""}

    def other(old: str) -> str:
        return new.setdefault(old, f"{name}{len(new)}")

    graphs: list[Any] = [model.graph]
    model.producer_name = model.graph.name = model.doc_string = name
    while graphs:
        graph = graphs.pop()
        for value in (*graph.input, *graph.output, *graph.initializer):
            value.name = other(value.name)
        for node in graph.node:
            node.name = other(f"node {node.output[0]}")
            node.doc_string = name
            node.input[:] = [other(n) for n in node.input]
            node.output[:] = [other(n) for n in node.output]
            graphs += [a.g for a in node.attribute]
    shape = model.graph.input[0].type.tensor_type.shape
    shape.dim[0].dim_param = name
    return model


@pytest.mark.slow
@pytest.mark.parametrize("kind", list(NAMES)[:: every(3)])
def test_names(kind: str, surgeon: Runner, rules: Path, tmp_path: Path) -> None:
    path = save(tmp_path, renamed(NAMES[kind]))
    attempt(surgeon, rules, path, (0, 3, 4), options=("-v",))
    for arguments in (("inspect", path), ("explain", rules, path), ("verify", path, path)):
        sane(surgeon(*arguments), f"{arguments[0]} {kind}")
    assert set(contents(tmp_path)) == {"in.onnx", "double.yaml"}


@pytest.mark.slow
@pytest.mark.parametrize("kind", list(NAMES)[:: every(3)])
def test_names_of_operators(kind: str, surgeon: Runner, rules: Path, tmp_path: Path) -> None:
    model = network()
    for node in model.graph.node[2:4]:
        node.op_type, node.domain = NAMES[kind], NAMES[kind][:999]
    model.opset_import.add(domain=NAMES[kind][:999], version=1)
    path = save(tmp_path, model)
    attempt(surgeon, rules, path, (0, 3, 4), options=("-v",))
    for arguments in (("inspect", path), ("explain", some(rules, of=Path("aten")), path)):
        sane(surgeon(*arguments), f"{arguments[0]} {kind}")


@pytest.mark.slow
def test_strings_of_16_mb(surgeon: Runner, rules: Path, tmp_path: Path) -> None:
    model = network()
    model.doc_string = model.graph.node[0].doc_string = "d" * (1 << 24)
    model.metadata_props.add(key="k" * (1 << 20), value="v" * (1 << 24))
    attempt(surgeon, rules, save(tmp_path, model), (0,))
