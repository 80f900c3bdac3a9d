"""`apply`: gates, options, steps, misses and the report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from surgeries import F32, GUARDED, MODEL, NEG, fired, recipe
from truth import model_of, parse

import surgeon
from surgeon import provenance
from surgeon.errors import RecipeError, VerifyError
from surgeon.model import Model
from surgeon.recipe import Recipe
from surgeon.runtime import Session

# ------------------------------------------------------------------------------------------- gates


def test_approximate_rules_fire_where_they_are_allowed() -> None:
    rough = recipe(
        "exact: approximate\nmatch: y = Neg (x)\nreplace: y = Sub (@z, x)\n"
        "let:\n  z: const(0, like=x)"
    )
    result = surgeon.apply(MODEL, rough, verify=False)
    assert result.report.changes == ()
    (miss,) = result.report.misses
    assert miss.reason == "it is approximate; allow it with `--allow approximate`"
    assert fired(MODEL, rough, allow=["approximate"]) == 1


def test_a_recipe_that_waits_to_be_allowed_is_told() -> None:
    """It has done nothing of what was asked for, which a script has to notice."""
    rough = recipe("exact: approximate\nmatch: y = Neg (x)\nreplace: y = Relu (x)")
    report = surgeon.apply(MODEL, rough, verify=False).report
    said = "1 rewrite would be tried with `--allow approximate`: `r/one`"
    assert (report.failures, report.remarks) == ((said,), ())
    with pytest.raises(VerifyError, match='allow="approximate"'):
        surgeon.apply(MODEL, rough, verify=False, strict=True)


def test_contracts_fire_where_recipe_or_user_allow_them() -> None:
    text = (
        'exact: bit\ncontract: "It holds for every batch."\nmatch: y = Neg (x)\n'
        "replace: y = Sub (@z, x)\nlet:\n  z: const(0, like=x)"
    )
    result = surgeon.apply(MODEL, recipe(text), verify=False)
    (miss,) = result.report.misses
    assert miss.reason == (
        "it changes what the model promises (It holds for every batch.); allow it with "
        "`--allow contract`"
    )
    allowed = surgeon.apply(MODEL, recipe(text), allow=["contract"], verify=False)
    assert allowed.report.contracts == ("It holds for every batch.",)
    assert fired(MODEL, recipe(text, "allow: [contract]\n")) == 1
    other = recipe("exact: bit\nmatch: y = Sin (x)\nreplace: y = Cos (x)", "allow: [contract]\n")
    assert fired(MODEL, other, recipe(text)) == 0, "another recipe's allowance is not its own"


# ------------------------------------------------------------------------------ misses and reports


def test_a_miss_says_where_and_why() -> None:
    result = surgeon.apply(MODEL, GUARDED)
    (miss,) = result.report.misses
    assert (miss.rule, miss.recipe, miss.matched, miss.total) == ("one", "r", 1, 1)
    assert miss.node == "node 'a' (ai.onnx.Neg)"
    assert miss.location == "<text>:9:9"
    assert "`x.shape[1] % 32 == 0`" in miss.reason
    assert "t" in miss.reason
    assert str(miss) == f"node 'a' (ai.onnx.Neg): matched 1 of 1 nodes; {miss.reason}"
    assert result.report.verdict is None
    assert not result.model.changed


def test_far_misses_are_recorded_when_asked() -> None:
    pair = recipe("exact: bit\nmatch: |\n  a = Exp (x)\n  y = Relu (a)\nreplace: y = Exp (x)")
    assert surgeon.apply(MODEL, pair).report.misses == ()
    (miss,) = surgeon.apply(MODEL, pair, every_miss=True).report.misses
    assert (miss.matched, miss.total) == (1, 2)
    assert miss.reason == "node 'a' (ai.onnx.Neg) is not ai.onnx.Exp"


def test_a_report_goes_through_json() -> None:
    result = surgeon.apply(MODEL, NEG, GUARDED)
    plain = json.loads(result.report.to_json())
    assert plain == json.loads(json.dumps(result.report.to_dict(), default=str))
    assert plain["recipes"] == ["r", "r"]
    assert plain["before"] == {"Neg": 1, "Relu": 1}
    assert plain["after"] == {"Sub": 1, "Relu": 1} == {**result.report.after}
    (change,) = plain["changes"]
    assert change["rule"] == "one"
    assert change["before"] == ["Neg"]
    assert change["after"] == ["Sub"]
    assert change["location"].startswith("<text>:")
    assert plain["verdict"]["status"] == "equivalent"
    assert set(plain["seconds"]) >= {"load", "import", "sweep", "verify"}


def test_what_was_done_is_stamped_on_the_model() -> None:
    out = surgeon.apply(MODEL, NEG, assume=["t >= 2"]).model.to_proto()
    (made,) = provenance.history(out.metadata_props) or ()
    assert made["rules"] == {"r/one": 1}
    assert made["assumptions"] == ["t >= 2"]
    assert [each["name"] for each in made["recipes"]] == ["r"]


def test_names_are_new_also_where_the_file_has_them() -> None:
    proto = model_of("float[b,t] x", 'a = Neg (x) "y/Sub" = Abs (a) y = Neg ("y/Sub")', "y")
    out = surgeon.apply(proto, NEG).model.to_proto()
    made = [name for node in out.graph.node for name in node.output]
    made += [node.name for node in out.graph.node if node.name]
    made += [t.name for t in out.graph.initializer]
    assert len(set(made)) == len(made)


# ----------------------------------------------------------------------------- shapes, assumptions


def test_a_shape_decides_a_condition() -> None:
    assert fired(MODEL, GUARDED) == 0
    assert fired(MODEL, GUARDED, shape={"x": (1, 64)}) == 1
    assert fired(MODEL, GUARDED, shape={"x": (1, 65)}) == 0
    assert fired(MODEL, GUARDED, shape={"x": ("b", "t")}) == 0


def test_an_assumption_decides_a_condition_and_is_reported() -> None:
    result = surgeon.apply(MODEL, GUARDED, assume=["t % 32 == 0"])
    assert result.report.fired.total() == 1
    assert result.report.assumptions == ("t % 32 == 0",)
    assert result.report.verdict is not None
    sizes = {c.sizes["t"] for c in result.report.verdict.comparisons}
    assert sizes
    assert all(size % 32 == 0 for size in sizes)


def test_dimensions_that_are_assumed_equal_are_compared_at_equal_sizes() -> None:
    swap = recipe(
        "exact: bit\nmatch: |\n  a = Relu (x)\n  y = Shape (a)\n"
        "where:\n  - x.shape[0] == x.shape[1]\n"
        "replace: |\n  t = Transpose <perm = [1, 0]> (x)\n  y = Shape (t)"
    )
    proto = model_of("float[h,w] x", "a = Relu (x) y = Shape (a) q = Neg (a)", "y q")
    assert fired(proto, swap) == 0
    result = surgeon.apply(proto, swap, assume=["h == w"])
    assert result.report.fired.total() == 1
    assert result.report.verdict is not None
    assert result.report.verdict.status == "equivalent"


# -------------------------------------------------------------------------------- steps and others


def test_steps_in_their_order() -> None:
    steps = Recipe.parse(
        """
        surgeon: 1
        name: steps
        steps:
          - rules:
              - id: neg
                why: Because.
                exact: bit
                match: y = Neg (x)
                replace: y = Sub (@zero, x)
                let:
                  zero: const(0, like=x)
          - fold:
          - raise-opset: 18
        """
    )
    proto = model_of(
        "float[b,t] x", "a = Neg (x) m = ReduceMean <axes = [1]> (a) y = Relu (m)", "y"
    )
    result = surgeon.apply(proto, steps)
    assert result.report.opset == 18
    out = result.model.to_proto()
    assert out.opset_import[0].version == 18
    assert result.report.verdict is not None
    assert result.report.verdict.status == "equivalent"
    onnx.checker.check_model(out)


@pytest.mark.parametrize(
    ("rule", "body", "opset"),
    [
        ("aten.relu (x)", 'y = org.pytorch.aten.ATen <operator = "relu"> (x)', 18),
        ("aten.relu (x)", "y = Relu (x)", 17),
        ("Relu (x)", "y = Relu (x)", 18),
        ("Relu (x)", "y = Neg (x)", 17),
    ],
)
def test_the_opset_is_raised_for_rules_that_have_something_to_do(
    rule: str, body: str, opset: int
) -> None:
    written = f"{{id: r, why: A., exact: bit, match: y = {rule}, replace: y = Abs (x)}}"
    text = f"surgeon: 1\nname: s\nsteps:\n  - raise-opset: 18\n  - rules: [{written}]\n"
    steps = Recipe.parse(text)
    proto = parse(f"g (float[b] x) => (float[b] y) {{ {body} }}", domains=', "org.pytorch.aten": 1')
    result = surgeon.apply(proto, steps, verify=False, check=False)
    assert result.model.to_proto().opset_import[0].version == opset


@pytest.mark.slow
def test_onnxsim_is_a_step() -> None:
    simplify = Recipe.parse("surgeon: 1\nname: s\nsteps:\n  - simplify: onnxsim\n")
    proto = parse(
        "g (float[2,3] x) => (float[3,2] y) "
        "{ s = Shape (x) a = Transpose (x) b = Identity (a) y = Relu (b) }"
    )
    result = surgeon.apply(proto, simplify)
    assert result.report.after == {"Transpose": 1, "Relu": 1}


def test_a_step_that_fails_is_a_remark() -> None:
    raised = Recipe.parse("surgeon: 1\nname: s\nsteps:\n  - raise-opset: 18\n")
    proto = parse("g (float[b] x) => (float[b] y) { y = my.Op (x) }", domains=', "my": 1')
    proto.graph.node[0].domain = "my"
    result = surgeon.apply(proto, raised, verify=False)
    assert result.model.to_proto().opset_import
    for failure in result.report.failures:
        assert failure.startswith("step `raise-opset` was skipped: ")


def test_an_opset_that_aten_nodes_stand_in_front_of_names_the_recipe() -> None:
    """Old exports have them among ONNX's own, where the version converter looks them up."""
    proto = parse('g (float[b] x) => (float[b] y) { y = ATen <operator = "relu"> (x) }')
    with pytest.raises(VerifyError, match=r"does not know `aten\.relu`") as raised:
        surgeon.apply(proto, "clean", opset=18, verify=False)
    assert raised.value.mend.startswith("Put `aten` in front")
    assert surgeon.apply(proto, "aten", opset=18, verify=False).model.opset == 18


