"""Files of cases that are wrong, and which files and values a run of cases takes."""

from pathlib import Path

import numpy as np
import pytest
from case_texts import DOUBLE_NEGATION, FIRES, REFUSES, check

from surgeon.cases import run
from surgeon.cases.reading import read_cases
from surgeon.cases.text import Filling
from surgeon.errors import RecipeError


@pytest.mark.parametrize(
    ("old", "new", "place", "what", "mend"),
    [
        ("fires:", "fire:", "3:5", "unknown key `fire`", "Did you mean `fires`?"),
        (
            "double-",
            "duble-",
            "3:12",
            "no rule `duble-negation`",
            "Did you mean `double-negation`?",
        ),
        ("before:", "bevor:", "4:5", "unknown key `bevor`", "Did you mean `before`?"),
        ("y = Abs (b)", "y = Abs (b", "11:7", "no model in ONNX's text syntax", "Syntax.html"),
        ("Abs (b)", "Abs (b, b)", "5:7", "ONNX's checker refuses", "valid"),
        ("    fires: double-negation\n", "", "2:5", "neither which rules fire", "`fires: RULE`"),
        (
            "fires: double-negation",
            "fires: {double-negation: 0}",
            "3:30",
            "`fires.double-negation` is not a count of 1 or more",
            "Write a count",
        ),
        (
            "fires: double-negation",
            "refuses: double-negation",
            "3:14",
            "`refuses` is not a mapping",
            "`refuses: {rule: double-negation, because: ...}`",
        ),
        (
            "fires: double-negation",
            "values: {w: {seeds: 1}}",
            "3:18",
            "unknown key `seeds`",
            "Did you mean `seed`?",
        ),
    ],
)
def test_errors_say_where_and_how_to_mend(
    tmp_path: Path, old: str, new: str, place: str, what: str, mend: str
) -> None:
    text = FIRES.replace(old, new)
    if "values" in new:
        text = FIRES.replace(old, f"{new}\n    {old}")
    with pytest.raises(RecipeError) as caught:
        check(tmp_path, DOUBLE_NEGATION, text)
    assert str(caught.value.where) == f"{tmp_path / 'small.cases.yaml'}:{place}"
    assert what in caught.value.what
    assert mend in caught.value.mend


@pytest.mark.parametrize(
    ("key", "what", "mend"),
    [
        ("sizes: {m: [1]}", "no input of `before` has a dimension named `m`", "Known are `N`."),
        ("values: {w: {seed: 1}}", "no text of the case has an input `w`", "Known are `x`."),
    ],
)
def test_names_that_the_texts_lack(tmp_path: Path, key: str, what: str, mend: str) -> None:
    for one, other in ((FIRES, REFUSES), (REFUSES, FIRES)):
        with pytest.raises(RecipeError) as caught:
            check(
                tmp_path,
                DOUBLE_NEGATION,
                one.replace("    before:", f"    {key}\n    before:") + other,
            )
        assert str(caught.value.where) == f"{tmp_path / 'small.cases.yaml'}:4:{key.index('{') + 6}"
        assert (caught.value.what, caught.value.mend) == (what, mend)


def test_a_file_of_no_cases(tmp_path: Path) -> None:
    (tmp_path / "empty.cases.yaml").touch()
    with pytest.raises(RecipeError) as caught:
        read_cases(tmp_path / "empty.cases.yaml", ())
    assert caught.value.mend == "Write `cases:` and go on."


def test_two_cases_of_one_title(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match="the case `it fires` is here twice, first at"):
        check(tmp_path, DOUBLE_NEGATION, FIRES + FIRES)


def test_a_folder_without_recipes(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match="there is no recipe in this folder"):
        run([tmp_path])


def test_paths_may_be_cases_or_names_and_count_once(tmp_path: Path) -> None:
    check(tmp_path, DOUBLE_NEGATION, FIRES + REFUSES)
    assert len(run([tmp_path / "small.yaml", tmp_path / "small.cases.yaml", tmp_path])) == 2
    assert run(["dyrelu"]).outcomes[0].recipe == "dyrelu"


def test_values_are_the_same_for_the_same_seed() -> None:
    kind = np.dtype(np.float32)
    one, two = Filling(3).array((4, 5), kind), Filling(3).array((4, 5), kind)
    assert np.array_equal(one, two)
    assert not np.array_equal(one, Filling(4).array((4, 5), kind))
    assert np.allclose(Filling(3, scale=0.5).array((4, 5), kind), one * 0.5)
    between = Filling(3, between=(0.5, 2.0)).array((100,), kind)
    assert between.min() >= 0.5
    assert between.max() <= 2.0
    assert set(Filling(3, between=(1, 3)).array((100,), np.dtype(np.int64)).tolist()) == {1, 2, 3}
