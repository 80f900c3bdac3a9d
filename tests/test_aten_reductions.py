"""Lowered reductions: sums, norms, moments, running results, and what stands at a place."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from aten_call import HAS_TORCH, OPSETS, call, check, check_all, defined
from aten_operands import BOOLS, BYTES, EDGED, INF, INTS, ODD, X, Y, floats

pytestmark = pytest.mark.slow  # `make check` has the recipes' cases instead


def _axes(operator: str) -> list[tuple[Any, ...]]:
    """Ways to say which axes are reduced, and whether they stay."""
    several = [(d, k) for d in ([1], [0, -1], [-2]) for k in (False, True)]
    single = [(d, k) for d in (0, 1, -1) for k in (False, True)]
    if operator in ("std", "var"):
        return [(), *((d, u, k) for d, k in several for u in (True, False))]
    if operator == "count_nonzero":
        return [(), *((d,) for d, _ in several[::2])]
    if operator in ("argmax", "argmin"):
        return [(None,), (None, True), *single]
    if operator in ("sum", "mean"):
        return [(), *several]
    if operator in ("amax", "amin", "logsumexp"):
        return several
    return [(), *single, *(several if operator in ("any", "all") else ())]


@pytest.mark.skipif(not HAS_TORCH, reason="PyTorch says what is defined")
@pytest.mark.parametrize(
    "operator",
    """sum prod any all mean max min amax amin std var argmax argmin median count_nonzero
    logsumexp""".split(),
)
def test_reductions(operator: str) -> None:
    calls = []
    inputs = (X, ODD, EDGED, INTS, BOOLS, BYTES, X.astype("f8"), X.astype("f2"))
    for x in inputs:
        if x is EDGED and operator.startswith("arg"):
            continue  # infinity beside NaN: the first of both
        for position, axes in enumerate(_axes(operator)):
            if position % 3 and x is not X and x is not EDGED:
                continue
            outputs = defined(operator, x, *axes)
            if outputs:
                options: dict[str, Any] = {"outputs": outputs, "tolerance": 1e-4}
                if x.dtype == np.float16:
                    options["tolerance"] = 1e-2
                if operator == "median":
                    options["compared"] = 1
                calls.append(call(operator, x, *axes, **options))
    check_all(calls)


def test_sums_over_dynamic_axes_and_of_nothing() -> None:
    for opset in OPSETS:
        check("sum", X, [0, -1], False, None, opset=opset, dynamic=True)
        check("cumsum", X, 1, None, opset=opset, dynamic=True)
        check("std", X, [1], True, False, opset=opset, dynamic=True, overload="dim")
        check("max", X, -1, True, outputs=2, opset=opset, dynamic=True, overload="dim")
    empty = np.zeros((2, 0, 3), np.float32)
    check_all(
        [
            call("sum", empty, [1], False, None),
            call("any", empty, 1, False),
            call("all", empty, 1, False),
            call("sum", np.array(3.0, np.float32), None),
            call("max", np.array(3.0, np.float32), 0, False, outputs=2, overload="dim"),
            call("sum", X, [], True, None, overload="dim_IntList"),
            call("sum", X, None, False, None, overload="dim_IntList"),
            *(
                call("sum", INTS, [1], False, d, overload="dim_IntList")
                for d in (np.float64, np.float32, np.int32)
            ),
        ]
    )


def test_norms_and_moments() -> None:
    norms = [
        (2,),
        (1,),
        (2.0, [1], True),
        (INF, [0], False),
        (0, [1], False),
        (3, [2], False),
        (1, [0, 1], True),
    ]
    check_all([call("norm", x, *a, tolerance=1e-4) for a in norms for x in (X, ODD)])
    check_all([call("linalg_vector_norm", X, p, [1], True, None) for p in (2, 1, INF, 3, 0)])
    check_all([call("dist", X, floats("f4", 4, seed=3), p, tolerance=1e-4) for p in (2, 1, INF)])
    check_all(
        [
            *(call(n, X, True, outputs=2) for n in ("std_mean", "var_mean")),
            *(call(n, X, [1], False, True, outputs=2) for n in ("std_mean", "var_mean")),
            call("std", X, [1], 0, True, overload="correction"),
            call("var_mean", X, [1], 2, False, overload="correction", outputs=2),
            call("std", X, [1], 2, False, torch=False),  # without the overload 2 is no truth
            call("var_mean", X, [1], 2, True, outputs=2, torch=False),
            call("aminmax", EDGED, outputs=2),
            call("cosine_similarity", X, floats("f4", 3, 4, seed=3), -1, 1e-8),
            call("cosine_similarity", X, Y, 1, 1e-8),
            call("pairwise_distance", X, Y, 2.0, 1e-6, False),
        ]
    )


@pytest.mark.parametrize("operator", "cumsum cumprod cummax cummin logcumsumexp".split())
def test_running_results(operator: str) -> None:
    two = operator in ("cummax", "cummin")
    rest = (None,) if operator in ("cumsum", "cumprod") else ()
    inputs = [X, X.astype("f8"), *([] if operator == "logcumsumexp" else [INTS, BOOLS])]
    calls = [
        call(operator, x, dim, *rest, outputs=1 + two, tolerance=1e-4)
        for x in inputs
        for dim in (0, 1, -1)
    ]
    if operator != "cumsum":
        calls.append(call(operator, EDGED, 1, *rest, outputs=1 + two, tolerance=1e-4))
    check_all(calls)


def _behind(first: list[float], kind: str, value: float = 1e4, count: int = 150) -> Any:
    """A row that begins so, and whose products grow beyond what its dtype holds."""
    return np.asarray([first + [value] * count, [1.0] * (len(first) + count)], kind)


@pytest.mark.parametrize("opset", [9, 13])
@pytest.mark.parametrize("dynamic", [False, True])
def test_running_products_with_a_zero_before_an_infinite_block(opset: int, dynamic: bool) -> None:
    """They are 0 from there on, but where an element is infinite or no number."""
    rows = [
        _behind([0.0], "f4"),
        _behind([0.0, np.inf], "f4"),
        _behind([2.0, np.nan, 0.0], "f4"),
        _behind([2.0, 0.0, np.nan, -0.0], "f4"),
        _behind([1e30, 1e30, 0.0], "f4"),  # which PyTorch multiplies in double precision
        _behind([0.0], "f8"),
        _behind([1e200, 1e200, 0.0], "f8"),
        _behind([0.0], "f2", 300.0),
        _behind([0.0, 0.5], "f2"),
    ]
    for x in rows:
        check("cumprod", x, 1, None, opset=opset, dynamic=dynamic, torch=True)
        check("cumprod", np.ascontiguousarray(x.T), 0, None, opset=opset, dynamic=dynamic)


def test_kth_values() -> None:
    check_all(
        [
            call("kthvalue", x, k, 1, k == 2, outputs=2, compared=1)
            for k in (1, 2, 3)
            for x in (X, EDGED, INTS, BYTES)
        ]
    )
    check("kthvalue", X, 2, -1, False, outputs=2)
    check("median", X, -1, False, outputs=2, overload="dim")
