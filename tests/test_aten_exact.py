"""Lowered nodes that are right to the last bit: gathered windows, whole numbers, segments."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from aten_node import agrees, stays

pytestmark = pytest.mark.slow  # `make check` has the recipes' cases instead

R = np.random.default_rng(21)
OPSETS = (9, 11, 13, 18)


def holds(operator: str, *arguments: Any, least: int = 9, **options: Any) -> None:
    """As the witness and PyTorch, at every opset, at sizes given and at those of run time."""
    for index, opset in enumerate(o for o in OPSETS if o >= least):
        agrees(operator, list(arguments), options, opset, dynamic=False)
        if index % 2 and not options.get("still"):
            agrees(operator, list(arguments), options, opset, dynamic=True)


@pytest.mark.parametrize("spatial", [2, 3])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_fractional_pooling(spatial: int, dtype: Any) -> None:
    least = 9 if dtype == np.float32 else 11
    for draw in range(12):
        plane = [int(n) for n in R.integers(5, 9, spatial)]
        kernel = [int(n) for n in R.integers(1, 4, spatial)]
        out = [int(R.integers(1, n - k + 4 - spatial)) for n, k in zip(plane, kernel, strict=True)]
        x = R.integers(-4, 5, (2, 3, *plane)).astype(dtype)  # with ties
        if draw % 3 == 1:
            x[R.random(x.shape) < 0.2] = np.nan
        if draw % 3 == 2:
            x[:, 1] = -np.inf
        samples = R.random((2, 3, spatial)).astype(dtype)
        holds(f"fractional_max_pool{spatial}d", x, kernel, out, samples, least=least)
        if draw < 3:
            one, more = x[0].copy(), samples[:1].copy()
            holds(f"fractional_max_pool{spatial}d", one, kernel, out, more, least=least)


def test_fractional_pooling_that_is_refused() -> None:
    x, samples = np.zeros((1, 2, 4, 4), np.float16), np.zeros((1, 2, 2), np.float16)
    found = [np.zeros((1, 2, 2, 2), np.float16), np.zeros((1, 2, 2, 2), np.int64)]
    for kind, because in ((np.float16, "single or double"), (np.float32, "do not fit into 4")):
        arguments = [x.astype(kind), [5, 5], [2, 2], samples.astype(kind)]
        stays("fractional_max_pool2d", arguments, [found[0].astype(kind), found[1]], because)
