"""Inverse functions, powers, sums and comparisons of complex values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from aten_layer import normal
from complex_graphs import aten, constant, of_values

pytestmark = pytest.mark.slow  # `make check` has the recipes' cases instead

Z, W = normal(3, 4, 2), normal(3, 4, 2)
# on the axes and near them, small, far off, and on either side of the cuts
PLACES = np.array(
    [
        *[(x, y) for x in (-3, -0.5, 0.25, 2) for y in (1e-3, -1e-3, 1.5, -4)],
        *[(1e-5, 2e-5), (-1e-4, 0.5), (30, -20), (-500, 400), (0.5, 0), (1e-3, 2)],
    ],
    np.float32,
)
END = aten("view_as_real", ["c"], "y")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "operator",
    """asin acos atan asinh acosh atanh arcsin arctanh expm1 special_expm1 log1p special_log1p sinc
    special_sinc""".split(),
)
def test_functions_of_one_value(operator: str, dtype: Any) -> None:
    places = PLACES[np.abs(PLACES).max(axis=1) < 20] if operator in _GROWING else PLACES
    of_values([aten(operator, ["a"], "c"), END], {"z": places.astype(dtype)})


_GROWING = ("expm1", "special_expm1", "sinc", "special_sinc")


def test_nothing_over_nothing_is_one() -> None:
    of_values([aten("sinc", ["a"], "c"), END], {"z": np.zeros((2, 2), np.float32)})


def test_powers_of_values_by_values() -> None:
    small = Z * np.float32(0.5)
    of_values([aten("pow", ["a", "b"], "c", "Tensor_Tensor"), END], {"z": small, "w": W})
    of_values([aten("pow", ["a", "r"], "c", "Tensor_Tensor"), END], {"z": small, "r": W[..., 0]})
    real = {"z": small, "r": W[..., 0] - np.float32(0.1)}
    of_values([aten("pow", ["r", "a"], "c", "Tensor_Tensor"), END], real)
    of_values([constant("n", 2.5), aten("pow", ["n", "a"], "c", "Scalar"), END], {"z": small})


@pytest.mark.parametrize("number", [0.0, -0.5, -1.5, 2.5, 9.0, -9.0, -3.0])
def test_powers_by_numbers(number: float) -> None:
    nodes = [constant("n", number), aten("pow", ["a", "n"], "c", "Tensor_Scalar"), END]
    of_values(nodes, {"z": Z + np.sign(Z)})


def test_a_power_of_nothing() -> None:
    z, w = np.zeros((2, 2), np.float32), np.array([[1, 1], [2, 0]], np.float32)
    of_values([aten("pow", ["a", "b"], "c", "Tensor_Tensor"), END], {"z": z, "w": w})


def test_powers_in_double_precision() -> None:
    nodes = [aten("float_power", ["a", "b"], "c", "Tensor_Tensor"), END]
    of_values(nodes, {"z": Z * np.float32(0.5), "w": W})
    nodes = [constant("n", 2.0), aten("float_power", ["a", "n"], "c", "Tensor_Scalar"), END]
    of_values(nodes, {"z": Z})


@pytest.mark.parametrize("keeps", [False, True])
def test_the_logarithm_of_a_sum_of_powers(keeps: bool) -> None:
    for dims in ([0], [0, 1], [-1]):
        nodes = [constant("d", dims), constant("k", keeps), aten("logsumexp", ["a", "d", "k"], "c")]
        of_values([*nodes, END], {"z": Z + np.array([5, 0], np.float32)})


@pytest.mark.parametrize("operator", ["trapezoid", "cumulative_trapezoid"])
def test_areas_below_values(operator: str) -> None:
    nodes = [constant("dx", 0.5), constant("d", 0), aten(operator, ["a", "dx", "d"], "c", "dx")]
    of_values([*nodes, END], {"z": Z})
    feeds = {"z": Z, "x": np.array([0, 1, 3, 3.5], np.float32)}
    of_values([constant("d", 1), aten(operator, ["a", "x", "d"], "c", "x"), END], feeds)


def test_an_outer_product_that_is_added() -> None:
    nodes = [aten("select", ["a", "d", "zero"], "p", "int"), constant("d", 1), constant("zero", 0)]
    nodes = [*nodes[1:], nodes[0], aten("select", ["b", "zero", "zero"], "q", "int")]
    nodes += [constant("beta", 2.0), constant("alpha", 1.5)]
    of_values([*nodes, aten("addr", ["a", "p", "q", "beta", "alpha"], "c"), END], {"z": Z, "w": W})


@pytest.mark.parametrize("operator", ["isclose", "allclose", "equal"])
def test_whether_values_agree(operator: str) -> None:
    near = Z.copy()
    near[0, 0, 1] += 1e-6
    near[1, 1, 0] += 1
    near[2, 2] = np.inf, 1
    tight = [constant("r", 1e-5), constant("t", 1e-8), constant("n", False)]
    names = [] if operator == "equal" else ["r", "t", "n"]
    for w in (Z, near):
        nodes = [*tight, aten(operator, ["a", "b", *names], "y")]
        of_values(nodes, {"z": Z, "w": w})


def test_what_is_no_number_and_taken_as_near() -> None:
    z, w = Z.copy(), Z.copy()
    z[0, 0, 0] = w[0, 0, 1] = w[1, 0, 0] = np.nan
    tight = [constant("r", 1e-5), constant("t", 1e-8), constant("n", True)]
    of_values([*tight, aten("isclose", ["a", "b", "r", "t", "n"], "y")], {"z": z, "w": w})


@pytest.mark.parametrize("reduction", [0, 1, 2])
def test_the_sizes_of_differences(reduction: int) -> None:
    nodes = [constant("k", reduction), aten("l1_loss", ["a", "b", "k"], "y")]
    of_values(nodes, {"z": Z, "w": W})
