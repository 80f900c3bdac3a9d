"""A Loop or Scan that provably runs a few times, as its body so often in a row; so SequenceMap."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx_graphsurgeon as gs

from surgeon import opsets
from surgeon.bodies import listed
from surgeon.bodies.turns import in_order, turns_of_loop, turns_of_scan
from surgeon.chance import RANDOM
from surgeon.copies import Copier
from surgeon.facts import Facts
from surgeon.facts.bodies import INWARD, OUTWARD, axis_of_scan, states_of_scan
from surgeon.facts.fact import FIRST_STATE
from surgeon.links import bodies, current
from surgeon.rewrite import Draft, Surgery
from surgeon.standard import STANDARD

MOST_TURNS = {"Loop": 16, "SequenceMap": 16, "Scan": 0}  # where nobody asks for more
_NODES = 32  # for each turn that is allowed, of all the copies; what would be more stays
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
        most: Turns, by operator, where they are not few.
    """

    def __init__(self, facts: Facts, surgery: Surgery, most: Mapping[str, int]) -> None:
        self.facts, self.surgery, self.most = facts, surgery, {**MOST_TURNS, **most}

    def unroll(self, node: gs.Node, graph: gs.Graph) -> list[gs.Node] | None:
        """The copies' nodes, producers first; None where the Loop stays.

        Args:
            node: Any node whose bodies are in normal form.
            graph: Where it is.
        """
        body = node.attrs.get("body")
        if (node.domain or "") not in STANDARD or not isinstance(body, gs.Graph):
            return None
        if node.op == "SequenceMap":
            return self._mapped(node, graph, body)
        if node.op not in ("Loop", "Scan") or self.facts.opset < _FIRST_OPSET:
            return None
        if node.op == "Scan":
            trips = turns_of_scan(self.facts, node)
        else:
            trips = turns_of_loop(self.facts, node, self.most["Loop"])
        if trips is None or not self._is_small(node, trips):
            return None
        if not _may_be_copied(body) or (order := in_order(body)) is None:
            return None
        if not all(map(self.surgery.may_end, node.outputs)):
            return None
        if node.op == "Scan":
            return self._scanned(node, graph, order, trips)
        states = len(node.inputs) - FIRST_STATE
        if len(body.inputs) != FIRST_STATE + states or (not trips and len(node.outputs) > states):
            return None
        carried = [current(tensor) for tensor in node.inputs[FIRST_STATE:]]
        if any(tensor.is_empty() for tensor in carried):
            return None
        return self._lay_out(node, graph, order, carried, trips)

    def _is_small(self, node: gs.Node, turns: int) -> bool:
        body, most = node.attrs["body"], self.most[node.op]
        size = sum(len(inner.nodes) for inner in (body, *bodies(body)))
        return turns <= most and turns * size <= most * _NODES

    def _mapped(self, node: gs.Node, graph: gs.Graph, body: gs.Graph) -> list[gs.Node] | None:
        """A SequenceMap over lists whose elements are known, as a list of what its body gives."""
        given = [current(tensor) for tensor in node.inputs]
        lists = [listed.elements(tensor) for tensor in given]
        count = len(lists[0] or ()) if lists else 0
        if not count or not self._is_small(node, count) or not _may_be_copied(body):
            return None
        for tensor, items in zip(given, lists, strict=True):
            if len(items or ()) != count and self.facts.of(tensor).items is not None:
                return None  # a list of other makers, or of another length
        if len(body.inputs) != len(given) or not all(map(self.surgery.may_end, node.outputs)):
            return None
        if (order := in_order(body)) is None:
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

    def _scanned(
        self, node: gs.Node, graph: gs.Graph, order: Sequence[gs.Node], turns: int
    ) -> list[gs.Node] | None:
        """A Scan whose inputs are taken apart by Gather, and what its turns give put together."""
        body: gs.Graph = node.attrs["body"]
        states = states_of_scan(node)
        made = body.outputs[states:]
        axes = [self._axis_outward(node, index, tensor) for index, tensor in enumerate(made)]
        if not turns or None in axes or len(node.outputs) > len(body.outputs):
            return None
        stem = next((t.name for t in node.outputs if t.name), "scan")
        taking, draft = self.surgery.draft(graph, stem), self.surgery.draft(graph, stem)
        self.surgery.raise_constants(body, graph)
        carried = [current(tensor) for tensor in node.inputs[:states]]
        rows: list[list[gs.Tensor]] = [[] for _ in made]
        copies: list[gs.Node] = []
        for turn in range(turns):
            taken = [
                self._row(taking, node, index, turn, turns)
                for index in range(len(node.inputs) - states)
            ]
            inside = dict(zip(map(id, body.inputs), [*carried, *taken], strict=True))
            copier = Copier(self.surgery, graph, inside)
            copies.extend(copier.nodes(order))
            ends = [copier.stands_for(tensor) for tensor in body.outputs]
            carried = ends[:states]
            for row, end in zip(rows, ends[states:], strict=True):
                row.append(end)
        joined = []
        for index, (row, axis) in enumerate(zip(rows, axes, strict=True)):
            backward = _is_backward(node, "scan_output_directions", index)
            joined.append(_joined(draft, row[::-1] if backward else row, axis or 0))
        pairs = list(zip(list(node.outputs), [*carried, *joined], strict=False))
        ended = self.surgery.end_in(node, graph, pairs)
        return [*taking.nodes, *copies, *draft.nodes, *ended]

    def _row(self, draft: Draft, node: gs.Node, index: int, turn: int, turns: int) -> gs.Tensor:
        """What one turn takes of an input."""
        tensor = current(node.inputs[states_of_scan(node) + index])
        axis = axis_of_scan(node, INWARD, index, self.facts.of(tensor).rank or 1)
        backward = _is_backward(node, "scan_input_directions", index)
        place = draft.constant(np.array(turns - 1 - turn if backward else turn, np.int64), "turn")
        row: gs.Tensor = draft.op("Gather", tensor, place, axis=axis)
        return row

    def _axis_outward(self, node: gs.Node, index: int, made: gs.Tensor) -> int | None:
        """Along which axis what the turns make of a value is put together."""
        if not node.attrs.get(OUTWARD):
            return 0
        rank = self.facts.of(made).rank
        return None if rank is None else axis_of_scan(node, OUTWARD, index, rank + 1)


