"""A result that differs although each rewrite agreed: which rewrites make it so, and the rest."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from truth import model_of
from typer.testing import CliRunner

import surgeon
from surgeon import culprits
from surgeon.authoring import rule
from surgeon.cli import app
from surgeon.culprits import Kept, _Budget, _smallest, find_culprits
from surgeon.errors import VerifyError
from surgeon.match import Match
from surgeon.recipe import Recipe
from surgeon.report import Change
from surgeon.rewrite import Draft


@pytest.mark.parametrize("wanted", [[3], [0, 15], [2, 7, 11], [5, 6], list(range(16))])
def test_the_smallest_set_is_found(wanted: list[int]) -> None:
    tried: list[Sequence[int]] = []

    def fails(some: Sequence[int]) -> bool:
        tried.append(some)
        return set(wanted) <= set(some)

    assert _smallest(range(16), fails, _Budget(500, float("inf"))) == wanted
    assert len(tried) < 200


def test_the_search_ends_when_its_budget_does() -> None:
    assert len(_smallest(range(64), lambda some: 7 in some, _Budget(2, float("inf")))) > 1
    assert _smallest(range(64), lambda some: 7 in some, _Budget(50, 0.0)) == list(range(64))


@rule("y = Erf (x)", exact="rounding")
def tanh_for_erf(draft: Draft, match: Match) -> Any:
    return draft.op("Tanh", match.values["x"])


@rule("y = Abs (x)", exact="rounding")
def max_for_abs(draft: Draft, match: Match) -> Any:
    x = match.values["x"]
    return draft.op("Max", x, draft.op("Neg", x))


def model(erfs: int = 1) -> onnx.ModelProto:
    """Erf of a value of no known rank, among others that are compared."""
    lines = ["a = Abs (x)", "r0 = Reshape (a, s)"]
    lines += [f"r{i + 1} = Erf (r{i})" for i in range(erfs)]
    lines += [f"c = Abs (r{erfs})", "y = Reshape (c, k)"]
    body = "\n".join(lines)
    return model_of("float[b,6] x, int64[n] s", body, "y", 17, {"k": np.array([-1])})


def recorded(folder: Path, erfs: int = 1) -> Path:
    from surgeon.runtime import Session

    x = np.linspace(-1, 1, 12, dtype=np.float32).reshape(2, 6)
    feeds = {"x": x, "s": np.array([3, 4])}
    np.savez(folder / "r.npz", **feeds, **Session(model(erfs)).run(feeds))
    return folder / "r.npz"


def test_the_rewrite_at_fault_is_named(tmp_path: Path) -> None:
    with pytest.raises(VerifyError) as caught:
        surgeon.apply(model(), max_for_abs, tanh_for_erf, reference=recorded(tmp_path))
    assert "; it is so with `test_culprits/tanh-for-erf` at node 'r1'" in caught.value.what
    assert "max-for-abs" not in caught.value.what
    assert "`--save-partial`" in caught.value.mend
    report: Any = caught.value.report
    (refusal,) = report.refusals
    assert (refusal.rule, refusal.drawn) == ("tanh-for-erf", "whole")
    assert refusal.max_absolute > 0.01


def test_it_is_looked_for_where_the_result_differed(monkeypatch: pytest.MonkeyPatch) -> None:
    verify = importlib.import_module("surgeon.verify")

    seeds: list[int] = []
    found = verify.verify

    def seen(*models: Any, **told: Any) -> Any:
        verdict = found(*models, **told)
        seeds.append(len({(c.seed, *c.sizes.values()) for c in verdict.comparisons}))
        return verdict

    body = """
        a = Abs (x)
        q = Shape (x)
        z = NonZero (q)
        places = Squeeze (z, first)
        s = Gather (q, places)
        r = Reshape (a, s)
        y = Erf (r)
    """
    drawn = model_of("float[b,6] x", body, "y", 17, {"first": np.array([0])})
    monkeypatch.setattr(verify, "verify", seen)
    with pytest.raises(VerifyError, match="it is so with `test_culprits/tanh-for-erf`"):
        surgeon.apply(drawn, max_for_abs, tanh_for_erf)
    whole, *search, rest = seeds
    assert whole > 4
    assert set(search) == {1}
    assert rest > 4  # what is left is compared everywhere


def test_a_rule_that_waits_to_be_allowed_in_its_place_is_named(tmp_path: Path) -> None:
    """As the rounding of levels, which nobody asks for, beside its approximation."""
    rules = [
        "{id: erf-nearly, why: It is near., exact: approximate, bound: 0.5, match: y = Erf (x), "
        "replace: y = Tanh (x)}",
        "{id: abs-nearly, why: It is not., exact: approximate, bound: 0.5, match: y = Abs (x), "
        "replace: y = Relu (x)}",
        "{id: erf, why: It is wrong., exact: rounding, match: y = Erf (x), replace: y = Tanh (x)}",
    ]
    both = Recipe.parse(f"surgeon: 1\nname: both\nrules: [{', '.join(rules)}]\n")
    with pytest.raises(VerifyError) as caught:
        surgeon.apply(model(), both, reference=recorded(tmp_path))
    assert "say `--allow approximate`, for which `both/erf-nearly` waits; " in caught.value.mend


def test_the_rest_is_given_where_that_is_asked_for(tmp_path: Path) -> None:
    result = surgeon.apply(
        model(), max_for_abs, tanh_for_erf, reference=recorded(tmp_path), save_partial=True
    )
    assert result.report.verdict is not None
    assert result.report.verdict.status == "equivalent"
    assert result.report.fired == {"test_culprits/max-for-abs": 2}
    assert [r.rule for r in result.report.refusals] == ["tanh-for-erf"]
    operators = [node.op_type for node in result.model.to_proto().graph.node]
    assert "Erf" in operators
    assert "Tanh" not in operators


def test_of_several_at_fault_one_is_named_at_least_and_all_are_left_out(tmp_path: Path) -> None:
    result = surgeon.apply(
        model(3), max_for_abs, tanh_for_erf, reference=recorded(tmp_path, 3), save_partial=True
    )
    assert result.report.fired == {"test_culprits/max-for-abs": 2}
    assert {r.node.split("'")[1] for r in result.report.refusals} == {"r1", "r2", "r3"}


def test_the_bound_on_runs_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(culprits, "RUNS", 1)
    with pytest.raises(VerifyError, match="it is so with"):
        surgeon.apply(model(), max_for_abs, tanh_for_erf, reference=recorded(tmp_path))


def test_the_command_takes_it(tmp_path: Path) -> None:
    paths = [str(tmp_path / "a.onnx"), str(tmp_path / "b.onnx")]
    onnx.save(model_of("float[b] x", "y = Identity (x)", "y"), paths[0])
    said = CliRunner().invoke(app, ["apply", "no-ops", *paths, "--save-partial"])
    assert said.exit_code == 0, said.output


def test_of_many_that_err_together_one_end_is_left_out() -> None:
    changes = [Change("r", "s", "", "rounding", None, f"n{i}", (), (), "") for i in range(64)]
    tried: list[int] = []

    def fails(kept: Kept, *, anywhere: bool = False) -> bool:
        places = {("s", "r", f"n{i}") for i in range(64)} - kept.without
        if kept.rules is not None and not kept.rules:
            return False
        if kept.places is not None:
            places &= kept.places
        tried.append(len(places))
        return len(places) > 20  # each adds its share

    found = find_culprits(changes, frozenset(), fails)
    assert found is not None
    assert 44 <= len(found) <= 46
    assert len(tried) < 2 * culprits.RUNS
