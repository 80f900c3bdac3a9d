"""The scale and the zero point that PyTorch chooses for a range."""

from __future__ import annotations

import numpy as np

from surgeon.builders.parts import Array

_LEAST_SCALE = np.float32(6.1e-5)  # SMALL_SCALE_THRESHOLD (ATen/native/quantized/cpu/QuantUtils.h)


def chosen(
    least: Array, most: Array, low: int, high: int, *, symmetric: bool
) -> tuple[Array, Array]:
    """Scales in float32 and zero points in int32 of some ranges (QuantUtils.h, `Choose...`).

    Args:
        least: The least value of each, at most the greatest.
        most: The greatest value of each.
        low: The least level.
        high: The greatest level.
        symmetric: Whether 0 is in the middle, where values lie on both sides of it.
    """
    least, most = least.astype(np.float32), most.astype(np.float32)
    even = symmetric & (least < 0) & (most > 0)
    half = (high - low) // 2
    reach = np.maximum(abs(least / np.float32(-(half + 1))), abs(most / np.float32(half)))
    reach = reach.astype(np.float64)
    least = np.where(even, np.float32(reach * -(half + 1)), np.minimum(least, 0))
    most = np.where(even, np.float32(reach * half), np.maximum(most, 0))
    scale = (most.astype(np.float64) - least) / (high - low)
    with np.errstate(divide="ignore"):
        vanishes = np.isinf(1 / np.float32(scale))
    scale = np.where(vanishes, 0.1, scale)
    scale, least, most = _not_too_small(scale, least, most, high - low)
    scale = scale.astype(np.float32)
    below, above = (end / scale.astype(np.float64) for end in (least, most))
    by_least = abs(low) + abs(below) < abs(high) + abs(above)
    zero = np.where(by_least, low - below, high - above)
    zero = np.where(even, (low + high) / 2, zero)
    return scale, np.rint(np.clip(zero, low, high)).astype(np.int32)


def _not_too_small(
    scale: Array, least: Array, most: Array, steps: int
) -> tuple[Array, Array, Array]:
    """The scale no less than PyTorch's least, and the ends that it then has."""
    small = scale < _LEAST_SCALE
    larger = _LEAST_SCALE / np.float32(scale)
    wide = np.float32(_LEAST_SCALE * np.float32(steps))
    new_least = np.where(least == 0, least, np.where(most == 0, -wide, least * larger))
    new_most = np.where(least == 0, wide, np.where(most == 0, most, most * larger))
    return (
        np.where(small, np.float64(_LEAST_SCALE), scale),
        np.where(small, new_least, least),
        np.where(small, new_most, most),
    )
