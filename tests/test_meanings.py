"""What operators of one's own compute, said by functions in ONNX's text: results are compared."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest
from command import run as command

import surgeon
from surgeon.cases import run
from surgeon.meanings import Meanings
from surgeon.runtime import Session

SWIRL = """
<domain: "my.domain", opset_import: ["": {opset}]>
Swirl <slope> (x) => (y) {{ a = LeakyRelu <alpha: float = @slope> (x)  y = {last} }}"""
RECIPE = """
surgeon: 1
name: swirl
functions:
  - |
    <domain: "my.domain", opset_import: ["": 17]>
    Swirl <slope, version> (x) => (y) {{ a = LeakyRelu <alpha: float = @slope> (x)  y = Neg (a) }}
rules:
  - id: {id}
    why: It says what the operator computes.
    exact: bit
    match: {match}
    replace: {replace}
"""
FOR_PLUGIN = RECIPE.format(
    id="to-plugin",
    match="|\n      a = LeakyRelu <alpha = @s> (x)\n      y = Neg (a)",
    replace="y = my.domain.Swirl <slope = @s, version = 1> (x)",
)
FROM_PLUGIN = RECIPE.format(
    id="from-plugin",
    match="y = my.domain.Swirl <slope = @s> (x)",
    replace="|\n      a = LeakyRelu <alpha = @s> (x)\n      y = Neg (a)",
)
STANDARD = """
<ir_version: 8, opset_import: ["": 17]>
g (float[n, 4] x) => (float[n, 4] y) {
  a = LeakyRelu <alpha = 0.25> (x)
  b = Neg (a)
  y = Sin (b)
}"""
CUSTOM = """
<ir_version: 8, opset_import: ["": 17, "my.domain": 1]>
g (float[n, 4] x) => (float[n, 4] y) {
  b = my.domain.Swirl <slope = 0.25> (x)
  y = Sin (b)
}"""


def parsed(text: str) -> onnx.ModelProto:
    return onnx.parser.parse_model(text)


def indented(text: str) -> str:
    return text.replace("\n", "\n      ")


def swirl(opset: int = 17, last: str = "Neg (a)") -> str:
    return SWIRL.format(opset=opset, last=last)


def test_a_plugin_in_the_place_of_a_chain_is_compared() -> None:
    result = surgeon.apply(parsed(STANDARD), surgeon.Recipe.parse(FOR_PLUGIN))
    verdict = result.report.verdict
    assert verdict.status == "runs"  # onnxruntime lacks it, whatever is said of it
    assert "computed as the recipe's functions say, its output agrees" in verdict.detail
    assert verdict.custom_operators == ("my.domain.Swirl",)
    assert dict(result.report.pieces) == {"compared": 1}
    proto = result.model.to_proto()
    assert [node.op_type for node in proto.graph.node] == ["Swirl", "Sin"]
    assert not proto.functions


def test_a_plugin_that_computes_something_else_is_refused() -> None:
    wrong = surgeon.Recipe.parse(FOR_PLUGIN.replace("y = Neg (a) }", "y = Abs (a) }"))
    result = surgeon.apply(parsed(STANDARD), wrong)
    assert not result.model.changed
    assert "differs from what it replaces" in result.report.refusals[0].reason
    with pytest.raises(surgeon.VerifyError, match="is not saved"):
        surgeon.apply(parsed(STANDARD), wrong, check=False)


def test_an_operator_of_ones_own_in_the_original_is_compared() -> None:
    result = surgeon.apply(parsed(CUSTOM), surgeon.Recipe.parse(FROM_PLUGIN))
    assert result.report.verdict.status == "equivalent"
    wrong = surgeon.Recipe.parse(FROM_PLUGIN.replace("y = Neg (a) }", "y = Abs (a) }"))
    assert not surgeon.apply(parsed(CUSTOM), wrong).model.changed


def test_an_attribute_that_a_node_leaves_out_is_what_the_function_says() -> None:
    told = FROM_PLUGIN.replace("Swirl <slope, version>", "Swirl <slope: float = 0.5>")
    silent = parsed(CUSTOM.replace(" <slope = 0.25>", ""))
    result = surgeon.apply(silent, surgeon.Recipe.parse(told))
    assert result.report.verdict.status == "equivalent"
    assert result.model.to_proto().graph.node[0].attribute[0].f == 0.5
    for stated, fires in (("0.5", True), ("0.25", False)):
        asked = surgeon.Recipe.parse(
            told.replace("<slope = @s>", f"<slope = {stated}>").replace("@s>", f"{stated}>")
        )
        assert surgeon.apply(silent, asked).model.changed is fires


def test_a_function_of_fewer_inputs_is_a_mistake_of_the_recipe() -> None:
    more = FROM_PLUGIN.replace("<slope = @s> (x)", "<slope = @s> (x, *more)")
    custom = CUSTOM.replace("<slope = 0.25> (x)", "<slope = 0.25> (x, x)")
    told = r"has 2 inputs, and the function of `my.domain.Swirl` says 1 \(x\)"
    with pytest.raises(surgeon.RecipeError, match=told):
        surgeon.apply(parsed(custom), surgeon.Recipe.parse(more))


def test_two_models_are_compared_by_functions() -> None:
    assert surgeon.verify(parsed(STANDARD), parsed(CUSTOM)).status == "broken"
    found = surgeon.verify(parsed(CUSTOM), parsed(STANDARD), functions=[swirl()])
    assert found.status == "equivalent"
    found = surgeon.verify(parsed(CUSTOM), parsed(STANDARD), functions=[swirl(last="Abs (a)")])
    assert found.status == "differs"


@pytest.mark.slow
def test_the_command_takes_them_from_a_recipe(tmp_path: Path) -> None:
    (tmp_path / "swirl.yaml").write_text(FOR_PLUGIN)
    for name, text in (("a", STANDARD), ("b", CUSTOM)):
        onnx.save(parsed(text), str(tmp_path / f"{name}.onnx"))
    models = (tmp_path / "a.onnx", tmp_path / "b.onnx")
    assert command("verify", *models).exit_code == 3
    done = command("verify", *models, "--recipe", tmp_path / "swirl.yaml")
    assert done.exit_code == 0, done.output
    assert "computed as the recipe's functions say" in " ".join(done.output.split())


def test_where_two_models_part_is_found_by_functions_too(tmp_path: Path) -> None:
    (tmp_path / "swirl.yaml").write_text(FOR_PLUGIN)
    wrong = CUSTOM.replace("y = Sin (b)", "y = Cos (b)")
    for name, text in (("a", STANDARD), ("b", wrong)):
        onnx.save(parsed(text), str(tmp_path / f"{name}.onnx"))
    models = (tmp_path / "a.onnx", tmp_path / "b.onnx")
    done = command("verify", *models, "--bisect", "--recipe", tmp_path / "swirl.yaml", "--json")
    assert done.exit_code == 3
    parting = json.loads(done.output)["parting"]
    assert parting["differs"]["name"] == "y"
    assert parting["agrees"] == ["b"]


def test_cases_of_such_rules_have_numbers(tmp_path: Path) -> None:
    cases = f"""
