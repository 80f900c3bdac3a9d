"""A Loop that provably runs a few times, as its body so many times in a row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_graphsurgeon as gs

from surgeon import opsets
from surgeon.chance import RANDOM
from surgeon.facts import Facts
from surgeon.links import bodies, current, toposort
from surgeon.rewrite import Draft, Surgery

MOST_TRIPS = 16
MOST_NODES = 512  # of all the copies; a Loop that would be more stays
_FIRST_OPSET = 7  # before, Concat and Unsqueeze had other forms
_CARRIED = 2  # inputs before the values that go from turn to turn: how often, and whether at all

Mapping = dict[int, gs.Tensor]  # by the tensor's identity: what stands for it in a copy


class Unroller:
    """Puts copies of a Loop's body in its place.

    Args:
        facts: Asked for the number of turns.
        surgery: The writer of wiring.
    """

    def __init__(self, facts: Facts, surgery: Surgery) -> None:
        self.facts, self.surgery = facts, surgery

    def unroll(self, node: gs.Node, graph: gs.Graph) -> list[gs.Node] | None:
        """The copies' nodes, producers first; None where the Loop stays.

        Args:
            node: Any node whose bodies are in normal form.
            graph: Where it is.
        """
        body = node.attrs.get("body")
        if node.op != "Loop" or (node.domain or "") not in opsets.STANDARD or body is None:
            return None
        trips = self._trips(node, body)
        carried = [current(tensor) for tensor in node.inputs[_CARRIED:]]
        if trips is None or self.facts.opset < _FIRST_OPSET or not _may_be_copied(body):
            return None
        size = sum(len(inner.nodes) for inner in (body, *bodies(body)))
        scanned = len(body.outputs) - 1 - len(carried)
        if trips > MOST_TRIPS or trips * size > MOST_NODES or (scanned and not trips):
            return None
        if len(body.inputs) != _CARRIED + len(carried) or any(t.is_empty() for t in carried):
            return None
        if not all(map(self.surgery.may_end, node.outputs)):
            return None
        try:
            order = toposort(body)
        except ValueError:
            return None  # a cycle, which the sweep of the body names
        return self._lay_out(node, graph, order, carried, trips)

    def _trips(self, node: gs.Node, body: gs.Graph) -> int | None:
        """How often the body runs, where that is proven."""
        most = None if node.inputs[0].is_empty() else self.facts.array(node.inputs[0])
        if most is None or most.size != 1:
            return None
        if len(node.inputs) > 1 and not node.inputs[1].is_empty():
            go = self.facts.array(node.inputs[1])
            if go is None or go.size != 1:
                return None
            if not go.any():
                return 0
        again = current(body.outputs[0])
        while again.inputs and again.inputs[0].op == "Identity":
            again = current(again.inputs[0].inputs[0])
        if again is not body.inputs[1]:
            value = self.facts.array(again)
            if value is None or not value.all():
                return None
        return max(int(most.item()), 0)

    def _lay_out(
        self,
        node: gs.Node,
        graph: gs.Graph,
        order: Sequence[gs.Node],
        carried: list[gs.Tensor],
        trips: int,
    ) -> list[gs.Node]:
        body: gs.Graph = node.attrs["body"]
        made: list[gs.Node] = []
        stem = next((t.name for t in node.outputs if t.name), "loop")
        draft = self.surgery.draft(graph, stem)
        self.surgery.raise_constants(body, graph)
        given = body.inputs
        scanned: list[list[gs.Tensor]] = [[] for _ in body.outputs[1 + len(carried) :]]
        for turn in range(trips):
            values = [
                draft.constant(_one(turn, np.int64, given[0]), "turn"),
                draft.constant(_one(True, np.bool_, given[1]), "go"),
                *carried,
            ]
            inside = {id(t): value for t, value in zip(given, values, strict=True)}
            made.extend(self._copy(member, graph, inside, named=True) for member in order)
            ends = [_stands_for(tensor, inside) for tensor in body.outputs[1:]]
            carried = ends[: len(carried)]
            for rows, end in zip(scanned, ends[len(carried) :], strict=True):
                rows.append(end)
        joined = [_joined(draft, rows) for rows in scanned]
        pairs = list(zip(list(node.outputs), [*carried, *joined], strict=False))
        return [*made, *draft.nodes, *self.surgery.end_in(node, graph, pairs)]

    def _copy(self, node: gs.Node, graph: gs.Graph, inside: Mapping, *, named: bool) -> gs.Node:
        """One node of a body, once more.

        Args:
            node: Of the body, or of one inside it.
            graph: Where the copy is.
            inside: What stands for the body's values; the copy's own come in.
            named: Whether its names are to be new: those inside inner bodies are theirs alone.
        """
        fresh = self.surgery.fresh
        attributes = {
            key: self._copy_graph(value, inside) if isinstance(value, gs.Graph) else value
            for key, value in node.attrs.items()
        }
        outputs = []
        for tensor in node.outputs:
            name = fresh(tensor.name) if named and tensor.name else tensor.name
            outputs.append(gs.Variable(name, tensor.dtype, tensor.shape, tensor.type))
            inside[id(tensor)] = outputs[-1]
        label = fresh(node.name) if named and node.name else node.name
        inputs = [_stands_for(tensor, inside) for tensor in node.inputs]
        copy = gs.Node(node.op, label, attributes, inputs, outputs, node.domain)
        origin = type(node.origin)()
        origin.CopyFrom(node.origin)
        origin.name = label
        del origin.output[:]
        origin.output.extend(tensor.name for tensor in outputs)
        named_inputs = node.origin_inputs
        if named_inputs is not None:
            named_inputs = tuple(_stands_for(tensor, inside) for tensor in named_inputs)
        copy.__dict__.update(
            origin=origin,
            origin_inputs=named_inputs,
            made=node.made,
            normal=getattr(node, "normal", False),
            home=graph,
        )
        return copy

    def _copy_graph(self, graph: gs.Graph, inside: Mapping) -> gs.Graph:
        """A body inside the body, with values of its own under the names they have."""
        inputs = [gs.Variable(t.name, t.dtype, t.shape, t.type) for t in graph.inputs]
        inside.update(zip(map(id, graph.inputs), inputs, strict=True))
        copy = gs.Graph([], inputs, [], graph.name, graph.doc_string, graph.opset)
        copy.origin, copy.reads = graph.origin, graph.reads
        for inner in (graph, *bodies(graph)):
            tensors = [t for n in inner.nodes for t in (*n.inputs, *(n.origin_inputs or ()))]
            for tensor in map(current, (*tensors, *inner.outputs)):
                if isinstance(tensor, gs.Constant) and getattr(tensor, "home", None) is graph:
                    own = gs.Constant(tensor.name, tensor._values)
                    own.home = copy
                    inside.setdefault(id(tensor), own)
        for node in toposort(graph):
            copy.nodes.append(self._copy(node, copy, inside, named=False))
        copy.outputs = [_stands_for(tensor, inside) for tensor in graph.outputs]
        self.surgery.outputs.update((id(tensor), tensor) for tensor in copy.outputs)
        return copy


def _may_be_copied(body: gs.Graph) -> bool:
    """Whether each copy computes what the body does: nothing draws, nothing is of other makers.

    Copies of an operator that draws from a seed would all draw the same.
    """
    return all(
        node.op not in RANDOM and (node.domain or "") in (*opsets.STANDARD, opsets.LEGACY)
        for graph in (body, *bodies(body))
        for node in graph.nodes
    )


def _one(value: int, dtype: Any, like: gs.Tensor) -> Any:
    """A number in the shape that the body declares: none, or one element."""
    return np.full((1,) if like.shape is not None and len(like.shape) == 1 else (), value, dtype)


def _stands_for(tensor: gs.Tensor, inside: Mapping) -> gs.Tensor:
    tensor = current(tensor)
    return gs.Variable.empty() if tensor.is_empty() else inside.get(id(tensor), tensor)


def _joined(draft: Draft, rows: Sequence[gs.Tensor]) -> gs.Tensor:
    """What each turn gave, one behind the other along a new first axis."""
    axes = draft.constant([0], "axes")
    each = [draft.op("Unsqueeze", row, axes) for row in rows]
    joined: gs.Tensor = draft.op("Concat", *each, axis=0) if len(each) > 1 else each[0]
    return joined
