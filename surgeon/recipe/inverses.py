"""Rules that would undo one another."""

from __future__ import annotations

from collections.abc import Callable

from surgeon.errors import RecipeError
from surgeon.notation import (
    NodePattern,
    Pattern,
)
from surgeon.recipe.rules import Rule


def check_inverses(rules: tuple[Rule, ...]) -> None:
    """Refuse a step that would go round in circles: a rule beside its inverse.

    Raises:
        RecipeError: Two rules of the step write what the other one looks for.
    """
    seen: dict[object, Rule] = {}
    for rule in rules:
        if not isinstance(rule.replace, Pattern):
            continue
        computed = frozenset(name for name, _ in rule.let)
        seen.setdefault(_form(rule.match, rule.replace, computed), rule)
        other = seen.get(_form(rule.replace, rule.match, computed))
        if other is rule:
            raise RecipeError(
                f"`{rule.id}` writes what it looks for",
                where=rule.location,
                mend="Change the replacement.",
            )
        if other is not None:
            raise RecipeError(
                f"`{rule.id}` is the inverse of `{other.id}` ({other.location})",
                where=rule.location,
                mend="Put them into different steps.",
            )


def _form(first: Pattern, second: Pattern, computed: frozenset[str]) -> object:
    """The two patterns with names numbered in order of appearance, to compare up to names.

    What `let` computes is marked: no pattern looks for it, so it has no inverse.
    """
    numbers: dict[str, int] = {}

    def number(name: str) -> object:
        if name in computed:
            return f"computed {name}"
        return name if name in ("", "_") else numbers.setdefault(name, len(numbers))

    def form(pattern: Pattern) -> object:
        return tuple(
            (
                *(node.domain, node.operators, node.overload),
                tuple(number(name) for name in node.outputs),
                tuple((number(a.name), a.optional, a.rest, a.computed) for a in node.inputs),
                tuple(_attributes(node, number)),
            )
            for node in pattern.nodes
        )

    return form(first), form(second)


def _attributes(node: NodePattern, number: Callable[[str], object]) -> list[tuple[str, str]]:
    literal = [(name, repr(frozen)) for name, frozen in node.frozen_attributes()]
    captured = [(name, f"@{number(node.captures[name])}") for name in sorted(node.captures)]
    rest = [("*", str(number(node.rest)))] if node.rest is not None else []
    return [*literal, *captured, *rest]
