"""Bags of embeddings and unpooling: the lowering, the witness and PyTorch say the same."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from aten_layer import Call, Held, holds, normal, refuses

pytestmark = pytest.mark.slow  # `make check` has the recipes' cases instead

GENERATOR = np.random.default_rng(5)


def bags(offsets: Any, mode: int, *rest: Any, dtype: Any = np.float32, **more: Any) -> Call:
    indices = GENERATOR.integers(0, 9, 12)
    operands = [normal(9, 4, dtype=dtype), indices, offsets, False, mode, False, *rest]
    return Call("embedding_bag", operands, **more)


@pytest.mark.parametrize("opset", [9, 13, 18])
@pytest.mark.parametrize("mode", [0, 1, 2])
def test_bags(opset: int, mode: int) -> None:
    offsets = [np.array([0, 3, 3, 7]), Held(np.array([0, 4, 8])), Held(np.array([0, 0, 11]))]
    for given in offsets:
        for dtype in (np.float32, np.float64):
            for dynamic in (False, opset > 9):
                shared: dict[str, Any] = {"opset": opset, "dynamic": dynamic, "dtype": dtype}
                holds(bags(given, mode, None, False, **shared))
                padded = {"overload": "padding_idx", **shared}
                if not dynamic:
                    holds(bags(given, mode, None, False, -2, **padded))
                holds(bags(given, mode, None, False, 3, **padded))
                holds(bags(given, mode, None, False, None, **padded))
                if mode == 0:
                    holds(bags(given, mode, normal(12, dtype=dtype), False, **shared))
    ends = np.array([0, 2, 2, 12])
    holds(bags(ends, mode, None, True, opset=opset))
    holds(bags(Held(np.array([0, 6, 12])), mode, None, True, opset=opset))
    raw = bags(ends, mode, None, False, -1, opset=opset)
    raw.operator = "_embedding_bag_forward_only"
    holds(raw)


def test_bags_are_read_alone() -> None:
    refuses(bags(np.array([0, 3]), 0, None, False, outputs=2), "output 1")
    refuses(bags(np.array([0, 3]), 1, normal(12), False), "only sums have weights of their own")


@pytest.mark.parametrize("opset", [9, 13])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_unpooling(opset: int, dtype: Any) -> None:
    for dynamic in (False, True):
        for shape in ((2, 3, 2, 4), (3, 2, 4)):
            planes = [GENERATOR.permutation(35)[:8] for _ in range(math.prod(shape) // 8)]
            indices = np.stack(planes).reshape(shape)  # which of two in one place wins is open
            x = normal(*shape, dtype=dtype)
            holds(Call("max_unpool2d", [x, indices, [5, 7]], opset=opset, dynamic=dynamic))
    indices = GENERATOR.permutation(60)[:24].reshape(1, 1, 2, 3, 4)
    x = normal(1, 1, 2, 3, 4, dtype=dtype)
    rest = [[3, 4, 5], [1, 1, 1], [0, 0, 0]]
    holds(Call("max_unpool3d", [x, indices, *rest], opset=opset))
