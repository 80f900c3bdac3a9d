"""The comparison under way: what agrees on which inputs, and what could not be compared."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from surgeon.errors import SurgeonError, few
from surgeon.reference import NoWitness
from surgeon.verify import precision
from surgeon.verify.attempts import Attempts
from surgeon.verify.compare import compare_arrays, compare_drawn
from surgeon.verify.conclusion import DATA, conclude
from surgeon.verify.datasets import DataSet, unfit
from surgeon.verify.inputs import Drawing
from surgeon.verify.limits import Input
from surgeon.verify.noise import all_doubted
from surgeon.verify.optimised import Run, keep_run
from surgeon.verify.originals import Side, read_recorded
from surgeon.verify.recording import First
from surgeon.verify.singles import FEW, within_spread
from surgeon.verify.sizes import sizes_of
from surgeon.verify.summary import digest
from surgeon.verify.verdict import Comparison, NotCompared, OutputCheck, Verdict, describe
from surgeon.verify.widened import beside, is_near


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
        random: The outputs drawn at random, and whether their sizes are too (`drawn_outputs`);
            and those that are seen to be others each time.
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
    random: dict[str, bool] = field(default_factory=dict)
    inputs: Mapping[str, str] = field(default_factory=dict)  # how each is drawn, in words
    squashed: frozenset[str] = frozenset()  # see `squashed_outputs`
    coarse: Mapping[str, str] = field(default_factory=dict)  # see `coarse_outputs`
    few: dict[str, list[Any]] = field(default_factory=dict)  # doubles of drawn inputs, by output
    runs: list[Run] = field(default_factory=list)  # a few that agree
    first: First | None = None  # what the original made of the first inputs

    def __post_init__(self) -> None:
        for name in self.names:
            if name in self.random:
                self.skip(f"output `{name}`", "the original draws it at random, or never sets it")

    # ------------------------------------------------------------------ inputs of a file

    def recorded(
        self, files: Sequence[Path], model: onnx.ModelProto, inputs: Sequence[Input]
    ) -> None:
        """Compare on the inputs of .npz files."""
        for file in files:
            kept = read_recorded(file, model, inputs)
            sizes = sizes_of(kept.feeds, inputs)
            self.progress(f"compare with {kept.file.name}")
            self.compare(kept.feeds, kept.outputs, sizes, -1, f"recorded {kept.file.name}")
            if self.fault:
                return

    def given(
        self, sets: Sequence[DataSet], model: onnx.ModelProto, inputs: Sequence[Input]
    ) -> None:
        """Compare on the user's own inputs.

        Raises:
            RecipeError: The original loads, and does not run on them.
        """
        assert self.original is not None
        names = {value.name for value in model.graph.input}
        for each in sets:
            if other := [name for name in each.feeds.keys() - names if self._is_other(each, name)]:
                why = f"it gives {few(sorted(other))} a value, of which the result has another"
                self.skip(f"{DATA} `{each.label}`", why)
                continue
            sizes = sizes_of(each.feeds, inputs)
            self.progress(f"compare on {each.label}")
            expected = self.run_original(each.feeds, sizes)
            if expected is None:
                why = self.attempts.reason_at(sizes)
                if self.attempts.loads:
                    raise unfit(each, why)
                self.skip(f"{DATA} `{each.label}`", why)
                continue
            self.keep_first(each.feeds, expected)
            feeds = {name: array for name, array in each.feeds.items() if name in names}
            given, by = (feeds, expected, sizes), self.original.by
            self.compare(*given, -1, by, label=each.label, doubt=True)
            if self.fault:
                return

    def _is_other(self, given: DataSet, name: str) -> bool:
        """Whether a value is given to an input of the original that has another in the file."""
        model = self.original.model if self.original is not None else None
        tensors = () if model is None else model.graph.initializer
        own = next((tensor for tensor in tensors if tensor.name == name), None)
        if own is None or own.data_location == onnx.TensorProto.EXTERNAL:
            return False
        return not np.array_equal(onnx.numpy_helper.to_array(own), given.feeds[name])

    def keep_first(self, feeds: Mapping[str, Any], outputs: Mapping[str, Any]) -> None:
        """Keep a run of the original, if it is the first that is compared."""
        self.first = self.first or First(feeds, outputs)

    def run_original(
        self, feeds: Mapping[str, Any], sizes: Mapping[str, int]
    ) -> dict[str, Any] | None:
        """What the original gives for the names; None where it fails, for a reason that is kept."""
        assert self.original is not None
        return self.attempts.run(self.original, feeds, self.names, sizes)

    # -------------------------------------------------------------------------- comparing

    def compare(
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
        """Run the result on these inputs, and hold each output against what is expected of it.

        Args:
            feeds: The inputs.
            expected: What the original gives, or was recorded.
            sizes: The dims of these inputs.
            seed: What they were drawn from; -1 where they were not.
            by: What gave `expected`, in words.
            drawing: How they were drawn.
            label: What the user calls them.
            doubt: Whether a difference is held against what rounding does to the original.
        """
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
        checks = list(self._held(names, expected, actual))
        if doubt and self._note_unsteady(checks, feeds, expected):
            checks = list(self._held(names, expected, actual))
        if seed >= 0 and self.tolerance:
            self._keep_few(expected)
        for name in (name for name in names if name not in self.random):
            seen = self.digests.setdefault(name, {}).setdefault((*sizes.items(), by), [])
            seen.append(digest(expected[name]))
        if doubt:
            assert self.original is not None
            runs = partial(self.original.trembling_runs, feeds, self.names)
            most = self.original.forgiven(feeds)
            judged = [name for name in names if name not in self.random]
            limits = {name: self.allowed(name, expected[name]) for name in judged}
            checks = all_doubted(checks, expected, actual, runs, limits, self.random, most=most)
            checks = self._beside_doubles(checks, feeds, expected, actual)
        self.comparisons.append(Comparison(dict(sizes), seed, by, tuple(checks), drawn, fixed))
        if self.comparisons[-1].agrees:
            keep_run(self.runs, Run(dict(sizes), feeds, expected, actual), self.random)

    def _note_unsteady(
        self, checks: Sequence[OutputCheck], feeds: Mapping[str, Any], expected: Mapping[str, Any]
    ) -> bool:
        """Whether outputs that differ are others each time the original runs, which is noted.

        Kernels of onnxruntime leave parts unset, and show what stood in memory: a cache that holds
        a window alone, of what lies behind it.
        """
        differing = [check.name for check in checks if not check.agrees]
        if not differing or self.original is None or self.original.by != "onnxruntime":
            return False
        again = self.original.run(feeds, differing)
        limits = {name: self.allowed(name, expected[name]) for name in differing}
        moved = [
            name
            for name in differing
            if not compare_arrays(name, expected[name], again[name], tolerance=limits[name]).agrees
        ]
        for name in moved:
            self.random[name] = False
            self.skip(f"output `{name}`", "the original gives something else each time it runs")
        self.comparisons = [
            replace(each, outputs=tuple(o for o in each.outputs if o.name not in moved))
            for each in self.comparisons
        ]
        return bool(moved)

    def _beside_doubles(
        self,
        checks: Sequence[OutputCheck],
        feeds: Mapping[str, Any],
        expected: Mapping[str, Any],
        actual: Mapping[str, Any],
    ) -> list[OutputCheck]:
        """The checks, where what nearly agrees is held against the original in double precision."""
        assert self.original is not None
        if not any(is_near(check) for check in checks):
            return list(checks)
        exact = self.original.in_doubles(feeds, self.names)
        if exact is None:
            return list(checks)
        return [
            beside(c, expected[c.name], actual[c.name], exact[c.name]) if is_near(c) else c
            for c in checks
        ]

    def _held(
        self, names: Sequence[str], expected: Mapping[str, Any], actual: Mapping[str, Any]
    ) -> Iterator[OutputCheck]:
        """Each output beside what is expected; of what is drawn at random only what is wrong."""
        for name in names:
            pair = expected[name], actual[name]
            if name in self.random:
                check = compare_drawn(name, *pair, sized=self.random[name])
                if not check.agrees:
                    yield check
                continue
            limit, averaged = self.allowed(name, expected[name]), float(name in self.squashed)
            yield compare_arrays(name, *pair, tolerance=limit, averaged=averaged)

    def _keep_few(self, expected: Mapping[str, Any]) -> None:
        """Note doubles that are few: their spread is a matter of chance, which others tell."""
        for name, array in expected.items():
            if getattr(array, "dtype", None) == np.float64 and array.size <= FEW:
                self.few.setdefault(name, []).append(np.ravel(array))

    def _beside_others(self, found: Comparison) -> Comparison:
        """A comparison of drawn inputs, few doubles held against the spread of those of all."""
        if found.agrees or found.seed < 0:
            return found
        checks = (
            within_spread(each, np.concatenate(self.few[each.name]))
            if each.name in self.few and not each.agrees and not each.fault
            else each
            for each in found.outputs
        )
        return replace(found, outputs=tuple(checks))

    def allowed(self, name: str, expected: Any) -> float | None:
        """How far an output may be from what is expected, relative to its spread."""
        return precision.allowed(expected, self.coarse.get(name, ""), self.tolerance)

    def skip(self, what: str, why: str) -> None:
        """Note what is not compared."""
        self.not_compared.append(NotCompared(what, why))

    def verdict(self, lacking: tuple[str, ...], *, way: str = "") -> Verdict:
        """The verdict on all that was compared.

        Args:
            lacking: The result's custom operators.
            way: How they were computed, in words.
        """
        comparisons = [self._beside_others(each) for each in self.comparisons]
        found = conclude(
            *(self.names, comparisons, self.not_compared, self.digests, self.fault, lacking),
            way=way,
        )
        return replace(found, inputs=self.inputs)
