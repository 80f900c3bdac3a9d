"""Ways along graphsurgeon's objects: bodies on a graph's nodes, and what stands for a tensor."""

from __future__ import annotations

from collections.abc import Iterator

import onnx_graphsurgeon as gs


def bodies(graph: gs.Graph) -> Iterator[gs.Graph]:
    """The graphs that hang on the nodes of a graph, outer before inner."""
    stack = [graph]
    while stack:
        for node in stack.pop().nodes:
            for value in node.attrs.values():
                if isinstance(value, gs.Graph):
                    yield value
                    stack.append(value)


def current(tensor: gs.Tensor) -> gs.Tensor:
    """The tensor that stands for this one now: itself, or the one that took its place."""
    while (became := getattr(tensor, "became", None)) is not None:
        tensor = became
    return tensor
