"""`surgeon diff`: what changed between two models, by structure and names."""

import json

import numpy as np
import onnx
import pytest
from differing import changed, compare, told
from onnx import helper, numpy_helper
from typer.testing import CliRunner

from surgeon.cli import app
from surgeon.difference import Change, difference

BEFORE = """<ir_version: 8, opset_import: ["": 13], producer_name: "me">
g (float[N,3] x, bool c) => (float[N,3] y, float[N,3] z)
  <float[3] w = {1.0, 2.0, 3.0}, float[3] v = {4.0, 5.0, 6.0}> {
  a = Mul (x, w)
  b = Relu (a)
  k = Constant <value = float[3] {7.0, 8.0, 9.0}> ()
  d = Add (b, k)
  y = Softmax <axis = 1> (d)
  z = If (c) <
    then_branch = t () => (float[N,3] o) { o = Mul (a, v) },
    else_branch = e () => (float[N,3] o) { o = Neg (a) }
  >
}"""


def test_a_model_is_the_same_as_itself(tmp_path):
    found = compare(tmp_path, BEFORE, BEFORE)
    assert found.same
    assert found.kept == 7
    assert not found.operators


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("b = Relu (a)", "b = Sigmoid (a)", {"replaced": [("b", "Relu", "Sigmoid")]}),
        ("axis = 1", "axis = 0", {"changed": [("y (Softmax) attribute axis", "1", "0")]}),
        ("d = Add (b, k)", "d = Add (a, k)", {"changed": [("d (Add) input 0", "b", "a")]}),
        ("Neg (a)", "Neg (x)", {"changed": [("z.else_branch/o (Neg) input 0", "a", "x")]}),
        ("Neg (a)", "Exp (a)", {"replaced": [("z.else_branch/o", "Neg", "Exp")]}),
        (
            "b = Relu (a)",
            "m = Abs (a) b = Relu (m)",
            {"new": [("m", "", "Abs")], "changed": [("b (Relu) input 0", "a", "m")]},
        ),
        (
            "k = Constant <value = float[3] {7.0, 8.0, 9.0}> ()",
            "k = Neg (w)",
            {"replaced": [("k", "constant", "Neg")]},
        ),
        (
            "{1.0, 2.0, 3.0}",
            "{1.0, 2.5, 3.0}",
            {
                "initializers": [
                    ("w", "float [3]", "float [3], 1 of 3 values differ, by 0.5 at most")
                ]
            },
        ),
        (
            "float[N,3] y",
            "float[M,3] y",
            {"interface": [("output y", "float32 [N, 3]", "float32 [M, 3]")]},
        ),
        ('"": 13', '"": 14', {"header": [("opset of ai.onnx", "13", "14")]}),
        ('"me"', '"you"', {"header": [("producer_name", "me", "you")]}),
    ],
)
def test_one_change_is_told_once(tmp_path, old, new, expected):
    assert BEFORE.count(old) == 1
    found = compare(tmp_path, BEFORE, BEFORE.replace(old, new))
    assert told(found) == expected
    assert not found.same


def test_other_names_are_other_names_and_nothing_else(tmp_path):
    after = BEFORE.replace("a = Mul (x, w)", "p = Mul (x, u)").replace("(a)", "(p)")
    after = after.replace("Mul (a, v)", "Mul (p, v)").replace("float[3] w", "float[3] u")
    found = compare(tmp_path, BEFORE, after)
    assert changed(found) == {
        "renamed": (Change("Mul", "a", "p"),),
        "initializers": (Change("u", "w, float [3]", "float [3]"),),
    }


def test_a_constant_node_or_an_initializer_is_all_the_same(tmp_path):
    after = BEFORE.replace("k = Constant <value = float[3] {7.0, 8.0, 9.0}> ()", "")
    after = after.replace("<float[3] w", "<float[3] k = {7.0, 8.0, 9.0}, float[3] w")
    found = compare(tmp_path, BEFORE, after)
    assert changed(found) == {}
    assert found.operators == {"Constant": (1, 0)}


