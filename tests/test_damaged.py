"""A model that is damaged as protobufs can be is repaired, left, or refused by a `SurgeonError`."""

from __future__ import annotations

import random

import pytest
from damaging import damaged, sources, tried
from shares import some

import surgeon
from surgeon.errors import RecipeError


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(some(4, of=40)))
def test_damaged_models(seed: int, capsys: pytest.CaptureFixture[str]) -> None:
    r = random.Random(seed)
    cases = [*sources()]
    outcomes = set()
    with surgeon.isolation():
        for _ in range(60):
            recipe, case = r.choice(cases)
            try:
                model = case.before.model(case.values, r.choice(case.opsets))
            except RecipeError:  # of an opset that an older onnx has not
                continue
            damaged(model, r)
            outcomes.add(tried(model, recipe, r))
    assert {"unchanged", "ModelError"} <= outcomes
    assert capsys.readouterr().out == ""
