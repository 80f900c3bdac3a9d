"""PyTorch operators: tensors made of a number, and of a range."""

# ruff: noqa: D103, E501 - each function means what PyTorch documents for its schema, in TABLE

from __future__ import annotations

import math
from typing import Any

import numpy as np

from surgeon.reference.errors import Unsuited
from surgeon.reference.operators.precision import Array, Row

_MOST = 1 << 27  # numbers of a range, which something that was drawn may ask for


def _fill(size: Any, value: Any, dtype: Any) -> Array:
    if np.dtype(dtype).kind in "iu":  # a number beyond the dtype wraps
        value = np.asarray(int(value)).astype(dtype)
    return np.full(tuple(size), value, dtype)


def zeros(size: list[int], dtype: Any, **_: Any) -> Array:
    return _fill(size, 0, dtype or np.float32)


def ones(size: list[int], dtype: Any, **_: Any) -> Array:
    return _fill(size, 1, dtype or np.float32)


def full(size: list[int], fill_value: Any, dtype: Any, **_: Any) -> Array:
    kind = {bool: np.bool_, int: np.int64}.get(type(fill_value), np.float32)
    return _fill(size, fill_value, dtype or kind)


def zeros_like(self: Array, dtype: Any, **_: Any) -> Array:
    return _fill(self.shape, 0, dtype or self.dtype)


def ones_like(self: Array, dtype: Any, **_: Any) -> Array:
    return _fill(self.shape, 1, dtype or self.dtype)


def full_like(self: Array, fill_value: Any, dtype: Any, **_: Any) -> Array:
    return _fill(self.shape, fill_value, dtype or self.dtype)


def new_zeros(self: Array, size: list[int], dtype: Any, **_: Any) -> Array:
    return _fill(size, 0, dtype or self.dtype)


def new_ones(self: Array, size: list[int], dtype: Any, **_: Any) -> Array:
    return _fill(size, 1, dtype or self.dtype)


def new_full(self: Array, size: list[int], fill_value: Any, dtype: Any, **_: Any) -> Array:
    return _fill(size, fill_value, dtype or self.dtype)


def scalar_tensor(s: Any, dtype: Any, **_: Any) -> Array:
    return np.asarray(s, dtype or np.float32)


def tensor(data: Any, dtype: Any, **_: Any) -> Array:
    found = np.array(data)
    return found.astype(dtype or (np.float32 if found.dtype.kind == "f" else found.dtype))


def tensor_of_number(t: Any, dtype: Any, **_: Any) -> Array:
    return tensor(t, dtype)


def arange_step(start: Any, end: Any, step: Any, dtype: Any, **_: Any) -> Array:
    whole = all(isinstance(v, int) for v in (start, end, step))
    kind = np.dtype(dtype or (np.int64 if whole else np.float32))
    if kind == np.int64:  # the one dtype in which PyTorch does not count in double precision
        count = len(range(int(start), int(end), int(step)))
    else:
        count = max(math.ceil((end - start) / step), 0)
    if count > _MOST:
        raise Unsuited(f"it counts {count} numbers")
    if kind.kind in "iu":
        return (int(start) + np.arange(count) * int(step)).astype(kind)
    return np.asarray(start + np.arange(count) * step).astype(kind)


def arange_start(start: Any, end: Any, dtype: Any, **_: Any) -> Array:
    return arange_step(start, end, 1, dtype)


def arange(end: Any, dtype: Any, **_: Any) -> Array:
    return arange_step(0, end, 1, dtype)


def linspace(start: Any, end: Any, steps: int, dtype: Any, **_: Any) -> Array:
    low, high = (float(np.asarray(v).reshape(())) for v in (start, end))
    return np.linspace(low, high, steps).astype(dtype or np.float32)


def eye(n: int, dtype: Any, **_: Any) -> Array:
    return np.eye(n, dtype=dtype or np.float32)


def eye_m(n: int, m: int, dtype: Any, **_: Any) -> Array:
    return np.eye(n, m, dtype=dtype or np.float32)


_OPTIONS = (
    "*, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None"
)

_LITERAL = "*, ScalarType? dtype=None, Device? device=None, bool requires_grad=False"
_KINDS = ("float", "int", "bool")


TABLE: tuple[Row, ...] = (
    (f"zeros(SymInt[] size, {_OPTIONS}) -> Tensor", zeros),
    (f"ones(SymInt[] size, {_OPTIONS}) -> Tensor", ones),
    (f"full(SymInt[] size, Scalar fill_value, {_OPTIONS}) -> Tensor", full),
    (
        f"zeros_like(Tensor self, {_OPTIONS}, MemoryFormat? memory_format=None) -> Tensor",
        zeros_like,
    ),
    (f"ones_like(Tensor self, {_OPTIONS}, MemoryFormat? memory_format=None) -> Tensor", ones_like),
    (
        f"full_like(Tensor self, Scalar fill_value, {_OPTIONS}, MemoryFormat? memory_format=None) -> Tensor",
        full_like,
    ),
    (f"new_zeros(Tensor self, SymInt[] size, {_OPTIONS}) -> Tensor", new_zeros),
    (f"new_ones(Tensor self, SymInt[] size, {_OPTIONS}) -> Tensor", new_ones),
    (f"new_full(Tensor self, SymInt[] size, Scalar fill_value, {_OPTIONS}) -> Tensor", new_full),
    (f"scalar_tensor(Scalar s, {_OPTIONS}) -> Tensor", scalar_tensor),
    (f"tensor(Scalar data, {_LITERAL}) -> Tensor", tensor),
    (f"tensor.list(Scalar[] data, {_LITERAL}) -> Tensor", tensor),
    *((f"tensor.{kind}({kind} t, {_LITERAL}) -> Tensor", tensor_of_number) for kind in _KINDS),
    (f"arange(Scalar end, {_OPTIONS}) -> Tensor", arange),
    (f"arange.start(Scalar start, Scalar end, {_OPTIONS}) -> Tensor", arange_start),
    (
        f"arange.start_step(Scalar start, Scalar end, Scalar step=1, {_OPTIONS}) -> Tensor",
        arange_step,
    ),
    (f"linspace(Scalar start, Scalar end, int steps, {_OPTIONS}) -> Tensor", linspace),
    *(
        (
            f"linspace.{first}_{last}({first} start, {last} end, int steps, {_OPTIONS}) -> Tensor",
            linspace,
        )
        for first, last in (("Tensor", "Tensor"), ("Tensor", "Scalar"), ("Scalar", "Tensor"))
    ),
    (f"eye(SymInt n, {_OPTIONS}) -> Tensor", eye),
    (f"eye.m(SymInt n, SymInt m, {_OPTIONS}) -> Tensor", eye_m),
)