cases:
  - case: a plugin
    fires: to-plugin
    before: |{indented(STANDARD)}

  - case: something else
    refuses: {{rule: to-plugin, because: is not ai.onnx.LeakyRelu}}
    before: |{indented(STANDARD.replace("LeakyRelu <alpha = 0.25>", "Relu"))}
"""
    for text, holds in (
        (FOR_PLUGIN, True),
        (FOR_PLUGIN.replace("= Neg (a) }", "= Abs (a) }"), False),
    ):
        (tmp_path / "swirl.yaml").write_text(text)
        (tmp_path / "swirl.cases.yaml").write_text(cases)
        assert run([tmp_path / "swirl.yaml"]).ok is holds


def test_a_function_holds_where_its_operators_mean_the_same() -> None:
    """Softmax of one axis from opset 13 on, of all behind it before."""
    text = (
        '<domain: "my.domain", opset_import: ["": {}]>\n'
        "Swirl (x) => (y) {{ y = Softmax <axis = 1> (x) }}"
    )
    of = {
        opset: parsed(
            f"""
            <ir_version: 8, opset_import: ["": {opset}, "my.domain": 1]>
            g (float[2, 3, 4] x) => (float[2, 3, 4] y) {{ y = my.domain.Swirl (x) }}
            """
        )
        for opset in (11, 13, 17)
    }
    newer = Meanings([text.format(13)])
    assert newer.of(of[13]) == newer.of(of[17]) == ["my.domain.Swirl"]
    assert newer.of(of[11]) == []
    assert newer.told(of[11]) is of[11]
    both = Meanings([text.format(11), text.format(13)])
    x = np.random.default_rng(0).normal(size=(2, 3, 4)).astype(np.float32)
    for opset, axes in ((11, (1, 2)), (17, (1,))):
        [y] = Session(both.told(of[opset])).run({"x": x}).values()
        np.testing.assert_allclose(y.sum(axes), 1, rtol=1e-6)


def test_a_function_for_another_opset_is_named(tmp_path: Path) -> None:
    """LeakyRelu has another version from opset 16 on."""
    said = (
        "the function of `my.domain.Swirl` is written for opset 13, and LeakyRelu has another "
        "version at 17: give one for 17"
    )
    assert Meanings([swirl(13)]).unsuited(parsed(CUSTOM)) == [said]
    assert Meanings([swirl(13), swirl(17)]).unsuited(parsed(CUSTOM)) == []
    assert Meanings([swirl(13)]).unsuited(parsed(STANDARD)) == []
    for model, text in ((STANDARD, FOR_PLUGIN), (CUSTOM, FROM_PLUGIN)):
        recipe = surgeon.Recipe.parse(text.replace('["": 17]', '["": 13]'))
        verdict = surgeon.apply(parsed(model), recipe).report.verdict
        assert verdict.status == "runs"
        assert said in [each.why for each in verdict.not_compared]
    (tmp_path / "swirl.yaml").write_text(FOR_PLUGIN.replace('["": 17]', '["": 13]'))
    (tmp_path / "swirl.cases.yaml").write_text(
        f"""
