"""Compares the numbers of a case: original against result, at several sizes and seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx

from surgeon.cases.reading import Case
from surgeon.chance import drawn_outputs
from surgeon.errors import SurgeonError
from surgeon.reference import NoWitness
from surgeon.runtime import NotRunnable, Runner
from surgeon.verify.compare import compare_arrays, compare_drawn
from surgeon.verify.inputs import draw, required_inputs
from surgeon.verify.limits import Input, bounds
from surgeon.verify.originals import Side, by_samples
from surgeon.verify.pair import open_runner
from surgeon.verify.sizes import dynamic_dims

SEEDS = (0, 1)
LEADING = (2, 1, 3)
OTHER = (8, 5, 13)


@dataclass(frozen=True, slots=True)
class Promise:
    """What the rules that fired promise of the numbers.

    Attributes:
        exact: `bit`, or `rounding`.
        tolerance: In place of the table's, relative to the output's spread.
        extends: Whether a contract says that the result is defined where the original is not.
    """

    exact: Any
    tolerance: float | None = None
    extends: bool = False


def disagreements(
    case: Case,
    before: onnx.ModelProto,
    result: Runner,
    promise: Promise,
    *,
    means: onnx.ModelProto | None,
    hints: Mapping[str, Sequence[int] | str],
) -> list[str]:
    """What is wrong with the numbers of a result, in words; nothing where they agree.

    Args:
        case: For its shapes.
        before: What the recipe was applied to.
        result: Runs what came out.
        promise: What the rules say of it.
        means: What `before` computes, said otherwise.
        hints: By dynamic dim, the sizes to compare at, or the name of a dim of the same size.
    """
    tied = {dim: other for dim, other in hints.items() if isinstance(other, str)}
    inputs = required_inputs(before, case.shape or None, tied)
    drawn = drawn_outputs(before)
    work = _Numbers(inputs, [v.name for v in before.graph.output], result, promise, drawn)
    allowed = bounds(before, inputs)
    plan = choose_sizes(inputs, {d: s for d, s in hints.items() if not isinstance(s, str)})
    references = {"`before`": before, **({"`means`": means} if means is not None else {})}
    for what, model in references.items():
        try:
            spoken_for = means is not None and model is not means
            work.compare(what, open_runner(model), plan, allowed, spoken_for=spoken_for)
        except (NoWitness, NotRunnable) as error:
            if means is None or model is means:
                return [f"Unchecked: {error.what}; say with `means` what `before` computes"]
        except SurgeonError as error:
            return [f"Unchecked: {what}: {error.what}"]
    return work.problems or work.weaknesses()


def choose_sizes(
    inputs: Sequence[Input], hints: Mapping[str, Sequence[int]]
) -> list[dict[str, int]]:
    """Three sizes for each dynamic dim, or those the case gives; all of them at least once."""
    lists: dict[str, Sequence[int]] = {}
    for place, (dim, axis) in enumerate(dynamic_dims(inputs).items()):
        usual = LEADING if axis == 0 else OTHER
        turn = max(0, place - 1) % len(usual)
        lists[dim] = tuple(hints.get(dim, ())) or (*usual[turn:], *usual[:turn])
    count = max((len(sizes) for sizes in lists.values()), default=1)
    return [{dim: s[turn % len(s)] for dim, s in lists.items()} for turn in range(count)]


class _Numbers:
    """The comparisons of one case, and what they found."""

    def __init__(
        self,
        inputs: Sequence[Input],
        names: list[str],
        result: Runner,
        promise: Promise,
        drawn: Mapping[str, bool],
    ) -> None:
        self.inputs, self.names, self.result, self.promise = inputs, names, result, promise
        self.drawn = drawn
        self.problems: list[str] = []
        self.seen: dict[str, list[Any]] = {name: [] for name in names}
        self.weak: dict[str, list[str | None]] = {name: [] for name in names}

    def compare(
        self,
        what: str,
        original: Runner,
        plan: Sequence[dict[str, int]],
        allowed: Mapping[str, Any],
        *,
        spoken_for: bool,
    ) -> None:
        """Compare at every size of the plan; where the original has no value, sample by sample.

        One that runs nowhere is passed over where it is `spoken_for`: the case says what it means.
        """
        ran: list[dict[str, int]] = []
        later: list[tuple[dict[str, int], str]] = []
        for sizes in plan:
            for seed in SEEDS:
                feeds = draw(self.inputs, sizes, seed, allowed=allowed)
                try:
                    expected = original.run(feeds, self.names)
                except NoWitness:
                    raise
                except SurgeonError as error:
                    later.append((sizes, error.what))
                    break
                self._judge(what, sizes, feeds, expected)
            else:
                ran.append(sizes)
        if spoken_for and not ran:
            return
        for sizes, why in later:
            reason = self._by_samples(what, original, sizes, ran, allowed)
            if reason is not None:
                self.problems.append(
                    f"Unchecked: {what} does not run at {_say(sizes)}: {why}{reason}"
                )

    def _by_samples(
        self,
        what: str,
        original: Runner,
        sizes: dict[str, int],
        ran: Sequence[dict[str, int]],
        allowed: Mapping[str, Any],
    ) -> str | None:
        """Put the original's outputs together from the batch it is defined at, or say why not."""
        leading = [d for d, axis in dynamic_dims(self.inputs).items() if axis == 0]
        if not self.promise.extends or len(leading) != 1 or not ran:
            return "; give `sizes` at which it does"
        dim, block = leading[0], ran[0][leading[0]]
        at = {**ran[0], dim: sizes[dim]}
        feeds = draw(self.inputs, at, SEEDS[0], allowed=allowed)
        split = [each.name for each in self.inputs if dim in each.dims]
        side = Side("before", original)
        expected = by_samples(side, feeds, split, block, self.names)
        if isinstance(expected, str):
            return f"; and {expected}"
        self._judge(what, at, feeds, expected)
        return None

    def _judge(
        self, what: str, sizes: Mapping[str, int], feeds: Mapping[str, Any], expected: Any
    ) -> None:
        place = f" at {_say(sizes)}" if sizes else ""
        try:
            actual = self.result.run(feeds, self.names)
        except SurgeonError as error:
            self.problems.append(f"Broken: the result does not run{place}: {error.what}")
            return
        for name in self.names:
            if name in self.drawn:
                check = compare_drawn(name, expected[name], actual[name], sized=self.drawn[name])
                if not check.agrees:
                    self.problems.append(f"Wrong: {check}{place}, against {what}")
                continue
            check = compare_arrays(
                name,
                expected[name],
                actual[name],
                exact=self.promise.exact,
                tolerance=self.promise.tolerance,
            )
            self.seen[name].append((dict(sizes), expected[name]))
            self.weak[name].append(check.weak)
            if not check.agrees:
                self.problems.append(f"Wrong: {check}{place}, against {what}")

    def weaknesses(self) -> list[str]:
        """Why agreement says little, where it does."""
        if not any(self.inputs):
            return []
        found = []
        for name, weak in self.weak.items():
            if weak and all(weak):
                found.append(f"Weak: `{name}` agrees, but {weak[0]}")
            elif self.seen[name] and _unmoved(self.seen[name]):
                found.append(f"Weak: `{name}` agrees, but no input moves it")
        return found


def _unmoved(runs: Sequence[tuple[dict[str, int], Any]]) -> bool:
    """Whether a float output is the same whatever is fed, at every size."""
    if np.asarray(runs[0][1]).dtype.kind not in "fc":
        return False
    first: dict[str, Any] = {}
    for sizes, array in runs:
        if not np.array_equal(first.setdefault(_say(sizes), array), array, equal_nan=True):
            return False
    return len(runs) > len(first)


def _say(sizes: Mapping[str, int]) -> str:
    return ", ".join(f"{name}={size}" for name, size in sizes.items()) or "the declared sizes"
