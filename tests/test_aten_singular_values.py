"""Singular values, ranks and residuals, also of matrices that are hard."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from aten_matrices import OPSETS, holds, matrices

pytestmark = pytest.mark.slow  # `make check` has the recipes' cases instead

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
