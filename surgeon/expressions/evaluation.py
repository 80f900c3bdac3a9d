"""What the closures of an expression share: comparing, comprehending, and saying what was found."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from surgeon.expressions import operators
from surgeon.functions.values import MAX_ITEMS, Undecided, Unknown, describe, items_of

Scope = Mapping[str, object]
Run = Callable[[Scope], object]

MAX_SECONDS = 5.0
"""How long one comprehension may take; a recipe that needs longer wants a builder."""


def compare(symbol: str, left: object, right: object) -> bool | Unknown:
    """One comparison, by the symbol as it is written."""
    if symbol in ("==", "!="):
        verdict = operators.equals(left, right)
    elif symbol in ("in", "not in"):
        verdict = operators.contains(left, right)
    else:
        return operators.ordered(symbol, left, right)
    negated = symbol in ("!=", "not in")
    return verdict if isinstance(verdict, Unknown) or not negated else not verdict


def shown(texts: list[str], values: list[object]) -> str:
    """`x.rank is 3 and y.rank is 4`, of those whose text does not say it already."""
    parts = []
    for text, value in zip(texts, values, strict=True):
        said = describe(value)
        if text.replace(" ", "").replace('"', "'") != said.replace(" ", ""):
            parts.append(value.reason if isinstance(value, Unknown) else f"{text} is {said}")
    return " and ".join(dict.fromkeys(parts))


def given_by(scope: Scope, name: str) -> object:
    """What a scope holds by that name, which may be computed only now; None if nothing."""
    try:
        return scope[name]
    except KeyError:
        return None


class _Within(dict[str, object]):
    """The scope of a comprehension: its own name, and the scope around it."""

    def __init__(self, around: Scope) -> None:
        super().__init__()
        self._around = around

    def __missing__(self, name: str) -> object:
        return self._around[name]


def comprehend(
    scope: Scope,
    name: str,
    source: Run,
    tests: list[Callable[[Scope], bool | Unknown]],
    element: Run,
) -> object:
    """The list of a comprehension; `Unknown` where a condition is, or where it grows too large."""
    found = source(scope)
    if isinstance(found, Unknown):
        return found
    try:
        items = items_of(found)
    except Undecided as reason:
        return Unknown(str(reason))
    inner, result, weight = _Within(scope), [], 0
    end = time.monotonic() + MAX_SECONDS
    for item in items:
        inner[name] = item
        verdicts = [test(inner) for test in tests]
        if any(verdict is False for verdict in verdicts):
            continue
        for verdict in verdicts:
            if isinstance(verdict, Unknown):
                return verdict
        value = element(inner)
        result.append(value)
        weight += getattr(value, "size", 0) or (len(value) if isinstance(value, list) else 1)
        if weight > 10 * MAX_ITEMS:
            return Unknown("the comprehension is too large")
        if time.monotonic() > end:
            return Unknown("the comprehension takes too long")
    return result
