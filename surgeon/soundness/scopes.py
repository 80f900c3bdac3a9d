"""A graph of a file read once, for checks that each look at every node.

Asking a protobuf costs more than what most checks do with the answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import onnx

from surgeon.soundness.apart import repeated
from surgeon.soundness.doubled import doubled
from surgeon.soundness.tensors import quoted


class Node:
    """A node: what it reads, gives and holds."""

    __slots__ = ("attributes", "bodies", "inputs", "outputs", "proto")

    def __init__(self, proto: onnx.NodeProto) -> None:
        self.proto = proto
        self.inputs: tuple[str, ...] = tuple(proto.input)
        self.outputs: tuple[str, ...] = tuple(proto.output)
        self.attributes: tuple[onnx.AttributeProto, ...] = tuple(proto.attribute)
        self.bodies: tuple[Scope, ...] = ()

    @property
    def key(self) -> tuple[str, str, str]:
        """Domain, name and overload, as a function has them."""
        return self.proto.domain, self.proto.op_type, getattr(self.proto, "overload", "")

    def __str__(self) -> str:
        name = self.proto.name or next((name for name in self.outputs if name), "")
        return f"node {quoted(name)} ({quoted(self.proto.op_type)[1:-1]})"


class Scope:
    """A graph, a body or a function: its nodes, and the scopes of their bodies.

    Args:
        top: A graph or function. Bodies are read with it, however deep they are nested.

    Attributes:
        nodes: Its nodes, each once: without those that say again what one before them says.
        again: Those.
        held_as: Of a body the name of the attribute that holds it alone, else "".
    """

    __slots__ = ("again", "held_as", "nodes", "proto")

    def __init__(self, top: Any) -> None:
        self._read(top, "")
        stack = [self]
        while stack:
            for node in stack.pop().nodes:
                for attribute in node.attributes:
                    held = [(attribute.g, attribute.name)] if attribute.HasField("g") else []
                    for graph, name in (*held, *((each, "") for each in attribute.graphs)):
                        body = Scope.__new__(Scope)
                        body._read(graph, name)
                        node.bodies += (body,)
                if node.bodies:
                    stack.extend(node.bodies)

    def _read(self, proto: Any, held_as: str) -> None:
        self.proto, self.held_as = proto, held_as
        self.nodes = [Node(node) for node in proto.node]
        self.again: list[Node] = []
        if repeated(name for node in self.nodes for name in node.outputs):
            places = set(doubled(proto.node))
            self.again = [self.nodes[place] for place in sorted(places)]
            self.nodes = [each for i, each in enumerate(self.nodes) if i not in places]

    def with_bodies(self) -> Iterator[Scope]:
        """Itself and every body in it, outer before inner."""
        stack = [self]
        while stack:
            scope = stack.pop()
            yield scope
            for node in scope.nodes:
                stack.extend(node.bodies)

    def tensors(self) -> Iterator[onnx.TensorProto]:
        """Its tensors: initializers, attributes, and the values of sparse ones."""
        if isinstance(self.proto, onnx.GraphProto):
            yield from self.proto.initializer
            for sparse in self.proto.sparse_initializer:
                yield from (sparse.values, sparse.indices)
        for node in self.nodes:
            for attribute in node.attributes:
                if attribute.HasField("t"):
                    yield attribute.t
                yield from attribute.tensors
                sparses = list(attribute.sparse_tensors)
                if attribute.HasField("sparse_tensor"):
                    sparses.append(attribute.sparse_tensor)
                for sparse in sparses:
                    yield from (sparse.values, sparse.indices)
