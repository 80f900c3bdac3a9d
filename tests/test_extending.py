"""What recipes put in front of models and behind them: joined, typed, compared, or refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from command import run as command
from onnx import parser

import surgeon
from surgeon.runtime import Session

IMAGE = """
<ir_version: 8, opset_import: ["": {opset}]>
g (float[batch, 3, 4, 4] image) => (float[batch, 3] scores) {{
  pixels = Relu (image)
  p = GlobalAveragePool (pixels)
  scores = Flatten (p)
}}"""
FRONT = """camera (uint8[n, h, w, c] frame) => (float[n, c, h, w] planes)
<float[3] mean = {100, 110, 120}> {
  pixels = Cast <to = 1> (frame)
  centred = Sub (pixels, mean)
  planes = Transpose <perm = [0, 3, 1, 2]> (centred)
}"""
BEHIND = "best (s) => (label) { label = ArgMax <axis = 1, keepdims = 0> (s) }"
TWO = """
<ir_version: 8, opset_import: ["": 17]>
g (float[a, 2] x, float[a, 2] y, bool c) => (float[a, 2] sum, float[a, 2] least, bool d) {
  sum = Add (x, y)
  least = Min (x, y)
  d = Not (c)
}"""


def recipe(front: str = "", behind: str = "", rest: str = "") -> surgeon.Recipe:
    text = f"surgeon: 1\nname: ends\nallow: [contract]\n{rest}"
    for key, graph in (("in-front", front), ("behind", behind)):
        if graph:
            text += f"{key}: |\n" + "".join(f"  {line}\n" for line in graph.splitlines())
    return surgeon.Recipe.parse(text, file="ends.yaml")


def image(opset: int = 17) -> onnx.ModelProto:
    return parser.parse_model(IMAGE.format(opset=opset))


def ends(model: onnx.ModelProto) -> list[str]:
    """Inputs and outputs as ONNX writes them."""
    text = onnx.printer.to_text(model.graph).split("{")[0].split("<")[0]
    return [each.strip() for each in text.removeprefix("g ").split("=>")]


@pytest.mark.parametrize("opset", [13, 17, 18])
def test_at_another_opset_too_it_is_joined_and_changed_once(opset: int) -> None:
    changes = """changes:
  - id: further
    why: Twice as much.
    match: pixels = Relu (x)
    replace: |
      r = Relu (x)
      pixels = Add (r, r)
