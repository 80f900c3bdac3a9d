"""Sums at indices, of which PyTorch's exporter loses all but the last of a place."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import parser

import surgeon

HEAD = '<ir_version: 7, opset_import: ["": {opset}]>\n'
# What torch.onnx (2.13, the exporter of TorchScript) writes of
# `x.index_add(0, i, v)`: the index is expanded over the rows.
ROWS = """g (float[n,3] x, int64[e] i, float[e,3] v) => (float[n,3] y)
    <int64[2] column = {{-1, 1}}> {{
    c = Reshape (i, column)
    size = Shape (v)
    index = Expand (c, size)
    all = Shape (x)
    zeros = ConstantOfShape (all)
    s = ScatterElements <axis = 0> (zeros, index, v)
    y = Add (x, s)
}}"""
# `x.index_put((i,), v, accumulate=True)`, and of two indices
PUT = """g (float[n,3] x, int64[e] i, float[e,3] v) => (float[n,3] y)
    <int64[2] column = {{-1, 1}}> {{
    c = Reshape (i, column)
    all = Shape (x)
    zeros = ConstantOfShape (all)
    s = ScatterND (zeros, c, v)
    y = Add (x, s)
}}"""
PUT_TWO = """g (float[n,3] x, int64[e] i, float[e] v) => (float[n,3] y)
    <int64[2] column = {{-1, 1}}, int64 three = {{3}}> {{
    r = Reshape (i, column)
    m = Mod (i, three)
    q = Reshape (m, column)
    c = Concat <axis = -1> (r, q)
    all = Shape (x)
    zeros = ConstantOfShape (all)
    s = ScatterND (zeros, c, v)
    y = Add (x, s)
}}"""


def _rows(x: np.ndarray, i: np.ndarray, v: np.ndarray) -> np.ndarray:
    y = x.copy()
    np.add.at(y, i, v)
    return y


def _pairs(x: np.ndarray, i: np.ndarray, v: np.ndarray) -> np.ndarray:
    y = x.copy()
    np.add.at(y, (i, i % 3), v)
    return y


KINDS = [(ROWS, _rows), (PUT, _rows), (PUT_TWO, _pairs)]
FEEDS = [
    (np.array([0, 0, 1, 2, 2, 0]), 4),
    (np.array([3, 1]), 5),
    (np.array([-1, 2, -1]), 3),
    (np.array([], np.int64), 2),
]


@pytest.mark.parametrize("opset", [11, 13, 16, 18])
@pytest.mark.parametrize(("text", "meant"), KINDS)
@pytest.mark.parametrize("recipes", [["lost-sums"], ["lost-sums", "clean"]])
def test_what_falls_on_one_place_is_added_up(
    text: str, meant: Callable[..., np.ndarray], opset: int, recipes: list[str]
) -> None:
    model = parser.parse_model((HEAD + text).format(opset=opset))
    result = surgeon.apply(model, *recipes)
    session = ort.InferenceSession(result.model.to_proto().SerializeToString())
    random = np.random.default_rng(0)
    for index, rows in FEEDS:
        if (index < 0).any() and text is ROWS:  # PyTorch takes none below 0 there
            continue
        x = random.standard_normal((rows, 3)).astype(np.float32)
        shape = (index.size, 3)[: 1 if text is PUT_TWO else 2]
        v = random.standard_normal(shape).astype(np.float32)
        index = np.where(index < 0, index + rows, index) if text is PUT_TWO else index
        (y,) = session.run(None, {"x": x, "i": index, "v": v})
        np.testing.assert_allclose(y, meant(x, index, v), rtol=1e-5, atol=1e-6)
    assert not any("index_add" in remark for remark in result.report.remarks[1:])


def test_what_they_are_added_to_may_be_of_any_rank() -> None:
    text = ROWS.replace("y = Add (x, s)", "w = my.Op (x)\n y = Add (w, s)")
    text = text.replace("all = Shape (x)", "all = Shape (w)").replace(
        "float[n,3] y", "float[p,q] y"
    )
    lines = [line.strip() for line in text.splitlines()]
    lines.insert(4, lines.pop(lines.index("w = my.Op (x)")))
    head = HEAD.replace("]>", ', "my": 1]>')
    model = parser.parse_model((head + "\n".join(lines)).format(opset=18))
    result = surgeon.apply(model, "lost-sums")
    written = result.model.to_proto().graph.node[-1]
    assert written.op_type == "ScatterElements"
    assert written.input[0] == "w"


def test_they_are_named_and_stay_where_nobody_asks(tmp_path: Path) -> None:
    model = parser.parse_model((HEAD + ROWS).format(opset=13))
    result = surgeon.apply(model, "clean", require="equivalent")
    assert any("`y` adds what is written" in remark for remark in result.report.remarks)
    onnx.save(model, tmp_path / "sums.onnx")
    assert surgeon.inspect(tmp_path / "sums.onnx").misexported == {"lost-sums": ("y",)}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("<axis = 0>", '<axis = 0, reduction = "add">'),
        ("ScatterElements <axis = 0> (zeros,", "ScatterElements <axis = 0> (x,"),
        ("y = Add (x, s)", "y = Sub (x, s)"),
    ],
)
def test_other_sums_are_not(old: str, new: str) -> None:
    model = parser.parse_model((HEAD + ROWS.replace(old, new)).format(opset=16))
    assert surgeon.inspect(model).misexported == {}
    result = surgeon.apply(model, "lost-sums", "clean")
    assert "`lost-sums/sum-at-places` found nothing to change" in result.report.remarks
