"""Values, nodes and sizes under names that somebody gives them: `rename`, as step and option."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import onnx
import pytest
from command import run
from command_files import refused
from onnx import parser
from truth import parse

import surgeon

BRANCHED = """
<ir_version: 8, opset_import: ["": 13]>
g (float[N,4] x, bool c) => (float[N,4] y, float[N,4] z) {
  ["a"] h = Relu (x)
  y = If (c) <then_branch = t () => (float[N,4] p) { p = Neg (h) },
              else_branch = e () => (float[N,4] q) { q = Add (h, x) }>
  z = Neg (h)
}
"""


def _renamed(names: str, **told: Any) -> surgeon.Result:
    text = f"surgeon: 1\nname: own\nallow: [contract]\nsteps:\n  - rename: {names}\n"
    return surgeon.apply(parser.parse_model(BRANCHED), surgeon.Recipe.parse(text), **told)


def test_whatever_is_named_is_called_otherwise() -> None:
    result = _renamed("{x: image, h: features, a: first, N: batch, z: y, y: z}")
    after = result.model.to_proto()
    assert result.report.verdict.status == "equivalent"
    assert [value.name for value in (*after.graph.input, *after.graph.output)] == [
        *("image", "c", "z", "y")
    ]
    dims = [value.type.tensor_type.shape.dim[0].dim_param for value in after.graph.output]
    assert dims == ["batch", "batch"]
    node = after.graph.node[0]
    assert (node.name, [*node.input], [*node.output]) == ("first", ["image"], ["features"])
    contract = result.report.changes[0].contract
    assert contract is not None
    assert "`x` is called `image`" in contract


REFUSED_NAMES = {
    "{xx: y2}": "nothing is called `xx`",
    "{x: h}": "`h` is a name already",
    "{x: a1, y: a1}": "two get one name",
    '{N: "4"}': "no name of a size",
}


@pytest.mark.parametrize("names", REFUSED_NAMES)
def test_names_that_cannot_be_given(names: str) -> None:
    result = _renamed(names)
    assert REFUSED_NAMES[names] in result.report.failures[0]
    assert not result.model.changed


def test_a_name_by_which_a_shape_was_told_stays() -> None:
    result = _renamed("{x: image}", shape={"x": [2, 4]})
    assert "was told by that name" in result.report.failures[0]


ASKED = "g (float[N,2] x) => (float[N,2] y) { h = Relu (x) y = Neg (h) }"


def test_the_option_of_the_command_and_of_apply(tmp_path: Path) -> None:
    path, out = tmp_path / "in.onnx", tmp_path / "out.onnx"
    onnx.save(parse(ASKED), path)
    told = ["--rename", "x=a=b", "--rename", "N=batch", "--rename", "h=hidden"]
    wrong = run("apply", "no-ops", path, out, *told)
    refused(wrong, 2, "nothing is called `x=a`")
    told[1] = "x=image"
    done = run("apply", "no-ops", path, out, *told, "--require", "equivalent")
    assert done.exit_code == 0, done.output
    made = onnx.load(out)
    assert [value.name for value in made.graph.input] == ["image"]
    assert made.graph.input[0].type.tensor_type.shape.dim[0].dim_param == "batch"
    assert made.graph.node[0].output == ["hidden"]
    (log,) = [p.value for p in made.metadata_props if "log" in p.key]
    assert json.loads(log)[-1]["options"] == {"rename": "x=image, N=batch, h=hidden"}
    with pytest.raises(surgeon.RecipeError, match=r"^rename: `y` is a name already"):
        surgeon.apply(path, "no-ops", rename={"x": "y"})
    with pytest.raises(surgeon.RecipeError, match="is to be called 3, which is no name"):
        surgeon.apply(path, "no-ops", rename={"x": 3})  # type: ignore[dict-item]


@pytest.mark.parametrize(
    ("told", "said"),
    [
        (["x"], "`x` says no two names"),
        (["x="], "`x=` says no two names"),
        (["x=a", "x=b"], "`x` gets two names"),
        (["x=a", "y=a"], "two get one name"),
        (["xx=a"], "Did you mean `x`?"),
    ],
)
def test_what_says_no_names(told: list[str], said: str, tmp_path: Path) -> None:
    path = tmp_path / "in.onnx"
    onnx.save(parse(ASKED), path)
    options = [text for each in told for text in ("--rename", each)]
    wrong = run("apply", "no-ops", path, tmp_path / "out.onnx", *options)
    assert wrong.exit_code == 2
    assert said in wrong.stderr
    assert not (tmp_path / "out.onnx").exists()


def test_an_input_that_is_renamed_is_not_told_of_by_its_old_name() -> None:
    model = parse(ASKED)
    for told in ({"shape": {"x": [4, 2]}}, {"values": {"x": 0.0}}):
        with pytest.raises(surgeon.RecipeError, match="`x` gets another name, and is told of by"):
            surgeon.apply(model, "clean", rename={"x": "image"}, **told)
