"""Nodes with bodies: the bodies are there, and take and give as many values as their node."""

from __future__ import annotations

import onnx

from surgeon.soundness.scopes import Node
from surgeon.soundness.tensors import Broken, quoted
from surgeon.standard import STANDARD

_BODIES = {
    "If": frozenset({"then_branch", "else_branch"}),
    "Loop": frozenset({"body"}),
    "Scan": frozenset({"body"}),
}
_SCAN_WITHOUT_LENGTHS = 9  # from this opset on the first input of a Scan is no tensor of lengths


def check_bodies(node: Node, opset: int) -> None:
    """Refuse a node whose bodies are not there, or are not what the node needs.

    Raises:
        Broken: It is such a node.
    """
    operator = node.proto.op_type
    if not (node.attributes or operator in _BODIES):
        return
    for attribute in node.attributes:
        if attribute.type == onnx.AttributeProto.GRAPH and not attribute.HasField("g"):
            raise Broken(f"attribute {quoted(attribute.name)} of {node} holds no graph")
    wanted = _BODIES.get(operator)
    if wanted is None or node.proto.domain not in STANDARD:
        return
    lacking = wanted - {each.name for each in node.attributes if each.HasField("g")}
    if lacking:
        raise Broken(f"{node} has no {quoted(min(lacking))}")
    takes, gives = len(node.inputs), len(node.outputs)
    if operator == "If":
        if not any(node.inputs[:1]):
            raise Broken(f"{node} has no condition")
        takes = 0
    elif operator == "Loop":  # a number of turns and a condition, whether they are said or not
        takes, gives = max(takes, 2), 1 + max(takes - 2, gives)
    elif opset < _SCAN_WITHOUT_LENGTHS:
        takes -= 1
    for body in node.bodies:
        called = "a branch" if operator == "If" else "the body"
        if len(body.proto.input) < takes:
            raise Broken(f"{called} of {node} takes fewer values than the node has for it")
        if len(body.proto.output) < gives:
            raise Broken(f"{called} of {node} gives fewer values than the node")
