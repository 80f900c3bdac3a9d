"""Linear algebra: the lowering in onnxruntime, the witness and PyTorch say the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from test_aten_math import HAS_TORCH, by_torch, model_of

import surgeon
from surgeon.reference import Reference
from surgeon.runtime import Session

pytestmark = pytest.mark.slow  # `make check` has the recipes' cases instead

R = np.random.default_rng(8)
OPSETS = (11, 13, 18)
BATCHES: tuple[tuple[int, ...], ...] = ((), (3,), (2, 3))


def matrices(*shape: int, dtype: Any = np.float32) -> Any:
    return R.normal(size=shape).astype(dtype)


def positive(*shape: int, dtype: Any = np.float32) -> Any:
    a = matrices(*shape, dtype=dtype)
    return (a @ a.swapaxes(-1, -2) + np.eye(shape[-1])).astype(dtype)


def lowered(model: Any, feeds: dict[str, Any]) -> list[Any]:
    result = surgeon.apply(model, "aten-linalg", verify=False, allow=["contract"])
    saved = result.model.to_proto()
    left = [n.op_type for n in saved.graph.node if n.domain]
    assert not left, f"{left}: {[m.reason for m in result.report.misses]}"
    return list(Session(saved).run(feeds).values())


def holds(
    operator: str,
    *arguments: Any,
    outputs: int = 1,
    overload: str = "",
    opset: int = 13,
    dynamic: bool = False,
    free: bool = False,
    tolerance: float = 1.0,
    compared: tuple[int, ...] | None = None,
) -> None:
    """All agree within some roundings; the condition of random matrices costs digits.

    With `dynamic` the batch is of any size, with `free` the matrices are too.
    """
    model, feeds = model_of(operator, arguments, outputs=outputs, overload=overload, opset=opset)
    if dynamic or free:
        for value in model.graph.input:
            for axis in range(len(value.type.tensor_type.shape.dim) - (0 if free else 2)):
                value.type.tensor_type.shape.dim[axis].dim_param = f"{value.name}_{axis}"
    found = lowered(model, feeds)
    tellers = [("witness", list(Reference(model).run(feeds).values()))]
    if HAS_TORCH and operator not in ("solve",):
        tellers.append(("torch", by_torch(operator, arguments, overload)))
    for teller, wanted in tellers:
        for index in compared or range(outputs):
            got, want = found[index], wanted[index]
            said = f"{operator} {[getattr(a, 'shape', a) for a in arguments]} opset {opset}"
            assert got.dtype == want.dtype, f"{said}: {got.dtype}, {teller} {want.dtype}"
            assert got.shape == want.shape, f"{said}: {got.shape}, {teller} {want.shape}"
            limit = tolerance * {4: 2e-4, 8: 1e-10}[got.dtype.itemsize]
            largest = np.abs(want[np.isfinite(want)]).max(initial=1e-3)
            np.testing.assert_allclose(
                got, want, limit, limit * largest, err_msg=f"{said} {teller}"
            )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("batch", BATCHES, ids=str)
@pytest.mark.parametrize("size", [1, 2, 5])
def test_elimination(dtype: Any, batch: tuple[int, ...], size: int) -> None:
    a = matrices(*batch, size, size, dtype=dtype)
    if size > 1:
        a[..., 0, 0] = 0  # wants a pivot
    b = matrices(*batch, size, 3, dtype=dtype)
    for opset in OPSETS:
        for dynamic in (False, True):
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
    for index in range(12):
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


def refuses(
    operator: str, *arguments: Any, because: str, outputs: int = 1, opset: int = 13
) -> None:
    model, _ = model_of(operator, arguments, outputs=outputs, opset=opset)
    result = surgeon.apply(model, "aten-linalg", verify=False, every_miss=True, allow=["contract"])
    reasons = [str(miss.reason) for miss in result.report.misses]
    assert any(because in reason for reason in reasons), reasons


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


SHAPES = [
    (1, 1),
    (2, 2),
    (4, 4),
    (5, 3),
    (3, 5),
    (2, 4, 3),
    (2, 3, 7, 7),
    (0, 3),
    (3, 0),
    (2, 0, 0),
]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_singular_values(shape: tuple[int, ...], dtype: Any) -> None:
    for opset, free in ((9, False), (11, True), (13, False), (18, True)):
        if dtype == np.float64 and opset < 11:
            continue
        a = matrices(*shape, dtype=dtype)
        shared: dict[str, Any] = {"opset": opset, "free": free}
        holds("linalg_svdvals", a, **shared)
        if 0 not in shape:  # PyTorch has no greatest of none
            for order in (2, -2):
                holds("linalg_matrix_norm", a, order, **shared)
        if shape[-1] == shape[-2]:
            for triangle in "LU":
                holds("linalg_eigvalsh", a, triangle, **shared)


@pytest.mark.parametrize("rank", [0, 1, 3, 4])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_ranks_and_pseudo_inverses(rank: int, dtype: Any) -> None:
    for index, (high, wide, batch) in enumerate(((4, 4, ()), (6, 5, (3,)), (5, 9, (2, 1)))):
        a = matrices(*batch, high, rank, dtype=dtype) @ matrices(*batch, rank, wide, dtype=dtype)
        shared: dict[str, Any] = {"free": index == 1, "opset": OPSETS[index], "tolerance": 100.0}
        names = {"overload": "atol_rtol_float", **shared}
        holds("linalg_matrix_rank", a, None, None, False, **names)
        holds("linalg_matrix_rank", a, 1e-3, False, **shared)
        holds("linalg_pinv", a, None, None, False, **names)
        holds("linalg_pinv", a, 1e-3, None, False, **names)
        holds("linalg_pinv", a, None, 1e-3, False, **names)
        per = np.full(batch, 1e-3, dtype)
        holds("linalg_pinv", a, per, None, False, **{**shared, "overload": "atol_rtol_tensor"})
        both = a @ a.swapaxes(-1, -2)
        holds("linalg_pinv", both, 1e-2, True, **shared)
        holds("linalg_matrix_rank", np.triu(both) * 0 + np.tril(both), 1e-2, True, **shared)
        b = matrices(*batch, high, 2, dtype=dtype)
        out = {"outputs": 4, **shared, "compared": (0, 2)}
        if not shared["free"] and high <= wide:
            holds("linalg_lstsq", a, b, None, "gelsd", **{**out, "compared": (0, 1, 2, 3)})


@pytest.mark.parametrize("driver", [None, "gels", "gelsy", "gelsd", "gelss"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_residuals_of_least_squares(driver: str | None, dtype: Any) -> None:
    """Squares of each column; none of a square matrix, of a deficient one, or by `gelsy`."""
    a, b = matrices(5, 3, dtype=dtype), matrices(5, 2, dtype=dtype)
    options: dict[str, Any] = {"outputs": 4, "compared": (0, 1), "tolerance": 100.0}
    calls = [(a, b), (a, b[:, 0]), (a[:3], b[:3])]
    if driver != "gels":
        calls.append((np.ones_like(a), b))
    else:
        calls.append((np.stack([a, a * 2]), np.stack([b, b])))
    for index, (first, second) in enumerate(calls):
        holds("linalg_lstsq", first, second, None, driver, opset=OPSETS[index % 3], **options)


@pytest.mark.parametrize("kind", ["hilbert", "graded", "clustered", "ones", "triangle", "nothing"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_singular_values_of_hard_matrices(kind: str, dtype: Any) -> None:
    size = 21
    place = np.arange(size)
    q = np.linalg.qr(matrices(size, size, dtype=np.float64))[0]
    a = {
        "hilbert": 1 / (place[:, None] + place + 1.0),
        "graded": matrices(size, size) * np.logspace(0, -14, size),
        "clustered": q @ np.diag(np.where(place < 9, 1, 1 + 1e-6 * place)) @ q.T * 1e20,
        "ones": np.ones((size, size)),
        "triangle": np.triu(np.ones((size, size))),
        "nothing": np.zeros((size, size)),
    }[kind].astype(dtype)
    holds("linalg_svdvals", a)
    holds("linalg_eigvalsh", a, "L")
    holds("linalg_cond", a + np.eye(size, dtype=dtype) * a.max(initial=1), tolerance=10.0)


def test_rotations_of_as_many_columns_as_are_taken() -> None:
    holds("linalg_svdvals", matrices(130, 128)[:128], tolerance=2.0)
    holds("linalg_svdvals", matrices(3, 128, dtype=np.float64), free=True)


def test_the_check_of_a_rewrite_sees_what_its_turns_read() -> None:
    solved = model_of("triangular_solve", [matrices(40, 2), positive(40, 40)], outputs=2)[0]
    for model in (solved, model_of("linalg_svdvals", [matrices(4, 4)])[0]):
        result = surgeon.apply(model, "aten-linalg", verify=True)
        assert not result.report.misses
        assert [n.op_type for n in result.model.to_proto().graph.node].count("Scan") == 1


LU_SHAPES = [(1, 1), (4, 4), (5, 3), (3, 5), (1, 4), (4, 1), (2, 5, 3), (2, 3, 4, 6), (36, 34)]


@pytest.mark.parametrize("shape", [*LU_SHAPES, (0, 3), (3, 0), (2, 0, 0)], ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_triangles_in_lapacks_packing(shape: tuple[int, ...], dtype: Any) -> None:
    rng = np.random.default_rng([11, *shape])  # pivots that no rounding decides
    for opset, free in ((9, False), (11, True), (13, False), (18, True)):
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
    for opset, free in ((9, False), (11, True), (13, False), (18, True)):
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
