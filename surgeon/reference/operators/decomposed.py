"""Quantisation in PyTorch's graphs (`torch.ops.quantized_decomposed`), and torchao's.

What is quantised is whole numbers, and scale and zero point stand beside them. Documents:
`torch/ao/quantization/fx/_decomposed.py`, and `torchao.quantization.quant_primitives`.
"""

# ruff: noqa: D103 - each function means what is documented for its schema, in TABLE

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from surgeon.reference.errors import Unsuited
from surgeon.reference.operators.precision import Array, Row

_UINT16, _FIRST_UINT, _LAST_UINT = 27, 30, 36  # PyTorch's numbers; those below 8 bits lie in bytes
_KINDS = {0: np.uint8, 1: np.int8, 2: np.int16, 3: np.int32, _UINT16: np.uint16}
_KINDS |= dict.fromkeys(range(_FIRST_UINT, _LAST_UINT + 1), np.uint8)
_FLOATS = {5: np.float16, 6: np.float32, 7: np.float64}


def _kind(dtype: int) -> Any:
    if dtype not in _KINDS:
        raise Unsuited(f"PyTorch's dtype {dtype} is not one of whole numbers")
    return _KINDS[dtype]


def _single(x: Array) -> Array:
    if x.dtype not in (np.float16, np.float32):
        raise Unsuited(f"what is quantised is {x.dtype.name}")
    return x.astype(np.float32)


def _finish(level: Array, quant_min: int, quant_max: int, dtype: int) -> Array:
    return np.clip(level, quant_min, quant_max).astype(_kind(dtype))


def quantize_per_tensor(
    self: Array, scale: Any, zero_point: Any, quant_min: int, quant_max: int, dtype: int
) -> Array:
    inverse = np.float32(1 / float(np.asarray(scale).reshape(())))
    shift = np.float32(np.asarray(zero_point).reshape(()))
    return _finish(np.rint(_single(self) * inverse) + shift, quant_min, quant_max, dtype)


def dequantize_per_tensor(
    self: Array,
    scale: Any,
    zero_point: Any,
    quant_min: int,
    quant_max: int,
    dtype: int,
    out_dtype: int | None = None,
) -> Array:
    kind = _out(out_dtype)
    level = self.astype(kind) - np.asarray(zero_point).reshape(()).astype(kind)
    return np.asarray(level * kind(np.asarray(scale).reshape(())))


def _out(dtype: int | None) -> Any:
    if dtype is None:
        return np.float32
    if dtype not in _FLOATS:
        raise Unsuited(f"PyTorch's dtype {dtype} is not one of floats")
    return _FLOATS[dtype]


def _on_axis(values: Array, axis: int, x: Array) -> Array:
    if values.size != x.shape[axis]:
        raise Unsuited("there is not one scale for each place of the axis")
    return values.reshape([-1 if at == axis % x.ndim else 1 for at in range(x.ndim)])


def quantize_per_channel(
    self: Array,
    scales: Array,
    zero_points: Array,
    axis: int,
    quant_min: int,
    quant_max: int,
    dtype: int,
) -> Array:
    step, shift = (_on_axis(each, axis, self) for each in (scales, zero_points))
    level = np.rint(_single(self) * (1 / step)) + shift
    return _finish(level, quant_min, quant_max, dtype)


def dequantize_per_channel(
    self: Array,
    scales: Array,
    zero_points: Array | None,
    axis: int,
    quant_min: int,
    quant_max: int,
    dtype: int,
    out_dtype: int | None = None,
) -> Array:
    level = self.astype(np.int64)
    if zero_points is not None:
        level = level - _on_axis(zero_points, axis, self).astype(np.int64)
    step = _on_axis(scales, axis, self)
    return np.asarray(level.astype(step.dtype) * step).astype(_out(out_dtype))


def quantize_per_token(
    self: Array, scales: Array, zero_points: Array, quant_min: int, quant_max: int, dtype: int
) -> Array:
    ratio = self * (1 / scales)
    return _finish(np.rint(ratio + zero_points.astype(ratio.dtype)), quant_min, quant_max, dtype)


def dequantize_per_token(
    self: Array,
    scales: Array,
    zero_points: Array,
    quant_min: int,
    quant_max: int,
    dtype: int,
    output_dtype: int,
) -> Array:
    level = self.astype(np.float64) - zero_points
    return np.asarray(level * scales).astype(_out(output_dtype))


