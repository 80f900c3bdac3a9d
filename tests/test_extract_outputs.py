"""`extract --outputs-of`: what nodes of operators give, as outputs beside the others."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from command import run

import surgeon
from surgeon.extraction import Extraction
from surgeon.render import checks
from surgeon.verify import Comparison, OutputCheck, Verdict

NET = """
<ir_version: 8, opset_import: ["": 17]>
g (float[n, 4, h, w] x, float[n, 4] z) => (float[n, 4] y, float[n, 4] q)
<float[4, 4, 1, 1] k = {1, 0, 0, 2, 0, 1, 0, 0, 3, 0, 1, 0, 0, 0, 0, 1}> {
  a = Conv <kernel_shape = [1, 1], strides = [2, 2]> (x, k)
  b = Relu (a)
  c = GlobalAveragePool (b)
  d = Flatten (c)
  y = Add (d, z)
  q = Mul (d, d)
}
"""
NAMED_SO = """
<ir_version: 8, opset_import: ["": 17]>
g (float[2] all) => (float[2] y) { Conv = Relu (all)  y = Neg (Conv) }
"""
LISTS = """
<ir_version: 8, opset_import: ["": 17, "my": 1]>
g (float[2] x) => (float[2] y) <int64 i = {0}> {
  c = Constant <value = float {3}> ()
  list = SequenceConstruct (x, x)
  t = SequenceAt (list, i)
  y = Mul (t, c)
  foo = my.Foo (x)
  dead = Exp (foo)
}
"""
BODIES = """
<ir_version: 8, opset_import: ["": 17]>
g (float[2] x, bool go) => (float[2] y) {
  h = Sin (x)
  y = If (go) <
    then_branch = t () => (float[2] p) { p = Cos (h) },
    else_branch = e () => (float[2] r) { r = Neg (h) }
  >
}
"""


def parsed(text: str) -> onnx.ModelProto:
    return onnx.parser.parse_model(text)


def names(found: Extraction) -> list[str]:
    return [value.name for value in found.outputs]


def test_every_value_is_given_beside_the_outputs() -> None:
    found = surgeon.extract(parsed(NET), outputs_of="*")
    assert names(found) == ["y", "q", "a", "b", "c", "d"]
    assert found.outputs[2].shape == ("n", 4, "(h + 1)//2", "(w + 1)//2")
    assert found.verdict is not None
    assert found.verdict.status == "equivalent"
    session = ort.InferenceSession(
        found.model.to_proto().SerializeToString(), providers=["CPUExecutionProvider"]
    )
    rng = np.random.default_rng(0)
    x, z = rng.standard_normal((3, 4, 5, 7), np.float32), np.ones((3, 4), np.float32)
    given = dict(zip(names(found), session.run(None, {"x": x, "z": z}), strict=True))
    np.testing.assert_array_equal(given["b"], np.maximum(given["a"], 0))
    np.testing.assert_allclose(given["q"], given["d"] ** 2)


def test_those_of_operators_are_given() -> None:
    assert names(surgeon.extract(parsed(NET), outputs_of=["Conv", "Global*"])) == [*"yqac"]
    assert names(surgeon.extract(parsed(NET), outputs_of=["Mul"])) == ["y", "q"], "it is one"


def test_of_a_part_they_are_those_of_the_part() -> None:
    found = surgeon.extract(parsed(NET), inputs=["b"], outputs=["flat=d"], outputs_of="*")
    assert names(found) == ["flat", "c"]
    assert found.nodes == 2


def test_a_value_by_the_name_of_an_operator_is_none() -> None:
    assert names(surgeon.extract(parsed(NAMED_SO), outputs=["Conv"])) == ["Conv"]
    assert names(surgeon.extract(parsed(NAMED_SO), outputs_of="Neg")) == ["y"]
    with pytest.raises(surgeon.RecipeError, match="no node of the part is a `Conv`"):
        surgeon.extract(parsed(NAMED_SO), outputs_of="Conv")
    with pytest.raises(surgeon.RecipeError, match="no node of the part is a `all`"):
        surgeon.extract(parsed(NAMED_SO), outputs_of="all")


def test_what_is_no_tensor_or_of_unknown_type_is_told_and_not_given() -> None:
    found = surgeon.extract(parsed(LISTS), outputs_of="*", verify=False)
    assert names(found) == ["y", "t"]
    assert found.not_given == ("list", "foo", "dead")
    onnx.checker.check_model(found.model.to_proto(), full_check=True)
    constant = surgeon.extract(parsed(LISTS), outputs_of="Constant")
    assert names(constant) == ["y", "c"]


def test_values_of_bodies_are_none_of_the_main_graphs() -> None:
    found = surgeon.extract(parsed(BODIES), outputs_of="*")
    assert names(found) == ["y", "h"]
    with pytest.raises(surgeon.RecipeError, match="no node of the part is a `Cos`"):
        surgeon.extract(parsed(BODIES), outputs_of="Cos")


@pytest.mark.slow
def test_the_command(tmp_path: Path) -> None:
    source, target = tmp_path / "in.onnx", tmp_path / "all.onnx"
    onnx.save(parsed(NET), source)
    done = run("extract", source, target, "--outputs-of", "Conv", "--outputs-of", "Relu", "--json")
    assert done.exit_code == 0, done.output
    told = json.loads(done.output)
    assert [value["name"] for value in told["outputs"]] == ["y", "q", "a", "b"]
    assert told["not_given"] == []
    said = run("log", target).output
    assert "cut outputs of" in said
    assert "cut to" in said
    again = run("extract", target, tmp_path / "again.onnx", "--outputs-of", "*", "--json")
    assert [v["name"] for v in json.loads(again.output)["outputs"]] == [*"yqabcd"]
    done = run("extract", source, target, "--outputs-of", "Cnv")
    assert done.exit_code == 2
    assert "Did you mean `Conv`?" in done.output
    assert "--outputs-of" in done.output
    onnx.save(parsed(LISTS), source)
    said = run("extract", source, target, "--outputs-of", "*", "--no-verify").output
    assert "list, foo and dead: not given" in said


def test_of_very_many_outputs_those_that_differ_are_shown_first() -> None:
    from rich.console import Console

    def check(number: int) -> OutputCheck:
        fault = "its shape differs" if number >= 200 else None
        return OutputCheck(f"v{number}", "float32", 0.0, 0.0, 0.0, 1e-4, not fault, fault=fault)

    compared = Comparison({}, 0, "onnxruntime", tuple(map(check, range(202))))
    console = Console(width=100, record=True, file=io.StringIO())
    console.print(checks.verdict(Verdict("differs", "", comparisons=(compared,))))
    lines = [line.split() for line in console.export_text().splitlines() if " v" in line]
    assert [line[0] for line in lines[:3]] == ["v200", "v201", "v0"]
    assert len(lines) == checks.MOST_OUTPUTS
