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
        *(
            ("fires:", new, f"3:{column}", what, mend)
            for new, column, what, mend in (
                ("values: {x: {between: [5, 0]}}", 27, "the lower one first", "lower one"),
                ("values: {x: {between: [.nan, 1]}}", 28, "`between` is not a finite", "finite"),
                ("values: {x: {scale: -1}}", 25, "`scale` is not a number above 0", "above 0"),
                ("values: {x: {scale: 1, between: [0, 1]}}", 18, "`scale` is of normal", "out"),
                ("sizes: {N: [-1]}", 16, "`N` is not a list of sizes", "0 or more"),
                ("tolerance: -1", 16, "`tolerance` is not a number above 0", "above 0"),
                ("refuses: {rule: double-negation, because: ''} #", 48, "`because` is", "3 lett"),
                ("refuses: {rule: double-negation, because: 'is'} #", 48, "`because` is", "3 lett"),
            )
        ),
    ],
)
def test_errors_say_where_and_how_to_mend(
    tmp_path: Path, old: str, new: str, place: str, what: str, mend: str
) -> None:
    text = FIRES.replace(old, new)
    if new.startswith(("values", "sizes", "tolerance")):
        text = FIRES.replace(old, f"{new}\n    {old}")
    check(tmp_path, DOUBLE_NEGATION, text + REFUSES)
    with pytest.raises(RecipeError) as caught:
        read_cases(tmp_path / "small.cases.yaml", ["double-negation"])
    assert str(caught.value.where) == f"{tmp_path / 'small.cases.yaml'}:{place}"
    assert what in caught.value.what
    assert mend in caught.value.mend
    wrong, right = run([tmp_path])
    assert str(wrong.location) == str(caught.value.where)
    assert wrong.problems == (f"Faulty: {caught.value.what}\n  mend: {caught.value.mend}",)
    assert right.ok


IN_A_CASE = [
    ("    before:", "    sizes: {m: [1]}\n    before:", "4:13", "no input of `before` has a dim"),
    ("    before:", "    values: {w: {}}\n    before:", "4:14", "no text of the case has an input"),
    ("    before:", "    shape: {q: [1]}\n    before:", "4:12", "the model has no input `q`"),
    ("    before:", "    assume: [N ==]\n    before:", "4:13", "cannot use the assumption `N ==`"),
    ("    before:", "    allow: [all]\n    before:", "4:12", "`all` is not a value of `allow`"),
    ("y = Abs (b)", "y = Abs (b", "11:7", "no model in ONNX's text syntax"),
    ("Abs (b)", "Abs (b, b)", "5:7", "ONNX's checker refuses"),
]


@pytest.mark.parametrize(("old", "new", "place", "what"), IN_A_CASE)
def test_what_is_wrong_in_one_case_is_said_of_it_and_the_others_go_on(
    tmp_path: Path, old: str, new: str, place: str, what: str
) -> None:
    check(tmp_path, DOUBLE_NEGATION, FIRES.replace(old, new) + REFUSES)
    wrong, right = run([tmp_path])
    assert (wrong.case, right.ok) == ("it fires", True)
    assert str(wrong.location) == f"{tmp_path / 'small.cases.yaml'}:{place}"
    assert wrong.problems[0].startswith("Faulty: ")
    assert what in wrong.problems[0]
    assert "\n  mend: " in wrong.problems[0]


def test_sizes_that_no_memory_holds(tmp_path: Path) -> None:
    huge = FIRES.replace("    before:", "    sizes: {N: [2147483647]}\n    before:")
    huge = huge.replace("N,3]", "N,99999]")
    problems = check(tmp_path, DOUBLE_NEGATION, huge + REFUSES)
    assert problems == ["Broken: there is not enough memory; give smaller `sizes`"]


def test_of_several_recipes_a_wrong_one_stops_no_other(tmp_path: Path) -> None:
    check(tmp_path, DOUBLE_NEGATION, FIRES + REFUSES)
    (tmp_path / "a.yaml").write_text("surgeon: 1\nname: a\nrulse: []\n", encoding="utf-8")
    found = run([tmp_path])
    assert [each.ok for each in found] == [False, True, True]
    assert str(found.failed[0].location) == f"{tmp_path / 'a.yaml'}:3:1"
    assert "unknown key `rulse`" in found.failed[0].problems[0]


def test_a_folder_is_looked_into_and_other_files_are_named(tmp_path: Path) -> None:
    inner = tmp_path / "shelf" / "inner"
    inner.mkdir(parents=True)
    check(inner, DOUBLE_NEGATION, FIRES + REFUSES)
    other = tmp_path / "shelf" / "npu.yaml"
    other.write_text("title: My NPU\noperators: [Relu]\n", encoding="utf-8")
    found = run([tmp_path])
    assert (len(found), found.ok, found.passed) == (2, True, (other,))


def test_where_nothing_is_tested_that_is_said_and_is_no_success(tmp_path: Path) -> None:
    (tmp_path / "main.yaml").write_text(
        "surgeon: 1\nname: main\nsteps:\n  - use: no-ops\n", encoding="utf-8"
    )
    found = run([tmp_path])
    assert not found.ok
    assert str(found).startswith("nothing was tested")


def test_a_file_of_no_cases(tmp_path: Path) -> None:
    (tmp_path / "empty.cases.yaml").touch()
    with pytest.raises(RecipeError) as caught:
        read_cases(tmp_path / "empty.cases.yaml", ())
    assert caught.value.mend == "Write `cases:` and go on."


def test_two_cases_of_one_title(tmp_path: Path) -> None:
    (problem,) = check(tmp_path, DOUBLE_NEGATION, FIRES + FIRES)
    assert problem.startswith("Faulty: the case `it fires` is here twice, first at")


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
