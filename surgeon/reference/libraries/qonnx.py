"""QONNX's quantisers, which Brevitas, FINN and hls4ml write.

Documents: fastmachinelearning/qonnx, `docs/qonnx-custom-ops` (IntQuant, BipolarQuant, Trunc of
versions 1 and 2, FloatQuant).
"""

# ruff: noqa: D103 - each function means what QONNX documents for the operator of its name

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from surgeon.reference.errors import Unsuited

DOMAINS = ("qonnx.custom_op.general", "onnx.brevitas", "finn.custom_op.general")
Array = np.ndarray[Any, Any]


def _away(whole: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """A rounding of magnitudes, the sign put back."""
    return lambda x: np.copysign(whole(np.abs(x)), x)


_ROUNDINGS: Mapping[str, Callable[[Array], Array]] = {
    **dict.fromkeys(("ROUND", "HALF_EVEN"), np.rint),
    **dict.fromkeys(("DOWN", "ROUND_TO_ZERO"), np.trunc),
    "CEIL": np.ceil,
    "FLOOR": np.floor,
    "UP": _away(np.ceil),
    "HALF_UP": _away(lambda x: np.floor(x + np.float32(0.5))),
    "HALF_DOWN": _away(lambda x: np.ceil(x - np.float32(0.5))),
}


def _whole(x: Array, mode: str) -> Array:
    if mode.upper() not in _ROUNDINGS:
        raise Unsuited(f"`{mode}` is no rounding mode")
    return _ROUNDINGS[mode.upper()](x)


def _ends(bits: Any, signed: int, narrow: int) -> tuple[np.float32, np.float32]:
    """The least and the greatest level."""
    count = 2.0 ** _bits(bits)
    low, high = (-count / 2, count / 2 - 1) if signed else (0.0, count - 1)
    if narrow:
        low, high = (low + 1, high) if signed else (low, high - 1)
    return np.float32(low), np.float32(high)


def _bits(bits: Any) -> int:
    number = np.asarray(bits, np.float64).reshape(-1)
    if number.size != 1 or number[0] != np.rint(number[0]) or number[0] < 1:
        raise Unsuited("its bit width is no whole number")
    return int(number[0])


def _floats(*values: Any) -> list[Array]:
    return [np.asarray(value, np.float32) for value in values]


def int_quant(attributes: Mapping[str, Any], x: Any, scale: Any, zero: Any, bits: Any) -> Array:
    x, scale, zero = _floats(x, scale, zero)
    signed, narrow = attributes.get("signed", 1), attributes.get("narrow", 0)
    if signed and _bits(bits) == 1:
        raise Unsuited("one bit with a sign is not defined")
    level = np.clip(x / scale + zero, *_ends(bits, signed, narrow))
    level = _whole(level, attributes.get("rounding_mode", "ROUND"))
    return np.asarray((level - zero) * scale, np.float32)


def bipolar_quant(attributes: Mapping[str, Any], x: Any, scale: Any) -> Array:
    x, scale = _floats(x, scale)
    return np.asarray(np.where(x >= 0, np.float32(1), np.float32(-1)) * scale)


def trunc(
    attributes: Mapping[str, Any], x: Any, scale: Any, zero: Any, bits: Any, *rest: Any
) -> Array:
    x, scale, zero = _floats(x, scale, zero)
    mode = attributes.get("rounding_mode", "FLOOR")
    level = np.rint(x / scale + zero)
    if len(rest) == 1:  # version 1: so many bits fewer, and the levels stay where they were
        step = np.float32(2.0 ** (_bits(bits) - _bits(rest[0])))
        return np.asarray((_whole(level / step, mode) - zero) * scale, np.float32)
    out_scale, out_bits = rest
    (out_scale,) = _floats(out_scale)
    step = np.exp2(np.rint(np.log2(out_scale / scale))).astype(np.float32)
    ends = _ends(out_bits, attributes.get("signed", 1), attributes.get("narrow", 0))
    level = _whole(np.clip(level / step, *ends), mode)
    return np.asarray((level - zero / step) * out_scale, np.float32)


def float_quant(
    attributes: Mapping[str, Any],
    x: Any,
    scale: Any,
    exponent: Any,
    mantissa: Any,
    bias: Any,
    largest: Any,
) -> Array:
    x, scale, exponent, mantissa, bias = _floats(x, scale, exponent, mantissa, bias)
    if not attributes.get("saturation", 1):
        raise Unsuited("what is too large becomes no number")
    wide = np.asarray(x / scale, np.float64)
    wide = np.where(np.isinf(wide), np.nan, wide)  # no step is as large
    with np.errstate(all="ignore"):
        power = np.frexp(wide)[1] - 1.0  # 2 ** power <= |x| < 2 ** (power + 1)
    step = np.exp2(np.maximum(power, 1.0 - bias) - mantissa)
    most = np.exp2(2.0**exponent - 1 - bias) * (2 - np.exp2(-mantissa))
    if largest is not None:
        most = np.minimum(most, largest)
    level = step * _whole(wide / step, attributes.get("rounding_mode", "ROUND"))
    return np.asarray(np.clip(level, -most, most).astype(np.float32) * scale)


TABLE: Mapping[str, Callable[..., Any]] = {
    "Quant": int_quant,
    "IntQuant": int_quant,
    "BipolarQuant": bipolar_quant,
    "Trunc": trunc,
    "FloatQuant": float_quant,
}