def test_a_rule_that_raises_is_a_failure() -> None:
    @surgeon.rule(match="y = Neg (x)", why="It divides by nothing.", exact="bit")
    def broken(build: object, match: object) -> object:
        return 1 / 0

    (failure,) = surgeon.apply(MODEL, broken).report.failures
    assert "rule `broken`" in failure
    assert "ZeroDivisionError" in failure


def test_a_rule_may_give_what_the_node_has_of_the_outputs_that_it_names() -> None:
    @surgeon.rule(match="y, i = MaxPool <*pool> (x)", why="It is the same.", exact="bit")
    def pooled(build: Any, match: Any) -> Any:
        shape = match.root.attrs["kernel_shape"]
        if len(match.root.outputs) == 1:
            return build.op("MaxPool", match.values["x"], kernel_shape=shape, strides=[1, 1])
        return build.op("MaxPool", match.values["x"], outputs=2, kernel_shape=shape)

    body = "{ y = MaxPool <kernel_shape = [2, 2]> (x) }"
    one = parse(f"g (float[1,1,4,4] x) => (float[1,1,3,3] y) {body}")
    report = surgeon.apply(one, pooled).report
    assert (report.failures, dict(report.fired)) == ((), {"test_surgery/pooled": 1})


def test_the_text_of_a_recipe_is_no_name() -> None:
    text = "surgeon: 1\nname: mine\nsteps:\n  - use: clean\n"
    with pytest.raises(RecipeError) as caught:
        surgeon.apply(MODEL, text)
    assert "Recipe.parse" in caught.value.mend
    assert surgeon.apply(MODEL, Recipe.parse(text)).report.status


