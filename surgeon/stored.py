"""How many bytes the values of a tensor take where they are stored, without reading them."""

from __future__ import annotations

import math
from functools import cache

import onnx
from onnx import TensorProto

from surgeon.numerals import natural

# Of element types of which several share a byte, the bits of one value.
BITS = {"INT4": 4, "UINT4": 4, "FLOAT4E2M1": 4, "INT2": 2, "UINT2": 2}


@cache
def kind_of(dtype: int) -> tuple[str, int]:
    """An element type's name, and the bits of one value; a string has none of its own.

    Raises:
        ValueError, KeyError: ONNX lacks it.
    """
    kind = TensorProto.DataType.Name(dtype)
    if kind == "STRING":
        return kind, 0
    if kind in BITS:
        return kind, BITS[kind]
    return kind, int(onnx.helper.tensor_dtype_to_np_dtype(dtype).itemsize) * 8


def bytes_of(tensor: TensorProto) -> int:
    """Bytes of the values: as many as there are, as the file says of data outside, or by the dims.

    None are counted of an element type that ONNX lacks.
    """
    for entry in tensor.external_data:
        if entry.key == "length" and (length := natural(entry.value)) is not None:
            return length
    if tensor.HasField("raw_data"):
        return len(tensor.raw_data)
    try:
        _, bits = kind_of(tensor.data_type)
    except (KeyError, TypeError, ValueError):
        return 0
    return int(math.prod(tensor.dims) * bits + 7) // 8
