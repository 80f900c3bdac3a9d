"""Whether two models that agree on what is drawn do so on larger values: told, and not judged.

A bound at 6 is not met by numbers around 0, and nothing says that the model is ever given larger
ones: a network's own rounding grows with them too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from surgeon.errors import SurgeonError
from surgeon.verify.compare import compare_arrays
from surgeon.verify.noise import FORGIVEN, doubted
from surgeon.verify.optimised import Run
from surgeon.verify.originals import Side
from surgeon.verify.verdict import OutputCheck, describe

_TIMES = 32
_GROSS = 0.01  # of an output's spread: what is less may be rounding
_NORMAL = "normal"  # the words for an input that nothing is known of


def farther_fault(
    result: Side, original: Side, runs: Sequence[Run], drawn: Mapping[str, str]
) -> str | None:
    """How the two differ where the inputs that nothing is known of are larger; None if they agree.

    Nothing is said of outputs that are no numbers there, or that rounding alone moves as far.

    Args:
        result: One model.
        original: The other, by which it is judged.
        runs: Inputs on which they agree.
        drawn: By input name, how it was drawn, in words.
    """
    if not runs:
        return None
    run = runs[0]
    free = [name for name in run.feeds if drawn.get(name) == _NORMAL]
    if not free:
        return None
    feeds = {**run.feeds, **{name: _TIMES * run.feeds[name] for name in free}}
    names = list(run.actual)
    try:
        expected, actual = original.run(feeds, names), result.run(feeds, names)
        fault = _fault(original, feeds, expected, actual)
    except SurgeonError:
        return None
    if fault is None:
        return None
    place = f" at {describe(run.sizes)}" if run.sizes else ""
    return (
        f"on values {_TIMES} times as large, of which the verdict says nothing, they "
        f"differ: {fault}{place}; to compare there, draw such: "
        f"`--input '{free[0]}=normal(0,{_TIMES})'`"
    )


def _fault(
    original: Side, feeds: Mapping[str, Any], expected: Mapping[str, Any], actual: Mapping[str, Any]
) -> OutputCheck | None:
    checks = [compare_arrays(name, expected[name], actual[name]) for name in expected]
    apart = [c for c in checks if not c.agrees and (c.fault or c.max_relative > _GROSS)]
    numbers = [c for c in apart if bool(np.isfinite(np.asarray(expected[c.name])).all())]
    if not numbers:
        return None
    moved = list(original.trembling_runs(feeds, list(expected)))
    for check in numbers:
        values = expected[check.name], actual[check.name], [each[check.name] for each in moved]
        if not doubted(check, *values, tolerance=None, most=FORGIVEN).agrees:
            return check
    return None