def test_no_recipe_changes_nothing(tmp_path: Path) -> None:
    result = surgeon.apply(MODEL)
    assert not result.model.changed
    assert result.model.to_proto() == MODEL
    tidy = model_of("float[b] x", "a = Identity (x) y = Relu (a)", "y")
    assert not surgeon.apply(tidy, NEG).model.changed, "tidying alone is no change"


def test_what_an_earlier_recipe_tidied_counts_where_a_later_one_says_so() -> None:
    untidy = model_of("float[b] x", "a = Identity (x) y = Relu (a)", "y")
    rule = "exact: bit\nmatch: y = Abs (x)\nreplace: y = Relu (x)"
    for recipes in ((recipe(rule, "tidy: true\n"),), (NEG, recipe(rule, "tidy: true\n"))):
        result = surgeon.apply(untidy, *recipes)
        assert result.model.changed
        assert result.report.after == {"Relu": 1}


def test_an_operator_of_constants_is_gone_where_a_recipe_is_about_it() -> None:
    model = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["": 17]>
        g (float[N,3] x) => (float[N,3] y) <float[3] c = {1, 2, 3}, int64 axis = {0}> {
            s = CumSum (c, axis)
            t = Add (s, c)
            y = Mul (x, t)
        }""")
    result = surgeon.apply(model, "cumsum-to-matmul")
    assert result.model.changed
    assert {node.op for node in result.model.graph.nodes} == {"Mul"}
    assert not surgeon.apply(model, "einsum-to-matmul").model.changed, "it has none"
    sums = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["": 17]>
        g (float[N,3] x) => (float[N,3] y) <float[3] c = {1, 2, 3}> {
            t = Add (c, c)
            y = Mul (x, t)
        }""")
    assert not surgeon.apply(sums, "mask-forms").model.changed


