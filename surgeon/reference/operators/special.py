"""Special functions (torch.special), in float64 by sums and integrals of their definitions."""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import NormalDist
from typing import Any

import numpy as np

from surgeon.reference.operators.math_types import cut, real
from surgeon.reference.operators.precision import Array, Row

_TERMS, _ANGLES = 20_000, 4_000


def _each(function: Callable[[float], float]) -> Callable[[Array], Array]:
    def run(self: Array) -> Array:
        x, dtype = real(self)
        made = [function(float(v)) for v in np.asarray(x).reshape(-1)]
        return cut(np.asarray(made).reshape(np.shape(x)), dtype)

    return run


def _digamma(x: float) -> float:
    """-gamma + sum of 1/(n+1) - 1/(n+x); the tail is that of a logarithm."""
    if x == 0:
        return -math.copysign(math.inf, x)
    if x == math.inf:
        return x
    if not math.isfinite(x) or (x < 0 and x == math.floor(x)):
        return math.nan
    n = np.arange(_TERMS + (int(-x) if x < 0 else 0))
    found = np.sum(1 / (n + 1) - 1 / (n + x)) - np.euler_gamma
    return float(found + math.log((len(n) + x - 0.5) / (len(n) + 0.5)))


def _lgamma(x: float) -> float:
    if not math.isfinite(x):
        return abs(x)
    return math.inf if x <= 0 and x == math.floor(x) else math.lgamma(x)


def _erfinv(x: float) -> float:
    """A quantile of the normal distribution, with one step of Newton's method."""
    if not -1 < x < 1:
        return math.copysign(math.inf, x) if abs(x) == 1 else math.nan
    y = NormalDist().inv_cdf((1 - abs(x)) / 2) / -math.sqrt(2)
    error = math.erfc(y) - (1 - abs(x)) if y > 1 else abs(x) - math.erf(y)
    return math.copysign(y + error * math.sqrt(math.pi) / 2 * math.exp(y * y), x)


def _bessel(order: int, scaled: bool) -> Callable[[float], float]:
    """The mean of e^(x cos t) cos(n t) over half a turn."""

    def run(x: float) -> float:
        if not math.isfinite(x):
            return 0.0 if scaled and math.isinf(x) else math.nan  # PyTorch has no number there
        angles = (np.arange(_ANGLES) + 0.5) * (math.pi / _ANGLES)
        waves = np.exp(x * np.cos(angles) - abs(x)) * np.cos(order * angles)
        with np.errstate(over="ignore"):
            return float(waves.mean() * (1.0 if scaled else np.exp(np.float64(abs(x)))))

    return run


_FUNCTIONS: dict[str, Any] = {
    **dict.fromkeys(("digamma", "special_digamma", "special_psi"), _digamma),
    **dict.fromkeys(("lgamma", "special_gammaln"), _lgamma),
    **dict.fromkeys(("erfinv", "special_erfinv"), _erfinv),
    **dict.fromkeys(("i0", "special_i0"), _bessel(0, False)),
    "special_i0e": _bessel(0, True),
    "special_i1": _bessel(1, False),
    "special_i1e": _bessel(1, True),
}
TABLE: tuple[Row, ...] = tuple(
    (f"{name}(Tensor self) -> Tensor", _each(function)) for name, function in _FUNCTIONS.items()
)
