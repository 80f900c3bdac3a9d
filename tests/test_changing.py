"""What a recipe changes of what a model computes: made once, before any step, and told."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from command import run
from command_files import refused
from onnx import parser
from truth import parse

import surgeon
from surgeon.model import Model

NET = """
<ir_version: 8, opset_import: ["": 17]>
g (float[n, 4] x) => (float[n, 4] scores)
<float[4] one = {1, 1, 1, 1}, float[4] two = {2, 2, 2, 2}> {
  [sum] three = Add (one, two)
  [first] a = Mul (x, three)
  [again] b = Mul (x, three)
  [act] c = LeakyRelu <alpha = 0.5> (a)
  [both] d = Add (c, b)
  [soft] scores = Softmax <axis = 1> (d)
}"""
FEED = np.array([[1, -2, 3, -4], [0.5, 0.25, -1, 8]], np.float32)


def recipe(changes: str, rest: str = "allow: [contract]\n") -> surgeon.Recipe:
    text = f"surgeon: 1\nname: asked\n{rest}changes:\n"
    text += "".join(f"  {line}\n" for line in changes.strip("\n").splitlines())
    return surgeon.Recipe.parse(text, file="asked.yaml")


def change(match: str, replace: str, *, where: str = "[]", let: str = "{}", id: str = "it") -> str:
    lines = [f"- id: {id}", "  why: It is wanted.", f"  match: {match}", f"  where: {where}"]
    return "\n".join([*lines, f"  let: {let}", f"  replace: {replace}"])


NO_SOFTMAX = change("y = Softmax (x)", "y = Identity (x)", id="no-softmax")
STEEPER = change("y = LeakyRelu (x)", "y = LeakyRelu <alpha = 2.0> (x)", id="steeper")
BOUND = """
- id: bound
  why: It leaves its range.
  match: y = Mul (x, w)
  let: {low: "const(-3.0, like=x)", high: "const(3.0, like=x)"}
  replace: |
    c = Mul (x, w)
    y = Clip (c, @low, @high)
