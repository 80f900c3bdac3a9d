"""What a rewrite was compared on, in words."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from surgeon.edges import EDGES, NEGATIVE, WITHIN
from surgeon.facts.fact import Array
from surgeon.trial.piece import Piece

NAMED = (EDGES, WITHIN, NEGATIVE)  # ways of drawing of which it helps to know where values lie

_FEW = 3  # inputs that are told of


def ends_of(feeds: Mapping[str, Array], piece: Piece) -> str:
    """From where to where inputs are, those first that are whole numbers: places, mostly.

    Args:
        feeds: The inputs.
        piece: Says which of them were drawn; the others follow from the sizes.
    """
    names = [tensor.name for tensor, fact in piece.inputs if fact.value is None]
    drawn = [(name, feeds[name]) for name in names if feeds[name].dtype.kind in "iuf"]
    whole_first = sorted(drawn, key=lambda each: each[1].dtype.kind == "f")
    told = [_ends(name, array) for name, array in whole_first if np.isfinite(array).any()]
    return f" ({', '.join(told[:_FEW])})" if told else ""


def _ends(name: str, array: Array) -> str:
    held = array[np.isfinite(array)]
    low, high = held.min(), held.max()
    if array.dtype.kind in "iu":
        return f"`{name}` from {low} to {high}"
    return f"`{name}` from {float(low):.3g} to {float(high):.3g}"
