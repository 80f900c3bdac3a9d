"""Numbers that suit the operators that read them: lengths of a cache, values among levels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
CACHES = frozenset({"GroupQueryAttention"})
_DEVIATIONS = 3  # of normal numbers, from the middle of the levels to either end
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
    if operator not in CACHES or len(operands) < 7 or operands[0] not in shapes:
        return {}
    query, past, ends, total = (operands[index] for index in (0, 3, 5, 6))
    whole = shapes[query][1] + (shapes[past][2] if past in shapes else 0)
    values = {ends: whole - 1, total: whole}
    return {
        name: np.full(shapes[name], value, np.int32)
        for name, value in values.items()
        if name in shapes
    }


def levels(
    reads: Iterable[tuple[str, Sequence[str]]], constants: Mapping[str, Array]
) -> dict[str, tuple[float, float]]:
    """Middle and deviation of normal numbers that are mostly between the ends of levels.

    Args:
        reads: Operators of nodes, and the names of their operands.
        constants: Values by name.

    Returns:
        By the names of operands of a QuantizeLinear of constant scale.
    """
    found = {}
    for operator, operands in reads:
        scale = constants.get(operands[1]) if operator == "QuantizeLinear" else None
        if scale is None or not scale.size:
            continue
        zero = constants.get(operands[2]) if len(operands) > 2 else None
        zero = np.zeros(1, np.uint8) if zero is None else zero
        if zero.dtype.kind not in "iu" or not zero.size:
            continue
        info = np.iinfo(zero.dtype)
        step = float(np.median(np.abs(scale.astype(np.float64))))
        middle = (int(info.min) + int(info.max) + 1) / 2 - float(np.median(zero))
        half = (int(info.max) - int(info.min) + 1) / 2
        found[operands[0]] = (middle * step, half * step / _DEVIATIONS)
    return found
