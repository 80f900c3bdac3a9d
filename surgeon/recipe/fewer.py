"""Recipes without some of their rules."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

from surgeon.document import suggest
from surgeon.errors import RecipeError
from surgeon.recipe.rules import Rule, RulesStep, Step

if TYPE_CHECKING:
    from surgeon.recipe import Recipe


def left_out(steps: Iterable[Step], names: Collection[str]) -> list[Step]:
    """The steps but for the rules of these names."""
    return [
        step._replace(rules=tuple(r for r in step.rules if not _names(r).intersection(names)))
        if isinstance(step, RulesStep)
        else step
        for step in steps
    ]


def fewer(recipes: Sequence[Recipe], names: Collection[str]) -> list[Recipe]:
    """Recipes but for some of their rules.

    Args:
        recipes: Any.
        names: The rules' ids, alone or as `recipe/id`.

    Raises:
        RecipeError: None of the recipes has such a rule.
    """
    known = {name for recipe in recipes for rule in recipe.rules for name in _names(rule)}
    for name in names:
        if name not in known:
            raise RecipeError(
                f"no recipe that is named has a rule `{name}`",
                where="--without",
                mend=suggest(name, known, "`surgeon recipes show RECIPE` names them."),
            )
    return [recipe._replace(steps=tuple(left_out(recipe.steps, names))) for recipe in recipes]


def _names(rule: Rule) -> set[str]:
    return {rule.id, f"{rule.recipe}/{rule.id}"}
