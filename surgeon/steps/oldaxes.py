"""Operands that are lined up with an axis, as an attribute says before opset 7."""

from __future__ import annotations

from collections.abc import Mapping

import onnx

from surgeon.nested import every_body
from surgeon.standard import STANDARD

_LINED_UP = frozenset("Add And Div Equal Greater Less Mul Or Pow Sub Xor".split())


def with_trailing_ones(
    proto: onnx.ModelProto, kinds: Mapping[str, onnx.TypeProto.Tensor]
) -> onnx.ModelProto:
    """The model with operands that line up from behind, as all do from opset 7 on.

    `Add <broadcast = 1, axis = 1> (x, b)` adds a vector to channels; onnx's version converter takes
    it for one of columns, and stops where these are not as many. What an operand or its rank is
    that is not known stays, for the converter to say.

    Args:
        proto: The model, at an opset before 7.
        kinds: What is known of types and shapes, by the value's name.
    """
    made = onnx.ModelProto()
    made.CopyFrom(proto)
    for graph in (made.graph, *every_body(made.graph.node)):
        nodes = []
        for node in graph.node:
            said = {each.name: each.i for each in node.attribute}
            if node.op_type in _LINED_UP and node.domain in STANDARD and said.get("broadcast"):
                rank, own = (rank_of(kinds, name) for name in node.input)
                if "axis" in said and rank is not None and own is not None:
                    nodes += _lined_up(node, said["axis"], rank, own)
            nodes.append(node)
        del graph.node[:]
        graph.node.extend(nodes)
    return made


def _lined_up(node: onnx.NodeProto, axis: int, rank: int, own: int) -> list[onnx.NodeProto]:
    """Leaves the axis out of a node; what gives the operand as many ones as are behind it."""
    kept = [each for each in node.attribute if each.name != "axis"]
    del node.attribute[:]
    node.attribute.extend(kept)
    ones = [*range(own, rank - (axis + rank if axis < 0 else axis))]
    if not ones:
        return []
    spread = f"{node.output[0]}/operand"
    view = onnx.helper.make_node("Unsqueeze", [node.input[1]], [spread], spread, axes=ones)
    node.input[1] = spread
    return [view]


def rank_of(kinds: Mapping[str, onnx.TypeProto.Tensor], name: str) -> int | None:
    """How many axes a value has; None where that is not known."""
    kind = kinds.get(name)
    return len(kind.shape.dim) if kind is not None and kind.HasField("shape") else None
