"""A saved model says what made it, and equal runs give equal bytes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import onnx
import pytest
from typer.testing import CliRunner

import surgeon
from surgeon import provenance
from surgeon.cli import app
from surgeon.recipe import Recipe

TEXT = """\
surgeon: 1
name: {name}
rules:
  - id: one
    why: A test wants it.
    exact: bit
    match: |
      h = {op} (x)
      y = {op} (h)
    replace: y = {to} (x)
"""


def run(*arguments: object) -> Any:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def model(ir: int = 8) -> onnx.ModelProto:
    return onnx.parser.parse_model(
        f'<ir_version: {ir}, opset_import: ["": 17]> g (float[n,4] x) => (float[n,4] y)'
        "{ a = Neg(x) b = Neg(a) c = Abs(b) d = Abs(c) y = Sin(d) }"
    )


@pytest.fixture
def net(tmp_path: Path) -> Path:
    path = tmp_path / "net.onnx"
    path.write_bytes(model().SerializeToString())
    return path


def recipe(folder: Path, op: str, to: str) -> Path:
    path = folder / f"{op.lower()}.yaml"
    path.write_text(TEXT.format(name=op.lower(), op=op, to=to))
    return path


def test_the_log_names_version_recipes_rules_and_assumptions(net: Path, tmp_path: Path) -> None:
    path = recipe(tmp_path, "Neg", "Identity")
    out = tmp_path / "out.onnx"
    assert run("apply", path, net, out, "--shape", "x=3,4").exit_code == 0
    (made,) = json.loads(run("log", out, "--json").output)
    assert made["surgeon"] == provenance.version()
    assert made["recipes"] == [{"name": "neg", "sha256": Recipe.load(str(path)).digest}]
    assert made["rules"] == {"neg/one": 1}
    assert made["assumptions"] == ["x=[3, 4]"]
    assert made["replaced"] == {"neg/one": ["node 'b' (ai.onnx.Neg)"]}
    said = run("log", out).output
    assert "neg/one  1x" in said
    assert f"sha256 {made['recipes'][0]['sha256']}" in said.replace("\n", "")


@pytest.mark.slow
def test_a_model_mended_twice_keeps_both_in_order(net: Path, tmp_path: Path) -> None:
    first, second = tmp_path / "1.onnx", tmp_path / "2.onnx"
    assert run("apply", recipe(tmp_path, "Neg", "Identity"), net, first).exit_code == 0
    assert run("apply", recipe(tmp_path, "Abs", "Abs"), first, second).exit_code == 0
    runs = json.loads(run("log", second, "--json").output)
    assert [list(each["rules"]) for each in runs] == [["neg/one"], ["abs/one"]]
    said = run("log", second).output
    assert said.index("neg/one") < said.index("abs/one")


def test_a_model_without_a_log_says_so(net: Path) -> None:
    assert "No log: surgeon did not make this model" in run("log", net).output
    assert json.loads(run("log", net, "--json").output) == []


@pytest.mark.parametrize("ir", [9, 10])
def test_nodes_say_it_themselves_where_they_can(ir: int, tmp_path: Path) -> None:
    made = surgeon.apply(model(ir), recipe(tmp_path, "Abs", "Abs")).model.to_proto()
    (entry,) = provenance.history(made.metadata_props) or ()
    told = [{e.key: e.value for e in n.metadata_props} for n in made.graph.node if n.metadata_props]
    if ir == 10:
        assert told == [{"surgeon.rule": "abs/one", "surgeon.from": "d, c"}]
        assert "replaced" not in entry
    else:
        assert not told
        assert list(entry["replaced"]) == ["abs/one"]


@pytest.mark.slow
@pytest.mark.parametrize("text", ["[" * 100_000, '{"a": 1}', "nothing", "[1]"])
def test_a_log_of_somebody_else_is_kept_aside(text: str, net: Path, tmp_path: Path) -> None:
    proto = onnx.load(net)
    proto.metadata_props.add(key=provenance.KEY, value=text)
    net.write_bytes(proto.SerializeToString())
    result = run("log", net)
    assert result.exit_code == 4
    assert "`surgeon.log` is no log of surgeon" in result.output
    out = tmp_path / "out.onnx"
    assert run("apply", recipe(tmp_path, "Neg", "Identity"), net, out).exit_code == 0
    props = {each.key: each.value for each in onnx.load(out).metadata_props}
    assert props[provenance.UNREAD] == text
    assert len(json.loads(props[provenance.KEY])) == 1


def test_a_log_of_escape_codes_reaches_no_terminal(net: Path) -> None:
    evil = "\x1b[2J\x9b31m\u202e"
    entry = {"surgeon": evil, "date": evil, "rules": {evil: evil}, "recipes": [{"name": evil}, 1]}
    proto = onnx.load(net)
    proto.metadata_props.add(key=provenance.KEY, value=json.dumps([entry, {"recipes": evil}]))
    net.write_bytes(proto.SerializeToString())
    for options in ((), ("--json",)):
        said = run("log", net, *options)
        assert said.exit_code == 0
        assert not set(evil) & set(said.output) - set("[2J31m")


@pytest.mark.slow
def test_equal_runs_give_equal_bytes(samples: Path, tmp_path: Path) -> None:
    """In processes of different hash seeds, and at different times."""
    found = set()
    for seed in ("0", "1", "2"):
        out = tmp_path / f"{seed}.onnx"
        command = [
            sys.executable,
            "-m",
            "surgeon",
            "apply",
            "dymn",
            "--no-verify",
            "--reproducible",
        ]
        command += [str(samples / "dymn_tiny" / "dymn_tiny.onnx"), str(out)]
        subprocess.run(
            command, check=True, env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True
        )
        found.add(out.read_bytes())
    assert len(found) == 1


@pytest.mark.slow
def test_only_the_date_differs(net: Path, tmp_path: Path) -> None:
    path, out = recipe(tmp_path, "Neg", "Identity"), tmp_path / "out.onnx"
    for options, dated in (((), True), (("--reproducible",), False)):
        assert run("apply", path, net, out, *options).exit_code == 0
        (made,) = json.loads(run("log", out, "--json").output)
        assert ("date" in made) is dated