def _grouped(x: Array, size: int, scales: Array) -> Array:
    if size > x.shape[-1] and scales.shape[-1] == 1:
        size = x.shape[-1]
    if size < 2 or x.ndim != 2 or x.shape[-1] % size:
        raise Unsuited("its groups do not go into its rows")
    return x.reshape(-1, size)


def quantize_per_channel_group(
    self: Array,
    scales: Array,
    zero_points: Array,
    quant_min: int,
    quant_max: int,
    dtype: int,
    group_size: int,
) -> Array:
    step, shift = scales.reshape(-1, 1), zero_points.reshape(-1, 1)
    ratio = _grouped(self, group_size, scales) * (1 / step)
    level = np.rint(ratio + shift.astype(ratio.dtype))
    return _finish(level, quant_min, quant_max, dtype).reshape(self.shape)


def dequantize_per_channel_group(
    self: Array,
    scales: Array,
    zero_points: Array | None,
    quant_min: int,
    quant_max: int,
    dtype: int,
    group_size: int,
    output_dtype: int,
) -> Array:
    level = _grouped(self, group_size, scales).astype(np.float64)
    if zero_points is not None:
        level = level - zero_points.reshape(-1, 1)
    return (level * scales.reshape(-1, 1)).reshape(self.shape).astype(_out(output_dtype))


