"""Another ONNX file in front of a model or behind it: how they meet, and what is refused."""

import os
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from command import run
from onnx import numpy_helper, parser

import surgeon

NET = """
<ir_version: 8, opset_import: ["": 17]>
g (float[n, 4] x) => (float[n, 3] y) <float[4, 3] w = {1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3}> {
  [mul] h = MatMul (x, w)
  y = Relu (h)
}"""
# value, node and weight are called as those of the other file
AFTER = """
<ir_version: 8, opset_import: ["": {opset}]>
h (float[b, k] given, int64[1] top) => (float[b, m] best, int64[b, m] y)
<float[3] w = {{1, -2, 3}}> {{
  [mul] h = Mul (given, w)
  best, y = TopK <axis = 1> (h, top)
}}"""
FEED = np.array([[1, -2, 3, -4], [0.5, 0.25, -1, 8]], np.float32)


def weights() -> np.ndarray:
    return np.array([[1, 2, 3], [4, 5, 6], [7, 8, 9], [1, 2, 3]], np.float32)


def recipe(folder: Path, joined: str, place: str = "behind") -> Path:
    path = folder / "join.yaml"
    path.write_text(f"surgeon: 1\nname: join\nallow: [contract]\n{place}: {joined}\n")
    return path


def saved(folder: Path, text: str, name: str = "other.onnx") -> onnx.ModelProto:
    model = parser.parse_model(text)
    onnx.save(model, folder / name)
    return model


def of(model: onnx.ModelProto, **feeds: np.ndarray) -> list[np.ndarray]:
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    found: list[np.ndarray] = session.run(None, feeds)
    return found


def ends(model: onnx.ModelProto) -> list[str]:
    text = onnx.printer.to_text(model.graph).split("{")[0].split("<")[0]
    return [each.strip() for each in text.removeprefix("g ").split("=>")]


WHOLE = "{file: other.onnx, meets: {given: y}, brings: [top]}"


@pytest.mark.parametrize("opset", [13, 17, 21])
def test_the_other_file_is_brought_to_the_opset_and_what_both_have_is_told_apart(
    opset: int, tmp_path: Path
) -> None:
    saved(tmp_path, AFTER.format(opset=opset))
    model = parser.parse_model(NET)
    given = {"top": "values(2)"}
    result = surgeon.apply(model, recipe(tmp_path, WHOLE), inputs=given, require="equivalent")
    made = result.model.to_proto()
    assert ends(made) == ["(float[n,4] x, int64[1] top)", "(float[n,m] best, int64[n,m] y)"]
    assert [(e.domain, e.version) for e in made.opset_import] == [("", 17)]
    assert made.ir_version == 8
    scores = np.maximum(FEED @ weights(), 0) * np.array([1, -2, 3], np.float32)
    best, place = of(made, x=FEED, top=np.array([2]))
    assert np.allclose(best, -np.sort(-scores, axis=1)[:, :2])
    assert np.array_equal(place[1], np.argsort(-scores[1])[:2])
    contract = result.report.changes[0].contract or ""
    assert "and input `top`" in contract
    assert contract.endswith(", by the file `other.onnx` beside the recipe")
    assert contract in made.metadata_props[0].value  # of the log
    onnx.checker.check_model(made, full_check=True)


def test_in_front_with_an_output_that_the_whole_has_too(tmp_path: Path) -> None:
    saved(
        tmp_path,
        """
    <ir_version: 8, opset_import: ["": 17]>
    f (float[b, k, 2] raw) => (float[b, k] x, float[b, 1] length) <int64[1] last = {-1}> {
      x = ReduceMean <axes = [2], keepdims = 0> (raw)
      length = ReduceL2 <axes = [1]> (x)
    }""",
    )
    made_by = recipe(tmp_path, "{file: other.onnx, brings: [length]}", "in-front")
    result = surgeon.apply(parser.parse_model(NET), made_by, require="equivalent")
    made = result.model.to_proto()
    assert ends(made) == ["(float[n,4,2] raw)", "(float[n,3] y, float[n,1] length)"]
    raw = np.stack([FEED + 1, FEED - 1], axis=2)
    y, length = of(made, raw=raw)
    assert np.allclose(y, np.maximum(FEED @ weights(), 0), atol=1e-5)
    assert np.allclose(length[:, 0], np.linalg.norm(FEED, axis=1))


