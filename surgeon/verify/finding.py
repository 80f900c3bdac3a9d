"""Finds inputs on which the original runs, and that tell something: numbers, and steady ones."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from surgeon.verify.check import Check
from surgeon.verify.growth import Growth
from surgeon.verify.inputs import DRAWN, STRATEGIES, Drawing
from surgeon.verify.noise import CALM, movement, perturbed
from surgeon.verify.sizes import fits
from surgeon.verify.summary import has_numbers

UNSTEADY, NO_NUMBERS = 1e30, float("inf")  # how little an input tells, beyond measured movement


@dataclass
class Finder:
    """Runs the original of a check at sizes at which it may fail.

    Attributes:
        check: What is compared, and why the original failed so far.
        growth: How large the values become, as far as is known.
        kept: What the original gave where it was tried, by way of drawing, sizes and seed.
    """

    check: Check
    growth: Growth
    kept: dict[tuple[Any, ...], dict[str, Any]] = field(default_factory=dict)

    def run(
        self, drawing: Drawing, sizes: Mapping[str, int], seed: int
    ) -> tuple[Mapping[str, Any], dict[str, Any] | None]:
        """Inputs, and what the original gives on them; None where it does not run."""
        feeds = drawing.feeds(sizes, seed)
        known = self.kept.pop(_key(drawing, sizes, seed), None)
        return feeds, known or self.check.run_original(feeds, sizes)

    def first_that_runs(
        self,
        drawing: Drawing,
        first: Sequence[Mapping[str, int]],
        further: Iterator[Mapping[str, int]],
    ) -> tuple[Mapping[str, int], Drawing] | None:
        """Sizes and a way of drawing on which the original runs, calmly if it can."""
        return self._among_ways(drawing, first) or self._among_sizes(drawing, further)

    def _among_ways(
        self, drawing: Drawing, first: Sequence[Mapping[str, int]]
    ) -> tuple[Mapping[str, int], Drawing] | None:
        calmest: tuple[float, Mapping[str, int], Drawing] | None = None
        for strategy in STRATEGIES:
            if strategy not in DRAWN and calmest and calmest[0] < NO_NUMBERS:
                break
            trial = replace(drawing, strategy=strategy)
            base, noise = self._judge(trial, first)
            if base is not None and noise <= CALM:
                return base, trial
            if base is not None and (calmest is None or noise < calmest[0]):
                calmest = noise, base, trial
        return calmest[1:] if calmest else None

    def _among_sizes(
        self, drawing: Drawing, further: Iterator[Mapping[str, int]]
    ) -> tuple[Mapping[str, int], Drawing] | None:
        for sizes in itertools.takewhile(lambda _: self.check.attempts.may_go_on, further):
            if fits(sizes, drawing.inputs, self.growth):
                for strategy in (STRATEGIES[0], "zeros"):
                    trial = replace(drawing, strategy=strategy)
                    base, _ = self._judge(trial, [sizes])
                    if base is not None:
                        return sizes, trial
        return None

    def _judge(
        self, drawing: Drawing, first: Sequence[Mapping[str, int]]
    ) -> tuple[Mapping[str, int] | None, float]:
        """The first sizes that run, and how far rounding of the inputs moves the original."""
        self.kept.clear()
        check, seed = self.check, self.check.seeds[0]
        base, noise = None, 0.0
        blank: set[str] = set(check.names)  # what had no number yet, at whatever size
        for sizes in first:
            feeds = drawing.feeds(sizes, seed)
            outputs = check.run_original(feeds, sizes)
            if outputs is None:
                continue
            self.kept[_key(drawing, sizes, seed)] = outputs
            if base is None:
                base = sizes
            moved = check.run_original(perturbed(feeds, seed), sizes)
            numbers = {name for name, value in outputs.items() if has_numbers(value)}
            blank -= numbers
            if moved is None:
                return base, UNSTEADY
            for name in (n for n in check.names if n not in check.random and n in numbers):
                limit = check.allowed(name, outputs[name])
                noise = max(noise, movement(name, outputs[name], moved[name], tolerance=limit))
            noise = min(noise, UNSTEADY)
            if noise > CALM:
                return base, noise
        if base is not None and blank:
            return base, NO_NUMBERS
        return base, noise


def _key(drawing: Drawing, sizes: Mapping[str, int], seed: int) -> tuple[Any, ...]:
    return drawing.strategy, tuple(drawing.fixed.items()), tuple(sizes.values()), seed
