"""The comparison under way: finds inputs on which the original runs, and collects what agrees."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from surgeon.errors import SurgeonError
from surgeon.reference import NoWitness
from surgeon.verify.compare import TOLERANCES, compare_arrays, worst
from surgeon.verify.inputs import STRATEGIES, Bound, Input, draw
from surgeon.verify.originals import Side, by_samples, read_recorded
from surgeon.verify.sizes import (
    WANTED,
    candidates,
    dynamic_dims,
    first_choices,
    fits,
    groups,
    is_leading,
    search,
)
from surgeon.verify.verdict import Comparison, NotCompared, Verdict, describe


@dataclass
class Check:
    """What was and was not compared so far.

    Attributes:
        result: The model to judge.
        names: Its outputs.
        tolerance: Allowed beyond the table's, relative to the spread.
        seeds: What inputs are drawn from.
        progress: Told what is being compared.
        original: What stands for the original, unless it is recorded.
    """

    result: Side
    names: list[str]
    tolerance: float | None
    seeds: tuple[int, ...]
    progress: Callable[[str], None]
    original: Side | None = None
    comparisons: list[Comparison] = field(default_factory=list)
    not_compared: list[NotCompared] = field(default_factory=list)
    fault: str | None = None  # why the result is broken
    digests: dict[str, dict[tuple[Any, ...], list[bytes]]] = field(default_factory=dict)
    reasons: dict[tuple[int, ...], str] = field(default_factory=dict)
    random: set[str] = field(default_factory=set)

    # ------------------------------------------------------------------ inputs of a file

    def recorded(
        self, files: Sequence[Path], model: onnx.ModelProto, inputs: Sequence[Input]
    ) -> None:
        """Compare on the inputs of .npz files."""
        names = [value.name for value in model.graph.input]
        for file in files:
            kept = read_recorded(file, names, [each.name for each in inputs], self.names)
            sizes = {
                dim: kept.feeds[each.name].shape[axis]
                for each in inputs
                for axis, dim in enumerate(each.dims)
                if isinstance(dim, str) and kept.feeds[each.name].ndim == len(each.dims)
            }
            by = f"recorded {kept.file.name}"
            self.progress(f"compare with {kept.file.name}")
            self._compare(kept.feeds, kept.outputs, sizes, -1, by)
            if self.fault:
                return

    # -------------------------------------------------------------------- inputs by seed

    def drawn(
        self,
        inputs: Sequence[Input],
        allowed: Mapping[str, Bound],
        hints: Mapping[str, list[int]],
        *,
        random: bool,
    ) -> None:
        """Compare on drawn inputs, at several sizes."""
        dims = dynamic_dims(inputs)
        lists = candidates(dims, inputs, hints)
        drawing = Drawing(inputs, allowed, STRATEGIES[0])
        first = [sizes for sizes in first_choices(lists) if fits(sizes, inputs)]
        found = self._first_that_runs(drawing, first, search(dims, hints))
        if found is None:
            why = next(reversed(self.reasons.values()), "no sizes are small enough")
            self.skip("any input", f"no input was found on which the original runs: {why}")
            return
        base, drawing = found
        if random:
            self._find_random(drawing, base)
        ran = [base] if self._at(base, drawing) else []
        for sizes in first:
            if sizes != base and not self.fault and self._at(sizes, drawing):
                ran.append(sizes)
        for group in groups(dims, base, hints):
            self._more_sizes(group, lists[group[0]], ran, drawing, hinted=group[0] in hints)

    def _first_that_runs(
        self,
        drawing: Drawing,
        first: Sequence[Mapping[str, int]],
        further: Iterator[Mapping[str, int]],
    ) -> tuple[Mapping[str, int], Drawing] | None:
        """Sizes and a way of drawing on which the original gives finite numbers, if it can."""
        second_best: tuple[Mapping[str, int], Drawing] | None = None
        for strategy in STRATEGIES:
            drawing = replace(drawing, strategy=strategy)
            for sizes in first:
                outputs = self._run_original(drawing.feeds(sizes, self.seeds[0]), sizes)
                if outputs is None:
                    continue
                if all(_has_numbers(value) for value in outputs.values()):
                    return sizes, drawing
                second_best = second_best or (sizes, drawing)
                break
        if second_best:
            return second_best
        for sizes in further:
            if fits(sizes, drawing.inputs):
                for strategy in (STRATEGIES[0], "zeros"):
                    drawing = replace(drawing, strategy=strategy)
                    feeds = drawing.feeds(sizes, self.seeds[0])
                    if self._run_original(feeds, sizes) is not None:
                        return sizes, drawing
        return None

    def _run_original(
        self, feeds: Mapping[str, Any], sizes: Mapping[str, int]
    ) -> dict[str, Any] | None:
        assert self.original is not None
        try:
            return self.original.run(feeds, self.names)
        except NoWitness:
            raise
        except SurgeonError as error:
            self.reasons[tuple(sizes.values())] = error.what
            return None

    def _find_random(self, drawing: Drawing, sizes: Mapping[str, int]) -> None:
        feeds = drawing.feeds(sizes, self.seeds[0])
        one, two = (self._run_original(feeds, sizes) for _ in range(2))
        for name in self.names:
            if one and two and not compare_arrays(name, one[name], two[name], exact="bit").agrees:
                self.random.add(name)
                self.skip(f"output `{name}`", "the original draws it at random")

    def _at(self, sizes: Mapping[str, int], drawing: Drawing) -> bool:
        """Compare at these sizes; whether the original runs there."""
        for seed in self.seeds:
            self.progress(f"compare at {describe(sizes) or 'the declared sizes'}, seed {seed}")
            feeds = drawing.feeds(sizes, seed)
            expected = self._run_original(feeds, sizes)
            if expected is None:
                return False
            assert self.original is not None
            self._compare(feeds, expected, sizes, seed, self.original.by)
            if self.fault:
                return True
        return True

    def _more_sizes(
        self,
        group: tuple[str, ...],
        sizes: Sequence[int],
        ran: list[Mapping[str, int]],
        drawing: Drawing,
        *,
        hinted: bool,
    ) -> None:
        """Bring dims to three sizes, the others held; where it cannot be, say so."""
        if not ran or self.fault:
            return
        base = ran[0]
        done = {each[group[0]] for each in ran}
        for size in sizes:
            trial = {**base, **dict.fromkeys(group, size)}
            if len(done) >= WANTED or self.fault:
                break
            if size not in done and fits(trial, drawing.inputs) and self._at(trial, drawing):
                ran.append(trial)
                done.add(size)
        if len(group) > 1:
            self._apart(group, base, done, drawing)
        if len(done) >= WANTED or hinted:
            return
        if len(done) == 1 and all(is_leading(dim, drawing.inputs) for dim in group):
            self._by_samples(group, base, drawing)
            return
        other = next(size for size in sizes if size not in done)
        failed = {**base, **dict.fromkeys(group, other)}
        why = self.reasons.get(tuple(failed.values()), "the original does not run there")
        self.skip(f"{' and '.join(group)} other than {', '.join(map(str, sorted(done)))}", why)

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
            if not self.fault and fits(trial, drawing.inputs):
                self._at(trial, drawing)

    def _by_samples(
        self, group: tuple[str, ...], base: Mapping[str, int], drawing: Drawing
    ) -> None:
        """The original runs at one batch only: larger ones are put together from such runs."""
        assert self.original is not None
        block = base[group[0]]
        others = f"{' and '.join(group)} other than {block}"
        split = [each.name for each in drawing.inputs if each.dims and each.dims[0] in group]
        for size in (2 * block, 2 * block + 1, *([1] if block > 1 else [])):
            sizes = {**base, **dict.fromkeys(group, size)}
            feeds = drawing.feeds(sizes, self.seeds[0])
            self.progress(f"compare at {describe(sizes)}, sample by sample")
            try:
                self.result.run(feeds, self.names)
            except SurgeonError as error:
                why = f"the original is not defined there, nor is the result: {error.what}"
                self.skip(others, why)
                return
            try:
                expected = by_samples(self.original, feeds, split, block, self.names)
            except SurgeonError as error:
                expected = error.what
            if isinstance(expected, str):
                self.skip(others, expected)
                return
            by = f"{self.original.by}, sample by sample"
            self._compare(feeds, expected, sizes, self.seeds[0], by)

    # -------------------------------------------------------------------------- comparing

    def _compare(
        self,
        feeds: Mapping[str, Any],
        expected: Mapping[str, Any],
        sizes: Mapping[str, int],
        seed: int,
        by: str,
    ) -> None:
        names = [name for name in self.names if name in expected and name not in self.random]
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
            check = compare_arrays(
                name, expected[name], actual[name], tolerance=self._allowed(expected[name])
            )
            checks.append(check)
            key = (*sizes.items(), by)
            seen = self.digests.setdefault(name, {}).setdefault(key, [])
            seen.append(_digest(expected[name]))
        self.comparisons.append(Comparison(dict(sizes), seed, by, tuple(checks)))

    def _allowed(self, expected: Any) -> float | None:
        if self.tolerance is None:
            return None
        kind = np.asarray(expected[0] if isinstance(expected, list) and expected else expected)
        usual = TOLERANCES.get(kind.dtype.name)
        return None if usual is None else max(self.tolerance, usual[0])

    def skip(self, what: str, why: str) -> None:
        """Note what is not compared."""
        self.not_compared.append(NotCompared(what, why))

    # ------------------------------------------------------------------------ the verdict

    def verdict(self, lacking: tuple[str, ...]) -> Verdict:
        """The verdict on all that was compared; `lacking` are the result's custom operators."""
        weak = {name: reason for name in self.names if (reason := self._unmoved(name))}
        comparisons = tuple(
            replace(
                each,
                outputs=tuple(replace(o, weak=o.weak or weak.get(o.name)) for o in each.outputs),
            )
            for each in self.comparisons
        )
        made = partial(
            Verdict,
            comparisons=comparisons,
            not_compared=tuple(self.not_compared),
            custom_operators=lacking,
        )
        if self.fault:
            return made("broken", self.fault)
        bad = [(c, o) for c in comparisons for o in c.outputs if not o.agrees]
        if bad:
            chosen = worst([o for _, o in bad])
            where = next(c for c, o in bad if replace(o, weak=None) == replace(chosen, weak=None))
            return made("differs", f"{chosen}, at {where.describe()}, by {where.by}")
        if lacking:
            names = ", ".join(f"`{name}`" for name in lacking)
            return made("runs", f"onnxruntime has no {names}; {agreement(comparisons)}")
        if not comparisons:
            why = self.not_compared[0].why if self.not_compared else "the model has no outputs"
            return made("runs", f"it loads, and was not compared: {why}")
        return made("equivalent", agreement(comparisons))

    def _unmoved(self, name: str) -> str | None:
        """Why agreement of this output says little: no input moved it."""
        found = self.digests.get(name, {}).values()
        every = [digest for digests in found for digest in digests]
        if len(every) > 1 and len(set(every)) == 1:
            return "no input moves it"
        repeated = any(len(digests) > 1 for digests in found)
        if repeated and all(len(set(digests)) == 1 for digests in found):
            return "only the inputs' sizes move it"
        return None


