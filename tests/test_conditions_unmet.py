"""Conditions that no model makes true, or that ask nothing, are errors of the recipe."""

import pytest
from recipe_texts import error_of, rule

from surgeon.recipe import Recipe


@pytest.mark.parametrize(
    ("where", "place", "what"),
    [
        ("[1]", "9:13", "`1` is a number, and no condition: it is never true"),
        ("['x.rank']", "9:14", "`x.rank` is a number, and no condition: it is never true"),
        ("[1 == 2]", "9:13", "`1 == 2` is the same whatever the model"),
        ("[false]", "9:13", "`False` is the same whatever the model"),
        ("[x.rank == 4.5]", "9:13", "`x.rank` is a whole number, and never 4.5"),
        ("[0 > x.rank]", "9:13", "`x.rank` is never below 0"),
        ("['x.shape[0] == -1']", "9:14", "`x.shape[0]` is never below 0"),
        ("[len(x.views) <= -1]", "9:13", "`len(x.views)` is never below 0"),
        ("[x.rank == 1, x.rank == 2]", "9:26", "`x.rank` cannot be both 1 and 2"),
        ("[x.rank == 1 and 2 == x.rank]", "9:13", "`x.rank` cannot be both 1 and 2"),
        (
            "[x.maker == 'Exp', x.maker == 'Log']",
            "9:31",
            "`x.maker` cannot be both 'Exp' and 'Log'",
        ),
        ("[True.rank == 1]", "9:13", "`True` is no value of the graph"),
    ],
)
def test_what_no_model_makes_true(where: str, place: str, what: str) -> None:
    assert error_of(rule(where=where)).partition("\n")[0] == f"r.yaml:{place}: {what}"


def test_an_opset_that_does_not_exist() -> None:
    assert "9:18: there is no opset 99: the newest is" in error_of(rule(since_opset="99"))


@pytest.mark.parametrize(
    "where",
    ["[x.rank == 1 or x.rank == 2]", "[x.rank >= 0, x.rank == 2.0]", "['x.shape[0] != -1']"],
)
def test_what_some_model_makes_true(where: str) -> None:
    assert Recipe.parse(rule(where=where)).rules
