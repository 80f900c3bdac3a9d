"""AMD's quantisers, which Quark and Vitis AI write, by the kernels that Quark brings along."""

# ruff: noqa: D103 - each function means what Quark documents for the operator of its name

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import ml_dtypes
import numpy as np

from surgeon.reference.errors import Unsuited

DOMAINS = ("com.amd.quark", "com.vai.quantize")
Array = np.ndarray[Any, Any]
Said = Mapping[str, Any]


def _spread(said: Said, vector: Array, x: Array) -> Array:
    """A number, or one for each place of an axis."""
    if vector.size == 1:
        return vector.reshape(())
    shape = [1] * x.ndim
    shape[said.get("axis", 1)] = -1
    return vector.reshape(shape)


def _untouched(scale: Array, zero: Array) -> None:
    if (scale != 1).any() or (zero.astype(np.float32) != 0).any():
        raise Unsuited("it scales or shifts values of 16 bits")


def quantize(said: Said, x: Array, scale: Array, zero: Array) -> Array:
    if zero.dtype.kind not in "iu":
        _untouched(scale, zero)
        high = 65504.0 if zero.dtype == np.float16 else np.inf
        return np.clip(x, -high, high).astype(zero.dtype)
    limits = np.iinfo(zero.dtype)
    levels = np.rint((x / _spread(said, scale, x)).astype(np.float32)).astype(np.float64)
    levels = levels + _spread(said, zero.astype(np.float64), x)
    return np.clip(levels, limits.min, limits.max).astype(zero.dtype)


def dequantize(said: Said, x: Array, scale: Array, zero: Array) -> Array:
    if x.dtype.kind not in "iu":
        _untouched(scale, zero)
        return x.astype(np.float32)
    gap = x.astype(np.int64) - _spread(said, zero.astype(np.int64), x)
    return gap.astype(np.float32) * _spread(said, scale, x)


def _away(x: Array) -> Array:
    return np.copysign(_up(np.abs(x)), x)


def _up(x: Array) -> Array:
    low = np.floor(x)
    return np.where(x - low >= 0.5, low + 1, low)


_ROUNDINGS: tuple[Callable[[Array], Array], ...] = (_away, _up, np.rint)


def block_floats(said: Said, x: Array) -> Array:
    plain = said.get("bfp_method", "to_bfp") == "to_bfp"
    if not plain or said.get("use_compiler_version_cpu_kernel"):
        raise Unsuited("its blocks are not the plain ones")
    if x.size == 1:
        return x
    wide = x.astype(np.float32)
    if said.get("convert_to_bfloat_before_bfp"):
        wide = wide.astype(ml_dtypes.bfloat16).astype(np.float32)
    size, mantissa = said.get("block_size", 8), said.get("bit_width", 16) - 9
    lines = np.moveaxis(wide, said.get("axis", 1) if x.ndim > 1 else 0, -1)
    length = lines.shape[-1]
    padded = np.pad(lines, [(0, 0)] * (x.ndim - 1) + [(0, -length % size)])
    blocks = padded.reshape(*lines.shape[:-1], -1, size).astype(np.float64)
    counted = np.where(np.isfinite(blocks), np.abs(blocks), 0).max(-1, keepdims=True)
    exponent = np.where(counted > 0, np.frexp(np.where(counted > 0, counted, 1))[1] - 1, -127)
    exponent = np.maximum(exponent, -127)
    step = np.ldexp(1.0, exponent - mantissa + 1)
    most = np.ldexp(2.0, exponent) - step
    levels = _ROUNDINGS[said.get("rounding_mode", 0)](blocks / step)
    y = np.where(np.isfinite(blocks), np.clip(levels * step, -most, most), blocks)
    y = y.reshape(padded.shape)[..., :length].astype(x.dtype)
    return np.moveaxis(y, -1, said.get("axis", 1) if x.ndim > 1 else 0)


def instance_norm(said: Said, x: Array, gamma: Array, beta: Array) -> Array:
    """Its statistics, its factors and what they give are bfloat16."""

    def short(value: Any) -> Array:
        narrow = np.asarray(value, np.float32).astype(ml_dtypes.bfloat16)
        return narrow.astype(np.float64)

    places = tuple(range(2, x.ndim))
    column = (-1, *[1] * (x.ndim - 2))
    wide = short(x)
    mean = wide.mean(places, keepdims=True)
    variance = (wide * wide).mean(places, keepdims=True) - mean * mean
    inverse = short((variance + said.get("epsilon", 1e-5)) ** -0.5)
    y = short(short(wide * inverse) - short(short(mean) * inverse))
    y = short(gamma).reshape(column) * y + short(beta).reshape(column)
    return short(y).astype(x.dtype)


TABLE: Mapping[str, Callable[..., Any]] = {
    "BFPFixNeuron": block_floats,
    "BFPQuantizeDequantize": block_floats,
    "ExtendedDequantizeLinear": dequantize,
    "ExtendedInstanceNormalization": instance_norm,
    "ExtendedQuantizeLinear": quantize,
    "VitisDequantizeLinear": dequantize,
    "VitisInstanceNormalization": instance_norm,
    "VitisQuantizeLinear": quantize,
}
