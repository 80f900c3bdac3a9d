"""A model as protobuf's bytes: read, or said what they are instead; and written."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import onnx
from google.protobuf.message import DecodeError, EncodeError, Message

from surgeon.errors import ModelError
from surgeon.mistaken import AGAIN, Mistaken, by_fields, by_signature

LARGEST = 1 << 31  # bytes of a protobuf


def check_size(size: int, path: Path) -> None:
    """See that a file of so many bytes can be a model.

    Raises:
        ModelError: It is larger than protobuf can read (2 GiB).
    """
    if size > LARGEST:
        raise ModelError(
            "it is larger than the 2 GiB that protobuf can read",
            where=str(path),
            mend="Export it again with external data, as in "
            "`torch.onnx.export(..., external_data=True)`: nothing reads such a file.",
        )


def parse(data: bytes, *, where: str) -> onnx.ModelProto:
    """A model from the bytes of a file.

    Raises:
        ModelError: The bytes are no ONNX model; says what they look like.
    """
    if not data:
        raise ModelError("the file is empty", where=where, mend=AGAIN)
    if found := by_signature(data):
        raise _mistaken(found, where)
    proto = onnx.ModelProto()
    try:
        proto.ParseFromString(data)
    except (DecodeError, UnicodeDecodeError):  # the latter of protobuf's own Python alone
        if found := by_fields(data):
            raise _mistaken(found, where) from None
        raise ModelError(
            "this is no ONNX model, or a truncated one: protobuf cannot read it",
            where=where,
            mend=AGAIN,
        ) from None
    if not proto.HasField("graph") or not (proto.graph.node or proto.graph.output):
        if found := by_fields(data):
            raise _mistaken(found, where)
        raise ModelError("the model holds no graph", where=where, mend=AGAIN)
    return proto


def _mistaken(found: Mistaken, where: str) -> ModelError:
    return ModelError(f"this is {found.kind}, not an ONNX model", where=where, mend=found.mend)


def serialise(
    proto: onnx.ModelProto, initializers: Sequence[onnx.TensorProto] = (), *, where: str
) -> list[bytes]:
    """The bytes of a model, in pieces.

    protobuf takes a model's whole size three times over to write it, and a tensor has to be copied
    into the graph before; here each initializer is written by itself, where it stands in the file
    (https://protobuf.dev/programming-guides/encoding: a message is its fields, each a tag, a length
    and its bytes; protobuf orders them by number). The pieces make what the whole would.

    Args:
        proto: The model; taken apart where there are `initializers`.
        initializers: Those of the main graph, which `proto` lacks.
        where: What the errors say.

    Raises:
        ModelError: It is larger than protobuf can write (2 GiB).
    """
    try:
        if not initializers:
            pieces = [_bytes_of(proto)]
        else:
            behind, end = _taken_behind(proto, "graph"), _taken_behind(proto.graph, "initializer")
            inner = [_bytes_of(proto.graph)]
            for tensor in initializers:
                data = _bytes_of(tensor)
                inner += (_head(onnx.GraphProto, "initializer", len(data)), data)
            inner.append(_bytes_of(end))
            head = _head(onnx.ModelProto, "graph", sum(map(len, inner)))
            proto.ClearField("graph")
            pieces = [_bytes_of(proto), head, *inner, _bytes_of(behind)]
    except (ValueError, EncodeError) as error:
        # "Failed to serialize" is all that protobuf says, also where memory is short.
        small = _weight((*proto.graph.initializer, *initializers)) < LARGEST * 0.9
        if isinstance(error, EncodeError) and small:
            raise MemoryError from None
        raise _too_large(where) from None
    if sum(map(len, pieces)) >= LARGEST:
        raise _too_large(where)
    return pieces


def _too_large(where: str) -> ModelError:
    return ModelError(
        "the model is larger than the 2 GiB that protobuf can write in one file",
        where=where,
        mend="Put its weights into a file beside it: `--external-data pack`, or before, with onnx, "
        "`onnx.save(..., save_as_external_data=True)`.",
    )


def _bytes_of(message: Message) -> bytes:
    return bytes(message.SerializeToString(deterministic=True))


def copy_field(name: str, value: Any, target: Any) -> None:
    """Put a field that is no single message into a message which lacks it."""
    if isinstance(value, str | bytes | int | float):
        setattr(target, name, value)
    else:
        getattr(target, name).extend(value)


def _taken_behind(message: Any, name: str) -> Any:
    """The fields that stand behind field `name`, in a message of their own; none is a message."""
    behind = type(message)()
    for field, value in message.ListFields():
        if field.number > message.DESCRIPTOR.fields_by_name[name].number:
            copy_field(field.name, value, behind)
            message.ClearField(field.name)
    return behind


def _head(message: type[Message], name: str, size: int) -> bytes:
    """What stands in front of a field's `size` bytes: its number and kind, and how many."""
    length_delimited = 2
    found = bytearray()
    for number in (message.DESCRIPTOR.fields_by_name[name].number << 3 | length_delimited, size):
        while number > 0x7F:
            found.append(number & 0x7F | 0x80)
            number >>= 7
        found.append(number)
    return bytes(found)


def _weight(tensors: Iterable[onnx.TensorProto]) -> int:
    """Bytes of the values of tensors, about."""
    return sum(
        len(tensor.raw_data) + 4 * len(tensor.float_data) + 8 * len(tensor.int64_data)
        for tensor in tensors
    )
