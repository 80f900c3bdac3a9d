"""Cases of recipes: what is read, what each check catches, and the words it says."""

from pathlib import Path
from textwrap import dedent, indent
from typing import Any

import pytest
from case_texts import DOUBLE_NEGATION, FIRES, REFUSES, case, check, with_replacement

from surgeon.cases import run
from surgeon.firing import Firing
from surgeon.returned import BACK


def test_a_rule_with_both_kinds_of_cases_holds(tmp_path: Path) -> None:
    assert check(tmp_path, DOUBLE_NEGATION, FIRES + REFUSES) == []


def test_outcomes_say_where_and_how_long(tmp_path: Path) -> None:
    check(tmp_path, DOUBLE_NEGATION, FIRES + REFUSES)
    told = []
    outcomes = run([tmp_path / "small.yaml"], progress=told.append)
    assert outcomes.ok
    assert tuple(told) == outcomes.outcomes
    assert str(outcomes) == "2 cases hold"
    first = told[0]
    assert (first.recipe, first.case, first.location.line) == ("small", "it fires", 2)
    assert first.seconds > 0


# ------------------------------------------------------------------------------ rules without cases


def test_a_rule_without_cases_is_untested(tmp_path: Path) -> None:
    problems = check(tmp_path, DOUBLE_NEGATION, REFUSES)
    assert problems == ["Untested: small.cases.yaml has no case where `double-negation` fires"]
    outcome = run([tmp_path]).failed[0]
    assert outcome.case == "rule `double-negation`"
    assert str(outcome.location) == f"{tmp_path / 'small.yaml'}:4:5"


def test_a_rule_that_is_never_refused_is_untested(tmp_path: Path) -> None:
    problems = check(tmp_path, DOUBLE_NEGATION, FIRES)
    assert problems == [
        "Untested: small.cases.yaml has no case where `double-negation` must not fire"
    ]


def test_a_recipe_without_a_file_of_cases_is_untested(tmp_path: Path) -> None:
    (tmp_path / "small.yaml").write_text(DOUBLE_NEGATION)
    problems = run([tmp_path]).outcomes[0].problems
    assert problems[0].startswith("Untested: there is no small.cases.yaml, and no case where")
    assert len(problems) == 2


@pytest.mark.parametrize("because", ["it was tried at no node", "is not ai.onnx.Neg"])
def test_a_rule_that_was_tried_nowhere_has_refused_nothing(tmp_path: Path, because: str) -> None:
    refuses = REFUSES.replace("is not ai.onnx.Neg", because).replace("Neg (r)", "Exp (r)")
    (problem,) = check(tmp_path, DOUBLE_NEGATION, FIRES + refuses)
    assert problem.startswith("Silent: it was tried at no node, so nothing shows that")
    assert "(`Neg`)" in problem


def test_rules_of_used_recipes_have_their_cases_elsewhere(tmp_path: Path) -> None:
    check(tmp_path, DOUBLE_NEGATION, FIRES + REFUSES)
    (tmp_path / "other.yaml").write_text(
        "surgeon: 1\nname: other\nsteps:\n  - use: ./small.yaml\n", encoding="utf-8"
    )
    assert run([tmp_path]).ok


# ------------------------------------------------------------------------------ what a case catches


def test_missing(tmp_path: Path) -> None:
    problems = check(tmp_path, DOUBLE_NEGATION, FIRES.replace("b = Neg (a)", "b = Exp (a)"))
    text = "\n".join(problems)
    assert "Missing: `double-negation` fires 0 times, not 1" in text


def test_noisy_where_it_must_not_fire_at_all(tmp_path: Path) -> None:
    cases = REFUSES.replace("y = Neg (r)", "q = Neg (r) y = Neg (q)")
    text = "\n".join(check(tmp_path, DOUBLE_NEGATION, cases))
    assert "Noisy: `double-negation` fires, at node 'y' (ai.onnx.Neg)" in text
    assert "Noisy: `double-negation` fires 1 times, not 0" in text


