"""Operators that exporters seldom leave, most of them PyTorch's own building blocks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from aten_node import Calls, Written, agrees, each, expected, lowered

pytestmark = pytest.mark.slow  # `make check` has the recipes' cases instead

R = np.random.default_rng(0)
F = np.float32
X = R.normal(size=(3, 4, 5)).astype(F)
GAPS = X.copy()
GAPS[0, 1, 2] = GAPS[2, :3, 0] = np.nan
INTS = R.integers(0, 4, (3, 7))
CALLS = Calls()
add = CALLS.add

# tensors as a whole
NEAR = X + F(1e-6)
ONE_OFF = X.copy()
ONE_OFF[2, 3, 4] += 1
for first, second in ((X, X), (X, ONE_OFF), (GAPS, GAPS), (X, X[:2]), (X, X.reshape(4, 3, 5))):
    add("equal", first, second)
    add("is_same_size", first, second)
add("equal", X, X[0])
add("equal", INTS, INTS)
add("equal", INTS.astype(np.int8), INTS.astype(np.int8) + np.int8(1))
add("equal", X > 0, X > 0)
add("equal", X > 0, X > 1)
add("equal", X[:0], X[:0])
add("equal", np.asarray(2.0, F), np.asarray(2.0, F))
for first, second in ((X, NEAR), (X, ONE_OFF), (GAPS, GAPS), (X, X[0])):
    add("allclose", first, second, 1e-5, 1e-6, False)
add("allclose", GAPS, GAPS, 1e-5, 1e-6, True)
add("allclose", INTS, INTS + 1, 1.0, 0.5, False)
for kind in ("is_floating_point", "is_signed", "is_complex"):
    for array in (X, X.astype(np.float16), INTS, INTS.astype(np.uint8), INTS > 0):
        add(kind, array)
# sums and norms
for name in ("sum_to_size", "_grad_sum_to_size"):
    for size in ([3, 4, 5], [4, 1], [3, 1, 5], [1, 1, 1], [5], [1]):
        add(name, X, size, still=True)
    add(name, INTS, [7], still=True)
    add(name, INTS.astype(np.int32), [3, 1], still=True)
    add(name, INTS.astype(np.int32), [3, 7], still=True)
    add(name, X, [1, 1])
add("_grad_sum_to_size", X, None)
for dim in (-1, 0, 1, 2, -2):
    add("norm_except_dim", X, 2, dim)
    add("norm_except_dim", X, 3, dim)
add("norm_except_dim", X[0, 0], 2, 0)
for order in (0.0, 1.0, 2.0, 3.0, 0.5):
    add("linalg__powsum", X, order, [1], True, None)
    add("linalg__powsum", X, order, [0, -1], False, None)
    add("linalg__powsum", X, order, None, False, None)
add("linalg__powsum", X, 3.0, [1], False, 7)
# fused
add("_add_relu.Tensor", X, X[0], 2)
add("_add_relu.Tensor", X, X[:, :1], -1.5)
add("_add_relu.Scalar", X, 0.5, 2)
add("_add_relu.Tensor", INTS - 2, INTS, -1)
for alpha, beta in ((1, 1), (2.0, 0.5), (0.3, 0)):
    add(
        "_addmm_activation",
        X[0, 0],
        INTS[:2].astype(F),
        R.normal(size=(7, 5)).astype(F),
        beta,
        alpha,
    )
MASK = R.random(X.shape) > 0.5
MASK[0, 0], MASK[:, 1, 2] = True, True
add("_masked_softmax", X, MASK, 1, 2)
add("_masked_softmax", X, MASK, None, 2)
add("_masked_softmax", X, MASK, -1, None)
SCORES, SQUARE = R.normal(size=(3, 2, 4, 4)).astype(F), MASK[:, :4, :4]
add("_masked_softmax", SCORES, SQUARE[0], 3, 0)
add("_masked_softmax", SCORES, SQUARE[0], 1, 0)
add("_masked_softmax", SCORES, SQUARE[0, :3], 3, 1)
add("_masked_softmax", SCORES, SQUARE[0, :3], 2, 1)
add("_trilinear", X[0], X[1], X[2, :, :4], [0], [1], [2], [1], 0)
add(
    "_trilinear",
    X[0],
    R.normal(size=(2, 5, 3)).astype(F),
    X[:2, 0, :3],
    [0, 3],
    [1],
    [1, 2],
    [2],
    1,
)
add("_trilinear", X, X, X, [], [], [], [0, 2], 1)
add("_compute_linear_combination", X, R.normal(size=(2, 3)).astype(F))
add("_compute_linear_combination", X[0, 0], R.normal(size=(2, 5)).astype(F))
LOGS = R.normal(size=(9, 3, 5))
LOGS = (LOGS - np.logaddexp.reduce(LOGS, -1)[..., None]).astype(F)
LABELS = R.integers(1, 5, (3, 4))
CTC = {"least": 11, "still": True, "outputs": 1}
for blocked in (False, True):
    sizes = [np.array([9, 8, 7]), np.array([4, 2, 0])]
    add("_ctc_loss.Tensor", LOGS, LABELS, *sizes, 0, blocked, **CTC)
    add("_ctc_loss", LOGS, LABELS, [9, 8, 2], [3, 2, 4], 0, blocked, **CTC)
# lengths
PARTS = [X[0, :3], X[1, :1], X[2]]
for front in (True, False):
    for side in ("left", "right"):
        add("pad_sequence", PARTS, front, -0.5, side)
add("pad_sequence", [INTS[0, :2], INTS[1], INTS[2, :5]], True, 9.0, "right")
add("pad_sequence", [X[0]], False, 0.0, "right")
add("_chunk_cat", [X, X[:, :3, 0], X[:, :2]], 1, 2, still=True)
add("_chunk_cat", [X[:, 0], X[:2]], 0, 4, still=True)
add("_chunk_cat", [X, X[..., :2]], -1, 3, still=True)
add("flatten_dense_tensors", [X, X[0], X[0, 0, :1]])
add(
    "unflatten_dense_tensors",
    R.normal(size=37).astype(F),
    [X[:1], X[0, 0], X[0, :2, :3]],
    listed=True,
)
for size in (3, 12, 80):
    add("nonzero_static", INTS, size, -1)
    add("nonzero_static", X > 0.5, size, 7)
add("_dim_arange", X, 1)
add("_dim_arange", X, -1)
for mode in (0, 1, 2, 3):
    add("_pad_enum", X, [2, 1], mode, None, still=True)
    add("_pad_enum", X, [2, 1, 0, 2], mode, 1.5 if mode == 3 else None, still=True)
RUNS = np.repeat(R.integers(0, 2, (4, 3)), [1, 2, 1, 3], 0)
for name in ("unique_dim_consecutive", "unique_consecutive"):
    for dim in (0, 1):
        order = [RUNS, dim, True, True] if "dim" in name else [RUNS, True, True, dim]
        add(name, *order, least=11)
        order = [RUNS.astype(F)[:, None], 2 * dim, False, False]
        order = order if "dim" in name else [order[0], *order[2:], order[1]]
        add(name, *order, least=11)
# places that need not be there
FAR = np.array([[0, 9, 2], [-1, -7, 1]])
HERE = np.array([[True, False, True], [True, False, True]])
add("_unsafe_masked_index", X, HERE[..., None, None], [FAR], 7.0, least=11)
add("_unsafe_masked_index", X, HERE[..., None], [FAR, FAR, None], 0.5, least=11)
add("_unsafe_masked_index", X, HERE[..., None], [FAR, FAR], 0.5, least=11)
add("_unsafe_masked_index", INTS, HERE, [FAR, FAR], 9, least=11)
PUT = R.normal(size=(2, 3, 5)).astype(F)
name = "_unsafe_masked_index_put_accumulate"
add(name, X, HERE[..., None], [FAR, FAR], PUT, least=16)
add(name, X[:, 0, 0], HERE, [FAR], PUT[..., 0], least=16)
add(name, X, HERE[..., None], [FAR, FAR], PUT, least=11, still=True)
# matrices
add("linalg_tensorsolve", R.normal(size=(2, 3, 6)).astype(F), X[0, :2, :3], None, still=True)
add("linalg_tensorsolve", R.normal(size=(2, 2, 4)).astype(F), X[0, :, 0], [0, 1], still=True)
add("linalg_tensorinv", R.normal(size=(2, 3, 6)).astype(F), 2, still=True)
add("linalg_tensorinv", R.normal(size=(6, 3, 2)).astype("d"), 1, still=True, least=11)
SQUARES = R.normal(size=(2, 4, 4)).astype(F)
add("_linalg_det", SQUARES, still=True, outputs=1)
add("_linalg_slogdet", SQUARES, still=True, outputs=2)
add(
    "_linalg_solve_ex",
    SQUARES,
    R.normal(size=(2, 4, 3)).astype(F),
    True,
    False,
    still=True,
    outputs=1,
)

BYTES = R.integers(-128, 128, (2, 32, 32)).astype(np.int8)
add("_int_mm", BYTES[0], BYTES[1])
# slopes
LISTED: dict[str, Any] = {"listed": True}
for order in (1, 2):
    add("gradient.scalarint", X, None, None, order, **LISTED)
    add("gradient.scalarint", X, 0.5, 1, order, **LISTED)
    add("gradient.scalarint", INTS, None, 1, order, **LISTED)
    add("gradient.scalararray", X, 2.0, [0, 2], order, **LISTED)
    add("gradient.array", X, [-1], order, **LISTED)
    add("gradient.scalarrayint", X, [2, 1, 3], None, order, **LISTED)
    add("gradient.scalarrayarray", X, [2, 5], [2, 1], order, **LISTED)
    for places in ("f", "d", "q"):
        line = np.array([0, 1, 3, 4, 7, 8, 11, 12][: X.shape[1]], places)
        add("gradient.tensorarrayint", X, [line], 1, order, **LISTED)
        add("gradient.tensorarrayint", INTS[:, :4], [line], 1, order, **LISTED)
    add("gradient.tensorarrayint", X.astype("d"), [line], 1, order, **LISTED)
# bins
EVEN = np.round(X * 4) / 4
for density in (False, True):
    for weight in (None, np.abs(X)):
        add("histogram.bin_ct", X, 7, None, weight, density)
        add("histogram.bin_ct", EVEN, 8, [-1, 1], weight, density)
        add("histogram.bins_tensor", EVEN, np.array([-1, -0.5, 0.25, 2], F), weight, density)
add("histogram.bin_ct", X.astype("d"), 10, [-1, 2], None, False)
add("histogram.bin_ct", GAPS, 4, [-1, 1], None, False)
add("histogram.bin_ct", np.ones(3, F), 3, None, None, False)
add("histogram.bin_ct", X, 3, [1, 1], None, False)
POINTS = EVEN.reshape(-1, 3)
for density in (False, True):
    for weight in (None, np.abs(X).reshape(-1)[: len(POINTS)]):
        add("_histogramdd_from_bin_cts", POINTS, [3, 2, 4], None, weight, density, still=True)
        sides = [-1, 1, 0, 2, -2, 1]
        add("_histogramdd_from_bin_cts", POINTS, [3, 2, 4], sides, weight, density, still=True)
# products of groups, and with weights in eight bits
G = np.random.default_rng(5)
EXPERTS = G.normal(size=(3, 8, 16)).astype(F)
EIGHT = G.integers(-127, 128, (5, 8)).astype(np.int8)
ROWS, COLUMNS = G.normal(size=(6, 8)).astype(F), G.normal(size=(16, 32)).astype(F)
for offs in ([2, 2, 6], [0, 0, 6], [6, 6, 6]):
    limits = np.array(offs, np.int32)
    add("_grouped_mm", ROWS, EXPERTS, limits, None, None)
    add("_grouped_mm", EXPERTS, COLUMNS, limits * 5 + 2, None, None)
add("_grouped_mm", COLUMNS, G.normal(size=(32, 8)).astype(F), limits * 5 + 2, None, None)
add("_grouped_mm", EXPERTS.swapaxes(1, 2).copy(), EXPERTS, None, None, None)
add("_grouped_mm", ROWS.astype("f2"), EXPERTS.astype("f2"), limits, None, None, least=11)
add("_weight_int8pack_mm", ROWS, EIGHT, np.abs(G.normal(size=5)).astype(F))
add("_histogramdd_bin_edges", POINTS, [3, 2, 4], None, None, False, still=True, listed=True)
add("_histogramdd_from_bin_cts", GAPS, [2] * GAPS.shape[-1], [-1, 1] * GAPS.shape[-1], still=True)
add("_histogramdd_from_bin_cts", np.ones((3, 2)), [2, 3], None, None, False, still=True)
# exponents
ENDS = [
    0,
    -0.0,
    1,
    -1,
    0.5,
    0.99999994,
    3,
    -1e-45,
    1.1754944e-38,
    3.4e38,
    2.0**100,
    np.inf,
    -np.inf,
]
add(
    "frexp.Tensor",
    np.concatenate([R.normal(size=50) * 2.0 ** R.integers(-140, 127, 50), ENDS]).astype(F),
)
add(
    "frexp.Tensor",
    np.concatenate(
        [R.normal(size=50) * 2.0 ** R.integers(-1060, 1020, 50), ENDS, [5e-324, 1.7e308]]
    ),
)
add("frexp.Tensor", np.array([[1.5, -6e-8], [65504, 0.1]], np.float16))

# Bessel functions of the second kind: at their borders, their pole, and where they are no numbers
BORDERS = [1e-30, 1e-6, 0.999, 1, 1.001, 11.99, 12.01, 19.99, 20.01, 30, 32.1, 60, 0, -1, np.nan]
ALONG = np.concatenate([R.uniform(0, 3, 20), R.uniform(0, 60, 20), BORDERS])
for name in ("bessel_y0", "bessel_y1"):
    add(f"special_{name}", ALONG.astype(F))
    add(f"special_{name}", ALONG)
for n in (0, 1):
    for name in ("modified_bessel_k", "scaled_modified_bessel_k"):
        add(f"special_{name}{n}", ALONG.astype(F))
        add(f"special_{name}{n}", ALONG)
        add(f"special_{name}{n}", np.array([1, 2, 5]))


@pytest.mark.parametrize(("operator", "arguments", "options", "opset", "dynamic"), each(CALLS))
def test_lowered_as_the_witness(
    operator: str, arguments: list[Any], options: dict[str, Any], opset: int, dynamic: bool
) -> None:
    agrees(operator, arguments, options, opset, dynamic=dynamic)


# What PyTorch 2.13 gives where the level of 0 is no whole number.
BETWEEN = [[0.15, -0.25, 0.05, 1.26, -9.0, 30.0], [0.12, -0.13, 0.64, 0.1, -0.53, 0.36]]
OF_CHANNELS = [[0.15, -0.25, 0.05, 0.65, -0.85, 0.65], [0.04, -0.16, 0.64, 0.04, -0.56, 0.44]]
OF_A_TENSOR = [[0.2, -0.2, 0.0, 0.4, -1.1, 0.4], [0.1, -0.1, 0.4, 0.1, -0.5, 0.4]]


@pytest.mark.parametrize("opset", [9, 13])
def test_a_level_of_0_between_two_levels(opset: int) -> None:
    """Of channels it is rounded with what was multiplied; of a tensor its fraction is cut off."""
    x = np.array(BETWEEN, np.float32)
    steps, zeros = np.array([0.1, 0.2], np.float32), np.array([0.5, -3.2], np.float32)
    step, zero = np.asarray(0.1, np.float32), np.asarray(3.7, np.float32)
    calls = [
        ("fake_quantize_per_channel_affine", [x, steps, zeros, 0, -8, 7], OF_CHANNELS),
        ("fake_quantize_per_tensor_affine.tensor_qparams", [x, step, zero, -8, 7], OF_A_TENSOR),
    ]
    for operator, arguments, wanted in calls:
        (seen,) = expected(operator, arguments)
        written = Written(operator, arguments, "A+", opset, dynamic=False)
        (made,) = lowered(written, [seen], recipe="aten")
        np.testing.assert_allclose(made, wanted, atol=1e-6)
        np.testing.assert_allclose(seen, wanted, atol=1e-6)
