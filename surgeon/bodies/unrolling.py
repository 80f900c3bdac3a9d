"""A Loop that provably runs a few times, as its body so many times in a row; so a SequenceMap."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_graphsurgeon as gs

from surgeon import opsets
from surgeon.bodies import listed
from surgeon.chance import RANDOM
from surgeon.copies import Copier
from surgeon.facts import Facts
from surgeon.facts.bodies import turns
from surgeon.facts.fact import FIRST_STATE
from surgeon.links import bodies, current, toposort
from surgeon.rewrite import Draft, Surgery

MOST_TRIPS = 16
MOST_NODES = 512  # of all the copies; a Loop that would be more stays
_FIRST_OPSET = 7  # before, Concat and Unsqueeze had other forms
_LISTS = frozenset(
    {("prim", "ListConstruct")}
    | {("aten", name) for name in ("append", "insert", "pop", "_set_item", "len", "list", "add")}
)


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
        if (node.domain or "") not in opsets.STANDARD or not isinstance(body, gs.Graph):
            return None
        if node.op == "SequenceMap":
            return self._mapped(node, graph, body)
        if node.op != "Loop":
            return None
        trips = turns(self.facts, node)
        carried = [current(tensor) for tensor in node.inputs[FIRST_STATE:]]
        if (
            not isinstance(trips, int)
            or self.facts.opset < _FIRST_OPSET
            or not _may_be_copied(body)
        ):
            return None
        size = sum(len(inner.nodes) for inner in (body, *bodies(body)))
        scanned = len(body.outputs) - 1 - len(carried)
        if trips > MOST_TRIPS or trips * size > MOST_NODES or (scanned and not trips):
            return None
        if len(body.inputs) != FIRST_STATE + len(carried) or any(t.is_empty() for t in carried):
            return None
        if not all(map(self.surgery.may_end, node.outputs)):
            return None
        order = _in_order(body)
        return None if order is None else self._lay_out(node, graph, order, carried, trips)

    def _mapped(self, node: gs.Node, graph: gs.Graph, body: gs.Graph) -> list[gs.Node] | None:
        """A SequenceMap over lists whose elements are known, as a list of what its body gives."""
        given = [current(tensor) for tensor in node.inputs]
        lists = [listed.elements(tensor) for tensor in given]
        count = len(lists[0] or ()) if lists else 0
        size = sum(len(inner.nodes) for inner in (body, *bodies(body)))
        if not 0 < count <= MOST_TRIPS or count * size > MOST_NODES or not _may_be_copied(body):
            return None
        for tensor, items in zip(given, lists, strict=True):
            if len(items or ()) != count and self.facts.of(tensor).items is not None:
                return None  # a list of other makers, or of another length
        if len(body.inputs) != len(given) or not all(map(self.surgery.may_end, node.outputs)):
            return None
        if (order := _in_order(body)) is None:
            return None
        draft = self.surgery.draft(graph, next((t.name for t in node.outputs if t.name), "map"))
        self.surgery.raise_constants(body, graph)
        made: list[gs.Node] = []
        rows: list[list[gs.Tensor]] = [[] for _ in body.outputs]
        for turn in range(count):
            inside = {
                id(inner): tensor if items is None else items[turn]
                for inner, tensor, items in zip(body.inputs, given, lists, strict=True)
            }
            copier = Copier(self.surgery, graph, inside)
            made.extend(copier.nodes(order))
            for row, tensor in zip(rows, body.outputs, strict=True):
                row.append(copier.stands_for(tensor))
        joined = [draft.op("SequenceConstruct", *row) for row in rows]
        pairs = list(zip(list(node.outputs), joined, strict=False))
        return [*made, *draft.nodes, *self.surgery.end_in(node, graph, pairs)]

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
            copier = Copier(self.surgery, graph, inside)
            made.extend(copier.nodes(order))
            ends = [copier.stands_for(tensor) for tensor in body.outputs[1:]]
            carried = ends[: len(carried)]
            for rows, end in zip(scanned, ends[len(carried) :], strict=True):
                rows.append(end)
        joined = [_joined(draft, rows) for rows in scanned]
        pairs = list(zip(list(node.outputs), [*carried, *joined], strict=False))
        return [*made, *draft.nodes, *self.surgery.end_in(node, graph, pairs)]


def _may_be_copied(body: gs.Graph) -> bool:
    """Whether each copy computes what the body does: nothing draws, nothing is of other makers.

    Copies of an operator that draws from a seed would all draw the same. What TorchScript's lists
    hold is known where each turn has its own.
    """
    return all(
        (node.op not in RANDOM and (node.domain or "") in (*opsets.STANDARD, opsets.LEGACY))
        or (node.domain, node.op) in _LISTS
        for graph in (body, *bodies(body))
        for node in graph.nodes
    )


def _in_order(body: gs.Graph) -> Sequence[gs.Node] | None:
    """The body's nodes, producers first."""
    try:
        return toposort(body)
    except ValueError:
        return None  # a cycle, which the sweep of the body names


def _one(value: int, dtype: Any, like: gs.Tensor) -> Any:
    """A number in the shape that the body declares: none, or one element."""
    return np.full((1,) if like.shape is not None and len(like.shape) == 1 else (), value, dtype)


def _joined(draft: Draft, rows: Sequence[gs.Tensor]) -> gs.Tensor:
    """What each turn gave, one behind the other along a new first axis."""
    axes = draft.constant([0], "axes")
    each = [draft.op("Unsqueeze", row, axes) for row in rows]
    joined: gs.Tensor = draft.op("Concat", *each, axis=0) if len(each) > 1 else each[0]
    return joined