cases:
  - case: a plugin
    fires: to-plugin
    before: |{indented(STANDARD)}
    after: |{indented(CUSTOM.replace("0.25>", "0.25, version = 1>"))}
"""
    )
    problems = [p for o in run([tmp_path / "swirl.yaml"]).outcomes for p in o.problems]
    assert any(f"Unchecked: {said}" in str(each) for each in problems)


def test_functions_may_call_one_another_and_stand_in_bodies() -> None:
    inner = swirl(last="Neg (a)")
    outer = (
        '<domain: "my.domain", opset_import: ["": 17, "my.domain": 1]>\n'
        "Twice (x) => (y) { a = my.domain.Swirl <slope = 0.5> (x)\n"
        "y = my.domain.Swirl <slope = 0.5> (a) }"
    )
    model = parsed(
        """
        <ir_version: 8, opset_import: ["": 17, "my.domain": 1]>
        g (float[4] x, bool go) => (float[4] y) {
          y = If (go) <
            then_branch = t () => (float[4] p) { p = my.domain.Twice (x) },
            else_branch = e () => (float[4] p) { p = Identity (x) }
          >
        }"""
    )
    told = Meanings([inner, outer]).told(model)
    x = np.float32([1, -2, 3, -4])
    [y] = Session(told).run({"x": x, "go": np.asarray(True)}).values()
    once = -np.where(x < 0, x * 0.5, x)
    np.testing.assert_array_equal(y, -np.where(once < 0, once * 0.5, once))


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("nonsense", "this is no function of ONNX"),
        ('<domain: "my", opset_import: ["": 17]> F (x) => (y) { y = Sinn (x) }', "Sinn"),
        ('<domain: "", opset_import: ["": 17]> Abs (x) => (y) { y = Sin (x) }', "of ONNX's own"),
    ],
)
def test_what_is_no_function_is_refused_with_its_place(text: str, what: str) -> None:
    recipe = FOR_PLUGIN.replace("  - |\n", f"  - '{text}'\n  - |\n", 1)
    with pytest.raises(surgeon.RecipeError) as error:
        surgeon.Recipe.parse(recipe)
    assert what in error.value.what
    assert str(error.value.where).startswith("<text>:5:")


BEHIND = """
surgeon: 1
name: behind
custom: [my.domain.Halves]
functions:
  - |
    <domain: "my.domain", opset_import: ["": 17]>
    Halves (x, table) => (y, size) {{
      two = Constant <value = int64[2] {{2, -1}}> ()
      z = MatMul (x, table)
      y = Reshape (z, two)
      size = Shape (z)
    }}
