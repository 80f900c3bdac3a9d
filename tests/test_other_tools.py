"""Quantised files of other tools: what they are lowered to computes what their tools document."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

import surgeon
from surgeon.reference import open_reference
from surgeon.runtime import Session

Array = np.ndarray[Any, Any]
F = onnx.TensorProto.FLOAT
NUMBERS = (5.5, 2.5, 1.6, 1.1, 1.0, -1.0, -1.1, -1.6, -2.5, -5.5)
# QONNX's document of IntQuant, "Rounding modes".
ROUNDINGS = {
    "ROUND": (6, 2, 2, 1, 1, -1, -1, -2, -2, -6),
    "HALF_EVEN": (6, 2, 2, 1, 1, -1, -1, -2, -2, -6),
    "CEIL": (6, 3, 2, 2, 1, -1, -1, -1, -2, -5),
    "FLOOR": (5, 2, 1, 1, 1, -1, -2, -2, -3, -6),
    "UP": (6, 3, 2, 2, 1, -1, -2, -2, -3, -6),
    "DOWN": (5, 2, 1, 1, 1, -1, -1, -1, -2, -5),
    "ROUND_TO_ZERO": (5, 2, 1, 1, 1, -1, -1, -1, -2, -5),
    "HALF_UP": (6, 3, 2, 1, 1, -1, -1, -2, -3, -6),
    "HALF_DOWN": (5, 2, 2, 1, 1, -1, -1, -2, -2, -5),
}


def model_of(
    nodes: list[onnx.NodeProto], constants: dict[str, Any], shape: list[Any], opset: int
) -> onnx.ModelProto:
    """A model of one input and one output, both in single precision."""
    domains = dict.fromkeys(node.domain for node in nodes if node.domain)
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", F, shape)],
        [helper.make_tensor_value_info("y", F, [None] * len(shape))],
        [onnx.numpy_helper.from_array(np.asarray(v), k) for k, v in constants.items()],
    )
    sets = [helper.make_opsetid("", opset), *(helper.make_opsetid(name, 1) for name in domains)]
    return helper.make_model(graph, opset_imports=sets, ir_version=10 if opset > 20 else 8)


def both(model: onnx.ModelProto, x: Array, *recipes: str, allow: tuple[str, ...] = ()) -> Array:
    """What the result computes, which has to be what the witness says of the original."""
    result = surgeon.apply(model, *recipes, allow=allow)
    assert result.report.verdict is not None
    assert result.report.verdict.status == "equivalent"
    mended = result.model.to_proto()
    assert {node.domain for node in mended.graph.node} <= {"", "ai.onnx"}
    found: Array = Session(mended).run({"x": x}, ["y"])["y"]
    expected = open_reference(model).run({"x": x}, ["y"])["y"]
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)
    return found


@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize("mode", ROUNDINGS)
def test_whole_numbers_are_rounded_as_qonnx_documents(mode: str, constant: bool) -> None:
    numbers = np.asarray(NUMBERS, np.float32)
    given = "w" if constant else "x"
    node = helper.make_node(
        "IntQuant", [given, "s", "z", "b"], ["q" if constant else "y"],
        domain="qonnx.custom_op.general", signed=1, narrow=0, rounding_mode=mode.lower(),
    )  # fmt: skip
    constants: dict[str, Any] = {"s": np.float32(1), "z": np.float32(0), "b": np.float32(8)}
    nodes = [node]
    if constant:
        constants["w"] = numbers
        nodes.append(helper.make_node("Add", ["x", "q"], ["y"]))
    model = model_of(nodes, constants, [10], 17)
    found = both(model, np.zeros_like(numbers) if constant else numbers, "qonnx")
    np.testing.assert_array_equal(found, ROUNDINGS[mode])


@pytest.mark.parametrize(
    ("bits", "signed", "narrow", "ends"),
    [(8, 1, 0, (-128, 127)), (8, 1, 1, (-127, 127)), (3, 1, 0, (-4, 3)), (4, 0, 1, (0, 14)),
     (1, 0, 0, (0, 1)), (16, 0, 0, (0, 65535))],
)  # fmt: skip
@pytest.mark.parametrize("opset", [11, 21])
def test_levels_end_where_the_bits_do(
    bits: int, signed: int, narrow: int, ends: tuple[int, int], opset: int
) -> None:
    node = helper.make_node(
        "Quant", ["x", "s", "z", "b"], ["y"], domain="onnx.brevitas",
        signed=signed, narrow=narrow, rounding_mode="ROUND",
    )  # fmt: skip
    constants = {"s": np.float32(0.5), "z": np.float32(0), "b": np.float32(bits)}
    model = model_of([node], constants, ["N"], opset)
    x = np.asarray([-1e6, -0.3, 0.2, 0.3, 1e6], np.float32)
    found = both(model, x, "qonnx")
    assert (2 * found[0], 2 * found[-1]) == ends


@pytest.mark.parametrize("opset", [17, 19])
def test_floats_of_few_bits_are_rounded_to_even_and_kept_finite(opset: int) -> None:
    names = ["s", "exponent", "mantissa", "bias", "most"]
    node = helper.make_node(
        "FloatQuant", ["x", *names], ["y"], domain="qonnx.custom_op.general",
        rounding_mode="ROUND", saturation=1, has_inf=0, has_nan=1, has_subnormal=1,
    )  # fmt: skip
    constants = dict(zip(names, map(np.float32, (1, 4, 3, 7, 448)), strict=True))
    x = np.asarray([17, 19, 1.0625, 2**-9, 2**-10, 3 * 2**-10, 447, 1e9, -1e9, 0], np.float32)
    found = both(model_of([node], constants, ["N"], opset), x, "qonnx")
    wanted = [16, 20, 1, 2**-9, 0, 2**-8, 448, 448, -448, 0]
    np.testing.assert_array_equal(found, np.asarray(wanted, np.float32))


@pytest.mark.parametrize("opset", [9, 13])
def test_weights_of_caffe2_are_bytes_that_are_no_text(opset: int) -> None:
    caffe2 = "org.pytorch._caffe2"
    weights = bytes([0, 255, 128, 195, 40, 7])

    def node(op: str, inputs: list[str], output: str, **told: Any) -> onnx.NodeProto:
        return helper.make_node(op, inputs, [output], domain=caffe2, **told)

    nodes = [
        node("Int8Quantize", ["x"], "q", Y_scale=0.5, Y_zero_point=128),
        node("Int8GivenTensorFill", [], "w", Y_scale=1.0, Y_zero_point=128, shape=[3, 2],
             values=weights),
        node("Int8GivenIntTensorFill", [], "b", Y_scale=0.5, Y_zero_point=0, shape=[3],
             values=[2, -2, 0]),
        node("Int8FC", ["q", "w", "b"], "f", Y_scale=1.0, Y_zero_point=100),
        node("Int8Dequantize", ["f"], "y"),
    ]  # fmt: skip
    found = both(
        model_of(nodes, {}, ["N", 2], opset), np.asarray([[0.4, 0.1]], np.float32), "aten",
        allow=("approximate",),
    )  # fmt: skip
    # 0.4 is 0.5 on the levels, 0.1 is 0; the weights are -128 127, 0 67, -88 -121
    np.testing.assert_array_equal(found, [[-63, -1, -44]])


@pytest.mark.parametrize("opset", [11, 13, 21])
def test_rows_in_groups_are_read_with_a_scale_each(opset: int) -> None:
    names = ["w", "s", "z", "low", "high", "kind", "size", "out"]
    node = helper.make_node(
        "dequantize_per_channel_group", names, ["d"], domain="quantized_decomposed"
    )
    weights = np.asarray([[1, 2, 3, 4], [-8, 7, 0, 5]], np.int8)
    constants = {
        "w": weights,
        "s": np.asarray([[0.5, 2.0], [1.0, 0.25]], np.float32),
        "z": np.asarray([[0, 1], [2, -3]], np.int64),
        **dict(zip(names[3:], map(np.int64, (-8, 7, 1, 2, 6)), strict=True)),
    }
    nodes = [node, helper.make_node("MatMul", ["x", "d"], ["y"])]
    model = model_of(nodes, constants, ["N", 2], opset)
    found = both(model, np.eye(2, dtype=np.float32), "aten")
    np.testing.assert_array_equal(found, [[0.5, 1, 4, 6], [-10, 5, 0.75, 2]])
    if opset >= 13:  # weights stay small
        kept = surgeon.apply(model, "aten").model.to_proto().graph.initializer
        assert onnx.TensorProto.INT8 in {tensor.data_type for tensor in kept}
