"""Newer forms of operators in an older opset: they compute what numpy does."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime as ort
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from truth import model_of

import surgeon
from surgeon.authoring import recipe_of, rule
from surgeon.match import Match
from surgeon.rewrite import Draft

SMALL = st.integers(-9, 9)
LINES = st.lists(SMALL, min_size=1, max_size=7).map(lambda v: np.array(v, np.int64))


def in_opset_9(op: str, *arrays: Any, constants: Any = (), **attributes: Any) -> Any:
    """What an operator gives at opset 9, of computed arrays and then of constants."""

    @rule(f"y = my.own.Op ({', '.join('abc'[: len(arrays)])})", exact="bit")
    def newer(draft: Draft, match: Match) -> Any:
        """It is a newer form of this one."""
        operands = [match.values[name] for name in "abc"[: len(arrays)]]
        rest = [None if c is None else draft.constant(np.asarray(c, np.int64)) for c in constants]
        return draft.op(op, *operands, *rest, **attributes)

    feeds = dict(zip("abc", (np.asarray(a, np.int64) for a in arrays), strict=False))
    inputs = ", ".join(
        f"int64[{','.join(f'{name}{i}' for i in range(a.ndim))}] {name}"
        for name, a in feeds.items()
    )
    model = model_of(inputs, f"y = my.own.Op ({', '.join(feeds)})", "y", 9)
    result = surgeon.apply(model, recipe_of(newer), verify=False).model.to_proto()
    assert op not in [node.op_type for node in result.graph.node]
    return ort.InferenceSession(result.SerializeToString()).run(None, feeds)[0]


@settings(deadline=None, max_examples=20)
@given(LINES, LINES, st.booleans())
def test_remainders_of_integers(a: Any, b: Any, fmod: bool) -> None:
    a, b = a[:, None], np.where(b == 0, 3, b)
    wanted = np.fmod(a, b) if fmod else a % b
    np.testing.assert_array_equal(in_opset_9("Mod", a, b, fmod=int(fmod)), wanted)


@settings(deadline=None, max_examples=20)
@given(LINES, LINES, st.integers(-2, 1), st.booleans())
def test_running_sums_of_integers(a: Any, b: Any, axis: int, exclusive: bool) -> None:
    x = a[:, None] * b
    wanted = np.cumsum(x, axis) - (x if exclusive else 0)
    made = in_opset_9("CumSum", x, constants=[axis], exclusive=int(exclusive))
    np.testing.assert_array_equal(made, wanted)


@settings(deadline=None, max_examples=40)
@given(LINES, SMALL, st.one_of(SMALL, st.just(2**63 - 1)), st.integers(1, 3), st.booleans())
def test_slices_with_computed_bounds(
    line: Any, start: int, end: int, step: int, last: bool
) -> None:
    x = line * np.array([[1], [10]])
    constants = [[-1 if last else 1], [step]][: 2 if step > 1 else 1]
    made = in_opset_9("Slice", x, [start], [end], constants=constants)
    np.testing.assert_array_equal(made, x[:, start:end:step])


@pytest.mark.parametrize("start", [-3, 0, 1, 9])
def test_slices_with_steps_along_an_axis_of_any_length(start: int) -> None:
    for length in (1, 2, 5):
        x = np.arange(2 * length).reshape(2, length)
        made = in_opset_9("Slice", x, constants=[[start], [4], [1], [2]])
        np.testing.assert_array_equal(made, x[:, start:4:2])
