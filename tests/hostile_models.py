"""Models that hostile and broken ones are made of, or grow from."""

from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64


def network(size: int = 4) -> onnx.ModelProto:
    """y = Neg(Neg(x)) * w + 0, with weights inside, a body, and a function."""
    return onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["" : 17, "own" : 1]>
        net (float[n,{size}] x, bool go) => (float[n,{size}] y, float[n,{size}] z)
        <float[{size}] w = {{{",".join(str(i / 2) for i in range(size))}}}, float[1] zero = {{0}}>
        {{
            a = Neg(x)
            b = Neg(a)
            c = Mul(b, w)
            y = Add(c, zero)
            d = If (go) <then_branch = yes () => (float[n,{size}] t) {{ t = Neg(c) }},
                         else_branch = no () => (float[n,{size}] e) {{ e = Sin(c) }}>
            z = own.twice(d)
        }}
        <domain: "own", opset_import: ["" : 17]>
        twice (p) => (q) {{ q = Add(p, p) }}"""
    )


def graph_of(*nodes: onnx.NodeProto, **tensors: np.ndarray) -> onnx.ModelProto:
    """A model from `x`, float[n,4], to `y`."""
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info("x", FLOAT, ["n", 4])],
        [helper.make_tensor_value_info("y", FLOAT, None)],
        [onnx.numpy_helper.from_array(array, name) for name, array in tensors.items()],
    )
    return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])


def calling(*functions: tuple[str, str], first: str = "f") -> onnx.ModelProto:
    """A model of functions, each of which calls another."""
    model = graph_of(helper.make_node(first, ["x"], ["y"], domain="own"))
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    model.opset_import.append(opsets[1])
    for name, called in functions:
        node = helper.make_node(called, ["p"], ["q"], domain="own" if called in "fgh" else "")
        model.functions.append(helper.make_function("own", name, ["p"], ["q"], [node], opsets))
    return model


def with_tensor(**fields: Any) -> onnx.ModelProto:
    """x + w, where `w` is as the fields say."""
    model = graph_of(
        helper.make_node("Neg", ["x"], ["a"]),
        helper.make_node("Neg", ["a"], ["b"]),
        helper.make_node("Add", ["b", "w"], ["y"]),
        w=np.arange(4, dtype=np.float32),
    )
    tensor = model.graph.initializer[0]
    for name, value in fields.items():
        tensor.ClearField(name)
        if isinstance(value, list):
            getattr(tensor, name).extend(value)
        else:
            setattr(tensor, name, value)
    return model


def endless_loop() -> onnx.ModelProto:
    body = onnx.parser.parse_graph(
        "body (int64 i, bool go, float s) => (bool again, float t) "
        "{ again = Identity(go) t = Add(s, s) }"
    )
    return graph_of(
        helper.make_node("Loop", ["trips", "yes", "start"], ["s"], body=body),
        helper.make_node("Neg", ["x"], ["a"]),
        helper.make_node("Neg", ["a"], ["b"]),
        helper.make_node("Add", ["b", "s"], ["y"]),
        trips=np.array(10**12),
        yes=np.array(True),
        start=np.float32(1),
    )
