"""Nodes of two graphs, paired by the values they give or, where these are renamed, by structure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from typing import Any

import onnx

from surgeon.difference.weights import Weights, constant, constants_of
from surgeon.soundness.scopes import Node, Scope
from surgeon.spelling import operator_name

_LONGEST = 60  # characters of an attribute's value


class Step(Enum):
    """What became of a node."""

    REPLACED = "replaced"
    CHANGED = "changed"
    RENAMED = "renamed"
    GONE = "gone"
    NEW = "new"


class Pairing:
    """Pairs the nodes of two models, graph by graph.

    Attributes:
        found: What became of nodes: (name, before, after).
        kept: How many nodes are the same.

    Args:
        weights: Pairs initializers, whose names nodes read.
    """

    def __init__(self, weights: Weights) -> None:
        self.weights = weights
        self.kept = 0
        self.found: dict[Step, list[tuple[str, str, str]]] = {step: [] for step in Step}
        self._names: dict[str, str] = {}  # of the second model's values: what the first calls them

    def compare(self, one: Scope, other: Scope, where: str = "") -> None:
        """Pair two graphs and every body of nodes that are in both.

        Args:
            one: Of the first model.
            other: Of the second.
            where: Stands in front of names: the function or body.
        """
        stack = [(one, other, where)]
        while stack:
            one, other, where = stack.pop()
            self._names.update(self.weights.pair(one, other, where))
            for first, second in self._pairs(one, other, where):
                self._tell(first, second, where)
                for attribute, bodies in _paired_bodies(first, second):
                    stack.append((*bodies, f"{where}{_label(second)}.{attribute}/"))

    def _pairs(self, one: Scope, other: Scope, where: str) -> Iterator[tuple[Node, Node]]:
        nodes, others = ([n for n in each.nodes if not constant(n)] for each in (one, other))
        by_value = {name: node for node in nodes for name in node.outputs if name}
        used: set[int] = set()
        pairs: list[tuple[Node, Node]] = []
        rest: list[Node] = []
        for node in others:
            twins = [by_value[name] for name in node.outputs if name in by_value]
            if twins and id(twins[0]) not in used:
                used.add(id(twins[0]))
                pairs.append((twins[0], node))
            else:
                rest.append(node)
        for first, second in pairs:
            self._map(first, second)
        left = [node for node in nodes if id(node) not in used]
        renamed = list(self._by_structure(left, rest))
        paired = {id(node) for pair in renamed for node in pair}
        constants, fixed = constants_of(one), constants_of(other)
        for node in left:
            if id(node) not in paired:
                now = "constant" if any(name in fixed for name in node.outputs) else ""
                step = Step.REPLACED if now else Step.GONE
                self.found[step].append((f"{where}{_label(node)}", _operator(node), now))
        for node in rest:
            if id(node) not in paired:
                was = "constant" if any(name in constants for name in node.outputs) else ""
                step = Step.REPLACED if was else Step.NEW
                self.found[step].append((f"{where}{_label(node)}", was, _operator(node)))
        yield from pairs
        yield from renamed

    def _by_structure(
        self, left: Sequence[Node], rest: Sequence[Node]
    ) -> Iterator[tuple[Node, Node]]:
        """Nodes of one operator with one node's name, or that compute the same from the same."""
        named: dict[tuple[str, str], list[Node]] = {}
        waiting: dict[Any, list[Node]] = {}
        for node in left:
            named.setdefault((node.proto.name, _operator(node)), []).append(node)
            waiting.setdefault(_key(node, {}), []).append(node)
        used: set[int] = set()
        for node in rest:
            same_name = named.get((node.proto.name, _operator(node)), []) if node.proto.name else []
            same_work = waiting.get(_key(node, self._names), [])
            free = [n for n in (*same_work, *same_name) if id(n) not in used]
            if free:
                used.add(id(free[0]))
                self._map(free[0], node)
                yield free[0], node

    def _map(self, first: Node, second: Node) -> None:
        for name, new in zip(first.outputs, second.outputs, strict=False):
            if new and name:
                self._names[new] = name

    def _tell(self, first: Node, second: Node, where: str) -> None:
        """Note what became of a node that is in both."""
        label = f"{where}{_label(second)}"
        if _operator(first) != _operator(second):
            self.found[Step.REPLACED].append((label, _operator(first), _operator(second)))
            return
        name = f"{label} ({_operator(second)})"
        told = [(f"{name} {what}", a, b) for what, a, b in self._details(first, second)]
        self.found[Step.CHANGED] += told
        was, now = (", ".join(filter(None, node.outputs)) for node in (first, second))
        if was != now:
            self.found[Step.RENAMED].append((f"{where}{_operator(second)}", was, now))
        elif not told:
            self.kept += 1

    def _details(self, first: Node, second: Node) -> Iterator[tuple[str, str, str]]:
        """What differs: which attribute or input, before, after."""
        one, other = _attributes(first), _attributes(second)
        for key in dict.fromkeys((*one, *other)):
            if one.get(key) != other.get(key):
                was, now = (_short(each[key]) if key in each else "none" for each in (one, other))
                yield f"attribute {key}", was, now
        for index in range(max(len(first.inputs), len(second.inputs))):
            was, now = (_nth(node.inputs, index) for node in (first, second))
            if was != self._names.get(now, now):
                yield f"input {index}", was or "none", now or "none"


def _nth(names: Sequence[str], index: int) -> str:
    return names[index] if index < len(names) else ""


def _paired_bodies(first: Node, second: Node) -> Iterator[tuple[str, tuple[Scope, Scope]]]:
    names = [
        [a.name for a in node.attributes for _ in range(a.HasField("g") + len(a.graphs))]
        for node in (first, second)
    ]
    bodies = dict(zip(names[1], second.bodies, strict=True))
    for name, body in zip(names[0], first.bodies, strict=True):
        if name in bodies:
            yield name, (body, bodies[name])


def _label(node: Node) -> str:
    return next((name for name in node.outputs if name), node.proto.name)


def _operator(node: Node) -> str:
    return operator_name(node.proto)


def _key(node: Node, names: Mapping[str, str]) -> Any:
    """What a node computes, and from what."""
    attributes = tuple(
        (a.name, a.SerializeToString(deterministic=True))
        for a in sorted(node.attributes, key=lambda a: a.name)
    )
    reads = tuple(names.get(name, name) for name in node.inputs)
    return node.key, reads, len(node.outputs), attributes


def _attributes(node: Node) -> dict[str, Any]:
    """By name, in bytes that compare; bodies are graphs of their own."""
    return {
        a.name: a.SerializeToString(deterministic=True)
        for a in node.attributes
        if not a.HasField("g") and not a.graphs
    }


def _short(data: bytes) -> str:
    attribute = onnx.AttributeProto.FromString(data)
    if attribute.HasField("t"):
        tensor = attribute.t
        kind = onnx.TensorProto.DataType.Name(tensor.data_type).lower()
        return f"{kind} {list(tensor.dims)}"
    text = str(onnx.helper.get_attribute_value(attribute))
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
