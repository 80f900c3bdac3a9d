"""How much of a cache is filled: numbers that go together, and with the sizes of what is cached."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
OPERATORS = frozenset({"GroupQueryAttention"})
Shapes = Mapping[str, tuple[int, ...]]


def lengths(operator: str, operands: Sequence[str], shapes: Shapes) -> dict[str, Array]:
    """Lengths with which an operator is defined, by the names of the operands that hold them.

    All that is cached counts, and all that is new: a contract may say so, and where it does not,
    the inputs of the whole model have other lengths.

    Args:
        operator: Of the node.
        operands: Their names, "" for one left out.
        shapes: Those that are known, by name.
    """
    if operator not in OPERATORS or len(operands) < 7 or operands[0] not in shapes:
        return {}
    query, past, ends, total = (operands[index] for index in (0, 3, 5, 6))
    whole = shapes[query][1] + (shapes[past][2] if past in shapes else 0)
    values = {ends: whole - 1, total: whole}
    return {
        name: np.full(shapes[name], value, np.int32)
        for name, value in values.items()
        if name in shapes
    }