"""
    result = surgeon.apply(image(), recipe(FRONT, BEHIND, changes), opset=opset)
    assert result.report.status == "equivalent"
    assert set(result.report.fired.values()) == {1}
    found = [node.op_type for node in result.model.to_proto().graph.node]
    once = "Cast Sub Transpose Relu Add GlobalAveragePool Flatten ArgMax"
    assert sorted(found) == sorted(once.split())


def test_bytes_become_the_planes_that_the_model_takes_and_scores_the_best() -> None:
    result = surgeon.apply(image(), recipe(FRONT, BEHIND), "clean", require="equivalent")
    made = result.model.to_proto()
    assert ends(made) == ["(uint8[batch,4,4,3] frame)", "(int64[batch] label)"]
    frames = np.random.default_rng(0).integers(0, 256, (5, 4, 4, 3)).astype(np.uint8)
    means = np.maximum(frames - np.array([100.0, 110, 120]), 0).mean(axis=(1, 2))
    found = Session(made).run({"frame": frames}, ["label"])["label"]
    assert found.tolist() == means.argmax(axis=1).tolist()
    told = [change.contract for change in result.report.changes if change.contract]
    assert told == [
        "changes the interface: `frame` in place of input `image`",
        "changes the interface: `label` in place of output `scores`",
    ]


def test_ends_meet_by_name_and_the_others_stay_where_they_are() -> None:
    front = "f (float16[a, 2] half) => (float[a, 2] y) { y = Cast <to = 1> (half) }"
    behind = (
        "b (float[k, 2] least, float[k, 2] sum) => (m, float[k, k2] both) "
        "{ m = Max (sum, least) both = Concat <axis = 1> (sum, least) }"
    )
    made = surgeon.apply(parser.parse_model(TWO), recipe(front, behind)).model.to_proto()
    assert ends(made) == [
        "(float[a,2] x, float16[a,2] half, bool c)",
        "(float[a,2] m, float[a,4] both, bool d)",
    ]


def test_what_is_called_as_something_of_the_model_is_told_apart() -> None:
    """As an inner value, as the end that is joined, and as a size of another input."""
    front = (
        "f (uint8[a, 2] x, float[batch] p) => (float[a, 2] t, float[batch, 1] u) "
        "{ t = Cast <to = 1> (x) o = Abs (p) axis = Constant <value_ints = [1]> ()"
        "  u = Unsqueeze (o, axis) }"
    )
    model = parser.parse_model(
        '<ir_version: 8, opset_import: ["": 17]> g (float[a, 2] t, float[k, 1] u, float[batch] b) '
        "=> (float[a, 2] y, float[k, 1] z, float[batch] c) "
        "{ x = Neg (t) p = Abs (u) y = Exp (x) z = Exp (p) c = Neg (b) }"
    )
    result = surgeon.apply(model, recipe(front), require="equivalent")
    made = result.model.to_proto()
    given, _ = ends(made)
    assert given == "(uint8[a,2] x, float[k] p, float[batch] b)"
    found = Session(made).run(
        {"x": np.ones((1, 2), np.uint8), "p": np.full(3, -2, "f"), "b": np.ones(2, "f")},
        ["y", "z", "c"],
    )
    assert np.allclose(found["y"], np.exp(-1))
    assert np.allclose(found["z"], np.exp(2))


def test_the_same_name_may_stay() -> None:
    front = "f (uint8[n, 3, h, w] image) => (float[n, 3, h, w] x) { x = Cast <to = 1> (image) }"
    behind = "b (scores) => (scores_of_one) { scores_of_one = Softmax <axis = 1> (scores) }"
    made = surgeon.apply(image(), recipe(front, behind), require="equivalent").model.to_proto()
    assert ends(made) == ["(uint8[batch,3,4,4] image)", "(float[batch,3] scores_of_one)"]


def test_a_text_of_another_opset_is_brought_to_the_models() -> None:
    behind = '<ir_version: 7, opset_import: ["": 11]> b (s) => (p) { p = Softmax <axis = 0> (s) }'
    made = surgeon.apply(image(), recipe(behind=behind), require="equivalent").model.to_proto()
    scores = np.random.default_rng(0).random((2, 3, 4, 4)).astype("f")
    found = Session(made).run({"image": scores}, ["p"])["p"]
    means = np.exp(scores.mean(axis=(2, 3)))
    assert np.allclose(found, means / means.sum(), rtol=1e-5)  # of all, as before opset 13


def test_bodies_of_a_text_are_joined_too() -> None:
    behind = (
        "b (s, bool flip) => (float[n, 3] t) { t = If (flip) <"
        "then_branch = a () => (float[n, 3] p) { q = Neg (s) p = Exp (q) }, "
        "else_branch = b () => (float[n, 3] r) { r = Identity (s) }> }"
    )
    with pytest.raises(surgeon.RecipeError, match="no output of that name"):
        surgeon.apply(image(), recipe(behind=behind))
    front = behind.replace("b (s, bool flip)", "b (float[n, 3, 4, 4] s, bool flip)")
    front = front.replace("[n, 3]", "[n, 3, 4, 4]")
    made = surgeon.apply(image(), recipe(front), require="equivalent").model.to_proto()
    x = np.ones((1, 3, 4, 4), "f")
    found = Session(made).run({"s": x, "flip": np.array(True)}, ["scores"])["scores"]
    assert np.allclose(found, np.exp(-1))


def test_a_used_recipe_is_nearer_to_the_model(tmp_path: Path) -> None:
    inner = "f (float[n, h, w, c] x) => (y) { y = Transpose <perm = [0, 3, 1, 2]> (x) }"
    outer = "f (uint8[n, h, w, c] bytes) => (y) { y = Cast <to = 1> (bytes) }"
    head = "surgeon: 1\nname: {}\nallow: [contract]\nin-front: '{}'\n"
    Path(tmp_path, "inner.yaml").write_text(head.format("inner", inner))
    Path(tmp_path, "outer.yaml").write_text(
        head.format("outer", outer) + "steps:\n  - use: ./inner.yaml\n"
    )
    made = surgeon.apply(image(), tmp_path / "outer.yaml", require="equivalent").model.to_proto()
    assert ends(made)[0] == "(uint8[batch,4,4,3] bytes)"
    assert [node.op_type for node in made.graph.node][:2] == ["Cast", "Transpose"]


def test_a_wrong_rewrite_behind_it_is_found_and_left_out() -> None:
    rest = (
        "rules:\n  - id: wrong\n    why: It is not.\n    exact: rounding\n"
        "    match: y = Relu (x)\n    replace: y = Abs (x)\n"
    )
    with pytest.raises(surgeon.SurgeonError, match="is not saved"):
        surgeon.apply(image(), recipe(FRONT, rest=rest), check=False)
    saved = surgeon.apply(image(), recipe(FRONT, rest=rest), check=False, save_partial=True)
    made = saved.model.to_proto()
    assert ends(made)[0] == "(uint8[batch,4,4,3] frame)"
    assert "Relu" in {node.op_type for node in made.graph.node}


def test_aten_nodes_are_repaired_behind_it_and_shapes_are_told_by_the_new_name() -> None:
    model = parser.parse_model(
        '<ir_version: 8, opset_import: ["": 17, "aten": 1]> g (float[n, 3, 4, 4] x) => '
        "(float[n, 3, 4, 4] y) { y = aten.silu (x) }"
    )
    for node in model.graph.node:
        node.domain, node.op_type = "org.pytorch.aten", "ATen"
        node.attribute.append(onnx.helper.make_attribute("operator", "silu"))
    model.opset_import[1].domain = "org.pytorch.aten"
    shape = {"frame": [2, 4, 4, 3]}
    result = surgeon.apply(model, recipe(FRONT), "aten", shape=shape, require="equivalent")
    assert ends(result.model.to_proto())[0] == "(uint8[2,4,4,3] frame)"


WRONG = {
    "gives another type": (
        "f (uint8[n, 3, h, w] x) => (y) { y = Cast <to = 10> (x) }",
        "its `y` is float16[batch, 3, 4, 4], and `image` of the model float[batch, 3, 4, 4]",
    ),
    "says another type than it gives": (
        "f (uint8[n, 3, h, w] x) => (float[n, 3, h, w] y) { y = Cast <to = 10> (x) }",
        "it says that `y` is float[n, 3, h, w], and computes float16[n, 3, h, w]",
    ),
    "another rank": (
        "f (uint8[n, 3, h] x) => (y) { y = Cast <to = 1> (x) }",
        "its `y` is float[n, 3, h], and",
    ),
    "another length": (
        "f (uint8[n, 1, h, w] x) => (float[n, 1, h, w] y) { y = Cast <to = 1> (x) }",
        "its `y` is float[n, 1, h, w], and",
    ),
    "one name for two lengths": (
        "f (uint8[n, s, s, w] x) => (float[n, s, s, w] y) { y = Cast <to = 1> (x) }",
        "its size `s` meets `3` and `4` of the model, which are not one",
    ),
    "types that do not go together": (
        "f (uint8[n, 3, h, w] x) => (y) { z = Cast <to = 1> (x) y = Add (x, z) }",
        "ONNX refuses it",
    ),
    "no type of what it is given": (
        "f (x) => (y) { y = Cast <to = 1> (x) }",
        "it does not say of what type `x` is",
    ),
    "an operator that nothing has": (
        "f (uint8[n, 3, h, w] x) => (y) { y = Cats <to = 1> (x) }",
        "unknown operator `Cats`",
    ),
    "an operator that is not declared": (
        "f (uint8[n, 3, h, w] x) => (y) { y = my.Cast <to = 1> (x) }",
        "unknown domain `my`",
    ),
    "no graph": ("f (x) => ", "this is no graph of ONNX"),
    "nothing": ("f () => (float y) { y = Constant <value_float = 1.0> () }", "given nothing"),
    "what it is given": (
        "f (float[n, 3, h, w] x) => (float[n, 3, h, w] x) { }",
        "it gives `x` as it is given",
    ),
    "functions": (
        '<ir_version: 8, opset_import: ["": 17, "l": 1]> f (float[n, 3, h, w] x) => (y) '
        '{ y = l.F (x) } <domain: "l", opset_import: ["": 17]> F (a) => (b) { b = Neg (a) }',
        "it brings functions",
    ),
    "a newer opset": (
        '<ir_version: 9, opset_import: ["": 20]> f (float[n, 3, h, w] x) => (y) { y = Gelu (x) }',
        "it is of opset 20, the model of 17: Gelu is an operator from opset 20 on",
    ),
}


@pytest.mark.parametrize("title", WRONG)
def test_what_does_not_fit_is_refused_with_its_place(title: str) -> None:
    text, said = WRONG[title]
    with pytest.raises(surgeon.RecipeError) as caught:
        surgeon.apply(image(), recipe(text))
    assert said in caught.value.what
    assert str(caught.value.where).startswith("ends.yaml:")
    assert caught.value.mend


TYPOS = {
    ("planes = Transpose", "plane = Transpose"): ("it says that it gives `planes`", 5, 58),
    ("(centred)", "(centered)"): ("nothing makes `centered`", 9, 47),
    ("Cast", "Cats"): ("unknown operator `Cats`", 7, 14),
}


@pytest.mark.parametrize(("right", "wrong"), TYPOS)
def test_a_typo_is_found_where_it_stands(right: str, wrong: str) -> None:
    said, line, column = TYPOS[right, wrong]
    with pytest.raises(surgeon.RecipeError) as caught:
        recipe(FRONT.replace(right, wrong))
    assert said in caught.value.what
    assert str(caught.value.where) == f"ends.yaml:{line}:{column}"
    assert caught.value.mend.startswith("Did you mean")


def test_an_end_that_stays_keeps_its_name() -> None:
    front = "f (uint8[a, 2] y) => (float[a, 2] x) { x = Cast <to = 1> (y) }"
    with pytest.raises(surgeon.RecipeError, match="has an end `y` already"):
        surgeon.apply(parser.parse_model(TWO), recipe(front))


ENCODER = """
<ir_version: 8, opset_import: ["": 17]>
g (float[b, t] x, float[b, {other}] mask) => (float[made_up, {size}] h) {{ h = Neg (x) }}"""
DECODER = (
    """d (float[n, s] states, float[n, s] mask) => (float[n, s] y) { y = Mul (states, mask) }"""
)


def test_a_size_that_an_exporter_made_up_is_that_of_an_input() -> None:
    meets = "  meets: {states: h}\n"
    lines = "".join(f"    {line}\n" for line in DECODER.splitlines())
    text = f"surgeon: 1\nname: both\nallow: [contract]\nbehind:\n  text: |\n{lines}{meets}"
    both = surgeon.Recipe.parse(text, file="both.yaml")
    joined = surgeon.apply(parser.parse_model(ENCODER.format(other="t", size="too")), both)
    assert ends(joined.model.to_proto())[1] == "(float[b,t] y)"
    with pytest.raises(surgeon.RecipeError, match="its size `s` meets `t` and `u` of the model"):
        surgeon.apply(parser.parse_model(ENCODER.format(other="u", size="t")), both)


def test_behind_a_named_size_no_number_is_taken_for_it() -> None:
    with pytest.raises(surgeon.RecipeError, match=r"is float\[2, 3\], and `scores` of the model"):
        surgeon.apply(image(), recipe(behind="b (float[2, 3] s) => (p) { p = Neg (s) }"))


def test_a_recipe_that_does_not_say_so_changes_no_interface() -> None:
    silent = surgeon.Recipe.parse(
        "surgeon: 1\nname: silent\nbehind: 'b (s) => (p) { p = Neg (s) }'\n"
    )
    with pytest.raises(surgeon.RecipeError, match="changes the interface"):
        surgeon.apply(image(), silent)
    assert surgeon.apply(image(), silent, allow=["contract"]).report.changes


@pytest.mark.slow
def test_a_folder_of_models_of_which_one_does_not_fit(tmp_path: Path) -> None:
    source, out = tmp_path / "in", tmp_path / "out"
    source.mkdir()
    onnx.save(image(), source / "fits.onnx")
    onnx.save(parser.parse_model(TWO), source / "other.onnx")
    done = command("batch", "channels-last", "clean", source, out)
    lines = Path(out, "report.jsonl").read_text(encoding="utf-8").splitlines()
    rows = {row["name"]: row for row in map(json.loads, lines)}
    assert rows["fits.onnx"]["outcome"] == "repaired"
    assert rows["other.onnx"]["outcome"] != "repaired"
    assert "no input of that name" in rows["other.onnx"]["reason"]
    assert done.exit_code == 0 or "other.onnx" in done.output


def test_the_file_as_it_was_is_compared_with_what_the_recipe_puts_on_it(tmp_path: Path) -> None:
    source, out = tmp_path / "in.onnx", tmp_path / "out.onnx"
    onnx.save(image(), source)
    assert command("apply", "channels-last", "clean", source, out).exit_code == 0
    assert command("verify", source, out).exit_code != 0
    done = command("verify", source, out, "--recipe", "channels-last")
    assert done.exit_code == 0
    assert "equivalent" in done.output


def test_nothing_is_saved_where_it_does_not_fit(tmp_path: Path) -> None:
    onnx.save(parser.parse_model(TWO), tmp_path / "two.onnx")
    done = command("apply", "camera", tmp_path / "two.onnx", tmp_path / "out.onnx")
    assert done.exit_code == 2
    assert "no input of that name" in done.output
    assert not (tmp_path / "out.onnx").exists()


def test_the_suppression_behind_a_detector_is_spelled_out_and_equivalent() -> None:
    model = parser.parse_model(
        '<ir_version: 8, opset_import: ["": 17]> g (float[n, 6, 20] x) => (float[n, 6, 20] y) '
        "{ y = Sigmoid (x) }"
    )
    recipes = ("efficient-nms", "tensorrt-plugins", "clean")
    result = surgeon.apply(model, *recipes, require="equivalent")
    assert [v.name for v in result.model.to_proto().graph.output] == [
        *("num_dets", "det_boxes", "det_scores", "det_classes")
    ]


TOKENS = """
<ir_version: 8, opset_import: ["": 17]>
g (int64[b, s] ids, int64[b, s] mask) => (float[b, s, 2] hidden)
<float[4, 2] table, int64[1] at = {2}> {
  rows = Gather (table, ids)
  wide = Unsqueeze (mask, at)
  kept = Cast <to = 1> (wide)
  hidden = Mul (rows, kept)
}"""
POOLED = """mean (h, int64[n, t] mask) => (float[n, c] embedding)
<int64[1] one = {1}, int64[1] two = {2}> {
  m = Cast <to = 1> (mask)
  w = Unsqueeze (m, two)
  p = Mul (h, w)
  sums = ReduceSum <keepdims = 0> (p, one)
  counts = ReduceSum <keepdims = 0> (w, one)
  embedding = Div (sums, counts)
}"""


def test_what_is_behind_may_read_an_input_of_the_model_too() -> None:
    model = parser.parse_model(TOKENS)
    table = np.arange(8, dtype=np.float32).reshape(4, 2)
    model.graph.initializer.append(onnx.numpy_helper.from_array(table, "table"))
    del model.graph.value_info[:]
    text = "surgeon: 1\nname: ends\nallow: [contract]\nbehind:\n  meets: {h: hidden}\n  text: |\n"
    text += "".join(f"    {line}\n" for line in POOLED.splitlines())
    result = surgeon.apply(model, surgeon.Recipe.parse(text, file="ends.yaml"))
    made = result.model.to_proto()
    assert ends(made) == ["(int64[b,s] ids, int64[b,s] mask)", "(float[b,2] embedding)"]
    assert "`embedding` in place of output `hidden`" in (result.report.changes[0].contract or "")
    feeds = {"ids": np.array([[1, 2, 3]]), "mask": np.array([[1, 1, 0]])}
    found = Session(made).run(feeds, ["embedding"])["embedding"]
    assert np.allclose(found, table[1:3].mean(axis=0))
    alone = "b (int64[n, t] mask) => (float[n, t] m) { m = Cast <to = 1> (mask) }"
    alone = alone.replace("(int64", "(int64[n, t] ids, int64", 1)
    result = surgeon.apply(model, recipe(behind=alone))
    made = result.model.to_proto()
    assert ends(made)[1] == "(float[b,s,2] hidden, float[b,s] m)"
    assert "`m` beside the model's outputs" in (result.report.changes[0].contract or "")