def test_weights_in_other_files_are_compared(tmp_path):
    for folder, value in (("a", 1.0), ("b", 1.0), ("c", 2.0)):
        (tmp_path / folder).mkdir()
        weight = numpy_helper.from_array(np.full(500, value, np.float32), "w")
        ends = [helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, [500]) for n in "xy"]
        graph = helper.make_graph(
            [helper.make_node("Add", ["x", "w"], ["y"])], "g", ends[:1], ends[1:], [weight]
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
        onnx.save(
            model,
            tmp_path / folder / "m.onnx",
            save_as_external_data=True,
            location="m.data",
            size_threshold=0,
        )
    paths = [tmp_path / folder / "m.onnx" for folder in "abc"]
    assert difference(paths[0], paths[1]).same
    (change,) = difference(paths[0], paths[2]).initializers
    assert change.after == "float [500], 500 of 500 values differ, by 1 at most"
    for path in paths[1:]:
        model = onnx.load(path, load_external_data=False)
        model.graph.node[0].input[1] = model.graph.initializer[0].name = "u"
        onnx.save(model, path)
    said = "float [500]"
    renamed, replaced = (difference(paths[0], path).initializers for path in paths[1:])
    assert renamed == (Change("u", f"w, {said}", said),)
    told = f"{said}, 500 of 500 values differ, by 1 at most"
    assert replaced == (Change("u", f"w, {said}", told),)


def test_weights_of_one_folder_lie_in_whatever_file(tmp_path):
    weight = numpy_helper.from_array(np.arange(500, dtype=np.float32), "w")
    ends = [helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, [500]) for n in "xy"]
    graph = helper.make_graph(
        [helper.make_node("Add", ["x", "w"], ["y"])], "g", ends[:1], ends[1:], [weight]
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    onnx.save(model, tmp_path / "inside.onnx")
    for name in "ab":
        onnx.save(
            onnx.load(tmp_path / "inside.onnx"),
            tmp_path / f"{name}.onnx",
            save_as_external_data=True,
            location=f"{name}.data",
            size_threshold=0,
        )
    for other in ("b", "inside"):
        found = difference(tmp_path / "a.onnx", tmp_path / f"{other}.onnx")
        assert found.same
        assert found.aside == ("how the files hold the same: order, storage, texts of values",)


def test_the_command_prints_what_a_script_or_a_reader_wants(tmp_path):
    compare(tmp_path, BEFORE, BEFORE.replace("Relu", "Sigmoid"))
    one, other = str(tmp_path / "a.onnx"), str(tmp_path / "b.onnx")
    run = CliRunner().invoke
    shown = run(app, ["diff", one, other])
    assert shown.exit_code == 0
    assert "b  Relu -> Sigmoid" in shown.stdout
    assert "6 nodes the same." in shown.stdout
    assert run(app, ["diff", one, other, "--exit-code"]).exit_code == 3
    assert run(app, ["diff", one, one, "--exit-code"]).exit_code == 0
    data = json.loads(run(app, ["diff", one, other, "--json"]).stdout)
    assert data["same"] is False
    assert data["replaced"] == [{"name": "b", "before": "Relu", "after": "Sigmoid"}]
    missing = run(app, ["diff", one, str(tmp_path / "none.onnx")])
    assert missing.exit_code == 4


def test_the_log_of_a_making_is_told_in_a_few_words(tmp_path):
    compare(tmp_path, BEFORE, BEFORE)
    one, other = str(tmp_path / "a.onnx"), str(tmp_path / "b.onnx")
    model, run = onnx.load(other), CliRunner().invoke
    runs = [{"recipes": [{"name": "aten"}, {"name": "clean"}]}, {"recipes": [{"name": "clean"}]}]
    model.metadata_props.add(key="surgeon.log", value=json.dumps(runs))
    onnx.save(model, other)
    shown = " ".join(run(app, ["diff", one, other]).stdout.split())
    assert "metadata surgeon.log + 2 runs of surgeon: aten and clean (`surgeon log` shows" in shown
    assert '"recipes"' in run(app, ["diff", one, other, "--verbose"]).stdout
    model.metadata_props[0].value = json.dumps([{**each, "date": "now"} for each in runs])
    onnx.save(model, one)
    shown = " ".join(run(app, ["diff", one, other]).stdout.split())
    assert "(`surgeon log` shows more) -> as many, told otherwise" in shown
    assert '"date": "now"' in run(app, ["diff", one, other, "--verbose"]).stdout


def test_a_long_text_is_not_a_page_of_its_own(tmp_path):
    compare(tmp_path, BEFORE, BEFORE)
    model = onnx.load(tmp_path / "b.onnx")
    model.metadata_props.add(key="notes", value="word " * 500)
    onnx.save(model, tmp_path / "b.onnx")
    one, other = str(tmp_path / "a.onnx"), str(tmp_path / "b.onnx")
    run = CliRunner().invoke
    shown = run(app, ["diff", one, other]).stdout
    assert shown.count("word") < 50
    assert "(2,500 characters; `--verbose` shows more" in " ".join(shown.split())
    assert run(app, ["diff", one, other, "--verbose"]).stdout.count("word") > 300
