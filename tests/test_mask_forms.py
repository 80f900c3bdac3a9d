"""What `mask-forms` makes of selections, at masks that hold nowhere, everywhere and in between."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import onnx
import pytest

import surgeon
from surgeon.runtime import Session

SELECTED = """
<ir_version: 8, opset_import: ["": 13]>
g (float[n,4] x, bool[n,4] m) => (float y) {{
  p = NonZero (m)
  i = Transpose <perm = [1, 0]> (p)
  s = GatherND (x, i)
  e = Exp (s)
  y = {operator} <keepdims = 0> (e)
}}
"""
PUT = """
<ir_version: 8, opset_import: ["": 13]>
g (float[n,4] x, bool[n,4] m, float[n,4] source) => (float[n,4] y)
  <int64[1] flat = {-1}, int64[1] first = {0}, int64[1] one = {1}> {
  q = NonZero (m)
  j = Transpose <perm = [1, 0]> (q)
  r = Reshape (source, flat)
  t = Shape (j)
  l = Slice (t, first, one)
  u = Slice (r, first, l, first)
  y = ScatterND (x, j, u)
}
"""
X = np.random.default_rng(2).normal(size=(5, 4)).astype(np.float32)
MASKS = {
    "nowhere": np.zeros((5, 4), bool),
    "everywhere": np.ones((5, 4), bool),
    "somewhere": X > 0.3,
    "once": np.arange(20).reshape(5, 4) == 7,
}
by_mask = pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS)


def both(text: str, **feeds: Any) -> tuple[Any, Any]:
    """The output of a model, and of what is made of it, without NonZero."""
    model = onnx.parser.parse_model(text)
    result = surgeon.apply(model, "mask-forms", verify=False)
    assert "NonZero" not in result.report.after
    return Session(model).run(feeds)["y"], Session(result.model.to_proto()).run(feeds)["y"]


@by_mask
@pytest.mark.parametrize(
    "operator",
    [
        *("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd"),
        *("ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSum"),
    ],
)
def test_a_reduction_is_that_of_the_selection(operator: str, mask: Any) -> None:
    expected, got = both(SELECTED.format(operator=operator), x=X, m=mask)
    assert got.shape == expected.shape
    assert np.allclose(got, expected, rtol=1e-5)


@by_mask
def test_a_source_goes_in_order_to_where_the_mask_holds(mask: Any) -> None:
    source = np.arange(20, dtype=np.float32).reshape(5, 4)
    expected = X.copy()
    expected[mask] = source.reshape(-1)[: mask.sum()]
    for found in both(PUT, x=X, m=mask, source=source):
        assert np.array_equal(found, expected)


LINES = """
<ir_version: 8, opset_import: ["": 17]>
g (float[n,4,3] x, bool[n,4] m, float[5,3] w, float[5] v, float[5,3] w2, float[3] s)
  => (float[n,4,3] y)
  <int64[1] flat = {{-1}}, int64[1] first = {{0}}, int64[1] one = {{1}}, int64[1] last = {{2}}> {{
  p = NonZero (m)
  i = Transpose <perm = [1, 0]> (p)
  g = GatherND (x, i)
  h = Gemm <transB = 1> (g, w, v)
  r = Relu (h)
  k = MatMul (r, w2)
  z = {along} (k{more})
  u = Unsqueeze (m, last)
  d = Shape (x)
  e = Expand (u, d)
  q = NonZero (e)
  j = Transpose <perm = [1, 0]> (q)
  f = Reshape (z, flat)
  c = Shape (j)
  l = Slice (c, first, one)
  a = Slice (f, first, l, first)
  y = ScatterND (x, j, a)
}}
"""


@by_mask
@pytest.mark.parametrize(
    ("along", "more"),
    [("Softmax <axis = -1>", ""), ("LayerNormalization <axis = -1>", ", s"), ("Identity", "")],
)
def test_lines_are_computed_everywhere_and_put_where_the_mask_holds(
    mask: Any, along: str, more: str
) -> None:
    draw = np.random.default_rng(5)
    shapes = {"x": (5, 4, 3), "w": (5, 3), "v": (5,), "w2": (5, 3), "s": (3,)}
    feeds = {n: draw.normal(size=shape).astype(np.float32) for n, shape in shapes.items()}
    feeds["x"][~mask] = np.inf  # of what stays nothing may reach what is put beside it
    expected, y = both(LINES.format(along=along, more=more), m=mask, **feeds)
    assert np.allclose(y[mask], expected[mask], rtol=1e-5, atol=1e-6)
    assert np.array_equal(y[~mask], expected[~mask])


def exported(torch: Any, *, lists: bool) -> onnx.ModelProto:
    """`x[mask] = row` as PyTorch's older exporter writes it."""

    class Assign(torch.nn.Module):  # type: ignore[misc, name-defined]
        def forward(self, x: Any, mask: Any, row: Any) -> Any:
            y = x.clone()
            y[mask] = row[None] if lists else row
            return y

    file = io.BytesIO()
    arguments = (torch.randn(4, 5, 3), torch.rand(4, 5) > 0.5, torch.randn(3))
    names = ["x", "mask", "row"]
    axes = {"x": {0: "b"}, "mask": {0: "b"}}
    torch.onnx.export(
        Assign(), arguments, file, dynamo=False, opset_version=17, input_names=names,
        dynamic_axes=axes,
    )  # fmt: skip
    return onnx.load_model_from_string(file.getvalue())


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("lists", [False, True])
def test_one_row_for_all_places_as_pytorch_exports_it(lists: bool) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    result = surgeon.apply(exported(torch, lists=lists), "aten")
    assert "ScatterND" not in [node.op_type for node in result.model.to_proto().graph.node]
    session = Session(result.model.to_proto())
    x = np.random.default_rng(3).normal(size=(2, 5, 3)).astype(np.float32)
    row = np.array([7, 8, 9], np.float32)
    for share in (-9.0, 0.0, 0.4, 9.0):
        mask = x[..., 0] > share
        (found,) = session.run({"x": x, "mask": mask, "row": row}).values()
        np.testing.assert_array_equal(found, np.where(mask[..., None], row, x))
