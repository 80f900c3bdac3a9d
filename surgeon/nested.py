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


# What helps where a step that knows nothing of functions meets some.
WRITE_OUT = (
    "Functions of a runtime's domain, of another opset than the model's, or of thousands of nodes "
    "stay: write them out with `onnx.inliner`, or export without them."
)


def functions_left(proto: onnx.ModelProto) -> str:
    """The functions of a model, in words, that were not written out for a step."""
    names = [f"{function.domain}.{function.name}" for function in proto.functions]
    return f"functions that could not be written out: {few(names)}"
