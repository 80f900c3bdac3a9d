"""Factors in LAPACK's packing: triangles, reflections, pivots."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from aten_call import HAS_TORCH, by_torch, model_of
from aten_matrices import R, holds, lowered, matrices, refuses
from shares import some

import surgeon
from surgeon.reference import Reference

pytestmark = pytest.mark.slow  # `make check` has the recipes' cases instead

LU_OPSETS = ((9, False), (11, True), (13, False), (18, True))
LU_SHAPES = [(1, 1), (4, 4), (5, 3), (3, 5), (1, 4), (4, 1), (2, 5, 3), (2, 3, 4, 6), (36, 34)]


@pytest.mark.parametrize("shape", [*LU_SHAPES, (0, 3), (3, 0), (2, 0, 0)], ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_triangles_in_lapacks_packing(shape: tuple[int, ...], dtype: Any) -> None:
    rng = np.random.default_rng([11, *shape])  # pivots that no rounding decides
    for opset, free in some((*LU_OPSETS[::2], LU_OPSETS[-1]), of=LU_OPSETS):
        if dtype == np.float64 and opset < 11:
            continue
        a = rng.normal(size=shape).astype(dtype)
        shared: dict[str, Any] = {"opset": opset, "free": free}
        holds("linalg_lu_factor", a, True, outputs=2, **shared)
        holds("linalg_lu_factor_ex", a, True, False, outputs=3, **shared)
        holds("linalg_lu", a, True, outputs=3, **shared)
        holds("geqrf", a, outputs=2, tolerance=20.0, **shared)
        high, wide = shape[-2:]
        pivots = np.arange(1, min(high, wide) + 1, dtype=np.int32)
        pivots = np.broadcast_to(np.maximum(pivots, high - pivots), (*shape[:-2], len(pivots)))
        for data, places in ((True, True), (False, True), (True, False)):
            flags = [data, places]
            holds("lu_unpack", a, pivots.copy(), *flags, outputs=3, **shared)


@pytest.mark.parametrize("shape", [s for s in LU_SHAPES if s[-2] >= s[-1]], ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_products_of_reflections(shape: tuple[int, ...], dtype: Any) -> None:
    a, (high, wide) = matrices(*shape, dtype=dtype), shape[-2:]
    taus = matrices(*shape[:-2], wide, dtype=dtype)
    packed, real = np.linalg.qr(a.astype(np.float64), "raw")
    packed, real = packed.swapaxes(-1, -2).astype(dtype), real.astype(dtype)
    for opset, free in LU_OPSETS:
        shared: dict[str, Any] = {"opset": opset, "free": free, "tolerance": 20.0}
        if high < 9:  # beyond, such reflections grow
            holds("linalg_householder_product", a, taus, **shared)
            holds("linalg_householder_product", a, taus[..., :0].copy(), **shared)
        holds("orgqr", packed, real[..., : (wide + 1) // 2].copy(), **shared)
        tall, flat = matrices(*shape[:-2], high, 3), matrices(*shape[:-2], 2, high)
        for transpose in (False, True):
            holds("ormqr", packed, real, tall.astype(dtype), True, transpose, **shared)
            holds("ormqr", packed, real, flat.astype(dtype), False, transpose, **shared)


@pytest.mark.skipif(not HAS_TORCH, reason="needs PyTorch")
def test_pivots_that_tie_or_are_zero() -> None:
    whole = R.integers(-2, 3, (200, 4, 4)).astype(np.float32)
    upright = np.stack([np.zeros((4, 4)), np.ones((4, 4)), np.diag([1.0, 0, 2, 0])])
    for a in (upright.astype(np.float32), np.tile(whole[:20, :1], (1, 3, 1))):
        found = lowered(*model_of("linalg_lu_factor_ex", [a, True, False], outputs=3))
        for mine, its in zip(
            found, by_torch("linalg_lu_factor_ex", [a, True, False], ""), strict=True
        ):
            np.testing.assert_array_equal(mine, its)
    packed, pivots = lowered(*model_of("linalg_lu_factor", [whole, True], outputs=2))
    p, low, up = lowered(*model_of("lu_unpack", [packed, pivots, True, True], outputs=3))
    np.testing.assert_allclose(p @ low @ up, whole, atol=1e-5)
    assert (np.abs(low) <= 1).all()
    first = np.abs(whole[:, :, 0]).argmax(-1) + 1
    np.testing.assert_array_equal(pivots[:, 0], first)


def test_pivots_that_rounding_decides_have_no_witness() -> None:
    a = np.array([[3, 1], [3 + 1e-6, 2]], np.float32)
    model, feeds = model_of("linalg_lu_factor", [a, True], outputs=2)
    with pytest.raises(surgeon.SurgeonError, match="a matter of rounding"):
        Reference(model).run(feeds)


def test_packed_factors_that_are_refused() -> None:
    a = matrices(3, 3)
    refuses("linalg_lu", a, False, because="without pivots, which PyTorch does not", outputs=3)
    refuses("linalg_ldl_factor", a, False, because="blocks of one or two rows", outputs=2)
    refuses("geqrf", matrices(257, 2), because="257 rows or columns; up to 256 are", outputs=2)
