"""Numbers that may be a size, or be made of one."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from surgeon.anysize.sizes import Sizes
from surgeon.facts.fact import Array

LARGE = 16  # sizes of inputs from which on a number that is one is no chance
_LEAST = 7  # lengths below are numbers that are everywhere
_PIXELS = (255, 256)  # what bytes are divided by
_NEAR = 1e-6


def hangs(
    sizes: Sizes, array: Array, near: Iterable[int], counts: Iterable[int] = ()
) -> float | None:
    """The first element that may hang on the sizes: it is a length or one less, or its share.

    Args:
        sizes: The graph.
        array: Few numbers.
        near: Lengths of what they are beside.
        counts: How many elements that was added up of.
    """
    lengths = set(near)
    known = {number for number in lengths if number >= _LEAST}
    known |= {number - 1 for number in lengths if number > _LEAST}
    known |= {number for number in counts if number > 2}
    known |= {size.number for size in sizes.sizes if size.number >= LARGE}
    known -= set(_PIXELS)
    for element in np.abs(array.astype(np.float64)).ravel().tolist():
        for number in (element, 2 * element, *((1 / element, 2 / element) if element else ())):
            nearest = round(number) if np.isfinite(number) else 0
            if nearest in known and abs(number - nearest) <= _NEAR * nearest:
                return float(element)
    return None
