"""Nodes of a file in an order that graphsurgeon can link: bodies behind all that they read."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import Any

import onnx


def in_order(proto: onnx.ModelProto) -> onnx.ModelProto:
    """The model with nodes that have bodies behind all that these read; itself where that is so.

    graphsurgeon links what a body reads only to what came before its node; runtimes take any order.
    """
    if not any(_late(graph) for graph in (proto.graph, *proto.functions)):
        return proto
    out = onnx.ModelProto()
    out.CopyFrom(proto)
    for graph in (out.graph, *out.functions):
        _sort(graph)
    return out


def _late(graph: Any) -> bool:
    """Whether some body of the graph reads what a later node gives."""
    holders = [(i, node, list(_bodies_of(node))) for i, node in enumerate(graph.node)]
    holders = [holder for holder in holders if holder[2]]
    if not holders:
        return False
    made = {name: i for i, node in enumerate(graph.node) for name in node.output}
    return any(
        any(made.get(name, -1) > i for name in _reads(node)) or any(map(_late, inner))
        for i, node, inner in holders
    )


def _sort(graph: Any) -> None:
    """Order nodes behind what they read, as near to the file's order as that goes."""
    made = {name: i for i, node in enumerate(graph.node) for name in node.output if name}
    waits = [{made[n] for n in _reads(node) if n in made} for node in graph.node]
    readers: list[list[int]] = [[] for _ in waits]
    for i, before in enumerate(waits):
        for j in before:
            readers[j].append(i)
    free = [i for i, before in enumerate(waits) if not before]
    order: list[int] = []
    while free:
        i = heapq.heappop(free)
        order.append(i)
        for j in readers[i]:
            waits[j].discard(i)
            if not waits[j]:
                heapq.heappush(free, j)
    if len(order) == len(waits):  # else there is a cycle, which the sweep names
        nodes = [graph.node[i] for i in order]
        copies = [onnx.NodeProto.FromString(node.SerializeToString()) for node in nodes]
        del graph.node[:]
        graph.node.extend(copies)
    for node in graph.node:
        for body in _bodies_of(node):
            _sort(body)


def _bodies_of(node: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    return (attribute.g for attribute in node.attribute if attribute.HasField("g"))


def _reads(node: onnx.NodeProto) -> set[str]:
    """The names that a node and its bodies read."""
    names = set(node.input)
    stack = list(_bodies_of(node))
    while stack:
        graph = stack.pop()
        names.update(value.name for value in graph.output)
        for inner in graph.node:
            names.update(inner.input)
            stack.extend(_bodies_of(inner))
    return names - {""}
