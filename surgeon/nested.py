"""What stands inside nodes: the bodies that their attributes hold, and the nodes in these."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import onnx

from surgeon.errors import few


def bodies(node: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    """The bodies of a node, not those inside them."""
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def every_body(nodes: Iterable[onnx.NodeProto]) -> Iterator[onnx.GraphProto]:
    """The bodies of nodes, however deep, each before those inside it."""
    for node in nodes:
        for body in bodies(node):
            yield body
            yield from every_body(body.node)


def every_node(nodes: Iterable[onnx.NodeProto]) -> Iterator[onnx.NodeProto]:
    """Nodes and those in their bodies, however deep, each before those inside it."""
    for node in nodes:
        yield node
        for body in bodies(node):
            yield from every_node(body.node)


def state_scalars_of_loops(graph: onnx.GraphProto) -> None:
    """Declare the turn and the condition of each body of a Loop as scalars, which ONNX makes them.

    PyTorch's exporter leaves their shape open in a `while` of a script, and then onnxruntime loads
    the Loop and does not run it. What declares a shape stays as it is.
    """
    for tensor in _shapeless(graph):
        tensor.shape.SetInParent()


def with_scalars_of_loops(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with these shapes stated: itself where there are none to state."""
    if next(_shapeless(model.graph), None) is None:
        return model
    stated = onnx.ModelProto()
    stated.CopyFrom(model)
    state_scalars_of_loops(stated.graph)
    return stated


def _shapeless(graph: onnx.GraphProto) -> Iterator[onnx.TypeProto.Tensor]:
    """The types of turns and conditions of Loops that declare no shape."""
    loops = (node for node in every_node(graph.node) if node.op_type == "Loop")
    for value in (each for loop in loops for body in bodies(loop) for each in body.input[:2]):
        if value.type.HasField("tensor_type") and not value.type.tensor_type.HasField("shape"):
            yield value.type.tensor_type


# What helps where a step that knows nothing of functions meets some.
WRITE_OUT = (
    "Functions of a runtime's domain, of another opset than the model's, or of thousands of nodes "
    "stay: write them out with `onnx.inliner`, or export without them."
)


def functions_left(proto: onnx.ModelProto) -> str:
    """The functions of a model, in words, that were not written out for a step."""
    names = [f"{function.domain}.{function.name}" for function in proto.functions]
    return f"functions that could not be written out: {few(names)}"
