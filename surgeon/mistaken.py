"""What a file or folder that is no ONNX model is instead, and what makes a model of it."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import NamedTuple

AGAIN = "Export or download the model again."
_TORCH = "Build the model in PyTorch, load it, and write it with `torch.onnx.export`."
_TF2ONNX = "python -m tf2onnx.convert"
_SAVED = (
    "a TensorFlow SavedModel",
    f"Convert its folder: `{_TF2ONNX} --saved-model FOLDER --output model.onnx`.",
)
_SOURCE = "Take the ONNX file that it was made of."
_CORE_ML = "Take the model that it was converted from; `onnxmltools.convert_coreml` reads some."
_SIGNATURES = (
    (b"<!doctype", "an HTML page", AGAIN),
    (b"<html", "an HTML page", AGAIN),
    (b"<?xml", "an XML file (OpenVINO's are)", "Take the model that it was converted from."),
    (b"\x1f\x8b", "a gzip archive", "Unpack it: `gunzip FILE`."),
    (
        b"version https://git-lfs",
        "a Git LFS pointer, the file itself was not fetched",
        "Fetch it with `git lfs pull`.",
    ),
    (
        b"\x89hdf",
        "an HDF5 file",
        "Load it in Keras, write it with `model.export`, and convert that: "
        f"`{_TF2ONNX} --saved-model FOLDER --output model.onnx`.",
    ),
    (b"{", "a JSON file", AGAIN),
    *((magic, "a TensorRT engine", _SOURCE) for magic in (b"ptrt", b"ftrt")),
    (b"7767517", "a network of ncnn", _SOURCE),
    (b"rknn", "a network of RKNN", _SOURCE),
    (b"\x93numpy", "an array of NumPy", AGAIN),
)
_HEADER = 8  # bytes of the length of what safetensors says first
_OFFSET = 4  # bytes in front of the name of a FlatBuffers' kind
_FLAT = {
    b"TFL3": (
        "a TensorFlow Lite model",
        f"Convert it: `{_TF2ONNX} --tflite model.tflite --output model.onnx`.",
    ),
    b"ORTM": (
        "a model in onnxruntime's own format",
        _SOURCE,
    ),
}
_NEWEST_CORE_ML = 16  # no specification of so high a version is out


class Mistaken(NamedTuple):
    """What something is, with its article, and what to do about it."""

    kind: str
    mend: str


def by_signature(data: bytes) -> Mistaken | None:
    """What a file is by its first bytes; None where they may be a model's."""
    # in front stands how far it is to the root; a model may have a producer of that name there
    if data[2:_OFFSET] == b"\0\0" and (found := _FLAT.get(data[_OFFSET : _OFFSET + 4])):
        return Mistaken(*found)
    if data[_HEADER : _HEADER + 2] == b'{"' and not any(data[4:_HEADER]):
        return Mistaken("a file of weights (safetensors), without a graph", _TORCH)
    start = data[:4096].lstrip().lower()
    for signature, kind, mend in _SIGNATURES:
        if start.startswith(signature):
            return Mistaken(kind, mend)
    if start.startswith(b"pk\x03\x04"):
        return _in_zip(data)
    if data[:1] == b"\x80" and data[1:2] in (b"\x02", b"\x03", b"\x04", b"\x05"):
        return Mistaken("a pickle (older PyTorch checkpoints are)", _TORCH)
    return None


def by_fields(data: bytes) -> Mistaken | None:
    """What protobuf's bytes without a graph are: another project's kinds of model."""
    if data.startswith(b"\x08\x01\x12") and b"\x22\x05serve" in data:
        return Mistaken(*_SAVED)
    if data[:1] == b"\x08" and data[1:2] < bytes([_NEWEST_CORE_ML]) and data[2:3] == b"\x12":
        described = _behind_length(data, 3)
        if data[described : described + 1] == b"\x0a":
            named = _behind_length(data, described + 1)
            if data[named : named + 1] == b"\x0a":
                return Mistaken("perhaps a Core ML model", _CORE_ML)
    if data[:1] == b"\x0a" and b"Placeholder" in data[:4096]:
        options = "--inputs x:0 --outputs y:0 --output model.onnx"
        mend = f"Convert it: `{_TF2ONNX} --graphdef graph.pb {options}`."
        return Mistaken("a frozen graph of TensorFlow", mend)
    return None


def folder(path: Path) -> Mistaken | None:
    """What a folder is; None where it is like any other."""
    if (path / "saved_model.pb").is_file():
        return Mistaken(*_SAVED)
    if (path / "Manifest.json").is_file() and (path / "Data").is_dir():
        return Mistaken("a Core ML package", _CORE_ML)
    return None


def _in_zip(data: bytes) -> Mistaken:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            names = archive.namelist()
    except (zipfile.BadZipFile, ValueError, NotImplementedError):
        return Mistaken("a zip archive (PyTorch checkpoints are)", AGAIN)
    inner = {name.partition("/")[2] for name in names}
    if "constants.pkl" in inner and "data.pkl" in inner:
        mend = "Load it with `torch.jit.load` and write it with `torch.onnx.export`."
        return Mistaken("a TorchScript program", mend)
    if "data.pkl" in inner:
        return Mistaken("a PyTorch checkpoint", _TORCH)
    if any("exported_program" in name or name.startswith("models/") for name in (*inner, *names)):
        mend = "Load it with `torch.export.load` and write it with `torch.onnx.export`."
        return Mistaken("a program of torch.export", mend)
    if "model.weights.h5" in names:
        mend = "Load it in Keras and write it with `model.export(..., format='onnx')`."
        return Mistaken("a Keras model", mend)
    models = [name for name in names if name.lower().endswith(".onnx")]
    if models:
        return Mistaken("a zip archive", f"Unpack `{models[0][:80]}` from it.")
    return Mistaken("a zip archive", AGAIN)


def _behind_length(data: bytes, place: int) -> int:
    """The place behind a length of protobuf's, seven bits a byte."""
    while place < len(data) and data[place] > 0x7F:
        place += 1
    return place + 1
