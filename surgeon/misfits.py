"""Nodes that cannot be as they stand, one by one: a runtime names the first of them alone.

What reads a value that nobody gives, what ONNX has no such operator for at the model's opset, and
what has other operands or attributes than its operator, or shapes that do not go together. Types
and shapes are those that onnx infers, without what the file claims of values on the way.
"""

from __future__ import annotations

import re
from collections import ChainMap
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple, TypeAlias

import onnx
import onnx.defs

from surgeon.inferring import NotInferred, inferred
from surgeon.nested import bodies, every_body, every_node
from surgeon.oddities import held_by, without_claims
from surgeon.reference.plan import reads
from surgeon.spelling import operator_name
from surgeon.standard import STANDARD, first_opset, schema

# How onnx tells of each node of which inference fails; of one with a body it tells what is inside.
_SAID = re.compile(r"\(op_type:[^\n]*?, node name: (\d+)\): (?:\[\w+\] )?")
_AROUND = "Inference error(s): "
_BEHIND = "is null"  # of what stands behind another fault, or an operator nobody knows
_ANY = 2**31 - 1  # operands: as many as there are
Graph = onnx.GraphProto | onnx.FunctionProto
Types: TypeAlias = ChainMap[str, str]
Around: TypeAlias = tuple[set[str], ...]  # what each graph around one gives; joined, it is copied


UNLIKE = "which have to be of one type"  # ends what is said of operands of several types


class Misfit(NamedTuple):
    """What is wrong with a node.

    Attributes:
        node: Its name, or its first output's.
        operator: As recipes write it.
        what: What is wrong, in words.
    """

    node: str
    operator: str
    what: str


def label(node: onnx.NodeProto) -> str:
    """What a node is called: its name, or that of its first output."""
    return node.name or next(filter(None, node.output), "")


def misfits(proto: onnx.ModelProto, *, sound: bool) -> tuple[Misfit, ...]:
    """The nodes that cannot be as they stand, each fault once, in the order of the file.

    Args:
        proto: Not changed.
        sound: Whether it is a model throughout; of a broken one nothing is inferred.
    """
    nodes = list(_nodes(proto))
    places = {id(node): at for at, node in enumerate(nodes)}
    found = [(places[id(node)], what) for node, what in _nowhere(proto)]
    if sound:
        found += ((places[id(node)], what) for node, what in _inferred(proto))
    known = dict.fromkeys(sorted(found, key=lambda each: each[0]))
    return tuple(Misfit(label(nodes[at]), operator_name(nodes[at]), what) for at, what in known)


def unread(proto: onnx.ModelProto) -> tuple[str, ...]:
    """The nodes, without constants, that lead to no output of the graph that they stand in."""
    found: list[str] = []
    for graph in _graphs(proto):
        ends = [end if isinstance(end, str) else end.name for end in graph.output]
        makers = {name: node for node in graph.node for name in node.output if name}
        live: set[int] = set()
        pending = ends
        while pending:
            node = makers.get(pending.pop())
            if node is not None and id(node) not in live:
                live.add(id(node))
                pending.extend(reads(node))
        dead = (n for n in graph.node if id(n) not in live and n.op_type != "Constant")
        found.extend(map(label, dead))
    return tuple(found)


def _graphs(proto: onnx.ModelProto) -> Iterator[Graph]:
    """The graph, the functions, and all bodies."""
    for top in (proto.graph, *proto.functions):
        yield top
        yield from every_body(top.node)


def _nodes(proto: onnx.ModelProto) -> Iterator[onnx.NodeProto]:
    """Every node, each before those inside it, those of functions last."""
    for top in (proto.graph, *proto.functions):
        yield from every_node(top.node)


# ------------------------------------------------------------------------------- without types


def _nowhere(proto: onnx.ModelProto) -> Iterator[tuple[onnx.NodeProto, str]]:
    """Nodes that read what nothing gives."""
    stack: list[tuple[Graph, Around]] = [(g, ()) for g in (*proto.functions, proto.graph)]
    while stack:
        graph, outside = stack.pop()
        given = {end if isinstance(end, str) else end.name for end in graph.input}
        given.update(name for node in graph.node for name in node.output)
        if isinstance(graph, onnx.GraphProto):
            given.update(tensor.name for tensor in graph.initializer)
            given.update(tensor.values.name for tensor in graph.sparse_initializer)
        seen = (given, *outside)
        for node in graph.node:
            for name in dict.fromkeys(node.input):
                if name and not any(name in each for each in seen):
                    yield node, f"it reads `{name}`, which nothing gives"
            stack.extend((body, seen) for body in bodies(node))


# ---------------------------------------------------------------------------------- with types


def _inferred(proto: onnx.ModelProto) -> Iterator[tuple[onnx.NodeProto, str]]:
    """Nodes of which inference fails, and those that are not as their operator is defined."""
    known = _Known(proto)
    light = without_claims(proto)
    own = (node for node in proto.graph.node if not held_by(node))
    nodes = [*every_node(own)]
    nodes += [node for function in proto.functions for node in every_node(function.node)]
    for at, node in enumerate(_nodes(light)):
        node.name = str(at)  # by which onnx tells of it
    yield from ((node, what) for node in nodes if (what := known.lack(node)))
    for graph in [*_graphs(light)]:  # behind what it does not know onnx tells of no fault
        if not all(map(known.has, graph.node)):
            kept = [node for node in graph.node if known.has(node)]
            del graph.node[:]
            graph.node.extend(kept)
    typed, failed = _typed(light)
    unlike: set[int] = set()
    for node, types in _with_types(typed.graph, ChainMap()):
        if node.domain in STANDARD and not known.is_call(node):
            for what in _unlike(node, known.opset, types):
                unlike.add(int(node.name))
                yield nodes[int(node.name)], what
    for at, what in _told(failed):
        if at < len(nodes) and at not in unlike:  # else it may say the same in other words
            yield nodes[at], what


