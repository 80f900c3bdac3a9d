"""Products of integers of 8 and 16 bits, which wrap as PyTorch's do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from aten_node import agrees


@pytest.mark.parametrize("opset", [9, 13, 18])
@pytest.mark.parametrize("dtype", ["u1", "i1", "i2"])
def test_products_of_narrow_integers(dtype: str, opset: int) -> None:
    random = np.random.default_rng(2)
    ends = np.iinfo(dtype)

    def whole(*shape: int) -> Any:
        return random.integers(ends.min, ends.max, shape, dtype, endpoint=True)

    calls: list[tuple[str, list[Any]]] = [
        ("outer", [whole(3), whole(4)]),
        ("linalg_cross", [whole(2, 3), whole(2, 3), -1]),
        ("addmm", [whole(2, 4), whole(2, 3), whole(3, 4), 2, 3]),
        ("addmv", [whole(2), whole(2, 3), whole(3), 1, 1]),
        ("baddbmm", [whole(5, 2, 4), whole(5, 2, 3), whole(5, 3, 4), 1, 1]),
        ("linear", [whole(2, 3), whole(4, 3), whole(4)]),
    ]
    for operator, arguments in calls:
        agrees(operator, arguments, {}, opset, dynamic=opset == 18)
