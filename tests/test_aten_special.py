"""Special functions: how far the series of the lowering are from PyTorch in double precision."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest
from aten_call import HAS_TORCH, by_torch, check, lowered, model_of
from aten_operands import EDGES

import surgeon
from surgeon.reference import Reference

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


@pytest.mark.skipif(not HAS_TORCH, reason="PyTorch says what the functions are")
@pytest.mark.parametrize("operator", [*GRIDS, "special_bessel_j0", "special_modified_bessel_k0"])
def test_onnxruntime_optimises_nothing_away(operator: str) -> None:
    """An Add of a double below 1e-45 counts as none to its optimiser."""
    x = np.concatenate([np.linspace(-40, 40, 321), 10 ** R.uniform(-3, 3, 100)])
    model, feeds = model_of(operator, [x])
    result = surgeon.apply(model, "aten", verify=False).model.to_proto().SerializeToString()
    found = []
    for level in ("ORT_ENABLE_ALL", "ORT_DISABLE_ALL"):
        settings = onnxruntime.SessionOptions()
        settings.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, level)
        session = onnxruntime.InferenceSession(result, settings)
        found.append(session.run(None, feeds)[0])
    np.testing.assert_allclose(*found, rtol=1e-12, atol=1e-300)


@pytest.mark.parametrize("operator", GRIDS)
def test_edges_other_dtypes_and_the_witness(operator: str) -> None:
    edges = np.array([*EDGES, 2.0, -2.0, -3.0, 0.25, -0.75, 12.5], np.float32)
    for opset in (9, 11, 13, 18):
        check(operator, edges, opset=opset, spellings=("A+", "A", "N"), tolerance=2e-5)
    unit = np.array([0.3, -0.7, 0.001, 0.9, -0.2, 0.5])
    check(operator, unit, tolerance=1e-9)
    if operator not in ("special_erfcx", "special_ndtri", "special_log_ndtr"):  # PyTorch lacks
        check(operator, unit.astype(np.float16), tolerance=4e-3)
    check(operator, np.array([[1, 2], [3, 0]]), tolerance=1e-5)
    if f"special_{operator}" in GRIDS or operator in ("erfinv", "digamma", "i0"):
        check(f"special_{operator}", unit.astype(np.float32))


def by_steps(shape: Any) -> Any:
    """Arguments and limits: small, alike, and far from one another."""
    a = np.concatenate([10 ** R.uniform(-4, 1.5, shape), 10 ** R.uniform(1, 5, shape)])
    near = np.abs(a + R.normal(size=len(a)) * 2 * np.sqrt(a))
    return np.concatenate([a, a]), np.concatenate([near, a * 10 ** R.uniform(-1, 0.5, len(a))])


@pytest.mark.parametrize("operator", ["igamma", "igammac"])
def test_incomplete_gamma_rounds_as_single_precision_does(operator: str) -> None:
    a, x = (v.astype(np.float32) for v in by_steps(300))
    model, feeds = model_of(operator, [a, x])
    (found,) = lowered(model, feeds)
    wide, numbers = model_of(operator, [a.astype(np.float64), x.astype(np.float64)])
    (wanted,) = Reference(wide).run(numbers).values()
    there = wanted > 1e-37
    assert (np.abs(found - wanted)[there] / wanted[there]).max() <= 5e-7
    assert (found[~there] < 1e-36).all()


@pytest.mark.parametrize("operator", ["igamma", "igammac"])
def test_incomplete_gamma_at_its_ends(operator: str) -> None:
    ends = np.array([0, 1, np.inf, -1, np.nan, 0.3, 1e-20, 50], np.float32)
    a, x = (v.reshape(-1) for v in np.meshgrid(ends, ends))
    for opset in (9, 11, 13, 18):
        check(operator, a, x, opset=opset, spellings=("A+", "N"), tolerance=1e-5)
    check(operator, a.astype(np.float16), x.astype(np.float16), tolerance=2e-3)
    check(operator, a.astype(np.float64)[::3], x.astype(np.float64)[::3], tolerance=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_airy_in_the_dtype(dtype: Any) -> None:
    x = np.concatenate([R.uniform(-40, 20, 800), R.uniform(-4, 4, 200)]).astype(dtype)
    model, feeds = model_of("special_airy_ai", [x])
    (found,) = lowered(model, feeds)
    (wanted,) = (
        Reference(model_of("special_airy_ai", [x.astype(np.float64)])[0])
        .run({name: value.astype(np.float64) for name, value in feeds.items()})
        .values()
    )
    scale = np.where(x > 0, np.abs(wanted), np.maximum(-x, 1) ** -0.25)
    there = scale > 1e-36
    allowed = 2.0**-23 if dtype == np.float32 else 1e-11
    assert (np.abs(found - wanted)[there] / scale[there]).max() <= allowed
    for opset in (9, 13, 18):
        ends = np.array([0, -0.0, 2.5, -2.5, np.inf, -np.inf, np.nan], dtype)
        check("special_airy_ai", ends, opset=opset, spellings=("A+", "N"), tolerance=1e-5)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NaN and infinity are among the numbers
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_the_next_float_bit_by_bit(dtype: Any) -> None:
    kind = np.finfo(dtype)
    counts = np.dtype(f"u{kind.bits // 8}")
    a, b = (
        R.integers(0, np.iinfo(counts).max, 20_000, dtype=counts, endpoint=True).view(dtype)
        for _ in range(2)
    )
    powers = 2.0 ** np.arange(kind.minexp - kind.nmant, kind.maxexp, dtype=np.float64)
    edges = np.array([0, kind.max, np.inf, np.nan, *powers], dtype)
    edges = np.concatenate([edges, np.nextafter(edges, dtype(0)), edges * dtype(1.5)])
    towards = np.array([np.inf, -np.inf, 0, np.nan], dtype)
    edges, ends = np.meshgrid(np.concatenate([edges, -edges]), towards)
    a = np.concatenate([a, edges.reshape(-1), a])
    b = np.concatenate([b, ends.reshape(-1), a[: len(b)]])
    for opset in (9, 13):
        model, feeds = model_of("nextafter", [a, b], opset=opset)
        (found,) = lowered(model, feeds)
        np.testing.assert_array_equal(found, np.nextafter(a, b))
