"""Normalisation of half precision: by parameters of either precision, and what it saves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from aten_layer import Call, holds, normal

_X = (np.array([5000, 300, 6])[:, None] * normal(2, 3, 5)).astype(np.float16)
_ROWS = normal(2, 6, 4, dtype=np.float16)


def calls(kind: str) -> list[tuple[str, list[Any], str, int]]:
    """Operator, operands, overload, outputs."""
    three = [normal(3, dtype=kind) for _ in range(3)]
    spread, rest = np.abs(normal(3, dtype=kind)), [0.1, 1e-5]
    whole, sizes = [normal(6, 4, dtype=kind) for _ in range(2)], [6, 4]
    each = [normal(6, dtype=kind) for _ in range(2)]
    return [
        ("native_batch_norm", [_X, *three, spread, False, *rest], "", 3),
        ("_native_batch_norm_legit_no_training", [_X, *three, spread, *rest], "", 3),
        ("_native_batch_norm_legit", [_X, *three[:2], True, *rest], "no_stats", 3),
        ("_native_batch_norm_legit", [_X, None, None, True, *rest], "no_stats", 3),
        ("batch_norm", [_X, *three[:2], None, None, True, *rest, False], "", 1),
        ("native_group_norm", [_ROWS, *each, 2, 6, 4, 3, 1e-5], "", 3),
        ("group_norm", [_ROWS, 3, *each, 1e-5, True], "", 1),
        ("native_layer_norm", [_ROWS, sizes, *whole, 1e-5], "", 3),
        ("layer_norm", [_ROWS, sizes, *whole, 1e-5, True], "", 1),
    ]


@pytest.mark.parametrize("opset", [9, 13, 18])
@pytest.mark.parametrize("kind", ["f2", "f4"])
def test_halves_with_parameters_of_either_precision(kind: str, opset: int) -> None:
    for operator, operands, overload, outputs in calls(kind):
        holds(Call(operator, operands, overload, outputs, opset=opset, dynamic=opset == 18))
