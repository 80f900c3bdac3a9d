"""Operators that few runtimes have, against numpy, at what the cases do not show."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import parser

import surgeon


def repaired(text: str) -> onnx.ModelProto:
    model = parser.parse_model(text)
    result = surgeon.apply(model, "rare-forms", require="equivalent")
    assert result.report.fired
    return result.model.to_proto()


def run(model: onnx.ModelProto, **inputs: np.ndarray) -> list[np.ndarray]:
    return onnxruntime.InferenceSession(model.SerializeToString()).run(None, inputs)


@pytest.mark.parametrize("operator", ["And", "Or", "Xor"])
@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_bits_of_every_sign_and_size(operator: str, dtype: str) -> None:
    model = repaired(
        f"""<ir_version: 8, opset_import: ["": 18]>
        g ({dtype}[n] a, {dtype}[n] b) => ({dtype}[n] y) {{ y = Bitwise{operator} (a, b) }}"""
    )
    assert not any(node.op_type.startswith("Bitwise") for node in model.graph.node)
    rng, bounds = np.random.default_rng(0), np.iinfo(dtype)
    ends = [bounds.min, bounds.max, 0, -1, 1]
    a = np.array([*ends, *rng.integers(bounds.min, bounds.max, 50), *rng.integers(-9, 9, 45)])
    a, b = a.astype(dtype), rng.permutation(a).astype(dtype)
    function = getattr(np, f"bitwise_{operator.lower()}")
    np.testing.assert_array_equal(run(model, a=a, b=b)[0], function(a, b))


@pytest.mark.parametrize("size", [1, 3, 5, 40])
def test_determinants(size: int) -> None:
    model = repaired(
        f"""<ir_version: 8, opset_import: ["": 13]>
        g (float[n,{size},{size}] x) => (float[n] y) {{ y = Det (x) }}"""
    )
    rng = np.random.default_rng(size)
    x = (rng.normal(size=(4, size, size)) / np.sqrt(size)).astype(np.float32)
    x[1] = x[1][::-1]  # a swap of rows, and a singular matrix
    x[2, -1] = x[2, 0] if size > 1 else 0
    expected = np.linalg.det(x.astype(np.float64))
    np.testing.assert_allclose(run(model, x=x)[0], expected, atol=1e-5 * np.abs(expected).max())


@pytest.mark.parametrize("ceil", [0, 1])
@pytest.mark.parametrize("places", [False, True])
def test_pools_with_dilations(*, ceil: int, places: bool) -> None:
    found = "y, i" if places else "y"
    outputs = "float[2,3,h,w] y" + (", int64[2,3,h,w] i" if places else "")
    text = f"""<ir_version: 8, opset_import: ["": 13]>
        g (float[2,3,8,9] x) => ({outputs}) {{
          {found} = MaxPool <ceil_mode = {ceil}, dilations = [2, 1], kernel_shape = [2, 3],
            pads = [1, 1, 0, 1], strides = [2, 3]> (x)
        }}"""
    model = repaired(text)
    assert all(node.op_type != "MaxPool" for node in model.graph.node)
    x = np.random.default_rng(1).integers(-3, 3, (2, 3, 8, 9)).astype(np.float32)  # with equals
    for got, expected in zip(run(model, x=x), run(parser.parse_model(text), x=x), strict=True):
        np.testing.assert_array_equal(got, expected)


def test_what_is_dilated_and_strided_by_axis_and_group() -> None:
    rng = np.random.default_rng(2)
    weights = ", ".join(map(str, rng.integers(-5, 5, 4 * 2 * 2 * 3)))
    text = f"""<ir_version: 8, opset_import: ["": 13]>
        g (float[n,4,h,w] x) => (float[n,4,p,q] y) <float[4,2,2,3] k = {{{weights}}}> {{
          y = ConvTranspose <dilations = [3, 1], group = 2, pads = [1, 0, 0, 2],
            strides = [1, 2]> (x, k)
        }}"""
    model = repaired(text)
    x = rng.integers(-4, 4, (2, 4, 5, 6)).astype(np.float32)
    np.testing.assert_array_equal(run(model, x=x)[0], run(parser.parse_model(text), x=x)[0])


def test_what_counts_by_nonzero_is_counted_by_range_once_the_opset_is_raised() -> None:
    model = parser.parse_model(
        """<ir_version: 4, opset_import: ["": 9]>
        g (float[n,3] x) => (int64[1,k] y) <int64[1] one = {0}> {
          s = Shape (x)
          n = Gather <axis = 0> (s, one)
          o = ConstantOfShape <value = int64[1] {1}> (n)
          y = NonZero (o)
        }"""
    )
    result = surgeon.apply(model, "upsample-to-resize", "mask-forms")
    assert dict(result.report.fired) == {"mask-forms/known-places": 1}
    assert not result.report.refusals
