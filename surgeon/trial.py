"""The check of one rewrite, before it is spliced: the matched piece against its replacement.

Both are cut out as tiny models with the same inputs, and compared on seeded inputs that agree with
the facts: a value that is known symbolically is given its value, attentions that are proven to sum
to 1 do. The original piece may hold ATen nodes: the witness runs it then. This proves nothing.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import onnx_graphsurgeon as gs

from surgeon import edges
from surgeon.edges import DEFINITE, EDGES, NORMAL, ORDERED
from surgeon.facts import Facts
from surgeon.facts.fact import BOOL, INTEGERS
from surgeon.firing import Pairs
from surgeon.match import Match
from surgeon.model import Model
from surgeon.piece import Piece, cut
from surgeon.recipe import Rule
from surgeon.reference import NoWitness, Undefined
from surgeon.rewrite import Draft
from surgeon.runtime import NotRunnable, RunFailed
from surgeon.verify import OutputCheck, Pair
from surgeon.verify.compare import TOLERANCES
from surgeon.verify.pair import NOT_RUN

WANTED = 2  # sets of normal inputs that both pieces must take
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
# Then longer ones, sizes of 1, equal sizes, and no size at all: where both run.
_FURTHER: tuple[tuple[int, ...], ...] = (
    (5, 7, 9, 8, 11, 6),
    (12, 17, 10),
    (1, 3, 2, 5),
    (4, 1, 3, 1, 2),
    (4,),
    (0, 3, 2),
    (3, 0, 2, 0),
    (2, 3, 0),
)
_MOST_SIZES = 4  # points beyond numbers in the replacement
Point = Mapping[str, int]


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
        """How the two differ on normal values at the first sizes that do, then on others."""
        why = "no sizes at which it is defined"
        for style in (NORMAL, ORDERED, DEFINITE):
            ran: list[_Bench] = []
            undefined = False
            for point in _points(piece, _SIZES):
                bench = _Bench(rule, piece, point, self.model)
                try:
                    bad = bench.differs(style, len(ran))
                except (KeyError, ValueError) as error:
                    why = f"its sizes are not decided by `{error}`"
                    continue
                except (Undefined, RunFailed) as error:
                    why = f"it does not run: {error.what[:120]}"
                    undefined = isinstance(error, Undefined)
                    continue
                except (NotRunnable, NoWitness) as error:
                    self.counts[f"not compared: {error.what[:120]}"] += 1
                    return None
                if bad is not None:
                    return bad
                ran.append(bench)
                if len(ran) == WANTED:
                    break
            if ran:
                self.counts["compared"] += 1
                return self._further(rule, piece, ran[-1], style)
            if not undefined:
                break
        self.counts[f"not compared: {why}"] += 1
        return None

    def _further(self, rule: Rule, piece: Piece, bench: _Bench, style: str) -> str | None:
        """Values and sizes that few models see, and at which rewrites are wrong; where both run."""
        styles = _styles(rule, piece) if style == NORMAL else []
        wanted = [(bench, *each) for each in styles]
        for place, point in enumerate((*_points(piece, _FURTHER), *_beyond(piece, bench.point))):
            other = _Bench(rule, piece, point, self.model)
            wanted.append((other, style, 0))
            if styles and place < 2:
                wanted.append((other, EDGES, 2))
        for bench, each, seed in wanted:
            try:
                bad = bench.differs(each, seed)
            except (KeyError, ValueError, Undefined, RunFailed, NotRunnable, NoWitness):
                continue
            if bad is not None:
                return bad
        return None


@dataclass(slots=True)
class _Bench:
    """Both pieces where every symbol has a size."""

    rule: Rule
    piece: Piece
    point: Point
    model: Model
    _pair: Pair | None = None

    def differs(self, style: str, seed: int) -> str | None:
        """How the two pieces differ on values drawn so, or None.

        Raises:
            KeyError, ValueError: The sizes make no piece.
            NotRunnable, RunFailed, Undefined, NoWitness: One of the two does not run.
        """
        rule = self.rule
        feeds = self.piece.feeds(self.point, seed=seed, style=style)
        if self._pair is None:
            before, after = self.piece.at(self.point)
            self._pair = Pair(
                before,
                after,
                exact="bit" if rule.exact == "bit" else "rounding",
                tolerance=rule.bound,
                folder=self.model.folder,
            )
        checks = self._pair.check(feeds)
        if any((c.fault or "").startswith(NOT_RUN) for c in checks) and not self._holds_numbers():
            return None
        exact = rule.exact == "bit" or style == NORMAL
        bad = next((c for c in checks if not c.agrees and (exact or not _saturated(c))), None)
        if bad is None:
            return None
        at = ", ".join(f"{k}={v}" for k, v in self.point.items()) or "its fixed sizes"
        what = bad.fault or f"error {bad.max_absolute:.3g}, {bad.max_relative:.3g} of spread"
        drawn_of = "" if style == NORMAL else f", {edges.WORDS[style]}"
        return f"the replacement differs from what it replaces: {what} at {at}{drawn_of}"

    def _holds_numbers(self) -> bool:
        """Whether no input is empty: kernels differ in whether they take such at all."""
        return all(array.size for array in self.piece.feeds(self.point, seed=0).values())


def _styles(rule: Rule, piece: Piece) -> list[tuple[str, int]]:
    nodes = (*piece.nodes, *piece.draft)
    dtypes = {fact.dtype for _, fact in piece.inputs if fact.value is None}
    return edges.styles(
        {_operator(node) for node in nodes},
        integers=bool(dtypes & INTEGERS),
        floats=bool(dtypes - INTEGERS - {BOOL}),
        exact=rule.exact == "bit",
    )


def _operator(node: gs.Node) -> str:
    return str(node.op if node.op == "ATen" or node.domain == "aten" else node.origin.op_type)


def _points(piece: Piece, choices: Sequence[Sequence[int]]) -> Iterator[Point]:
    """Sizes for the symbols, each choice once; a symbol is no larger than it may be."""
    seen = set()
    for sizes in choices:
        turns = itertools.cycle(sizes)
        point = {
            name: min(size, size if high is None else high)
            for (name, high), size in zip(piece.symbols.items(), turns, strict=False)
        }
        key = tuple(point.values())
        if key not in seen:
            seen.add(key)
            yield point


def _beyond(piece: Piece, at: Point) -> Iterator[Point]:
    """One symbol after the other a little larger than a number that the replacement holds."""
    free = [name for name, high in piece.symbols.items() if high is None]
    wanted = [(name, size) for size in piece.sizes for name in free]
    for name, size in wanted[:_MOST_SIZES]:
        yield {**at, name: size + 1}


def _saturated(check: OutputCheck) -> bool:
    """Whether an error is large only beside a spread that edge values made very small."""
    known = TOLERANCES.get(check.dtype)
    return not check.fault and known is not None and check.max_absolute <= 5 * known[1]
