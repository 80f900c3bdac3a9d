"""`surgeon recipes which`: complaints found by words."""

from __future__ import annotations

import pytest
from command import run

from surgeon.complaints import complaints
from surgeon.errors import RecipeError
from surgeon.recipe import bundled


def test_without_words_every_complaint_is_there() -> None:
    found = complaints()
    named = {word.strip("`,;()") for each in found for word in each.recipes.split()}
    assert len(found) > 50
    assert {name for name in bundled() if not name.startswith("for-")} <= named
    assert not any("](" in part for each in found for part in each)


def test_words_are_looked_for_in_any_case_and_all_of_them() -> None:
    (found,) = complaints(["FIXED AT EXPORT", "batch", "wanted", "any size", "items"])
    assert found.recipes.startswith("`any-batch`")


def test_an_operator_brings_the_recipes_about_it() -> None:
    assert complaints(["GridSample"])[-1].recipes == "`grid-forms`, `out-of-opset`"


def test_rows_that_are_about_a_word_stand_before_those_whose_help_names_it() -> None:
    about = [each.about for each in complaints(["Resize"])]
    assert about.index("Einsum, CumSum, Col2Im, Resize or Upsample") < about.index(
        "Resize: recipes with rules about it"
    )
    assert about[-2].startswith("a smaller graph")
    assert not complaints(["quantize"])[0].about.startswith("ATen")


@pytest.mark.parametrize(
    ("message", "about"),
    [
        ("Unsupported ONNX opset version: 19", "a model whose opset is above"),
        ("No Op registered for GridSample with domain_version of 11", "GridSample: by cubics"),
    ],
)
def test_words_of_a_message_are_looked_for_one_by_one(message: str, about: str) -> None:
    assert complaints([message])[0].about.startswith(about)
    assert complaints(message.split())[0].about.startswith(about)


def test_other_names_are_found_as_they_are_called() -> None:
    assert "--from image=x" in complaints(["rename"])[0].recipes


@pytest.mark.parametrize(
    ("word", "mend"),
    [
        ("GridSampl", "GridSample"),
        ("xyzzy", "fewer words"),
        ("renames", "Did you mean `rename`?"),
        ("MelWeightMatrix", "No recipe has rules about MelWeightMatrix."),
        ("no implementation for MelWeightMatrix(17) node", "No recipe has rules about MelW"),
    ],
)
def test_what_nothing_speaks_of(word: str, mend: str) -> None:
    with pytest.raises(RecipeError, match="no complaint speaks of") as raised:
        complaints([word, "of nothing"])
    assert mend in raised.value.mend


def test_the_command_says_so() -> None:
    said = run("recipes", "which", "GridSample").output
    assert "GridSample: by cubics" in said
    assert "grid-forms" in said
    assert run("recipes", "which", "xyzzy").exit_code == 2
