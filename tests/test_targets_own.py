"""`--target FILE.yaml`: a list of operators of one's own."""

from __future__ import annotations

import json
from pathlib import Path

import onnx
import onnx.parser
import pytest
from command import run

import surgeon
from surgeon.errors import RecipeError
from surgeon.targets import target

TAKEN = "Div, Exp, Log, Mul, Add, Sub, Max, Min, Clip, ReduceMax, ReduceSum, my.Fused"


@pytest.fixture
def own(tmp_path: Path) -> Path:
    path = tmp_path / "npu.yaml"
    path.write_text(
        f"title: My NPU 2.1\nopsets: [7, 13]\noperators: [{TAKEN}]\nlimited:\n  - Relu\n"
    )
    return path


@pytest.fixture
def model(tmp_path: Path) -> Path:
    head = '<ir_version: 9, opset_import: ["": 18]> g (float[N,4] x) => (float[N,4] y)'
    path = tmp_path / "in.onnx"
    text = f"{head} {{ r = Relu (x) s = HardSwish (r) y = LogSoftmax (s) }}"
    onnx.save(onnx.parser.parse_model(text), path)
    return path


def test_a_list_is_read(own: Path) -> None:
    found = target(str(own))
    assert (found.title, found.opsets, set(found.partly)) == ("My NPU 2.1", (7, 13), {"Relu"})
    assert found.taken == set(TAKEN.split(", "))


@pytest.mark.slow
def test_a_model_is_brought_to_it(own: Path, model: Path, tmp_path: Path) -> None:
    fit = json.loads(run("inspect", model, "--target", own, "--json").output)["fit"]
    assert (fit["opset"], fit["nearest"], fit["partly"]) == (18, 13, ["Relu"])
    assert {each["operator"] for each in fit["refused"]} == {"HardSwish", "LogSoftmax"}
    assert fit["spelled"] == ["HardSwish", "LogSoftmax"]
    out = tmp_path / "out.onnx"
    done = run("apply", "clean", model, out, "--target", own, "--strict")
    assert done.exit_code == 0, done.output
    made = onnx.load(out)
    assert made.opset_import[0].version == 13
    assert {node.op_type for node in made.graph.node} <= {*TAKEN.split(", "), "Relu"}


def test_what_is_left_is_told(own: Path, model: Path) -> None:
    own.write_text("operators: [Relu, HardSwish]\n")
    report = surgeon.apply(model, "clean", target=str(own)).report
    assert report.failures == (f"not on the list of {own}: `LogSoftmax`",)


@pytest.mark.slow
def test_a_batch_is_done_again_where_the_list_is_another(
    own: Path, model: Path, tmp_path: Path
) -> None:
    models = tmp_path / "models"
    models.mkdir()
    model.rename(models / "in.onnx")
    fresh = []
    for operators in (TAKEN, TAKEN, f"{TAKEN}, LogSoftmax"):
        own.write_text(f"operators: [{operators}, Relu]\n")
        (row,) = surgeon.batch(models, tmp_path / "mended", "clean", target=str(own))
        fresh.append(row.fresh)
    assert fresh == [True, False, True]
    nodes = onnx.load(tmp_path / "mended" / "in.onnx").graph.node
    assert "LogSoftmax" in {node.op_type for node in nodes}


@pytest.mark.parametrize(
    ("text", "place", "what", "mend"),
    [
        ("operators: [Conv, Relo]", "1:19", "ONNX has no operator `Relo`", "`Relu`"),
        ("operators: [my.Op, Zzyzx]", "1:20", "no operator `Zzyzx`", "com.example.Fused"),
        ("operator: [Conv]", "1:1", "unknown key `operator`", "`operators`"),
        ("", "1:1", "it is empty", "`operators: ["),
        ("title: x", "1:1", "`operators` is missing", "Write"),
        ("operators: Conv", "1:12", "no list of operators", "Write"),
        ("operators: [1]", "1:13", "no operator's name", "Write"),
        ("- Conv", "1:1", "no list of what a runtime takes", "Write"),
        ("operators: []", "1:12", "it takes no operator at all", "Write"),
        ("operators: [Conv]\nopsets: [13, 7]", "2:9", "no pair of opsets", "[7, 13]"),
        ("operators: [Conv]\nopsets: 13", "2:9", "no pair of opsets", "[7, 13]"),
    ],
)
def test_a_wrong_list_says_where(
    text: str, place: str, what: str, mend: str, own: Path, model: Path
) -> None:
    own.write_text(text)
    with pytest.raises(RecipeError) as caught:
        surgeon.apply(model, "clean", target=str(own))
    assert what in caught.value.what
    assert str(caught.value.where) == f"{own}:{place}"
    assert mend in caught.value.mend
    assert run("inspect", model, "--target", own).exit_code == 2


