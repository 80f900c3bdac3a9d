"""A file that does not compute what was recorded of its module: the file is named, no rewrite."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import parser

import surgeon

MODEL = """
<ir_version: 8, opset_import: ["": 17]>
g (float[N, 3] x) => (float[N, 3] y) { n = Neg (x) m = Neg (n) y = Relu (m) }"""


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    x = np.array([[1, -2, 3], [-4, 5, 0]], "f")
    np.savez(tmp_path / "sine.npz", **{"in.x": x, "out.y": np.sin(x)})
    np.savez(tmp_path / "relu.npz", **{"in.x": x, "out.y": np.maximum(x, 0)})
    return tmp_path


def test_the_original_is_compared_too_where_the_result_differs(recorded: Path) -> None:
    model = parser.parse_model(MODEL)
    with pytest.raises(surgeon.VerifyError) as caught:
        surgeon.apply(model, "clean", reference=recorded / "sine.npz")
    assert "the original differs from what was recorded too" in caught.value.what
    assert caught.value.mend.startswith("Export the model again")


def test_a_rewrite_that_is_wrong_is_not_excused(recorded: Path) -> None:
    wrong = surgeon.Recipe.parse(
        "surgeon: 1\nname: wrong\nrules:\n  - id: wrong\n    why: It is not.\n    exact: bit\n"
        "    match: y = Relu (x)\n    replace: y = Abs (x)\n"
    )
    with pytest.raises(surgeon.VerifyError) as caught:
        surgeon.apply(
            parser.parse_model(MODEL), wrong, check=False, reference=recorded / "relu.npz"
        )
    assert "the original" not in caught.value.what
    assert "wrong/wrong" in caught.value.what
