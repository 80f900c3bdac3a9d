"""The recipe aten-shape: lowered models against the witness, and against torch where it is."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import onnx
import pytest
from aten_node import Written, agrees, close, expected, lowered, show
from aten_shape_calls import LISTS, VIEWS
from aten_shape_indices import PLACES
from aten_shape_products import PRODUCTS
from aten_shape_widening import PADS

pytestmark = pytest.mark.slow  # `make check` has the recipes' cases instead

OPSETS = (9, 11, 13, 18)
CALLS = [*VIEWS, *PLACES, *PRODUCTS, *PADS]


def _each() -> list[Any]:
    spellings = itertools.cycle(["A+", "N", "flat"])
    cases = []
    for index, call in enumerate(CALLS):
        operator, arguments, least, still = call
        allowed = [o for o in OPSETS if o >= least]
        opsets = {allowed[0], allowed[index % len(allowed)], allowed[-1]}
        for opset in sorted(opsets):
            for dynamic in (False, True):
                if dynamic and (still or opset != max(opsets)):
                    continue
                spelling = next(spellings)
                label = f"{operator}({show(arguments)})-{spelling}-{opset}" + "-dynamic" * dynamic
                cases.append(pytest.param(operator, arguments, spelling, opset, dynamic, id=label))
    return cases


@pytest.mark.parametrize(("operator", "arguments", "spelling", "opset", "dynamic"), _each())
def test_lowered_as_the_witness(
    operator: str, arguments: list[Any], spelling: str, opset: int, dynamic: bool
) -> None:
    wanted = expected(operator, arguments)
    written = Written(operator, arguments, spelling, opset, dynamic=dynamic)
    listed = operator.partition(".")[0] in LISTS
    found = lowered(written, wanted, listed=listed)
    for mine, its in zip(found, wanted, strict=True):
        assert mine.dtype == its.dtype
        assert mine.shape == its.shape
        close(mine, its)


NAMED = (  # the spelling of old releases: tensors as inputs, the rest as attributes
    (
        "unfold",
        [np.arange(14.0, dtype=np.float32).reshape(2, 7)],
        {"dimension": 1, "size": 3, "step": 2},
    ),
    ("index_fill", [np.zeros((3, 4), np.float32), np.asarray([2]), np.float32(5)], {"dim": 0}),
    (
        "index_copy",
        [np.zeros((3, 4), np.float32), np.asarray([2, 0]), np.ones((2, 4), np.float32)],
        {"dim": 0},
    ),
    ("index", [np.eye(3, dtype=np.float32), np.asarray([2, 0]), np.asarray([2, 1])], {}),
)


@pytest.mark.parametrize(("operator", "tensors", "attributes"), NAMED, ids=[c[0] for c in NAMED])
@pytest.mark.parametrize("opset", OPSETS)
def test_arguments_as_attributes(
    operator: str, tensors: list[Any], attributes: dict[str, int], opset: int
) -> None:
    x, *others = tensors
    arguments: dict[str, list[Any]] = {
        "unfold": [x, 1, 3, 2],
        "index_fill": [x, 0, *others],
        "index_copy": [x, 0, *others],
        "index": [x, others],
    }
    wanted = expected(operator, arguments[operator])
    written = Written(operator, [np.asarray(t) for t in tensors], "N", opset, dynamic=False)
    names = list(written.main.input)
    written.main = onnx.helper.make_node("ATen", names, [], operator=operator, **attributes)
    for mine, its in zip(lowered(written, wanted, listed=False), wanted, strict=True):
        assert mine.dtype == its.dtype
        close(mine, its)


@pytest.mark.parametrize("opset", [9, 13, 18])
@pytest.mark.parametrize("dynamic", [False, True])
def test_axes_known_at_run_time_change_places(opset: int, dynamic: bool) -> None:
    x, empty = np.arange(24.0, dtype=np.float32).reshape(2, 3, 4), np.zeros((2, 0, 3), bool)
    for dims in ([2, 0, 1], [0, -1, 1], [0, 1, 2]):
        for each in (x, empty):
            agrees("permute", [each, np.array(dims)], {}, opset, dynamic=dynamic)
    agrees("permute", [x[0, 0].astype(np.float64), np.array([-1])], {}, opset, dynamic=dynamic)
    for first, second in ((0, 2), (-1, 1), (1, 1)):
        pair = [np.asarray(first), np.asarray(second)]
        agrees("transpose.int", [x, *pair], {}, opset, dynamic=dynamic)
    agrees("transpose.int", [x, np.asarray(-2), 0], {}, opset, dynamic=dynamic)
