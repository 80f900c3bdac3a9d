"""Pairs two lists by what stands in a row in both."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

ANY = 1 << 62  # no limit


def blocks(
    first: Sequence[str], second: Sequence[str], most: int = ANY
) -> list[tuple[int, int, int]]:
    """Runs of equal items: the same beginning, the same end, and the like in between.

    Networks repeat themselves: the longest run of all may be that of other blocks.

    Args:
        first: The operators of a model, say.
        second: Those of another.
        most: What the lengths of what is in between, multiplied, may be for it to be looked at.

    Returns:
        Where each run begins in the first, where in the second, and how long it is.
    """
    least = min(len(first), len(second))
    begin = next((i for i in range(least) if first[i] != second[i]), least)
    left = least - begin
    end = next((i for i in range(left) if first[-1 - i] != second[-1 - i]), left)
    inner, other = first[begin : len(first) - end], second[begin : len(second) - end]
    middle: Sequence[tuple[int, int, int]] = ()
    if len(inner) * len(other) <= most:
        matcher = difflib.SequenceMatcher(None, inner, other, autojunk=False)
        middle = matcher.get_matching_blocks()
    return [
        (0, 0, begin),
        *((begin + one, begin + two, length) for one, two, length in middle),
        (len(first) - end, len(second) - end, end),
    ]
