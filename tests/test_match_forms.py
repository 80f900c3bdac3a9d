"""A pattern matches the old and the new forms of a node."""

from __future__ import annotations

from typing import Any

import pytest
from matching import F32, Constants, attempt, ints, reason

from surgeon.match import Match

FORMS: dict[str, dict[int, tuple[str, Constants]]] = {
    "y = ReduceMean <axes = [1], keepdims = 1> (x)": {
        11: ("y = ReduceMean <axes = [1]> (x)", {}),
        13: ("y = ReduceMean <axes = [1]> (x)", {}),
        18: ("y = ReduceMean (x, k)", {"k": ints(1)}),
    },
    "y = ReduceSum <axes = [1]> (x)": {
        11: ("y = ReduceSum <axes = [1]> (x)", {}),
        13: ("y = ReduceSum (x, k)", {"k": ints(1)}),
    },
    "y = Squeeze <axes = [1]> (x)": {
        11: ("y = Squeeze <axes = [1]> (x)", {}),
        13: ("y = Squeeze (x, k)", {"k": ints(1)}),
    },
    "y = Unsqueeze <axes = [0, 3]> (x)": {
        11: ("y = Unsqueeze <axes = [0, 3]> (x)", {}),
        18: ("y = Unsqueeze (x, k)", {"k": ints(0, 3)}),
    },
    "y = Clip <min = 0.0, max = 6.0> (x)": {
        9: ("y = Clip <min = 0.0, max = 6.0> (x)", {}),
        11: ("y = Clip (x, k, m)", {"k": F32(0), "m": F32(6)}),
        18: ("y = Clip (x, k, m)", {"k": F32(0), "m": F32(6)}),
    },
    "y = Slice <starts = [1], ends = [3], axes = [1]> (x)": {
        9: ("y = Slice <starts = [1], ends = [3], axes = [1]> (x)", {}),
        13: ("y = Slice (x, k, m, k)", {"k": ints(1), "m": ints(3)}),
    },
    "y = Pad <pads = [0, 1, 0, 0, 1, 0]> (x)": {
        9: ("y = Pad <pads = [0, 1, 0, 0, 1, 0]> (x)", {}),
        13: ("y = Pad (x, k)", {"k": ints(0, 1, 0, 0, 1, 0)}),
    },
}


def _by_form() -> list[Any]:
    return [
        pytest.param(pattern, opset, id=f"{pattern.split()[2]}-{opset}")
        for pattern, forms in FORMS.items()
        for opset in forms
    ]


@pytest.mark.parametrize(("pattern", "opset"), _by_form())
def test_a_pattern_in_the_old_form_matches_every_form(pattern: str, opset: int) -> None:
    body, constants = FORMS[pattern][opset]
    found = attempt(pattern, body, inputs="float[b,1,t] x", opset=opset, constants=constants)
    assert isinstance(found, Match), found.reason()


NEW = {
    "y = ReduceMean (x, axes)": "y = ReduceMean <axes = [1], keepdims = 1> (x)",
    "y = ReduceSum (x, axes)": "y = ReduceSum <axes = [1]> (x)",
    "y = Squeeze (x, axes)": "y = Squeeze <axes = [1]> (x)",
    "y = Unsqueeze (x, axes)": "y = Unsqueeze <axes = [0, 3]> (x)",
    "y = Clip (x, low, high)": "y = Clip <min = 0.0, max = 6.0> (x)",
    "y = Slice (x, starts, ends, axes)": "y = Slice <starts = [1], ends = [3], axes = [1]> (x)",
    "y = Pad (x, pads)": "y = Pad <pads = [0, 1, 0, 0, 1, 0]> (x)",
}


@pytest.mark.parametrize("pattern", NEW)
def test_a_pattern_in_the_new_form_matches_every_form(pattern: str) -> None:
    for opset, (body, constants) in FORMS[NEW[pattern]].items():
        found = attempt(pattern, body, inputs="float[b,1,t] x", opset=opset, constants=constants)
        assert isinstance(found, Match), (opset, found.reason())


def test_values_and_captures_of_arguments_that_moved() -> None:
    kwargs: dict[str, Any] = {"inputs": "float[b,1,t] x"}
    pattern = "y = ReduceMean <axes = @axes> (x)"
    for opset, body in ((17, "y = ReduceMean <axes = [1, 2]> (x)"), (18, "y = ReduceMean (x, k)")):
        found = attempt(pattern, body, opset=opset, constants={"k": ints(1, 2)}, **kwargs)
        assert isinstance(found, Match)
        assert found.attributes["axes"] == [1, 2]
    found = attempt("y = ReduceMean <axes = [2]> (x)", "y = ReduceMean <axes = [1]> (x)", **kwargs)
    assert reason(found) == "input 1 of node 'y' (ai.onnx.ReduceMean) is [1], not [2]"
    unknown = attempt(
        pattern, "y = ReduceMean (x, k)", opset=18, inputs="float[b,1,t] x, int64[n] k"
    )
    assert reason(unknown) == "input 1 of node 'y' (ai.onnx.ReduceMean) is not a known value"
    absent = attempt(pattern, "y = ReduceMean (x)", opset=18, **kwargs)
    assert reason(absent) == "node 'y' (ai.onnx.ReduceMean) has no input 1"


@pytest.mark.parametrize(
    ("opset", "axis", "matches"), [(11, 1, True), (11, 0, False), (13, 0, True)]
)
def test_softmax_changed_its_meaning(opset: int, axis: int, matches: bool) -> None:
    """Before opset 13 it ran over all axes from `axis` on."""
    found = attempt("y = Softmax (x)", f"y = Softmax <axis = {axis}> (x)", opset=opset)
    assert isinstance(found, Match) == matches
    if matches and opset == 11:
        assert isinstance(
            attempt("y = Softmax <axis = -1> (x)", "y = Softmax <axis = 1> (x)", opset=11), Match
        )
