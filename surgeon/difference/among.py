"""What differs of some nodes of two models, and of constants where all nodes are the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import onnx

from surgeon.difference.graphs import Pairing, Step
from surgeon.difference.values import Values
from surgeon.difference.weights import Weights
from surgeon.nested import every_node
from surgeon.soundness.scopes import Scope

Folders = tuple[Path | None, Path | None]
Change = tuple[str, str, str]  # name, before, after


def changes_of(
    nodes: Iterable[onnx.NodeProto],
    one: onnx.GraphProto,
    other: onnx.GraphProto,
    folders: Folders = (None, None),
) -> Iterator[Change]:
    """Attributes and operands of nodes, and values of constants they read, that changed.

    Args:
        nodes: Of the second graph.
        one: The first.
        other: The second.
        folders: Where the external data of each lie.
    """
    pairing = _paired(one, other, folders)
    for node in nodes:
        label = next((name for name in node.output if name), node.name)
        heads = (f"{label} (", *(f"{label}.{a.name}/" for a in node.attribute))
        yield from (each for each in pairing.found[Step.CHANGED] if each[0].startswith(heads))
        read = {name for inner in every_node([node]) for name in inner.input}
        for name, before, after in pairing.weights.changed:
            if name in read or name.startswith(heads[1:]):
                yield name, before, after


def constants_apart(
    one: onnx.ModelProto, other: onnx.ModelProto, folders: Folders = (None, None)
) -> list[Change]:
    """Constants of which the values differ, where nothing else of the main graph does; else none.

    Args:
        one: The first model.
        other: The second.
        folders: Where the external data of each lie.
    """
    counts = [
        Counter((n.domain, n.op_type) for n in model.graph.node if n.op_type != "Constant")
        for model in (one, other)
    ]
    if any(isinstance(text, bytes) for count in counts for pair in count for text in pair):
        return []  # no text: there is nothing to be told by it
    functions = [
        [f.SerializeToString(deterministic=True) for f in m.functions] for m in (one, other)
    ]
    if counts[0] != counts[1] or functions[0] != functions[1]:
        return []
    pairing = _paired(one.graph, other.graph, folders)
    found = [each for step in Step if step is not Step.RENAMED for each in pairing.found[step]]
    if found or pairing.weights.lone or pairing.ends.declared:
        return []
    return pairing.weights.changed


def _paired(one: onnx.GraphProto, other: onnx.GraphProto, folders: Folders) -> Pairing:
    values = Values(folders)
    pairing = Pairing(Weights(values), values)
    pairing.compare(Scope(one), Scope(other))
    return pairing
