"""PyTorch's quantised tensors (documentation of torch.quantize_per_tensor, torch.dequantize).

A value stands for the whole number round(value / scale) + zero point, kept within its dtype.
"""

# ruff: noqa: D103 - each function means what PyTorch documents for its schema, in TABLE

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from surgeon.reference.errors import Unsuited
from surgeon.reference.operators.precision import Array, Row

_QINT8, _QUINT8 = 12, 13  # PyTorch's numbers of these dtypes
_BITS = {_QINT8: np.int8, _QUINT8: np.uint8}


@dataclass(frozen=True)
class Quantized:
    """A quantised tensor.

    Attributes:
        whole: The whole numbers.
        scale: Size of a step, as given: of rank 0, or one for each place of the axis.
        zero: The whole number of 0, likewise.
        axis: None where all elements have one scale.
    """

    whole: Array
    scale: Array
    zero: Array
    axis: int | None = None

    @property
    def parts(self) -> list[Array]:
        """What a tuple holds of it."""
        axis = [] if self.axis is None else [np.asarray([self.axis])]
        return [self.whole, self.scale, self.zero, *axis]

    @property
    def floats(self) -> Array:
        """What it stands for, in float32."""
        scale, zero = (
            along(each, self.axis, self.whole.ndim)
            for each in (self.scale.astype(np.float32), self.zero.astype(np.float64))
        )
        levels = self.whole.astype(np.float64) - zero
        return np.asarray(levels * scale, np.float32)

    def rounded(self, x: Array, scale: Any = None, zero: Any = None) -> Quantized:
        """A value quantised likewise, or by a scale and a zero point of its own."""
        if scale is None:
            return quantized(x, self.scale, self.zero, self.whole.dtype, self.axis)
        return quantized(x, scale, zero, self.whole.dtype)


def along(values: Array, axis: int | None, rank: int) -> Array:
    """Numbers that go with a value along its axis; a single one goes with all."""
    if axis is None:
        return np.asarray(values).reshape(-1)[:1].reshape(())
    shape = [1] * rank
    shape[axis] = -1
    return np.asarray(values).reshape(shape)


def quantized(x: Array, scale: Any, zero: Any, dtype: Any, axis: int | None = None) -> Quantized:
    """The nearest levels; halves go to the even one."""
    if x.dtype != np.float32:
        raise Unsuited(f"what is quantised is {x.dtype.name}")
    step, level = np.asarray(scale), np.asarray(zero, np.float64)
    inverse = np.float32(1) / along(step.astype(np.float32), axis, x.ndim)
    ratio = np.asarray(x * inverse, np.float64)
    ends = np.iinfo(dtype)
    whole = np.clip(np.rint(ratio) + along(level, axis, x.ndim), ends.min, ends.max)
    return Quantized(whole.astype(dtype), step, level.astype(np.int64), axis)


def recognised(parts: Sequence[Any]) -> Quantized | None:
    """The quantised tensor of which a tuple has the parts; None where it is another tuple."""
    given = [np.asarray(part) for part in parts if isinstance(part, np.ndarray)]
    if len(given) not in (3, 4) or len(given) != sum(part is not None for part in parts):
        return None
    whole, scale, zero, *axis = given
    if whole.dtype not in (np.int8, np.uint8, np.int32) or scale.dtype.kind != "f":
        return None
    if zero.dtype.kind not in "iu" or zero.shape != scale.shape:
        return None
    along = int(axis[0].reshape(-1)[0]) if axis else None
    return Quantized(whole, scale, zero, along)


def quantize_per_tensor(self: Array, scale: Any, zero_point: Any, dtype: int) -> Any:
    return quantized(self, scale, zero_point, _bits(dtype))


def quantize_per_channel(
    self: Array, scales: Array, zero_points: Array, axis: int, dtype: int
) -> Any:
    return quantized(self, scales, zero_points, _bits(dtype), axis % self.ndim)


def _bits(dtype: int) -> Any:
    if dtype not in _BITS:
        raise Unsuited(f"PyTorch's dtype {dtype} is not of 8 bits")
    return _BITS[dtype]


TABLE: tuple[Row, ...] = (
    (
        "quantize_per_tensor(Tensor self, float scale, int zero_point, int dtype) -> Tensor",
        quantize_per_tensor,
    ),
    (
        "quantize_per_channel(Tensor self, Tensor scales, Tensor zero_points, int axis, "
        "int dtype) -> Tensor",
        quantize_per_channel,
    ),
)
