"""What counts as the same array, and what of a pair of tiny models."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from verdicts import F32, parse

from surgeon.errors import SurgeonError
from surgeon.runtime import NotRunnable, RunFailed
from surgeon.verify import OutputCheck, compare_arrays, measure, open_pair

# ------------------------------------------------------------------------------ compare_arrays


def test_error_is_relative_to_the_spread() -> None:
    want = np.array([100, 101, 102], F32)
    check = compare_arrays("y", want, want + F32(1e-3))
    assert not check.agrees
    assert check.max_relative == pytest.approx(1e-3, rel=0.05)
    assert str(check) == "`y`: error 0.000999, which is 0.000999 of its spread (allowed 0.0001)"
    assert compare_arrays("y", want, want + F32(5e-5)).agrees
    assert compare_arrays("y", want, want + F32(1e-3), tolerance=1e-2).agrees


def test_rounding_of_a_nearly_constant_output_is_no_difference_but_weak() -> None:
    want = np.array([1000, 1000.0001], F32)
    check = compare_arrays("y", want, np.nextafter(want, F32(2000)))
    assert check.agrees
    assert check.weak == "it varies by little more than rounding"
    assert check.ulp == 1


@pytest.mark.parametrize(
    ("want", "have", "fault"),
    [
        (np.zeros(2, F32), np.zeros(3, F32), "its shape is [3], not [2]"),
        (np.zeros(2, F32), np.zeros(2), "its dtype is float64, not float32"),
        (
            np.zeros(2, F32),
            np.array([0, np.nan], F32),
            "NaN at 1 place of one side alone: NaN where it was 0",
        ),
        (
            np.array([np.inf, 1, np.inf], F32),
            np.array([3.4e38, 1, 1], F32),
            "inf at 2 places of one side alone: 3.4e+38 where it was inf",
        ),
        (np.arange(3), np.array([0, 1, 3]), "1 of 3 values differ"),
        (np.array([True]), np.array([False]), "1 of 1 values differ"),
        (np.array(["a"], object), np.array(["b"], object), "1 of 1 values differ"),
        ([np.zeros(1)], [], "a list of 0, not of 1"),
        ([np.zeros(1)], np.zeros(1), "one is a list, the other is not"),
    ],
)
def test_other_differences_are_named(want: Any, have: Any, fault: str) -> None:
    check = compare_arrays("y", want, have)
    assert (check.agrees, check.fault) == (False, fault)


def test_nan_at_the_same_places_is_no_difference() -> None:
    want = np.array([np.nan, 1, 2, np.inf], F32)
    assert compare_arrays("y", want, want.copy()).agrees
    check = compare_arrays("y", want[:1], want[:1])
    assert (check.agrees, check.weak, check.doubted) == (True, "it is NaN throughout", True)
    check = compare_arrays("y", want[3:], want[3:])
    assert (check.agrees, check.weak, check.doubted) == (True, "it holds no finite number", False)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64"])
def test_large_arrays_are_measured_in_blocks(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    generator = np.random.default_rng(0)
    want = (generator.normal(size=(7, 11)) + 3).astype(dtype)
    have = (want * (1 + 1e-3 * generator.normal(size=(7, 11)))).astype(dtype)
    want[3, 4:6] = have[3, 4:6] = np.inf, np.nan
    monkeypatch.setattr(measure, "_BLOCK", 5)
    check = compare_arrays("y", want, have)
    finite = np.isfinite(want)
    e, a = (array[finite].astype(complex) for array in (want, have))
    error, spread = np.abs(e - a).max(), np.abs(e - e.mean()).max()
    assert check.max_absolute == pytest.approx(error, rel=1e-12)
    assert check.max_relative == pytest.approx(error / spread, rel=1e-12)
    have[0, 0], have[6, 10] = np.nan, np.inf
    fault = compare_arrays("y", want, have).fault
    assert (fault or "").startswith("NaN at 1 place of one side alone: ")


def test_bit_means_bit() -> None:
    want = np.array([0.0, 1.0, np.nan], F32)
    assert compare_arrays("y", want, want.copy(), exact="bit").agrees
    other = np.array([-0.0, 1.0, np.nan], F32)
    check = compare_arrays("y", want, other, exact="bit")
    assert (check.agrees, check.fault) == (False, "zeros of another sign")
    nearly = np.nextafter(np.array([1.0], F32), F32(2))
    assert not compare_arrays("y", np.ones(1, F32), nearly, exact="bit").agrees
    assert compare_arrays("y", np.ones(1, F32), nearly, exact="rounding").agrees


def test_narrow_floats_have_wider_tolerances() -> None:
    for dtype, error in ((np.float16, 1e-2), (ml_dtypes.bfloat16, 3e-2)):
        want = np.linspace(-1, 1, 9).astype(dtype)
        have = (want.astype(F32) + error).astype(dtype)
        assert compare_arrays("y", want, have).agrees
        have = (want.astype(F32) + 20 * error).astype(dtype)
        assert not compare_arrays("y", want, have).agrees


# --------------------------------------------------------------------------------- two small models


def told(found: list[Any]) -> list[tuple[OutputCheck, ...]]:
    assert not any(isinstance(each, SurgeonError) for each in found), found
    return found


def test_a_pair_of_tiny_models_is_compared_on_given_inputs() -> None:
    before = parse(
        """g (float[N,C,8,8] x) => (float[N,C,1,1] y) <int64[2] one = {1, 1}> {
        y = org.pytorch.aten.adaptive_avg_pool2d (x, one) }"""
    )
    after = parse("g (float[N,C,8,8] x) => (float[N,C,1,1] y) { y = GlobalAveragePool (x) }")
    wrong = parse("g (float[N,C,8,8] x) => (float[N,C,1,1] y) { y = GlobalMaxPool (x) }")
    generator = np.random.default_rng(0)
    feeds = [{"x": generator.normal(size=(n, 3, 8, 8)).astype(F32)} for n in (1, 2)]
    for after_, agrees in ((after, True), (wrong, False)):
        found = open_pair(before, after_).check(feeds, "rounding")
        assert [[check.agrees for check in checks] for checks in told(found)] == [[agrees]] * 2


def test_what_does_not_run_where_the_other_does_differs() -> None:
    before = parse("g (float[N,C] x) => (float[N,D] y) { y = Neg (x) }")
    breaks = parse("g (float[N,C] x) => (float[N,D] y) <int64[1] s = {7}> { y = Reshape (x, s) }")
    invalid = parse("g (float[N,C] x) => (int64[N,D] y) { y = Not (x) }")
    unknown = parse("g (float[N,C] x) => (float[N,D] y) { y = my.Own (x) }")
    feeds = [{"x": np.ones((2, 3), F32)}]
    for after in (breaks, invalid):
        (((check,),)) = told(open_pair(before, after).check(feeds, "rounding"))
        assert not check.agrees
        assert (check.fault or "").startswith("it does not run: ")
    (why,) = open_pair(before, unknown).check(feeds, "rounding")
    assert isinstance(why, NotRunnable)
    assert why.what == "onnxruntime has no `my.Own`"
    (why,) = open_pair(breaks, before).check(feeds, "rounding")
    assert isinstance(why, RunFailed)


def test_an_average_is_held_to_the_roundings_of_what_it_is_of() -> None:
    """Of 4,096 numbers that nearly cancel; an average beside it by a ten-thousandth is wrong."""
    text = "g (float[N,C,T] x) => (float[N,C,1] y) <float k = {{{}}}> {{ {} }}"
    aten = "s = Constant <value = int64[1] {1}> () y = org.pytorch.aten.adaptive_avg_pool1d (x, s)"
    before = parse(text.format(1, aten))
    mean = "m = GlobalAveragePool (x) y = Mul (m, k)"
    x = np.random.default_rng(0).standard_normal((1, 64, 4096)).astype(F32)
    for k, agrees in ((1, True), (1.0001, False), (0.999, False)):
        (((check,),)) = told(
            open_pair(before, parse(text.format(k, mean))).check([{"x": x}], "rounding")
        )
        assert check.agrees is agrees, check
