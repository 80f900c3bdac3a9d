"""Whether every text of a file is one: protobuf's reader lets others through, and fails later."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

import onnx

from surgeon.soundness.scopes import Node, Scope
from surgeon.soundness.tensors import Broken

_ELSEWHERE = frozenset({"graph", "functions", "node", "g", "graphs"})  # scopes and their nodes


def check_texts(proto: onnx.ModelProto, scopes: Iterable[Scope]) -> None:
    """Every text is UTF-8.

    Args:
        proto: The model.
        scopes: Its graph and its functions, which have read their nodes already.

    Raises:
        Broken: One is not.
    """
    _check([proto])
    for scope in (each for top in scopes for each in top.with_bodies()):
        _check([scope.proto])
        for node in scope.nodes:
            _check_node(node)


def _check_node(node: Node) -> None:
    proto = node.proto
    try:
        "".join(node.inputs), "".join(node.outputs)
        "".join((proto.name, proto.op_type, proto.domain, proto.doc_string, proto.overload))
    except (UnicodeDecodeError, TypeError):  # TypeError: one came as bytes
        raise _broken(proto) from None
    if node.attributes:
        _check(list(node.attributes))
    if proto.metadata_props or proto.device_configurations:
        _check([*proto.metadata_props, *proto.device_configurations])


def _check(stack: list[Any]) -> None:
    """Look at messages and all that they hold, but for nodes and graphs."""
    found: list[str] | tuple[str, ...]
    while stack:
        message = stack.pop()
        kind = type(message)
        try:
            if kind is onnx.StringStringEntryProto:  # a dozen in each node of PyTorch's exporter
                found = message.key, message.value
            elif kind is onnx.AttributeProto:
                found = _set_fields(message, stack)
            else:
                found = _every_field(message, stack)
            "".join(found)
        except (UnicodeDecodeError, TypeError):
            raise _broken(message) from None


def _broken(message: Any) -> Broken:
    return Broken(f"a text in its {message.DESCRIPTOR.name} is not UTF-8")


def _set_fields(message: Any, stack: list[Any]) -> list[str]:
    """The texts of a message with few fields set; the messages that it holds go on the stack."""
    found: list[str] = []
    kinds = _kinds(message.DESCRIPTOR)
    for field, value in message.ListFields():
        kind = kinds.get(field.name)
        if kind == "texts":
            found += value
        elif kind == "text":
            found.append(value)
        elif kind == "messages":
            stack += value
        elif kind == "message":
            stack.append(value)
    return found


def _every_field(message: Any, stack: list[Any]) -> list[str]:
    """The same without a look at what is neither: a tensor's bytes are not copied."""
    found: list[str] = []
    for name, kind in _kinds(message.DESCRIPTOR).items():
        if kind == "text":
            found.append(getattr(message, name))
        elif kind == "texts":
            found += getattr(message, name)
        elif kind == "messages":
            stack += getattr(message, name)
        elif message.HasField(name):
            stack.append(getattr(message, name))
    return found


@cache
def _kinds(descriptor: Any) -> dict[str, str]:
    """The fields of a message that are looked at, each `text`, `texts`, `message` or `messages`."""
    kinds = {}
    for field in descriptor.fields:
        kind = {field.TYPE_STRING: "text", field.TYPE_MESSAGE: "message"}.get(field.type)
        if kind is not None and field.name not in _ELSEWHERE:
            many = field.is_repeated if hasattr(field, "is_repeated") else field.label == 3
            kinds[field.name] = kind + "s" if many else kind
    return kinds