def test_noisy_where_it_fires_more_often(tmp_path: Path) -> None:
    cases = FIRES.replace("y = Abs (b)", "c = Abs (b) d = Neg (c) y = Neg (d)")
    text = "\n".join(check(tmp_path, DOUBLE_NEGATION, cases))
    assert "Noisy: `double-negation` fires 2 times, not 1" in text


def test_silent_for_another_reason(tmp_path: Path) -> None:
    cases = REFUSES.replace("is not ai.onnx.Neg", "the moon is full")
    text = "\n".join(check(tmp_path, DOUBLE_NEGATION, cases))
    assert "Silent: `double-negation` does not say 'the moon is full', but: " in text


def test_broken_where_a_rule_fails_beside_its_firing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failure ends no run over a model; here it must not hide behind what fires elsewhere."""
    real, calls = Firing._draft, []

    def failing(self: Any, *given: Any) -> Any:
        calls.append(given)
        if len(calls) == 1:
            raise KeyError("nowhere")
        return real(self, *given)

    monkeypatch.setattr(Firing, "_draft", failing)
    text = "\n".join(check(tmp_path, DOUBLE_NEGATION, FIRES + REFUSES))
    assert "Broken: rule `double-negation`" in text
    assert "KeyError: 'nowhere'" in text


def test_wrong_numbers(tmp_path: Path) -> None:
    text = "\n".join(check(tmp_path, with_replacement("y = Abs (x)"), FIRES.replace("Relu", "Exp")))
    assert "Wrong" not in text  # of positive numbers the absolute value is the same
    cases = FIRES.replace("Relu", "Sin").replace("Abs (b)", "Exp (b)")
    text = "\n".join(check(tmp_path, with_replacement("y = Abs (x)"), cases))
    assert "Wrong: `y`: error" in text
    assert "at N=2, against `before`" in text


def test_a_promise_of_bits_is_held_to_the_bit(tmp_path: Path) -> None:
    cases = FIRES.replace("Relu", "Sin").replace("Abs (b)", "Tan (b)")
    almost = "c = Constant <value_float = 3.0> ()\n      p = Mul (x, c)\n      y = Div (p, c)"
    recipe = with_replacement(f"|\n      {almost}")
    assert "Wrong" in "\n".join(check(tmp_path, recipe, cases))
    recipe = with_replacement(f"|\n      {almost}", exact="rounding")
    assert "Wrong" not in "\n".join(check(tmp_path, recipe, cases))


def test_wrong_structure(tmp_path: Path) -> None:
    after = FIRES + indent(
        dedent(
            """\
            after: |
              <ir_version: 8, opset_import: ["": 13]>
              g (float[N,3] x) => (float[N,3] y) {
                r = Relu (x)
                y = Neg (r)
              }
            """
        ),
        "    ",
    )
    text = "\n".join(check(tmp_path, DOUBLE_NEGATION, after + REFUSES))
    assert (
        "Wrong: the result is not `after`: at output `y`: Abs stands where `after` has Neg" in text
    )
    assert (
        check(tmp_path, DOUBLE_NEGATION, after.replace("y = Neg (r)", "y = Abs (r)") + REFUSES)
        == []
    )


UNDONE = """\
surgeon: 1
name: small
steps:
  - rules:
      - id: half-of-both
        why: It is one half of both.
        exact: rounding
        match: y = Relu (x)
        replace: |
          a = Abs (x)
          b = Add (a, x)
          half = Constant <value = float {0.5}> ()
          y = Mul (b, half)
  - rules:
      - id: back-again
        why: It is a Relu.
        exact: rounding
        match: |
          a = Abs (x)
          b = Add (a, x)
          y = Mul (b, half)
        replace: |
          BACK
