"""Functions in double precision, of which onnxruntime has kernels in single precision alone."""

from __future__ import annotations

import numpy as np
import pytest
from aten_call import call, check_all, lowered, model_of

SIDES = np.array([1e-30, 1e-9, 0.1, 0.4142, 0.5, 0.9999999, 1.0, 1.0000001, 1.7, 3.0, 5.9, 27.0])
LINE = np.concatenate([-SIDES[::-1], [-0.0, 0.0], SIDES, np.linspace(-4, 4, 83)])
WIDE = np.concatenate([LINE, [1e8, -1e300, np.inf, -np.inf, np.nan]])
UNIT = np.concatenate([np.clip(LINE, -1, 1), [1 - 1e-15, -1 + 1e-15, 1.5, np.nan]])


@pytest.mark.parametrize(
    ("operator", "x"),
    [("atan", WIDE), ("erf", WIDE), ("special_erf", WIDE), ("erfc", WIDE), ("gelu", LINE)]
    + [(name, UNIT) for name in ("asin", "acos", "arcsin", "arccos")],
)
def test_functions_in_double_precision(operator: str, x: np.ndarray) -> None:
    check_all([call(operator, x, tolerance=4e-15)] * 5)


@pytest.mark.slow
def test_angles_in_double_precision() -> None:
    ends = np.array([-np.inf, -2.0, -1e-9, -0.0, 0.0, 1e-9, 2.0, 1e9, np.inf])
    y, x = (each.ravel() for each in np.meshgrid(ends, ends))
    check_all([call("atan2", y, x, tolerance=4e-15)] * 5)


def test_small_values_keep_their_digits() -> None:
    small = np.array([1e-300, 3e-40, 1e-12, 1e-5])
    slopes = {"atan": 1.0, "asin": 1.0, "erf": 2 / np.sqrt(np.pi)}
    for operator, slope in slopes.items():
        (found,) = lowered(*model_of(operator, [small]))
        np.testing.assert_allclose(found, slope * small, rtol=1e-10)
        np.testing.assert_allclose(found[:3], slope * small[:3], rtol=4e-16)
