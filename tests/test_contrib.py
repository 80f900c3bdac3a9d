"""What is known of onnxruntime's own operators is what onnxruntime computes."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from truth import hold, parse, points, symbols_of

F32 = np.float32
SCALES = {"s": F32(0.1), "z": np.uint8(3)}
CASES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "Gelu": ("float[n,t,4] x", "y = com.microsoft.Gelu (x)", {}),
    "FastGelu": ("float[n,t,4] x", "y = com.microsoft.FastGelu (x, b)", {"b": np.ones(4, F32)}),
    "QuickGelu": ("float[n,t,4] x", "y = com.microsoft.QuickGelu (x)", {}),
    "BiasGelu": ("float[n,t,4] x", "y = com.microsoft.BiasGelu (x, b)", {"b": np.ones(4, F32)}),
    "SkipLayerNormalization": (
        "float[n,t,4] x, float[n,t,4] k",
        "y = com.microsoft.SkipLayerNormalization (x, k, b)",
        {"b": np.ones(4, F32)},
    ),
    "QuantizeLinear": (
        "float[n,t] x",
        "y = com.microsoft.QuantizeLinear (x, s, z8) w = com.microsoft.DequantizeLinear (y, s, z8)",
        {"s": F32(0.1), "z8": np.int8(3)},
    ),
    "QLinearAdd": (
        "uint8[n,1,t] a, uint8[4,1] b",
        "y = com.microsoft.QLinearAdd (a, s, z, b, s, z, s, z)",
        SCALES,
    ),
    "QLinearMul": (
        "uint8[n,c] a, uint8[1,c] b",
        "y = com.microsoft.QLinearMul (a, s, z, b, s, z, s, z)",
        SCALES,
    ),
    "QLinearSigmoid": ("uint8[n,c] a", "y = com.microsoft.QLinearSigmoid (a, s, z, s, z)", SCALES),
    "QLinearLeakyRelu": (
        "uint8[n,c] a",
        "y = com.microsoft.QLinearLeakyRelu <alpha = 0.1> (a, s, z, s, z)",
        SCALES,
    ),
    "QLinearConcat": (
        "uint8[n,c] a, uint8[n,d] b",
        "y = com.microsoft.QLinearConcat <axis = 1> (s, z, a, s, z, b, s, z)",
        SCALES,
    ),
    "QLinearGlobalAveragePool": (
        "uint8[n,3,h,w] a",
        "y = com.microsoft.QLinearGlobalAveragePool (a, s, z, s, z)",
        SCALES,
    ),
    "QLinearAveragePool": (
        "uint8[n,3,h,w] a",
        "y = com.microsoft.QLinearAveragePool <kernel_shape = [2, 2], strides = [2, 2], "
        "pads = [1, 1, 1, 1]> (a, s, z, s, z)",
        SCALES,
    ),
    "QGemm": (
        "uint8[n,3] a",
        "y = com.microsoft.QGemm <transB = 1> (a, s, z, k, s, z, , s, z) "
        "w = com.microsoft.QGemm <transB = 1> (a, s, z, k, s, z)",
        {**SCALES, "k": np.ones((5, 3), np.uint8)},
    ),
    "FusedConv": (
        "float[n,3,h,w] x",
        'y = com.microsoft.FusedConv <activation = "Relu", pads = [1, 0, 1, 0]> (x, k)',
        {"k": np.ones((4, 3, 3, 1), F32)},
    ),
    "FusedGemm": (
        "float[n,3] x",
        'y = com.microsoft.FusedGemm <activation = "Relu", transB = 1> (x, k)',
        {"k": np.ones((5, 3), F32)},
    ),
    "DynamicQuantizeMatMul": (
        "float[n,t,3] x",
        "y = com.microsoft.DynamicQuantizeMatMul (x, k, s, z)",
        {**SCALES, "k": np.ones((3, 5), np.uint8)},
    ),
    "MatMulIntegerToFloat": (
        "uint8[n,t,3] a",
        "y = com.microsoft.MatMulIntegerToFloat (a, k, s, s, z, z)",
        {**SCALES, "k": np.ones((3, 5), np.uint8)},
    ),
    "FusedMatMul": (
        "float[n,t,3] x, float[n,c,t] k",
        "y = com.microsoft.FusedMatMul <transA = 1, transB = 1> (x, k)",
        {},
    ),
    "FusedMatMul, rows in front": (
        "float[t,n,3] x, float[n,3,c] k",
        "y = com.microsoft.FusedMatMul <transBatchA = 1> (x, k)",
        {},
    ),
    "Attention": (
        "float[n,t,6] x",
        "y = com.microsoft.Attention <num_heads = 2> (x, w, b)",
        {"w": np.ones((6, 24), F32), "b": np.ones(24, F32)},
    ),
    "Attention, values of their own width": (
        "float[n,t,6] x",
        "y = com.microsoft.Attention <num_heads = 2, qkv_hidden_sizes = [8, 8, 4]> (x, w, b)",
        {"w": np.ones((6, 20), F32), "b": np.ones(20, F32)},
    ),
    "MultiHeadAttention": (
        "float[n,t,8] q, float[n,c,8] k, float[n,c,4] v",
        "y = com.microsoft.MultiHeadAttention <num_heads = 2> (q, k, v)",
        {},
    ),
    "EmbedLayerNormalization": (
        "bool[n,3] x",
        "i = Cast <to = 6> (x) y, m = com.microsoft.EmbedLayerNormalization (i, , e, e, , b, b)",
        {"e": np.ones((3, 4), F32), "b": np.ones(4, F32)},
    ),
    "QLinearWhere": (
        "bool[n,1] c, uint8[n,t] a",
        "y = com.microsoft.QLinearWhere (c, a, s, z, z, s, z, s, z)",
        SCALES,
    ),
    "DynamicQuantizeLSTM": (
        "float[t,n,3] x",
        'y, h, c = com.microsoft.DynamicQuantizeLSTM <direction = "bidirectional", '
        "hidden_size = 2> (x, w, r, , , , , , ws, wz, ws, wz)",
        {
            "w": np.ones((2, 3, 8), np.uint8),
            "r": np.ones((2, 2, 8), np.uint8),
            "ws": np.full(2, 0.1, F32),
            "wz": np.zeros(2, np.uint8),
        },
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_every_fact_is_what_onnxruntime_computes(name: str) -> None:
    inputs, body, constants = CASES[name]
    domains = ', "com.microsoft": 1'
    proto = parse(f"g ({inputs}) => (float y) {{ {body} }}", opset=15, domains=domains)
    del proto.graph.output[:]
    values = [name for node in proto.graph.node for name in node.output]
    proto.graph.output.extend(onnx.ValueInfoProto(name=name) for name in values)
    for key, array in constants.items():
        proto.graph.initializer.append(onnx.numpy_helper.from_array(np.asarray(array), key))
    held = hold(proto, points(symbols_of(proto)))
    assert held.ran
    assert not held.wrong
    assert (held.blank, held.unbound) == (0, 0)