"""


def net() -> onnx.ModelProto:
    return parser.parse_model(NET)


def of(model: onnx.ModelProto, **feeds: np.ndarray) -> np.ndarray:
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    found: np.ndarray = session.run(None, feeds or {"x": FEED})[0]
    return found


def operators(model: onnx.ModelProto) -> list[str]:
    return [node.op_type for node in model.graph.node]


def test_the_result_computes_what_was_asked_for_and_nothing_else_is_touched() -> None:
    result = surgeon.apply(net(), recipe(f"{NO_SOFTMAX}\n{STEEPER}\n{BOUND}"))
    made = result.model.to_proto()
    clipped = np.clip(3 * FEED, -3, 3)
    assert np.allclose(of(made), np.where(clipped < 0, 2 * clipped, clipped) + clipped)
    # the sum of constants is not folded, and the two equal products are not one
    assert operators(made) == [
        *("Add", "Mul", "Clip", "Mul", "Clip", "LeakyRelu", "Add", "Identity")
    ]
    assert [node.name for node in made.graph.node if node.op_type == "Add"] == ["sum", "both"]
    assert result.report.fired == {
        "asked/no-softmax": 1,
        "asked/steeper": 1,
        "asked/bound": 2,
    }
    (remark,) = result.report.remarks
    assert remark.startswith("the result is compared with the file as the recipe changes it")
    assert "moves the file's outputs: `scores` by " in remark
    assert result.report.status == "equivalent"


def test_what_follows_is_compared_with_the_changed_file() -> None:
    result = surgeon.apply(net(), recipe(NO_SOFTMAX), "clean", require="equivalent")
    made = result.model.to_proto()
    assert "Identity" not in operators(made)
    scaled = 3 * FEED
    assert np.allclose(of(made), np.where(scaled < 0, scaled / 2, scaled) + scaled, atol=1e-5)


def test_a_change_that_moves_nothing_is_told_so() -> None:
    same = change("y = Add (a, b)", "y = Add (b, a)", where="[\"y.node == 'both'\"]")
    (remark,) = surgeon.apply(net(), recipe(same)).report.remarks
    assert remark.endswith("which on the inputs drawn gives what the file gave")


def test_an_output_of_another_type_is_declared_and_told() -> None:
    best = change("y = Softmax (x)", "y = ArgMax <axis = 1, keepdims = 0> (x)")
    result = surgeon.apply(net(), recipe(best))
    made = result.model.to_proto()
    kind = made.graph.output[0].type.tensor_type
    assert kind.elem_type == onnx.TensorProto.INT64
    assert [dim.dim_param for dim in kind.shape.dim] == ["n"]
    told = "`scores` is int64[n], where it was float[n, 4]"
    assert told in (result.report.changes[0].contract or "")
    assert "could not be" in result.report.remarks[0]
    onnx.checker.check_model(made, full_check=True)


def test_a_dimension_that_nothing_says_is_not_told_as_0() -> None:
    model = net()
    model.graph.output[0].type.tensor_type.shape.dim[1].Clear()
    best = change("y = Softmax (x)", "y = ArgMax <axis = 1, keepdims = 0> (x)")
    result = surgeon.apply(model, recipe(best))
    told = "`scores` is int64[n], where it was float[n, ?]"
    assert told in (result.report.changes[0].contract or "")


def test_shapes_that_the_file_states_behind_a_change_are_forgotten() -> None:
    model = parser.parse_model("""
    <ir_version: 8, opset_import: ["": 17]>
    g (float[1, 2, 4, 4] x) => (float[1, 2, 2, 2] y) <int64[8] pads = {0, 0, 0, 0, 0, 0, 4, 4}> {
      h = Exp (x)
      p = Pad (h, pads)
      q = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (p)
      r = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (q)
      y = Relu (r)
    }""")
    model = onnx.shape_inference.infer_shapes(model)
    assert {value.name for value in model.graph.value_info} == {"h", "p", "q", "r"}
    made = surgeon.apply(
        model, recipe(change("y = Pad (x, n)", "y = Identity (x)"))
    ).model.to_proto()
    assert {value.name for value in made.graph.value_info} == {"h"}
    assert [d.dim_value for d in made.graph.output[0].type.tensor_type.shape.dim] == [1, 2, 1, 1]
    onnx.checker.check_model(made, full_check=True)


def test_places_in_bodies_and_functions_are_found_too() -> None:
    model = parser.parse_model("""
    <ir_version: 8, opset_import: ["": 17, "own": 1]>
    g (float[n] x, bool c) => (float[n] y) {
      t = If (c) <
        then_branch = a () => (float[n] p) { p = Abs (x) },
        else_branch = b () => (float[n] q) { q = own.twice (x) }
      >
      y = Neg (t)
    }
    <domain: "own", opset_import: ["": 17]>
    twice (u) => (v) { w = Abs (u)  v = Add (w, w) }""")
    result = surgeon.apply(model, recipe(change("y = Abs (x)", "y = Exp (x)")))
    assert result.report.fired == {"asked/it": 2}
    made, x = result.model.to_proto(), np.array([-1.0, 2.0], np.float32)
    assert np.allclose(of(made, x=x, c=np.array(True)), -np.exp(x))
    assert np.allclose(of(made, x=x, c=np.array(False)), -2 * np.exp(x))


def test_changes_come_in_order_and_those_of_used_recipes_first(tmp_path: Path) -> None:
    inner = "surgeon: 1\nname: inner\nchanges:\n  " + NO_SOFTMAX.replace("\n", "\n  ")
    (tmp_path / "inner.yaml").write_text(inner)
    outer = "surgeon: 1\nname: outer\nallow: [contract]\nchanges:\n  "
    outer += change("y = Identity (x)", "y = Sigmoid (x)", id="sigmoid").replace("\n", "\n  ")
    (tmp_path / "outer.yaml").write_text(f"{outer}\nsteps:\n  - use: ./inner.yaml\n")
    result = surgeon.apply(net(), tmp_path / "outer.yaml")
    assert operators(result.model.to_proto())[-1] == "Sigmoid"
    assert list(result.report.fired) == ["inner/no-softmax", "outer/sigmoid"]


def test_weights_outside_are_left_where_they_are(tmp_path: Path) -> None:
    model = net()
    weight = np.arange(4096, dtype=np.float32).reshape(4, 1024)
    model.graph.initializer.append(onnx.numpy_helper.from_array(weight, "w"))
    model.graph.node.insert(0, onnx.helper.make_node("MatMul", ["x", "w"], ["wide"]))
    model.graph.output.append(onnx.helper.make_tensor_value_info("wide", 1, ["n", 1024]))
    path = tmp_path / "net.onnx"
    onnx.save(model, path, save_as_external_data=True, location="net.data", size_threshold=1024)
    made = surgeon.apply(path, recipe(NO_SOFTMAX)).model.to_proto()
    (outside,) = [t for t in made.graph.initializer if t.name == "w"]
    assert outside.data_location == onnx.TensorProto.EXTERNAL


@pytest.mark.parametrize(
    ("changes", "rest", "what"),
    [
        (NO_SOFTMAX, "", "`no-softmax` changes what the model computes, which is not allowed"),
        (
            change("y = Relu (x)", "y = Exp (x)"),
            "allow: [contract]\n",
            "the change `it` is made nowhere in this model",
        ),
        (
            change("y = Softmax (x)", "y = Exp (x)", where="[\"y.name == 'score'\"]"),
            "allow: [contract]\n",
            "the change `it` is made nowhere in this model: at node 'soft' (ai.onnx.Softmax), the "
            "nearest, `y.name == 'score'` is false: y.name is 'scores'",
        ),
    ],
)
def test_what_cannot_be_made_is_refused_with_its_place(changes: str, rest: str, what: str) -> None:
    with pytest.raises(surgeon.SurgeonError) as raised:
        surgeon.apply(net(), recipe(changes, rest))
    assert raised.value.what == what
    assert "asked.yaml:" in str(raised.value.where)


def test_an_optional_change_may_find_no_place() -> None:
    asked = recipe(change("y = Relu (x)", "y = Exp (x)") + "\n  optional: true")
    result = surgeon.apply(net(), asked, "clean")
    assert result.report.remarks == ("`asked/it` found nothing to change",)
    found = surgeon.apply(net(), recipe(NO_SOFTMAX + "\n  optional: true"))
    assert [change.rule for change in found.report.changes] == ["no-softmax"]
    assert not any("nothing to change" in remark for remark in found.report.remarks)


def test_what_cannot_be_made_at_one_of_its_places_is_made_at_none() -> None:
    model = parser.parse_model("""
    <ir_version: 8, opset_import: ["": 17]>
    g (float[n] x, bool[n] c) => (float[n] y, bool[n] d) {
      [good] y = Identity (x)
      [bad] d = Identity (c)
    }""")
    minus = change("y = Identity (x)", "y = Neg (x)")
    with pytest.raises(surgeon.SurgeonError) as raised:
        surgeon.apply(model, recipe(minus))
    assert raised.value.what == (
        "the change `it` cannot be made at node 'bad' (ai.onnx.Identity): `Neg` of opset 17 does "
        "not take tensor(bool) as input 0"
    )
    some = minus.replace("where: []", "where: [x.dtype == float32]")
    assert surgeon.apply(model, recipe(some)).report.fired == {"asked/it": 1}


def test_tensors_in_attributes_come_along() -> None:
    model = parser.parse_model("""
    <ir_version: 8, opset_import: ["": 17]>
    g (int64[1] s, float[n] z) => (float[n] y) {
      c = ConstantOfShape <value = float[1] {2.0}> (s)
      y = Add (c, z)
    }""")
    minus = """
