"""`surgeon.run_cases`: a file of cases for rules that are written in Python."""

from __future__ import annotations

from pathlib import Path

import pytest

import surgeon
from surgeon.errors import RecipeError
from surgeon.match import Match
from surgeon.rewrite import Draft

CASES = """\
cases:
  - case: a square
    fires: square-as-product
    before: |
      <ir_version: 8, opset_import: ["": 17]>
      g (float[n] x) => (float[n] y) <float p = {2}> { y = Pow (x, p) }
    after: |
      <ir_version: 8, opset_import: ["": 17]>
      g (float[n] x) => (float[n] y) { y = Mul (x, x) }
  - case: a cube
    refuses: {rule: square-as-product, because: "p.value == 2"}
    before: |
      <ir_version: 8, opset_import: ["": 17]>
      g (float[n] x) => (float[n] y) <float p = {3}> { y = Pow (x, p) }
"""


@surgeon.rule(match="y = Pow (x, p)", where=["p.value == 2"], why="A square.", exact="rounding")
def square_as_product(build: Draft, match: Match) -> object:
    x = match.values["x"]
    return build.op("Mul", x, x)


@surgeon.rule(
    match="y = Pow (x, p)",
    where=["p.value == 2"],
    why="It is not.",
    exact="rounding",
    id="square-as-product",
)
def as_a_sum(build: Draft, match: Match) -> object:
    x = match.values["x"]
    return build.op("Add", x, x)


@pytest.fixture
def cases(tmp_path: Path) -> Path:
    path = tmp_path / "mine.cases.yaml"
    path.write_text(CASES)
    return path


@pytest.mark.slow
def test_cases_of_a_rule_in_python_hold(cases: Path) -> None:
    seen: list[object] = []
    outcomes = surgeon.run_cases(cases, square_as_product, progress=seen.append)
    assert outcomes.ok, outcomes
    assert [each.case for each in outcomes] == ["a square", "a cube"]
    assert len(seen) == 2


@pytest.mark.slow
def test_a_wrong_rule_is_found(cases: Path) -> None:
    (failed,) = surgeon.run_cases(cases, as_a_sum).failed
    assert failed.case == "a square"


def test_a_rule_without_cases_is_told(cases: Path) -> None:
    cases.write_text(CASES.partition("  - case: a cube")[0])
    told = str(surgeon.run_cases(cases, square_as_product))
    assert "Untested: mine.cases.yaml has no case where `square-as-product` must not fire" in told
    assert "test_cases_python.py" in told  # where the rule is written


def test_what_is_no_rule_is_refused(cases: Path) -> None:
    with pytest.raises(RecipeError, match="`str` is no rule"):
        surgeon.run_cases(cases, "clean")  # type: ignore[arg-type]
    with pytest.raises(RecipeError, match="there is no such file"):
        surgeon.run_cases(cases.with_name("none.cases.yaml"), square_as_product)
