"""Products and other results of integers, which wrap as PyTorch's do."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from aten_node import agrees, stays

import surgeon


@pytest.mark.parametrize("opset", [9, 13, 18])
@pytest.mark.parametrize("dtype", ["u1", "i1", "i2"])
def test_products_of_narrow_integers(dtype: str, opset: int) -> None:
    random = np.random.default_rng(2)
    ends = np.iinfo(dtype)

    def whole(*shape: int) -> Any:
        return random.integers(ends.min, ends.max, shape, dtype, endpoint=True)

    calls: list[tuple[str, list[Any]]] = [
        ("outer", [whole(3), whole(4)]),
        ("kron", [whole(3), whole(2, 2)]),
        ("linalg_cross", [whole(2, 3), whole(2, 3), -1]),
        ("addmm", [whole(2, 4), whole(2, 3), whole(3, 4), 2, 3]),
        ("addmv", [whole(2), whole(2, 3), whole(3), 1, 1]),
        ("baddbmm", [whole(5, 2, 4), whole(5, 2, 3), whole(5, 3, 4), 1, 1]),
        ("linear", [whole(2, 3), whole(4, 3), whole(4)]),
    ]
    for operator, arguments in calls:
        agrees(operator, arguments, {}, opset, dynamic=opset == 18)


@pytest.mark.parametrize("opset", [9, 13, 18])
@pytest.mark.parametrize("dtype", ["u1", "i1", "i2", "i4", "i8"])
def test_integers_that_are_scaled_convolved_and_cut_off(dtype: str, opset: int) -> None:
    random = np.random.default_rng(3)
    ends = np.iinfo(dtype)

    def whole(*shape: int) -> Any:  # sums of 32 and 64 bits go by way of doubles
        least, most = max(ends.min, -(2**26)), min(ends.max, 2**26)
        return random.integers(least, most, shape, dtype, endpoint=True)

    sides = np.array([1, -1, 1, -1, 0, 1])
    calls: list[tuple[str, list[Any]]] = [
        ("index_add", [whole(4, 3), 0, np.array([1, 1, 3]), whole(3, 3), 7]),
        ("_addmm_activation", [whole(4), whole(2, 3), whole(3, 4)]),
        ("threshold_backward", [whole(3, 4), whole(3, 4) % 5, 2.7]),
        ("hinge_embedding_loss", [whole(6), sides, 2.7, 0]),
        ("hinge_embedding_loss", [whole(6), sides.astype(dtype), 1.0, 2]),
        ("bilinear", [whole(2, 3), whole(2, 4), whole(5, 3, 4), whole(5)]),
        ("_compute_linear_combination", [whole(4, 3), whole(2, 4)]),
    ]
    for operator, arguments in calls:
        agrees(operator, arguments, {}, opset, dynamic=opset == 18)
    for pad in (0, 2):
        kernel = [whole(5, 2, 3), whole(2, 3, 4), whole(4), pad]
        agrees("conv_tbc", kernel, {}, opset, dynamic=False)


@pytest.mark.parametrize("opset", [9, 18])
def test_conv_tbc_in_double_precision(opset: int) -> None:
    random = np.random.default_rng(4)
    shapes = [(5, 2, 3), (2, 3, 4), (4,)]
    agrees("conv_tbc", [*map(random.normal, [0] * 3, [1] * 3, shapes), 1], {}, opset, dynamic=False)


def test_conv_tbc_of_any_length() -> None:
    text = """
      <ir_version: 7, opset_import: ["": 11, "org.pytorch.aten": 1]>
      g (float[t,b,3] x, float[2,3,4] w, float[4] c) => (float[u,b,4] y) <int64 pad = {0}> {
        y = org.pytorch.aten.ATen <operator = "conv_tbc"> (x, w, c, pad)
      }"""
    model = onnx.parser.parse_model(text)
    assert surgeon.apply(model, "aten").report.status == "equivalent"


def test_numbers_that_integers_do_not_hold_are_refused() -> None:
    x = np.array([1, 2, 250], np.uint8)
    for number, shown in ((-1.0, "-1"), (300.0, "300")):
        stays("threshold_backward", [x, x, number], [x], f"its threshold is {shown}, which is no")
        stays("hinge_embedding_loss", [x, x, number, 0], [x], f"its margin is {shown}, which is no")
    stays("hinge_embedding_loss", [x, x], [x], "no mean of integers")
