"""Lowered nodes that are right to the last bit: gathered windows, whole numbers, segments."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from aten_node import Written, agrees, lowered, stays
from shares import some

pytestmark = pytest.mark.slow  # `make check` has the recipes' cases instead

R = np.random.default_rng(21)
OPSETS = (9, 11, 13, 18)


def holds(operator: str, *arguments: Any, least: int = 9, **options: Any) -> None:
    """As the witness and PyTorch, at every opset, at sizes given and at those of run time."""
    for index, opset in enumerate(o for o in OPSETS if o >= least):
        agrees(operator, list(arguments), options, opset, dynamic=False)
        if index % 2 and not options.get("still"):
            agrees(operator, list(arguments), options, opset, dynamic=True)


@pytest.mark.parametrize("spatial", [2, 3])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
def test_fractional_pooling(spatial: int, dtype: Any) -> None:
    """Of halves each step of a place is rounded to one, as PyTorch's are."""
    least = 11 if dtype == np.float64 else 9
    for draw in range(some(4, of=12)):
        plane = [int(n) for n in R.integers(5, 9 if dtype != np.float16 else 29, spatial)]
        kernel = [int(n) for n in R.integers(1, 4, spatial)]
        out = [int(R.integers(1, n - k + 4 - spatial)) for n, k in zip(plane, kernel, strict=True)]
        x = R.integers(-4, 5, (2, 3, *plane)).astype(dtype)  # with ties
        if draw % 3 == 1:
            x[R.random(x.shape) < 0.2] = np.nan
        if draw % 3 == 2:
            x[:, 1] = -np.inf
        samples = R.random((2, 3, spatial)).astype(dtype)
        holds(f"fractional_max_pool{spatial}d", x, kernel, out, samples, least=least)
        if draw < 3:
            one, more = x[0].copy(), samples[:1].copy()
            holds(f"fractional_max_pool{spatial}d", one, kernel, out, more, least=least)


def test_fractional_pooling_that_is_refused() -> None:
    x, samples = np.zeros((1, 2, 4, 4), np.float32), np.zeros((1, 2, 2), np.float32)
    found = [np.zeros((1, 2, 2, 2), np.float32), np.zeros((1, 2, 2, 2), np.int64)]
    for kind, because in ((np.float16, "samples have another"), (np.float32, "do not fit into 4")):
        arguments = [x, [5, 5], [2, 2], samples.astype(kind)]
        stays("fractional_max_pool2d", arguments, found, because)


def whole(dtype: Any, *shape: int) -> Any:
    """Integers, large ones among them: sums wrap in the narrow dtypes."""
    large = R.integers(-(2**60), 2**60, shape) if dtype == np.int64 else R.integers(0, 120, shape)
    return np.where(R.random(shape) < 0.2, large, R.integers(0, 9, shape) - 4).astype(dtype)


