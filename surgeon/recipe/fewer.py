"""Steps that do less: without some of their rules, or with nodes that they leave as they are."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from surgeon.recipe.rules import FoldStep, Rule, RulesStep, StateShapesStep, Step


def left_out(steps: Iterable[Step], names: Collection[str]) -> list[Step]:
    """The steps but for the rules of these names."""
    return [
        step._replace(rules=tuple(r for r in step.rules if not names_of(r).intersection(names)))
        if isinstance(step, RulesStep)
        else step
        for step in steps
    ]


def kept_from(steps: Iterable[Step], keep: Collection[str]) -> list[Step]:
    """The steps, of which those that go by rules or fold leave these nodes too as they are."""
    return [
        step._replace(keep=(*step.keep, *(name for name in keep if name not in step.keep)))
        if isinstance(step, RulesStep | FoldStep | StateShapesStep)
        else step
        for step in steps
    ]


def taken_alone(steps: Iterable[Step], names: Collection[str]) -> list[Step]:
    """The steps of rules that have rules of these names, with these alone."""
    kept = (
        step._replace(rules=tuple(r for r in step.rules if names_of(r).intersection(names)))
        for step in steps
        if isinstance(step, RulesStep)
    )
    return [step for step in kept if step.rules]


def names_of(rule: Rule) -> set[str]:
    """What a rule may be called by: its id, alone or behind its recipe's name."""
    return {rule.id, f"{rule.recipe}/{rule.id}"}
