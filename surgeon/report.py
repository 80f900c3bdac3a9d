"""The frozen record of a run: what changed, what did not and why, what was checked."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from surgeon.errors import Location

if TYPE_CHECKING:
    from surgeon.verify import Verdict

WHOLE = "whole"  # how the inputs were drawn on which the whole result, and no rewrite, differs


class Change(NamedTuple):
    """One rewrite.

    Attributes:
        rule: The rule's id.
        recipe: The name of the recipe that the rule is of.
        why: The rule's reason, as its recipe gives it.
        exact: `bit`, `rounding` or `approximate`; `asked for` of a change that is none of these.
        contract: What it changes in what the model promises, or None.
        node: The replaced root, as errors name nodes.
        before: The operators that matched, root first.
        after: The operators that took their place.
        location: file:line:column of the rule.
    """

    rule: str
    recipe: str
    why: str
    exact: str
    contract: str | None
    node: str
    before: tuple[str, ...]
    after: tuple[str, ...]
    location: str


class MissRecord(NamedTuple):
    """An attempt that failed, kept as found; its reason is put into words when it is read.

    `drafted` where the pattern and all conditions held, and what is to be written does not do.
    """

    rule: str
    recipe: str
    root: Any
    matched: int
    total: int
    reason: Callable[[], str]
    location: Location
    waits: str = ""
    drafted: bool = False


class Attempts:
    """The attempts of a run's steps that failed.

    Attributes:
        all: In the order in which they were made.
    """

    def __init__(self) -> None:
        """There are none."""
        self.all: list[MissRecord] = []
        self._settled = 0  # how many of these are from earlier steps than the last

    def settle(self) -> None:
        """Put the conditions that failed into words, while the graph is as they found it."""
        for at, record in enumerate(self.all[self._settled :], self._settled):
            if record.matched >= record.total:
                self.all[at] = record._replace(reason=partial(str, record.reason()))
        self._settled = len(self.all)


class Missed(NamedTuple):
    """Why a rule did not fire at a node.

    Attributes:
        rule: The rule's id.
        recipe: The name of the recipe that the rule is of.
        node: The root where matching began.
        matched: How many of the pattern's nodes were found.
        total: How many the pattern has.
        reason: In words.
        location: file:line:column of the rule or the condition.
        waits: `approximate` or `contract`, where only that this is not allowed kept it.
    """

    rule: str
    recipe: str
    node: str
    matched: int
    total: int
    reason: str
    location: str
    waits: str = ""

    def __str__(self) -> str:
        return f"{self.node}: matched {self.matched} of {self.total} nodes; {self.reason}"


class Refusal(NamedTuple):
    """A rewrite that was not made, because it differs from what it would replace.

    Attributes:
        rule: The rule's id.
        recipe: The name of the recipe that the rule is of.
        node: The root, as errors name nodes.
        reason: In words.
        sizes: The sizes at which it differs, by symbol.
        drawn: How the inputs were drawn: `normal`, `edges`, ...
        seed: What from.
        max_absolute: Largest absolute error; infinite where more than numbers differ.
        max_relative: The same, relative to the output's spread.
        evidence: The folder with both sides, where one was asked for.
    """

    rule: str
    recipe: str
    node: str
    reason: str
    sizes: Mapping[str, int]
    drawn: str
    seed: int
    max_absolute: float
    max_relative: float
    evidence: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; a number that is not finite becomes None."""
        plain = self._asdict()
        for name in ("max_absolute", "max_relative"):
            plain[name] = plain[name] if math.isfinite(plain[name]) else None
        return plain


