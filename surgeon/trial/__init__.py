"""The check of one rewrite, before it is spliced: the matched piece against its replacement.

Both are cut out as tiny models with the same inputs, and compared on seeded inputs that agree with
the facts: a value that is known symbolically is given its value, attentions that are proven to sum
to 1 do. The original piece may hold ATen nodes: the witness runs it then. This proves nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from textwrap import shorten

from surgeon import edges
from surgeon.chance import drawn_outputs
from surgeon.edges import DEFINITE, EDGES, FLAT, HUGE, NORMAL, ORDERED, REAL, WITHIN, Drawing
from surgeon.errors import ForeignError, OutputError, SurgeonError
from surgeon.evidence import keep
from surgeon.facts import Facts
from surgeon.facts.fact import Array
from surgeon.firing import Pairs
from surgeon.match import Match
from surgeon.meanings import Meanings
from surgeon.model import Model, describe
from surgeon.recipe import Rule
from surgeon.reference import NoWitness, Undefined
from surgeon.report import Refusal
from surgeon.rewrite import Draft
from surgeon.runtime import NotRunnable, RunFailed
from surgeon.trial import points
from surgeon.trial.activations import Activations
from surgeon.trial.cutting import FAR, cut
from surgeon.trial.heldto import narrows, styles
from surgeon.trial.piece import Piece
from surgeon.trial.placing import places
from surgeon.trial.points import Point
from surgeon.trial.reach import Reach
from surgeon.trial.told import NAMED, ends_of
from surgeon.verify import OutputCheck, open_pair
from surgeon.verify.compare import TOLERANCES, Exact
from surgeon.verify.pair import NOT_RUN, IsolatedPair, Pair

WANTED = 2  # sets of normal inputs that both pieces must take
# Elements of all further runs together: large values take long, and one set of them shows as much
# as many small ones do.
_ALL = 1 << 22
_BROAD = (EDGES, WITHIN, HUGE)  # of more values than a small piece has elements
_LONGEST = 200  # characters of a reason


@dataclass(frozen=True, slots=True)
class Difference:
    """Where a replacement differs from what it replaces.

    Attributes:
        piece: Both.
        point: The sizes.
        style: How the inputs were drawn.
        seed: What from.
        check: The output that differs.
        given: The inputs, where they were not drawn.
    """

    piece: Piece
    point: Point
    style: str
    seed: int
    check: OutputCheck
    given: Mapping[str, Array] | None = None

    @property
    def feeds(self) -> Mapping[str, Array]:
        """The inputs on which they differ."""
        if self.given is not None:
            return self.given
        return self.piece.drawing(self.point, seed=self.seed, style=self.style).feeds()

    def __str__(self) -> str:
        at = ", ".join(f"{k}={v}" for k, v in self.point.items()) or "its fixed sizes"
        bad = self.check
        allowed = f" (allowed {bad.tolerance:.3g})" if bad.tolerance else ""
        error = f"error {bad.max_absolute:.3g}, {bad.max_relative:.3g} of spread{allowed}"
        what = bad.fault or error
        drawn_of = "" if self.style == NORMAL else f", {edges.WORDS[self.style]}"
        if self.style in NAMED:
            drawn_of += ends_of(self.feeds, self.piece)
        return f"the replacement differs from what it replaces: {what} at {at}{drawn_of}"


@dataclass(slots=True)
class Trial:
    """Compares rewrites of one model; each distinct piece once.

    Attributes:
        counts: How many were compared, and how many were not, by reason.
        refusals: Takes every rewrite that differs from what it replaces.
        failures: Where onnxruntime crashed, hung or ran out of memory.
        evidence: Where the pieces of such a rewrite are kept, if anywhere.
        real: What the original computes on real inputs, where there are such.
        meanings: What custom operators compute.
        reach: How large the model's values become, where rules narrow them.
    """

    model: Model
    facts: Facts
    counts: Counter[str] = field(default_factory=Counter)
    refusals: list[Refusal] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    evidence: Path | None = None
    real: Activations | None = None
    meanings: Meanings = field(default_factory=Meanings)
    reach: Reach = field(default_factory=Reach)
    _known: dict[str, Difference | None] = field(default_factory=dict)
    _folders: dict[int, str | None] = field(default_factory=dict)

    def __call__(self, rule: Rule, match: Match, draft: Draft, pairs: Pairs) -> str | None:
        """The reason to refuse the rewrite, or None."""
        if rule.exact == "approximate" and rule.bound is None:
            self.counts["not compared: it is approximate"] += 1
            return None
        outside = self.reach.outside(_around(match)) if narrows(rule, draft.nodes) else ""
        if outside:
            return self._refused(_unmeasured(rule, match, outside))
        pairs = [*pairs, *(pair for _, others in draft.also for pair in others)]
        given = self.model, self.facts, match, draft, pairs
        piece = cut(*given)
        if isinstance(piece, str):
            self.counts[f"not compared: {piece}"] += 1
            return None
        bad = self._difference(rule, piece)
        if bad is not None and piece.ends_early:  # what it draws may be computed of what it reads
            further = cut(*given, depth=FAR)
            if isinstance(further, Piece) and len(further.nodes) > len(piece.nodes):
                bad = self._difference(rule, further)
        if bad is None:
            return None
        return self._refused(_refusal(rule, match, bad, self._kept(rule, match, bad)))

    def _refused(self, refusal: Refusal) -> str:
        if refusal not in self.refusals:  # each sweep tries it again
            self.refusals.append(refusal)
        return refusal.reason

    def _difference(self, rule: Rule, piece: Piece) -> Difference | None:
        """How the two sides of a piece differ; of equal pieces found once."""
        key = piece.key(rule)
        if key in self._known:
            self.counts["compared before"] += 1
            return self._known[key]
        try:
            bad = self._compare(rule, piece)
        except ForeignError as error:  # which of the two is at fault, the whole model's check says
            self.counts[f"not compared: {_short(error.what)}"] += 1
            self.failures.append(f"the check of `{rule.recipe}/{rule.id}`: {error.what[:500]}")
            bad = None
        self._known[key] = bad
        return bad

    def _kept(self, rule: Rule, match: Match, bad: Difference) -> str | None:
        """The folder that shows a difference, written when it is found first."""
        if id(bad) not in self._folders:
            self._folders[id(bad)] = self._keep(rule, match, bad)
        return self._folders[id(bad)]

    def _keep(self, rule: Rule, match: Match, bad: Difference) -> str | None:
        """The folder that shows the difference, where such folders are wanted."""
        if self.evidence is None:
            return None
        before, after = map(self.meanings.told, bad.piece.models())
        feeds = bad.feeds
        label = f"{rule.recipe}/{rule.id} at {describe(match.root)}"
        try:
            kept = keep(self.evidence, label, str(bad), before, after, feeds, self.model.folder)
        except OutputError as error:  # a full disk is no reason to stop
            self.counts[f"without evidence: {error.what}"] += 1
            return None
        return None if kept is None else str(kept)

    def _compare(self, rule: Rule, piece: Piece) -> Difference | None:
        """How the two differ on normal values at the first sizes that do, then on others."""
        why = "no sizes at which it is defined"
        before, after = map(self.meanings.told, piece.models())
        piece = replace(piece, places=places(before, piece.inputs))
        bench = _Bench(rule, piece, open_pair(before, after, self.model.folder))
        for style in (NORMAL, ORDERED, DEFINITE):
            ran: list[Point] = []
            undefined, tried = False, 0
            for point in points.usual(piece):
                tried += 1
                try:
                    bad = bench.differs([_Run(point, style, len(ran))], strict=True)
                except KeyError as error:
                    why = f"nothing decides the size {error}"
                    continue
                except ValueError as error:
                    why = f"at all sizes tried it has {error}"
                    continue
                except (Undefined, RunFailed) as error:
                    why = f"it does not run: {error.what[:120]}"
                    undefined = isinstance(error, Undefined)
                    continue
                except (NotRunnable, NoWitness) as error:
                    self.counts[f"not compared: {_short(error.what)}"] += 1
                    return None
                if bad is not None:
                    return bad
                ran.append(point)
                if len(ran) == WANTED:
                    break
            if ran:
                if drawn_outputs(before):
                    self.counts["compared by dtype and shape: it draws at random"] += 1
                    return None
                self.counts["compared"] += 1
                return self._on_real_values(bench) or self._further(
                    bench, ran[-1], style, free=tried == len(ran)
                )
            if not undefined:
                break
        self.counts[f"not compared: {why}"] += 1
        return None

    def _on_real_values(self, bench: _Bench) -> Difference | None:
        """On what the original itself computes there, where that is known."""
        if self.real is None:
            return None
        for place, (point, feeds) in enumerate(self.real.of(bench.piece)):
            try:
                given = {**feeds, **bench.piece.known(point)}
                bad = bench.differs([_Run(point, REAL, place, given)], strict=True)
            except (KeyError, ValueError, NotRunnable, RunFailed, Undefined, NoWitness):
                continue
            self.counts["compared on real values"] += place == 0
            if bad is not None:
                return bad
        return None

    def _further(self, bench: _Bench, at: Point, style: str, *, free: bool) -> Difference | None:
        """Values and sizes that few models see, and at which rewrites are wrong; where both run."""
        piece = bench.piece
        if narrows(bench.rule, piece.draft):  # one operator in halves, which end and are coarse
            return None
        ways = styles(bench.rule, piece) if style == NORMAL else []
        broad = points.wide(piece, at) if free else at
        if broad is at and (HUGE, 1) in ways:  # among a few, another set shows no more
            ways.remove((HUGE, 1))
        # a second set of the same kind is broad, if it can be: more of the values are there
        drawn = [(broad if seed and way in _BROAD else at, way, seed) for way, seed in ways]
        runs = [
            (_Run(point, way, seed, many=point is not at), piece.elements(point))
            for point, way, seed in drawn
        ]
        further = points.further(piece, at)
        for place, point in enumerate(p for p in further if not piece.ends_the_process(p)):
            size = piece.elements(point)
            runs.append((_Run(point, style, 0), size))
            if place < 2 and broad is at and any(way == EDGES for way, _ in ways):
                runs.append((_Run(point, EDGES, 2), size))
            if len(point) > 1 == len(set(point.values())) and (FLAT, 1) in ways:
                runs.append((_Run(point, FLAT, 1), size))
        left, chosen = _ALL, []
        for run, size in runs:
            if size <= left:
                left -= size
                chosen.append(run)
        if len(chosen) < len(runs):
            self.counts["compared on fewer values: they are large"] += 1
        return bench.differs(chosen)


@dataclass(frozen=True, slots=True)
class _Run:
    """One run of both pieces.

    Attributes:
        point: The sizes.
        style: How the inputs are drawn.
        seed: What from.
        given: The inputs, where they are not drawn.
        many: Whether the sizes are there for many values, and not for themselves.
    """

    point: Point
    style: str
    seed: int
    given: Mapping[str, Array] | None = None
    many: bool = False


@dataclass(frozen=True, slots=True)
class _Bench:
    """Both pieces, opened once for all sizes."""

    rule: Rule
    piece: Piece
    pair: Pair | IsolatedPair

    def differs(self, runs: Sequence[_Run], *, strict: bool = False) -> Difference | None:
        """How the two pieces differ at the first of these runs at which they do, or None.

        Args:
            runs: Those at sizes that make no piece are left out, and those that cannot be compared.
            strict: Raise there.

        Raises:
            KeyError, ValueError: The sizes make no piece.
            NotRunnable, RunFailed, Undefined, NoWitness: One of the two does not run.
        """
        inputs = []
        for run in runs:
            try:
                inputs.append((run, self._inputs(run)))
            except (KeyError, ValueError):
                if strict:
                    raise
        exact: Exact = "bit" if self.rule.exact == "bit" else "rounding"
        found = self.pair.check([given for _, given in inputs], exact, self.rule.bound)
        for (run, _), checks in zip(inputs, found, strict=True):
            if isinstance(checks, SurgeonError):
                if strict:
                    raise checks
            elif bad := next((check for check in checks if self._fails(run, check)), None):
                return Difference(self.piece, run.point, run.style, run.seed, bad, run.given)
        return None

    @property
    def _averages(self) -> bool:
        return any(node.op == "ReduceMean" for node in self.piece.draft)

    def _inputs(self, run: _Run) -> Mapping[str, Array] | Drawing:
        if run.given is not None:
            return run.given
        return self.piece.drawing(run.point, seed=run.seed, style=run.style)

    def _fails(self, run: _Run, check: OutputCheck) -> bool:
        if check.agrees:
            return False
        if run.many and (check.fault or "").startswith("its shape is"):
            return False  # so long may be what is known to be shorter: a table's places
        # kernels differ in whether they take empty tensors at all, and a shape without elements
        # says nothing; what the mean of no element is, ONNX leaves open, and a dtype that PyTorch
        # has of no elements alone (`bincount` of no weights) no graph of a run-time length has
        fault = check.fault or ""
        said = (NOT_RUN, "its shape is", "its dtype is")
        open_ = (*said, "NaN at") if self._averages else said
        if fault.startswith(open_) and self.piece.is_empty(run.point):
            return fault.startswith(NOT_RUN) and self.piece.counts_nothing(run.point)
        # data that its contract does not have may end in an error, which is no wrong result
        if self.rule.contract and run.style not in (NORMAL, REAL) and fault.startswith(NOT_RUN):
            return False
        exact = self.rule.exact == "bit" or run.style in (NORMAL, REAL)
        return exact or not _saturated(check)


def _refusal(rule: Rule, match: Match, bad: Difference, evidence: str | None) -> Refusal:
    return Refusal(
        rule=rule.id,
        recipe=rule.recipe,
        node=describe(match.root),
        reason=str(bad),
        sizes=dict(bad.point),
        drawn=bad.style,
        seed=bad.seed,
        max_absolute=bad.check.max_absolute,
        max_relative=bad.check.max_relative,
        evidence=evidence,
    )


def _unmeasured(rule: Rule, match: Match, reason: str) -> Refusal:
    inf = float("inf")
    return Refusal(rule.id, rule.recipe, describe(match.root), reason, {}, REAL, -1, inf, inf)


def _around(match: Match) -> list[str]:
    """The values that a match reads and gives, without those between its nodes."""
    inner = {t.name for node in match.nodes[1:] for t in node.outputs}
    read = {t.name for node in match.nodes for t in node.inputs}
    return [*read.difference(inner), *(t.name for t in match.root.outputs)]


def _saturated(check: OutputCheck) -> bool:
    """Whether an error is large only beside a spread that edge values made very small."""
    known = TOLERANCES.get(check.dtype)
    return not check.fault and known is not None and check.max_absolute <= 5 * known[1]


def _short(reason: str) -> str:
    return shorten(reason, _LONGEST, placeholder=" ...")
