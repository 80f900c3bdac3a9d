"""`arange` with bounds that are computed: as many numbers as PyTorch counts, in its precision."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime as ort
import pytest
from aten_node import Written, close, expected

import surgeon

REST = [None, None, None, None]
WHOLE = [
    *((a, b, s) for s in (1, 2, 3, 7) for a, b in ((0, 7), (-3, 4), (5, 5))),
    *((b, a, -s) for s in (1, 2, 3, 7) for a, b in ((0, 7), (-3, 4), (5, 5))),
    (2**40, 2**40 + 5, 2),
    (0, 2**33 + 1, 2**33),
]
FRACTIONS = [(0, 7, 0.7), (0.1, 0.9, 0.1), (1, 1, 2), (7, 0, -0.7), (0, 0.3, 0.1), (7, 0.5, -1.5)]


def session_of(arguments: list[Any], opset: int) -> tuple[ort.InferenceSession, list[str]]:
    written = Written("arange.start_step", arguments, "A+", opset, dynamic=True)
    model = written.model(expected("arange.start_step", arguments), listed=False)
    result = surgeon.apply(model, "aten", verify=False).model.to_proto()
    assert {n.domain for n in result.graph.node} <= {""}
    session = ort.InferenceSession(result.SerializeToString())
    return session, [value.name for value in written.inputs]


@pytest.mark.slow
@pytest.mark.parametrize("opset", [9, 10, 11, 18])
@pytest.mark.parametrize(
    ("kind", "dtype", "bounds"),
    [
        (np.int64, None, WHOLE),
        (np.int32, None, WHOLE[:-2]),
        (np.int64, 6, WHOLE),
        (np.float32, None, FRACTIONS),
        (np.float64, None, FRACTIONS),
        (np.float64, 7, FRACTIONS),
        (np.float32, 4, FRACTIONS[-1:]),  # in integers, so that the step is 1
        (np.float32, 3, FRACTIONS[-1:]),
    ],
)
def test_all_bounds_computed(kind: Any, dtype: int | None, bounds: Any, opset: int) -> None:
    first: list[Any] = [*(np.asarray(v, kind) for v in bounds[0]), dtype, *REST[1:]]
    session, names = session_of(first, opset)
    for case in bounds:
        arguments = [*(np.asarray(v, kind) for v in case), dtype, *REST[1:]]
        (its,) = expected("arange.start_step", arguments)
        feeds = dict(zip(names, arguments, strict=False))
        (y,) = session.run(None, feeds)
        assert y.dtype == its.dtype
        assert y.shape == its.shape, case
        close(y, its)


@pytest.mark.slow
@pytest.mark.parametrize("opset", [9, 11, 18])
def test_one_bound_computed(opset: int) -> None:
    """A step of 0.7 is 0.699999988 in single precision, of which 7 holds one more."""
    for kind in (np.int64, np.float32, np.float64):
        session, names = session_of([0, np.asarray(9, kind), 0.7, *REST], opset)
        for end in range(30):
            arguments = [0, np.asarray(end, kind), 0.7, *REST]
            (its,) = expected("arange.start_step", arguments)
            (y,) = session.run(None, {names[0]: arguments[1]})
            assert y.shape == its.shape, end
            close(y, its)
