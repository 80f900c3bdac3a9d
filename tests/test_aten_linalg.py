"""Linear algebra: the lowering in onnxruntime, the witness and PyTorch say the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from aten_call import HAS_TORCH, by_torch, model_of
from aten_matrices import BATCHES, OPSETS, holds, lowered, matrices, positive, refuses
from shares import some
from truth import parse

import surgeon
from surgeon.runtime import Session

pytestmark = pytest.mark.slow  # `make check` has the recipes' cases instead


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("batch", BATCHES, ids=str)
@pytest.mark.parametrize("size", [1, 2, 5])
def test_elimination(dtype: Any, batch: tuple[int, ...], size: int) -> None:
    a = matrices(*batch, size, size, dtype=dtype)
    if size > 1:
        a[..., 0, 0] = 0  # wants a pivot
    b = matrices(*batch, size, 3, dtype=dtype)
    for index, opset in enumerate(OPSETS):
        for dynamic in some((index % 2 == 0,), of=(False, True)):
            shared: dict[str, Any] = {"opset": opset, "dynamic": dynamic, "tolerance": 20.0}
            for operator in ("inverse", "linalg_inv"):
                holds(operator, a, **shared)
            for operator in ("det", "linalg_det"):
                holds(operator, a, **shared)
            for operator in ("slogdet", "linalg_slogdet"):
                holds(operator, a, outputs=2, **shared)
            holds("logdet", a, **shared)
            if not (dynamic and batch):
                holds("linalg_solve", a, b, True, **shared)
                holds("linalg_solve", a, b.swapaxes(-1, -2).copy(), False, **shared)
    holds("solve", b, a, tolerance=20.0, compared=(0,))
    holds("linalg_solve", a, b[..., 0].copy(), True, tolerance=20.0)


def test_single_precision_before_opset_11() -> None:
    holds("linalg_inv", positive(2, 4, 4), opset=9)
    holds("slogdet", positive(2, 4, 4), outputs=2, opset=9)
    holds("linalg_cholesky", positive(2, 4, 4), False, opset=9)
    holds("matrix_exp", matrices(2, 4, 4), opset=9)
    holds("triangular_solve", matrices(4, 2), positive(4, 4), opset=9, outputs=2)


def test_batches_that_broadcast() -> None:
    a, b = positive(3, 4, 4), matrices(2, 1, 4, 5)
    holds("linalg_solve", a, b, True)
    holds("linalg_solve_triangular", a, b, True, True, False)
    holds("triangular_solve", b, a, True, False, False, outputs=2, compared=(0,))


def test_singular_matrices_have_no_determinant() -> None:
    a = matrices(5, 4, 4)
    a[0] = 0
    a[1, :, 2] = 0
    a[2, 1] = a[2, 3]
    a[3, :, 0] = 0
    holds("det", a, tolerance=20.0)
    model, feeds = model_of("slogdet", [a], outputs=2)
    sign, size = lowered(model, feeds)
    assert sign[[0, 1, 3]].tolist() == [0, 0, 0]
    assert np.isneginf(size[[0, 1, 3]]).all()
    assert np.isnan(lowered(*model_of("logdet", [-np.eye(3, dtype=np.float32)]))[0])


def test_the_logarithm_of_a_determinant_of_1_is_compared_by_what_rounding_moves() -> None:
    """Flows begin with rotations; nearly nothing of a logarithm is left, and that is rounding."""
    x = matrices(3, dtype=np.float32)
    weight = np.linalg.qr(matrices(16, 16, dtype=np.float64))[0].astype(np.float32)
    model = parse(
        f"""
        g (float[3] x) => (float[3] y) <float[16,16] w = {{{", ".join(map(str, weight.flat))}}}> {{
          sign, size = org.pytorch.aten.ATen <operator = "slogdet"> (w)
          y = Add (x, size)
        }}
        """
    )
    model.opset_import.append(onnx.helper.make_opsetid("org.pytorch.aten", 1))
    result = surgeon.apply(model, "aten")
    assert result.report.verdict.status == "equivalent"
    found = Session(result.model.to_proto()).run({"x": x})["y"]
    np.testing.assert_allclose(found, x, atol=1e-5)


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_triangles(upper: bool, dtype: Any) -> None:
    for batch in BATCHES:
        a, b = positive(*batch, 5, 5, dtype=dtype), matrices(*batch, 5, 2, dtype=dtype)
        for unit in (False, True):
            for flip in (False, True):
                flags = [upper, flip, unit]
                holds("triangular_solve", b, a, *flags, outputs=2, tolerance=50.0)
            wide = b.swapaxes(-1, -2).copy()
            holds("linalg_solve_triangular", a, b, upper, True, unit, tolerance=50.0)
            holds("linalg_solve_triangular", a, wide, upper, False, unit, tolerance=50.0)
        for operator in ("cholesky", "linalg_cholesky"):
            holds(operator, a, upper)
            holds(operator, a, upper, dynamic=True)
        factor = np.linalg.cholesky(a.astype(np.float64)).astype(dtype)
        factor = factor.swapaxes(-1, -2).copy() if upper else factor
        holds("cholesky_solve", b, factor, upper, tolerance=20.0)
        holds("cholesky_inverse", factor, upper, tolerance=20.0)


@pytest.mark.parametrize("shape", [(4, 4), (6, 3), (3, 6), (1, 4), (4, 1), (2, 5, 3)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_reflections(shape: tuple[int, ...], dtype: Any) -> None:
    for index in range(some(4, of=12)):
        a = matrices(*shape, dtype=dtype)
        opset = OPSETS[index % 3]
        shared: dict[str, Any] = {"outputs": 2, "opset": opset, "tolerance": 20.0}
        holds("qr", a, True, dynamic=index % 2 == 0, **shared)
        holds("qr", a, False, **shared)
        holds("linalg_qr", a, "reduced", **shared)
        holds("linalg_qr", a, "complete", **shared)
        holds("pinverse", a, 1e-15, tolerance=50.0, free=index % 2 == 1)
    still = np.zeros(shape, dtype)
    still[..., 0, 0] = -2
    for a in (still, still * 0, np.triu(matrices(*shape, dtype=dtype))):
        holds("qr", a, True, outputs=2)


def test_factors_of_dependent_columns_are_factors() -> None:
    a = matrices(6, 4)
    a[:, 2] = a[:, 0] - a[:, 1]
    q, r = lowered(*model_of("qr", [a, True], outputs=2))
    np.testing.assert_allclose(q @ r, a, atol=1e-5)
    np.testing.assert_allclose(q.T @ q, np.eye(4), atol=1e-5)
    assert (np.tril(r, -1) == 0).all()


@pytest.mark.parametrize("scale", [0.0, 1e-3, 0.3, 3.0, 12.0])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_exponentials(scale: float, dtype: Any) -> None:
    for batch in BATCHES:
        a = (matrices(*batch, 4, 4) * scale).astype(dtype)
        for operator in ("matrix_exp", "linalg_matrix_exp"):
            holds(operator, a, tolerance=5.0 if scale < 5 else 50.0)
        holds("matrix_exp", a, dynamic=True, opset=18, tolerance=5.0 if scale < 5 else 50.0)
    both = np.stack([np.eye(3) * 1e-4, np.eye(3) * -40, np.diag([1.0, 20, -70])]).astype(dtype)
    holds("matrix_exp", both, tolerance=10.0)
    turning = np.array([[0, 50.0], [-50.0, 0]], dtype)
    holds("matrix_exp", turning, tolerance=10.0)


def test_powers() -> None:
    for n in (-3, -1, 0, 1, 2, 5):
        for dtype in (np.float32, np.float64):
            holds("linalg_matrix_power", positive(2, 3, 3, dtype=dtype) / 3, n, tolerance=20.0)
    holds("matrix_power", matrices(3, 3), 4)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("batch", BATCHES, ids=str)
def test_larger_matrices_in_turns(dtype: Any, batch: tuple[int, ...]) -> None:
    size = 35 + len(batch)
    a, b = positive(*batch, size, size, dtype=dtype), matrices(*batch, size, 2, dtype=dtype)
    a = (a / size + np.eye(size)).astype(dtype)
    a[..., [0, 5], :] = a[..., [5, 0], :]  # wants a pivot, once
    whole = np.tril(a) + 4 * np.eye(size, dtype=dtype)
    for opset in (11, 13, 18):
        shared: dict[str, Any] = {"opset": opset, "dynamic": bool(batch), "tolerance": 20.0}
        holds("linalg_inv", a, **shared)
        holds("linalg_det", a, **shared)
        holds("slogdet", a, outputs=2, **shared)
        holds("logdet", a, **shared)
        shared["dynamic"] = False
        holds("linalg_solve", a, b, True, **shared)
        holds("linalg_solve_triangular", whole, b, False, True, False, **shared)
        holds("triangular_solve", b, whole, False, True, True, outputs=2, compared=(0,), **shared)
        for upper in (False, True):
            holds("linalg_cholesky", whole @ whole.swapaxes(-1, -2), upper, **shared)
            factor = whole.swapaxes(-1, -2).copy() if upper else whole
            holds("cholesky_solve", b, factor, upper, **shared)
    a[..., :, 3] = 0
    holds("linalg_det", a)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [0, 1, 2, 5])
def test_matrices_of_a_size_that_comes_at_run_time(dtype: Any, size: int) -> None:
    for opset, batch in zip((11, 13, 18), BATCHES, strict=True):
        a, b = matrices(*batch, size, size, dtype=dtype), matrices(*batch, size, 3, dtype=dtype)
        a = (a / 4 + np.roll(np.eye(size), 1, 0)).astype(dtype)  # wants pivots
        shared: dict[str, Any] = {"opset": opset, "free": True, "tolerance": 20.0}
        for operator in ("inverse", "linalg_inv", "linalg_det", "logdet"):
            holds(operator, a, **shared)
        holds("linalg_slogdet", a, outputs=2, **shared)
        holds("linalg_solve", a, b, True, **shared)
        holds("linalg_solve", a, b.swapaxes(-1, -2).copy(), False, **shared)
        for n in (-2, 0, 3):
            holds("linalg_matrix_power", a, n, **shared)
        if size:
            holds("matrix_exp", a, **shared)
        whole = (a @ a.swapaxes(-1, -2) + np.eye(size)).astype(dtype)
        holds("linalg_pinv", whole, 1e-15, True, **shared)
        for upper in (False, True):
            holds("linalg_cholesky", whole, upper, **shared)
            holds("cholesky_solve", b, whole, upper, **shared)
            holds("cholesky_inverse", whole, upper, **shared)
            holds("linalg_solve_triangular", whole, b, upper, True, upper, **shared)
            flags = [upper, not upper, True]
            holds("triangular_solve", b, whole, *flags, outputs=2, compared=(0,), **shared)


@pytest.mark.parametrize("size", [4, 33])
def test_factors_that_are_given(size: int) -> None:
    a, b = matrices(2, size, size) / size, matrices(2, size, 3)
    factors = (a + 2 * np.eye(size)).astype(np.float32)
    pivots = np.array([range(1, size + 1), range(1, size + 1)], np.int32)
    pivots[0, [0, 2]], pivots[1, 1] = (3, 4), size
    for free in (False, True):
        shared: dict[str, Any] = {"opset": 11, "free": free, "tolerance": 20.0}
        holds("lu_solve", b, factors, pivots, **shared)
        for adjoint in (False, True):
            holds("linalg_lu_solve", factors, pivots, b, True, adjoint, **shared)
            wide = b.swapaxes(-1, -2).copy()
            holds("linalg_lu_solve", factors, pivots, wide, False, adjoint, **shared)


@pytest.mark.parametrize("size", [1, 3, 34])
def test_what_lapack_says_of_its_success(size: int) -> None:
    for opset, batch in zip((11, 13, 18), BATCHES, strict=True):
        for free in (False, True):
            shared: dict[str, Any] = {"outputs": 2, "opset": opset, "free": free, "tolerance": 20.0}
            a = positive(*batch, size, size) / size
            b = matrices(*batch, size, 2)
            holds("linalg_inv_ex", a, False, **shared)
            holds("linalg_cholesky_ex", a, True, False, **shared)
            if not free:
                holds("linalg_solve_ex", a, b, True, False, **shared)
    refuses(
        "linalg_solve_ex", positive(2, 2), matrices(3, 2, 1), True, False,
        because="may have other batches", outputs=2,
    )  # fmt: skip


@pytest.mark.skipif(not HAS_TORCH, reason="needs PyTorch")
def test_what_lapack_says_of_its_failure() -> None:
    a = np.stack([np.diag([2.0, 1, 3]), np.diag([2.0, 0, 0]), np.diag([1.0, 4, -2])])
    a = (a + np.triu(np.ones((3, 3)), 1)).astype(np.float32)
    for operator, rest in (("linalg_inv_ex", [False]), ("linalg_cholesky_ex", [False, False])):
        _, info = lowered(*model_of(operator, [a, *rest], outputs=2))
        np.testing.assert_array_equal(info, by_torch(operator, [a, *rest], "")[1])
        assert info.any()


def test_single_precision_in_turns_before_opset_11() -> None:
    holds("linalg_inv", positive(2, 40, 40) / 40 + np.eye(40, dtype=np.float32), opset=9)
    refuses("linalg_inv", np.eye(40), because="`ArgMax` in double precision", opset=9)


def test_what_is_refused() -> None:
    refuses("linalg_inv", matrices(257, 257), because="257 rows or columns; up to 256 are taken")
    large = matrices(257, 3)
    refuses("linalg_qr", large, because="257 rows or columns; up to 256 are", outputs=2)
    refuses("linalg_svdvals", large, because="257 rows or columns; up to 128 are")
    refuses("linalg_inv", matrices(2, 3), because="2 x 3 and not square")
    refuses("svd", matrices(3, 3), True, True, because="their signs are", outputs=3)
    refuses("linalg_eigh", matrices(3, 3), "L", because="their signs are", outputs=2)
    refuses("linalg_matrix_norm", matrices(3, 3), 3, because="none that singular values say")
    refuses("linalg_qr", matrices(3, 3), "r", because="the other factor is read", outputs=2)
    model, _ = model_of("linalg_qr", [matrices(3, 3)], outputs=2)
    result = surgeon.apply(model, "aten-linalg", verify=False, every_miss=True)
    assert any("--allow contract" in str(miss.reason) for miss in result.report.misses)


def test_the_check_of_a_rewrite_sees_what_its_turns_read() -> None:
    solved = model_of("triangular_solve", [matrices(40, 2), positive(40, 40)], outputs=2)[0]
    for model in (solved, model_of("linalg_svdvals", [matrices(4, 4)])[0]):
        result = surgeon.apply(model, "aten-linalg", verify=True)
        assert not result.report.misses
        assert [n.op_type for n in result.model.to_proto().graph.node].count("Scan") == 1


def test_a_pivot_that_is_not_there_is_compared_with_zero() -> None:
    """Runtimes hold a Cast to booleans as the number, and then what Not makes of it is wrong."""
    model, feeds = model_of("inverse", [positive(2, 3, 3)], opset=13)
    saved = surgeon.apply(model, "aten-linalg", verify=False, allow=["contract"]).model.to_proto()
    assert "Not" not in [node.op_type for node in saved.graph.node]
    (found,) = Session(saved).run(feeds).values()
    (given,) = feeds.values()
    np.testing.assert_allclose(found, np.linalg.inv(given), rtol=1e-3, atol=1e-4)
