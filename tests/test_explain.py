"""`surgeon explain`: what it says of rules, of nodes, and of operators that no rule knows."""

import json
from pathlib import Path

import onnx.parser
import pytest
from command import run
from command_files import refused, save

from surgeon.errors import RecipeError
from surgeon.explaining import find
from surgeon.model import Model

TWICE = "net (float[n,4] x) => (float[n,4] y) {a = Neg (x) b = Neg (a) c = Sin (b) y = Add (c, x)}"
FOREIGN = (
    '<ir_version: 8, opset_import: ["": 17, "org.pytorch.aten": 1]>'
    "net (float[n,4] x) => (float[n,4] y) {{ {nodes} }}"
)


def foreign(path: Path, nodes: str) -> Path:
    onnx.save(onnx.parser.parse_model(FOREIGN.format(nodes=nodes)), path)
    return path


def call(operator: str, given: str, made: str) -> str:
    return f'{made} = org.pytorch.aten.ATen <operator: string = "{operator}"> ({given})'


def test_what_a_recipe_ensures_is_no_reason_to_say_nothing(tmp_path: Path) -> None:
    model = foreign(tmp_path / "m.onnx", call("frobnicate", "x", "y"))
    assert run("apply", "aten", model, tmp_path / "out.onnx").exit_code == 8
    result = run("explain", "aten", model)
    assert result.exit_code == 0, result.output
    line = "aten.frobnicate  1 node: no rule of `aten` is for it. No bundled recipe has one: "
    assert line in result.output
    assert "surgeon recipes new" in result.output
    one = run("explain", "aten", model, "--node", "y")
    assert one.exit_code == 0, one.output
    assert one.output.startswith("node 'y' (aten.frobnicate)\nNo rule of `aten` ends at")
    plain = json.loads(run("explain", "aten", model, "--json").output)
    assert plain["unknown"] == {"aten.frobnicate": {"count": 1, "recipes": []}}


def test_an_operator_that_a_bundled_recipe_knows(tmp_path: Path) -> None:
    model = foreign(tmp_path / "m.onnx", call("relu", "x", "y"))
    result = run("explain", "shape-chains", model)
    assert "no rule of `shape-chains` is for it. `aten-math` and `aten` have one." in result.output


def test_a_refused_operator_says_why(tmp_path: Path) -> None:
    model = foreign(tmp_path / "m.onnx", call("linalg_eig", "x", "y"))
    result = run("explain", "aten", model, "--node", "y")
    assert result.exit_code == 0, result.output
    assert "eigenvalues of any matrix are complex" in result.output


def test_several_recipes(double: Path, tmp_path: Path) -> None:
    model = save(tmp_path / "m.onnx", TWICE)
    result = run("explain", double, "clean", model)
    assert result.exit_code == 0, result.output
    assert "double and clean: 4 nodes -> 2" in result.output
    assert "1 x  double/double-neg" in result.output


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (["m.onnx"], "a recipe is missing"),
        (["r.yaml"], "the model is missing"),
        (["aten", "r.yaml"], "the model `r.yaml` looks like a recipe"),
        (["aten", "m.onnx", "n.onnx"], "`m.onnx` stands where a recipe is wanted"),
    ],
)
def test_wrong_arguments(arguments: list[str], what: str) -> None:
    refused(run("explain", *arguments), 2, what)


def test_bundled_rules_are_named_by_id_and_others_by_place(double: Path, tmp_path: Path) -> None:
    model = save(tmp_path / "m.onnx", "net (float[n,4] x) => (float[n,4] y) {y = Neg (x)}")
    own = run("explain", double, model).output
    assert f"double/double-neg  {double}:4:5" in own
    everything = run("explain", "clean", model, "--all").output
    assert ".yaml" not in everything
    assert "/recipes/" not in everything


def test_only_the_nearest_rules_unless_all_are_asked_for(tmp_path: Path) -> None:
    model = save(tmp_path / "m.onnx", TWICE.replace("Neg", "Exp"))
    few, everything = run("explain", "clean", model).output, run("explain", "clean", model, "--all")
    assert "`--all` shows them" in few
    assert "`--all` shows them" not in everything.output
    assert len(few.splitlines()) < len(everything.output.splitlines()) / 2
    node = run("explain", "clean", model, "--node", "y").output
    assert "rules more: `--all` shows them" in node
    assert len(run("explain", "clean", model, "--node", "y", "--all").output) > len(node)
    plain = json.loads(run("explain", "clean", model, "--json").output)
    assert len({miss["rule"] for miss in plain["misses"]}) >= 15


def test_lines_are_not_wrapped_where_no_terminal_is(tmp_path: Path) -> None:
    name = "a_name_of_a_node_that_is_long" * 3
    body = f"net (float[n,4] x) => (float[n,4] {name}) {{ {name} = Neg (x)}}"
    model = save(tmp_path / "m.onnx", body)
    result = run("explain", "clean", model, "--all")
    assert f"node '{name}' (ai.onnx.Neg)" in result.output


