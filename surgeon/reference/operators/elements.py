"""PyTorch operators on single elements: angles, powers of two, steps of quantised numbers."""

# ruff: noqa: D103 - each function means what PyTorch documents for its schema, in TABLE

from __future__ import annotations

from typing import Any

import numpy as np

from surgeon.reference.errors import Unsuited
from surgeon.reference.operators.math_types import common, cut, real
from surgeon.reference.operators.precision import Array, Row, is_float, narrow, wide


def angle(self: Array) -> Array:
    x, dtype = real(self)
    return cut(np.where(np.isnan(x), x, np.where(x < 0, np.pi, 0)), dtype)  # of -0.0 it is 0


def ldexp(self: Array, other: Array) -> Array:
    a, _, dtype = common(self, other, floating=True)
    b, kind = real(other)
    power = cut(np.exp2(b), kind).astype(np.float64)  # a tensor of its own, of the exponents' dtype
    whole = is_float(self) and not is_float(other)
    if (whole or kind == np.float16) and (np.isinf(power) | (power == 0)).any():
        raise Unsuited("a power beyond its dtype: releases differ, and runtimes of halves")
    return cut(a * power, dtype)


def isreal(self: Array) -> Array:
    return np.asarray(np.isreal(self))


def _on_levels(
    x: Array, scale: Any, zero: Array, quant_min: int, quant_max: int, *, together: bool = False
) -> Array:
    """The level of 0 is added before what was multiplied is rounded (`together`), or behind."""
    if not is_float(x):
        raise Unsuited(f"its input is {x.dtype.name}")
    step = np.asarray(scale, np.float32)
    # the product with the reciprocal is rounded to single precision before it is rounded to steps,
    # of double precision only the reciprocal
    kind = np.promote_types(x.dtype, np.float32)
    ratio = x.astype(kind) * (np.float32(1) / step).astype(kind)
    at = np.rint((ratio + zero.astype(kind)).astype(np.float32) if together else ratio)
    at = at.astype(np.float64) + (0 if together else zero)
    levels = np.clip(at, quant_min, quant_max)
    found = (levels - zero) * step.astype(np.float64)
    # where all elements have one scale, doubles are multiplied in single precision too
    return cut(found.astype(kind if step.ndim else np.float32), x.dtype)


def fake_quantize(
    self: Array, scale: Any, zero_point: Any, quant_min: int, quant_max: int
) -> Array:
    zero = np.trunc(np.asarray(zero_point, np.float64))
    step = np.reshape(np.asarray(scale), ())
    return _on_levels(self, step, np.reshape(zero, ()), quant_min, quant_max)


def fake_quantize_channels(
    self: Array, scale: Array, zero_point: Array, axis: int, quant_min: int, quant_max: int
) -> Array:
    shape = [1] * self.ndim
    shape[axis] = -1
    together = zero_point.dtype.kind == "f"  # where 0 may lie between two levels
    if together and scale.dtype != np.float32:
        raise Unsuited(f"its scale is {scale.dtype.name}")
    step, zero = scale.reshape(shape), zero_point.astype(np.float64).reshape(shape)
    return _on_levels(self, step, zero, quant_min, quant_max, together=together)


def _whole(zero_point: Array, quant_min: int, quant_max: int) -> Array:
    return np.clip(np.rint(zero_point.astype(np.float64)), quant_min, quant_max)


def fake_quantize_learnable(
    self: Array,
    scale: Array,
    zero_point: Array,
    quant_min: int,
    quant_max: int,
    grad_factor: float = 1.0,
) -> Array:
    zero = _whole(zero_point, quant_min, quant_max)
    return fake_quantize(self, scale, zero, quant_min, quant_max)


def fake_quantize_learnable_channels(
    self: Array,
    scale: Array,
    zero_point: Array,
    axis: int,
    quant_min: int,
    quant_max: int,
    grad_factor: float = 1.0,
) -> Array:
    zero = _whole(zero_point, quant_min, quant_max).astype(np.int64)
    return fake_quantize_channels(self, scale, zero, axis, quant_min, quant_max)


def fake_quantize_where_enabled(
    self: Array,
    scale: Array,
    zero_point: Array,
    fake_quant_enabled: Array,
    quant_min: int,
    quant_max: int,
) -> Array:
    if not np.ravel(fake_quant_enabled)[0]:
        return self
    return fake_quantize(self, scale, zero_point, quant_min, quant_max)


def fake_quantize_observed(
    self: Array,
    observer_on: Array,
    fake_quant_on: Array,
    running_min: Array,
    running_max: Array,
    scale: Array,
    zero_point: Array,
    averaging_const: float,
    quant_min: int,
    quant_max: int,
    ch_axis: int,
    per_row_fake_quant: bool = False,
    symmetric_quant: bool = False,
) -> Array:
    if np.any(observer_on):
        raise Unsuited("its observer is on")
    if not np.any(fake_quant_on):
        return self
    # which are chosen anew each time, whatever the file holds, and whether it observes or not
    ends = zip(np.ravel(running_min), np.ravel(running_max), strict=True)
    pairs = [_of_range(a, b, quant_min, quant_max, symmetric_quant) for a, b in ends]
    steps = np.array([step for step, _ in pairs], np.float32)
    zeros = np.array([zero for _, zero in pairs], np.int32)
    if per_row_fake_quant:
        return fake_quantize_channels(self, steps, zeros, ch_axis, quant_min, quant_max)
    return fake_quantize(self, steps[0], zeros[0], quant_min, quant_max)