@dataclass(frozen=True)
class Drawing:
    """A way of drawing inputs."""

    inputs: Sequence[Input]
    allowed: Mapping[str, Bound]
    strategy: str

    def feeds(self, sizes: Mapping[str, int], seed: int) -> dict[str, Any]:
        """One set of inputs."""
        return draw(self.inputs, sizes, seed, strategy=self.strategy, allowed=self.allowed)


def _has_numbers(value: Any) -> bool:
    """Whether a float array holds a finite number at all."""
    if not isinstance(value, np.ndarray) or value.dtype.name not in TOLERANCES:
        return True
    return value.size == 0 or bool(np.isfinite(value.astype(np.complex128)).any())


def _digest(value: Any) -> bytes:
    """A short name of an array's very content."""
    if isinstance(value, list):
        return b"".join(map(_digest, value))
    array = np.ascontiguousarray(value)
    data = repr(array.tolist()).encode() if array.dtype == object else array.tobytes()
    return hashlib.blake2b(
        data + repr((array.shape, array.dtype)).encode(), digest_size=16
    ).digest()


def agreement(comparisons: Sequence[Comparison]) -> str:
    """How well they agree, in a sentence."""
    if not comparisons:
        return "it was not compared"
    checks = [output for each in comparisons for output in each.outputs]
    inputs = f"{len(comparisons)} input{'s' * (len(comparisons) > 1)}"
    if not checks:
        return f"no output was compared at {inputs}"
    largest = max(checks, key=lambda check: check.max_relative)
    count = len(comparisons[0].outputs)
    text = (
        f"{count} outputs agree at {inputs}, " if count > 1 else f"its output agrees at {inputs}, "
    )
    if largest.max_relative:
        text += f"largest error {largest.max_relative:.2g} of the spread of `{largest.name}`"
    else:
        text += "to the last bit"
    weak = {check.name: check.weak for check in checks if check.weak}
    if len(weak) == len({check.name for check in checks}):
        reasons = "; ".join(f"`{name}`: {why}" for name, why in list(weak.items())[:3])
        text += f"; the comparison is weak ({reasons})"
    return text