rules:
  - id: rank-is-known
    why: What is behind the operator has the shape that its function says.
    exact: bit
    match: y = Abs (h)
    where: [h.maker == 'my.domain.Halves', "h.shape[0] == {rows}", h.dtype == float32]
    replace: |
      n = Neg (h)
      y = Abs (n)
"""


@pytest.mark.parametrize("opset", [16, 17])
@pytest.mark.parametrize("rows", [2, 3])
def test_what_is_behind_an_operator_has_the_shape_that_its_function_says(
    opset: int, rows: int
) -> None:
    model = onnx.parser.parse_model(f"""
    <ir_version: 8, opset_import: ["": {opset}, "my.domain": 1]>
    g (float[n, 4] x) => (float[p, q] y, int64[2] size)
    <float[4, 2] t = {{1, 2, 3, 4, 5, 6, 7, 8}}> {{
      h, size = my.domain.Halves (x, t)
      y = Abs (h)
    }}""")
    recipe = surgeon.Recipe.parse(BEHIND.format(rows=rows))
    result = surgeon.apply(model, recipe)
    assert result.report.fired == ({"behind/rank-is-known": 1} if rows == 2 else {})


HOMELESS = """
<ir_version: 8, opset_import: ["": 17]>
g (float[n, 4] x) => (float[m, k] y) <int64[1] one = {1}, int64[1] rest = {-1}> {
  b = Swirl <slope = 0.25> (x)
  shape = Shape (b)
  k = Gather <axis = 0> (shape, one)
  to = Concat <axis = 0> (rest, k)
  c = Reshape (b, to)
  y = Sin (c)
}"""


def test_an_operator_may_have_no_domain() -> None:
    """Plugins of TensorRT have none."""
    text = FROM_PLUGIN.replace("my.domain.", "").replace('domain: "my.domain"', 'domain: ""')
    found = surgeon.apply(parsed(HOMELESS), surgeon.Recipe.parse(text))
    assert found.report.pieces == {"compared": 1}
    assert found.report.status == "equivalent"
    assert [node.op_type for node in found.model.to_proto().graph.node][:2] == ["LeakyRelu", "Neg"]
    wrong = text.replace("Neg (a)\n", "Abs (a)\n", 1)
    assert wrong != text
    found = surgeon.apply(parsed(HOMELESS), surgeon.Recipe.parse(wrong))
    assert found.report.refusals


@pytest.mark.parametrize(
    "said",
    [
        "custom: [Swirl]\nsame_shape: [Swirl]",
        'functions:\n  - \'<domain: "", opset_import: ["": 17]> '
        "Swirl <slope> (x) => (y) { y = LeakyRelu <alpha: float = @slope> (x) }'",
    ],
)
def test_shapes_behind_it_are_known_where_a_recipe_says_them(said: str) -> None:
    recipe = surgeon.Recipe.parse(f"surgeon: 1\nname: mine\n{said}\nsteps:\n  - use: clean\n")
    found = surgeon.apply(parsed(HOMELESS), recipe)
    assert [node.op_type for node in found.model.to_proto().graph.node] == ["Swirl", "Sin"]
    assert found.report.remarks == ()
    (remark,) = surgeon.apply(parsed(HOMELESS), "clean").report.remarks[:1]
    assert remark.startswith("no shape is known behind `Swirl`: a recipe that says what an op")
