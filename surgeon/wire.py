"""A model as protobuf's bytes: read, or said what they are instead; and written."""

from __future__ import annotations

from pathlib import Path

import onnx
from google.protobuf.message import DecodeError, EncodeError

from surgeon.errors import ModelError

LARGEST = 1 << 31  # bytes of a protobuf
_SIGNATURES = (
    (b"<!doctype", "an HTML page"),
    (b"<html", "an HTML page"),
    (b"pk\x03\x04", "a zip archive (PyTorch checkpoints are)"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"version https://git-lfs", "a Git LFS pointer, the file itself was not fetched"),
    (b"\x89hdf", "an HDF5 file"),
    (b"{", "a JSON file"),
)


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
    mend = "Export or download the model again."
    if not data:
        raise ModelError("the file is empty", where=where, mend=mend)
    for signature, kind in _SIGNATURES:
        if data.lstrip()[: len(signature)].lower() == signature:
            raise ModelError(f"this is {kind}, not an ONNX model", where=where, mend=mend)
    proto = onnx.ModelProto()
    try:
        proto.ParseFromString(data)
    except DecodeError:
        raise ModelError(
            "this is no ONNX model, or a truncated one: protobuf cannot read it",
            where=where,
            mend=mend,
        ) from None
    if not proto.HasField("graph") or not (proto.graph.node or proto.graph.output):
        raise ModelError("the model holds no graph", where=where, mend=mend)
    return proto


def serialise(proto: onnx.ModelProto, *, where: str) -> bytes:
    """The bytes of a model.

    Raises:
        ModelError: It is larger than protobuf can write (2 GiB).
    """
    try:
        return bytes(proto.SerializeToString(deterministic=True))
    except (ValueError, EncodeError) as error:
        # "Failed to serialize" is all that protobuf says, also where memory is short.
        if isinstance(error, EncodeError) and _weight(proto) < LARGEST * 0.9:
            raise MemoryError from None
        raise ModelError(
            "the model is larger than the 2 GiB that protobuf can write in one file",
            where=where,
            mend="Convert it to external data first: `onnx.save(..., save_as_external_data=True)`.",
        ) from None


def _weight(proto: onnx.ModelProto) -> int:
    """Bytes of the values inside a model, about."""
    return sum(
        len(tensor.raw_data) + 4 * len(tensor.float_data) + 8 * len(tensor.int64_data)
        for tensor in proto.graph.initializer
    )
