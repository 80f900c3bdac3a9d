"""Whether a tensor of a file has as many values as its dims say, and lies where it may."""

from __future__ import annotations

import math
from pathlib import Path

import onnx
from onnx import TensorProto

from surgeon.errors import ModelError
from surgeon.numerals import natural
from surgeon.reading import bytes_in, external_path
from surgeon.stored import BITS, kind_of

_SHOWN = 120  # characters of a stranger's name in an error
_KNOWN = frozenset(TensorProto.DataType.values()) - {TensorProto.UNDEFINED}


class Broken(Exception):
    """What is wrong with the model."""


def quoted(name: str) -> str:
    """A stranger's name for an error, cut where it is long."""
    return f"`{name[:_SHOWN]}{'...' if len(name) > _SHOWN else ''}`"


def check_tensor(tensor: onnx.TensorProto, folder: Path | None) -> None:
    """A tensor has a known dtype and as many values as its dims say."""
    name = f"tensor {quoted(tensor.name)}"
    dims, dtype = list(tensor.dims), tensor.data_type
    if dtype not in _KNOWN:
        raise Broken(f"{name} is of dtype {dtype}, which ONNX lacks")
    if tensor.HasField("segment"):
        raise Broken(f"{name} is a segment of another, which nothing reads")
    if dims and min(dims) < 0:
        raise Broken(f"{name} has a negative size: {dims[:8]}")
    count = math.prod(dims)
    kind, width = kind_of(dtype)
    size = (count * width + 7) // 8
    if tensor.data_location == TensorProto.EXTERNAL:
        _check_external(tensor, name, size, folder)
    elif kind == "STRING":
        _expect(name, tensor, len(tensor.string_data), (count,), "values")
    elif tensor.HasField("raw_data"):
        _expect(name, tensor, len(tensor.raw_data), (size,), "bytes")
    else:
        field = onnx.helper.tensor_dtype_to_field(dtype)
        if kind.startswith("COMPLEX"):
            count *= 2
        allowed = (count, -(-count * BITS[kind] // 8)) if kind in BITS else (count,)
        _expect(name, tensor, len(getattr(tensor, field)), allowed, "values")


def _expect(
    name: str, tensor: onnx.TensorProto, found: int, allowed: tuple[int, ...], unit: str
) -> None:
    if found not in allowed:
        raise Broken(
            f"{name} holds {found} {unit}, and its shape {list(tensor.dims)[:8]} wants {allowed[0]}"
        )


def _check_external(tensor: onnx.TensorProto, name: str, size: int, folder: Path | None) -> None:
    """The values lie in a file of the model's own folder, inside that file, and are as many."""
    entries = {entry.key: entry.value for entry in tensor.external_data}
    numbers = {}
    for key in ("offset", "length"):
        text = entries.get(key) or "0"
        number = natural(text)
        if number is None:
            raise Broken(f"the external data of {name} has the {key} {quoted(text)}")
        numbers[key] = number
    if "length" in entries and numbers["length"] != size:
        raise Broken(
            f"{name} holds {numbers['length']} bytes, and its shape {list(tensor.dims)[:8]} wants "
            f"{size}"
        )
    if folder is None:
        return
    try:
        path = external_path(entries.get("location", ""), folder)
    except ModelError as error:
        if "is missing" in error.what:  # whoever needs the values says so
            return
        raise
    if numbers["offset"] + size > bytes_in(path, folder):
        raise Broken(
            f"{name} lies beyond the end of `{path.name[:_SHOWN]}`: {size} bytes from "
            f"{numbers['offset']} on"
        )
