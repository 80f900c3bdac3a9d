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
    method = said.get("bfp_method", "to_bfp")
    primes = method in ("to_bfp_prime", "to_bfp_prime_shared")
    if (method != "to_bfp" and not primes) or said.get("use_compiler_version_cpu_kernel"):
        raise Unsuited("nothing is known of its blocks")
    mantissa = said.get("bit_width", 16) - 9
    if said.get("convert_to_bfloat_before_bfp") and x.size > 1:
        x = x.astype(np.float32).astype(ml_dtypes.bfloat16).astype(x.dtype)

    def rounded(blocks: Array, exponent: Array) -> Array:
        step = np.ldexp(1.0, exponent - mantissa + 1)
        most = np.ldexp(2.0, exponent) - step
        levels = _ROUNDINGS[said.get("rounding_mode", 0)](blocks / step)
        return np.asarray(np.clip(levels * step, -most, most))

    def by_parts(blocks: Array, exponent: Array) -> Array:
        """Each part by its own largest, but not more than what the bits of a shift can say."""
        blocks = np.where(np.abs(blocks) < 2.0**-126, 0, blocks)
        parts = blocks.reshape(*blocks.shape[:-1], -1, said.get("sub_block_size", 2))
        most = (1 << said.get("sub_block_shift_bits", 1)) - 1
        own = np.maximum(_exponents(parts), exponent[..., None] - most)
        return rounded(parts, own).reshape(blocks.shape)

    return _by_blocks(said, x, 8, by_parts if primes else rounded, spreads=primes)


_FLOATS = {  # what numpy calls them, and the highest exponent
    "fp8_e5m2": (ml_dtypes.float8_e5m2, 15),
    "fp8_e4m3": (ml_dtypes.float8_e4m3fn, 8),
    "fp6_e3m2": (ml_dtypes.float6_e3m2fn, 4),
    "fp6_e2m3": (ml_dtypes.float6_e2m3fn, 2),
    "fp4_e2m1": (ml_dtypes.float4_e2m1fn, 2),
}


def microscaling(said: Said, x: Array) -> Array:
    kind = said.get("element_dtype", "int8")
    if kind != "int8" and kind not in _FLOATS:
        raise Unsuited(f"its elements are of {kind}")

    def rounded(blocks: Array, exponent: Array) -> Array:
        if kind == "int8":
            units = _ROUNDINGS[said.get("rounding_mode", 0)](np.ldexp(blocks, 6 - exponent))
            return np.asarray(np.ldexp(np.clip(units, -128, 127), exponent - 6))
        dtype, highest = _FLOATS[kind]
        most = float(ml_dtypes.finfo(dtype).max)  # type: ignore[no-untyped-call]
        elements = np.clip(np.ldexp(blocks, highest - exponent), -most, most)
        return np.asarray(np.ldexp(elements.astype(dtype).astype(np.float64), exponent - highest))

    return _by_blocks(said, x, 32, rounded)


def _exponents(blocks: Array) -> Array:
    """That of the largest of each; a float that is not normal has the lowest."""
    largest = np.abs(blocks).max(-1, keepdims=True)
    return np.maximum(np.where(largest > 0, np.frexp(largest)[1] - 1, -127), -127)


def _by_blocks(
    said: Said,
    x: Array,
    usual: int,
    rounded: Callable[[Array, Array], Array],
    *,
    spreads: bool = False,
) -> Array:
    """Blocks along an axis, each rounded by the exponent of its largest; one element stays.

    What is infinite or no number stays too, or makes its whole block no number.
    """
    if x.size == 1:
        return x
    axis = said.get("axis", 1) if x.ndim > 1 else 0
    size = said.get("block_size", usual)
    lines = np.moveaxis(x.astype(np.float64), axis, -1)
    length = lines.shape[-1]
    padded = np.pad(lines, [(0, 0)] * (x.ndim - 1) + [(0, -length % size)])
    blocks = padded.reshape(*lines.shape[:-1], -1, size)
    finite = np.isfinite(blocks)
    counted = np.where(finite, blocks, 0)
    y = rounded(counted, _exponents(counted))
    if spreads:
        y = np.where(finite.all(-1, keepdims=True), y, np.nan)
    else:
        y = np.where(finite, y, blocks)
    y = y.reshape(padded.shape)[..., :length]
    return np.moveaxis(y, -1, axis).astype(x.dtype)


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
    "MXFixNeuron": microscaling,
    "MXQuantizeDequantize": microscaling,
    "VitisDequantizeLinear": dequantize,
    "VitisInstanceNormalization": instance_norm,
    "VitisQuantizeLinear": quantize,
}
