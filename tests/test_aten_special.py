"""Special functions: how far the series of the lowering are from PyTorch in double precision."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from test_aten_math import EDGES, HAS_TORCH, by_torch, check, lowered, model_of

pytestmark = pytest.mark.slow  # `make check` has the recipes' cases instead

R = np.random.default_rng(4)
SIDES, BOTH = R.uniform(-20, 20, 3000), R.uniform(-87, 87, 3000)
GRIDS: dict[str, Any] = {
    "digamma": np.concatenate([SIDES, 10 ** R.uniform(-30, 30, 500), np.linspace(1.3, 1.6, 300)]),
    "lgamma": np.concatenate([SIDES, 10 ** R.uniform(-20, 30, 500), np.linspace(0.5, 2.5, 500)]),
    "erfinv": np.concatenate([R.uniform(-1, 1, 3000), 1 - 10 ** R.uniform(-7, 0, 500)]),
    "i0": np.concatenate([BOTH, SIDES]),
    "special_i0e": np.concatenate([BOTH, 10 ** R.uniform(-3, 6, 500)]),
    "special_i1": np.concatenate([BOTH, SIDES]),
    "special_i1e": np.concatenate([BOTH, 10 ** R.uniform(-3, 6, 500)]),
    "special_ndtr": np.concatenate([SIDES, R.uniform(-8, 8, 500)]),
    "special_log_ndtr": np.concatenate([SIDES, R.uniform(-8, 8, 500)]),
    "special_ndtri": np.concatenate([R.uniform(0, 1, 3000), 10 ** R.uniform(-30, 0, 500)]),
    "special_entr": 10 ** R.uniform(-30, 3, 3000),
    "special_erfcx": np.concatenate([R.uniform(-2, 30, 3000), 10 ** R.uniform(1, 20, 500)]),
}
# Units in the last place of the result; of 1 where it is smaller, for what crosses zero.
ALLOWED = {"digamma": 8, "lgamma": 10, "erfinv": 4, "special_ndtr": 4, "special_log_ndtr": 6}
ALLOWED |= {"special_ndtri": 6, "special_erfcx": 24}


@pytest.mark.skipif(not HAS_TORCH, reason="PyTorch says what the functions are")
@pytest.mark.parametrize("operator", GRIDS)
def test_series_round_as_single_precision_does(operator: str) -> None:
    x = GRIDS[operator].astype(np.float32)
    model, feeds = model_of(operator, [x])
    (found,) = lowered(model, feeds)
    (wanted,) = by_torch(operator, [x.astype(np.float64)], "")
    wanted = np.where(np.abs(wanted) > np.finfo(np.float32).max, np.inf * wanted, wanted)
    assert (np.isfinite(found) == np.isfinite(wanted)).all()
    scale = np.maximum(np.abs(wanted), 1.0 if operator in ALLOWED else 1e-30)
    errors = np.abs(found - wanted)[np.isfinite(wanted)] / scale[np.isfinite(wanted)]
    assert errors.max() <= ALLOWED.get(operator, 6) * 2.0**-23


@pytest.mark.skipif(not HAS_TORCH, reason="PyTorch says what the functions are")
@pytest.mark.parametrize("operator", GRIDS)
def test_series_round_as_double_precision_does(operator: str) -> None:
    x = GRIDS[operator]
    x = x[np.abs(x - np.round(x)) > 1e-3]  # beside a pole the argument's own rounding is all
    model, feeds = model_of(operator, [x])
    (found,) = lowered(model, feeds)
    (wanted,) = by_torch(operator, [x], "")
    scale = np.maximum(np.abs(wanted), 1.0 if operator in ALLOWED else 1e-30)
    assert (np.abs(found - wanted) / scale).max() <= 1e-13


@pytest.mark.parametrize("operator", GRIDS)
def test_edges_other_dtypes_and_the_witness(operator: str) -> None:
    edges = np.array([*EDGES, 2.0, -2.0, -3.0, 0.25, -0.75, 12.5], np.float32)
    for opset in (9, 11, 13, 18):
        check(operator, edges, opset=opset, spellings=("A+", "A", "N"), tolerance=2e-5)
    unit = np.array([0.3, -0.7, 0.001, 0.9, -0.2, 0.5])
    check(operator, unit, tolerance=1e-9)
    if operator not in ("special_erfcx", "special_ndtri", "special_log_ndtr"):  # PyTorch has not
        check(operator, unit.astype(np.float16), tolerance=4e-3)
    check(operator, np.array([[1, 2], [3, 0]]), tolerance=1e-5)
    if f"special_{operator}" in GRIDS or operator in ("erfinv", "digamma", "i0"):
        check(f"special_{operator}", unit.astype(np.float32))
