"""Limits in a list of one's own: what nodes must be like that the runtime takes."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import onnx
import onnx.parser
import pytest
from command import run
from command_files import refused

import surgeon
from surgeon.errors import RecipeError
from surgeon.targets import Beyond, target

PAGE = Path(__file__).parent.parent / "docs" / "runtimes.md"

NPU = """\
title: My NPU
operators: [Conv, Softmax, If, ArgMax, Reshape, Resize, Gemm]
types: [float32, bool]
axes: 4
limits:
  - match: y = Conv <kernel_shape = @k> (x, *rest)
    where: [max(k) <= 3]
    why: kernels of 3 at most
  - match: y = Softmax <axis = @a> (x)
    where: [a == -1 or a == x.rank - 1]
"""

MODEL = """
<ir_version: 9, opset_import: ["": 17]>
g (float[N,2,16,16] x, float[2,2,3,3] v, float[2,2,5,5] w, bool c)
  => (float[N,2,16,16] y, int64[N,1,16,16] z) {
  a = Conv <pads = [1, 1, 1, 1]> (x, v)
  b = Conv <pads = [2, 2, 2, 2]> (a, w)
  s = Softmax <axis = 3> (b)
  y = If (c) <
    then_branch = t () => (float[N,2,16,16] t) { t = Softmax <axis = 1> (s) },
    else_branch = e () => (float[N,2,16,16] e) { e = Softmax <axis = -1> (s) }
  >
  z = ArgMax <axis = 1> (s)
}
"""


@pytest.fixture
def npu(tmp_path: Path) -> Path:
    path = tmp_path / "npu.yaml"
    path.write_text(NPU)
    return path


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "in.onnx"
    onnx.save(onnx.parser.parse_model(MODEL), path)
    return path


def found(model: Path | onnx.ModelProto, npu: Path) -> dict[str, Beyond]:
    fit = surgeon.inspect(model, target=npu).fit
    assert fit is not None
    return {f"{each.operator} {each.limit}": each for each in fit.beyond}


def test_nodes_beyond_limits_are_named_with_what_they_are(npu: Path, model: Path) -> None:
    told = found(model, npu)
    assert [*told] == [
        "Conv kernels of 3 at most",
        "Softmax a == -1 or a == x.rank - 1",
        "ArgMax of bool or float32",
    ]
    conv, softmax, most = told.values()
    assert conv.nodes == ("node 'b' (ai.onnx.Conv)",)  # of the weight's sizes, which are not stated
    assert "5" in conv.reason
    assert conv.location.endswith("npu.yaml:6:5")
    assert softmax.nodes == ("node 't' (ai.onnx.Softmax)",)  # in a body
    assert most.reason == "`z` is int64"


def test_a_condition_that_is_not_proven_is_no_yes(npu: Path) -> None:
    text = '<ir_version: 9, opset_import: ["": 17]> g (float x) => (float y) '
    given = onnx.parser.parse_model(text + "{ y = Softmax <axis = 1> (x) }")
    given.graph.input[0].type.tensor_type.ClearField("shape")
    given.graph.output[0].type.tensor_type.ClearField("shape")
    (one,) = found(given, npu).values()
    assert "not provable" in one.reason


def test_types_and_axes_hold_for_inputs_and_not_for_constants(npu: Path) -> None:
    text = """
    <ir_version: 9, opset_import: ["": 17]>
    g (double[2,2,3,4] x) => (double[2,2,1,3,4] y) <int64[5] to = {2, 2, 1, 3, 4}> {
      y = Reshape (x, to)
    }
    """
    told = found(onnx.parser.parse_model(text), npu)
    assert [(each.operator, each.reason) for each in told.values()] == [
        ("Reshape", "`y` is float64"),
        ("Reshape", "`y` has 5 axes"),
        ("input", "`x` is float64"),
    ]


def test_an_attribute_in_the_pattern_is_a_limit(tmp_path: Path) -> None:
    own = tmp_path / "npu.yaml"
    own.write_text(
        'operators: [Resize]\nlimits: [{match: "y = Resize <mode = \\"nearest\\"> (x, *rest)"}]\n'
    )
    for mode in ("nearest", "linear"):
        text = f"""
        <ir_version: 9, opset_import: ["": 17]>
        g (float[1,1,2,2] x) => (float[1,1,4,4] y) <float[4] s = {{1, 1, 2, 2}}> {{
          y = Resize <mode = "{mode}"> (x, , s)
        }}
        """
        told = found(onnx.parser.parse_model(text), own)
        assert bool(told) == (mode == "linear")


@pytest.mark.slow
def test_apply_tells_and_is_strict(npu: Path, model: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.onnx"
    done = run("apply", "clean", model, out, "--target", npu)
    assert done.exit_code == 0, done.output
    said = " ".join(done.output.split())
    assert "beyond a limit of" in said
    assert "1 Conv, kernels of 3 at most" in said
    strict = run("apply", "clean", model, tmp_path / "none.onnx", "--target", npu, "--strict")
    assert strict.exit_code != 0
    assert not (tmp_path / "none.onnx").exists()


def test_apply_looks_at_the_result(npu: Path) -> None:
    text = """
    <ir_version: 8, opset_import: ["": 17]>
    g (float[1,2,4,4] x) => (float[1,2,4,4] y) { y = Softmax <axis = 1> (x) }
    """
    given = onnx.parser.parse_model(text)
    npu.write_text(NPU.replace("operators: [", "operators: [Transpose, "))
    before = surgeon.apply(given, "clean", target=npu).report
    assert any("beyond a limit" in failure for failure in before.failures)
    after = surgeon.apply(given, "opset-13-forms", target=npu).report
    assert after.changes
    assert not after.failures


def test_inspect_prints_them(npu: Path, model: Path) -> None:
    shown = " ".join(run("inspect", model, "--target", npu).output.split())
    assert "beyond its limits: 1 Conv kernels of 3 at most: node 'b' (ai.onnx.Conv)" in shown
    plain = json.loads(run("inspect", model, "--target", npu, "--json").output)["fit"]
    assert plain["limits"] == 4
    assert {each["operator"] for each in plain["beyond"]} == {"Conv", "Softmax", "ArgMax"}
    npu.write_text("operators: [Conv, Softmax, If, ArgMax]\naxes: 4\n")
    assert "Nothing is beyond its limits." in run("inspect", model, "--target", npu).output


def test_the_exit_code_says_whether_a_model_fits(npu: Path, model: Path) -> None:
    assert run("inspect", model, "--target", npu, "--exit-code").exit_code == 3
    assert run("inspect", model, "--target", npu).exit_code == 0
    npu.write_text("operators: [Conv, Softmax, If, ArgMax]\naxes: 4\n")
    assert run("inspect", model, "--target", npu, "--exit-code", "--json").exit_code == 0
    npu.write_text("operators: [Conv, Softmax, If, ArgMax]\nopsets: [7, 13]\n")
    assert run("inspect", model, "--target", npu, "--exit-code").exit_code == 3
    refused(run("inspect", model, "--exit-code"), 2, "--exit-code")


@pytest.mark.slow
def test_recipes_that_bring_a_model_within_limits_are_found(npu: Path, tmp_path: Path) -> None:
    text = """
    <ir_version: 9, opset_import: ["": 17]>
    g (float[1,2,4,4] x) => (float[1,2,4,4] y) { y = Softmax <axis = 1> (x) }
    """
    source, out = tmp_path / "in.onnx", tmp_path / "out.onnx"
    onnx.save(onnx.parser.parse_model(text), source)
    npu.write_text(NPU.replace("operators: [", "operators: [Transpose, "))
    asks = f"{sys.executable} -m surgeon inspect {{}} --target {npu} --exit-code"
    done = run("adapt", source, out, "--check", asks)
    assert done.exit_code == 0, done.output
    assert found(source, npu)
    assert not found(out, npu)


@pytest.mark.parametrize(
    ("line", "place", "what"),
    [
        ("axes: none", "2:7", "no number of axes"),
        ("types: [float31]", "2:9", "no element type `float31`"),
        ("types: float32", "2:8", "no list of element types"),
        ("limits: Conv", "2:9", "no list of limits"),
        ("limits: [{match: y = Relu (x), when: 1}]", "2:32", "unknown key `when`"),
        ("limits: [{where: [x.rank == 4]}]", "2:10", "the key `match` is missing"),
        ("limits: [{match: y = Conf (x)}]", "2:18", "unknown operator `Conf`"),
        ("limits: [{match: y = Gelu (x)}]", "2:18", "the list does not have `Gelu`"),
        ("limits: [{match: y = Relu (x), where: [z.rank == 4]}]", "2:40", "unknown name `z`"),
        ("limit: []", "2:1", "unknown key `limit`"),
    ],
)
def test_errors_name_the_place(npu: Path, line: str, place: str, what: str) -> None:
    npu.write_text(f"operators: [Conv, Relu]\n{line}\n")
    with pytest.raises(RecipeError) as raised:
        target(npu)
    assert what in raised.value.what
    assert str(raised.value.where).endswith(f"npu.yaml:{place}")


def test_operators_of_other_domains_have_limits_too(tmp_path: Path) -> None:
    own = tmp_path / "npu.yaml"
    own.write_text(
        "operators: [com.chip.Act]\n"
        "limits: [{match: y = com.chip.Act <alpha = @a> (x), where: [a < 1]}]\n"
    )
    text = """
    <ir_version: 9, opset_import: ["": 17, "com.chip": 1]>
    g (float[2] x) => (float[2] z) {
      y = com.chip.Act <alpha = 0.5> (x)
      z = com.chip.Act <alpha = 2.0> (y)
    }
    """
    (one,) = found(onnx.parser.parse_model(text), own).values()
    assert one.nodes == ("node 'z' (com.chip.Act)",)


def test_other_limits_are_another_list(npu: Path) -> None:
    before = target(npu).told()
    npu.write_text(NPU.replace("<= 3", "<= 7"))
    assert target(npu).told() != before


def test_the_list_on_the_page_is_one(tmp_path: Path) -> None:
    (shown,) = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    own = tmp_path / "npu.yaml"
    own.write_text(shown)
    assert len(target(own).limits) == 3
