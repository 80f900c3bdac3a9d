"""Which bundled recipes have rules for the operators of a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import NamedTuple

from surgeon.recipe import Recipe, bundled

_FEW = 4  # operators at which a rule begins that is about one of them


class _Root(NamedTuple):
    """Where a rule begins: at which operators, and whether it is the recipe's own."""

    operators: frozenset[str]
    own: bool


@cache
def _roots() -> Mapping[str, Sequence[_Root]]:
    """Of each bundled recipe with rules; of all of them but those that only refuse."""
    found = {}
    for recipe_name, path in bundled().items():
        recipe = Recipe.load(path)
        found[recipe_name] = [
            _Root(
                frozenset(
                    f"{rule.match.root.domain}.{operator}" if rule.match.root.domain else operator
                    for operator in rule.match.root.operators
                ),
                rule.location.file == recipe.source,
            )
            for rule in recipe.rules
            if not rule.only_refuses
        ]
    return found


def recipes_for(operator: str) -> tuple[str, ...]:
    """The bundled recipes that have a rule for an operator, as recipes write it."""
    return tuple(
        name
        for name, roots in _roots().items()
        if any(operator in root.operators for root in roots)
    )


def written_otherwise(operator: str) -> tuple[str, ...]:
    """Recipes with a rule of their own at this operator and few others; of a foreign one, all."""
    if "." in operator:
        return recipes_for(operator)
    return tuple(
        name
        for name, roots in _roots().items()
        if any(
            root.own and operator in root.operators and len(root.operators) <= _FEW
            for root in roots
        )
    )


def helpful(operators: Mapping[str, int]) -> dict[str, int]:
    """How many rules of each recipe end at an operator that occurs."""
    found = {
        name: sum(1 for root in roots if not root.operators.isdisjoint(operators))
        for name, roots in _roots().items()
    }
    return {name: number for name, number in found.items() if number}
