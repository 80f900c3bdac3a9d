"""PyTorch operators: padding in every mode; negative amounts cut."""

# ruff: noqa: D103 - each function means what PyTorch documents for its schema, in TABLE

from __future__ import annotations

from typing import Any

import numpy as np

from surgeon.reference.errors import Unsuited
from surgeon.reference.operators.precision import Array, Row


def _padded(self: Array, pad: list[int], mode: str, value: Any = 0) -> Array:
    if len(pad) % 2 or len(pad) // 2 > self.ndim:
        raise Unsuited(f"{len(pad)} amounts for an input of rank {self.ndim}")
    out = self
    for i in range(len(pad) // 2):
        out = _one_axis(out, self.ndim - 1 - i, pad[2 * i], pad[2 * i + 1], mode, value)
    return out


def _one_axis(x: Array, axis: int, before: int, after: int, mode: str, value: Any) -> Array:
    length = x.shape[axis]
    if length + min(before, 0) + min(after, 0) < 0:
        raise Unsuited(f"{-min(before, 0)} and {-min(after, 0)} cut from {length} elements")
    place = np.arange(-before, length + after)
    if mode == "constant":
        inside = (place >= 0) & (place < length)
        taken = np.take(x, place.clip(0, max(length - 1, 0)), axis) if length else None
        shape = [len(place) if i == axis else n for i, n in enumerate(x.shape)]
        mask = inside.reshape([-1 if i == axis else 1 for i in range(x.ndim)])
        filled = np.full(shape, value, x.dtype)
        return filled if taken is None else np.where(mask, taken, filled)
    if mode == "reflect":
        if before >= length or after >= length:
            raise Unsuited(f"{before} and {after} reflected from {length} elements")
        place = np.where(place < 0, -place, place)
        place = np.where(place >= length, 2 * (length - 1) - place, place)
    elif mode == "replicate":
        place = place.clip(0, length - 1)
    else:
        kept = np.arange(max(-before, 0), length - max(-after, 0))
        if before > len(kept) or after > len(kept):
            raise Unsuited(f"{before} and {after} around {len(kept)} elements")
        front = kept[len(kept) - before :] if before > 0 else kept[:0]
        place = np.concatenate([front, kept, kept[: max(after, 0)]])
    return np.take(x, place, axis)


def constant_pad_nd(self: Array, pad: list[int], value: Any) -> Array:
    return _padded(self, pad, "constant", value)


def pad(self: Array, pad: list[int], mode: str, value: Any) -> Array:
    return _padded(self, pad, mode, value or 0)


def reflection_pad(self: Array, padding: list[int]) -> Array:
    return _padded(self, padding, "reflect")


def replication_pad(self: Array, padding: list[int]) -> Array:
    return _padded(self, padding, "replicate")


def pad_circular(self: Array, pad: list[int]) -> Array:
    return _padded(self, pad, "circular")


TABLE: tuple[Row, ...] = (
    ("constant_pad_nd(Tensor self, SymInt[] pad, Scalar value=0) -> Tensor", constant_pad_nd),
    (
        "pad(Tensor self, SymInt[] pad, str mode='constant', float? value=None) -> Tensor",
        pad,
    ),
    ("_pad_circular(Tensor self, SymInt[] pad) -> Tensor", pad_circular),
    ("reflection_pad1d(Tensor self, SymInt[2] padding) -> Tensor", reflection_pad),
    ("reflection_pad2d(Tensor self, SymInt[4] padding) -> Tensor", reflection_pad),
    ("reflection_pad3d(Tensor self, SymInt[6] padding) -> Tensor", reflection_pad),
    ("replication_pad1d(Tensor self, SymInt[2] padding) -> Tensor", replication_pad),
    ("replication_pad2d(Tensor self, SymInt[4] padding) -> Tensor", replication_pad),
    ("replication_pad3d(Tensor self, SymInt[6] padding) -> Tensor", replication_pad),
)
