"""The check of one rewrite, before it is spliced: the matched piece against its replacement.

Both are cut out as tiny models with the same inputs, and compared on seeded inputs that agree with
the facts: a value that is known symbolically is given its value, attentions that are proven to sum
to 1 do. The original piece may hold ATen nodes: the witness runs it then. This proves nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from surgeon import edges
from surgeon.edges import NORMAL
from surgeon.facts import Facts
from surgeon.facts.fact import INTEGERS
from surgeon.firing import Pairs
from surgeon.match import Match
from surgeon.model import Model
from surgeon.piece import Piece, cut
from surgeon.recipe import Rule
from surgeon.reference import NoWitness, Undefined
from surgeon.rewrite import Draft
from surgeon.runtime import NotRunnable, RunFailed
from surgeon.verify import OutputCheck, check_pair
from surgeon.verify.compare import TOLERANCES

WANTED = 2  # sets of inputs that both pieces must take
_DEPTH = 12  # how far behind the match the replacement's operands may lie
_LARGEST = 1 << 26  # bytes of constants in a piece
_LARGEST_INPUT = 1 << 22  # elements of one drawn input
# What every symbol is, one set at a time, until both pieces ran on enough of them.
_SIZES: tuple[tuple[int, ...], ...] = (
    (2, 3, 5, 4, 7, 6),
    (3, 5, 4, 7, 2, 6),
    (2,),
    (3,),
    (1,),
    (4,),
    (8,),
    (16,),
    (32,),
    (37, 64, 45),
)
_FURTHER: tuple[tuple[int, ...], ...] = ((5, 7, 9, 8, 11, 6), (12, 17, 10))
_EDGES = 2  # sets of each kind of edge values


@dataclass(slots=True)
class Trial:
    """Compares rewrites of one model; each distinct piece once.

    Attributes:
        counts: How many were compared, and how many were not, by reason.
    """

    model: Model
    facts: Facts
    counts: Counter[str] = field(default_factory=Counter)
    _known: dict[str, str | None] = field(default_factory=dict)

    def __call__(self, rule: Rule, match: Match, draft: Draft, pairs: Pairs) -> str | None:
        """The reason to refuse the rewrite, or None."""
        if rule.exact == "approximate" and rule.bound is None:
            self.counts["not compared: it is approximate"] += 1
            return None
        pairs = [*pairs, *(pair for _, others in draft.also for pair in others)]
        piece = cut(self.model, self.facts, match, draft, pairs)
        if isinstance(piece, str):
            self.counts[f"not compared: {piece}"] += 1
            return None
        key = piece.key(rule)
        if key in self._known:
            self.counts["compared before"] += 1
            return self._known[key]
        verdict = self._known[key] = self._compare(rule, piece)
        return verdict

    def _compare(self, rule: Rule, piece: Piece) -> str | None:
        ran = 0
        why = "no sizes at which it is defined"
        at: Mapping[str, int] = {}
        for sizes in _SIZES:
            point = dict(zip(piece.symbols, _cycle(sizes), strict=False))
            try:
                bad = self._differs(rule, piece, point, NORMAL, ran)
            except (KeyError, ValueError) as error:
                why = f"its sizes are not decided by `{error}`"
                continue
            except (Undefined, RunFailed) as error:
                why = f"it does not run: {error.what[:120]}"
                continue
            except (NotRunnable, NoWitness) as error:
                self.counts[f"not compared: {error.what[:120]}"] += 1
                return None
            if bad is not None:
                return bad
            ran += 1
            at = point
            if ran == WANTED or not piece.symbols:
                break
        self.counts["compared" if ran else f"not compared: {why}"] += 1
        return self._further(rule, piece, at) if ran else None

    def _further(self, rule: Rule, piece: Piece, at: Mapping[str, int]) -> str | None:
        """Values and sizes that few models see, and at which rewrites are wrong; where both run."""
        styles = edges.styles(
            {
                node.op if node.op == "ATen" or node.domain == "aten" else node.origin.op_type
                for node in (*piece.nodes, *piece.draft)
            },
            integers=any(fact.dtype in INTEGERS for _, fact in piece.inputs),
            exact=rule.exact == "bit",
        )
        if not styles:
            return None
        points = [at, *(dict(zip(piece.symbols, _cycle(s), strict=False)) for s in _FURTHER)]
        # a symbol that stands for a part of another (`n<=6`) is no larger than it says
        bounded = any("<" in name or "-" in name for name in piece.symbols)
        for point in points[: 1 if bounded or not piece.symbols else None]:
            wanted = [(style, seed) for style in styles for seed in range(_EDGES)]
            if point is not at:
                wanted = [(NORMAL, 0), *((style, _EDGES) for style in styles[:1])]
            for style, seed in wanted:
                try:
                    bad = self._differs(rule, piece, point, style, seed)
                except (KeyError, ValueError, Undefined, RunFailed, NotRunnable, NoWitness):
                    continue
                if bad is not None:
                    return bad
        return None

    def _differs(
        self, rule: Rule, piece: Piece, point: Mapping[str, int], style: str, seed: int
    ) -> str | None:
        """How the two pieces differ at these sizes, or None.

        Raises:
            KeyError, ValueError: The sizes make no piece.
            NotRunnable, RunFailed, Undefined, NoWitness: One of the two does not run.
        """
        before, after, feeds = piece.at(point, seed=seed, style=style)
        checks = check_pair(
            before,
            after,
            feeds_list=[feeds],
            exact="bit" if rule.exact == "bit" else "rounding",
            tolerance=rule.bound,
            folder=self.model.folder,
        )
        exact = rule.exact == "bit" or style == NORMAL
        bad = next((c for c in checks if not c.agrees and (exact or not _saturated(c))), None)
        if bad is None:
            return None
        at = ", ".join(f"{k}={v}" for k, v in point.items()) or "its fixed sizes"
        what = bad.fault or f"error {bad.max_absolute:.3g}, {bad.max_relative:.3g} of spread"
        drawn_of = "" if style == NORMAL else f", {edges.WORDS[style]}"
        return f"the replacement differs from what it replaces: {what} at {at}{drawn_of}"


def _saturated(check: OutputCheck) -> bool:
    """Whether an error is large only beside a spread that edge values made very small."""
    known = TOLERANCES.get(check.dtype)
    return not check.fault and known is not None and check.max_absolute <= 5 * known[1]


def _cycle(sizes: Sequence[int]) -> Iterator[int]:
    while True:
        yield from sizes
