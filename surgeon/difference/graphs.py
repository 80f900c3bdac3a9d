"""Nodes of two graphs, paired by the values they give or, where these are renamed, by structure."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from enum import Enum
from typing import Any

import onnx

from surgeon.difference.ends import Ends, called
from surgeon.difference.order import blocks
from surgeon.difference.parts import PLAIN, graphs_of, needless, parts_of
from surgeon.difference.texts import type_said
from surgeon.difference.values import Values
from surgeon.difference.weights import Weights, constant, constants_of
from surgeon.soundness.scopes import Node, Scope
from surgeon.spelling import operator_name

Names = MutableMapping[str, str]  # of the second model's values: what the first calls them

_LONGEST = 60  # characters of an attribute's value
_NEARLY = 0.8  # share of the nodes that are left, of which the order pairs so many, or none
_LARGEST = 1 << 20  # nodes of both, multiplied, of what is left between a beginning and an end
_OF_NODE = PLAIN | {"name", "input", "output"}  # told in other words, or not counted


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
        ends: What graphs, bodies and functions declare.
        aside: In what the models differ that does not count.
        kept: How many nodes are the same.
        by_order: How many nodes the order of operators paired.

    Args:
        weights: Pairs initializers, whose names nodes read.
        values: Compares attributes.
    """

    def __init__(self, weights: Weights, values: Values) -> None:
        self.weights = weights
        self.kept = self.by_order = 0
        self.found: dict[Step, list[tuple[str, str, str]]] = {step: [] for step in Step}
        self.aside: dict[str, None] = {}
        self.ends = Ends(values, self.aside)
        self._values = values

    def compare(
        self, one: Scope, other: Scope, where: str = "", around: Mapping[str, str] | None = None
    ) -> dict[str, str]:
        """Pair two graphs and every body of nodes that are in both.

        Args:
            one: Of the first model.
            other: Of the second.
            where: Stands in front of names: the function or body.
            around: Of values around it that the second calls otherwise: what the first calls them.

        Returns:
            What the first calls the values of the second's graph.
        """
        outermost: dict[str, str] = {}
        names: Names = ChainMap(outermost, dict(around or {}))
        stack = [(one, other, where, names)]
        while stack:
            one, other, where, names = stack.pop()
            self.ends.before(one, other, where, names)
            names.update(self.weights.pair(one, other, where))
            for first, second in self._pairs(one, other, where, names):
                self._tell(first, second, where, names)
                for label, bodies in _paired_bodies(first, second):
                    inner: Names = ChainMap({}, *_maps(names))
                    stack.append((*bodies, f"{where}{_label(second)}.{label}/", inner))
            self.weights.settle(where)
            self.ends.after(one, other, where, names)
        return outermost

    def _pairs(
        self, one: Scope, other: Scope, where: str, names: Names
    ) -> Iterator[tuple[Node, Node]]:
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
            _map(first, second, names)
        left = [node for node in nodes if id(node) not in used]
        renamed = list(_by_structure(left, rest, names))
        lost, came = _without(left, renamed), _without(rest, renamed)
        ordered = list(_by_order(lost, came))
        if ordered and not where:
            names.update(_inputs(one.proto, other.proto))
        for first, second in ordered:
            _map(first, second, names)
        self.by_order += len(ordered)
        places = [
            place
            for first, second in (*pairs, *renamed, *ordered)
            for place in zip(first.inputs, second.inputs, strict=False)
        ]
        self.weights.place(places, names, where)
        givers = _given_by(one, nodes), _given_by(other, others)
        self._replaced(_without(lost, ordered), givers[1], where, came=False)
        self._replaced(_without(came, ordered), givers[0], where, came=True)
        if [id(n) for n in nodes if id(n) in used] != [id(first) for first, _ in pairs]:
            self.aside["order of nodes"] = None
        yield from pairs
        yield from renamed
        yield from ordered

    def _replaced(
        self, nodes: Sequence[Node], givers: Mapping[str, str], where: str, *, came: bool
    ) -> None:
        """Note nodes of one model only, and what gives their values in the other."""
        for node in nodes:
            giver = next((givers[name] for name in node.outputs if name in givers), "")
            step = Step.REPLACED if giver else (Step.NEW if came else Step.GONE)
            told = (giver, _operator(node)) if came else (_operator(node), giver)
            self.found[step].append((f"{where}{_label(node)}", *told))

    def _tell(self, first: Node, second: Node, where: str, names: Names) -> None:
        """Note what became of a node that is in both."""
        label = f"{where}{_label(second)}"
        if _operator(first) != _operator(second):
            self.found[Step.REPLACED].append((label, _operator(first), _operator(second)))
            return
        name = f"{label} ({_operator(second)})"
        told = [(f"{name} {what}", a, b) for what, a, b in self._details(first, second, names)]
        self.found[Step.CHANGED] += told
        was, now = (_without_end(node.outputs) for node in (first, second))
        if was != now:
            step = Step.RENAMED if _places(was) == _places(now) else Step.CHANGED
            said = f"{where}{_operator(second)}" if step is Step.RENAMED else f"{name} outputs"
            before, after = (", ".join(n or "none" for n in each) for each in (was, now))
            self.found[step].append((said, before, after))
        elif not told:
            self.kept += 1

    def _details(self, first: Node, second: Node, names: Names) -> Iterator[tuple[str, str, str]]:
        """What differs: which attribute, input or other field, before, after."""
        if first.proto != second.proto:
            one, other = (
                parts_of(node.proto, _OF_NODE, known)
                for node, known in ((first, None), (second, names))
            )
            for each in (one, other):
                if each.get("domain") == "ai.onnx":  # says what no domain says
                    del each["domain"]
            for name in needless(first.proto, second.proto):
                one.pop(f"attribute {name}", None)
                other.pop(f"attribute {name}", None)
                self.aside["attributes that say what holds without them"] = None
            for key in dict.fromkeys((*one, *other)):
                told = self._values.told(one.get(key), other.get(key), longest=_LONGEST)
                if told:
                    yield key, told[0] or "none", told[1] or "none"
            if first.proto.name != second.proto.name:
                self.aside["names of nodes"] = None
            self.ends.set_aside(first.proto, second.proto)
        for index in range(max(len(first.inputs), len(second.inputs))):
            was, now = (_nth(node.inputs, index) for node in (first, second))
            known = names.get(now, now)
            if was != known:
                yield f"input {index}", was or "none", called(now, known, was) or "none"