def test_functions_are_written_out_data_come_along_and_weights_are_no_inputs(
    tmp_path: Path,
) -> None:
    model = parser.parse_model("""
    <ir_version: 8, opset_import: ["": 17, "own": 1]>
    f (float[b, 3] y, float[3, 512] wide) => (float[b, 512] z) {
      t = own.twice (y)
      z = MatMul (t, wide)
    }
    <domain: "own", opset_import: ["": 17]>
    twice (u) => (v) { v = Add (u, u) }""")
    wide = np.random.default_rng(0).standard_normal((3, 512)).astype(np.float32)
    model.graph.initializer.append(numpy_helper.from_array(wide, "wide"))
    path = tmp_path / "other.onnx"
    onnx.save(model, path, save_as_external_data=True, location="other.data", size_threshold=1024)
    result = surgeon.apply(parser.parse_model(NET), recipe(tmp_path, "{file: other.onnx}"))
    made = result.model.to_proto()
    assert result.report.status == "equivalent"
    assert not made.functions
    assert ends(made)[0] == "(float[n,4] x)"
    assert np.allclose(of(made, x=FEED)[0], 2 * np.maximum(FEED @ weights(), 0) @ wide, atol=1e-3)


def test_false_shapes_of_the_other_file_and_what_onnx_cannot_infer_are_no_reason(
    tmp_path: Path,
) -> None:
    model = saved(
        tmp_path,
        """
    <ir_version: 8, opset_import: ["": 17, "aten": 1]>
    f (float[b, 3] y) => (float[7, 3] z, float[b, 3] w) {
      z = Exp (y)
      t = org.pytorch.aten.ATen <operator = "relu"> (y)
      w = Neg (t)
    }""",
    )
    model.opset_import.append(onnx.helper.make_opsetid("org.pytorch.aten", 1))
    onnx.save(model, tmp_path / "other.onnx")
    result = surgeon.apply(
        parser.parse_model(NET), recipe(tmp_path, "{file: other.onnx}"), "aten", "clean"
    )
    made = result.model.to_proto()
    assert result.report.status == "equivalent"
    assert ends(made)[1] == "(float[n,3] z, float[n,3] w)"
    y = np.maximum(FEED @ weights(), 0)
    for found, wanted in zip(of(made, x=FEED), (np.exp(y), -y), strict=True):
        assert np.allclose(found, wanted)


def test_lists_meet_too(tmp_path: Path) -> None:
    saved(
        tmp_path,
        """
    <ir_version: 8, opset_import: ["": 17]>
    f (float[k] a, float[k] b) => (seq(float[k]) pair) { pair = SequenceConstruct (a, b) }""",
    )
    model = parser.parse_model("""
    <ir_version: 8, opset_import: ["": 17]>
    g (seq(float[m]) s) => (float[m] last) <int64 one = {1}> { last = SequenceAt (s, one) }""")
    made = surgeon.apply(model, recipe(tmp_path, "{file: other.onnx}", "in-front"), "clean")
    assert ends(made.model.to_proto()) == ["(float[k] a, float[k] b)", "(float[m] last)"]
    assert made.report.status == "equivalent"


def test_a_text_can_meet_and_bring_too(tmp_path: Path) -> None:
    text = '"f (float[b, k] given, float least) => (float[b, k] z) { z = Max (given, least) }"'
    joined = f"{{text: {text}, meets: {{given: y}}, brings: [least]}}"
    made = surgeon.apply(parser.parse_model(NET), recipe(tmp_path, joined)).model.to_proto()
    assert ends(made) == ["(float[n,4] x, float least)", "(float[n,3] z)"]


def test_the_log_and_the_report_name_it_and_verify_knows_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    saved(tmp_path, NET, "net.onnx")
    saved(tmp_path, AFTER.format(opset=17))
    recipe(tmp_path, WHOLE)
    before = surgeon.Recipe.load("./join.yaml").digest
    top = ("--input", "top=values(2)")
    made = run("apply", "./join.yaml", "net.onnx", "out.onnx", *top)
    assert made.exit_code == 0, made.output
    assert run("verify", "net.onnx", "out.onnx", "--recipe", "./join.yaml", *top).exit_code == 0
    assert "the file other.onnx" in run("recipes", "show", "./join.yaml").output
    saved(tmp_path, AFTER.format(opset=18))
    assert surgeon.Recipe.load("./join.yaml").digest != before  # it is a part of the recipe


