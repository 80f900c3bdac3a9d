"""Values as onnxruntime takes and gives them: dtypes that numpy lacks, tables of `ZipMap`."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import onnx


def element(kind: str) -> str:
    """`float` for `tensor(float)` and `seq(tensor(float))`."""
    return kind.rpartition("(")[2].rstrip(")")


NUMPY = frozenset(
    (
        *("float", "double", "float16", "bool", "string", "complex64", "complex128"),
        *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    )
)
NARROW = {
    "bfloat16": onnx.TensorProto.BFLOAT16,
    "float8e4m3fn": onnx.TensorProto.FLOAT8E4M3FN,
    "float8e4m3fnuz": onnx.TensorProto.FLOAT8E4M3FNUZ,
    "float8e5m2": onnx.TensorProto.FLOAT8E5M2,
    "float8e5m2fnuz": onnx.TensorProto.FLOAT8E5M2FNUZ,
}


def array_of(value: Any) -> Any:
    """The array of an OrtValue, read from its memory where numpy has no such dtype."""
    if value.is_tensor() and element(value.data_type()) in NARROW:
        data = ctypes.string_at(value.data_ptr(), value.tensor_size_in_bytes())
        dtype = onnx.helper.tensor_dtype_to_np_dtype(NARROW[element(value.data_type())])
        return np.frombuffer(data, dtype=dtype).reshape(value.shape()).copy()
    return value.numpy()


def table_of(value: Any) -> Any:
    """A list of maps from labels to numbers, which `ZipMap` makes, as a table: a row for each.

    Columns are in the order of the labels. Anything else is itself.
    """
    if not isinstance(value, list) or not value or not isinstance(value[0], dict):
        return value
    labels = sorted(value[0])
    if any(row.keys() != value[0].keys() for row in value):
        return value
    return np.asarray([[row[label] for label in labels] for row in value], np.float32)