def _typed(light: onnx.ModelProto) -> tuple[onnx.ModelProto, str]:
    """A model with the types of its values, and what onnx says where inference fails."""
    try:
        return inferred(light, strict=True), ""
    except NotInferred as error:
        failed = str(error)
    with suppress(NotInferred):
        return inferred(light), failed
    return light, failed


class _Known:
    """What onnx knows of a model's operators."""

    def __init__(self, proto: onnx.ModelProto) -> None:
        most = 2**31 - 1  # which C++ takes for one
        self.versions = {e.domain: min(max(e.version, 1), most) for e in proto.opset_import}
        self.opset = self.versions.get("", self.versions.get("ai.onnx", 1))
        self.functions = {(function.domain, function.name) for function in proto.functions}

    def is_call(self, node: onnx.NodeProto) -> bool:
        """Whether a node calls a function of the model."""
        return (node.domain, node.op_type) in self.functions

    def has(self, node: onnx.NodeProto) -> bool:
        """Whether onnx can infer anything of a node."""
        if node.domain in STANDARD:
            own = schema(node.op_type, self.opset)
            return self.is_call(node) or (own is not None and not own.deprecated)
        version = self.versions.get(node.domain)
        return self.is_call(node) or (
            version is not None and onnx.defs.has(node.op_type, version, node.domain)
        )

    def lack(self, node: onnx.NodeProto) -> str:
        """That ONNX has no such operator; "" of one that it has, and of those of other domains."""
        # what other tools write without a domain of theirs is known by it
        if node.domain not in STANDARD or self.has(node) or operator_name(node) != node.op_type:
            return ""
        first = first_opset(node.op_type)
        if first is None:
            return "ONNX has no such operator"
        if first > self.opset:
            return f"ONNX has no such operator at opset {self.opset}: it is of {first} and later"
        return f"ONNX has no such operator any more at opset {self.opset}"


def _told(text: str) -> Iterator[tuple[int, str]]:
    """The nodes of which inference fails, by number, and why."""
    found = list(_SAID.finditer(text))
    ends = [*(each.start() for each in found), len(text)][1:]
    for each, end in zip(found, ends, strict=True):
        what = " ".join(text[each.end() : end].split())
        if what and not what.startswith(_AROUND.strip()) and not what.endswith(_BEHIND):
            yield int(each[1]), what


def _with_types(graph: onnx.GraphProto, outside: Types) -> Iterator[tuple[onnx.NodeProto, Types]]:
    """Nodes, each with the types of the values around it."""
    stated = (*graph.input, *graph.value_info, *graph.output)
    types = outside.new_child({value.name: _said(value.type) for value in stated})
    for tensor in graph.initializer:
        kind = _element(tensor.data_type)
        types[tensor.name] = f"tensor({kind})" if kind else ""
    for node in graph.node:
        yield node, types
        for body in bodies(node):
            yield from _with_types(body, types)


def _element(number: int) -> str:
    """The name of an element type; "" of none, and of one that no onnx knows."""
    known = number in onnx.TensorProto.DataType.values()
    return onnx.TensorProto.DataType.Name(number).lower() if number and known else ""


def _said(type_: onnx.TypeProto) -> str:
    """A type as onnx's schemas write it; "" where it is not known."""
    kind = type_.WhichOneof("value")
    if kind in ("tensor_type", "sparse_tensor_type"):
        name = _element(getattr(type_, kind).elem_type)
        return f"{kind.removesuffix('_type')}({name})" if name else ""
    if kind in ("sequence_type", "optional_type"):
        inner = _said(getattr(type_, kind).elem_type)
        return f"{'seq' if kind == 'sequence_type' else 'optional'}({inner})" if inner else ""
    return ""


def _unlike(node: onnx.NodeProto, opset: int, types: Types) -> Iterator[str]:
    """In what a standard node is not as its operator is defined at an opset."""
    own = schema(node.op_type, opset)
    if own is None or own.deprecated:
        return
    yield from _of_attributes(node, own)
    given = len(node.input)
    if not own.min_input <= given <= own.max_input:
        wanted = str(own.min_input)
        if own.max_input > own.min_input:
            more = own.max_input >= _ANY
            wanted += " or more" if more else f" to {own.max_input}"
        yield f"it reads {given}, and takes {wanted}"
        return
    yield from _of_operands(node, own, types)


def _of_attributes(node: onnx.NodeProto, own: onnx.defs.OpSchema) -> Iterator[str]:
    there = {attribute.name for attribute in node.attribute}
    for name in sorted(there - own.attributes.keys()):
        yield f"it has no attribute `{name}`"
    for name, attribute in sorted(own.attributes.items()):
        if attribute.required and name not in there:
            yield f"its attribute `{name}` is missing"


def _of_operands(node: onnx.NodeProto, own: onnx.defs.OpSchema, types: Types) -> Iterator[str]:
    bound: dict[str, tuple[str, str]] = {}
    for at, name in enumerate(node.input):
        wanted = own.inputs[min(at, len(own.inputs) - 1)]
        kind = types.get(name, "") if name else ""
        if not kind:
            continue
        if kind not in wanted.types:
            yield f"`{name}` is {kind}, which it does not take there"
        elif wanted.is_homogeneous:
            other, first = bound.setdefault(wanted.type_str, (name, kind))
            if first != kind:
                yield f"`{other}` is {first} and `{name}` {kind}, {UNLIKE}"