@dataclass(slots=True)
class Notes:
    """What a run collects while it goes; `Report` is made of it.

    Attributes:
        every: Whether attempts are noted too that find the root of a pattern alone.
    """

    every: bool = False
    changes: list[Change] = field(default_factory=list)
    misses: list[MissRecord] = field(default_factory=list)
    housekeeping: Counter[str] = field(default_factory=Counter)
    remarks: list[str] = field(default_factory=list)
    retyped: frozenset[str] = frozenset()  # outputs whose declared element type was false
    refusals: list[Refusal] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    in_the_way: str = ""  # the operator for which an opset was not reached

    @property
    def made(self) -> int:
        """How much was done, of whatever kind."""
        return len(self.changes) + self.housekeeping.total()

    def refuse(self, refusal: Refusal) -> None:
        """Note a refusal, once: sweeps come by again."""
        if refusal not in self.refusals:
            self.refusals.append(refusal)

    def replaced(self) -> dict[str, list[str]]:
        """The nodes that each rule replaced, by `recipe/rule`."""
        found: dict[str, list[str]] = {}
        for change in self.changes:
            found.setdefault(f"{change.recipe}/{change.rule}", []).append(change.node)
        return found

    def anew(self) -> Notes:
        """Those of another run, which begins with what this one begins with."""
        return Notes(self.every, self.changes.copy(), remarks=self.remarks.copy())


class Report(NamedTuple):
    """What `apply` did to a model.

    Attributes:
        source: The model's path, or "<model>".
        recipes: Names of the recipes, in order.
        changes: Every rewrite, in order.
        misses: The nearest attempts that failed, for nodes that are still there.
        housekeeping: What the normal form did: constants folded, equal nodes merged, ...
        pieces: How many rewrites were compared one by one, and how many not, by reason.
        remarks: What the reader should know: interface changes, skipped steps, corrected claims.
        assumptions: What the user added with `shape` and `assume`, as given.
        before: How many nodes of each operator the input has (domain.operator).
        after: The same for the result.
        verdict: The outcome of the check; None where it was not asked for.
        seconds: Wall-clock time by stage.
        opset: The model's default opset.
        refusals: Every rewrite that was not made, because it differs from what it would replace.
        failures: Steps and checks that were left out: they refused, crashed, or took too long.
        opset_before: The default opset of the input.
        gone: Where every miss is recorded: what became of nodes of the file that are there no
            longer, by their names, or those of their first outputs.
    """

    source: str
    recipes: tuple[str, ...]
    changes: tuple[Change, ...]
    misses: tuple[Missed, ...]
    housekeeping: Mapping[str, int]
    pieces: Mapping[str, int]
    remarks: tuple[str, ...]
    assumptions: tuple[str, ...]
    before: Mapping[str, int]
    after: Mapping[str, int]
    verdict: Verdict | None
    seconds: Mapping[str, float]
    opset: int
    refusals: tuple[Refusal, ...] = ()
    failures: tuple[str, ...] = ()
    opset_before: int | None = None
    gone: Mapping[str, str] | None = None

    @property
    def status(self) -> str:
        """That of the verdict; without one `unchanged` or `unchecked`."""
        if self.verdict is not None:
            return self.verdict.status
        return "unchecked" if self.changes or self.before != self.after else "unchanged"

    @property
    def contracts(self) -> tuple[str, ...]:
        """What the rewrites changed in what the model promises, each once."""
        return tuple(dict.fromkeys(c.contract for c in self.changes if c.contract))

    @property
    def fired(self) -> Counter[str]:
        """How often each rule fired, by `recipe/rule`."""
        return Counter(f"{change.recipe}/{change.rule}" for change in self.changes)

    @property
    def at_fault(self) -> tuple[Refusal, ...]:
        """The rewrites with which the whole differs, although each agrees by itself."""
        return tuple(each for each in self.refusals if each.drawn == WHOLE)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        plain: dict[str, Any] = {
            "source": self.source,
            "recipes": list(self.recipes),
            "opset": self.opset,
            "status": self.status,
            "opset_before": self.opset_before,
            "changes": [change._asdict() for change in self.changes],
            "misses": [miss._asdict() for miss in self.misses],
            "refusals": [refusal.to_dict() for refusal in self.refusals],
            "housekeeping": dict(self.housekeeping),
            "pieces": dict(self.pieces),
            "remarks": list(self.remarks),
            "failures": list(self.failures),
            "assumptions": list(self.assumptions),
            "contracts": list(self.contracts),
            "before": dict(self.before),
            "after": dict(self.after),
            "seconds": dict(self.seconds),
        }
        plain["verdict"] = self.verdict.to_dict() if self.verdict is not None else None
        return plain

    def to_json(self) -> str:
        """The report as JSON text."""
        return json.dumps(self.to_dict(), indent=2, default=str)
