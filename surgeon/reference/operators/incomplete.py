"""Incomplete gamma functions, Airy's function and the float beside a float, one by one."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from surgeon.reference.errors import Unsuited
from surgeon.reference.operators.math_types import common, cut, real, result_type
from surgeon.reference.operators.precision import Array, Row

_AI, _AI_SLOPE = 0.3550280538878172, -0.2588194037928068  # at 0
_LARGEST = 1e7  # a, above which the sums are too long


def _shares(a: float, x: float) -> tuple[float, float]:
    """What lies below x and above it: a sum, or a continued fraction (DLMF 8.7.1, 8.9.2)."""
    if a < 0 or x < 0 or (a == 0 and not x > 0) or (math.isinf(a) and math.isinf(x)):
        return math.nan, math.nan
    if a == 0:
        return 1.0, 0.0
    if x == 0 or math.isinf(a):
        return 0.0, 1.0
    if math.isinf(x):
        return 1.0, 0.0
    if math.isnan(a) or math.isnan(x):
        return math.nan, math.nan
    if a > _LARGEST:
        raise Unsuited(f"it is asked for at {a}")
    front = math.exp(max(a * math.log(x) - x - math.lgamma(a), -745.0))
    if x < a + 1:
        term = total = 1 / a
        n = a
        while term > total * 1e-17:
            n += 1
            term *= x / n
            total += term
        below = front * total
        return below, 1 - below
    above = front * _fraction(a, x)
    return 1 - above, above


def _fraction(a: float, x: float) -> float:
    """By the method of Lentz."""
    b = x + 1 - a
    c, d = math.inf, 1 / b
    whole = d
    for i in range(1, 100_000):
        step = -i * (i - a)
        b += 2
        d = 1 / (step * d + b)
        c = b + step / c
        whole *= d * c
        if abs(d * c - 1) < 1e-16:
            break
    return whole


def _share(which: int) -> Any:
    def run(self: Array, other: Array) -> Array:
        a, x, dtype = common(self, other, floating=True)
        a, x = np.broadcast_arrays(a, x)
        pairs = zip(a.reshape(-1), x.reshape(-1), strict=True)
        made = [_shares(float(p), float(q))[which] for p, q in pairs]
        return cut(np.asarray(made).reshape(a.shape), dtype)

    return run


def airy_ai(x: Array) -> Array:
    """On the right by an integral of K, on the left by steps of the equation y'' = x y."""
    values, dtype = real(x)
    made = [_airy(float(v)) for v in values.reshape(-1)]
    return cut(np.asarray(made).reshape(values.shape), dtype)


def _airy(x: float) -> float:
    if not math.isfinite(x):
        return math.nan
    if x > 0:
        depth = 2 / 3 * x**1.5
        if depth > 700:
            return 0.0
        t, step = np.linspace(0, math.acosh(1 + 60 / depth) + 4, 8001, retstep=True)
        heights = np.exp(-depth * (np.cosh(t) - 1)) * np.cosh(t / 3)
        whole = float((heights.sum() - heights[0] / 2) * step)
        return math.sqrt(x / 3) / math.pi * whole * math.exp(-depth)
    if x < -1000:
        raise Unsuited(f"it is asked for at {x}")
    count = max(int(math.sqrt(-x) * -x), 1)
    at, value, slope = 0.0, _AI, _AI_SLOPE
    for _ in range(count):
        value, slope = _stepped(at, value, slope, x / count)
        at += x / count
    return value


def _stepped(at: float, value: float, slope: float, step: float) -> tuple[float, float]:
    """The Taylor series about `at`: (k + 2) (k + 1) c(k + 2) = at c(k) + c(k - 1)."""
    c = [value, slope, at * value / 2]
    for k in range(1, 40):
        c.append((at * c[k] + c[k - 1]) / ((k + 2) * (k + 1)))
    powers = step ** np.arange(len(c))
    rates = np.arange(1, len(c)) * c[1:]
    return float(np.dot(c, powers)), float(np.dot(rates, powers[:-1]))


def nextafter(self: Array, other: Array) -> Array:
    """IEEE's neighbour; of equal numbers the second."""
    dtype = result_type(self, other)
    if dtype.name not in ("float16", "float32", "float64"):
        raise Unsuited(f"its operands are {dtype.name}")
    x, y = np.asarray(self).astype(dtype), np.asarray(other).astype(dtype)
    with np.errstate(all="ignore"):
        return np.asarray(np.where(x == y, y, np.nextafter(x, y)), dtype)


TABLE: tuple[Row, ...] = (
    ("igamma(Tensor self, Tensor other) -> Tensor", _share(0)),
    ("igammac(Tensor self, Tensor other) -> Tensor", _share(1)),
    ("special_airy_ai(Tensor x) -> Tensor", airy_ai),
    ("nextafter(Tensor self, Tensor other) -> Tensor", nextafter),
)