"""


@pytest.mark.parametrize(
    ("back", "said"),
    [
        ("y = Relu (x)", f"Restless: in a second run {BACK}"),
        (
            "n = Neg (x) m = Neg (n) y = Relu (m)",
            "Restless: a second run fires `back-again` x1, `half-of-both` x1",
        ),
    ],
)
def test_restless(back: str, said: str, tmp_path: Path) -> None:
    graph = "g (float[N,3] x) => (float[N,3] y) { s = Sin (x) r = Relu (s) y = Exp (r) }"
    fires = case("fires: {half-of-both: 1, back-again: 1}", graph)
    assert said in check(tmp_path, UNDONE.replace("BACK", back), fires)


def test_fickle(tmp_path: Path) -> None:
    """Two rules that take a reader from each other: which one fires depends on the nodes' order."""
    rules = "".join(
        f"""
          - id: {name.lower()}-apart
            why: It needs no Relu.
            exact: rounding
            match: |
              x = Relu (r)
              y = {name} (x)
            where: [x.consumers == 2]
            replace: |
              zero = Constant <value = float {{0.0}}> ()
              m = Max (r, zero)
              y = {name} (m)"""
        for name in ("Neg", "Exp")
    )
    recipe = dedent(f"""\
        surgeon: 1
        name: small
        rules:{rules}
    """)
    found = []
    for first, second in (("Neg", "Exp"), ("Exp", "Neg")):
        graph = f"""g (float[N,3] r) => (float[N,3] y, float[N,3] z) {{
          x = Relu (r)
          y = {first} (x)
          z = {second} (x)
        }}"""
        found += check(tmp_path, recipe, case(f"fires: {first.lower()}-apart", graph))
    assert any(problem.startswith("Fickle: renamed and in another order, ") for problem in found)


def test_broken_where_no_runtime_knows_the_result(tmp_path: Path) -> None:
    recipe = with_replacement("y = aten.positive (x)")
    assert check(tmp_path, recipe, FIRES + REFUSES) == [
        "Broken: the result holds operators that no runtime knows"
    ]


@pytest.mark.parametrize("declared", ["my.own.Thing", "my.own"])
def test_operators_of_ones_own_are_held_against_after(tmp_path: Path, declared: str) -> None:
    recipe = with_replacement("y = my.own.Thing (x)").replace(
        "name: small", f"name: small\ncustom: ['{declared}']"
    )
    assert check(tmp_path, recipe, FIRES + REFUSES) == [
        "Unchecked: nothing here runs `my.own.Thing`; say with `after` what must come out"
    ]
    imports = '<ir_version: 8, opset_import: ["": 13, "my.own": 1]>'
    body = "r = Relu (x) b = my.own.Thing (r) y = Abs (b)"
    right = f"{imports} g (float[N,3] x) => (float[N,3] y) {{ {body} }}"
    wrong = right.replace("Thing (r)", "Thing <a = 1> (r)")
    for after, problems in ((right, 0), (wrong, 1)):
        fires = FIRES + f"    after: '{after}'\n"
        assert len(check(tmp_path, recipe, fires + REFUSES)) == problems


def test_weak_where_no_input_moves_the_output(tmp_path: Path) -> None:
    graph = """\
    g (float[N,3] x) => (float[N,3] y) <float zero = {0.0}> {
      r = Mul (x, zero)
      a = Neg (r)
      b = Neg (a)
      y = Abs (b)
    }"""
    problems = check(tmp_path, DOUBLE_NEGATION, case("fires: double-negation", graph) + REFUSES)
    assert problems == ["Weak: `y` agrees, but no input moves it"]


def test_unchecked_where_the_original_runs_nowhere(tmp_path: Path) -> None:
    recipe = """\
    surgeon: 1
    name: small
    rules:
      - id: unheard-of
        why: It is said to be an Abs.
        exact: bit
        match: y = aten._mps_max_pool2d (x)
        replace: y = Abs (x)
    """
    graph = "g (float[N,3] x) => (float[N,3] y) { y = org.pytorch.aten._mps_max_pool2d (x) }"
    refuses = case(
        'refuses: {rule: unheard-of, because: "it was tried at no node"}',
        "g (float[N] x) => (float[N] y) { y = Abs (x) }",
    ).replace("a case", "another")
    bare = case("fires: unheard-of", graph)
    problems = check(tmp_path, dedent(recipe), bare + refuses)
    assert len(problems) == 1
    assert problems[0].startswith("Unchecked: `_mps_max_pool2d` has no witness")
    assert problems[0].endswith("say with `means` what `before` computes")
    good = case(
        "fires: unheard-of", graph, means=graph.replace("org.pytorch.aten._mps_max_pool2d", "Abs")
    )
    assert check(tmp_path, dedent(recipe), good + refuses) == []
    bad = case(
        "fires: unheard-of", graph, means=graph.replace("org.pytorch.aten._mps_max_pool2d", "Neg")
    )
    text = "\n".join(check(tmp_path, dedent(recipe), bad + refuses))
    assert "Wrong: `y`: error" in text
    assert "against `means`" in text


