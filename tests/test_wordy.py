"""Defaults that ONNX states in words count where a file leaves the attribute out."""

from __future__ import annotations

import pytest
from matching import attempt, reason

from surgeon.match import Match

CONV, LINE = "float[n,2,h,w] x, float[2,2,3,1] k", "float[n,c,l] x"


@pytest.mark.parametrize(
    ("pattern", "inputs", "body", "captured"),
    [
        ("y = Conv <strides = @a> (x, w)", CONV, "y = Conv (x, k)", [1, 1]),
        ("y = Conv <pads = @a> (x, w)", CONV, "y = Conv (x, k)", [0, 0, 0, 0]),
        ("y = Conv <kernel_shape = @a> (x, w)", CONV, "y = Conv (x, k)", [3, 1]),
        (
            "y = MaxPool <dilations = @a> (x)",
            "float[n,c,l] x",
            "y = MaxPool <kernel_shape = [2]> (x)",
            [1],
        ),
        ("y = Transpose <perm = @a> (x)", "float[n,c,l] x", "y = Transpose (x)", [2, 1, 0]),
    ],
)
def test_what_is_left_out_is_what_the_standard_says(
    pattern: str, inputs: str, body: str, captured: list[int]
) -> None:
    found = attempt(pattern, body, inputs=inputs)
    assert isinstance(found, Match)
    assert found.attributes["a"] == captured


@pytest.mark.parametrize("mode", ["SAME_UPPER", "SAME_LOWER"])
def test_pads_that_are_worked_out_are_no_zeros(mode: str) -> None:
    found = attempt(
        "y = Conv <pads = @a> (x, w)", f'y = Conv <auto_pad = "{mode}"> (x, k)', inputs=CONV
    )
    assert reason(found) == "node 'y' (ai.onnx.Conv) has no attribute `pads`"
