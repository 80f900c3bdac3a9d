"""The commands beside `apply`: what each prints, and its exit code."""

import json
from pathlib import Path

import pytest
from command import run
from command_files import ONE_RULE, net, recipe, refused, save

__all__ = ["net"]  # a fixture of `command_files`


@pytest.mark.slow
def test_verify_tells_equal_from_different(net: Path, tmp_path: Path) -> None:
    body = "net (float[n,4] x) => (float[n,4] y) {c = Sin(x) y = Add(x, c)}"
    same = save(tmp_path / "same.onnx", body)
    other = save(tmp_path / "other.onnx", body.replace("Add", "Sub"))
    result = run("verify", net, same)
    assert result.exit_code == 0, result.output
    assert "equivalent: " in result.output
    worse = run("verify", net, other)
    assert worse.exit_code == 3, worse.output
    assert "differs: " in worse.output
    plain = run("verify", net, other, "--json")
    assert plain.exit_code == 3
    assert json.loads(plain.output)["status"] == "differs"


@pytest.mark.slow
def test_verify_takes_a_tolerance_and_operators_that_only_run(net: Path, tmp_path: Path) -> None:
    near = save(
        tmp_path / "near.onnx",
        "net (float[n,4] x) => (float[n,4] y) <float k = {1.01}> "
        "{c = Sin(x) d = Mul(c, k) y = Add(x, d)}",
    )
    assert run("verify", net, near).exit_code == 3
    quiet = run("verify", net, near, "-q")
    assert (quiet.stdout, quiet.exit_code) == ("", 3)
    assert quiet.stderr.startswith("differs: ")
    assert run("verify", net, near, "--tolerance", "0.1").exit_code == 0
    own = recipe(tmp_path, "Sin (x)", "my.Sine (x)").read_text()
    (tmp_path / "own.yaml").write_text(own.replace("rules:", "custom: [my.Sine]\nrules:"))
    out = tmp_path / "own.onnx"
    assert run("apply", tmp_path / "own.yaml", net, out).exit_code == 0
    assert run("verify", net, out).exit_code == 3
    told = run("verify", net, out, "--custom", "my.Sine", "--json")
    assert (json.loads(told.stdout)["status"], told.exit_code) == ("runs", 0)


def test_verify_takes_a_shape(net: Path) -> None:
    result = run("verify", net, net, "--shape", "x=7,4", "--json")
    assert result.exit_code == 0, result.output
    assert len(json.loads(result.output)["comparisons"]) > 0
    refused(run("verify", net, net, "--shape", "z=7,4"), 2, "the model has no input `z`")


def test_explain_gives_the_reason_and_the_place(net: Path, tmp_path: Path) -> None:
    path = tmp_path / "r.yaml"
    text = ONE_RULE.format(id="a-rule", exact="bit", match="Neg (x)", replace="Relu (x)")
    path.write_text(text + "    where:\n      - x.shape[0] == 3\n")
    result = run("explain", path, net)
    assert result.exit_code == 0, result.output
    assert f"{path}:10:9" in result.output
    assert "2 x  one/a-rule" in result.output
    plain = json.loads(run("explain", path, net, "--json").output)
    assert {miss["location"] for miss in plain["misses"]} == {f"{path}:10:9"}


def test_explain_of_one_node(net: Path, double: Path) -> None:
    result = run("explain", double, net, "--node", "a")
    assert result.exit_code == 0, result.output
    assert "node 'a' (ai.onnx.Neg)" in result.output
    refused(run("explain", double, net, "--node", "nobody"), 2, "no node `nobody`")


def test_inspect_in_words_and_for_scripts(samples: Path) -> None:
    path = samples / "dymn_tiny" / "dymn_tiny.onnx"
    assert "aten.adaptive_avg_pool2d" in run("inspect", path).output
    plain = json.loads(run("inspect", path, "--json").output)
    assert plain["operators"]["aten._convolution"] == 8
    assert plain["dynamic"] == ["batch", "time"]


@pytest.mark.slow
def test_recipes_are_listed_shown_and_described() -> None:
    assert "dymn" in run("recipes").output
    assert run("recipes").output == run("recipes", "list").output
    names = [each["name"] for each in json.loads(run("recipes", "list", "--json").output)]
    assert "adaptive-pool" in names
    assert "adaptive-avg-pool2d-to-one" in run("recipes", "show", "adaptive-pool").output
    shown = run("recipes", "show", "group-norm-decompose").output
    assert "  group-norm-decompose.yaml:" in shown
    assert "\u2026" not in shown  # no place is cut short
    assert run("recipes", "show", "dymn", "--source").output.startswith("surgeon: 1")
    refused(run("recipes", "show", "adaptive-pol"), 2, "Did you mean `adaptive-pool`?")
    schema = json.loads(run("recipes", "schema").output)
    assert "rules" in schema["properties"]
    assert json.loads(run("recipes", "--schema").output) == schema


def test_doctor_says_what_is_here() -> None:
    result = run("doctor")
    assert "onnxruntime" in result.output
    plain = json.loads(run("doctor", "--json").output)
    assert result.exit_code == (0 if plain["sound"] else 1)


CASES = """\
cases:
  - case: turns twice
    fires: {{double-neg: {times}}}
    before: |
      <ir_version: 8, opset_import: ["": 17]>
      g (float[n,4] x) => (float[n,4] y) {{ a = Neg (x)  b = Neg (a)  y = Sin (b) }}
    after: |
      <ir_version: 8, opset_import: ["": 17]>
      g (float[n,4] x) => (float[n,4] y) {{ y = Sin (x) }}
  - case: turns once
    refuses: {{rule: double-neg, because: "is not computed"}}
    before: |
      <ir_version: 8, opset_import: ["": 17]>
      g (float[n,4] x) => (float[n,4] y) {{ a = Neg (x)  y = Sin (a) }}
"""


@pytest.mark.slow
def test_test_runs_the_cases_beside_a_recipe(double: Path, tmp_path: Path) -> None:
    cases = tmp_path / "double.cases.yaml"
    cases.write_text(CASES.format(times=1))
    result = run("test", double)
    assert result.exit_code == 0, result.output
    assert result.output.splitlines()[-1] == "2 cases hold"
    cases.write_text(CASES.format(times=2))
    worse = run("test", double)
    assert worse.exit_code == 1
    assert "fails  double: turns twice" in worse.output
    assert f"{cases}:2:" in worse.output
    assert "Missing: `double-neg` fires 1 times, not 2" in worse.output
    assert worse.output.splitlines()[-1] == "1 case holds, 1 fails"
    plain = json.loads(run("test", double, "--json").output)
    assert any("Missing" in problem for each in plain for problem in each["problems"])


def test_test_of_what_is_not_there(tmp_path: Path) -> None:
    refused(run("test", tmp_path / "none.yaml"), 2)