def _spread(values: Array, sizes: Sequence[int], shape: Sequence[int]) -> Array:
    """One number for each block, repeated to one for each element."""
    if len(sizes) != len(shape):
        raise Unsuited("there is not one block size for each axis")
    lengths = [size if size > 0 else whole for size, whole in zip(sizes, shape, strict=True)]
    counts = [whole // size for size, whole in zip(lengths, shape, strict=True)]
    if any(whole % size for size, whole in zip(lengths, shape, strict=True)):
        raise Unsuited("its blocks do not go into its axes")
    spread = values.reshape(counts)
    for axis, size in enumerate(lengths):
        spread = np.repeat(spread, size, axis)
    return spread


def quantize_affine(
    self: Array,
    block_size: list[int],
    scale: Array,
    zero_point: Array | None,
    output_dtype: int,
    quant_min: float | None = None,
    quant_max: float | None = None,
) -> Array:
    low, high = _limits(output_dtype, quant_min, quant_max)
    level = np.rint(self * (1 / _spread(scale, block_size, self.shape)))
    if zero_point is not None and zero_point.size:
        level = level + _spread(zero_point, block_size, self.shape)
    return _finish(level, low, high, output_dtype)


def _limits(dtype: int, low: float | None, high: float | None) -> tuple[int, int]:
    whole = np.iinfo(_kind(dtype))
    least, most = int(whole.min), int(whole.max)
    if _FIRST_UINT <= dtype <= _LAST_UINT:
        most = 2 ** (dtype - _FIRST_UINT + 1) - 1
    return least if low is None else int(low), most if high is None else int(high)


def dequantize_affine(
    self: Array,
    block_size: list[int],
    scale: Array,
    zero_point: Array | None,
    input_dtype: int,
    quant_min: float | None = None,
    quant_max: float | None = None,
    output_dtype: int = 6,
) -> Array:
    kind = _out(output_dtype)
    level = self.astype(kind)
    if zero_point is not None and zero_point.size:
        level = level - _spread(zero_point, block_size, self.shape).astype(kind)
    return np.asarray(level * _spread(scale, block_size, self.shape)).astype(kind)


def choose_qparams(
    self: Array, quant_min: int, quant_max: int, eps: float, dtype: int
) -> tuple[Array, Array]:
    low, high = _ends(self)
    step = np.maximum((high - low) / np.float32(quant_max - quant_min), np.float32(eps))
    zero = np.clip(quant_min - np.rint(low / step), quant_min, quant_max)
    return step.astype(np.float64).reshape(1), zero.astype(np.int64).reshape(1)


def choose_qparams_symmetric(
    self: Array, quant_min: int, quant_max: int, eps: float, dtype: int
) -> tuple[Array, Array]:
    low, high = _ends(self)
    reach = np.maximum(-low, high)
    step = np.maximum(reach / np.float32((quant_max - quant_min) / 2), np.float32(eps))
    zero = np.full(1, 128 if dtype == 0 else 0, np.int64)
    return step.astype(np.float64).reshape(1), zero


def _ends(x: Array) -> tuple[Array, Array]:
    if x.size == 0 or not np.isfinite(x).all():
        raise Unsuited("its range is not defined")
    x = _single(x)
    return np.minimum(x.min(), np.float32(0)), np.maximum(x.max(), np.float32(0))


def choose_qparams_per_token(self: Array, dtype: int) -> tuple[Array, Array]:
    if _kind(dtype) is not np.int8:
        raise Unsuited("it is of 8 bits with a sign alone")
    reach = np.abs(self).max(-1, keepdims=True)
    step = np.maximum(reach, np.float32(1e-5)) / np.float32(127)
    return step, np.zeros_like(step)


def choose_qparams_per_token_asymmetric(self: Array, dtype: int) -> tuple[Array, Array]:
    low = np.minimum(self.min(-1, keepdims=True), np.float32(0))
    high = np.maximum(self.max(-1, keepdims=True), np.float32(0))
    step = np.maximum((high - low) / np.float32(255), np.finfo(np.float32).eps)
    below, above = low / step, high / step
    zero = np.where((below - 128) + (above + 127) > 0, -128 - below, 127 - above)
    return step.astype(np.float64), np.rint(np.clip(zero, -128, 127)).astype(np.int64)


_RANGE = "int quant_min, int quant_max, int dtype"
_OUT = "*, int? out_dtype=None"
_MANY = "Tensor scales, Tensor zero_points"
_MAYBE = "Tensor scales, Tensor? zero_points"
_AFFINE = "int[] block_size, Tensor scale, Tensor? zero_point"
_LIMITS = "Scalar? quant_min=None, Scalar? quant_max=None"
TABLE: tuple[Row, ...] = (
    (
        f"quantize_per_tensor(Tensor self, Tensor scale, Tensor zero_point, {_RANGE}) -> Tensor",
        quantize_per_tensor,
    ),
    (
        f"dequantize_per_tensor(Tensor self, Tensor scale, Tensor zero_point, {_RANGE}, {_OUT}) "
        "-> Tensor",
        dequantize_per_tensor,
    ),
    (
        f"quantize_per_channel(Tensor self, {_MANY}, int axis, {_RANGE}) -> Tensor",
        quantize_per_channel,
    ),
    (
        f"dequantize_per_channel(Tensor self, {_MAYBE}, int axis, {_RANGE}, {_OUT}) -> Tensor",
        dequantize_per_channel,
    ),
    (f"quantize_per_token(Tensor self, {_MANY}, {_RANGE}) -> Tensor", quantize_per_token),
    (
        f"dequantize_per_token(Tensor self, {_MANY}, {_RANGE}, int output_dtype) -> Tensor",
        dequantize_per_token,
    ),
    (
        f"quantize_per_channel_group(Tensor self, {_MANY}, {_RANGE}, int group_size) -> Tensor",
        quantize_per_channel_group,
    ),
    (
        f"dequantize_per_channel_group(Tensor self, {_MAYBE}, {_RANGE}, int group_size, "
        "int output_dtype) -> Tensor",
        dequantize_per_channel_group,
    ),
    (
        f"quantize_affine(Tensor self, {_AFFINE}, int output_dtype, {_LIMITS}) -> Tensor",
        quantize_affine,
    ),
    (
        f"dequantize_affine(Tensor self, {_AFFINE}, int input_dtype, {_LIMITS}, "
        "int output_dtype=6) -> Tensor",
        dequantize_affine,
    ),
    (
        "choose_qparams(Tensor self, int quant_min, int quant_max, float eps, int dtype) -> "
        "(Tensor, Tensor)",
        choose_qparams,
    ),
    (
        "choose_qparams_symmetric(Tensor self, int quant_min, int quant_max, float eps, "
        "int dtype) -> (Tensor, Tensor)",
        choose_qparams_symmetric,
    ),
    (
        "choose_qparams_per_token(Tensor self, int dtype) -> (Tensor, Tensor)",
        choose_qparams_per_token,
    ),
    *(
        (f"{name}(Tensor self, int dtype) -> (Tensor, Tensor)", choose_qparams_per_token_asymmetric)
        for name in (
            "choose_qparams_per_token_asymmetric",
            "_choose_qparams_per_token_asymmetric_impl",
        )
    ),
)