- id: minus
  why: It is wanted.
  match: y = ConstantOfShape <*rest> (x)
  replace: |
    c = ConstantOfShape <*rest> (x)
    y = Neg (c)
"""
    made = surgeon.apply(model, recipe(minus)).model.to_proto()
    assert np.array_equal(of(made, s=np.array([2]), z=np.zeros(2, np.float32)), [-2, -2])


def test_a_change_promises_nothing() -> None:
    with pytest.raises(surgeon.SurgeonError, match="unknown key `exact`"):
        recipe(NO_SOFTMAX + "\n  exact: bit")
    with pytest.raises(surgeon.SurgeonError, match="the rule `no-softmax` is here twice"):
        recipe(f"{NO_SOFTMAX}\n{NO_SOFTMAX}")


@pytest.mark.slow
def test_in_the_shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    onnx.save(net(), "net.onnx")
    text = "surgeon: 1\nname: mine\nallow: [contract]\nchanges:\n  "
    Path("mine.yaml").write_text(text + NO_SOFTMAX.replace("\n", "\n  "))
    result = run("apply", "./mine.yaml", "clean", "net.onnx", "out.onnx")
    assert result.exit_code == 0, result.output
    assert "mine/no-softmax  asked for" in result.output
    assert run("verify", "net.onnx", "out.onnx").exit_code == 3
    assert run("verify", "net.onnx", "out.onnx", "--recipe", "./mine.yaml").exit_code == 0
    refused(run("apply", "./mine.yaml", "out.onnx", "again.onnx"), 2, "made nowhere")
    assert "Changes, before any step" in run("recipes", "show", "./mine.yaml").output
    assert Model.load("out.onnx").to_proto().graph.node[-1].op_type == "Add"
    untested = run("test", "./mine.yaml")
    assert untested.exit_code == 1
    assert "no case where `no-softmax` fires" in " ".join(untested.output.split())


CASES = """cases:
- case: {title}
  fires: {fires}
  before: |
    <ir_version: 8, opset_import: ["": 17]>
    g (float[n, 4] x) => (float[n, 4] y) {{ y = Softmax (x) }}
{after}- case: none
  refuses: {{rule: no-softmax, because: {because}}}
  before: |
    <ir_version: 8, opset_import: ["": 17]>
    g (float[n, 4] x) => (float[n, 4] y) {{ y = {operator} (x) }}
