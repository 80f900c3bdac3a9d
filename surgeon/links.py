"""Ways along graphsurgeon's objects: bodies, what stands for a tensor, producers first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import onnx_graphsurgeon as gs


def bodies(graph: gs.Graph) -> Iterator[gs.Graph]:
    """The graphs that hang on the nodes of a graph, outer before inner."""
    stack = [graph]
    while stack:
        for node in stack.pop().nodes:
            if node.attrs:
                for value in node.attrs.values():
                    if isinstance(value, gs.Graph):
                        yield value
                        stack.append(value)


def current(tensor: gs.Tensor) -> gs.Tensor:
    """The tensor that stands for this one now: itself, or the one that took its place."""
    while (became := getattr(tensor, "became", None)) is not None:
        tensor = became
    return tensor


def maker_of(tensor: gs.Tensor) -> gs.Node | None:
    """The node that makes a tensor; None of an input and of a constant."""
    return tensor.inputs[0] if tensor.inputs else None


def named_inputs(node: gs.Node) -> list[gs.Tensor]:
    """What the node's protobuf reads, in the model's own form, as things stand now."""
    tensors = node.inputs if node.origin_inputs is None else node.origin_inputs
    return [current(tensor) for tensor in tensors]


def captured_by(node: gs.Node) -> Iterator[gs.Tensor]:
    """What the bodies of a node read of what stands around it."""
    for body in node.attrs.values():
        if not isinstance(body, gs.Graph):
            continue
        own = {id(t) for t in body.inputs} | {id(t) for n in body.nodes for t in n.outputs}
        for inner in body.nodes:
            for tensor in (*named_inputs(inner), *captured_by(inner)):
                if id(tensor) not in own and getattr(tensor, "home", None) is not body:
                    yield tensor


def constants_of(graph: gs.Graph) -> Iterator[gs.Constant]:
    """The constants that live in a graph, read there or in its bodies, each once."""
    seen: set[int] = set()
    for inner in (graph, *bodies(graph)):
        tensors = [t for n in inner.nodes for t in (*n.inputs, *(n.origin_inputs or ()))]
        for tensor in map(current, (*tensors, *inner.outputs)):
            if id(tensor) in seen or not isinstance(tensor, gs.Constant):
                continue
            seen.add(id(tensor))
            if getattr(tensor, "home", None) is graph:
                yield tensor


def producers_first(
    nodes: Sequence[gs.Node], reads: Callable[[gs.Node], Iterable[gs.Tensor]]
) -> list[gs.Node]:
    """Some nodes of an acyclic graph so that each stands behind those that make what it reads.

    Args:
        nodes: Some nodes; others count for nothing.
        reads: Which tensors of a node count.
    """
    members = {id(node) for node in nodes}
    order: dict[int, gs.Node] = {}
    begun: set[int] = set()
    waiting = list(nodes)
    while waiting:
        node = waiting[-1]
        if id(node) in begun:
            order.setdefault(id(waiting.pop()), node)
            continue
        begun.add(id(node))
        makers = (maker_of(tensor) for tensor in reads(node))
        waiting.extend(
            m for m in makers if m is not None and id(m) in members and id(m) not in begun
        )
    return list(order.values())


def toposort(graph: gs.Graph) -> list[gs.Node]:
    """The nodes so that producers come first; the file's order where it is one already.

    A node comes behind the producers of everything that it or its bodies read.

    Raises:
        ValueError: The graph has a cycle; names a node on it.
    """
    if _in_order(graph):
        return list(graph.nodes)
    members = {id(node) for node in graph.nodes}

    def producers(node: gs.Node) -> list[gs.Node]:
        found = [t.inputs[0] for t in node.inputs if t.inputs]
        for value in node.attrs.values():
            if isinstance(value, gs.Graph):
                for body in (value, *bodies(value)):
                    tensors = [t for n in body.nodes for t in n.inputs] + list(body.outputs)
                    found.extend(t.inputs[0] for t in tensors if t.inputs)
        return [n for n in found if id(n) in members and n is not node]

    order: list[gs.Node] = []
    state: dict[int, int] = {}
    for start in graph.nodes:
        stack = [start]
        while stack:
            node = stack[-1]
            if state.get(id(node)) == 2:
                stack.pop()
                continue
            waiting = [n for n in producers(node) if state.get(id(n)) != 2]
            if not waiting:
                state[id(node)] = 2
                order.append(node)
                stack.pop()
                continue
            if state.get(id(node)) == 1 and any(state.get(id(n)) == 1 for n in waiting):
                raise ValueError(node.name or node.op)
            state[id(node)] = 1
            stack.extend(reversed(waiting))
    return order


def _in_order(graph: gs.Graph) -> bool:
    """Whether the nodes of a graph stand behind what they read; False where one has bodies."""
    members = {id(node) for node in graph.nodes}
    for node in graph.nodes:
        members.discard(id(node))
        for tensor in node.inputs:
            made_by = tensor.inputs
            if made_by and id(made_by[0]) in members:
                return False
        if node.attrs:
            for value in node.attrs.values():
                if isinstance(value, gs.Graph):
                    return False
    return True
