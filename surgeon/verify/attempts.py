"""Runs of the original at sizes at which it may fail: why it did, and when to try no more."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from surgeon.errors import ForeignError, SurgeonError, TimeUp
from surgeon.reference import NoWitness
from surgeon.runtime import NotRunnable
from surgeon.verify.originals import Side

_MOST_CRASHES = 30  # each with a worker of its own
_PATIENCE = 8.0  # seconds of runs that fail


@dataclass
class Attempts:
    """What failed so far.

    Attributes:
        reasons: Why the original failed, by the sizes tried, in order.
        crashes: How often it ended its process.
        wasted: Seconds of runs that failed.
    """

    reasons: dict[tuple[int, ...], str] = field(default_factory=dict)
    crashes: int = 0
    wasted: float = 0.0

    def run(
        self,
        original: Side,
        feeds: Mapping[str, Any],
        names: Sequence[str],
        sizes: Mapping[str, int],
    ) -> dict[str, Any] | None:
        """The named outputs at these sizes; None where it fails there, for a reason that is kept.

        Raises:
            NoWitness: The witness has no function for a node of it.
            TimeUp: It takes longer than a run may take.
        """
        began = time.perf_counter()
        try:
            return original.run(feeds, names)
        except (NoWitness, TimeUp):  # it would be so at any other sizes
            raise
        except SurgeonError as error:
            self.wasted += time.perf_counter() - began
            self.crashes += isinstance(error, ForeignError)
            if isinstance(error, NotRunnable):  # a part does not load, at whatever sizes
                self.wasted = math.inf
            self.reasons[tuple(sizes.values())] = error.what
            return None

    @property
    def loads(self) -> bool:
        """Whether the original may run at some sizes, as far as is known."""
        return self.wasted < math.inf

    @property
    def may_go_on(self) -> bool:
        """Whether the original may be run at further sizes at which it may fail."""
        return self.crashes < _MOST_CRASHES and self.wasted < _PATIENCE

    def reason_at(self, sizes: Mapping[str, int]) -> str:
        """Why it failed at these sizes, or was not tried at them any more."""
        usual = "the original does not run there"
        if self.crashes >= _MOST_CRASHES:
            usual = f"not tried any more: its runs ended {self.crashes} processes"
        elif self.loads and not self.may_go_on:
            usual = f"not tried any more: runs that failed took {self.wasted:.0f} seconds"
        return self.reasons.get(tuple(sizes.values()), usual)

    def last_reason(self) -> str:
        """Why it failed last."""
        return next(reversed(self.reasons.values()), "no sizes are small enough")