def _of_range(least: Any, most: Any, low: int, high: int, symmetric: bool) -> tuple[float, int]:
    """The width of a step and the level of 0 for values of a range, which is widened to hold 0."""
    if not least <= most or np.isinf(least) or np.isinf(most):
        raise Unsuited(f"its observer has seen the range from {least} to {most}")
    levels = high - low
    if symmetric and least < 0 < most:
        below, above = levels // 2 + 1, levels // 2
        step = max(float(-least / np.float32(below)), float(most / np.float32(above)))
        least, most, zero = np.float32(-step * below), np.float32(step * above), (low + high) / 2
    else:
        least, most, zero = min(least, np.float32(0)), max(most, np.float32(0)), None
    step = (float(most) - float(least)) / levels
    with np.errstate(over="ignore", divide="ignore"):
        step = 0.1 if np.isinf(1 / np.float32(step)) else step
    smallest = float(np.float32(6.1e-5))
    if step < smallest:  # the range grows with it
        by = np.float32(smallest) / np.float32(step)
        if least == 0:
            most = np.float32(smallest) * np.float32(levels)
        elif most == 0:
            least = -np.float32(smallest) * np.float32(levels)
        else:
            least, most = least * by, most * by
        step = smallest
    if zero is None:
        held = float(np.float32(step))
        first, last = float(least) / held, float(most) / held
        is_first = abs(low) + abs(first) < abs(high) + abs(last)
        zero = low - first if is_first else high - last
    return step, round(min(max(zero, low), high))


def gcd(self: Any, other: Any) -> Array:
    return _of_integers(np.gcd, self, other)


def lcm(self: Any, other: Any) -> Array:
    """|a / gcd * b|, also where the product wraps."""
    return _of_integers(_common_multiple, self, other)


def _common_multiple(a: Array, b: Array) -> Any:
    divisor = np.gcd(a, b)
    return np.abs(a // np.where(divisor == 0, 1, divisor) * b)


def _of_integers(function: Any, self: Any, other: Any) -> Array:
    a, b, dtype = common(self, other)
    if dtype.kind not in "iu":
        raise Unsuited(f"its operands are {dtype.name}")
    return cut(function(a, b), dtype)


def frexp(self: Array) -> tuple[Array, Array]:
    mantissa, exponent = np.frexp(wide(self))
    return narrow(mantissa, self), exponent.astype(np.int32)


OBSERVED = (
    "(Tensor self, Tensor observer_on, Tensor fake_quant_on, Tensor running_min, "
    "Tensor running_max, Tensor scale, Tensor zero_point, float averaging_const, int quant_min, "
    "int quant_max, int ch_axis, bool per_row_fake_quant=False, bool symmetric_quant=False)"
)
TABLE: tuple[Row, ...] = (
    ("frexp.Tensor(Tensor self) -> (Tensor, Tensor)", frexp),
    ("gcd(Tensor self, Tensor other) -> Tensor", gcd),
    ("lcm(Tensor self, Tensor other) -> Tensor", lcm),
    ("angle(Tensor self) -> Tensor", angle),
    ("ldexp.Tensor(Tensor self, Tensor other) -> Tensor", ldexp),
    ("isreal(Tensor self) -> Tensor", isreal),
    *(
        (
            f"fake_quantize_per_tensor_affine{kinds}, int quant_min, int quant_max) -> Tensor",
            fake_quantize,
        )
        for kinds in (
            "(Tensor self, float scale, int zero_point",
            ".tensor_qparams(Tensor self, Tensor scale, Tensor zero_point",
        )
    ),
    (
        "_fake_quantize_learnable_per_tensor_affine(Tensor self, Tensor scale, Tensor zero_point, "
        "int quant_min, int quant_max, float grad_factor=1.0) -> Tensor",
        fake_quantize_learnable,
    ),
    (
        "_fake_quantize_learnable_per_channel_affine(Tensor self, Tensor scale, "
        "Tensor zero_point, int axis, int quant_min, int quant_max, float grad_factor=1.0) "
        "-> Tensor",
        fake_quantize_learnable_channels,
    ),
    (
        "fake_quantize_per_channel_affine(Tensor self, Tensor scale, Tensor zero_point, int axis, "
        "int quant_min, int quant_max) -> Tensor",
        fake_quantize_channels,
    ),
    (f"fused_moving_avg_obs_fake_quant{OBSERVED} -> Tensor", fake_quantize_observed),
)
