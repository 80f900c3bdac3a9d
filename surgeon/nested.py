"""What stands inside nodes: the bodies that their attributes hold, and the nodes in these."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

import onnx

from surgeon.errors import few
from surgeon.standard import STANDARD


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


def standard_nodes(graph: onnx.GraphProto, *operators: str) -> Iterator[onnx.NodeProto]:
    """The nodes of ONNX's own operators of these names, in bodies too."""
    for node in every_node(graph.node):
        if node.op_type in operators and node.domain in STANDARD:
            yield node


def all_read(graph: onnx.GraphProto) -> set[str]:
    """What the nodes of a graph and their bodies read, and what they give out."""
    graphs = (graph, *every_body(graph.node))
    read = {value.name for each in graphs for value in each.output}
    return read.union(name for node in every_node(graph.node) for name in node.input)


def drop_constants(graph: onnx.GraphProto, names: Collection[str]) -> None:
    """Take out constants that nothing reads any more, of the inputs too that list them."""
    gone = {tensor.name for tensor in graph.initializer}.intersection(names)
    for field in (graph.initializer, graph.input):
        for each in [each for each in field if each.name in gone]:
            field.remove(each)


def state_loops(graph: onnx.GraphProto) -> None:
    """Declare of the bodies of Loops what ONNX says of them, and leave out what says nothing.

    PyTorch's exporter leaves the shape of a condition open in a `while` of a script, and then
    onnxruntime loads the Loop and does not run it: the turn and the condition are scalars. A list
    of no type that a body gives keeps it from loading.
    """
    for value in _unstated(graph):
        if value.type.HasField("tensor_type"):
            value.type.tensor_type.shape.SetInParent()
        else:
            value.ClearField("type")


def with_stated_loops(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with these declared: itself where nothing is missing."""
    if next(_unstated(model.graph), None) is None:
        return model
    stated = onnx.ModelProto()
    stated.CopyFrom(model)
    state_loops(stated.graph)
    return stated


def _unstated(graph: onnx.GraphProto) -> Iterator[onnx.ValueInfoProto]:
    """Turns and conditions of Loops that declare no shape, and lists they give that are of none."""
    loops = (node for node in every_node(graph.node) if node.op_type == "Loop")
    for body in (each for loop in loops for each in bodies(loop)):
        for value in body.input[:2]:
            known = value.type.HasField("tensor_type")
            if known and not value.type.tensor_type.HasField("shape"):
                yield value
        for value in body.output:
            listed = value.type.HasField("sequence_type")
            if listed and not value.type.sequence_type.elem_type.WhichOneof("value"):
                yield value


# What helps where a step that knows nothing of functions meets some.
WRITE_OUT = (
    "Functions of a runtime's domain, of another opset than the model's, or of thousands of nodes "
    "stay: write them out with `onnx.inliner`, or export without them."
)


def functions_left(proto: onnx.ModelProto) -> str:
    """The functions of a model, in words, that were not written out for a step."""
    names = [f"{function.domain}.{function.name}" for function in proto.functions]
    return f"functions that could not be written out: {few(names)}"
