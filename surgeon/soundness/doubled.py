"""Nodes that stand in a graph twice and say the same: what they give has one meaning all the same.

Converters to halves leave such Casts. onnxruntime refuses the file.
"""

from __future__ import annotations

from collections.abc import Sequence

import onnx

from surgeon import standard
from surgeon.nested import every_node

_STANDARD = ("", "ai.onnx", "ai.onnx.ml")


def doubled(nodes: Sequence[onnx.NodeProto]) -> list[int]:
    """The places of nodes that say once more what one before them says.

    Names of nodes and what is noted of them may differ. What draws at random, or may, gives another
    value each time, and is none of these.
    """
    first: dict[str, onnx.NodeProto] = {}
    found = []
    for place, node in enumerate(nodes):
        given = [name for name in node.output if name]
        before = first.get(given[0]) if given else None
        if before is not None and _said(before) == _said(node) and _is_settled(node):
            found.append(place)
            continue
        for name in given:
            first.setdefault(name, node)
    return found


def _said(node: onnx.NodeProto) -> bytes:
    """What a node computes, to compare."""
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    for field in ("name", "doc_string", "metadata_props", "attribute"):
        copy.ClearField(field)
    copy.attribute.extend(sorted(node.attribute, key=lambda each: each.name))
    return bytes(copy.SerializeToString(deterministic=True))


def _is_settled(node: onnx.NodeProto) -> bool:
    """Whether what it gives is decided by what it reads, as far as standards say."""
    return all(
        each.domain in _STANDARD
        and each.op_type not in standard.DRAWING
        and (each.domain == "ai.onnx.ml" or each.op_type in standard.known_operators())
        for each in every_node([node])
    )
