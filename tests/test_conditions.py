"""The search for graphs that show a condition of a rule to be needed, and what it finds."""

from __future__ import annotations

from pathlib import Path

import pytest
from conditions import Condition, conditions, needing
from shares import every

RECIPES = Path(__file__).parent.parent / "recipes"
FUSED = [
    condition
    for name in ("activations-fuse", "gelu-fuse")
    for condition in conditions(RECIPES / f"{name}.yaml")
]

RECIPE = """\
surgeon: 1
name: double
rules:
  - id: sum-as-product
    why: It is twice the same.
    exact: bit
    match: y = Mul (x, two)
    where:
      - two.is_constant
      - two.value == 2
    replace: y = Add (x, x)
"""
CASES = """\
cases:
  - case: twice
    fires: sum-as-product
    before: |
      <ir_version: 8, opset_import: ["": 13]>
      g (float[N,3] x) => (float[N,3] y) <float two = {2.0}> { y = Mul (x, two) }
  - case: thrice
    refuses: {rule: sum-as-product, because: "two.value == 2"}
    before: |
      <ir_version: 8, opset_import: ["": 13]>
      g (float[N,3] x) => (float[N,3] y) <float two = {3.0}> { y = Mul (x, two) }
"""


def test_a_condition_that_another_implies_is_told_from_one_that_is_needed(tmp_path: Path) -> None:
    (tmp_path / "double.yaml").write_text(RECIPE)
    (tmp_path / "double.cases.yaml").write_text(CASES)
    implied, needed = conditions(tmp_path / "double.yaml")
    assert str(implied) == "sum-as-product: two.is_constant"
    assert needing(implied, tries=100) is None
    assert needing(needed, tries=100) is not None


@pytest.mark.slow
@pytest.mark.parametrize("condition", FUSED[:: every(4)], ids=str)
def test_each_condition_of_a_fused_activation_is_needed(condition: Condition) -> None:
    assert needing(condition)
