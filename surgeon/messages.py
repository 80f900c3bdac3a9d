"""What a worker and its parent say to one another: pickles with their lengths in front.

Arrays travel behind the pickle that names them, and are not copied into it.
"""

from __future__ import annotations

import pickle
import struct
from typing import Any, BinaryIO

from google.protobuf.message import EncodeError

from surgeon.errors import ModelError

_LENGTH = struct.Struct("<Q")


def send(stream: BinaryIO | Any, message: Any) -> None:
    """Write a message.

    Raises:
        ModelError: It holds a model that is larger than protobuf can write.
    """
    buffers: list[pickle.PickleBuffer] = []
    try:
        data = pickle.dumps(message, protocol=5, buffer_callback=buffers.append)
    except EncodeError:
        raise ModelError(
            "on the way the model grows larger than the 2 GiB that protobuf can write",
            where="what is sent to a worker",
            mend="Keep its weights in external data: `onnx.save(..., save_as_external_data=True)`.",
        ) from None
    parts = [memoryview(data), *(buffer.raw() for buffer in buffers)]
    stream.write(_LENGTH.pack(len(parts)) + b"".join(_LENGTH.pack(part.nbytes) for part in parts))
    for part in parts:
        stream.write(part)
    stream.flush()


def receive(stream: BinaryIO | Any) -> Any:
    """Read a message.

    Raises:
        EOFError: The other side is gone, or says what is no message.
    """
    count = _LENGTH.unpack(_read(stream, _LENGTH.size))[0]
    lengths = [_LENGTH.unpack(_read(stream, _LENGTH.size))[0] for _ in range(count)]
    data, *buffers = [_read(stream, length) for length in lengths]
    try:
        return pickle.loads(data, buffers=buffers)
    except pickle.UnpicklingError as error:
        raise EOFError from error


def _read(stream: Any, length: int) -> bytearray:
    """So many bytes, which whoever unpickles an array of them may write to."""
    data = bytearray(length)
    view, at = memoryview(data), 0
    while at < length:
        read = stream.readinto(view[at:])
        if not read:
            raise EOFError
        at += read
    return data