def test_unchecked_at_sizes_where_the_original_does_not_run(tmp_path: Path) -> None:
    graph = """\
    g (float[N,t] x) => (float[p,q] y) <int64[2] s = {-1, 4}> {
      r = Reshape (x, s)
      a = Neg (r)
      b = Neg (a)
      y = Exp (b)
    }"""
    text = "\n".join(check(tmp_path, DOUBLE_NEGATION, case("fires: double-negation", graph)))
    assert "Unchecked: `before` does not run at N=1, t=5: " in text
    assert "give `sizes` at which it does" in text
    sized = case("fires: double-negation\nsizes: {t: [4, 8, 12]}", graph)
    assert check(tmp_path, DOUBLE_NEGATION, sized + REFUSES) == []


def test_every_opset_is_tried(tmp_path: Path) -> None:
    cases = FIRES.replace("fires: double", "opsets: [9, 13]\n    fires: double")
    assert check(tmp_path, DOUBLE_NEGATION, cases + REFUSES) == []
    cases = cases.replace("Abs", "Celu")
    (problem,) = check(tmp_path, DOUBLE_NEGATION, cases + REFUSES)
    assert problem.startswith("Faulty: ONNX's checker refuses this model at opset 9")


def test_fires_any_wants_a_result(tmp_path: Path) -> None:
    (problem,) = check(
        tmp_path, DOUBLE_NEGATION, FIRES.replace("fires: double-negation", "fires: any")
    )
    assert problem.startswith("Faulty: whatever may fire, and no result is given")


# ------------------------------------------------------------------------------- what apply refuses

CLIP = """\
surgeon: 1
name: small
rules:
  - id: relu-as-clip
    why: A Relu is a Clip from 0 up, as long as nothing is infinite.
    exact: bit
    match: y = Relu (x)
    where: [x.dtype == float32]
    let: {zero: "const(0.0, x.dtype)"}
    replace: y = Clip (x, @zero)
"""
CLIPS = case("fires: relu-as-clip", "g (float[n,8] x) => (float[n,8] y) { y = Relu (x) }") + case(
    'refuses: {rule: relu-as-clip, because: "x.dtype is float16"}',
    "g (float16[n,8] x) => (float16[n,8] y) { y = Relu (x) }",
).replace("a case", "another")


def test_wrong_on_edge_values_where_apply_refuses_it(tmp_path: Path) -> None:
    (problem,) = check(tmp_path, CLIP, CLIPS)
    assert problem.startswith("Wrong: `relu-as-clip` at node 'y' (ai.onnx.Relu): the replacement ")
    assert "3.4e+38 where it was inf at n=" in problem
    assert problem.endswith("with NaN and infinities among the values")
    assert run([tmp_path], thorough=False).ok


def test_a_case_may_say_how_a_rewrite_differs_on_edge_values(tmp_path: Path) -> None:
    known = CLIPS.replace(
        "fires: relu-as-clip", "fires: relu-as-clip\n    differs: where it was inf"
    )
    assert check(tmp_path, CLIP, known) == []
    assert check(tmp_path, CLIP, known.replace("was inf", "was one")) == [
        *check(tmp_path, CLIP, CLIPS),
        "Silent: `apply` refuses no rewrite because 'where it was one'",
    ]
    agrees = FIRES.replace("    before:", "    differs: anything\n    before:")
    assert check(tmp_path, DOUBLE_NEGATION, agrees + REFUSES) == [
        "Silent: `apply` refuses no rewrite because 'anything'"
    ]
