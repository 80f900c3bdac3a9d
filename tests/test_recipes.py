"""The cases beside the bundled recipes, by the function that `surgeon test recipes/` calls."""

from pathlib import Path

import pytest

from surgeon.cases import run

RECIPES = sorted(
    path
    for path in (Path(__file__).parent.parent / "recipes").glob("*.yaml")
    if not path.name.endswith(".cases.yaml")
)


@pytest.mark.slow  # `make check` runs them by `make cases`
@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_every_case_holds_and_every_rule_has_cases(path: Path) -> None:
    outcomes = run([path])
    assert outcomes.ok, f"\n{outcomes}"


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_a_recipe_has_cases_beside_it(path: Path) -> None:
    assert path.with_name(f"{path.stem}.cases.yaml").is_file()
