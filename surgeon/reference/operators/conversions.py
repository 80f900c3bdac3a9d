"""PyTorch operators: conversions of dtype."""

# ruff: noqa: D103 - each function means what PyTorch documents for its schema, in TABLE

from __future__ import annotations

from typing import Any

import numpy as np
import onnx

from surgeon.reference.operators.precision import Array, Row
from surgeon.reference.operators.shapes import view


def to_dtype(self: Array, dtype: Any) -> Array:
    return self if dtype is None else convert(self, dtype)


def convert(self: Array, dtype: Any) -> Array:
    with np.errstate(all="ignore"):
        return self.astype(dtype)


def to_other(self: Array, other: Array) -> Array:
    return convert(self, other.dtype)


def to_complex(self: Array, to: int) -> Array:
    return convert(self, onnx.helper.tensor_dtype_to_np_dtype(to))


def _to(*unused: str) -> Any:
    """`to` in one of its overloads: whatever else it takes does not change the values."""

    def run(self: Array, dtype: Any = None, **rest: Any) -> Array:
        return to_dtype(self, dtype)

    return run


def _to_other(self: Array, other: Array, **rest: Any) -> Array:
    return to_other(self, other)


def copy(self: Array, **rest: Any) -> Array:
    return self


_REST = "bool non_blocking=False, bool copy=False, MemoryFormat? memory_format=None"


_PLACE = "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None"


_CASTS = {
    "Float": np.float32,
    "Double": np.float64,
    "Half": np.float16,
    "Int": np.int32,
    "Long": np.int64,
    "Short": np.int16,
    "Char": np.int8,
    "Byte": np.uint8,
}


def _cast(dtype: Any) -> Any:
    return lambda self, **rest: convert(self, dtype)


def same_bits(self: Array, dtype: Any) -> Array:
    return np.array(self, order="C").view(dtype)  # which leaves a number one


TABLE: tuple[Row, ...] = (
    # without an overload's name `view(x, n)` is a size, so that stands first
    ("view(Tensor(a) self, SymInt[] size) -> Tensor(a)", view),
    ("view.dtype(Tensor self, ScalarType dtype) -> Tensor", same_bits),
    (f"to.dtype(Tensor self, ScalarType dtype, {_REST}) -> Tensor", _to()),
    (f"to.device(Tensor self, Device device, ScalarType dtype, {_REST}) -> Tensor", _to()),
    (f"to.dtype_layout(Tensor self, *, {_PLACE}, {_REST}) -> Tensor", _to()),
    (f"to.other(Tensor self, Tensor other, {_REST}) -> Tensor", _to_other),
    (
        "to.prim_Device(Tensor self, Device? device, ScalarType? dtype=None, "
        "bool non_blocking=False, bool copy=False) -> Tensor",
        _to(),
    ),
    (
        f"_to_copy(Tensor self, *, {_PLACE}, bool non_blocking=False, "
        "MemoryFormat? memory_format=None) -> Tensor",
        _to(),
    ),
    ("type_as(Tensor self, Tensor other) -> Tensor", to_other),
    *(
        (f"_cast_{name}(Tensor self, bool non_blocking=False) -> Tensor", _cast(dtype))
        for name, dtype in _CASTS.items()
    ),
    *((f"{name}(Tensor self) -> Tensor", copy) for name in ("lift_fresh", "positive")),
    ("Cast(Tensor self, *, int to) -> Tensor", to_complex),
)
