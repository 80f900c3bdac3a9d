"""Which rewrites make a result differ, although each agreed by itself: some are left out."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from surgeon.firing import Check, Pairs
from surgeon.match import Match
from surgeon.model import describe
from surgeon.recipe import Rule
from surgeon.report import Change
from surgeon.rewrite import Draft

RUNS = 40  # of the recipes, each with a check of the whole model
SECONDS = 60.0  # for all of them, in the worker too
_TURNS, _SINGLY = 5, 2  # sets at most; of these, sets of single places
_FINE = 32  # the part of all places to which an end is found
_MANY = 8  # places that are at fault together
LEFT_OUT = "it was left out, because the whole result differs with it"

Named = tuple[str, str]  # a rule, as (recipe, rule)
Place = tuple[str, str, str]  # a rewrite, as (recipe, rule, node)
Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Kept:
    """A check that lets some rewrites through, and asks another of those.

    Attributes:
        rules: The rules that may fire; None for all.
        places: Where they may; None for everywhere.
        without: Rewrites that may not be made.
        check: What else says no.
    """

    rules: frozenset[Named] | None = None
    places: frozenset[Place] | None = None
    without: frozenset[Place] = frozenset()
    check: Check | None = None

    def __call__(self, rule: Rule, match: Match, draft: Draft, pairs: Pairs) -> str | None:
        """The reason to refuse the rewrite, or None."""
        place = (rule.recipe, rule.id, describe(match.root))
        if (
            place in self.without
            or (self.rules is not None and place[:2] not in self.rules)
            or (self.places is not None and place not in self.places)
        ):
            return LEFT_OUT
        return None if self.check is None else self.check(rule, match, draft, pairs)


class Fails(Protocol):
    """Whether the result fails; it is asked many times over."""

    def __call__(self, kept: Kept, *, anywhere: bool = False) -> bool:
        """With the rewrites that are let through; where it failed last, or `anywhere`."""


@dataclass(slots=True)
class _Budget:
    """How much is left for trying."""

    runs: int
    until: float

    def spend(self) -> bool:
        """Whether there is another run."""
        self.runs -= 1
        return not self.spent

    @property
    def spent(self) -> bool:
        """Whether there is no further run."""
        return self.runs < 0 or time.monotonic() >= self.until


def find_culprits(
    changes: Sequence[Change], refused: frozenset[Place], fails: Fails
) -> frozenset[Place] | None:
    """Rewrites without which the result does not fail: small sets that make it fail, together.

    Args:
        changes: What was rewritten.
        refused: What was not, because it differs by itself.
        fails: Whether the result fails with some of the rewrites.

    Returns:
        The rewrites; None where the result fails without any.
    """
    budget = _Budget(RUNS, time.monotonic() + SECONDS)
    places = list(dict.fromkeys((c.recipe, c.rule, c.node) for c in changes))
    if fails(Kept(frozenset(), without=refused)):
        return None
    found: frozenset[Place] = frozenset()
    least: Sequence[Place] = places
    for turn in range(_TURNS):
        without = refused | found
        there = [place for place in places if place not in without]
        if not there:
            return found
        if turn and budget.spend() and not fails(Kept(without=without), anywhere=True):
            return found
        if budget.spent:
            break
        least = _narrowed(there, without, fails, budget)
        if len(least) > _MANY:
            break
        if turn >= _SINGLY:  # a rule that is wrong here and there is wrong everywhere
            named = {place[:2] for place in least}
            least = [place for place in there if place[:2] in named]
        found |= set(least)
    # an error that many make together, none of them wrong by itself
    recipes = {place[0] for place in least}
    there = [p for p in places if p[0] in recipes and p not in refused and p not in found]
    return found | frozenset(_from_an_end(there, refused | found, fails))


def _narrowed(
    places: Sequence[Place], without: frozenset[Place], fails: Fails, budget: _Budget
) -> list[Place]:
    """A small set of places that fails: first of rules, then of their places."""
    rules = list(dict.fromkeys(place[:2] for place in places))
    named = frozenset(
        _smallest(rules, lambda some: fails(Kept(frozenset(some), None, without)), budget)
    )
    there = [place for place in places if place[:2] in named]
    return _smallest(there, lambda some: fails(Kept(named, frozenset(some), without)), budget)


def _from_an_end(
    places: Sequence[Place], without: frozenset[Place], fails: Fails
) -> Sequence[Place]:
    """The first places, or the last, without which nothing fails: the fewer of both."""

    def found(ends: Sequence[Place]) -> Sequence[Place]:
        budget = _Budget(RUNS, time.monotonic() + SECONDS / 2)
        low, high = 0, len(ends)
        while high - low > max(1, len(ends) // _FINE) and budget.spend():
            middle = (low + high) // 2
            if fails(Kept(without=without | frozenset(ends[:middle])), anywhere=True):
                low = middle
            else:
                high = middle
        return ends[:high]

    return min(found(places), found(places[::-1]), key=len)


def _smallest(
    items: Sequence[Item], fails: Callable[[Sequence[Item]], bool], budget: _Budget
) -> list[Item]:
    """Delta debugging (Zeller and Hildebrandt, 2002): items that fail together, none to spare.

    What could not be tried for want of time stays in.
    """
    left, parts = list(items), 2
    while len(left) > 1:
        size = -(-len(left) // parts)
        chunks = [left[i : i + size] for i in range(0, len(left), size)]
        rests = [[x for x in left if x not in chunk] for chunk in chunks] if parts > 2 else []
        for tried in (*chunks, *rests):
            if not budget.spend():
                return left
            if fails(tried):
                parts = 2 if tried in chunks else max(parts - 1, 2)
                left = tried
                break
        else:
            if parts >= len(left):
                return left
            parts = min(2 * parts, len(left))
    return left
