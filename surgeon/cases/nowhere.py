"""Cases that say that a rule refuses, where it was tried at no node: most of them test nothing."""

from __future__ import annotations

from collections.abc import Iterator

from surgeon.cases.reading import Refusal
from surgeon.recipe import Rule

NOWHERE = "it was tried at no node"


def nowhere(rule: Rule, refusal: Refusal) -> Iterator[str]:
    """What is wrong with a case in which a rule was tried nowhere, and so refused nothing.

    One that asks for an operator, and for nothing more, has no other way to miss.
    """
    if not asks_little(rule):
        root = " or ".join(f"`{name}`" for name in rule.match.root.operators)
        yield (
            f"Silent: {NOWHERE}, so nothing shows that `{rule.id}` refuses; give the case the "
            f"operator at which the rule ends ({root})"
        )
    elif refusal.because not in NOWHERE:
        yield f"Silent: `{rule.id}` does not say {refusal.because!r}, but: {NOWHERE}"


def asks_little(rule: Rule) -> bool:
    """Whether a rule asks for one operator, and for nothing that could be refused there."""
    return len(rule.match.nodes) == 1 and not rule.where and rule.since_opset is None
