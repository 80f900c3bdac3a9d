"""What one graph has twice and onnxruntime wants once: told apart in a copy of the model.

Nodes of one name are refused there, as is a body that gives a value of the graph around it. Of a
value that a body gives as two of its outputs one is whatever the memory holds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import onnx

from surgeon.soundness.doubled import doubled


def with_nodes_once(proto: onnx.ModelProto) -> onnx.ModelProto:
    """A copy of a model without the nodes that say again what one before them says."""
    out = _copy(proto)
    for graph in _every_graph(out):
        if repeated(name for node in graph.node for name in node.output):
            for place in reversed(doubled(graph.node)):
                del graph.node[place]
    return out


def with_names_of_their_own(proto: onnx.ModelProto) -> onnx.ModelProto:
    """A copy of a model with the nodes of each graph named apart."""
    out = _copy(proto)
    for graph in _every_graph(out):
        shared = repeated(node.name for node in graph.node)
        taken = {node.name for node in graph.node}
        seen: Counter[str] = Counter()
        for node in graph.node:
            if node.name not in shared:
                continue
            stem = node.name
            seen[stem] += 1
            while seen[stem] > 1 and node.name in taken:
                node.name = f"{stem}_{seen[stem]}"
                seen[stem] += node.name in taken
            taken.add(node.name)
    return out


def with_outputs_of_their_own(proto: onnx.ModelProto) -> onnx.ModelProto:
    """A copy of a model in which each body gives values of its own once, and copies besides."""
    out = _copy(proto)
    main, graphs = out.graph, list(_every_graph(out))
    bodies = [each for each in graphs if isinstance(each, onnx.GraphProto) and each is not main]
    taken: set[str] = {name for graph in graphs for node in graph.node for name in node.output}
    taken = taken.union(*(_own(graph) for graph in (main, *bodies)))
    for graph in bodies:
        seen: set[str] = set()
        own = _own(graph)
        for value in graph.output:
            if value.name in seen or value.name not in own:
                stem, count = value.name, 2
                while (name := f"{stem}_{count}") in taken:
                    count += 1
                graph.node.add(op_type="Identity", input=[stem], output=[name])
                value.name = name
                taken.add(name)
            seen.add(value.name)
    return out


def outputs_to_copy(body: onnx.GraphProto) -> set[str]:
    """The values that a body gives several times, or that are not its own."""
    names = [value.name for value in body.output]
    return repeated(names) | set(names).difference(_own(body))


def _own(graph: onnx.GraphProto) -> set[str]:
    """The values that a graph itself makes or is given."""
    values = (*graph.input, *graph.initializer, *(s.values for s in graph.sparse_initializer))
    return {*(v.name for v in values), *(name for node in graph.node for name in node.output)}


def repeated(names: Iterable[str]) -> set[str]:
    """The names that stand there several times, those aside that are empty."""
    given = [name for name in names if name]
    if len(set(given)) == len(given):
        return set()
    return {name for name, count in Counter(given).items() if count > 1}


def _copy(proto: onnx.ModelProto) -> onnx.ModelProto:
    out = onnx.ModelProto()
    out.CopyFrom(proto)
    return out


def _every_graph(proto: onnx.ModelProto) -> Iterator[Any]:
    """The graph, the functions, and every body in them."""
    stack: list[Any] = [proto.graph, *proto.functions]
    while stack:
        graph = stack.pop()
        yield graph
        for node in graph.node:
            for attribute in node.attribute:
                if attribute.HasField("g"):
                    stack.append(attribute.g)
                if attribute.type == attribute.GRAPHS:
                    stack.extend(attribute.graphs)
