"""What differs of the nodes at which two models part, and constants that no input reaches."""

from __future__ import annotations

import json
from pathlib import Path

import onnx
import pytest
from truth import parse
from typer.testing import CliRunner

from surgeon import apply
from surgeon.cli import app
from surgeon.verify import Parting, bisect, verify

LAYERS = """g (float[n,4] x, bool c) => (float[n,4] y)
    <float[4] w = {1.0, 2.0, 3.0, 4.0}, float[4] v = {1.0, 1.0, 1.0, 1.0}>
    {
      a = Mul (x, w)
      k = Constant <value = float[4] {3.0, 2.0, 1.0, 0.0}> ()
      b = Add (a, k)
      d = Softmax <axis = 1> (b)
      z = If (c) <
        then_branch = t () => (float[n,4] o) { o = Mul (d, v) },
        else_branch = e () => (float[n,4] o) { o = Mul (d, v) }
      >
      y = Sin (z)
    }"""
TABLE = """g (int64[n] i) => (float[n,2] y)
    <float[3,2] w = {1.0, 2.0, 3.0, 4.0, 5.0, 6.0}, int64 least = {1}>
    { j = Min (i, least) y = Gather (w, j) }"""


def parted(old: str, new: str) -> Parting:
    first, second = parse(LAYERS), parse(LAYERS.replace(old, new))
    found = bisect(first, second, verify(first, second))
    assert found is not None
    return found


FOUR = "float [4]"


@pytest.mark.parametrize(
    ("old", "new", "unlike"),
    [
        ("axis = 1", "axis = 0", ("d (Softmax) attribute axis", "1", "0")),
        ("{1.0, 2.0", "{1.0, 2.5", ("w", FOUR, f"{FOUR}, 1 of 4 values differ, by 0.5 at most")),
        ("[4] {3.0", "[4] {9.0", ("k", FOUR, f"{FOUR}, 1 of 4 values differ, by 6 at most")),
        ("v = {1.0", "v = {2.0", ("v", FOUR, f"{FOUR}, 1 of 4 values differ, by 1 at most")),
        ("Add (a, k)", "Add (x, k)", ("b (Add) input 0", "a", "x")),
    ],
)
def test_what_differs_of_the_nodes_is_said(old: str, new: str, unlike: tuple[str, ...]) -> None:
    assert parted(old, new).unlike == (unlike,)


def test_what_differs_elsewhere_is_not_said() -> None:
    text = LAYERS.replace("axis = 1", "axis = 0").replace("v = {1.0", "v = {2.0")
    first, second = parse(LAYERS), parse(text)
    found = bisect(first, second, verify(first, second))
    assert found is not None
    assert [name for name, _, _ in found.unlike] == ["d (Softmax) attribute axis"]


def test_other_operators_are_seen_in_the_nodes_themselves() -> None:
    assert parted("y = Sin", "y = Cos").unlike == ()


def test_a_constant_that_no_input_reaches_is_told() -> None:
    found = verify(parse(TABLE), parse(TABLE.replace("6.0", "7.0")))
    assert found.status == "equivalent"
    assert found.remarks == (
        "the graphs are the same but for 1 constant, whose change the compared inputs do not show, "
        "or not beyond what is allowed: `w`: float [3,2], 1 of 6 values differ, by 1 at most; see "
        "`surgeon diff`".replace("[3,2]", "[3, 2]"),
    )


def test_the_same_constants_and_other_graphs_have_no_remark() -> None:
    assert verify(parse(TABLE), parse(TABLE)).remarks == ()
    other = TABLE.replace("6.0", "7.0").replace(
        "y = Gather (w, j)", "u = Gather (w, j) y = Abs (u)"
    )
    assert verify(parse(TABLE), parse(other)).remarks == ()


def test_weights_in_files_are_read_for_it(tmp_path: Path) -> None:
    for name, last in (("a", "6.0"), ("b", "7.0")):
        (tmp_path / name).mkdir()
        kept = {"save_as_external_data": True, "location": "w", "size_threshold": 0}
        onnx.save(parse(TABLE.replace("6.0", last)), tmp_path / name / "m.onnx", **kept)
    found = verify(tmp_path / "a" / "m.onnx", tmp_path / "b" / "m.onnx")
    assert "1 of 6 values differ" in found.remarks[0]


def test_what_a_rule_made_of_a_constant_is_no_finding() -> None:
    text = "g (float[n] x) => (float[n] y) <float k = {0.0}> { a = Add (x, k) y = Abs (a) }"
    done = apply(parse(text), "clean")
    assert done.report.verdict is not None
    assert done.report.verdict.remarks == ()


@pytest.mark.slow
def test_the_command_prints_both(tmp_path: Path) -> None:
    paths = {}
    for name, text in (
        ("a", LAYERS),
        ("b", LAYERS.replace("axis = 1", "axis = 0")),
        ("c", TABLE),
        ("d", TABLE.replace("6.0", "7.0")),
    ):
        paths[name] = str(tmp_path / f"{name}.onnx")
        onnx.save(parse(text), paths[name])
    shown = CliRunner().invoke(app, ["verify", paths["a"], paths["b"], "--bisect"])
    assert "what differs of them:" in shown.output
    assert "d (Softmax) attribute axis: 1 -> 0" in shown.output
    plain = CliRunner().invoke(app, ["verify", paths["a"], paths["b"], "--bisect", "--json"])
    unlike = json.loads(plain.output)["parting"]["unlike"]
    assert unlike == [["d (Softmax) attribute axis", "1", "0"]]
    shown = CliRunner().invoke(app, ["verify", paths["c"], paths["d"]])
    assert shown.exit_code == 0
    assert "the graphs are the same but for 1 constant" in shown.output
