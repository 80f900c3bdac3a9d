"""Is each condition of a rule needed? A graph is looked for that it alone keeps the rule from.

    python tests/conditions.py [RECIPE ...]

The graphs are those of the cases beside the recipe, changed a little (`twists.py`), until one is
found in which the rule fires without the condition and does not with it. A condition for which none
is found is either made sure of by another, by the builder or by the pattern, and may go; or nothing
here is like what it is for, and a case is missing.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import onnx
from twisting import ALLOWED, ROOT
from twists import twisted

import surgeon
from surgeon.cases.reading import Case, read_cases
from surgeon.errors import SurgeonError
from surgeon.firing import FAILED
from surgeon.recipe import Recipe, Rule, RulesStep

TRIES = 2000
UNTWISTED = 0.05  # how often a graph is tried as it stands: the refusing cases


class Condition(NamedTuple):
    """One condition of a rule, and the cases of that rule."""

    rule: Rule
    place: int
    cases: Sequence[Case]

    def __str__(self) -> str:
        return f"{self.rule.id}: {self.rule.where[self.place].text}"


def conditions(path: Path) -> Iterator[Condition]:
    """Those of the rules of a recipe's own."""
    recipe = Recipe.load(str(path))
    rules = [rule for rule in recipe.rules if rule.recipe == recipe.name]
    known = [rule.id for rule in (*recipe.rules, *recipe.changes)]
    cases = read_cases(path.with_name(f"{path.stem}.cases.yaml"), known)
    for rule in rules:
        its = [case for case in cases if rule.id in case.fires or _refuses(case, rule)]
        for place in range(len(rule.where)):
            yield Condition(rule, place, its)


def _refuses(case: Case, rule: Rule) -> bool:
    return case.refuses is not None and case.refuses.rule == rule.id


def needing(condition: Condition, tries: int = TRIES) -> str | None:
    """A graph that the condition alone keeps the rule from, in words; None where none was found."""
    rule, place = condition.rule, condition.place
    without = rule._replace(where=(*rule.where[:place], *rule.where[place + 1 :]))
    drawn = random.Random(str(condition))
    for _ in range(tries if condition.cases else 0):
        case = drawn.choice(condition.cases)
        model, said = case.before.model(case.values, drawn.choice(case.opsets)), ["as it stands"]
        if drawn.random() > UNTWISTED:
            try:
                model, said = twisted(model, drawn)
            except (ValueError, TypeError, IndexError, OverflowError):  # nothing to twist so
                continue
        try:
            if _tries_to(without, model) > _tries_to(rule, model):
                return f"{case.title}: {', '.join(said)}"
        except SurgeonError:  # no model any more
            continue
    return None


def _tries_to(rule: Rule, model: onnx.ModelProto) -> int:
    """How often a rule fires by itself, or fails at it."""
    alone = Recipe(rule.recipe, steps=(RulesStep((rule,)),))
    report = surgeon.apply(model, alone, verify=False, check=False, allow=ALLOWED).report
    return len(report.changes) + sum(each.endswith(FAILED) for each in report.failures)


def main(*names: str) -> None:
    for path in sorted((ROOT / "recipes").glob("*.yaml")):
        if path.name.endswith(".cases.yaml") or (names and path.stem not in names):
            continue
        for condition in conditions(path):
            if needing(condition) is None:
                print(f"{path.stem}: {condition}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
