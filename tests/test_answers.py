"""docs/json.md names every key that `--json` prints, and none besides."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import onnx
import pytest
from typer.testing import CliRunner

from surgeon import answers
from surgeon.answers import ANSWERS, PARTS, keys_of
from surgeon.cli import app

MODEL = """
    <ir_version: 8, opset_import: ["": 17]>
    g (float[N,4] x, float[N,4] z) => (float[N,4] y) <float[4,2] w = {1,2,3,4,5,6,7,8}> {
      s = Shape (x)
      a = Reshape (x, s)
      b = MatMul (a, w)
      c = Softplus (b)
      d = Concat <axis = 1> (c, c)
      y = Add (d, z)
    }
"""
FAILS = """\
import sys

import onnx

sys.exit(any(node.op_type == "Softplus" for node in onnx.load(sys.argv[1]).graph.node))
"""


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "in.onnx"
    onnx.save(onnx.parser.parse_model(MODEL), path)
    return path


def _run(*arguments: object) -> Any:
    result = CliRunner().invoke(app, [*map(str, arguments), "--json"])
    return json.loads(result.stdout)


def _keys(title: str) -> set[str]:
    (answer,) = (each for each in ANSWERS if each.title == f"surgeon {title}")
    return set(keys_of(answer))


def _check(model: Path) -> str:
    script = model.with_name("check.py")
    script.write_text(FAILS)
    return f"{shlex.quote(sys.executable)} {shlex.quote(str(script))} {{}}"


def test_apply_and_log(model: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.onnx"
    found = _run("apply", "clean", model, out)
    assert found.keys() == _keys("apply") - {"error"}
    assert found["changes"][0].keys() == _part("Rewrite")
    assert found["verdict"].keys() == _part("Verdict")
    assert found["verdict"]["comparisons"][0].keys() == _part("Comparison")
    assert found["verdict"]["comparisons"][0]["outputs"][0].keys() == _part("OutputCheck")
    (entry,) = _run("log", out)
    assert entry.keys() <= _keys("log")
    assert _run("log", out, "--check").keys() == _keys("log --check")
    assert _run("diff", model, out).keys() == _keys("diff")
    assert _run("verify", model, out).keys() == _keys("verify") - {"recorded"}
    assert _run("explain", "clean", model).keys() == _keys("explain")


def test_a_run_that_ends_with_an_error(model: Path, tmp_path: Path) -> None:
    found = _run("apply", "clean", model, tmp_path / "o.onnx", "--target", "no-such")
    assert found.keys() == {"error"}
    assert found["error"].keys() == {"what", "where", "mend", "exit_code"}
    assert _run("test", tmp_path / "none.yaml").keys() == {"error"}


def test_what_may_be_null_says_so() -> None:
    told = {a.title: {key: kind for key, (kind, _) in keys_of(a).items()} for a in ANSWERS}
    assert told["surgeon batch"]["same_as"] == "text or null"
    assert told["surgeon apply"]["verdict"] == "[Verdict](#verdict) or null"
    assert told["surgeon batch"]["outcome"] == "text"


@pytest.mark.slow
def test_inspect(model: Path) -> None:
    found = _run("inspect", model, "--target", "tensorrt-8.6")
    assert found.keys() == _keys("inspect") - {"division"}
    assert found["inputs"][0].keys() == _part("Value")
    assert found["largest"][0].keys() == _part("Weight")
    assert found["fit"].keys() == _part("Fit")
    (there,) = _run("inspect", model, "--node", "Softplus")
    assert there.keys() == _keys("inspect --node")
    assert there["inputs"][0].keys() == _part("Wire")


@pytest.mark.slow
def test_extract_reduce_and_adapt(model: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.onnx"
    assert _run("extract", model, out, "--to", "c").keys() == _keys("extract")
    found = _run("reduce", model, out, "--check", _check(model))
    assert found.keys() == _keys("reduce")
    assert found["nodes"][0].keys() == _part("PartNode")
    assert found["mends"][0].keys() == _part("Mend")
    found = _run("adapt", model, out, "--check", _check(model))
    assert found.keys() == (_keys("apply") | _keys("adapt")) - {"error"}
    assert found["rounds"][0].keys() == _part("Round")


@pytest.mark.slow
def test_batch_recipes_and_doctor(model: Path, tmp_path: Path) -> None:
    result = CliRunner().invoke(
        app, ["batch", "clean", str(model.parent), str(tmp_path / "made"), "--json"]
    )
    row, *_ = result.stdout.splitlines()
    assert json.loads(row).keys() == _keys("batch")
    complaint, *_ = _run("recipes", "which", "GridSample")
    assert complaint.keys() == _keys("recipes which")
    recipe, *_ = _run("recipes")
    assert recipe.keys() == _keys("recipes")
    assert _run("doctor").keys() == _keys("doctor")
    case, *_ = _run("test", "range-forms")
    assert case.keys() == _keys("test")


def _part(name: str) -> set[str]:
    return set(answers.attributes_of(PARTS[name]))


def test_every_link_leads_somewhere() -> None:
    text = answers.page()
    headings = {line.removeprefix("### ").lower() for line in _lines(text, "### ")}
    links = {piece.split(")")[0] for piece in text.split("](#")[1:]}
    assert links <= headings


def _lines(text: str, begin: str) -> Iterator[str]:
    return (line for line in text.splitlines() if line.startswith(begin))