def _by_structure(
    left: Sequence[Node], rest: Sequence[Node], names: Names
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
        same_work = waiting.get(_key(node, names), [])
        free = [n for n in (*same_work, *same_name) if id(n) not in used]
        if free:
            used.add(id(free[0]))
            _map(free[0], node, names)
            yield free[0], node


def _by_order(lost: Sequence[Node], came: Sequence[Node]) -> Iterator[tuple[Node, Node]]:
    """Nodes in the order of their operators, where nearly all that are left are paired by it.

    An Identity computes nothing: exporters write them for weights that several layers share.
    """
    lost, came = (
        [node for node in nodes if _operator(node) != "Identity"] for nodes in (lost, came)
    )
    found = blocks([*map(_operator, lost)], [*map(_operator, came)], _LARGEST)
    if sum(length for _, _, length in found) < _NEARLY * max(len(lost), len(came)):
        return
    for one, two, length in found:
        yield from zip(lost[one : one + length], came[two : two + length], strict=True)


def _without(nodes: Sequence[Node], pairs: Sequence[tuple[Node, Node]]) -> list[Node]:
    paired = {id(node) for pair in pairs for node in pair}
    return [node for node in nodes if id(node) not in paired]


def _inputs(one: onnx.GraphProto, other: onnx.GraphProto) -> dict[str, str]:
    """By inputs that only the second has: what the first calls them, where types pair them."""
    names = [{value.name for value in graph.input} for graph in (one, other)]
    was = [value for value in one.input if value.name not in names[1]]
    now = [value for value in other.input if value.name not in names[0]]
    if [type_said(value.type) for value in was] != [type_said(value.type) for value in now]:
        return {}
    return {b.name: a.name for a, b in zip(was, now, strict=True)}


def _map(first: Node, second: Node, names: Names) -> None:
    for name, new in zip(first.outputs, second.outputs, strict=False):
        if new and name:
            names[new] = name


def _maps(names: Names) -> list[Any]:
    return names.maps if isinstance(names, ChainMap) else [names]


def _given_by(scope: Scope, nodes: Sequence[Node]) -> dict[str, str]:
    """What gives each value of a graph."""
    givers = {name: _operator(node) for node in nodes for name in node.outputs if name}
    return {**dict.fromkeys(constants_of(scope), "constant"), **givers}


def _without_end(names: Sequence[str]) -> tuple[str, ...]:
    """Outputs without the empty ones at the end, which say nothing."""
    count = max((index + 1 for index, name in enumerate(names) if name), default=0)
    return tuple(names[:count])


def _places(names: Sequence[str]) -> list[bool]:
    return [bool(name) for name in names]


def _nth(names: Sequence[str], index: int) -> str:
    return names[index] if index < len(names) else ""


def _paired_bodies(first: Node, second: Node) -> Iterator[tuple[str, tuple[Scope, Scope]]]:
    labels = [
        [label for a in node.attributes for label in graphs_of(a)] for node in (first, second)
    ]
    bodies = dict(zip(labels[1], second.bodies, strict=True))
    for label, body in zip(labels[0], first.bodies, strict=True):
        if label in bodies:
            yield label, (body, bodies[label])


def _label(node: Node) -> str:
    return next((name for name in node.outputs if name), node.proto.name)


def _operator(node: Node) -> str:
    return operator_name(node.proto)


def _key(node: Node, names: Mapping[str, str]) -> Any:
    """What a node computes, and from what."""
    attributes = tuple(sorted(map(_bytes, node.attributes)))
    reads = tuple(names.get(name, name) for name in node.inputs)
    return _operator(node), node.key[2], reads, len(node.outputs), attributes


def _bytes(attribute: onnx.AttributeProto) -> bytes:
    """An attribute without its text."""
    if attribute.doc_string:
        copy = onnx.AttributeProto()
        copy.CopyFrom(attribute)
        copy.ClearField("doc_string")
        attribute = copy
    return bytes(attribute.SerializeToString(deterministic=True))