RULE = """\
surgeon: 1
name: r
rules:
  - id: neg-of-split
    why: It is none.
    exact: bit
    match: |
      h = Split (x, _)
      y = Neg (h)
    replace: y = Identity (x)
"""


def test_values_that_differ_are_named(tmp_path: Path) -> None:
    recipe = tmp_path / "r.yaml"
    recipe.write_text(RULE)
    body = (
        "net (float[n,4] x) => (float[n,4] y)"
        "{a = Exp (x) b = Sin (a) c = Neg (a) d = Neg (b) y = Add (c, d)}"
    )
    result = run("explain", recipe, save(tmp_path / "m.onnx", body))
    assert "'...'" not in result.output
    assert "2 x  r/neg-of-split" not in result.output  # the operators differ outside quotes
    heads = "net (float[n,4] x, float[n,4] z) => (float[n,4] y)"
    fed = f"{heads} {{c = Neg (x) d = Neg (z) y = Add (c, d)}}"
    result = run("explain", recipe, save(tmp_path / "m.onnx", fed))
    assert "2 x  r/neg-of-split" in result.output
    assert "`h` ('x' or 'z') is not computed by a node" in result.output


BODY = """net (float[4] x) => (float[4] y) {
    one = Constant <value = float {1.0}> ()
    two = Add (one, one)
    m = Exp (x)
    k = Exp (x)
    s = Identity (m)
    p = Neg (s)
    q = Neg (p)
    r = Add (q, k)
    y = Mul (r, two)
}"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("node", "what"),
    [
        ("one", "It was made an initializer."),
        ("two", "It was folded: what it gives is constant."),
        ("k", "It was merged with node 'm' (ai.onnx.Exp), which computes the same."),
        ("s", "It was dropped: its readers read its input."),
        ("p", "It went with the rule double/double-neg, which replaced node 'q' (Neg)."),
        ("q", "ai.onnx.Neg"),
    ],
)
def test_what_became_of_a_node_that_went(
    node: str, what: str, double: Path, tmp_path: Path
) -> None:
    model = save(tmp_path / "m.onnx", BODY)
    result = run("explain", double, model, "--node", node)
    assert result.exit_code == 0, result.output
    assert what in result.output
    first, *rest = result.output.splitlines()
    assert first.startswith(f"node '{node}' (ai.onnx.")
    assert first.count("node '") == 1
    if node == "q":
        assert "Fired here" in rest
    else:
        plain = json.loads(run("explain", double, model, "--node", node, "--json").output)
        assert plain["gone"] == {node: what.removeprefix("It ").removesuffix(".")}


def test_a_node_is_known_by_any_of_its_outputs(double: Path, tmp_path: Path) -> None:
    body = "net (float[4] x) => (float[2] y) {a, b = Split (x)  c = Neg (b)  y = Add (a, c)}"
    model = save(tmp_path / "m.onnx", body)
    result = run("explain", double, model, "--node", "b")
    assert result.output.startswith(
        "node 'a' (ai.onnx.Split)\nNo rule of `double` ends at `Split`."
    )


def test_names_that_are_none(double: Path, tmp_path: Path) -> None:
    model = save(tmp_path / "m.onnx", TWICE)
    for name in ("Neg_3", "Neg"):
        result = run("explain", double, model, "--node", name)
        refused(result, 2, f"the model has no node `{name}`")
        said = " ".join(result.output.split())
        assert "Say `--node a`: " in said
        assert "the nodes of Neg are `a`, `b`." in said
    refused(run("explain", double, model, "--node", "bb"), 2, "Did you mean `b`?")


def test_nodes_are_found_by_name_and_by_output() -> None:
    text = "g (float[2] x) => (float[2] y) { [first] h = Relu (x)  y = Neg (h) }"
    model = Model(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 17]> {text}'))
    for name in ("first", "h", "node 'first' (ai.onnx.Relu)"):
        assert [asked.label for asked in find(model, name)] == ["node 'first' (ai.onnx.Relu)"]
    assert [asked.label for asked in find(model, "y")] == ["node 'y' (ai.onnx.Neg)"]
    with pytest.raises(RecipeError, match="Did you mean `first`"):
        find(model, "frist")


def test_the_opset_that_a_step_changed(tmp_path: Path) -> None:
    recipe = tmp_path / "older.yaml"
    recipe.write_text("surgeon: 1\nname: older\nsteps:\n  - lower-opset: 16\n")
    model = save(tmp_path / "m.onnx", TWICE)
    out = tmp_path / "out.onnx"
    result = run("apply", recipe, model, out, "--report", tmp_path / "o.json")
    assert result.exit_code == 0, result.output
    assert "  opset 17 -> 16\n" in result.output
    plain = json.loads((tmp_path / "o.json").read_text())
    assert (plain["opset_before"], plain["opset"]) == (17, 16)
    assert "Step 1: lower the opset to 16" in run("recipes", "show", recipe).output
    assert "Step 2: lower the opset to 17" in run("recipes", "show", "opset-17").output


def test_a_step_that_was_left_out_is_told(tmp_path: Path) -> None:
    model = save(
        tmp_path / "m.onnx",
        "net (float[2,4] x) => (float[4] y) {y = ReduceSum <keepdims = 0> (x, axis)}".replace(
            "{y", "<int64[1] axis = {0}> {y"
        ),
    )
    result = run("explain", "any-batch", model)
    assert result.exit_code == 0, result.output
    assert "step `free-batch` was skipped: ReduceSum" in " ".join(result.output.split())
    plain = json.loads(run("explain", "any-batch", model, "--json").output)
    assert plain["failures"][0].startswith("step `free-batch` was skipped: ReduceSum")


def test_a_node_inside_a_pattern_tells_where_the_rule_ends(tmp_path: Path) -> None:
    body = """net (float[4] x) => (float[4] y)
    <float s = {1.4142135}, float o = {1}, float h = {0.5}>
    {d = Div (x, s)  e = Erf (d)  a = Add (e, o)  m = Mul (x, a)  y = Mul (m, h)}"""
    model = save(tmp_path / "m.onnx", body)
    result = run("explain", "gelu-fuse", model, "--node", "e")
    assert result.exit_code == 0, result.output
    lines = [line.strip() for line in result.output.splitlines() if line]
    assert lines[:5] == [
        "node 'e' (ai.onnx.Erf)",
        "No rule of `gelu-fuse` ends at `Erf`.",
        "Rules with such a node inside end further down, and did not fire there",
        "gelu-fuse/gelu-div-half-last  at node 'y' (ai.onnx.Mul)",
        "`Gelu` needs opset 20",
    ]
    plain = json.loads(run("explain", "gelu-fuse", model, "--node", "e", "--json").output)
    assert plain["inside"][0]["rule"] == "gelu-div-half-last"
    other = json.loads(run("explain", "gelu-fuse", model, "--node", "y", "--json").output)
    assert other["inside"] == []


SHADOWED = """\
surgeon: 1
name: never
rules:
  - {id: absent, why: w, exact: bit, match: y = Abs (x), replace: y = Relu (x)}
  - {id: shadowed, why: w, exact: bit, match: y = Neg (x), replace: 'y = Sub (x, x)'}
  - {id: behind, why: w, exact: bit, match: y = Neg (x), replace: y = Abs (x)}
  - {id: of-callers, why: w, exact: bit, match: y = LeakyRelu <*r> (x), replace: y = Elu <*r> (x)}