@pytest.mark.parametrize("spatial", [1, 2, 3])
def test_averages_of_integers(spatial: int) -> None:
    for draw in range(some(4, of=10)):
        plane = [int(n) for n in R.integers(5, 8, spatial)]
        kernel = [int(n) for n in R.integers(2, 4, spatial)]
        stride = [int(n) for n in R.integers(1, 4, spatial)]
        padding = [int(R.integers(0, k // 2 + 1)) for k in kernel]
        rest = [bool(draw % 2), bool(draw % 3)]
        rest += [[None, 5, -3][draw % 3]] if spatial > 1 and draw % 4 else []
        dynamic = not rest[0] or all(
            p + s <= k for p, s, k in zip(padding, stride, kernel, strict=True)
        )
        x = whole(np.int64, 2, 3, *plane)
        holds(f"avg_pool{spatial}d", x, kernel, stride, padding, *rest, still=not dynamic)
    holds(f"avg_pool{spatial}d", x[0], kernel, [], padding)


@pytest.mark.parametrize("spatial", [2, 3])
@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.uint8, np.int8, np.int16])
def test_maxima_of_integers(spatial: int, dtype: Any) -> None:
    x = whole(dtype, 2, 3, *[7] * spatial)
    x[0, 0] = np.iinfo(dtype).min
    for kernel, stride, padding, dilation, ceil in (
        (3, 2, 1, 1, False), (2, 2, 0, 2, False), (3, 1, 1, 2, True), (3, 2, 1, 1, True),
    ):  # fmt: skip
        rest = [[n] * spatial for n in (kernel, stride, padding, dilation)]
        holds(f"max_pool{spatial}d", x, *rest, ceil)
        holds(f"max_pool{spatial}d_with_indices", x, *rest, ceil)
    holds(f"max_pool{spatial}d", x[0].copy(), [2] * spatial)


@pytest.mark.parametrize("spatial", [1, 2, 3])
@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.uint8, np.int8])
def test_convolutions_of_integers(spatial: int, dtype: Any) -> None:
    for draw in range(some(2, of=8)):
        groups = [1, 2, 4][draw % 3]
        kernel = [int(n) for n in R.integers(1, 4, spatial)]
        stride, dilation = ([int(n) for n in R.integers(1, 3, spatial)] for _ in range(2))
        padding = [int(n) for n in R.integers(0, 2, spatial)]
        x = whole(dtype, 2, 4, *[7] * spatial)
        bias = whole(dtype, 8) if draw % 2 else None
        plain = whole(dtype, 8, 4 // groups, *kernel)
        zeros = [0] * spatial
        holds(
            "convolution",
            x,
            plain,
            bias,
            stride,
            padding,
            dilation,
            False,
            zeros,
            groups,
            still=True,
        )
        holds(f"conv{spatial}d", x, plain, bias, stride, padding, dilation, groups, still=True)
        turned = whole(dtype, 4, 8 // groups, *kernel)
        extra = [int(R.integers(0, max(s, d))) for s, d in zip(stride, dilation, strict=True)]
        rest = [bias, stride, padding, extra, groups, dilation]
        holds(f"conv_transpose{spatial}d", x, turned, *rest, still=True)
    holds(
        f"conv{spatial}d", x[0].copy(), plain, None, stride, padding, dilation, groups, still=True
    )
    same = [bias, [1] * spatial, "same", dilation, groups]
    holds(f"conv{spatial}d.padding", x, plain, *same, still=True)


def test_averages_of_integers_over_bins() -> None:
    for size in ([2, 3], [1, 1], [7, 5], [9, 2]):
        x = R.integers(-50, 50, (2, 3, 7, 5))
        y = _bins_of(x, size)
        written = Written("adaptive_avg_pool2d", [x, size], "A+", 9, dynamic=False)
        np.testing.assert_array_equal(lowered(written, [y], recipe="aten")[0], y)


def _bins_of(x: Any, size: list[int]) -> Any:
    """PyTorch 2.1's own formula: the sum by the height, and that by the width, each rounded."""
    edges = [
        [(i * n // out, -(-(i + 1) * n // out)) for i in range(out)]
        for n, out in zip(x.shape[2:], size, strict=True)
    ]
    rows, columns = edges
    y = np.empty((*x.shape[:2], *size), np.int64)
    for i, (top, low) in enumerate(rows):
        for j, (left, right) in enumerate(columns):
            total = x[:, :, top:low, left:right].sum((2, 3)) / (low - top)
            y[:, :, i, j] = np.trunc(np.trunc(total) / (right - left))
    return y


@pytest.mark.parametrize("kind", ["sum", "mean", "max", "min", "prod"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_segments(kind: str, dtype: Any) -> None:
    one, batched = np.array([2, 0, 3, 1]), np.array([[1, 0, 5], [3, 3, 0]])
    for draw, initial in enumerate((None, 1.5, -2.0)):
        x = R.normal(size=(6, 3)).astype(dtype)
        if draw == 1:
            x[4, 1], x[0, 0] = np.nan, np.inf
        y = R.normal(size=(2, 6)).astype(dtype)
        borders = np.array([0, 2, 2, 5, 6])
        for lengths, offsets in ((one, None), (None, borders)):
            rest = [lengths, None, offsets, 0, False, initial]
            holds("segment_reduce", x, kind, *rest)
        holds("segment_reduce", y, kind, batched, None, None, 1, False, initial)


def test_segments_that_are_refused() -> None:
    x, lengths = np.zeros((6, 3), np.float32), np.array([[2, 4]])
    rest = [None, None, 0, False, None]
    stays("segment_reduce", [x, "sum", lengths, *rest], [x[:2]], "its segments have the rank 2")
    stays("segment_reduce", [x, "all", lengths[0], *rest], [x[:2]], "it reduces by 'all'")


@pytest.mark.parametrize("size", [1e-25, 1.0, 1e25])
def test_correlations_do_not_depend_on_how_large_the_variables_are(size: float) -> None:
    """Nor on whether a square of what is small is 0 in float32, of which the rewrite is checked."""
    x = (R.normal(size=(3, 7)) * size).astype(np.float32)
    call = Written("corrcoef", [x], "A+", 13, dynamic=True)
    wanted = np.corrcoef(x.astype(np.float64)).astype(np.float32)
    np.testing.assert_allclose(lowered(call, [wanted])[0], wanted, atol=1e-5)
