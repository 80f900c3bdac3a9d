"""AMD's quantisers in standard operators: the numbers are of the kernels that Quark 0.13 has.

Those were compiled once and run in onnxruntime; nothing here needs them.
"""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import surgeon
from surgeon.runtime import Session

TIES = [1, 0.0078125, -0.0078125, 0.0234375, -0.0234375, 0.5, 0.0390625, -0.0390625]
UNEVEN = [
    *(1.0, -0.5078125, 0.00390625, -0.01171875, 3.9921875, -3.99609375, 0.3, -7.99609375),
    *(0.01171875, 1e-3, -1e-3, 0.0),
]
ODD = [np.inf, -np.nan, 1.5, 0.3, -0.07, -np.inf, 3e38, 1e-40]
MIXED = [1.0, -0.3, 2.7, -5.1, 0.06, -0.0009, 3.3, 0.0]
FEW_BITS = {
    "fp8_e5m2": [1, -0.3125, 2.5, -5, 0.0625, -0.0008544921875, 3.5, 0],
    "fp8_e4m3": [1, -0.3125, 2.75, -5, 0.05859375, -0.00091552734375, 3.25, 0],
    "fp6_e3m2": [1, -0.3125, 2.5, -5, 0.0625, 0, 3.5, 0],
    "fp6_e2m3": [1, -0.25, 2.75, -5, 0, 0, 3.25, 0],
    "fp4_e2m1": [1, -0.5, 3, -6, 0, 0, 3, 0],
    "int8": [1, -0.3125, 2.6875, -5.125, 0.0625, 0, 3.3125, 0],
}
BLOCKS = [
    (
        {"rounding_mode": 0},
        TIES,
        [1, 0.015625, -0.015625, 0.03125, -0.03125, 0.5, 0.046875, -0.046875],
    ),
    ({"rounding_mode": 1}, TIES, [1, 0.015625, 0, 0.03125, -0.015625, 0.5, 0.046875, -0.03125]),
    ({"rounding_mode": 2}, TIES, [1, 0, 0, 0.03125, -0.03125, 0.5, 0.03125, -0.03125]),
    (
        {},
        UNEVEN,
        [1, -0.5, 0, 0, 4, -4, 0.3125, -7.9375, 0.01171875, 0.0009765625, -0.0009765625, 0],
    ),
    (
        {"rounding_mode": 2, "bit_width": 12, "block_size": 5},
        UNEVEN,
        [1, -0.5, 0, 0, 3.5, -4, 0, -7, 0, 0, -0.0009765625, 0],
    ),
    (
        {"bfp_method": "to_bfp_prime", "bit_width": 13, "rounding_mode": 2},
        MIXED,
        [1, -0.25, 2.5, -5, 0, 0, 3.25, 0],
    ),
    (
        {"rounding_mode": 2, "block_size": 4},
        ODD,
        [np.inf, np.nan, 1.5, 0.296875, 0, -np.inf, 3.00405527047391e38, 0],
    ),
]


def model_of(
    op: str, x: np.ndarray, constants: list[np.ndarray], to: int, opset: int, **attributes: object
) -> onnx.ModelProto:
    names = [f"c{index}" for index in range(len(constants))]
    graph = helper.make_graph(
        [helper.make_node(op, ["x", *names], ["y"], domain="com.amd.quark", **attributes)],
        "g",
        [helper.make_tensor_value_info("x", helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)],
        [helper.make_tensor_value_info("y", to, x.shape)],
        [numpy_helper.from_array(v, n) for n, v in zip(names, constants, strict=True)],
    )
    imports = [helper.make_opsetid("", opset), helper.make_opsetid("com.amd.quark", 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=8)


@pytest.mark.parametrize("place", range(len(BLOCKS)))
def test_blocks_of_floats_are_those_of_its_kernel(place: int) -> None:
    attributes, given, wanted = BLOCKS[place]
    x = np.array([given], np.float32)
    model = model_of("BFPQuantizeDequantize", x, [], onnx.TensorProto.FLOAT, 13, **attributes)
    result = surgeon.apply(model, "quark")
    assert result.report.status == "equivalent"
    (found,) = Session(result.model.to_proto()).run({"x": x}).values()
    np.testing.assert_array_equal(found, np.array([wanted], np.float32))


@pytest.mark.parametrize("kind", FEW_BITS)
def test_microscaling_is_that_of_its_kernel(kind: str) -> None:
    x = np.array([MIXED], np.float32)
    to = onnx.TensorProto.FLOAT
    model = model_of("MXQuantizeDequantize", x, [], to, 13, element_dtype=kind)
    (found,) = Session(surgeon.apply(model, "quark").model.to_proto()).run({"x": x}).values()
    np.testing.assert_array_equal(found, np.array([FEW_BITS[kind]], np.float32))


@pytest.mark.parametrize("opset", [13, 21])
@pytest.mark.parametrize(
    ("dtype", "wanted"),
    [
        ("int16", [7, 5, 10, 32767, -32768, 7007]),
        ("uint16", [7, 5, 10, 40007, 0, 7007]),
        ("int32", [7, 5, 10, 40007, -39993, 7007]),
    ],
)
def test_levels_are_those_of_its_kernel(dtype: str, wanted: list[int], opset: int) -> None:
    x = np.array([[0.00005, -0.00015, 0.00025, 4, -4, 0.7]], np.float32)
    zero = np.array(7, dtype)
    to = helper.np_dtype_to_tensor_dtype(zero.dtype)
    model = model_of("ExtendedQuantizeLinear", x, [np.array(1e-4, np.float32), zero], to, opset)
    (found,) = Session(surgeon.apply(model, "quark").model.to_proto()).run({"x": x}).values()
    assert found.dtype == dtype
    assert found.tolist() == [wanted]
