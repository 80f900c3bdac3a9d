"""What stands inside nodes: the bodies that their attributes hold, and the nodes in these."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import onnx


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
