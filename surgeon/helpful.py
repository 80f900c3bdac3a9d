"""Which bundled recipes have rules for the operators of a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

from surgeon.recipe import Recipe, bundled

_FEW = 4  # operators at which a rule begins that is about one of them


@cache
def _bundled_rules() -> Mapping[str, Sequence[frozenset[str]]]:
    """For each bundled recipe with rules of its own, the operators that each rule's root may be."""
    found = {}
    for recipe_name, path in bundled().items():
        recipe = Recipe.load(path)
        found[recipe_name] = [
            frozenset(
                f"{rule.match.root.domain}.{operator}" if rule.match.root.domain else operator
                for operator in rule.match.root.operators
            )
            for rule in recipe.rules
            if not rule.only_refuses
        ]
    return found


def recipes_for(operator: str) -> tuple[str, ...]:
    """The bundled recipes that have a rule for an operator, as recipes write it."""
    return tuple(
        name
        for name, patterns in _bundled_rules().items()
        if any(operator in pattern for pattern in patterns)
    )


def written_otherwise(operator: str) -> tuple[str, ...]:
    """Recipes with a rule of their own at this operator and few others; of a foreign one, all."""
    if "." in operator:
        return recipes_for(operator)
    found = []
    for name, path in bundled().items():
        recipe = Recipe.load(path)
        own = (
            rule.match.root.operators
            for rule in recipe.rules
            if rule.location.file == recipe.source and not rule.match.root.domain
        )
        if any(operator in operators and len(operators) <= _FEW for operators in own):
            found.append(name)
    return tuple(found)


def helpful(operators: Mapping[str, int]) -> dict[str, int]:
    """How many rules of each recipe end at an operator that occurs."""
    found = {
        name: sum(1 for pattern in patterns if not pattern.isdisjoint(operators))
        for name, patterns in _bundled_rules().items()
    }
    return {name: number for name, number in found.items() if number}
