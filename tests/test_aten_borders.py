"""Lowered nodes and witnesses where formulas part: ends of ranges, infinities, what is in place.

What is written here was computed by PyTorch 2.13 on a CPU.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from aten_node import Left, Written, lowered

from surgeon.reference.executor import Reference

INF, NAN = np.inf, np.nan


def floats(*values: float) -> Any:
    return np.array(values, np.float32)


def ints(*values: int) -> Any:
    return np.array(values, np.int32)


TABLE = np.array([[1, 0, 2], [0, 0, 0]], np.int32)
LARGE = floats(1e10, 1, -1e10, INF)
OTHER = floats(1, 1e10, 2, 1)
ROW = np.arange(5, dtype=np.float32)
HALVES = np.array([1.5, 2.5], np.float16)
LOUD = np.array([100, 60000], np.float16)
BELOW = floats(-INF, 1, 2, 3)

CALLS: list[tuple[str, list[Any], Any]] = [
    ("any.dims", [TABLE, [], False], TABLE != 0),
    ("all.dims", [TABLE, [], True], TABLE != 0),
    ("any.dims", [TABLE.astype(np.uint8), [], False], (TABLE != 0).astype(np.uint8)),
    ("any.dims", [TABLE, None, False], np.array(True)),
    ("all.dims", [TABLE, [1], False], np.array([False, False])),
    (
        "isclose",
        [ints(16777216, 100000000, 1000), ints(16777217, 100001001, 1001), 1e-5, 1e-8, False],
        np.array([True, True, False]),
    ),
    (
        "pow.Tensor_Scalar",
        [floats(-INF, -4, -0.0, 0, 4, INF), -0.5],
        floats(NAN, NAN, -INF, INF, 0.5, 0),
    ),
    ("lerp.Scalar", [LARGE, OTHER, 1.0], floats(1, 1e10, 2, NAN)),
    ("lerp.Scalar", [LARGE, OTHER, 0.25], floats(7.5e9, 2.5e9, -7.5e9, NAN)),
    ("lerp.Scalar", [LARGE, OTHER, 0.75], floats(2.5e9, 7.5e9, -2.5e9, INF)),
    ("lerp.Tensor", [LARGE, OTHER, floats(1, 0.25, 1, 0.75)], floats(1, 2.5e9, 2, INF)),
    (
        "floor_divide",
        [floats(8388609, 16777215, -8388609, 7.5), floats(1, 1, 1, 2)],
        floats(8388609, 16777215, -8388609, 3),
    ),
    ("slice_scatter", [ROW, floats(), 0, 3, 1, 1], ROW),
    ("slice_scatter", [ROW, floats(), 0, -2, -4, 1], ROW),
    ("slice_scatter", [ROW, floats(7, 8), 0, -4, -2, 1], floats(0, 7, 8, 3, 4)),
    ("gather", [ROW, 0, np.array(2), False], np.array(2, np.float32)),
    ("topk", [np.array(3, np.float32), 0, -1, True, True], np.array(3, np.float32)),
    ("quantile", [BELOW, np.array(0.3, np.float32), 0, False], np.array(-INF, np.float32)),
    ("quantile", [BELOW, np.array(0.5, np.float32), 0, False], np.array(1.5, np.float32)),
    ("quantile", [BELOW, np.array(0.0, np.float32), 0, False], np.array(NAN, np.float32)),
    ("full", [[2], -1, 0], np.array([255, 255], np.uint8)),
    ("histc", [floats(0.3, 0.6, 0.9), 10, 0, 1], floats(0, 0, 0, 1, 0, 0, 1, 0, 0, 1)),
    ("round.decimals", [floats(-2.675, 1.005, 0.125), 2], floats(-2.68, 1, 0.12)),
    ("angle", [floats(-0.0, 0, -1, 1, NAN)], floats(0, 0, np.pi, 0, NAN)),
    ("add_.Tensor", [HALVES, floats(1.25, 3), 1], np.array([2.75, 5.5], np.float16)),
    ("lt_.Scalar", [floats(1, 3), 2.0], floats(1, 0)),
    ("__iand__.Tensor", [ints(5, 6), np.array([4, 3])], ints(4, 2)),
    ("combinations", [ROW, 0, False], floats()),
    ("softplus", [LOUD, 1, 20], LOUD),
    ("log_sigmoid", [-LOUD], -LOUD),
    ("logsumexp", [LOUD, [0], False], np.array(60000, np.float16)),
    ("outer", [floats(1, 2), ints(3)], floats(3, 6)[:, None]),
    ("kron", [ints(2), floats(1, 3)], floats(2, 6)),
    ("diff", [floats(1, 3), 1, 0, np.array([0]), None], floats(1, 2)),
    (
        "nanquantile",
        [floats(1, INF, 3), floats(0.5, 1), 0, False, "higher"],
        floats(3, INF),
    ),
    ("view.dtype", [np.array(3, np.float32), 6], np.array(3, np.float32)),
    ("movedim.int", [np.array(3, np.float32), 0, -1], np.array(3, np.float32)),
    ("msort", [np.array(3, np.float32)], np.array(3, np.float32)),
]


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize(("operator", "arguments", "wanted"), CALLS, ids=lambda v: str(v)[:60])
def test_what_pytorch_gives(
    operator: str, arguments: list[Any], wanted: Any, *, dynamic: bool
) -> None:
    written, again = (Written(operator, arguments, "A+", 18, dynamic=dynamic) for _ in range(2))
    wide = [wanted, np.zeros(wanted.shape, np.int64)] if operator == "topk" else [wanted]
    witnessed = next(iter(Reference(written.model(wide, listed=False)).run(written.feeds).values()))
    found = lowered(again, wide, recipe="aten")[0]
    for made in (found, witnessed):
        assert made.dtype == wanted.dtype
        np.testing.assert_allclose(made, wanted, rtol=1e-6)
        assert made.shape == wanted.shape


def test_a_mask_of_rank_0_stays() -> None:
    written = Written(
        "index_put", [ROW, [np.array(True)], floats(7), False], "A+", 18, dynamic=False
    )
    with pytest.raises(Left, match="a mask of rank 0 adds an axis"):
        lowered(written, [ROW], recipe="aten")
