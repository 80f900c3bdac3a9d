"""TensorRT's quantisers (onnx-tensorrt, `docs/TRT_custom_ops.md`)."""

# ruff: noqa: D103 - each function means what is documented for the operator of its name

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np

from surgeon.reference.errors import Unsuited

DOMAINS = ("trt",)
Array = np.ndarray[Any, Any]
_ONES = 127  # the exponent that stands for a scale of 1
_DTYPES: Mapping[int, Any] = {1: np.float32, 10: np.float16, 16: ml_dtypes.bfloat16}


def _spread(attributes: Mapping[str, Any], scale: Array, x: Array) -> Array:
    """A scale for each element."""
    scale = np.asarray(scale)
    if scale.size == 1:
        return scale.reshape(())
    axis, block = int(attributes.get("axis", 1)), int(attributes.get("block_size", 0))
    if block:
        return np.repeat(scale, block, axis).reshape(x.shape)
    shape = [1] * x.ndim
    shape[axis] = -1
    return scale.reshape(shape)


def quantize(
    attributes: Mapping[str, Any], x: Array, scale: Array, zero: Any = None, *, kind: Any
) -> Array:
    _without(zero)
    if (np.asarray(scale, np.float32) <= 0).any():
        raise Unsuited("its scale is not above 0")
    ratio = np.asarray(x / _spread(attributes, scale, x), np.float32)
    if kind is ml_dtypes.int4:
        return np.clip(np.rint(ratio), -8, 7).astype(kind)
    most = float(ml_dtypes.finfo(kind).max)  # type: ignore[no-untyped-call]
    return np.clip(ratio, -most, most).astype(kind)


def dequantize(
    attributes: Mapping[str, Any], x: Array, scale: Array, zero: Any = None, *, kind: Any
) -> Array:
    _without(zero)
    if x.dtype == np.uint8 and kind is ml_dtypes.float8_e4m3fn:
        x = x.view(kind)
    if x.dtype != kind and not (kind is ml_dtypes.int4 and x.dtype == ml_dtypes.uint4):
        raise Unsuited(f"what it reads is {x.dtype.name}")
    wide = x.astype(np.float32) * _spread(attributes, scale, x).astype(np.float32)
    return np.asarray(wide.astype(np.asarray(scale).dtype))


def dequantize_mx(attributes: Mapping[str, Any], x: Array, scale: Array) -> Array:
    power = np.exp2(np.asarray(scale, np.float64) - _ONES)
    levels = (x.view(ml_dtypes.float8_e4m3fn) if x.dtype == np.uint8 else x).astype(np.float64)
    kind = _DTYPES[int(attributes.get("output_dtype", 1))]
    return np.asarray((levels * _spread(attributes, power, x)).astype(kind))


def _without(zero: Any) -> None:
    if zero is not None and np.asarray(zero, np.float32).any():
        raise Unsuited("it has a zero point")


TABLE: Mapping[str, Callable[..., Any]] = {
    "TRT_FP8QuantizeLinear": partial(quantize, kind=ml_dtypes.float8_e4m3fn),
    "TRT_FP8DequantizeLinear": partial(dequantize, kind=ml_dtypes.float8_e4m3fn),
    "TRT_INT4QuantizeLinear": partial(quantize, kind=ml_dtypes.int4),
    "TRT_INT4DequantizeLinear": partial(dequantize, kind=ml_dtypes.int4),
    "TRT_MXFP8DequantizeLinear": dequantize_mx,
}
