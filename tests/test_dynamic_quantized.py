"""The recipe `dynamic-quantized`: what onnxruntime's own quantizer writes, in floats."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import parser

import surgeon
from surgeon.runtime import Session

Array = np.ndarray[Any, Any]
F = np.float32
INTEGERS = {"DynamicQuantizeLinear", "ConvInteger", "MatMulInteger", "QuantizeLinear"}


def network() -> onnx.ModelProto:
    """Two convolutions, of which one has groups and pads, and a product behind them."""
    generator = np.random.default_rng(5)
    model = parser.parse_model(
        """
        <ir_version: 8, opset_import: ["": 13]>
        g (float[N,4,9,8] x) => (float[N,5] y) <int64[2] flat = {0, -1}>
        {
          a = Conv <pads = [1, 1, 1, 1], strides = [2, 1], group = 2> (x, w1, b1)
          b = Relu (a)
          c = Conv <pads = [0, 1, 0, 1]> (b, w2)
          d = Reshape (c, flat)
          e = MatMul (d, w3)
          y = Add (e, b3)
        }
        """
    )
    shapes = {"w1": (6, 2, 3, 3), "b1": (6,), "w2": (3, 6, 3, 3), "w3": (72, 5), "b3": (5,)}
    for name, shape in shapes.items():
        array = generator.normal(size=shape).astype(F)
        model.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    return model


def quantized(folder: Path, *, signed: bool = False, per_channel: bool = False) -> Path:
    """The network as onnxruntime quantises it; it runs ConvInteger of unsigned weights alone."""
    quantization = pytest.importorskip("onnxruntime.quantization")
    onnx.save(network(), folder / "network.onnx")
    kind = quantization.QuantType.QInt8 if signed else quantization.QuantType.QUInt8
    quantization.quantize_dynamic(
        folder / "network.onnx",
        folder / "quantized.onnx",
        op_types_to_quantize=["MatMul"] if signed else ["Conv", "MatMul"],
        weight_type=kind,
        per_channel=per_channel,
        reduce_range=signed,  # of 8 bits, onnxruntime's sums saturate on processors without VNNI
    )
    return folder / "quantized.onnx"


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("per_channel", [False, True])
def test_what_the_quantizer_writes_computes_the_same_in_floats(
    tmp_path: Path, signed: bool, per_channel: bool
) -> None:
    path = quantized(tmp_path, signed=signed, per_channel=per_channel)
    before = onnx.load(path)
    assert INTEGERS & {node.op_type for node in before.graph.node}
    result = surgeon.apply(path, "dynamic-quantized")
    assert result.report.status == "equivalent"
    mended = result.model.to_proto()
    assert not INTEGERS & {node.op_type for node in mended.graph.node}
    x = np.random.default_rng(1).normal(size=(3, 4, 9, 8)).astype(F)
    expected = Session(before).run({"x": x})["y"]
    np.testing.assert_allclose(Session(mended).run({"x": x})["y"], expected, rtol=1e-4, atol=1e-4)


def test_without_rounding_the_network_is_as_small_as_it_was(tmp_path: Path) -> None:
    path = quantized(tmp_path)
    result = surgeon.apply(path, "dynamic-quantized", "clean", allow=["approximate"])
    assert result.report.status == "equivalent"
    mended = result.model.to_proto()
    counts = Counter(node.op_type for node in mended.graph.node)
    assert counts == {"Conv": 2, "Relu": 1, "Reshape": 1, "Gemm": 1}
    x = np.random.default_rng(1).normal(size=(3, 4, 9, 8)).astype(F)
    expected = Session(network()).run({"x": x})["y"]
    found = Session(mended).run({"x": x})["y"]
    assert np.abs(found - expected).max() < 0.02 * np.ptp(expected)


def test_levels_are_those_that_onnx_documents() -> None:
    text = """
        <ir_version: 8, opset_import: ["": 11]>
        g (float[N] x) => (uint8[N] q, float s, uint8 z) { q, s, z = DynamicQuantizeLinear (x) }
    """
    model = parser.parse_model(text)
    mended = surgeon.apply(model, "dynamic-quantized").model.to_proto()
    assert not INTEGERS & {node.op_type for node in mended.graph.node}
    cases = [
        # from ONNX's documentation: a scale of 3.5 / 255, of which 0 is 2 / 3.5 of the way
        ([0, 2, -1.5, -0.5, 1, 0.5], 109, [109, 255, 0, 73, 182, 145]),
        ([1, 2.1, 4], 0, [64, 134, 255]),
        ([-1, -2.1, -4], 255, [191, 121, 0]),
        ([0, 0], 0, [0, 0]),
    ]
    for x, zero, levels in cases:
        for each in (model, mended):
            found = Session(each).run({"x": np.asarray(x, F)})
            assert int(found["z"]) == zero
            assert found["q"].tolist() == levels
            span = max([*x, 0]) - min([*x, 0])
            np.testing.assert_allclose(found["s"], span / 255 if span else 1, rtol=1e-6)


@pytest.mark.parametrize(("weight", "fires"), [(129, 1), (130, 0)])
def test_integers_are_summed_as_floats_below_two_to_the_24(weight: int, fires: int) -> None:
    weights = ", ".join([str(weight)] * 510)
    model = parser.parse_model(
        f"""
        <ir_version: 8, opset_import: ["": 13]>
        g (uint8[N,510] x) => (int32[N,1] y) <uint8[510,1] w = {{{weights}}}, uint8 z = {{0}}>
        {{ y = MatMulInteger (x, w, z) }}
        """
    )
    result = surgeon.apply(model, "dynamic-quantized")
    assert result.report.fired.get("dynamic-quantized/product-of-integers", 0) == fires
    x = np.full((2, 510), 255, np.uint8)
    found = Session(result.model.to_proto()).run({"x": x})["y"]
    assert found.tolist() == [[510 * 255 * weight]] * 2
    if not fires:
        (miss,) = (m for m in result.report.misses if m.rule == "product-of-integers")
        assert "its sums go up to 16906500" in miss.reason
