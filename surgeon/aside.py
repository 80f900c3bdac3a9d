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
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from pathlib import Path

import onnx
from onnx import TensorProto

from surgeon.errors import ModelError
from surgeon.external import external_tensors, raw_values
from surgeon.leftovers import Folder
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
            None where nothing is remembered.
    """

    def __init__(self, stack: ExitStack) -> None:
        self._stack, self._folder = stack, ""
        self.is_full = False
        self.made: dict[int, tuple[onnx.ModelProto, onnx.ModelProto]] | None = None

    @property
    def folder(self) -> Path:
        """The folder, without links on the way: onnxruntime follows none."""
        if not self._folder:
            self._folder = self._stack.enter_context(Folder())
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
def room_aside(*, remember: bool = True) -> Iterator[None]:
    """Let `put_aside` put weights into files, which go at the end of the outermost of these.

    Args:
        remember: Whether each model is put aside once: then it stays as long as this does.
    """
    with ExitStack() as stack:
        room = _room.get()
        if room is None:
            room = _Room(stack)
            stack.callback(_room.reset, _room.set(room))
        before, room.made = room.made, {} if remember else None
        try:
            yield
        finally:
            room.made = before


def put_aside(
    model: onnx.ModelProto,
    folder: Path | None,
    initializers: Sequence[TensorProto] = (),
) -> tuple[onnx.ModelProto, Path | None]:
    """A large model with its weights in files, and where these lie.

    As it came where most of them lie outside already, or there is no room. Of one folder is all
    that lies outside: what little lay there before comes along.

    Args:
        model: The model; one that comes with initializers is given these where it stays.
        folder: Where its external data lie.
        initializers: What it has beside those that it holds, in their order.
    """
    made, room = None, _room.get()
    if room is not None:
        if room.made and id(model) in room.made:
            return room.made[id(model)][1], room.folder
        made = _light(model, folder or Path(), initializers, room)
    if room is None or made is None:
        model.graph.initializer.extend(initializers)
        return model, folder
    if room.made is not None and not initializers:
        room.made[id(model)] = model, made
    return made, room.folder


def is_heavy(weights: Iterable[TensorProto]) -> bool:
    """Whether these have as many bytes in a model as are worth being put aside."""
    return sum(size for size in map(_bytes, weights) if size >= _LEAST) >= _WORTH


def _light(
    model: onnx.ModelProto, folder: Path, initializers: Sequence[TensorProto], room: _Room
) -> onnx.ModelProto | None:
    """The model with its weights in the room; None where they stay."""
    weights = [*model.graph.initializer, *initializers]
    if room.is_full or not is_heavy(weights):
        return None
    outside = [*external_tensors(model), *filter(_is_outside, initializers)]
    inside = sum(map(_bytes, weights))
    if len(outside) > sum(map(_is_outside, weights)) or sum(map(bytes_of, outside)) > inside:
        return None
    try:
        return _without(model, folder, weights, room)
    except (OSError, ModelError, ValueError):  # no values, or not as many as it should have
        return None


def _is_outside(tensor: TensorProto) -> bool:
    return bool(tensor.data_location == TensorProto.EXTERNAL)


def _bytes(tensor: TensorProto) -> int:
    """Of a usual type, where they are in the model; by its dimensions, without reading it."""
    if _is_outside(tensor):
        return 0
    size: int = math.prod(tensor.dims) * _SIZES.get(tensor.data_type, 0)
    return size


def _raw(tensor: TensorProto) -> bytes:
    """The values as bytes, also those of older tools, which are a field of numbers."""
    return tensor.raw_data or onnx.numpy_helper.to_array(tensor).tobytes()


def _without(
    model: onnx.ModelProto, folder: Path, weights: Sequence[TensorProto], room: _Room
) -> onnx.ModelProto:
    made = onnx.ModelProto()  # a copy of it all would hold the weights as long as it lives
    for field, value in model.ListFields():
        if field.name != "graph":
            copy_field(field.name, value, made)
    for field, value in model.graph.ListFields():
        if field.name != "initializer":
            copy_field(field.name, value, made.graph)
    for tensor in weights:
        new = made.graph.initializer.add()
        if not _is_outside(tensor) and _bytes(tensor) < _LEAST:
            new.CopyFrom(tensor)
            continue
        data = raw_values(tensor, folder) if _is_outside(tensor) else _raw(tensor)
        new.name, new.data_type = tensor.name, tensor.data_type
        new.dims.extend(tensor.dims)
        new.data_location = TensorProto.EXTERNAL
        new.external_data.add(key="location", value=room.put(data))
    return made