def test_models_and_recipes_in_every_form(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    onnx.save(MODEL, path)
    text = tmp_path / "r.yaml"
    text.write_text(
        "surgeon: 1\nname: r\nrules:\n  - id: one\n    why: Because.\n    exact: bit\n"
        "    match: y = Neg (x)\n    replace: y = Sub (@z, x)\n    let:\n      z: const(0, "
        "like=x)\n"
    )
    for model in (path, str(path), Model.load(path), MODEL):
        for plan in (text, str(text), Recipe.load(text), Recipe.load(text).rules[0]):
            assert fired(model, plan) == 1
    with pytest.raises(RecipeError) as caught:
        surgeon.apply(MODEL, 7)
    assert caught.value.what == "`int` is no recipe"


def test_a_result_that_differs_is_not_given_away() -> None:
    wrong = recipe("exact: approximate\nmatch: y = Neg (x)\nreplace: y = Abs (x)")
    with pytest.raises(VerifyError) as caught:
        surgeon.apply(MODEL, wrong, allow=["approximate"])
    assert caught.value.exit_code == 3
    assert caught.value.report.verdict.status == "differs"  # type: ignore[attr-defined]
    assert "the result is not saved" in caught.value.what


def test_the_shape_behind_an_operator_of_ones_own_is_what_the_recipe_promises() -> None:
    model = model_of("float[b,3] x, float[5] z", "h = my.Op (x, z) y = Neg (h)", "y")
    model.opset_import.append(onnx.helper.make_opsetid("my", 1))
    rule = (
        'exact: bit\nmatch: y = Neg (x)\nwhere: ["x.shape[1] == 3 and x.rank == 2"]\n'
        "replace: y = Sub (@zero, x)\nlet:\n  zero: const(0, like=x)"
    )
    assert fired(model, recipe(rule, head="custom: [my.Op]\n")) == 0
    promised = recipe(rule, head="custom: [my.Op]\nsame_shape: [my.Op]\n")
    assert fired(model, promised) == 1
    assert (
        fired(
            model,
            recipe(rule.replace("== 3", "== 5"), head="same_shape: [my.Op]\ncustom: [my.Op]\n"),
        )
        == 0
    )


@pytest.mark.parametrize(
    ("body", "opset"), [("Upsample (x, s)", 11), ("Slice <starts = [1], ends = [2]> (x)", 9)]
)
def test_the_opset_is_raised_for_an_operator_that_it_lacks(body: str, opset: int) -> None:
    """As `upsample-to-resize` is for, also in front of rules that are about other operators."""
    rule = "{id: r, why: A., exact: bit, match: y = Neg (x), replace: y = Abs (x)}"
    steps = Recipe.parse(f"surgeon: 1\nname: s\nsteps: [raise-opset: 11, rules: [{rule}]]\n")
    scales = {"s": np.array([1, 1, 2], F32)} if opset == 11 else {}
    model = model_of("float[1,2,5] x", f"y = {body}", "y", opset=9, constants=scales)
    assert surgeon.apply(model, steps).model.opset == opset


def test_a_raised_upsample_keeps_its_coordinates() -> None:
    raise_to_11 = Recipe.parse("surgeon: 1\nname: r\nsteps:\n  - raise-opset: 11\n")
    scales = {"s": np.array([1, 1, 1.5], F32)}
    for mode in ("nearest", "linear"):
        body = f'y = Upsample <mode = "{mode}"> (x, s)'
        model = model_of("float[1,2,5] x", body, "y", opset=9, constants=scales)
        result = surgeon.apply(model, raise_to_11)
        assert result.model.opset == 11
        assert result.report.verdict is not None
        assert result.report.verdict.status == "equivalent"
    body = 'y = Upsample <mode = "linear"> (x, s)'
    smaller = model_of("float[1,2,5] x", body, "y", opset=9, constants={"s": scales["s"] / 2})
    result = surgeon.apply(smaller, raise_to_11, verify=False)
    assert not result.model.changed
    (remark,) = result.report.failures
    assert remark == (
        "step `raise-opset` was skipped: an Upsample has the scale 0.5, and below 1 it means "
        "nothing"
    )


@pytest.mark.parametrize(("opset", "version"), [(18, 8), (19, 9), (21, 10), (23, 11)])
def test_a_raised_model_has_the_format_that_came_with_its_opset(opset: int, version: int) -> None:
    model = model_of("float[n] x", "a = Relu (x) y = Neg (a)", "y", opset=17)
    model.ir_version = 7
    result = surgeon.apply(model, "clean", opset=opset)
    assert result.model.to_proto().ir_version == version
    model.ir_version = 13
    assert surgeon.apply(model, "clean", opset=opset).model.to_proto().ir_version == version


@pytest.mark.parametrize("scales", [(1, 0.6, 0.7), (1, 0.5, 0.3), (1, 1.5, 2.5), (1, 0.5, 2.5)])
def test_a_raised_resize_takes_the_elements_that_it_took(scales: tuple[float, ...]) -> None:
    """Of opset 10: the one behind where an axis shrinks, the one before where it grows."""
    model = model_of(
        "float[1,7,9] x", "y = Resize (x, s)", "y", opset=10, constants={"s": np.array(scales, F32)}
    )
    result = surgeon.apply(model, opset=13)
    assert result.model.opset == 13
    assert result.report.verdict is not None
    assert result.report.verdict.status == "equivalent"


def test_a_resize_that_shrinks_and_grows_has_no_word_at_newer_opsets() -> None:
    scales = {"s": np.array([1, 0.6, 2.5], F32)}
    model = model_of("float[1,7,9] x", "y = Resize (x, s)", "y", opset=10, constants=scales)
    with pytest.raises(VerifyError, match="the element before along an axis that grows"):
        surgeon.apply(model, opset=13, verify=False)


def test_functions_are_not_lost_where_an_opset_is_raised() -> None:
    """The converter leaves them out, and a file that calls what is nowhere was saved."""
    text = """<ir_version: 8, opset_import: ["": 13, "mine": 1]>
    g (float[N,4] x) => (float[N,4] y) { y = mine.Twice (x) }
    <domain: "mine", opset_import: ["": 13]> Twice (x) => (y) { y = Add (x, x) }"""
    result = surgeon.apply(onnx.parser.parse_model(text), opset=18)
    assert [node.op for node in result.model.graph.nodes] == ["Add"]
    kernel = onnx.parser.parse_model(text.replace("mine", "com.microsoft.mine"))
    left = "functions that could not be written out: `com.microsoft.mine.Twice`"
    with pytest.raises(VerifyError, match=left):
        surgeon.apply(kernel, opset=18)


def test_what_means_something_else_at_a_newer_opset_is_named() -> None:
    """The converter says nothing of either."""
    scan = """<ir_version: 4, opset_import: ["": 8]>
    g (float[1,4,2] x, float[1,2] z) => (float[1,2] y) { y = Scan <num_scan_inputs = 1,
      body = b (float[2] u, float[2] e) => (float[2] o) { o = Add (u, e) }> (, z, x) }"""
    groups = """<ir_version: 8, opset_import: ["": 18]>
    g (float[n,4,5] x) => (float[n,4,5] y) <float[2] s = {1, 2}, float[2] b = {0, 1}>
      { y = GroupNormalization <num_groups = 2> (x, s, b) }"""
    for text, opset, reason in (
        (scan, 13, "a Scan is along a batch too, and from opset 9 on along none"),
        (groups, 21, "a GroupNormalization has a scale for each group, and from opset 21 on"),
    ):
        with pytest.raises(VerifyError, match=reason):
            surgeon.apply(onnx.parser.parse_model(text), opset=opset)
    spelled = onnx.parser.parse_model(groups)
    result = surgeon.apply(spelled, "group-norm-decompose", opset=21)
    assert result.model.opset == 21
    assert result.report.verdict is not None
    assert result.report.verdict.status == "equivalent"


def test_a_hardmax_of_several_axes_is_not_raised_to_one_of_one() -> None:
    raise_to_13 = Recipe.parse("surgeon: 1\nname: r\nsteps:\n  - raise-opset: 13\n")
    several = model_of("float[2,3,4] x", "y = Hardmax (x)", "y", opset=11)
    result = surgeon.apply(several, raise_to_13, verify=False)
    assert not result.model.changed
    assert "a Hardmax is along its axis 1 and those behind" in result.report.failures[0]
    for inputs, attribute in (("float[2,4] x", ""), ("float[2,3,4] x", "<axis = -1>")):
        last = model_of(inputs, f"y = Hardmax {attribute} (x)", "y", opset=11)
        raised = surgeon.apply(last, raise_to_13)
        assert raised.model.opset == 13
        assert raised.report.verdict is not None
        assert raised.report.verdict.status == "equivalent"


@pytest.mark.parametrize("kind", ["float16", "double"])
def test_numbers_that_were_attributes_are_of_the_type_that_they_are_for(kind: str) -> None:
    raise_to_13 = Recipe.parse("surgeon: 1\nname: r\nsteps:\n  - raise-opset: 13\n")
    bodies = ["n = Neg (x) y = Pad <pads = [0, 1, 0, 1], value = 2.0> (n)"]
    if kind == "float16":  # onnxruntime has no Clip of doubles at opset 9
        bodies.append("n = Neg (x) c = Clip <min = -0.5, max = 0.5> (n) y = Neg (c)")
    for body in bodies:
        model = model_of(f"{kind}[2,5] x", body, "y", opset=9)
        raised = surgeon.apply(model, raise_to_13)
        assert raised.report.verdict is not None
        assert raised.report.verdict.status == "equivalent"


def test_an_opset_is_not_lowered() -> None:
    lower = Recipe.parse("surgeon: 1\nname: r\nsteps:\n  - raise-opset: 13\n")
    result = surgeon.apply(MODEL, lower, verify=False)
    assert not result.model.changed
    assert not result.report.failures  # it is there


ROUGHLY = (
    "exact: approximate\n{bound}match: y = Neg (x)\nreplace: |\n  n = Mul (x, @almost)\n"
    "  y = Sub (@zero, n)\nlet:\n  almost: const(1.01, like=x)\n  zero: const(0, like=x)"
)


def test_a_bound_allows_the_whole_model_what_its_rules_may_make() -> None:
    model = model_of("float[b,t] x", "a = Neg (x) b = Relu (a) c = Neg (b) y = Sigmoid (c)", "y")
    with pytest.raises(VerifyError) as caught:
        surgeon.apply(model, recipe(ROUGHLY.format(bound="")), allow=["approximate"])
    assert "how large an error may be (`bound: 0.01`)" in caught.value.mend
    rough = recipe(ROUGHLY.format(bound="bound: 0.02\n"))
    result = surgeon.apply(model, rough, allow=["approximate"])
    assert result.report.fired.total() == 2
    assert result.report.verdict is not None
    (check,) = result.report.verdict.comparisons[0].outputs
    assert check.tolerance == pytest.approx(0.04), "what two rewrites may make"
    assert 1e-4 < check.max_relative < 0.04


def test_a_rewrite_beyond_its_bound_is_refused() -> None:
    rough = recipe(ROUGHLY.format(bound="bound: 0.001\n"))
    result = surgeon.apply(MODEL, rough, allow=["approximate"])
    assert result.report.changes == ()
    (miss,) = result.report.misses
    assert "of spread (allowed 0.001)" in miss.reason


def test_a_rule_that_needs_a_newer_opset_says_which() -> None:
    gelu = recipe("exact: bit\nmatch: y = Neg (x)\nreplace: y = Gelu (x)")
    (miss,) = surgeon.apply(MODEL, gelu).report.misses
    assert "`Gelu` needs opset 20" in miss.reason or "opset 20" in miss.reason


def test_a_body_and_its_outer_names_run_after_all() -> None:
    """What a person does with the result: save, load, run."""
    result = surgeon.apply(MODEL, NEG)
    x = np.array([[1, -2]], F32)
    np.testing.assert_array_equal(
        Session(result.model.to_proto()).run({"x": x})["y"], Session(MODEL).run({"x": x})["y"]
    )


@pytest.mark.slow
def test_what_dynamic_sizes_cost_is_said() -> None:
    model = onnx.parser.parse_model(
        """
        <ir_version: 8, opset_import: ["": 17, "org.pytorch.aten": 1]>
        g (float[N,3,H,W] x) => (float[N,3,6,6] y) <int64[2] size = {6, 6}> {
          y = org.pytorch.aten.adaptive_avg_pool2d (x, size)
        }
        """
    )
    (said,) = surgeon.apply(model, "aten").report.remarks
    assert said.endswith("give numbers for those that you know, `--shape x=<N>,3,<H>,<W>`")
    assert not surgeon.apply(model, "aten", shape={"x": ["N", 3, 64, 64]}).report.remarks


def test_weights_of_an_old_format_are_initializers_where_it_is_raised() -> None:
    model = onnx.parser.parse_model("""
        <ir_version: 3, opset_import: ["": 8]>
        g (float[1,2,4,4] x, float[2,2,1,1] w, float[2] s, float[2] b, float[2] m, float[2] v)
            => (float[1,2,4,4] y) {
            c = Conv (x, w)
            y = BatchNormalization (c, s, b, m, v)
        }
    """)
    drawn = np.random.default_rng(0)
    for value in model.graph.input[1:]:
        shape = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
        array = drawn.uniform(0.5, 1.5, shape).astype(np.float32)
        model.graph.initializer.append(onnx.numpy_helper.from_array(array, value.name))
    result = surgeon.apply(model, "clean", opset=13)
    assert result.report.status == "equivalent"
    raised = result.model.to_proto()
    assert [node.op_type for node in raised.graph.node] == ["Conv"]
    assert len(raised.graph.initializer) == 2
    assert [value.name for value in raised.graph.input] == ["x"]
    assert raised.ir_version >= 4


@pytest.mark.parametrize(
    ("nodes", "why"),
    [
        ("n = Cast <to = 7> (x) y = Add (x, n)", "the model does not load: Type Error"),
        ("n = my.Foo (x) y = Relu (n)", "onnxruntime has no `my.Foo`"),
        ("n = Abs (x) y = Neg (n)", ""),
    ],
)
def test_what_nothing_changes_and_does_not_load_is_told(nodes: str, why: str) -> None:
    model = parse(f"g (float[2,3] x) => (float[2,3] y) {{ {nodes} }}", domains=', "my": 1')
    result = surgeon.apply(model, "clean")
    assert not result.report.changes
    *_, said = result.report.remarks or ("",)
    assert said.startswith(f"nothing was changed, although {why}" if why else "")
    assert bool(said) == bool(why)
    unasked = surgeon.apply(model, "clean", verify=False).report.remarks
    assert not any(remark.startswith("nothing was changed") for remark in unasked)


def test_the_recipe_that_knows_what_onnxruntime_does_not_is_named() -> None:
    model = parse(
        "g (float[2,3] x, float s, float z, float b) => (float[2,3] y)"
        "{ y = qonnx.custom_op.general.Quant (x, s, z, b) }",
        domains=', "qonnx.custom_op.general": 1',
    )
    tail = "; `qonnx` has rules for `qonnx.custom_op.general.Quant`"
    assert any(said.endswith(tail) for said in surgeon.apply(model, "clean").report.remarks)
    assert not any(tail in said for said in surgeon.apply(model, "qonnx").report.remarks)


def test_what_was_dropped_of_a_file_that_stays_is_not_told() -> None:
    """A recipe that is not tidy drops what nobody reads on its way, and no file is saved for it."""
    model = parse("g (float[2,3] x) => (float[2,3] y) { unread = Exp (x) y = Abs (x) }")
    report = surgeon.apply(model, "aten").report
    assert report.status == "unchanged"
    assert report.after == report.before == {"Exp": 1, "Abs": 1}
    assert not report.housekeeping


def test_a_recipe_of_operators_that_are_not_there_tells_too_what_does_not_load() -> None:
    model = parse("g (float[2,3] x, float[4,3] w) => (float[2,3] y) { y = MatMul (x, w) }")
    (said,) = surgeon.apply(model, "aten").report.remarks
    assert said.startswith("nothing was changed, although the model does not load: ")


def test_rules_are_left_out_by_name() -> None:
    model = parse("g (float[2,3] x) => (float[2,3] y) { a = Relu (x) b = Relu (a) y = Abs (b) }")
    assert surgeon.apply(model, "clean").report.fired == {"no-ops/twice-the-same": 1}
    for name in ("twice-the-same", "no-ops/twice-the-same"):
        fired = surgeon.apply(model, "clean", without=name).report.fired
        assert "no-ops/twice-the-same" not in fired
    with pytest.raises(surgeon.RecipeError, match=r"without: no recipe that is named has a rule"):
        surgeon.apply(model, "clean", without=["aten/twice-the-same"])
    kept = surgeon.apply(model, "clean", without=["transpose-chain"]).model.to_proto()
    log = json.loads(kept.metadata_props[0].value)
    assert log[0]["options"] == {"without": "transpose-chain"}


def test_a_recipe_for_other_operators_says_so() -> None:
    model = model_of("float[b,t] x", "y = Neg (x)", "y")
    said = "`logic-forms` has no rule for an operator of this model"
    assert said in surgeon.apply(model, "logic-forms").report.remarks
    assert said not in surgeon.apply(model, "clean", "arithmetic-decompose").report.remarks
    assert not surgeon.apply(model, "clean").report.remarks


def test_where_edge_values_lie_is_told() -> None:
    model = model_of("int64[n] i, float[3,2] w", "y = Gather (w, i)", "y")
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.eye(3, 2, dtype="f"), "w"))
    del model.graph.input[1]
    wrong = recipe("""exact: rounding
match: y = Gather <axis = 0> (w, i)
let: {rows: "[0, 1, 2]"}
replace: |
  u = Unsqueeze <axes = [1]> (i)
  e = Equal (u, @rows)
  f = Cast <to = 1> (e)
  y = MatMul (f, w)""")
    (refusal,) = surgeon.apply(model, wrong).report.refusals
    assert "with places from the end (`i` from -" in refusal.reason


