"""Weights of large models in files, for as long as models are compared.

A model that onnxruntime is given in memory is there many times for a while: as protobuf, on its
way to a worker, there again, parsed, and as weights of a session. Weights in files it maps, and
what two models share is there once.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from pathlib import Path
from tempfile import TemporaryDirectory

import onnx
from onnx import TensorProto

from surgeon.external import external_tensors
from surgeon.stored import kind_of
from surgeon.wire import copy_field

WORTH = 1 << 26  # bytes of such weights in a model that is worth it
_LEAST = 1 << 16  # bytes of such a weight: sizes, axes and pads are read where they stand
_KINDS = frozenset("FLOAT FLOAT16 BFLOAT16 DOUBLE INT8 UINT8 INT32 INT64".split())


class _Room:
    """A folder for weights, each in a file that is named by its content; made at the first."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack, self._folder = stack, ""

    @property
    def folder(self) -> Path:
        """The folder, without links on the way: onnxruntime follows none."""
        if not self._folder:
            made = TemporaryDirectory(prefix="surgeon-", ignore_cleanup_errors=True)
            self._folder = self._stack.enter_context(made)
        return Path(self._folder).resolve()

    def put(self, data: bytes) -> str:
        """The name of the file that holds the data."""
        name = hashlib.sha256(data).hexdigest()
        if not (file := self.folder / name).exists():
            beside = file.with_suffix(".part")
            beside.write_bytes(data)
            beside.replace(file)
        return name


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

    As it came where nothing is to be put aside, data lie outside already, or there is no room.
    """
    room = _room.get()
    if room is None:
        return model, folder
    large = {at for at, t in enumerate(model.graph.initializer) if _bytes(t) >= _LEAST}
    if sum(_bytes(model.graph.initializer[at]) for at in large) < WORTH:
        return model, folder
    if next(external_tensors(model), None) is not None:
        return model, folder
    try:
        return _without(model, large, room), room.folder
    except OSError:
        return model, folder


def _bytes(tensor: TensorProto) -> int:
    """Of raw data of a usual type, without reading it."""
    if not tensor.HasField("raw_data"):
        return 0
    kind, bits = kind_of(tensor.data_type)
    size = bits // 8 if kind in _KINDS else 0
    for length in tensor.dims:
        size *= length
    return size


def _without(model: onnx.ModelProto, large: set[int], room: _Room) -> onnx.ModelProto:
    made = onnx.ModelProto()  # a copy of it all would hold the weights as long as it lives
    for field, value in model.ListFields():
        if field.name != "graph":
            copy_field(field.name, value, made)
    for field, value in model.graph.ListFields():
        if field.name != "initializer":
            copy_field(field.name, value, made.graph)
    for at, tensor in enumerate(model.graph.initializer):
        new = made.graph.initializer.add()
        if at not in large:
            new.CopyFrom(tensor)
            continue
        new.name, new.data_type = tensor.name, tensor.data_type
        new.dims.extend(tensor.dims)
        new.data_location = TensorProto.EXTERNAL
        new.external_data.add(key="location", value=room.put(tensor.raw_data))
    return made
