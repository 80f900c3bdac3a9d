"""Operands of calls; and calls: operator, arguments, least opset, whether sizes stay fixed.

All are drawn from one generator, in the order in which the lists are imported.
"""

from __future__ import annotations

from typing import Any

import numpy as np

RNG = np.random.default_rng(3)
KINDS = (np.float32, np.float64, np.int64, np.int32, np.bool_)


def f(*shape: int, dtype: Any = np.float32) -> Any:
    """Distinct numbers of either sign."""
    count = int(np.prod(shape))
    values = RNG.permutation(count) - count // 2
    if np.dtype(dtype) == np.bool_:
        return (RNG.integers(0, 2, shape) > 0).astype(np.bool_)
    if np.dtype(dtype).kind == "f":
        return (values / 4).astype(dtype).reshape(shape)
    return values.astype(dtype).reshape(shape)


def ix(*values: Any, dtype: Any = np.int64) -> Any:
    return np.asarray(values[0] if len(values) == 1 else values, dtype)


class Calls(list[tuple[str, list[Any], int, bool]]):
    """Calls, in the order in which they were added."""

    def add(self, operator: str, *arguments: Any, least: int = 9, still: bool = False) -> None:
        self.append((operator, list(arguments), least, still))
