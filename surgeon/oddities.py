"""What a file says of itself that is false, leaves out, or says as no file for inference does."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import onnx
from onnx import numpy_helper

from surgeon import opsets
from surgeon.inferring import NotInferred, inferred
from surgeon.nested import every_body, every_node
from surgeon.standard import opset_of

_SMALL = 1024  # numbers of a constant that may be sizes
_CONVOLUTIONS = ("Conv", "ConvTranspose", "ConvInteger", "QLinearConv")


class Oddities(NamedTuple):
    """What was found.

    Attributes:
        misstated: Values of which the file states another type or shape than they have.
        unsorted: Whether a node stands in front of one whose result it reads.
        training: How many Dropouts and BatchNormalizations are in training mode.
        bare: How many convolutions leave the size of their kernel to the weight.
        doubles: How many constants that are nodes, and Casts, are in double precision.
        below_zero: Inputs and outputs that declare a size below 0.
    """

    misstated: tuple[str, ...] = ()
    unsorted: bool = False
    training: int = 0
    bare: int = 0
    doubles: int = 0
    below_zero: tuple[str, ...] = ()


def oddities(proto: onnx.ModelProto) -> Oddities:
    """Look at a model; nothing is run, and weights are not read."""
    nodes = list(every_node(proto.graph.node))
    return Oddities(
        tuple(dict.fromkeys(_misstated(proto))),
        any(map(_is_unsorted, (proto.graph, *every_body(proto.graph.node)))),
        _training(proto, nodes),
        sum(node.op_type in _CONVOLUTIONS and not _has(node, "kernel_shape") for node in nodes),
        sum(map(_makes_doubles, nodes)),
        tuple(
            value.name
            for value in (*proto.graph.input, *proto.graph.output)
            if any(dim.dim_value < 0 for dim in value.type.tensor_type.shape.dim)
        ),
    )


def _has(node: onnx.NodeProto, name: str) -> bool:
    return any(each.name == name and each.ints for each in node.attribute)


def _makes_doubles(node: onnx.NodeProto) -> bool:
    double = onnx.TensorProto.DOUBLE
    if node.op_type == "Cast":
        return any(each.name == "to" and each.i == double for each in node.attribute)
    return node.op_type == "Constant" and any(a.t.data_type == double for a in node.attribute)


def _is_unsorted(graph: onnx.GraphProto) -> bool:
    later = {name for node in graph.node for name in node.output if name}
    for node in graph.node:
        if not later.isdisjoint(node.input):
            return True
        later.difference_update(node.output)
    return False


def _training(proto: onnx.ModelProto, nodes: list[onnx.NodeProto]) -> int:
    true = {t.name for t in proto.graph.initializer if _is_true(t)}
    for node in nodes:
        values = [each.t for each in node.attribute if each.name == "value"]
        if node.op_type == "Constant" and any(map(_is_true, values)):
            true.update(node.output)
    count, opset = 0, opset_of(proto) or 0
    for node in nodes:
        if node.op_type == "Dropout":
            count += len(node.input) > 2 and node.input[2] in true
        elif node.op_type == "BatchNormalization":
            count += any(a.name == "training_mode" and a.i for a in node.attribute) or (
                opsets.trains_by_outputs(node.op_type, opset, node.output)
            )
    return count


def _is_true(tensor: onnx.TensorProto) -> bool:
    if tensor.data_type != onnx.TensorProto.BOOL or math.prod(tensor.dims) != 1:
        return False
    if tensor.data_location == onnx.TensorProto.EXTERNAL:
        return False
    return bool(numpy_helper.to_array(tensor).all())


def _misstated(proto: onnx.ModelProto) -> Iterator[str]:
    """Beside what onnx infers of the operators alone, without what the file claims."""
    told = {v.name: v.type.tensor_type for v in (*proto.graph.value_info, *proto.graph.output)}
    told = {name: tensor for name, tensor in told.items() if tensor.elem_type}
    if not told:
        return
    try:
        graph = inferred(without_claims(proto)).graph
    except NotInferred:
        return
    for value in (*graph.value_info, *graph.output):
        tensor = value.type.tensor_type
        if value.name in told and tensor.elem_type and _differ(told[value.name], tensor):
            yield value.name


def without_claims(proto: onnx.ModelProto) -> onnx.ModelProto:
    """A model for inference alone: no weights, and nothing that the file claims of values.

    Its nodes are those of the model, in order, but for the constants (`held_by`).
    """
    light = onnx.ModelProto(ir_version=proto.ir_version, opset_import=proto.opset_import)
    light.functions.extend(proto.functions)
    graph, given = light.graph, {tensor.name for tensor in proto.graph.initializer}
    graph.name = "shapes"
    graph.input.extend(value for value in proto.graph.input if value.name not in given)
    for tensor in proto.graph.initializer:
        _hold(graph, tensor, tensor.name)
    for node in proto.graph.node:
        if held := held_by(node):
            _hold(graph, held[0], node.output[0])
        else:
            graph.node.append(node)
    graph.output.extend(onnx.ValueInfoProto(name=value.name) for value in proto.graph.output)
    return light


def held_by(node: onnx.NodeProto) -> list[onnx.TensorProto]:
    """The tensor that a node Constant holds, if it is one."""
    return [a.t for a in node.attribute if node.op_type == "Constant" and a.name == "value"]


def _hold(graph: onnx.GraphProto, tensor: onnx.TensorProto, name: str) -> None:
    """A constant, of whose elements those alone are there that may be sizes."""
    inside = tensor.data_location != onnx.TensorProto.EXTERNAL
    if inside and math.prod(tensor.dims) <= _SMALL:
        graph.initializer.append(tensor)
        graph.initializer[-1].name = name
    else:
        kind = tensor.data_type
        graph.input.append(onnx.helper.make_tensor_value_info(name, kind, tensor.dims))


def _differ(told: onnx.TypeProto.Tensor, found: onnx.TypeProto.Tensor) -> bool:
    if told.elem_type != found.elem_type:
        return True
    if not told.HasField("shape") or not found.HasField("shape"):
        return False
    pairs = list(zip(told.shape.dim, found.shape.dim, strict=False))
    return len(told.shape.dim) != len(found.shape.dim) or any(
        a.HasField("dim_value") and b.HasField("dim_value") and a.dim_value != b.dim_value
        for a, b in pairs
    )
