"""Operators that few models leave behind: lowered, witnessed, and PyTorch's own."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from aten_further_calls import CALLS, FACTORS, INTS, F, R, X
from aten_node import Called, agrees, each, stays

import surgeon
from surgeon.runtime import Session

pytestmark = pytest.mark.slow  # `make check` has the recipes' cases instead


@pytest.mark.parametrize(("operator", "arguments", "options", "opset", "dynamic"), each(CALLS))
def test_lowered_as_the_witness(
    operator: str, arguments: list[Any], options: dict[str, Any], opset: int, dynamic: bool
) -> None:
    agrees(operator, arguments, options, opset, dynamic=dynamic)


REFUSED: list[Called] = [
    ("cov", [X[0] > 0, 1, None, None], {"because": "no covariance of booleans"}),
    ("nanmedian", [X > 0], {"because": "no median of booleans"}),
    ("clamp", [X > 0, X > 0, X > 1], {"because": "clamps no booleans"}),
    ("l1_loss", [INTS, INTS, 1], {"because": "no mean of integers"}),
    ("l1_loss", [X > 0, X > 0, 0], {"because": "subtracts no booleans"}),
    ("margin_ranking_loss", [X > 0, X > 0, X, 0.0, 0], {"because": "subtracts no booleans"}),
    ("soft_margin_loss", [INTS, INTS, 0], {"because": "no such loss of integers, or an integer"}),
    ("linalg_matrix_norm", [X, 3, [-2, -1], False, None], {"because": "made of singular values"}),
    ("nuclear_norm", [X[0].astype(np.float16)], {"because": "single and double precision alone"}),
    ("linalg_ldl_factor", [FACTORS, False], {"because": "LAPACK's packing"}),
    ("polygamma", [-1, X], {"because": "no derivative -1 of digamma"}),
    ("special_gammaincc", [X, X], {"because": "it is approximate"}),
    ("as_strided_scatter", [X, np.ones((2, 2), F), [2, 2], [0, 1], 0], {"because": "overlap"}),
    ("quantile.scalar", [X.astype(np.float16), 0.5, 0, False, "linear"], {"because": "single"}),
    ("trapezoid.dx", [X > 0, 1, 0], {"because": "no integral of booleans"}),
    ("linalg_vecdot", [INTS, INTS, 0], {"because": "no such product of integers"}),
    ("renorm", [X[0, 0], 2.0, 0, 1.0], {"because": "of an input of rank 1"}),
]


@pytest.mark.parametrize(
    ("operator", "arguments", "options"),
    REFUSED,
    ids=[f"{i}-{r[0]}" for i, r in enumerate(REFUSED)],
)
def test_refused_with_the_reason(
    operator: str, arguments: list[Any], options: dict[str, Any]
) -> None:
    stays(operator, arguments, [X], options["because"])


@pytest.mark.parametrize("down", [False, True])
def test_what_is_no_number_stands_last_where_places_are_counted(down: bool) -> None:
    x = np.round(R.normal(size=(3, 6, 2)), 1).astype(F)
    x[0, 2], x[1, :3, 0], x[2, 4], x[2, 1] = np.nan, np.nan, np.inf, -np.inf
    agrees("sort.stable", [x, True, 1, down], {}, 9, dynamic=True)


@pytest.mark.parametrize("taps", [1, 2, 4])
@pytest.mark.parametrize("opset", [9, 13, 18])
def test_filters_with_feedback(taps: int, opset: int) -> None:
    draw = np.random.default_rng(taps)
    a, b = draw.uniform(-0.3, 0.3, (2, 4, taps)).astype(F)
    a[:, 0] = 1.5
    x = draw.normal(size=(2, 4, 30)).astype(F)
    signal = onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["n", 4, "t"])
    found = onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, ["n", 4, "t"])
    node = onnx.helper.make_node("_lfilter", ["x", "a", "b"], ["y"], domain="torchaudio")
    given = [onnx.numpy_helper.from_array(v, n) for n, v in (("a", a), ("b", b))]
    graph = onnx.helper.make_graph([node], "g", [signal], [found], given)
    opsets = [onnx.helper.make_opsetid(n, v) for n, v in (("", opset), ("torchaudio", 1))]
    model = onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8)
    result = surgeon.apply(model, "aten", require="equivalent")
    (y,) = Session(result.model.to_proto()).run({"x": x}).values()
    wanted = np.zeros_like(x, np.float64)
    for at in range(30):
        for past in range(min(at + 1, taps)):
            wanted[..., at] += b[:, past] * x[..., at - past] - (
                a[:, past] * wanted[..., at - past] if past else 0
            )
        wanted[..., at] /= a[:, 0]
    np.testing.assert_allclose(y, wanted, atol=1e-5)
