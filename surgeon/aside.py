"""Weights of large models in files, for as long as models are compared.

A model that onnxruntime is given in memory is there many times for a while: as protobuf, on its
way to a worker, there again, parsed, and as weights of a session. Weights in files it maps, and
what two models share is there once.
"""

from __future__ import annotations

import errno
import hashlib
import math
import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from pathlib import Path
from tempfile import TemporaryDirectory

import onnx
from onnx import TensorProto

from surgeon.errors import ModelError
from surgeon.external import external_tensors, raw_values
from surgeon.stored import bytes_of
from surgeon.wire import copy_field

_WORTH = 1 << 26  # bytes of such weights in a model that is worth it
_LEAST = 1 << 16  # bytes of such a weight: sizes, axes and pads are read where they stand
_SPARE = 1 << 28  # bytes of the disk that are left to others
_SIZES: dict[int, int] = {  # bytes of a value of the usual types
    **dict.fromkeys((TensorProto.DOUBLE, TensorProto.INT64), 8),
    **dict.fromkeys((TensorProto.FLOAT, TensorProto.INT32), 4),
    **dict.fromkeys((TensorProto.FLOAT16, TensorProto.BFLOAT16), 2),
    **dict.fromkeys((TensorProto.INT8, TensorProto.UINT8), 1),
}


class _Room:
    """A folder for weights, each in a file that is named by its content; made at the first.

    Attributes:
        is_full: Whether there was no place for a weight: then no more are brought.
        made: What was made of models, by their ids; the models themselves too, so that these stay.
    """

    def __init__(self, stack: ExitStack) -> None:
        self._stack, self._folder = stack, ""
        self.is_full = False
        self.made: dict[int, tuple[onnx.ModelProto, onnx.ModelProto]] = {}

    @property
    def folder(self) -> Path:
        """The folder, without links on the way: onnxruntime follows none."""
        if not self._folder:
            made = TemporaryDirectory(prefix="surgeon-", ignore_cleanup_errors=True)
            self._folder = self._stack.enter_context(made)
        return Path(self._folder).resolve()

    def put(self, data: bytes) -> str:
        """The name of the file that holds the data.

        Raises:
            OSError: It cannot be written; what is left of it is gone.
        """
        file = self.folder / hashlib.sha256(data).hexdigest()
        if not file.exists():
            try:
                _see_room(self.folder, len(data))
                file.write_bytes(data)
            except OSError:
                self.is_full = True
                file.unlink(missing_ok=True)
                raise
        return file.name


def _see_room(folder: Path, size: int) -> None:
    if shutil.disk_usage(folder).free < _SPARE + size:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


_room: ContextVar[_Room | None] = ContextVar("surgeon.aside", default=None)


@contextmanager
def room_aside() -> Iterator[None]:
    """Let `put_aside` put weights into files, which go at the end; the outermost counts."""
    if _room.get() is not None:
        yield
        return
    with ExitStack() as stack:
        token = _room.set(_Room(stack))
        try:
            yield
        finally:
            _room.reset(token)


def put_aside(model: onnx.ModelProto, folder: Path | None) -> tuple[onnx.ModelProto, Path | None]:
    """A large model with its weights in files, and where these lie.

    As it came where most of them lie outside already, or there is no room. Of one folder is all
    that lies outside: what little lay there before comes along.
    """
    room = _room.get()
    if room is None:
        return model, folder
    if id(model) in room.made:
        return room.made[id(model)][1], room.folder
    if room.is_full or not is_heavy(model):
        return model, folder
    outside = list(external_tensors(model))
    own = [tensor for tensor in model.graph.initializer if tensor.data_location == tensor.EXTERNAL]
    inside = sum(map(_bytes, model.graph.initializer))
    if len(outside) > len(own) or sum(map(bytes_of, outside)) > inside:
        return model, folder
    try:
        made = _without(model, folder or Path(), room)
    except (OSError, ModelError, ValueError):  # no values, or not as many as it should have
        return model, folder
    room.made[id(model)] = model, made
    return made, room.folder


def is_heavy(model: onnx.ModelProto) -> bool:
    """Whether a model has as many bytes of weights in it as are worth being put aside."""
    return sum(size for size in map(_bytes, model.graph.initializer) if size >= _LEAST) >= _WORTH


def _bytes(tensor: TensorProto) -> int:
    """Of a usual type, where they are in the model; by its dimensions, without reading it."""
    if tensor.data_location == TensorProto.EXTERNAL:
        return 0
    size: int = math.prod(tensor.dims) * _SIZES.get(tensor.data_type, 0)
    return size


def _raw(tensor: TensorProto) -> bytes:
    """The values as bytes, also those of older tools, which are a field of numbers."""
    return tensor.raw_data or onnx.numpy_helper.to_array(tensor).tobytes()


def _without(model: onnx.ModelProto, folder: Path, room: _Room) -> onnx.ModelProto:
    made = onnx.ModelProto()  # a copy of it all would hold the weights as long as it lives
    for field, value in model.ListFields():
        if field.name != "graph":
            copy_field(field.name, value, made)
    for field, value in model.graph.ListFields():
        if field.name != "initializer":
            copy_field(field.name, value, made.graph)
    for tensor in model.graph.initializer:
        new = made.graph.initializer.add()
        is_outside = tensor.data_location == TensorProto.EXTERNAL
        if not is_outside and _bytes(tensor) < _LEAST:
            new.CopyFrom(tensor)
            continue
        data = raw_values(tensor, folder) if is_outside else _raw(tensor)
        new.name, new.data_type = tensor.name, tensor.data_type
        new.dims.extend(tensor.dims)
        new.data_location = TensorProto.EXTERNAL
        new.external_data.add(key="location", value=room.put(data))
    return made
