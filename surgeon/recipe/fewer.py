"""Steps that do less: without some of their rules, or with nodes that they leave as they are."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from surgeon.document import suggest
from surgeon.errors import RecipeError
from surgeon.recipe.rules import FoldStep, Rule, RulesStep, StateShapesStep, Step, UnrollStep
from surgeon.recipe.written import Use


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
        if isinstance(step, RulesStep | FoldStep | UnrollStep | StateShapesStep)
        else step
        for step in steps
    ]


def chosen_from(steps: Sequence[Step], use: Use) -> list[Step]:
    """The steps of what is used, without the rules that are left out, or with some rules alone.

    Raises:
        RecipeError: A rule is not there, or none is left.
    """
    known = {name for rule in _rules(steps) for name in names_of(rule)}
    for name, where in zip((*use.without, *use.only), use.chosen_at, strict=True):
        if name not in known:
            raise RecipeError(
                f"`{use.names[0]}` has no rule `{name}`",
                where=where,
                mend=suggest(name, known, f"`surgeon recipes show {use.names[0]}` names them."),
            )
    fewer = left_out(steps, use.without)
    if use.only:
        fewer = _taken_alone(fewer, use.only)
        if not fewer:
            raise RecipeError(
                "of `only` no rule is left", where=use.places[0], mend="Take `without` out."
            )
    return fewer


def _taken_alone(steps: Iterable[Step], names: Collection[str]) -> list[Step]:
    kept = (
        step._replace(rules=tuple(r for r in step.rules if names_of(r).intersection(names)))
        for step in steps
        if isinstance(step, RulesStep)
    )
    return [step for step in kept if step.rules]


def _rules(steps: Iterable[Step]) -> Iterator[Rule]:
    for step in steps:
        if isinstance(step, RulesStep):
            yield from step.rules


def names_of(rule: Rule) -> set[str]:
    """What a rule may be called by: its id, alone or behind its recipe's name."""
    return {rule.id, f"{rule.recipe}/{rule.id}"}