# ------------------------------------------------------------------------------ computed operands


@pytest.mark.parametrize("kind", ["float", "float16", "double"])
@pytest.mark.parametrize(
    ("said", "wanted"),
    [("w.value * 2", [2, 6]), ("w.value / 2", [0.5, 1.5]), ("-w.value", [-1, -3])],
)
def test_what_is_computed_has_the_type_of_what_it_stands_beside(
    kind: str, said: str, wanted: list[float]
) -> None:
    text = f"exact: rounding\nmatch: y = Add (x, w)\nreplace: y = Mul (@c, x)\nlet: {{c: '{said}'}}"
    model = parse(f"g ({kind}[n,2] x, {kind}[2] w) => ({kind}[n,2] y) {{ y = Add (x, w) }}")
    dtype = model.graph.input[1].type.tensor_type.elem_type
    weights = onnx.helper.make_tensor("w", dtype, [2], [1, 3])
    model.graph.initializer.append(weights)
    del model.graph.input[1]
    changed = surgeon.apply(model, recipe(text), check=False, verify=False).model.to_proto()
    (made,) = changed.graph.initializer
    assert made.data_type == weights.data_type
    np.testing.assert_array_equal(onnx.numpy_helper.to_array(made).astype(float), wanted)


def test_a_recipe_of_another_opset_than_was_asked_for_is_told() -> None:
    model = parse("g (float[2,3] x) => (float[2,3] y) { y = Relu (x) }", opset=18)
    with pytest.raises(VerifyError, match="of opset 13, which `opset-13` brings, and 21 was asked"):
        surgeon.apply(model, "opset-13", opset=21)
    assert surgeon.apply(model, "opset-13", opset=13).model.opset == 13


