"""Operands of ATen operators: numbers, whole ones, truths and edges."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

NAN, INF = math.nan, math.inf


def floats(dtype: Any, *shape: int, seed: int = 0) -> Any:
    """Normal numbers."""
    return np.random.default_rng(seed).normal(size=shape).astype(dtype) * np.asarray(2, dtype)


def integers(dtype: Any, *shape: int, seed: int = 0, low: int = -9, high: int = 9) -> Any:
    """Small integers, no negative ones where the dtype has none."""
    low = 0 if np.dtype(dtype).kind in "ub" else low
    high = 1 if np.dtype(dtype).kind == "b" else high
    return np.random.default_rng(seed).integers(low, high + 1, shape).astype(dtype)


EDGES = [NAN, INF, -INF, 0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.5, 1e-4, -30.0, 30.0]
X = floats("f4", 2, 3, 4)
Y = floats("f4", 2, 3, 4, seed=5)
EDGED = X.copy()
EDGED[0, 1, 2] = EDGED[1, 1, 1] = NAN
EDGED[1, 2, 0], EDGED[0, 0, 0] = INF, -INF
ODD = np.where(np.isinf(EDGED), np.float32(3), EDGED)  # NaN and no infinity
INTS, BOOLS, BYTES = integers("i8", 2, 3, 4), integers("b1", 2, 3, 4), integers("u1", 2, 3, 4)
UNIT = (0.01 + 0.98 * np.abs(np.tanh(X))).astype(np.float32)  # strictly between 0 and 1
