"""PyTorch's dtypes: its numbers for them, and the dtype that operands have together."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from typing import Any

import ml_dtypes
import numpy as np
import onnx

from surgeon.facts.kinds import FLOATS

_T = onnx.TensorProto
# PyTorch's ScalarType numbers (c10/core/ScalarType.h) as ONNX's.
SCALAR_TYPES: Mapping[int, int] = {
    0: _T.UINT8,
    1: _T.INT8,
    2: _T.INT16,
    3: _T.INT32,
    4: _T.INT64,
    5: _T.FLOAT16,
    6: _T.FLOAT,
    7: _T.DOUBLE,
    11: _T.BOOL,
    15: _T.BFLOAT16,
}
# Those of complex values.
COMPLEX_TYPES: Mapping[int, int] = {9: _T.COMPLEX64, 10: _T.COMPLEX128}
# ONNX's dtype of the parts of complex values.
PARTS: Mapping[int, int] = {_T.COMPLEX64: _T.FLOAT, _T.COMPLEX128: _T.DOUBLE}


def finfo(dtype: Any) -> Any:
    """What numpy's function tells of a floating-point dtype, and of bfloat16 too."""
    return ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]


def number_of(dtype: int) -> int:
    """PyTorch's number of ONNX's dtype of real values."""
    return next(number for number, known in SCALAR_TYPES.items() if known == dtype)


def promote(*dtypes: int) -> int:
    """The dtype of dimensioned tensors together; 0 is none.

    torch's documentation, "Tensor Attributes", type promotion.
    """
    return reduce(_of_two, dtypes, 0)


def _of_two(first: int, second: int) -> int:
    if first == second or not second:
        return first
    if not first:
        return second
    if (first in FLOATS) != (second in FLOATS):
        return first if first in FLOATS else second
    if _T.BOOL in (first, second):
        return first if second == _T.BOOL else second
    if first in FLOATS and _T.BFLOAT16 in (first, second):
        other = first if second == _T.BFLOAT16 else second
        return int(_T.FLOAT if other == _T.FLOAT16 else other)
    kinds = (onnx.helper.tensor_dtype_to_np_dtype(kind) for kind in (first, second))
    return int(onnx.helper.np_dtype_to_tensor_dtype(np.promote_types(*kinds)))