"""
CALLED = """
<ir_version: 8, opset_import: ["": 17, "loc": 1]>
net (float[n,4] x) => (float[n,4] y) { a = Neg (x)  y = loc.f <slope = 0.5> (a) }
<domain: "loc", opset_import: ["": 17]>
f <slope> (x) => (y) { y = LeakyRelu <alpha: float = @slope> (x) }
"""


def test_every_rule_that_was_tried_nowhere_is_told_of(tmp_path: Path) -> None:
    (tmp_path / "never.yaml").write_text(SHADOWED)
    onnx.save(onnx.parser.parse_model(CALLED), tmp_path / "m.onnx")
    result = run("explain", "--all", tmp_path / "never.yaml", tmp_path / "m.onnx", "--json")
    untried = {each["rule"]: each["reason"] for each in json.loads(result.output)["untried"]}
    assert untried == {
        "absent": "the model has no `Abs`",
        "behind": "`shadowed` fired first where it could begin",
        "of-callers": "its operator stands in a function, whose callers say its attributes",
    }
    shown = run("explain", "--node", "a", tmp_path / "never.yaml", tmp_path / "m.onnx").output
    assert "never/behind" in shown
    shown = run("explain", "--all", tmp_path / "never.yaml", tmp_path / "m.onnx").output
    assert "Tried nowhere" in shown
    assert "of-callers" in shown


def test_of_two_orders_the_one_that_meets_a_node_is_the_nearer(tmp_path: Path) -> None:
    (tmp_path / "r.yaml").write_text(
        "surgeon: 1\nname: r\nrules:\n"
        "  - {id: r, why: w, exact: bit, match: 'm = Mul (x, g); y = Add (m, b)', "
        "replace: y = Abs (x)}\n"
    )
    model = save(
        tmp_path / "m.onnx",
        "net (float[n,4] x, float[4] g, float[4] b) => (float[n,4] y) "
        "{m = Mul (x, g) r = Relu (m) y = Add (r, b)}",
    )
    shown = run("explain", tmp_path / "r.yaml", model).output
    assert "node 'r' (ai.onnx.Relu) is not ai.onnx.Mul" in shown


def test_what_cannot_be_computed_is_where_it_is_computed(tmp_path: Path) -> None:
    (tmp_path / "r.yaml").write_text(
        "surgeon: 1\nname: r\nrules:\n  - id: r\n    why: w\n    exact: bit\n"
        "    match: y = Neg (x)\n    let:\n      size: x.shape[0] * 2\n"
        "    replace: y = Expand (x, @size)\n"
    )
    model = save(tmp_path / "m.onnx", "net (float[n,4] x) => (float[n,4] y) {y = Neg (x)}")
    shown = run("explain", tmp_path / "r.yaml", model, "--json").output
    (miss,) = json.loads(shown)["misses"]
    assert miss["location"].endswith("r.yaml:9:13")
