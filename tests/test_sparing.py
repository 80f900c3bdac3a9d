"""Nodes that stay as they are (`--keep`), by operator, by name, or by a value that they give."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from command import run
from command_files import refused
from truth import parse

import surgeon
from surgeon.recipe import Recipe

HALVES = "float32-in-float16"
NORMED = """g (float[n,8] x) => (float[n,8] y) {
  [first] a = MatMul (x, w)
  [second] b = Gemm (x, w)
  c = Add (a, b)
  d = LayerNormalization (c, s)
  [head] y = Gemm (d, w)
}"""


def normed() -> onnx.ModelProto:
    model = parse(NORMED)
    weights = np.random.default_rng(0).normal(size=(8, 8)).astype(np.float32)
    for name, array in (("w", weights), ("s", np.ones(8, np.float32))):
        model.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    return model


def operators(model: onnx.ModelProto | surgeon.Model) -> list[str]:
    proto = model.to_proto() if isinstance(model, surgeon.Model) else model
    return [node.op_type for node in proto.graph.node]


def untouched(before: onnx.ModelProto, after: onnx.ModelProto) -> set[str]:
    """The first outputs of nodes that stand in both to the letter."""
    stood = {node.output[0]: node.SerializeToString() for node in before.graph.node}
    found = {node.output[0]: node.SerializeToString() for node in after.graph.node}
    return {name for name, data in found.items() if stood.get(name) == data}


@pytest.mark.parametrize(
    ("keep", "left"),
    [
        ([], set()),
        (["LayerNormalization"], {"d"}),
        (["ai.onnx.Gemm"], set("bcdy")),
        (["head"], {"y"}),
        (["a"], set("acd")),
        (["first", "second"], set("abcd")),
    ],
)
def test_what_is_kept_stays_in_float32(keep: list[str], left: set[str]) -> None:
    """What it reads is cast in front of it; the rest is in halves, where it reads any."""
    model = normed()
    result = surgeon.apply(model, HALVES, allow="approximate", keep=keep)
    assert result.report.status == "equivalent"
    assert untouched(model, result.model.to_proto()) == left


def test_a_recipe_says_what_its_step_is_to_keep() -> None:
    text = (
        "surgeon: 1\nname: mixed\nallow: [approximate]\nsteps:\n"
        "  - use: float32-in-float16\n    keep: [LayerNormalization, head]\n"
    )
    model = normed()
    result = surgeon.apply(model, Recipe.parse(text))
    assert untouched(model, result.model.to_proto()) == {"d", "y"}
    absent = Recipe.parse(text.replace("head", "tail"))
    remarks = surgeon.apply(model, absent).report.remarks
    assert "no node was there to keep for `tail`" in remarks


TIDY = """g (float[2,3] x) => (float[2,3] y) {
  [c] c = Constant <value_floats = [1.0, 2.0, 3.0]> ()
  [k] d = Neg (c)
  [i] e = Identity (x)
  [u] q = Abs (e)
  [t1] a = Tanh (e)
  [t2] b = Tanh (e)
  s = Add (a, b)
  y = Mul (s, d)
}"""


@pytest.mark.parametrize(
    ("keep", "more"),
    [
        ("k", ["Neg"]),
        ("c", ["Constant", "Neg"]),  # to fold what reads it would leave it unread
        ("i", ["Identity"]),
        ("u", ["Abs"]),  # although nobody reads it
        ("t1", ["Tanh"]),
        ("t2", ["Tanh"]),
    ],
)
def test_what_is_kept_is_neither_folded_nor_merged_nor_dropped(keep: str, more: list[str]) -> None:
    model = parse(TIDY)
    assert operators(surgeon.apply(model, "clean").model) == ["Tanh", "Add", "Mul"]
    result = surgeon.apply(model, "clean", keep=keep)
    assert sorted(operators(result.model)) == sorted(["Tanh", "Add", "Mul", *more])
    assert result.report.status == "equivalent"


def test_no_rewrite_leaves_unread_what_is_kept() -> None:
    """Reshape of Reshape is one of what the first one reads: the first would have no reader."""
    model = parse(
        "g (float[2,6] x) => (float[4,3] y) <int64[2] p = {3, 4}, int64[2] q = {4, 3}>"
        "{ [one] r = Reshape (x, p) y = Reshape (r, q) }"
    )
    assert operators(surgeon.apply(model, "clean").model) == ["Reshape"]
    result = surgeon.apply(model, "clean", keep="one", every_miss=True)
    assert operators(result.model) == ["Reshape", "Reshape"]
    said = "node 'one' (ai.onnx.Reshape) is to stay as it is"
    assert "view" in {miss.rule for miss in result.report.misses if miss.reason == said}


def test_builders_that_look_beyond_their_match_leave_it_too() -> None:
    for keep in ("one", "two"):
        model = parse(
            "g (float[2,3,4] x) => (float[2,3,4] y) {"
            "[one] a = Transpose <perm = [0, 2, 1]> (x) b = Relu (a)"
            "[two] y = Transpose <perm = [0, 2, 1]> (b) }"
        )
        assert operators(surgeon.apply(model, "clean").model) == ["Relu"]
        kept = surgeon.apply(model, "clean", keep=keep).model
        assert operators(kept) == ["Transpose", "Relu", "Transpose"]


FUNCTION = """<domain: "local", opset_import: ["": 17]>
f (a) => (c) { [inner] b = Identity (a) c = Tanh (b) }"""
CALLED = "g (float[2] x) => (float[2] y) { t = local.f (x) y = local.f (t) }"
BRANCHES = """g (float[2] x) => (float[2] y) <bool c = {1}> {
  y = If (c) <
    then_branch = a () => (float[2] t) { [inner] s = Identity (x) t = Tanh (s) },
    else_branch = b () => (float[2] t) { t = Neg (x) }>
}"""
TURNS = """g (float[2] x) => (float[2] y) <int64 n = {2}, bool c = {1}> {
  y = Loop (n, c, x) <body = b (int64 i, bool k, float[2] p) => (bool k2, float[2] r) {
    k2 = Identity (k) [inner] q = Identity (p) r = Tanh (q)
  }>
}"""


@pytest.mark.parametrize(
    ("text", "value", "times"), [(CALLED + FUNCTION, "b", 2), (BRANCHES, "s", 1), (TURNS, "q", 2)]
)
def test_copies_of_what_is_kept_are_kept_by_its_name(text: str, value: str, times: int) -> None:
    """A function is inlined, the branch of an If taken, a Loop unrolled."""
    model = parse(text, domains=', "local": 1')
    plain = operators(surgeon.apply(model, "clean").model)
    for keep in ("inner", value):
        kept = surgeon.apply(model, "clean", keep=keep)
        assert sorted(operators(kept.model)) == sorted([*plain, *["Identity"] * times])
        assert kept.report.status == "equivalent"


def test_nodes_with_bodies_and_calls_stay_where_they_are_kept() -> None:
    assert operators(surgeon.apply(parse(BRANCHES), "clean", keep="If").model) == ["If"]
    assert operators(surgeon.apply(parse(TURNS), "clean", keep="y").model) == ["Loop"]
    called = parse(CALLED + FUNCTION, domains=', "local": 1')
    assert operators(surgeon.apply(called, "clean", keep="local.f").model) == ["f", "f"]


def test_what_the_file_does_not_have_is_refused_with_what_is_near(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    onnx.save(normed(), path)
    wrong = run("apply", HALVES, path, tmp_path / "o.onnx", "--keep", "heat")
    refused(wrong, 2, "no node is `heat`, is called so, or gives a value of this name")
    assert "Did you mean `head`?" in wrong.stderr
    with pytest.raises(surgeon.RecipeError, match=r"^keep: no node is `LayerNormalisation`"):
        surgeon.apply(path, HALVES, keep="LayerNormalisation")
    remarks = surgeon.apply(path, HALVES, keep="Conv").report.remarks
    assert "no node was there to keep for `Conv`" in remarks  # which a rule could have written
    shared = normed()
    shared.graph.node[0].name = "head"
    with pytest.raises(surgeon.RecipeError, match="several nodes are called `head`"):
        surgeon.apply(shared, HALVES, keep="head")
    surgeon.apply(shared, HALVES, keep="y")


@pytest.mark.slow
def test_one_file_and_many_keep_the_same_and_the_log_says_what(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    onnx.save(normed(), tmp_path / "in" / "m.onnx")
    onnx.save(parse("g (float[2] x) => (float[2] y) { y = Relu (x) }"), tmp_path / "in" / "r.onnx")
    told = ["--allow", "approximate", "--keep", "LayerNormalization", "--keep", "head"]
    one = run("apply", HALVES, tmp_path / "in" / "m.onnx", tmp_path / "o.onnx", *told)
    assert one.exit_code == 0
    many = run("batch", HALVES, tmp_path / "in", tmp_path / "out", *told, "--json")
    assert many.exit_code == 0
    for path in (tmp_path / "o.onnx", tmp_path / "out" / "m.onnx"):
        model = onnx.load(path)
        assert untouched(normed(), model) == {"d", "y"}
    (log,) = [p.value for p in model.metadata_props if "log" in p.key]
    assert json.loads(log)[-1]["options"]["keep"] == "LayerNormalization, head"
    rows = [json.loads(line) for line in (tmp_path / "out" / "report.jsonl").open()]
    assert {row["name"]: row["absent"] for row in rows} == {"m.onnx": [], "r.onnx": ["head"]}
    wrong = run("batch", HALVES, tmp_path / "in", tmp_path / "out", *told, "--keep", "haed")
    assert wrong.exit_code == 2
    assert "no file has a node that is `haed`" in wrong.stderr


def test_what_is_kept_inside_holds_a_loop_together() -> None:
    """Else a list that it appends to becomes what its turns give, and the insertion goes."""
    model = parse(
        "g (float[2] x, int64 n) => (float[n,2] y) <bool c = {1}> {"
        "none = SequenceEmpty () s = Loop (n, c, none) <body = b (int64 i, bool k, seq(float[2]) p)"
        "=> (bool k2, seq(float[2]) r) { k2 = Identity (k) f = Cast <to = 1> (i) q = Add (x, f)"
        "[put] r = SequenceInsert (p, q) }>"
        "y = ConcatFromSequence <axis = 0, new_axis = 1> (s) }"
    )
    plain = surgeon.apply(model, "clean").model.to_proto()
    assert "SequenceInsert" not in str(plain)
    for keep in ("put", "SequenceInsert"):
        kept = surgeon.apply(model, "clean", keep=keep)
        assert str(kept.model.to_proto()).count('op_type: "SequenceInsert"') == 1
        assert kept.report.status in ("equivalent", "unchanged")


@pytest.mark.parametrize("keep", ["one", "a", "Tanh"])
def test_what_is_kept_keeps_the_name_of_its_output(keep: str) -> None:
    """An Identity behind it stays, where it gives an output: else who is kept would give that."""
    model = parse(
        "g (float[2] x) => (float[2] y) { z = Relu (x) [one] a = Tanh (z) y = Identity (a) }"
    )
    assert operators(surgeon.apply(model, "clean").model) == ["Relu", "Tanh"]
    kept = surgeon.apply(model, "clean", keep=keep)
    assert operators(kept.model) == ["Relu", "Tanh", "Identity"]
    assert kept.report.status == "unchanged"
