"""What a worker and its parent say to one another: pickles with their lengths in front.

Arrays travel behind the pickle that names them, and are not copied into it.
"""

from __future__ import annotations

import pickle
import struct
from typing import Any, BinaryIO

_LENGTH = struct.Struct("<Q")


def send(stream: BinaryIO | Any, message: Any) -> None:
    """Write a message."""
    buffers: list[pickle.PickleBuffer] = []
    data = pickle.dumps(message, protocol=5, buffer_callback=buffers.append)
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
