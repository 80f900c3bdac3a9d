"""Quantised tensors of PyTorch: what they are lowered to computes what the witness says."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import helper

import surgeon
from surgeon.reference import open_reference
from surgeon.reference.witness import NumpyWitness, execute
from surgeon.runtime import Session

HEAD = '<ir_version: 8, opset_import: ["": {opset}, "org.pytorch.aten": 1, "prim": 1]>'
CONSTANTS = """
  double s = {0.0517}, int64 z = {128}, int64 quint8 = {13}, double out = {0.0713},
  int64 level = {120}, int64[1] axis = {0}, int64[3] kz = {0, 0, 0},
  int8[3,4] k = {100, -50, 20, 7, -3, 90, 11, 0, 1, 2, 3, -128},
  int8[3,4,1] k1 = {10, -50, 20, 7, -3, 90, 11, 99, 1, 2, 3, -128},
  int8[4,3,2] kt = {99, 2, 3, 4, 55, 6, -7, 8, 9, 1, 22, 3, 1, 2, 33, 4, -95, 6, 7, 8, 9, 1, 2, 3},
  float[3] ks = {0.0111, 0.0217, 0.0153}, float ts = {0.0113}, int8 tz = {3},
  float[3] b3 = {0.5, -0.25, 0.0}, float[4] w4 = {1.0, 0.5, 2.0, 1.5},
  float[4] b4 = {0.0, 0.1, -0.1, 1.0}, float[4] mean = {0.1, 0.2, 0.3, 0.4},
  float[4] var = {1.0, 2.0, 0.5, 1.5}, int64[1] one = {1}, int64[1] none = {0},
  int64 single = {1}, int64[1] four = {4}, int64 two = {2}, double eps = {0.00001},
  double slope = {0.2}, bool no = {0}, double alpha = {1.5}, float[1] curve = {0.3},
  int64 last = {-1}
"""
OPERATORS = {
    "conv1d": "t, kc, b3, one, none, one, single, out, level",
    "conv1d_relu": "t, kc, b3, one, none, one, single, out, level",
    "conv_transpose1d": "t, kx, b3, one, none, none, one, single, out, level",
    "linear": "u, kl, b3, out, level",
    "linear_relu": "u, kl, b3, out, level",
    "add": "t, t, out, level",
    "mul_relu": "t, t, out, level",
    "matmul": "u, t, out, level",
    "hardswish": "t, out, level",
    "sigmoid": "t, out, level",
    "elu": "t, out, level, alpha, alpha, alpha",
    "celu": "t, out, level, alpha",
    "leaky_relu": "t, slope, no, out, level",
    "prelu": "t, curve, out, level",
    "softmax": "t, last, out, level",
    "layer_norm": "u, four, w4, b4, eps, out, level",
    "group_norm": "t, two, w4, b4, eps, out, level",
    "instance_norm": "t, w4, b4, eps, out, level",
    "batch_norm1d": "t, w4, b4, mean, var, eps, out, level",
    "cat": "l, single, out, level",
}


def model_of(operator: str, arguments: str, opset: int) -> onnx.ModelProto:
    """A model that quantises its input, and gives out what the operator makes of it."""
    text = f"""{HEAD.format(opset=opset)}
    g (float[2,4,6] x, float[2,6,4] v) => (float[A,B,C] y) <{CONSTANTS}> {{
      q = org.pytorch.aten.quantize_per_tensor (x, s, z, quint8)
      t = Identity (q)
      u = org.pytorch.aten.quantize_per_tensor (v, s, z, quint8)
      kl = prim.TupleConstruct (k, ks, kz, axis)
      kc = prim.TupleConstruct (k1, ks, kz, axis)
      kx = prim.TupleConstruct (kt, ts, tz)
      l = prim.ListConstruct (t, q)
      r = org.pytorch.aten.{operator} ({arguments})
      y = org.pytorch.aten.dequantize (r)
    }}"""
    return onnx.parser.parse_model(text)


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("opset", [9, 13, 18])
def test_operators_of_quantised_tensors(operator: str, opset: int) -> None:
    model = model_of(operator, OPERATORS[operator], opset)
    result = surgeon.apply(model, "aten", allow=["approximate"])
    rng = np.random.default_rng(0)
    feeds: dict[str, Any] = {
        "x": rng.normal(size=(2, 4, 6)).astype(np.float32) * 2,
        "v": rng.normal(size=(2, 6, 4)).astype(np.float32) * 2,
    }
    [wanted] = open_reference(model).run(feeds).values()
    [found] = Session(result.model.to_proto()).run(feeds).values()
    apart = np.abs(np.rint((found - wanted) / np.float32(0.0713)))
    assert found.shape == wanted.shape
    assert apart.max() <= 1
    assert (apart > 0).mean() < 0.02
    assert len(np.unique(wanted)) > 4


def test_without_leave_an_operator_of_quantised_tensors_stays() -> None:
    model = model_of("add", OPERATORS["add"], 13)
    with pytest.raises(surgeon.SurgeonError, match="round each in a way of its own"):
        surgeon.apply(model, "aten")


def test_a_convolution_of_quantised_tensors_is_none_of_floats() -> None:
    """Its arguments are those of ATen's own, and two more: read as these it would be wrong."""
    model = model_of("conv1d", OPERATORS["conv1d"], 13)
    result = surgeon.apply(model, "aten-convolution", verify=False, allow=["leftover"])
    assert "Conv" not in {node.op_type for node in result.model.to_proto().graph.node}


def test_the_parts_of_a_tuple_are_those_that_it_was_made_of() -> None:
    """A tuple of whole numbers, a fraction and a level may be no quantised tensor at all."""
    parts = [np.array([3, 4], np.uint8), np.array(0.5, np.float32), np.array(1, np.uint8)]
    made = helper.make_node("TupleConstruct", ["a", "b", "c"], ["t"], domain="prim")
    opened = helper.make_node("TupleUnpack", ["t"], ["d", "e", "f"], domain="prim")
    found = execute(opened, execute(made, parts, NumpyWitness()), NumpyWitness())
    assert [each.dtype for each in found] == [each.dtype for each in parts]
    assert [each.tolist() for each in found] == [each.tolist() for each in parts]