def test_a_list_that_there_is_not(model: Path, tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match="there is no such file"):
        surgeon.inspect(model, target=str(tmp_path / "none.yaml"))


ERFS = """<ir_version: 8, opset_import: ["": 17]>
g (float[2,4] x) => (float[2,4] y) <int64[2] two = {2, 4}, int64[2] any = {2, -1}> {
  fixed = Equal (two, any)
  sizes = Where (fixed, two, any)
  i = Identity (x)
  e = Erf (i)
  y = Reshape (e, sizes)
}"""


def test_what_any_recipe_folds_is_not_cut_off(own: Path, tmp_path: Path) -> None:
    own.write_text("operators: [Reshape, Erf]\n")
    path = tmp_path / "in.onnx"
    onnx.save(onnx.parser.parse_model(ERFS), path)
    fit = surgeon.inspect(path, target=str(own)).fit
    assert fit is not None
    assert (set(fit.folded), fit.lasting) == ({"Equal", "Where", "Identity"}, ())
    assert "any recipe folds it" in run("inspect", path, "--target", own).output
    result = surgeon.apply(path, "clean", target=str(own))
    assert result.report.failures == ()


def test_rules_that_wait_to_be_allowed_are_named(own: Path, tmp_path: Path) -> None:
    own.write_text("operators: [Add, Sub, Mul, Div, Tanh, Exp, Clip, Sqrt, Reshape]\n")
    path = tmp_path / "in.onnx"
    onnx.save(onnx.parser.parse_model(ERFS), path)
    said = run("inspect", path, "--target", own).output
    assert "--allow approximate also for Erf" in " ".join(said.split())
    (left,) = surgeon.apply(path, "clean", target=str(own)).report.failures
    assert (
        left == f"not on the list of {own}: `Erf`; rules for `Erf` wait for `--allow approximate`"
    )
    allowed = surgeon.apply(path, "clean", target=str(own), allow="approximate").report
    assert allowed.failures == ()


def test_what_a_run_for_the_target_left_is_not_offered_to_another(tmp_path: Path) -> None:
    own = tmp_path / "npu.yaml"
    own.write_text("operators: [Relu, Concat, Gather, Reshape]\nopsets: [7, 13]\n")
    path, out = tmp_path / "split.onnx", tmp_path / "out.onnx"
    body = "net (float[4,5] x) => (float[2,5] y, float[2,5] z) {r = Relu (x)  y, z = Split (r)}"
    onnx.save(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 13]> {body}'), path)
    assert surgeon.inspect(path, target=str(own)).fit.spelled == ("Split",)
    assert run("apply", "clean", path, out, "--target", own).exit_code == 0
    fit = surgeon.inspect(out, target=str(own)).fit
    assert [each.operator for each in fit.refused] == ["Split"]
    assert (fit.spelled, fit.command) == ((), ())


def test_an_operator_of_a_domain_of_one_s_own_is_on_the_list_by_its_name(tmp_path: Path) -> None:
    text = '<ir_version: 8, opset_import: ["": 17, "com.chip": 1]>'
    text += " g (float[N] x) => (float[N] y) { y = com.chip.HSwish (x) }"
    onnx.save(onnx.parser.parse_model(text), tmp_path / "in.onnx")
    (tmp_path / "npu.yaml").write_text("operators: [com.chip.HSwish]\n")
    result = run("inspect", tmp_path / "in.onnx", "--target", tmp_path / "npu.yaml")
    assert "Every operator is on its list" in result.output
