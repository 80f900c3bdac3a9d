"""Integers over the whole range of their type: what wraps, and what PyTorch adds up where."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from aten_call import HAS_TORCH, by_torch, call, check_all
from aten_node import agrees, expected
from aten_operands import integers

pytestmark = pytest.mark.slow  # `make check` has the recipes' cases instead

NARROW = ("u1", "i1", "i2", "i4", "i8")


def whole(dtype: str, *shape: int, seed: int = 0) -> Any:
    """Integers of all of a type, its ends among them."""
    limits = np.iinfo(dtype)
    drawn = np.random.default_rng(seed).integers(limits.min, limits.max, shape, dtype, True)
    drawn.reshape(-1)[:2] = limits.min, limits.max
    return drawn


@pytest.mark.parametrize("dtype", NARROW)
def test_shifts_by_any_number_of_bits(dtype: str) -> None:
    bits = np.iinfo(dtype).bits
    x = whole(dtype, 4, 9)
    by = np.array([0, 1, bits - 2, bits - 1, bits, bits + 1, 100, 5, 0], dtype)
    if np.iinfo(dtype).min:
        by[-1] = -1
    calls = []
    for name in ("bitwise_left_shift", "bitwise_right_shift"):
        calls += [call(name, x, by, overload="Tensor", opset=o) for o in (9, 13, 18)]
        calls += [
            call(name, x, int(n), overload="Tensor_Scalar") for n in (0, 1, bits - 1, bits, 70)
        ]
    check_all(calls)


@pytest.mark.parametrize("dtype", NARROW[:-1])  # onnxruntime adds int64 up in doubles
def test_areas_of_integers(dtype: str) -> None:
    y, x = whole(dtype, 3, 6), whole(dtype, 3, 6, seed=1)
    beside = integers("i4", 6)
    calls = []
    for name in ("trapezoid", "cumulative_trapezoid"):
        calls += [
            call(name, y, x, -1, overload="x"),
            call(name, y, x[0], -1, overload="x"),
            call(name, y, x[:, 0].copy(), 0, overload="x"),
            call(name, y, beside, -1, overload="x"),
            call(name, y, beside.astype("f4"), -1, overload="x"),
            call(name, y.astype("f4"), beside, -1, overload="x"),
            call(name, y, 2, 0, overload="dx"),
            call(name, y[:, :1].copy(), 1, -1, overload="dx"),
        ]
    check_all(calls)


@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize("dtype", NARROW)
def test_means_of_scattered_integers(dtype: str, own: bool) -> None:
    x, source = whole(dtype, 3, 5), whole(dtype, 4, 5, seed=1)
    index = np.random.default_rng(2).integers(0, 3, (4, 5))
    given = [x, 0, index, source, "mean", own]
    agrees("scatter_reduce.two", given, {}, 16, dynamic=False)
    if HAS_TORCH:
        wanted = by_torch("scatter_reduce", given, "two")
        np.testing.assert_array_equal(expected("scatter_reduce.two", given), wanted)


@pytest.mark.parametrize("dtype", NARROW[1:])
def test_quotients_of_the_least_integer(dtype: str) -> None:
    x = whole(dtype, 3, 4)
    by = np.where(x == 0, 1, x)[::-1].copy()
    least = np.array([np.iinfo(dtype).min] * 4, dtype)
    few = np.array([np.iinfo(dtype).min, 3, -3, 1], dtype)
    calls = []
    for mode in ("trunc", "floor"):
        for a, b in ((x, by), (least, few)):
            calls.append(call("div", a, b, mode, overload="Tensor_mode"))
    check_all(calls)


def test_bessel_functions_of_large_integers() -> None:
    x = np.array([0, 1, -3, 90, 130, 99_000, 101_000, -40_000_000, 2**31 - 1], np.int32)
    check_all([call(name, x) for name in ("special_i0e", "special_i1e")])


def test_a_power_of_two_may_be_infinite_beside_zero() -> None:
    """The power is a tensor of its own, of the exponents' dtype."""
    x, by = np.array([0, 1, 2, 0], np.uint8), np.array([255, 130, 3, 4], np.uint8)
    high = np.array([130, 15, 3, 4], np.float32)
    pairs = [(x, by), (x, high), (x.astype("f8"), high), (x.astype("f2"), by % 15)]
    check_all([call("ldexp", a, b, overload="Tensor") for a, b in pairs])
