"""Which bundled recipes have rules for the operators of a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

from surgeon.recipe import Recipe, bundled


@cache
def _roots() -> Mapping[str, Sequence[frozenset[str]]]:
    """At which operators the rules of each bundled recipe begin; of those that only refuse none."""
    return {
        name: [
            frozenset(
                f"{rule.match.root.domain}.{operator}" if rule.match.root.domain else operator
                for operator in rule.match.root.operators
            )
            for rule in Recipe.load(path).rules
            if not rule.only_refuses
        ]
        for name, path in bundled().items()
    }


def recipes_for(operator: str, *, foreign: bool = False) -> tuple[str, ...]:
    """The bundled recipes that have a rule for an operator, as recipes write it.

    Args:
        operator: Which.
        foreign: Whether none are named for an operator of ONNX's own.
    """
    if foreign and "." not in operator:
        return ()
    return tuple(
        name for name, roots in _roots().items() if any(operator in root for root in roots)
    )


def helpful(operators: Mapping[str, int]) -> dict[str, int]:
    """How many rules of each recipe end at an operator that occurs."""
    found = {
        name: sum(1 for root in roots if not root.isdisjoint(operators))
        for name, roots in _roots().items()
    }
    return {name: number for name, number in found.items() if number}
