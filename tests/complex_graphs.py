"""Graphs of PyTorch's nodes on complex values, and what is held against the repaired ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from aten_node import torch_witness
from onnx import helper

import surgeon
from surgeon.reference import Reference
from surgeon.runtime import Session


def aten(kind: str, names: list[str], made: str, overload: str = "") -> Any:
    attributes = {"operator": kind, "overload_name": overload}
    return helper.make_node("ATen", names, [made], domain="org.pytorch.aten", **attributes)


def model_of(nodes: list[Any], feeds: dict[str, Any], opset: int = 17) -> onnx.ModelProto:
    inputs = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape)
        for name, v in feeds.items()
    ]
    graph = helper.make_graph(nodes, "g", inputs, [onnx.ValueInfoProto(name="y")])
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("org.pytorch.aten", 1)]
    opsets.append(helper.make_opsetid("prim", 1))
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def agree(nodes: list[Any], feeds: dict[str, Any], opset: int = 17) -> None:
    """The model, mended, against the witness and against PyTorch."""
    model = model_of(nodes, feeds, opset)
    found = mended(model, feeds)
    tellers = [Reference(model)]
    if (torch := torch_witness()) is not None:
        tellers.append(Reference(model, witness=torch))
    for teller in tellers:
        (wanted,) = teller.run(feeds).values()
        assert found.dtype == wanted.dtype
        np.testing.assert_allclose(found, wanted, rtol=5e-5, atol=5e-5)


def mended(model: onnx.ModelProto, feeds: dict[str, Any]) -> Any:
    saved = surgeon.apply(model, "aten", verify=False).model.to_proto()
    assert not [n.op_type for n in saved.graph.node if n.domain not in ("", "ai.onnx")]
    (found,) = Session(saved).run(feeds).values()
    return found


BEGIN = [aten("view_as_complex", ["z"], "a"), aten("view_as_complex", ["w"], "b")]


def constant(name: str, value: Any) -> Any:
    array = onnx.numpy_helper.from_array(np.asarray(value))
    return helper.make_node("Constant", [], [name], value=array)


def of_values(nodes: list[Any], feeds: dict[str, Any]) -> None:
    """Nodes that read the complex values `a` and `b`, which are made of the pairs `z` and `w`."""
    begin = [node for node in BEGIN if node.input[0] in feeds]
    for opset in (9, 17):
        agree([*begin, *nodes], feeds, opset)


def call(
    kind: str, *arguments: Any, made: tuple[str, ...] = ("c",), overload: str = ""
) -> list[Any]:
    """The nodes of one operator; arrays and numbers are constants, texts name values."""
    names, nodes = [], []
    for i, value in enumerate(arguments):
        if value is None or isinstance(value, str):
            names.append(value or "")
            continue
        names.append(f"k{i}")
        nodes.append(constant(f"k{i}", value))
    node = aten(kind, names, made[0], overload)
    node.output.extend(made[1:])
    return [*nodes, node]
