"""Models of ATen nodes for the witness, and onnxruntime's word on the same numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

from surgeon.reference import Reference
from surgeon.runtime import Session

HEADER = '<ir_version: 8, opset_import: ["": 17, "org.pytorch.aten": 1, "prim": 1]>\n'
GENERATOR = np.random.default_rng(0)


def parse(text: str) -> onnx.ModelProto:
    return onnx.parser.parse_model(HEADER + text)


def normal(*shape: int) -> Any:
    return GENERATOR.normal(size=shape).astype(np.float32)


def one_node(
    operator: str, operands: list[Any], *, outputs: int = 1, spelling: str = "A+"
) -> onnx.ModelProto:
    """A model of one ATen node; arrays are its inputs, everything else is a Constant."""
    inputs, nodes, names = [], [], []
    for index, operand in enumerate(operands):
        name = f"v{index}"
        if operand is None:
            names.append("")
            continue
        names.append(name)
        if isinstance(operand, np.ndarray):
            kind = helper.np_dtype_to_tensor_dtype(operand.dtype)
            inputs.append(helper.make_tensor_value_info(name, kind, [None] * operand.ndim))
        elif isinstance(operand, str):
            nodes.append(helper.make_node("Constant", [], [name], value=operand))
        else:
            dtype = np.float64 if isinstance(operand, float) else None
            tensor = onnx.numpy_helper.from_array(np.asarray(operand, dtype))
            nodes.append(helper.make_node("Constant", [], [name], value=tensor))
    made = [f"y{index}" for index in range(outputs)]
    attributes = {"A+": {"operator": operator, "overload_name": ""}, "A": {"operator": operator}}
    kind = operator if spelling == "N" else "ATen"
    nodes.append(
        helper.make_node(
            kind, names, made, domain="org.pytorch.aten", **attributes.get(spelling, {})
        )
    )
    values = [onnx.ValueInfoProto(name=name) for name in made]
    graph = helper.make_graph(nodes, "g", inputs, values)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("org.pytorch.aten", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def run(operator: str, operands: list[Any], **kwargs: Any) -> list[Any]:
    model = one_node(operator, operands, **kwargs)
    feeds = {f"v{i}": v for i, v in enumerate(operands) if isinstance(v, np.ndarray)}
    return list(Reference(model).run(feeds).values())


def by_onnxruntime(op: str, operands: list[Any], **attributes: Any) -> Any:
    """A standard operator's result: an independent word on the same numbers."""
    names = [f"v{i}" for i in range(len(operands))]
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, list(x.shape))
        for name, x in zip(names, operands, strict=True)
    ]
    node = helper.make_node(op, names, ["y"], **attributes)
    graph = helper.make_graph([node], "g", inputs, [onnx.ValueInfoProto(name="y")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return Session(model).run(dict(zip(names, operands, strict=True)))["y"]
