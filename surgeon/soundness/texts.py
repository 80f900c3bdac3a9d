"""Whether every text of a file is one: protobuf's reader lets others through, and fails later."""

from __future__ import annotations

from functools import cache
from typing import Any

import onnx

from surgeon.soundness.tensors import Broken


def check_texts(proto: onnx.ModelProto) -> None:
    """Every text is UTF-8.

    Raises:
        Broken: One is not.
    """
    stack: list[Any] = [proto]
    while stack:
        message = stack.pop()
        try:
            found = _set_fields(message, stack) if type(message) in _SMALL else _all(message, stack)
        except UnicodeDecodeError:
            found = [b""]
        for text in found:
            if type(text) is bytes:
                raise Broken(f"a text in its {message.DESCRIPTOR.name} is not UTF-8")


def _set_fields(message: Any, stack: list[Any]) -> list[Any]:
    """The texts of a message; what messages it holds go on the stack."""
    found = []
    kinds = _SMALL[type(message)]
    for field, value in message.ListFields():
        kind = kinds.get(field.number)
        if kind == "texts":
            found += value
        elif kind == "text":
            found.append(value)
        elif kind == "messages":
            stack += value
        elif kind == "message":
            stack.append(value)
    return found


def _all(message: Any, stack: list[Any]) -> list[Any]:
    """The same without a look at what is neither: a tensor's bytes are not copied."""
    texts, lists, messages, groups = _fields(message.DESCRIPTOR)
    found = [getattr(message, name) for name in texts]
    for name in lists:
        found += getattr(message, name)
    stack += [getattr(message, name) for name in messages if message.HasField(name)]
    for name in groups:
        stack += getattr(message, name)
    return found


def _kind(field: Any) -> str:
    """`text`, `texts`, `message`, `messages`, or nothing of these."""
    kind = {field.TYPE_STRING: "text", field.TYPE_MESSAGE: "message"}.get(field.type, "")
    many = field.is_repeated if hasattr(field, "is_repeated") else field.label == 3
    return kind + "s" if kind and many else kind


@cache
def _fields(descriptor: Any) -> tuple[list[str], list[str], list[str], list[str]]:
    """The names of a message's fields: texts, lists of texts, messages, lists of messages."""
    found: dict[str, list[str]] = {"text": [], "texts": [], "message": [], "messages": [], "": []}
    for field in descriptor.fields:
        found[_kind(field)].append(field.name)
    return found["text"], found["texts"], found["message"], found["messages"]


# Of these, which are many and small, only the fields that are set are asked for: their kinds, by
# number.
_SMALL: dict[Any, dict[int, str]] = {
    message: {field.number: _kind(field) for field in message.DESCRIPTOR.fields}
    for message in (onnx.NodeProto, onnx.AttributeProto)
}
