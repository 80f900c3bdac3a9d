"""The cases beside the bundled recipes, by the function that `surgeon test recipes/` calls."""

from pathlib import Path

import pytest
from newest import needs_recipe
from shares import every

from surgeon.cases import run
from surgeon.cases.running import RENAMINGS
from surgeon.isolation import isolation
from surgeon.recipe import Recipe

RECIPES = sorted(
    path
    for path in (Path(__file__).parent.parent / "recipes").glob("*.yaml")
    if not path.name.endswith(".cases.yaml")
)


@pytest.mark.hasty
@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_every_case_holds_and_every_rule_has_cases(path: Path) -> None:
    needs_recipe(path.stem)
    outcomes = run([path], thorough=False, renamings=())
    assert outcomes.ok, f"\n{outcomes}"


@pytest.mark.slow
@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_apply_makes_the_rewrites_of_every_case(path: Path) -> None:
    needs_recipe(path.stem)
    if RECIPES.index(path) % every(3):
        outcomes = run([path], thorough=False, renamings=())
        assert outcomes.ok, f"\n{outcomes}"
        return
    with isolation():  # as the command does: sizes and values of the edges may end onnxruntime
        outcomes = run([path], renamings=RENAMINGS[RECIPES.index(path) % 2 :][:1])
    assert outcomes.ok, f"\n{outcomes}"


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_a_recipe_has_cases_beside_it(path: Path) -> None:
    assert path.with_name(f"{path.stem}.cases.yaml").is_file()


def test_all_recipes_can_be_put_together(tmp_path: Path) -> None:
    """No two rules have one id: whatever a user puts into one recipe, it loads."""
    several = tmp_path / "several.yaml"
    uses = "".join(f"  - use: {path.stem}\n" for path in RECIPES)
    several.write_text(f"surgeon: 1\nname: several\nallow: [contract, approximate]\nsteps:\n{uses}")
    assert Recipe.load(several).steps
