"""The comparison under way: finds inputs on which the original runs, and collects what agrees."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import onnx

from surgeon.errors import SurgeonError
from surgeon.reference import NoWitness
from surgeon.verify.attempts import Attempts
from surgeon.verify.compare import compare_arrays, compare_drawn
from surgeon.verify.conclusion import DATA, conclude
from surgeon.verify.datasets import DataSet
from surgeon.verify.growth import Growth
from surgeon.verify.inputs import DRAWN, STRATEGIES, Drawing
from surgeon.verify.joined import without
from surgeon.verify.limits import Bound, Input
from surgeon.verify.noise import CALM, all_doubted, movement, perturbed
from surgeon.verify.optimised import Run, keep_run
from surgeon.verify.originals import Side, read_recorded
from surgeon.verify.precision import allowed
from surgeon.verify.samples import Batch, larger_batches
from surgeon.verify.sizes import (
    WANTED,
    candidates,
    dynamic_dims,
    first_choices,
    fits,
    groups,
    is_leading,
    search,
    sizes_of,
    with_smaller,
)
from surgeon.verify.specs import Spec
from surgeon.verify.summary import digest, has_numbers
from surgeon.verify.verdict import Comparison, NotCompared, Verdict, describe

_FOR_A_MARK = 40  # sizes tried for a number that the model asks for
_FARTHEST = 32  # times a size that runs: what takes the square of it takes a thousand times as long
UNSTEADY, NO_NUMBERS = 1e30, float("inf")  # how little an input tells, beyond measured movement


@dataclass
class Check:
    """What was and was not compared so far.

    Attributes:
        result: The model to judge.
        names: Its outputs.
        tolerance: Allowed whatever the table says, relative to the spread.
        seeds: What inputs are drawn from.
        progress: Told what is being compared.
        original: What stands for the original, unless it is recorded.
        random: The outputs drawn at random, and whether their sizes are too (`drawn_outputs`).
        growth: How large its values become, as far as is known.
        joined: Dims of what is kept from run to run (`joined_dims`).
    """

    result: Side
    names: list[str]
    tolerance: float
    seeds: tuple[int, ...]
    progress: Callable[[str], None]
    original: Side | None = None
    comparisons: list[Comparison] = field(default_factory=list)
    not_compared: list[NotCompared] = field(default_factory=list)
    fault: str | None = None  # why the result is broken
    digests: dict[str, dict[tuple[Any, ...], list[bytes]]] = field(default_factory=dict)
    attempts: Attempts = field(default_factory=Attempts)
    random: Mapping[str, bool] = field(default_factory=dict)
    inputs: Mapping[str, str] = field(default_factory=dict)  # how each is drawn, in words
    kept: dict[tuple[Any, ...], dict[str, Any]] = field(default_factory=dict)
    squashed: frozenset[str] = frozenset()  # see `squashed_outputs`
    coarse: Mapping[str, str] = field(default_factory=dict)  # see `coarse_outputs`
    runs: list[Run] = field(default_factory=list)  # a few that agree
    growth: Growth | None = None
    joined: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in self.names:
            if name in self.random:
                self.skip(f"output `{name}`", "the original draws it at random, or never sets it")

    # ------------------------------------------------------------------ inputs of a file

    def recorded(
        self, files: Sequence[Path], model: onnx.ModelProto, inputs: Sequence[Input]
    ) -> None:
        """Compare on the inputs of .npz files."""
        names = [value.name for value in model.graph.input]
        for file in files:
            kept = read_recorded(file, names, [each.name for each in inputs], self.names)
            sizes = sizes_of(kept.feeds, inputs)
            self.progress(f"compare with {kept.file.name}")
            self._compare(kept.feeds, kept.outputs, sizes, -1, f"recorded {kept.file.name}")
            if self.fault:
                return

    def given(
        self, sets: Sequence[DataSet], model: onnx.ModelProto, inputs: Sequence[Input]
    ) -> None:
        """Compare on the user's own inputs, where the original takes them."""
        assert self.original is not None
        names = {value.name for value in model.graph.input}
        for each in sets:
            sizes = sizes_of(each.feeds, inputs)
            self.progress(f"compare on {each.label}")
            expected = self._run_original(each.feeds, sizes)
            if expected is None:
                self.skip(f"{DATA} `{each.label}`", self.attempts.reason_at(sizes))
                continue
            feeds = {name: array for name, array in each.feeds.items() if name in names}
            given, by = (feeds, expected, sizes), self.original.by
            self._compare(*given, -1, by, label=each.label, doubt=True)
            if self.fault:
                return

    # -------------------------------------------------------------------- inputs by seed

    def drawn(
        self,
        inputs: Sequence[Input],
        limits: Mapping[str, Bound],
        hints: Mapping[str, list[int]],
        specs: Mapping[str, Spec] | None = None,
    ) -> str:
        """Compare on drawn inputs, at several sizes; why not, if the original runs on none."""
        dims = dynamic_dims(inputs)
        lists = candidates(dims, inputs, hints, self.growth)
        drawing = Drawing(inputs, limits, STRATEGIES[0], specs or {})
        first = [sizes for sizes in first_choices(lists) if fits(sizes, inputs, self.growth)]
        found = self._first_that_runs(drawing, first, search(dims, inputs, hints, self.growth))
        if found is None:
            why = self.attempts.last_reason()
            return f"no input was found on which the original runs: {why}"
        base, drawing = found
        self.inputs = drawing.describe()
        ran = [base] if self._at(base, drawing) else []
        for sizes in first:
            if sizes != base and not self.fault and self._at(sizes, drawing):
                ran.append(sizes)
        for group in groups(dims, inputs, base, hints):
            self._more_sizes(group, lists[group[0]], ran, drawing, hints)
        joined = [dim for dim in self.joined if dim in base and dim not in hints]
        for sizes in without(base, joined):
            # where the original does not run so, nothing is missed: something is always kept
            if self.fault or self._at(sizes, drawing):
                break
        for marked in drawing.at_marks():
            if not self.fault:
                self._at_mark(marked, [base, *ran], search(dims, inputs, hints, self.growth))
        return ""

    def _at_mark(
        self,
        drawing: Drawing,
        known: Sequence[Mapping[str, int]],
        further: Iterator[Mapping[str, int]],
    ) -> None:
        """Compare where an input is a number that the model asks for, at sizes that run there."""
        if found := self._first_that_runs(drawing, known, itertools.islice(further, _FOR_A_MARK)):
            self._at(*found)
            return
        self.skip(describe(drawing.fixed), self.attempts.last_reason())

    def _first_that_runs(
        self,
        drawing: Drawing,
        first: Sequence[Mapping[str, int]],
        further: Iterator[Mapping[str, int]],
    ) -> tuple[Mapping[str, int], Drawing] | None:
        """Sizes and a way of drawing on which the original runs, calmly if it can."""
        calmest: tuple[float, Mapping[str, int], Drawing] | None = None
        for strategy in STRATEGIES:
            if strategy not in DRAWN and calmest and calmest[0] < NO_NUMBERS:
                break
            drawing = replace(drawing, strategy=strategy)
            base, noise = self._judge(drawing, first)
            if base is not None and noise <= CALM:
                return base, drawing
            if base is not None and (calmest is None or noise < calmest[0]):
                calmest = noise, base, drawing
        if calmest:
            return calmest[1:]
        for sizes in itertools.takewhile(lambda _: self.attempts.may_go_on, further):
            if fits(sizes, drawing.inputs, self.growth):
                for strategy in (STRATEGIES[0], "zeros"):
                    drawing = replace(drawing, strategy=strategy)
                    base, _ = self._judge(drawing, [sizes])
                    if base is not None:
                        return sizes, drawing
        return None

    def _judge(
        self, drawing: Drawing, first: Sequence[Mapping[str, int]]
    ) -> tuple[Mapping[str, int] | None, float]:
        """The first sizes that run, and how far rounding of the inputs moves the original."""
        self.kept.clear()
        base, noise = None, 0.0
        blank: set[str] = set(self.names)  # what had no number yet, at whatever size
        for sizes in first:
            feeds = drawing.feeds(sizes, seed := self.seeds[0])
            outputs = self._run_original(feeds, sizes)
            if outputs is None:
                continue
            self.kept[drawing.strategy, tuple(sizes.values()), seed] = outputs
            if base is None:
                base = sizes
            moved = self._run_original(perturbed(feeds, seed), sizes)
            numbers = {name for name, value in outputs.items() if has_numbers(value)}
            blank -= numbers
            if moved is None:
                return base, UNSTEADY
            for name in (n for n in self.names if n not in self.random and n in numbers):
                limit = self._allowed(name, outputs[name])
                noise = max(noise, movement(name, outputs[name], moved[name], tolerance=limit))
            noise = min(noise, UNSTEADY)
            if noise > CALM:
                return base, noise
        if base is not None and blank:
            return base, NO_NUMBERS
        return base, noise

    def _run_original(
        self, feeds: Mapping[str, Any], sizes: Mapping[str, int]
    ) -> dict[str, Any] | None:
        assert self.original is not None
        return self.attempts.run(self.original, feeds, self.names, sizes)

    def _at(self, sizes: Mapping[str, int], drawing: Drawing) -> bool:
        """Compare at these sizes; whether the original runs there with any of the seeds."""
        ran = False
        for seed in self.seeds:
            self.progress(f"compare at {describe(sizes) or 'the declared sizes'}, seed {seed}")
            feeds = drawing.feeds(sizes, seed)
            expected = self.kept.pop((drawing.strategy, tuple(sizes.values()), seed), None)
            expected = expected or self._run_original(feeds, sizes)
            if expected is None:
                break
            ran = True
            by = self.original.by if self.original else ""
            self._compare(feeds, expected, sizes, seed, by, drawing, doubt=True)
            if self.fault:
                break
        return ran

    def _more_sizes(
        self,
        group: tuple[str, ...],
        sizes: Sequence[int],
        ran: list[Mapping[str, int]],
        drawing: Drawing,
        hints: Collection[str],
    ) -> None:
        """Bring dims to three sizes, the others held; where it cannot be, say so."""
        if not ran or self.fault:
            return
        base = ran[0]
        done, most = {each[group[0]] for each in ran}, _FARTHEST * base[group[0]]
        for size in (n for n in sizes if n <= most and n not in done):
            trial = {**base, **dict.fromkeys(group, size)}
            if len(done) >= WANTED or self.fault or not self.attempts.may_go_on:
                break
            if fits(trial, drawing.inputs, self.growth) and self._at(trial, drawing):
                ran.append(trial)
                done.add(size)
        if len(group) > 1:
            self._apart(group, base, done, drawing)
        if len(done) >= WANTED or group[0] in hints:
            return
        failed = {**base, **dict.fromkeys(group, next(n for n in sizes if n not in done))}
        # what is too long fails at any batch: the others are smaller before this one is blamed
        further = [n for n in sizes if n <= most and n not in done][:WANTED]
        for smaller in with_smaller(base, group, hints):
            if len(done) >= WANTED or self.fault or not self.attempts.may_go_on:
                break
            feeds = drawing.feeds(smaller, self.seeds[0])
            if self._run_original(feeds, smaller) is None:  # what is frozen runs there by chance
                break
            for trial in ({**smaller, **dict.fromkeys(group, n)} for n in further if n not in done):
                if len(done) < WANTED and not self.fault and self._at(trial, drawing):
                    ran.append(trial)
                    done.add(trial[group[0]])
        if len(done) >= WANTED:
            return
        # lengths that have names of their own may be no samples: nothing is put together of them
        if len(done) == len(group) == 1 and is_leading(group[0], drawing.inputs):
            self._by_samples(group, base, drawing)
            return
        known = ", ".join(map(str, sorted(done)))
        self.skip(f"{' and '.join(group)} other than {known}", self.attempts.reason_at(failed))

    def _apart(
        self,
        group: tuple[str, ...],
        base: Mapping[str, int],
        done: Collection[int],
        drawing: Drawing,
    ) -> None:
        """Dims on one axis got one size so far: different ones too, if the original takes them."""
        known = sorted(done)
        size = base[group[0]]
        for dim in group[1:]:
            trial = {**base, dim: next((n for n in known if n != size), size + 1)}
            if not self.fault and fits(trial, drawing.inputs, self.growth):
                self._at(trial, drawing)

    def _by_samples(
        self, group: tuple[str, ...], base: Mapping[str, int], drawing: Drawing
    ) -> None:
        """The original runs at one batch only: larger ones are put together from such runs."""
        assert self.original is not None
        sides, seed = (self.original, self.result, self.names), self.seeds[0]
        self.progress(f"compare at other batches than {base[group[0]]}, sample by sample")
        for found in larger_batches(*sides, group, base, drawing, seed):
            if isinstance(found, Batch):
                self._compare(*found, seed, f"{self.original.by}, sample by sample", drawing)
            else:
                self.not_compared.append(found)

    # -------------------------------------------------------------------------- comparing

    def _compare(
        self,
        feeds: Mapping[str, Any],
        expected: Mapping[str, Any],
        sizes: Mapping[str, int],
        seed: int,
        by: str,
        drawing: Drawing | None = None,
        *,
        label: str = "",
        doubt: bool = False,
    ) -> None:
        drawn, fixed = (drawing.strategy, drawing.fixed) if drawing else (label, {})
        by += f" where {describe(fixed)}" if fixed else ""
        names = [name for name in self.names if name in expected]
        try:
            actual = self.result.run(feeds, names)
        except NoWitness:
            raise
        except SurgeonError as error:
            place = " ".join(filter(None, (describe(sizes), f"seed {seed}" if seed >= 0 else by)))
            self.fault = f"the result does not run at {place}: {error.what}"
            return
        checks = []
        for name in names:
            if name in self.random:
                check = compare_drawn(name, expected[name], actual[name], sized=self.random[name])
                checks += [] if check.agrees else [check]
                continue
            check = compare_arrays(
                name,
                expected[name],
                actual[name],
                tolerance=self._allowed(name, expected[name]),
                averaged=1.0 if name in self.squashed else 0.0,
            )
            checks.append(check)
            key = (*sizes.items(), by)
            seen = self.digests.setdefault(name, {}).setdefault(key, [])
            seen.append(digest(expected[name]))
        if doubt:
            assert self.original is not None
            runs = partial(self.original.trembling_runs, feeds, self.names)
            most = self.original.forgiven(feeds)
            judged = [name for name in names if name not in self.random]
            limits = {name: self._allowed(name, expected[name]) for name in judged}
            checks = all_doubted(checks, expected, actual, runs, limits, self.random, most=most)
        self.comparisons.append(Comparison(dict(sizes), seed, by, tuple(checks), drawn, fixed))
        if self.comparisons[-1].agrees:
            keep_run(self.runs, Run(dict(sizes), feeds, expected, actual), self.random)

    def _allowed(self, name: str, expected: Any) -> float | None:
        return allowed(expected, self.coarse.get(name, ""), self.tolerance)

    def skip(self, what: str, why: str) -> None:
        """Note what is not compared."""
        self.not_compared.append(NotCompared(what, why))

    def verdict(self, lacking: tuple[str, ...], *, told: bool = False) -> Verdict:
        """The verdict on all that was compared.

        Args:
            lacking: The result's custom operators.
            told: Whether functions say what they compute.
        """
        found = conclude(
            *(self.names, self.comparisons, self.not_compared, self.digests, self.fault, lacking),
            told=told,
        )
        return replace(found, inputs=self.inputs)
