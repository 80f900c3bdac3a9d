"""Windows by `unfold` of a dimension counted from behind, as PyTorch's exporter misplaces them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import parser

import surgeon

# What torch.onnx (2.13, the exporter of TorchScript) writes of `x.unfold(-2, 2, 1)`, x [2, 4, 3].
WRITTEN = """
<ir_version: 8, opset_import: ["": {opset}]>
g (float[2,4,3] x) => (float[p,q,r,s] y) <
    int64[1] zero = {{0}}, int64[1] one = {{1}}, int64[1] two = {{2}}, int64[1] three = {{3}},
    int64[1] four = {{4}}, int64[1] d = {{-2}}
> {{
    a = Slice (x, zero, two, d)
    b = Slice (x, one, three, d)
    c = Slice (x, two, four, d)
    e = Transpose <perm = [0, 2, 1]> (a)
    f = Transpose <perm = [0, 2, 1]> (b)
    h = Transpose <perm = [0, 2, 1]> (c)
    i = Unsqueeze (e, d)
    j = Unsqueeze (f, d)
    k = Unsqueeze (h, d)
    y = Concat <axis = {axis}> (i, j, k)
}}
"""


def _windows(x: np.ndarray) -> np.ndarray:
    """As PyTorch documents `Tensor.unfold`: windows in place, their elements last."""
    return np.stack([x[:, n : n + 2].swapaxes(1, 2) for n in range(3)], axis=1)


@pytest.mark.parametrize("recipes", [["unfold-axes"], ["unfold-axes", "aten", "clean"]])
def test_windows_stand_where_pytorch_has_them(recipes: list[str]) -> None:
    result = surgeon.apply(parser.parse_model(WRITTEN.format(opset=13, axis=-2)), *recipes)
    made = result.model.to_proto()
    x = np.arange(24, dtype=np.float32).reshape(2, 4, 3)
    session = ort.InferenceSession(made.SerializeToString())
    np.testing.assert_array_equal(session.run(None, {"x": x})[0], _windows(x))
    assert not any("unfold" in remark for remark in result.report.remarks)
    again = surgeon.apply(made, "clean")
    assert not any("unfold" in remark for remark in again.report.remarks)


def test_they_are_named_and_stay_where_nobody_asks(tmp_path: Path) -> None:
    model = parser.parse_model(WRITTEN.format(opset=13, axis=-2))
    result = surgeon.apply(model, "clean", require="equivalent")
    assert any("`y` stacks windows" in remark for remark in result.report.remarks)
    onnx.save(model, tmp_path / "windows.onnx")
    assert surgeon.inspect(tmp_path / "windows.onnx").misexported == {"unfold-axes": ("y",)}


def test_other_stacks_are_not() -> None:
    model = parser.parse_model(WRITTEN.format(opset=13, axis=2))
    assert surgeon.inspect(model).misexported == {}
    result = surgeon.apply(model, "unfold-axes", "clean")
    assert "`unfold-axes/windows-from-behind` found nothing to change" in result.report.remarks


# What it writes of `x.unfold(-1, 2, 1)`, x [2, 3, 4]: what is last is not turned.
LAST = """
<ir_version: {ir}, opset_import: ["": {opset}]>
g (float[2,3,4] x) => (float[p,q,r,s] y) {{
    zero = Constant <value = int64[1] {{0}}> ()
    one = Constant <value = int64[1] {{1}}> ()
    two = Constant <value = int64[1] {{2}}> ()
    three = Constant <value = int64[1] {{3}}> ()
    four = Constant <value = int64[1] {{4}}> ()
    d = Constant <value = int64[1] {{-1}}> ()
    a = Slice {nine[0]}
    b = Slice {nine[1]}
    c = Slice {nine[2]}
    i = Unsqueeze {new[0]}
    j = Unsqueeze {new[1]}
    k = Unsqueeze {new[2]}
    y = Concat <axis = -1> (i, j, k)
}}
"""


def _last(opset: int) -> onnx.ModelProto:
    ends = ["zero", "one", "two", "three", "four"]
    nine = [
        f"<starts = [{n}], ends = [{n + 2}], axes = [-1]> (x)"
        if opset < 10
        else f"(x, {ends[n]}, {ends[n + 2]}, d)"
        for n in range(3)
    ]
    new = [f"<axes = [-1]> ({each})" if opset < 13 else f"({each}, d)" for each in "abc"]
    return parser.parse_model(LAST.format(ir=8, opset=opset, nine=nine, new=new))


@pytest.mark.parametrize("opset", [9, 11, 17])
def test_windows_of_the_last_axis(opset: int, tmp_path: Path) -> None:
    onnx.save(_last(opset), tmp_path / "windows.onnx")
    assert surgeon.inspect(tmp_path / "windows.onnx").misexported == {"unfold-axes": ("y",)}
    made = surgeon.apply(tmp_path / "windows.onnx", "unfold-axes").model.to_proto()
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    session = ort.InferenceSession(made.SerializeToString())
    wanted = np.stack([x[:, :, n : n + 2] for n in range(3)], axis=2)
    np.testing.assert_array_equal(session.run(None, {"x": x})[0], wanted)


@pytest.mark.parametrize("steps", [", d", ", d, e"])
def test_two_halves_of_the_last_axis_are_somebody_s_own(steps: str) -> None:
    model = parser.parse_model(
        '<ir_version: 8, opset_import: ["": 17]> g (float[n,8] x) => (float[n,4,2] y) '
        "<int64[1] a = {0}, int64[1] b = {4}, int64[1] c = {8}, int64[1] d = {-1}, int64[1] e = {1}"
        f"> {{ l = Slice (x, a, b{steps}) r = Slice (x, b, c{steps}) i = Unsqueeze (l, d)"
        " j = Unsqueeze (r, d) y = Concat <axis = -1> (i, j) }"
    )
    assert not surgeon.inspect(model).misexported


def test_a_stack_of_something_else_stays_beside_windows() -> None:
    text = WRITTEN.format(opset=17, axis=-2)
    text = text.replace("(float[p,q,r,s] y)", "(float[p,q,r,s] y, float[2,4,3,2] z)")
    text = text.replace("int64[1] d = {-2}", "int64[1] d = {-2}, int64[1] last = {-1}")
    stack = "n = Neg (x) l = Unsqueeze (x, last) m = Unsqueeze (n, last)"
    text = text.replace("y = Concat", f"{stack} z = Concat <axis = -1> (l, m) y = Concat")
    result = surgeon.apply(parser.parse_model(text), "unfold-axes")
    x = np.random.default_rng(0).normal(size=(2, 4, 3)).astype(np.float32)
    session = ort.InferenceSession(result.model.to_proto().SerializeToString())
    y, z = session.run(None, {"x": x})
    np.testing.assert_array_equal(y, _windows(x))
    np.testing.assert_array_equal(z, np.stack([x, -x], -1))