def _may_be_copied(body: gs.Graph) -> bool:
    """Whether each copy computes what the body does: nothing draws, nothing is of other makers.

    Copies of an operator that draws from a seed would all draw the same. What TorchScript's lists
    hold is known where each turn has its own.
    """
    return all(
        (node.op not in RANDOM and (node.domain or "") in (*STANDARD, opsets.LEGACY))
        or (node.domain, node.op) in _LISTS
        for graph in (body, *bodies(body))
        for node in graph.nodes
    )


def _one(value: int, dtype: Any, like: gs.Tensor) -> Any:
    """A number in the shape that the body declares: none, or one element."""
    return np.full((1,) if like.shape is not None and len(like.shape) == 1 else (), value, dtype)


def _is_backward(node: gs.Node, directions: str, index: int) -> bool:
    """Whether the last turn of a value that a Scan takes or gives lies first."""
    told = node.attrs.get(directions)
    return bool(told and index < len(told) and told[index])


def _joined(draft: Draft, rows: Sequence[gs.Tensor], axis: int = 0) -> gs.Tensor:
    """What each turn gave, one behind the other along a new axis."""
    axes = draft.constant([axis], "axes")
    each = [draft.op("Unsqueeze", row, axes) for row in rows]
    joined: gs.Tensor = draft.op("Concat", *each, axis=axis) if len(each) > 1 else each[0]
    return joined
