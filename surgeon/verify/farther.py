"""Whether two models that agree on what is drawn do so on other values: told, and not judged.

A bound at 6 is not met by numbers around 0, and nothing says that the model is ever given larger
ones: a network's own rounding grows with them too. Nor is an integer that may be a place, or a
size, drawn below 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from surgeon.errors import SurgeonError
from surgeon.verify.compare import compare_arrays
from surgeon.verify.noise import FORGIVEN, doubted
from surgeon.verify.optimised import Run
from surgeon.verify.originals import Side
from surgeon.verify.precision import allowed
from surgeon.verify.verdict import OutputCheck, describe

_TIMES = 32
_LEAST, _BEYOND = -9, 10  # of integers: small, as a size may hang on them
_GROSS = 0.01  # of an output's spread: what is less may be rounding
_NORMAL, _WHOLE = "normal", "small integers"  # the words for an input that nothing is known of


class _Way(NamedTuple):
    """Other values than those that were drawn.

    Attributes:
        said: What they are, in words.
        feeds: The inputs, these among them.
        told: How such are asked for.
    """

    said: str
    feeds: Mapping[str, Any]
    told: str


def farther_fault(
    result: Side,
    original: Side,
    runs: Sequence[Run],
    drawn: Mapping[str, str],
    tolerance: float = 0.0,
) -> str | None:
    """How the two differ where the inputs that nothing is known of are larger, or below 0.

    Nothing is said of outputs that are no numbers there, or that rounding alone moves as far.

    Args:
        result: One model.
        original: The other, by which it is judged.
        runs: Inputs on which they agree.
        drawn: By input name, how it was drawn, in words.
        tolerance: Allowed whatever the table says, relative to the spread.

    Returns:
        What differs, in a sentence; None if they agree.
    """
    if not runs:
        return None
    run = runs[0]
    place = f" at {describe(run.sizes)}" if run.sizes else ""
    for said, feeds, told in _ways(run.feeds, drawn):
        names = list(run.actual)
        try:
            expected, actual = original.run(feeds, names), result.run(feeds, names)
            fault = _fault(original, feeds, expected, actual, tolerance)
        except SurgeonError:
            continue
        if fault is not None:
            return (
                f"{said}, of which the verdict says nothing, they differ: {fault}{place}; to "
                f"compare there, draw such: `--input '{told}'`"
            )
    return None


def _ways(feeds: Mapping[str, Any], drawn: Mapping[str, str]) -> Iterator[_Way]:
    free = [name for name in feeds if drawn.get(name) == _NORMAL]
    if free:
        larger = {name: _TIMES * feeds[name] for name in free}
        said, told = f"on values {_TIMES} times as large", f"{free[0]}=normal(0,{_TIMES})"
        yield _Way(said, {**feeds, **larger}, told)
    whole = [name for name in feeds if drawn.get(name) == _WHOLE and _is_signed(feeds[name])]
    if whole:
        others = {name: _below_zero(feeds[name]) for name in whole}
        said = f"on integers from {_LEAST} to {_BEYOND - 1}"
        yield _Way(said, {**feeds, **others}, f"{whole[0]}=ints({_LEAST},{_BEYOND})")


def _below_zero(like: Any) -> Any:
    """Integers of which the first, at least, is below 0."""
    found = np.array(np.random.default_rng(0).integers(_LEAST, _BEYOND, like.shape), like.dtype)
    found.reshape(-1)[:1] = _LEAST
    return found


def _is_signed(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind == "i"


def _fault(
    original: Side,
    feeds: Mapping[str, Any],
    expected: Mapping[str, Any],
    actual: Mapping[str, Any],
    tolerance: float,
) -> OutputCheck | None:
    checks = [
        compare_arrays(name, want, actual[name], tolerance=allowed(want, "", tolerance))
        for name, want in expected.items()
    ]
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
