"""PyTorch operators: limits, choices by a mask, what stands for NaN."""

# ruff: noqa: D103 - each function means what PyTorch documents for its schema, in TABLE

from __future__ import annotations

from typing import Any

import numpy as np

from surgeon.reference.operators.math_types import cut, result_type, tensor
from surgeon.reference.operators.precision import Array, Row, is_float, limits


def clamp(self: Array, min: Any, max: Any) -> Array:
    given = [v for v in (min, max) if v is not None]
    dtype = result_type(self, *given)
    x = self.astype(dtype)
    if min is not None:
        x = np.maximum(x, tensor(min).astype(dtype))
    return x if max is None else np.minimum(x, tensor(max).astype(dtype))


def clamp_min(self: Array, min: Any) -> Array:
    return clamp(self, min, None)


def clamp_max(self: Array, max: Any) -> Array:
    return clamp(self, None, max)


def where(condition: Array, self: Any, other: Any) -> Array:
    dtype = result_type(self, other)
    return np.where(condition.astype(bool), tensor(self).astype(dtype), tensor(other).astype(dtype))


def masked_fill(self: Array, mask: Array, value: Any) -> Array:
    return np.where(mask.astype(bool), tensor(value).astype(self.dtype), self)


def isclose(self: Any, other: Any, rtol: float, atol: float, equal_nan: bool) -> Array:
    dtype = result_type(self, other)
    a, b = tensor(self).astype(dtype), tensor(other).astype(dtype)
    equal: Array = a == b
    if is_float(a) and equal_nan:
        equal |= np.isnan(a) & np.isnan(b)
    if not is_float(a):  # the bound is a float, and so are both in PyTorch's default dtype
        a, b = a.astype(np.float32), b.astype(np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        room, bound = np.abs(a - b), atol + np.abs(a.dtype.type(rtol) * b)
        equal |= np.isfinite(room) & (room <= bound.astype(a.dtype))
    return equal


def nan_to_num(self: Array, nan: float | None, posinf: float | None, neginf: float | None) -> Array:
    if self.dtype.kind == "c":  # each part by itself
        found = np.empty_like(self)
        found.real, found.imag = (
            nan_to_num(part, nan, posinf, neginf) for part in (self.real, self.imag)
        )
        return found
    if not is_float(self):
        return self
    most = float(limits(self.dtype).max)
    high, low = most if posinf is None else posinf, -most if neginf is None else neginf
    found = np.nan_to_num(self.astype(np.float64), nan=nan or 0.0, posinf=high, neginf=low)
    return cut(found, self.dtype)


def heaviside(self: Array, values: Array) -> Array:
    return np.where(self == 0, values, (self > 0).astype(self.dtype))


TABLE: tuple[Row, ...] = (
    *(
        (f"{name}.Tensor(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor", clamp)
        for name in ("clamp", "clip")
    ),
    ("clamp_min.Tensor(Tensor self, Tensor min) -> Tensor", clamp_min),
    ("clamp_max.Tensor(Tensor self, Tensor max) -> Tensor", clamp_max),
    ("where.self(Tensor condition, Tensor self, Tensor other) -> Tensor", where),
    ("masked_fill.Tensor(Tensor self, Tensor mask, Tensor value) -> Tensor", masked_fill),
    (
        "isclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, "
        "bool equal_nan=False) -> Tensor",
        isclose,
    ),
    (
        "nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? neginf=None)"
        " -> Tensor",
        nan_to_num,
    ),
    ("heaviside(Tensor self, Tensor values) -> Tensor", heaviside),
)
