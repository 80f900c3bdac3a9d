"""Nodes of a body or function, once more in another graph, with values of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import onnx_graphsurgeon as gs

from surgeon.links import constants_of, current, toposort
from surgeon.rewrite import Surgery

AttributeRef = gs.Node.AttributeRef


class Copier:
    """Copies nodes of one scope into a graph, producers first.

    Args:
        surgery: The writer of wiring.
        graph: Where the copies are.
        inside: What stands for the values of the scope, by their identity: at first for its inputs.
        given: Of a function, the protobufs of the attributes that a call gives it, or that it
            gives itself; what refers to another is left out.
    """

    def __init__(
        self,
        surgery: Surgery,
        graph: gs.Graph,
        inside: Mapping[int, gs.Tensor],
        given: Mapping[str, tuple[Any, Any]] | None = None,
    ) -> None:
        self.surgery, self.graph, self.given = surgery, graph, given or {}
        self.inside = dict(inside)

    def nodes(self, order: Sequence[gs.Node]) -> list[gs.Node]:
        """The copies of nodes, under fresh names."""
        return [self._node(node, self.graph, named=True) for node in order]

    def constants(self, scope: gs.Graph) -> None:
        """Let the copies read constants of their own in the place of those that live in a scope."""
        for tensor in constants_of(scope):
            self._constant(tensor, self.graph, self.surgery.fresh(tensor.name))

    def stands_for(self, tensor: gs.Tensor) -> gs.Tensor:
        """What stands for a value: itself, where it is from around the scope."""
        tensor = current(tensor)
        return gs.Variable.empty() if tensor.is_empty() else self.inside.get(id(tensor), tensor)

    def _constant(self, tensor: gs.Constant, home: gs.Graph, name: str) -> None:
        own = gs.Constant(name, tensor._values)
        own.home = home
        self.inside.setdefault(id(tensor), own)

    def _node(self, node: gs.Node, graph: gs.Graph, *, named: bool) -> gs.Node:
        """One node.

        Args:
            node: Of the scope, or of a body in it.
            graph: Where the copy is.
            named: Whether its names are to be new: those inside inner bodies are theirs alone.
        """
        fresh = self.surgery.fresh
        outputs = []
        for tensor in node.outputs:
            name = fresh(tensor.name) if named and tensor.name else tensor.name
            self.surgery.spared.copied(tensor.name, name)
            outputs.append(gs.Variable(name, tensor.dtype, tensor.shape, tensor.type))
            self.inside[id(tensor)] = outputs[-1]
        label = fresh(node.name) if named and node.name else node.name
        self.surgery.spared.copied(node.name, label)
        origin = type(node.origin)()
        origin.CopyFrom(node.origin)
        origin.name = label
        del origin.output[:]
        origin.output.extend(tensor.name for tensor in outputs)
        refers = any(isinstance(value, AttributeRef) for value in node.attrs.values())
        attributes = self._given(node, origin) if refers else node.attrs
        attributes = {
            key: self._graph(value) if isinstance(value, gs.Graph) else value
            for key, value in attributes.items()
        }
        inputs = [self.stands_for(tensor) for tensor in node.inputs]
        domain = origin.domain if refers else node.domain
        copy = gs.Node(node.op, label, attributes, inputs, outputs, domain)
        named_inputs = node.origin_inputs
        if named_inputs is not None:
            named_inputs = tuple(self.stands_for(tensor) for tensor in named_inputs)
        copy.__dict__.update(
            origin=origin,
            origin_inputs=named_inputs,
            made=node.made,
            normal=getattr(node, "normal", False) and not refers,
            home=graph,
        )
        return copy

    def _given(self, node: gs.Node, origin: Any) -> dict[str, Any]:
        """A node's attributes, with what the call gives for those that refer to it."""
        values = dict(node.attrs)
        protos = list(origin.attribute)
        del origin.attribute[:]
        for proto in protos:
            if not proto.ref_attr_name:
                origin.attribute.append(proto)
                continue
            values.pop(proto.name, None)
            if proto.ref_attr_name in self.given:
                given, value = self.given[proto.ref_attr_name]
                origin.attribute.append(given)
                origin.attribute[-1].name = proto.name
                values[proto.name] = value
        return values

    def _graph(self, graph: gs.Graph) -> gs.Graph:
        """A body in the scope, with values of its own under the names they have."""
        inputs = [gs.Variable(t.name, t.dtype, t.shape, t.type) for t in graph.inputs]
        self.inside.update(zip(map(id, graph.inputs), inputs, strict=True))
        copy = gs.Graph([], inputs, [], graph.name, graph.doc_string, graph.opset)
        copy.origin, copy.reads = graph.origin, graph.reads
        for tensor in constants_of(graph):
            self._constant(tensor, copy, tensor.name)
        for node in toposort(graph):
            copy.nodes.append(self._node(node, copy, named=False))
        copy.outputs = [self.stands_for(tensor) for tensor in graph.outputs]
        self.surgery.outputs.update((id(tensor), tensor) for tensor in copy.outputs)
        return copy
