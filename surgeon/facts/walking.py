"""What is known of a graph, node by node."""

from __future__ import annotations

from collections.abc import Iterator

import onnx_graphsurgeon as gs

from surgeon.errors import SurgeonError
from surgeon.facts.inference import Facts
from surgeon.links import toposort


def walked(facts: Facts, graph: gs.Graph) -> Iterator[gs.Node]:
    """The nodes of a graph behind those that they read, each with the facts of its outputs.

    Nodes that are malformed for these sizes, as those of a file for others, are left out.
    """
    facts.enter(graph)
    for node in toposort(graph):
        try:
            facts.infer(node)
        except (SurgeonError, LookupError, TypeError, ValueError):
            continue
        yield node