def test_a_view_of_floats_is_told_by_what_refuses_it() -> None:
    model = parse(
        """g (float[N,3] x) => (float[1,M] y) <int64[1] one = {1}, float[1] two = {2}> {
        s = Shape (x)  f = Cast <to = 1> (s)  n = ReduceProd <axes = [0]> (f)  q = Pow (n, two)
        r = Div (q, n)  o = Div (n, n)  t = Concat <axis = 0> (o, r)  y = Reshape (x, t)
    }""",
        opset=9,
    )
    verdict = surgeon.apply(model, "operand-types").report.verdict
    assert verdict is not None
    assert "no input was found on which the original runs" in verdict.detail


def test_integers_and_floats_of_an_einsum_are_floats() -> None:
    text = (
        'g (int64[N] i, float[3] f) => (float[N,3] y) { y = Einsum <equation = "i,j->ij"> (i, f) }'
    )
    assert surgeon.apply(parse(text, opset=14), "operand-types").report.status == "equivalent"


def test_attributes_of_functions_that_say_no_kind_are_given_by_the_caller() -> None:
    model = onnx.parser.parse_model("""<ir_version: 9, opset_import: ["": 17, "l": 1]>
        g (float[2,3] x) => (float[2,3] y) { a = l.F <k = 2.0> (x)  y = l.F (a) }
        <domain: "l", opset_import: ["": 17]> F <k: float = 3.0> (x) => (y) {
            c = Constant <value_float = @k> ()  y = Mul (x, c)
        }""")
    assert model.functions[0].node[0].attribute[0].type == onnx.AttributeProto.UNDEFINED
    result = surgeon.apply(model, "clean", opset=11)
    assert result.report.status == "equivalent"
    x = np.ones((2, 3), F32)
    np.testing.assert_allclose(Session(result.model.to_proto()).run({"x": x})["y"], 6 * x)