"""
AFTER = """  after: |
    <ir_version: 8, opset_import: ["": 17]>
    g (float[n, 4] x) => (float[n, 4] y) { y = Identity (x) }
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("told", "said"),
    [
        ({}, "2 cases hold"),
        ({"after": ""}, "Unchecked: what a change makes is compared with nothing"),
        ({"after": AFTER.replace("Identity", "Exp")}, "Wrong: the result is not `after`"),
        ({"fires": "{no-softmax: 2}"}, "Missing: `no-softmax` is made 1 times, not 2"),
        ({"because": "it rains"}, "Silent: `no-softmax` does not say 'it rains', but: the change"),
        ({"operator": "Softmax"}, "Noisy: `no-softmax` is made"),
    ],
)
def test_cases_hold_changes_to_what_is_written(
    told: dict[str, str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = "surgeon: 1\nname: mine\nallow: [contract]\nchanges:\n  "
    Path("mine.yaml").write_text(text + NO_SOFTMAX.replace("\n", "\n  "))
    usual = {"title": "one", "fires": "no-softmax", "after": AFTER, "operator": "Exp"}
    usual |= {"because": "made nowhere"}
    Path("mine.cases.yaml").write_text(CASES.format(**{**usual, **told}))
    assert said in run("test", "./mine.yaml").output


def test_a_node_is_asked_for_by_its_name() -> None:
    named = change('"[first] y = Mul (x, w)"', "y = Add (x, w)")
    made = surgeon.apply(net(), recipe(named)).model.to_proto()
    assert operators(made) == ["Add", "Add", "Mul", "LeakyRelu", "Add", "Softmax"]
    assert made.graph.node[1].input[0] == "x"
    with pytest.raises(surgeon.SurgeonError, match=r"`y.node == 'third'` is false: y.node is "):
        surgeon.apply(net(), recipe(named.replace("first", "third")))
    with pytest.raises(surgeon.SurgeonError, match="no output of this node has a name"):
        recipe(change('\'[first] "a b" = Mul (x, w); y = Neg ("a b")\'', "y = Neg (x)"))

    @surgeon.rule(match="[both] y = Add (a, b)", why="They are the same.", exact="bit")
    def turned(build: Any, match: Any) -> object:
        return build.op("Add", match.values["b"], match.values["a"])

    result = surgeon.apply(net(), turned)
    assert sum(result.report.fired.values()) == 1


def test_who_wants_another_result_by_a_rule_is_told_of_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    onnx.save(net(), "net.onnx")
    rule = NO_SOFTMAX + "\n  exact: bit"
    Path("mine.yaml").write_text("surgeon: 1\nname: mine\nrules:\n  " + rule.replace("\n", "\n  "))
    shown = " ".join(run("apply", "./mine.yaml", "net.onnx", "out.onnx").output.split())
    assert "where another result is wanted, it is one of a recipe's `changes`" in shown


def test_a_change_is_not_blamed_for_what_the_file_fails_of() -> None:
    model = net()
    model.graph.node.append(onnx.helper.make_node("Sin", ["k"], ["w"]))
    model.graph.input.append(onnx.helper.make_tensor_value_info("k", onnx.TensorProto.INT64, [2]))
    model.graph.output.append(onnx.helper.make_tensor_value_info("w", onnx.TensorProto.INT64, [2]))
    with pytest.raises(surgeon.SurgeonError, match="neither the file as the recipe") as raised:
        surgeon.apply(model, recipe(NO_SOFTMAX), "clean")
    assert "no-softmax" not in raised.value.what


def test_a_change_that_does_not_load_is_what_is_to_be_mended() -> None:
    let = "{twice: \"const(2, dtype='int32')\"}"
    twice = change("y = Softmax (x)", "y = Mul (x, @twice)", let=let, id="twice")
    with pytest.raises(surgeon.SurgeonError, match="neither the file as the recipe") as raised:
        surgeon.apply(net(), recipe(twice), "clean")
    said = "Where the file as it came loads, mend what `asked/twice` writes; see"
    assert raised.value.mend.startswith(said)


def test_what_comes_between_is_counted_as_come() -> None:
    report = surgeon.apply(net(), recipe(BOUND), "aten").report
    assert report.after["Clip"] == report.before.get("Clip", 0) + 1
    assert report.before == surgeon.apply(net(), "aten").report.before


def test_the_log_says_what_was_changed_in_what_the_model_promises() -> None:
    result = surgeon.apply(net(), recipe(NO_SOFTMAX))
    logged = json.loads(result.model.to_proto().metadata_props[0].value)[-1]
    assert logged["contracts"] == list(result.report.contracts)
    assert len(logged["contracts"]) == 1


def test_where_no_fault_is_known_a_recipe_that_may_help_is_no_promise() -> None:
    model = net()
    model.graph.node.append(onnx.helper.make_node("MaxPool", ["x"], ["w"]))  # of which window?
    model.graph.output.append(onnx.helper.make_tensor_value_info("w", onnx.TensorProto.FLOAT, None))
    with pytest.raises(surgeon.SurgeonError, match="neither the original nor") as raised:
        surgeon.apply(model, "clean")
    assert raised.value.mend.startswith("`aten` in front may help, which")


@pytest.mark.parametrize(
    ("recipes", "mend"),
    [
        (["clean"], "Put `operand-types` in front, which mends that"),
        (["aten", "clean"], "See `surgeon inspect"),
    ],
)
def test_a_recipe_that_another_one_holds_is_not_asked_for_in_front_of_it(
    recipes: list[str], mend: str
) -> None:
    text = "g (uint8[n] a, uint8[n] b) => (uint8[n] y) { c = Identity (a) y = And (c, b) }"
    with pytest.raises(surgeon.SurgeonError, match="neither the original") as raised:
        surgeon.apply(parse(text), *recipes)
    assert raised.value.mend.startswith(mend)


def test_a_match_that_is_at_fault_is_what_is_to_be_mended() -> None:
    """Not `replace`, although the one node of the pattern is there."""
    wrong = change("y = Softmax <axis = 0> (x)", "y = Identity (x)")
    with pytest.raises(surgeon.RecipeError, match="is 1, not 0") as caught:
        surgeon.apply(net(), recipe(wrong))
    assert "is made nowhere in this model" in caught.value.what
    assert "mend `match` or `where`" in caught.value.mend
    assert "`optional: true`" in caught.value.mend


def test_a_file_that_loads_is_not_said_to_be_broken() -> None:
    unheard_of = change("y = Softmax (x)", "y = Softmax <axis = 7> (x)")
    with pytest.raises(surgeon.VerifyError) as caught:
        surgeon.apply(net(), recipe(unheard_of))
    assert "neither the file as the recipe changes it nor the result loads" in caught.value.what
