"""What is refused is kept with all that shows it, and runs without surgeon."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from truth import model_of
from typer.testing import CliRunner

import surgeon
from surgeon.authoring import rule
from surgeon.cli import app
from surgeon.errors import VerifyError
from surgeon.evidence import keep
from surgeon.match import Match
from surgeon.rewrite import Draft

RECIPE = """\
surgeon: 1
name: wrong
rules:
  - id: exp-for-sin
    why: It is wrong.
    exact: rounding
    match: y = {operator} (x)
    replace: y = Exp (x)
"""
ATEN = """<ir_version: 8, opset_import: ["": 17, "org.pytorch.aten": 1]>
g (float[b,t] x) => (float[b,t] y) {
  a = Neg (x) c = org.pytorch.aten.ATen <operator = "sigmoid"> (a) y = Neg (c) }"""


def recipe(folder: Path, operator: str = "Sin") -> Path:
    path = folder / "wrong.yaml"
    path.write_text(RECIPE.format(operator=operator))
    return path


def run(folder: Path) -> str:
    """What the script prints, in a Python that does not see surgeon."""
    command = [
        sys.executable,
        "-P",
        "-c",
        "import sys; sys.modules['surgeon'] = None; exec(open('run.py').read())",
    ]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout


def test_a_refused_rewrite_is_kept_and_runs_alone(tmp_path: Path) -> None:
    model = model_of("float[b,t] x", "a = Neg (x)\nc = Sin (a)\ny = Neg (c)", "y")
    kept = tmp_path / "evidence"
    report = surgeon.apply(model, recipe(tmp_path), keep_evidence=kept).report
    assert report.changes == ()
    (refusal,) = report.refusals
    assert (refusal.recipe, refusal.rule) == ("wrong", "exp-for-sin")
    assert refusal.node == "node 'c' (ai.onnx.Sin)"
    assert refusal.sizes == {"b": 2, "t": 3}
    assert (refusal.drawn, refusal.seed) == ("normal", 0)
    assert refusal.max_absolute > 0.1
    (folder,) = kept.iterdir()
    assert refusal.evidence == str(folder)
    assert sorted(p.name for p in folder.iterdir()) == [
        "README.md",
        "after.onnx",
        "before.onnx",
        "inputs.npz",
        "outputs.npz",
        "run.py",
    ]
    said = run(folder)
    assert "output 0: float32[2, 3] and float32[2, 3]" in said
    assert f"largest error {refusal.max_absolute:.6g}"[:20] in said
    with np.load(folder / "inputs.npz") as given, np.load(folder / "outputs.npz") as made:
        np.testing.assert_allclose(made["before.0"], np.sin(given["input.0"]), rtol=1e-5)
        np.testing.assert_allclose(made["after.0"], np.exp(given["input.0"]), rtol=1e-5)
    assert "wrong/exp-for-sin at node" in (folder / "README.md").read_text()


def test_the_script_shows_the_difference_and_not_what_both_have(tmp_path: Path) -> None:
    model = model_of("float[n] x", "y = Relu (x)", "y")
    most = np.float32(3.4e38)
    after = model_of(
        "float[n] x", f"z = Constant <value = float {{{most}}}> () y = Min (x, z)", "y"
    )
    feeds = {"x": np.array([np.nan, np.inf, 1], np.float32)}
    folder = keep(tmp_path / "e", "a rule", "a reason", model, after, feeds)
    assert folder is not None
    said = run(folder)
    assert "1 of 3 values differ" in said
    assert "largest error inf at [1]: inf and 3.39" in said


def test_outputs_of_pytorchs_own_operators_are_the_recorded_ones(tmp_path: Path) -> None:
    @rule("y = aten.sigmoid (x)", exact="rounding")
    def wrong(draft: Draft, match: Match) -> Any:
        return draft.op("Tanh", match.values["x"])

    model = onnx.parser.parse_model(ATEN)
    report = surgeon.apply(model, wrong, keep_evidence=tmp_path / "e").report
    assert len(report.refusals) == 1
    said = run(tmp_path / "e" / "001")
    assert "before.onnx does not run here" in said
    assert "recorded in outputs.npz (by surgeon's witness: no runtime takes it)" in said
    assert "largest error" in said


def test_one_folder_for_equal_pieces_and_none_where_nothing_is_refused(tmp_path: Path) -> None:
    body = "a = Sin (x)\nc = Sin (a)\ny = Neg (c)"
    model = model_of("float[b,t] x", body, "y")
    report = surgeon.apply(model, recipe(tmp_path), keep_evidence=tmp_path / "e").report
    assert [r.node.split("'")[1] for r in report.refusals] == ["a", "c"]
    assert {r.evidence for r in report.refusals} == {str(tmp_path / "e" / "001")}
    surgeon.apply(model, recipe(tmp_path, "Cos"), keep_evidence=tmp_path / "none")
    assert not (tmp_path / "none").exists()
    surgeon.apply(model, recipe(tmp_path), keep_evidence=tmp_path / "e")
    assert sorted(p.name for p in (tmp_path / "e").iterdir()) == ["001", "002"]


def blind(model: onnx.ModelProto, **options: Any) -> Any:
    """A rule that no trial can compare: the shape of its operand is not known."""

    @rule("y = Sin (x)", exact="rounding")
    def wrong(draft: Draft, match: Match) -> Any:
        return draft.op("Exp", match.values["x"])

    return surgeon.apply(model, wrong, **options)


def unknown() -> onnx.ModelProto:
    inputs = "float[b,t] x, int64[n] s"
    return model_of(
        inputs,
        "r = Reshape (x, s)\nc = Sin (r)\ny = Reshape (c, k)",
        "y",
        17,
        {"k": np.array([-1])},
    )


def test_a_whole_result_that_differs_is_kept(tmp_path: Path) -> None:
    model = unknown()
    with pytest.raises(VerifyError):
        blind(model, keep_evidence=tmp_path / "e", reference=recorded(tmp_path))
    said = run(tmp_path / "e" / "001")
    assert "output 0: float32[6] and float32[6]" in said
    text = (tmp_path / "e" / "001" / "README.md").read_text()
    assert "tried: the whole model, with" in text


def recorded(folder: Path) -> Path:
    x = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)
    np.savez(folder / "r.npz", x=x, s=np.array([3, 2]), y=np.sin(x).reshape(-1))
    return folder / "r.npz"


def test_names_of_strangers_are_names_of_no_file(tmp_path: Path) -> None:
    name = "../../etc/\x1b[31mx\n'\"; import os; os.remove('run.py') #"
    model = model_of("float[b,t] x", "y = Sin (x)", "y")
    model.graph.input[0].name = model.graph.node[0].input[0] = name
    other = onnx.ModelProto()
    other.CopyFrom(model)
    other.graph.node[0].op_type = "Exp"
    folder = keep(tmp_path / "e", name, name, model, other, {name: np.ones((1, 2), np.float32)})
    assert folder == tmp_path / "e" / "001"
    assert "largest error" in run(folder)
    assert (folder / "run.py").exists()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["e"]
    assert "\x1b" not in (folder / "README.md").read_text()


@pytest.mark.slow
def test_the_command_keeps_evidence_and_says_where(tmp_path: Path) -> None:
    source = tmp_path / "in.onnx"
    onnx.save(model_of("float[b,t] x", "c = Sin (x)\ny = Neg (c)", "y"), source)
    kept = tmp_path / "kept"
    arguments = ["apply", str(recipe(tmp_path)), str(source), str(tmp_path / "out.onnx")]
    said = CliRunner().invoke(app, [*arguments, "--keep-evidence", str(kept)])
    assert said.exit_code == 0, said.output
    text = " ".join(said.output.split())
    for part in ("Refused", "wrong/exp-for-sin", "differs from what it replaces", "'c'"):
        assert part in text
    assert "kept/001" in text.replace(" ", "").replace("\\", "/")
    plain = json.loads(CliRunner().invoke(app, [*arguments, "--json", "--dry-run"]).stdout)
    (refusal,) = plain["refusals"]
    assert refusal["rule"] == "exp-for-sin"
    assert refusal["evidence"] is None
    (kept / "file").write_text("")
    beneath = CliRunner().invoke(app, [*arguments, "--keep-evidence", str(kept / "file")])
    assert beneath.exit_code == 5
    assert "evidence cannot be kept there" in beneath.output