NEWER = """
<ir_version: 9, opset_import: ["": 20]>
f (float[b, k] y) => (bool[b, k] z) { z = IsInf (y) }"""
WRONG = {
    "no such file": ("{file: missing.onnx}", "", "there is no file `", "from the folder of the"),
    "a path up": ("{file: ../other.onnx}", "", "`../other.onnx` lies outside the folder", "beside"),
    "a whole path": ("{file: /other.onnx}", "", "`/other.onnx` lies outside the folder", "beside"),
    "neither": ("{meets: {a: b}}", "", "`behind` has no `file`", "Name an ONNX file"),
    "both": ("{file: other.onnx, text: x}", NEWER, "has both `file` and `text`", "Leave one"),
    "a name alone": ("other.onnx", "", "this is no graph of ONNX", "`behind: {file: other.onnx}`"),
    "a key": ("{fil: other.onnx}", "", "unknown key `fil`", "Did you mean `file`?"),
    "an end of it": (
        *("{file: other.onnx, meets: {z: y}}", NEWER, "it is given no `z`", "Known are `y`."),
    ),
    "an end of the model": (
        "{file: other.onnx, meets: {y: scores}}",
        *(NEWER, "the model has no output of `scores`", "The model's are `y`"),
    ),
    "one too many": (
        "{file: other.onnx}",
        AFTER.format(opset=17),
        "it is given `given`, and the model has no output of that name",
        "say with `meets` which it is",
    ),
    "nothing meets, and one name is that of an end": (
        "{file: other.onnx, brings: [y]}",
        *(NEWER, "the model has an end `y` already", "Call it otherwise"),
    ),
    "of another shape": (
        "{file: other.onnx}",
        NEWER.replace("[b, k]", "[b, k, 5]"),
        "its `y` is float[b, k, 5], and `y` of the model float[n, 3]",
        "",
    ),
    "of an opset that cannot be had": (
        "{file: other.onnx}",
        """<ir_version: 10, opset_import: ["": 21]>
        f (float[b, k] y) => (string[b, k] z) {
          t = Cast <to = 8> (y)
          z, c = StringSplit <delimiter = "."> (t)
        }""",
        "it is of opset 21, the model of 17: ",
        "Write it for opset 17",
    ),
    "of another version of a domain": (
        "{file: other.onnx}",
        """<ir_version: 8, opset_import: ["": 17, "ai.onnx.ml": 3]>
        f (float[b, k] y) => (float[b, k] z) { z = ai.onnx.ml.Binarizer (y) }""",
        "it has operators of `ai.onnx.ml` 3, and the model of 2",
        "Export one of them",
    ),
    "a sequence": (
        "{file: other.onnx}",
        """<ir_version: 8, opset_import: ["": 17]>
        f (seq(float[k]) y) => (float[k] z) <int64 zero = {0}> { z = SequenceAt (y, zero) }""",
        "its `y` is a sequence, and `y` of the model float[n, 3]",
        "",
    ),
    "no model": ("{file: other.onnx}", "-", "", ""),
}


@pytest.mark.parametrize("title", WRONG)
def test_what_does_not_fit_is_refused_with_its_reason(title: str, tmp_path: Path) -> None:
    joined, other, what, mend = WRONG[title]
    if other == "-":
        (tmp_path / "other.onnx").write_bytes(b"no model at all")
    elif other:
        saved(tmp_path, other)
    model = parser.parse_model(NET)
    model.opset_import.append(onnx.helper.make_opsetid("ai.onnx.ml", 2))
    with pytest.raises(surgeon.SurgeonError) as raised:
        surgeon.apply(model, recipe(tmp_path, joined))
    assert what in raised.value.what
    assert mend in raised.value.mend
    assert str(tmp_path) in str(raised.value.where)


def test_two_files_side_by_side(tmp_path: Path) -> None:
    """As `onnx.compose.merge_models` does without an `io_map`; inputs may be shared."""
    model = parser.parse_model(NET)
    other = saved(tmp_path, AFTER.format(opset=17).replace("int64[b, m] y)", "int64[b, m] i)"
                  ).replace("best, y =", "best, i ="))  # fmt: skip
    asked = "{file: other.onnx, brings: [given, top]}"
    result = surgeon.apply(model, recipe(tmp_path, asked), require="equivalent")
    made = result.model.to_proto()
    assert [value.name for value in made.graph.input] == ["x", "given", "top"]
    assert [value.name for value in made.graph.output] == ["y", "best", "i"]
    top, given = np.array([2]), FEED[:, :3]
    found = of(made, x=FEED, given=given, top=top)
    for now, was in zip(found, of(model, x=FEED) + of(other, given=given, top=top), strict=True):
        np.testing.assert_array_equal(now, was)
    shared = recipe(tmp_path, "{file: other.onnx, meets: {given: x}, brings: [top]}")
    with pytest.raises(surgeon.SurgeonError):  # three weights beside four columns
        surgeon.apply(model, shared)
    with pytest.raises(surgeon.RecipeError, match="one has to meet one"):
        surgeon.apply(model, recipe(tmp_path, "{file: other.onnx, brings: [best, i]}", "in-front"))


@pytest.mark.skipif(os.name == "nt", reason="links want rights there")
def test_a_link_out_of_the_folder_of_the_recipe_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "recipes").mkdir()
    saved(tmp_path, NEWER)
    (tmp_path / "recipes/other.onnx").symlink_to("../other.onnx")
    with pytest.raises(surgeon.RecipeError, match=r"`other\.onnx` lies outside the folder"):
        surgeon.apply(parser.parse_model(NET), recipe(tmp_path / "recipes", "{file: other.onnx}"))
