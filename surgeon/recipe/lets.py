"""Checks what `let` of a rule computes against where the rule uses it."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from surgeon.document import Value
from surgeon.errors import RecipeError
from surgeon.expressions import Expression
from surgeon.notation import Pattern
from surgeon.recipe.rules import BuilderCall


def check_numbers(replace: Pattern, lets: Mapping[str, Expression]) -> None:
    """Refuse plain fractions as operands: they would be doubles, which few operands are."""
    for node in replace.nodes:
        for argument in node.inputs:
            told = lets.get(argument.name) if argument.computed else None
            if told is not None and _is_fraction(told.text):
                other = next((a.name for a in node.inputs if a.name and not a.computed), "VALUE")
                raise RecipeError(
                    f"`{argument.name}` is a number of no element type, and an operand here",
                    where=told.location,
                    mend=f"Write `const({told.text}, like={other})`, or name a `dtype`.",
                )


def check_lets(
    value: Value,
    replace: Pattern | BuilderCall,
    lets: tuple[tuple[str, Expression], ...],
    where: tuple[Expression, ...],
) -> None:
    """See that what `let` computes is used."""
    asked = [*where, *(expression for _, expression in lets)]
    if isinstance(replace, BuilderCall):
        asked += replace.arguments.values()
        used: set[str] = set()
    else:
        used = {a.name for node in replace.nodes for a in node.inputs if a.computed}
        used |= {name for node in replace.nodes for name in node.captures.values()}
    used = used.union(*(expression.names for expression in asked))
    for name, _ in lets:
        if name not in used:
            raise RecipeError(
                f"`{name}` is computed and used by nothing",
                where=(value.find("let") or value).key_location(name),
                mend=f"Write `@{name}` in `replace`, or take it out.",
            )


def _is_fraction(text: str) -> bool:
    try:
        found = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return False
    return any(isinstance(each, float) for each in (found if isinstance(found, list) else [found]))
