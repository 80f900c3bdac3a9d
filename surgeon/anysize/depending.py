"""Numbers that may be a size, or be made of one."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from surgeon.anysize.sizes import Sizes
from surgeon.facts.fact import Array

LARGE = 16  # sizes of inputs from which on a number that is one is no chance
_LEAST = 7  # lengths below are numbers that are everywhere
_PIXELS = (127, 128, 255, 256)  # what bytes are divided by
_NEAR = 1e-6
_MOST = 2**31
_DIGITS = 4
_OF_ACTIVATIONS = (1 / 3, 1 / 6)


def depending(
    sizes: Sizes,
    array: Array,
    near: Iterable[int],
    counts: Iterable[int] = (),
    edges: Iterable[int] = (),
    *,
    pixels: bool = False,
) -> list[float]:
    """The elements that may depend on the sizes: a length or one less, its share, root or log.

    Args:
        sizes: The graph.
        array: Few numbers.
        near: Lengths of what they are beside.
        counts: How many elements that was added up of.
        edges: Last places of lengths that need not be beside them.
        pixels: Whether they stand beside an image as it comes.
    """
    lengths = set(near)
    known = {number for number in lengths if number >= _LEAST}
    large = {number - back for number in lengths for back in (0, 1) if number > LARGE}
    known |= large
    summed = {each for number in counts for each in (number, number - 1)}
    known |= {each for each in summed if each > 2}
    large |= {each for each in summed if each >= LARGE}
    beside = {number - back for number in lengths for back in (0, 1)}
    small = {each for each in beside | summed if each >= _LEAST}
    given = {size.number - back for size in sizes.sizes for back in (0, 1)}
    known |= {number for number in (*given, *edges) if number >= LARGE}
    skipped = _PIXELS if pixels else ()
    known -= set(skipped)
    shares = [number / (number - 1) for number in counts if number > 1]
    roots = (number**0.5 for number in counts if number > 2)
    shares += [e for r in roots if r >= _LEAST or r != round(r) for e in (r, 1 / r)]
    shares += [math.log(number) for number in counts if number > 2]

    def hangs(element: float) -> bool:
        if not 0 < element < np.inf:
            return False
        whole, half = (element, 1 / element), (2 * element, 2 / element)
        share = () if _is_everyday(element) else (1 / element, 2 / element)
        return any(
            round(number) in among and abs(number - round(number)) <= _NEAR * number
            for among, numbers in (
                (known, whole),
                (large - set(skipped), half),
                (small - set(skipped), share),
            )
            for number in numbers
            if number < _MOST
        ) or any(abs(element - share) <= _NEAR * max(share, 1) for share in shares)

    return [each for each in np.abs(array.astype(np.float64)).ravel().tolist() if hangs(each)]


def _is_everyday(element: float) -> bool:
    """Whether a number has few digits, or is one of activations: such are no share by chance."""
    return abs(element - round(element, _DIGITS)) <= _NEAR * element or any(
        abs(element - each) <= _NEAR for each in _OF_ACTIVATIONS
    )
