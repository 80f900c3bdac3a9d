"""`surgeon.verify`: what the command takes, Python does too."""

from pathlib import Path

import onnx
import pytest
from truth import parse

import surgeon

NET = (
    "g (float[n,4] x, int64 k) => (float[n,4] y)"
    " { f = Cast <to = 1> (k) a = Mul (x, f) y = %s (a) }"
)
BEHIND = """
surgeon: 1
name: doubled
allow: [contract]
changes:
  - id: doubled
    why: Twice as much is wanted.
    match: y = Relu (x)
    replace: "z = Relu (x)  y = Add (z, z)"
"""


def test_a_value_that_became_a_constant() -> None:
    model = parse(NET % "Relu")
    fixed = surgeon.apply(model, "clean", values={"k": 3}).model
    assert surgeon.verify(model, fixed).status == "broken"
    assert surgeon.verify(model, fixed, values={"k": 3}).status == "equivalent"
    assert surgeon.verify(model, fixed, values={"k": 2}).status == "differs"


def test_weights_that_the_second_is_given() -> None:
    """As `extract --weights-as-inputs` makes it."""
    model = parse(
        "g (float[n,4] x) => (float[n,4] y) <float[4] w = {1, 2, 3, 4}> { y = Mul (x, w) }"
    )
    given = surgeon.extract(model, outputs="y", weights_as_inputs="w").model
    verdict = surgeon.verify(model, given)
    assert verdict.status == "broken"
    assert verdict.mend == "A has it as weights: compare B with --value w=FILE.npy."
    assert surgeon.verify(model, given, values={"w": [1, 2, 3, 4]}).status == "equivalent"
    assert surgeon.verify(model, given, values={"w": [1, 2, 3, 5]}).status == "differs"
    with pytest.raises(surgeon.RecipeError, match="no input `v`"):
        surgeon.verify(model, given, values={"v": [1, 2, 3, 4]})


def test_where_two_models_part() -> None:
    one, other = parse(NET % "Relu"), parse(NET % "Abs")
    verdict = surgeon.verify(one, other, bisect=True)
    assert verdict.status == "differs"
    assert verdict.parting is not None
    assert verdict.parting.differs.name == "y"
    assert verdict.to_dict()["parting"] == verdict.parting.to_dict()
    assert "--bisect" not in verdict.mend
    assert surgeon.verify(one, one, bisect=True).parting is None
    plain = surgeon.verify(one, other)
    assert plain.parting is None
    assert "--bisect" in plain.mend


def test_what_a_recipe_changes_is_done_to_the_original() -> None:
    model, asked = parse(NET % "Relu"), surgeon.Recipe.parse(BEHIND, file="doubled.yaml")
    changed = surgeon.apply(model, asked).model
    assert surgeon.verify(model, changed).status == "differs"
    assert surgeon.verify(model, changed, asked).status == "equivalent"


def test_sizes_as_assumed_and_data_that_are_not(tmp_path: Path) -> None:
    model = parse(NET % "Relu")
    verdict = surgeon.verify(model, model, assume="n >= 5")
    assert all(each.sizes["n"] >= 5 for each in verdict.comparisons)
    with pytest.raises(surgeon.RecipeError, match="no input `q`"):
        surgeon.verify(model, model, shape={"q": [1]})
    onnx.save(model, tmp_path / "m.onnx")
    with pytest.raises(surgeon.RecipeError, match="shape"):
        surgeon.verify(tmp_path / "m.onnx", model, shape="x:1,4")  # type: ignore[arg-type]
