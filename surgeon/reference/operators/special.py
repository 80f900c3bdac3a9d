"""Special functions (torch.special), in float64 by sums and integrals of their definitions."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.polynomial import chebyshev, hermite, hermite_e, laguerre, legendre

from surgeon.reference.errors import Unsuited
from surgeon.reference.operators.math_types import cut, real
from surgeon.reference.operators.precision import Array, Row, is_float

# Sums go on to so far, from where Euler's and Maclaurin's formula tells the rest in float64.
_FAR, _MOST = 50.0, 200_000
_ANGLES = 4_000


def _each(function: Callable[[float], float]) -> Callable[[Array], Array]:
    def run(self: Array) -> Array:
        x, dtype = real(self)
        made = [function(float(v)) for v in np.asarray(x).reshape(-1)]
        return cut(np.asarray(made).reshape(np.shape(x)), dtype)

    return run


def _all(function: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """As `_each`, of a function of many numbers in a row."""

    def run(self: Array) -> Array:
        x, dtype = real(self)
        with np.errstate(all="ignore"):
            made = function(np.asarray(x, np.float64).reshape(-1))
        return cut(made.reshape(np.shape(x)), dtype)

    return run


def _scaled(function: Callable[[float], float]) -> Callable[[Array], Array]:
    run = _each(function)
    return lambda x: run(x)  # the schema's own name of the argument


def _summed(x: Array, term: Callable[[Array, Any], Array]) -> tuple[Array, Array]:
    """The sum of `term` at x, x + 1 ... up to `_FAR`, and where that ends."""
    if (x < -_MOST).any():
        raise Unsuited(f"it is asked for at {x.min()}")
    total, far = np.zeros(x.shape), x.copy()
    near = np.flatnonzero(far < _FAR)
    while near.size:
        total[near] += term(far[near], near)
        far[near] += 1
        near = near[far[near] < _FAR]
    return total, far


def _digamma(x: Array) -> Array:
    """The sum of -1/(x+n), and Euler's and Maclaurin's formula for its end (DLMF 5.11.2)."""
    found = np.full(x.shape, np.nan)
    found[x == 0] = -np.copysign(np.inf, x[x == 0])
    found[x == np.inf] = np.inf
    at = np.isfinite(x) & ((x > 0) | (x != np.floor(x)))
    total, far = _summed(x[at], lambda y, _: -1 / y)
    end = np.log(far) - 1 / (2 * far) - 1 / (12 * far**2) + 1 / (120 * far**4) - 1 / (252 * far**6)
    found[at] = total + end
    return found


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


def _bessel(order: int, scaled: bool) -> Callable[[Array], Array]:
    """The mean of e^(x cos t) cos(n t) over half a turn."""

    def mean(x: Array, count: int) -> Array:
        angles = (np.arange(count) + 0.5) * (math.pi / count)
        parts = [
            _waves(v[:, None] * np.cos(angles), np.abs(v)[:, None]) * np.cos(order * angles)
            for v in np.array_split(x, len(x) * count // 1_000_000 + 1)
        ]
        return np.concatenate([part.mean(axis=1) for part in parts])

    def _waves(z: Array, size: Array) -> Array:
        if order % 2 == 0 or (size > 700).any():
            made: Array = np.exp(z - size)
        else:  # the even part of e^z falls out of the mean, and near 0 hides the odd one
            made = np.sinh(z) * np.exp(-size)
        return made

    def run(x: Array) -> Array:
        # PyTorch has no number at infinity
        found = np.where(np.isinf(x) & scaled, 0.0, np.nan)
        small = np.abs(x) < 100  # whose mean is exact from 64 angles on
        far = np.isfinite(x) & (np.abs(x) > 1e5)  # a peak between two angles: DLMF 10.40.1
        for there, count in ((small, 100), (np.isfinite(x) & ~small & ~far, _ANGLES)):
            found[there] = mean(x[there], count)
        size = np.abs(x[far])
        tail = (1 - (4 * order**2 - 1) / (8 * size)) / np.sqrt(2 * math.pi * size)
        found[far] = tail * np.sign(x[far]) ** order
        if scaled:
            return found
        huge = np.isfinite(x) & (np.abs(x) > 720)
        return np.where(huge, np.inf * np.sign(x) ** order, found * np.exp(np.abs(x)))

    return run


def _bessel_k(order: int, scaled: bool) -> Callable[[float], float]:
    """The integral of e^(-x cosh t) cosh(n t) from 0 on, by many small steps."""

    def run(x: float) -> float:
        if math.isnan(x) or x < 0:
            return math.nan
        if x == 0:
            return math.inf
        if x == math.inf:
            return 0.0
        last = math.acosh(1 + 60 / x)
        t, step = np.linspace(0, last, 6001, retstep=True)
        heights = np.exp(-x * (np.cosh(t) - 1)) * np.cosh(order * t)
        whole = float((heights.sum() - heights[0] / 2) * step)
        return whole if scaled else whole * math.exp(-x)

    return run


def _bessel_y(order: int) -> Callable[[float], float]:
    """DLMF 10.9.7: a wave over half a turn, less what falls off on a line."""

    def run(x: float) -> float:
        if not math.isfinite(x) or x < 0:
            return math.nan
        if x == 0:
            return -math.inf
        if x > 300:
            raise Unsuited(f"it is asked for at {x}")
        turn = _integral(lambda t: np.sin(x * np.sin(t) - order * t), math.pi)
        sign = (-1) ** order

        def falls(t: Any) -> Any:
            return (np.exp(order * t) + sign * np.exp(-order * t)) * np.exp(-x * np.sinh(t))

        return (turn - _integral(falls, math.asinh(60 / x) + order)) / math.pi

    return run


def _integral(function: Callable[[Any], Any], end: float) -> float:
    """By Gauss and Legendre in 64 pieces."""
    places, weights = np.polynomial.legendre.leggauss(24)
    edges = np.linspace(0, end, 65)
    half = (edges[1:] - edges[:-1])[:, None] / 2
    middle = (edges[1:] + edges[:-1])[:, None] / 2
    return float((function(middle + half * places) * weights * half).sum())


def _bessel_j(order: int) -> Callable[[float], float]:
    """Miller's recurrence from far above downwards; J0 + 2 J2 + 2 J4 + ... is 1."""

    def run(x: float) -> float:
        if not math.isfinite(x):
            return math.nan
        size = abs(x)
        if size < 1e-8:
            return 1.0 if order == 0 else x / 2
        if size > 50_000:
            raise Unsuited(f"it is asked for at {x}")
        start = 2 * (int(size + 15 * size ** (1 / 3)) // 2 + 20)
        above, here, total, found = 0.0, 1e-280, 0.0, [0.0, 0.0]
        for k in range(start, -1, -1):
            if k < 2:
                found[k] = here
            total += here * (k % 2 == 0) * (1 if k == 0 else 2)
            above, here = here, 2 * k / size * here - above
            if abs(here) > 1e250:
                above, here, total = above * 1e-250, here * 1e-250, total * 1e-250
                found = [v * 1e-250 for v in found]
        value = found[order] / total
        return -value if order and x < 0 else value

    return run


def _erfcx(x: float) -> float:
    if x > 25:
        return (1 - 1 / (2 * x * x) + 3 / (4 * x**4) - 15 / (8 * x**6)) / (x * math.sqrt(math.pi))
    try:
        return math.exp(x * x) * math.erfc(x)
    except OverflowError:
        return math.inf


def _log_ndtr(x: float) -> float:
    if x > -20:
        below = math.erfc(-x / math.sqrt(2)) / 2
        return math.log1p(-math.erfc(x / math.sqrt(2)) / 2) if x > 0 else math.log(below)
    if math.isinf(x):
        return x
    return -x * x / 2 + math.log(_erfcx(-x / math.sqrt(2)) / 2)


def _ndtri(p: float) -> float:
    if 0 < p < 1:
        return NormalDist().inv_cdf(p)
    return -math.inf if p == 0 else math.inf if p == 1 else math.nan


def _entr(x: float) -> float:
    return -math.inf if x < 0 else 0.0 if x == 0 else -x * math.log(x)


def _zeta(s: Array, q: Array) -> Array:
    """The sum of (q + k)^-s, and Euler's and Maclaurin's formula for its end (DLMF 25.11.5)."""
    found = np.where(s == 1, np.inf, np.nan)
    whole = q == np.floor(q)
    found[(s > 1) & whole & (q <= 0)] = np.inf
    found[(s > 1) & (q == np.inf)] = 0
    at = (s > 1) & np.isfinite(q) & ((q > 0) | (~whole & (s == np.floor(s))))
    s, q = s[at], q[at]
    total, far = _summed(q, lambda y, near: y ** -s[near])
    second = s * (s + 1) * (s + 2)
    end = far ** (1 - s) / (s - 1) + far**-s / 2 + s * far ** (-s - 1) / 12
    end += -second * far ** (-s - 3) / 720 + second * (s + 3) * (s + 4) * far ** (-s - 5) / 30240
    found[at] = total + end
    return found


def polygamma(n: int, self: Array) -> Array:
    """The n-th derivative of digamma, as a sum."""

    def run(x: Array) -> Array:
        if n == 0:
            return _digamma(x)
        found = (-1.0) ** (n + 1) * math.factorial(n) * _zeta(np.full(x.shape, n + 1.0), x)
        return np.where((x == -np.inf) & (n == 1), np.nan, found)

    return _all(run)(self)


def zeta(self: Any, other: Array) -> Array:
    """Hurwitz's zeta function, of each pair."""
    # of a number and a tensor, the tensor decides
    tensors = [a for a in (np.asarray(self), np.asarray(other)) if a.ndim]
    s, q = np.broadcast_arrays(np.asarray(self, np.float64), np.asarray(other, np.float64))
    with np.errstate(all="ignore"):
        found = _zeta(s.reshape(-1), q.reshape(-1))
    return cut(found.reshape(s.shape), _shared(*tensors))


def _series(name: str, n: int) -> Callable[[Array], Array]:
    """The polynomial of numpy whose only coefficient is that of degree n."""
    one = [0.0] * n + [1.0]
    kinds: dict[str, Any] = {
        "t": lambda x: chebyshev.chebval(x, one),
        "h": lambda x: hermite.hermval(x, one),
        "he": lambda x: hermite_e.hermeval(x, one),
        "l": lambda x: laguerre.lagval(x, one),
        "p": lambda x: legendre.legval(x, one),
        # those of the other kinds are made of the derivatives of the first
        "u": lambda x: _second_kind(x, n),
        "v": lambda x: _second_kind(x, n) - _second_kind(x, n - 1),
        "w": lambda x: _second_kind(x, n) + _second_kind(x, n - 1),
    }
    found: Callable[[Array], Array] = kinds[name]
    return found


def _second_kind(x: Array, n: int) -> Any:
    if n < 0:
        return np.zeros_like(x)
    return chebyshev.chebval(x, chebyshev.chebder([0.0] * (n + 1) + [1.0])) / (n + 1)


def _shared(*arrays: Array) -> np.dtype[Any]:
    """PyTorch's dtype of both together; integers alone count as float32."""
    floats = [a.dtype for a in arrays if is_float(a)]
    return np.result_type(*floats) if floats else np.dtype(np.float32)


def _polynomial(name: str) -> Iterator[Row]:
    def run(x: Any, n: Any) -> Array:
        values, dtype = real(np.asarray(x))
        at = 2 * values - 1 if "shifted" in name else values
        at, degrees = np.broadcast_arrays(at, np.trunc(np.asarray(n, np.float64)))
        found = np.zeros_like(at)
        for degree in np.unique(degrees[degrees >= 0]):
            there = degrees == degree
            found[there] = _series(name.rpartition("_")[2], int(degree))(at[there])
        made = cut(found, dtype)
        if (np.isinf(made) & np.isfinite(at)).any():
            raise Unsuited("a value is beyond the dtype, where the recurrence ends in NaN")
        return made

    def run_together(x: Array, n: Array) -> Array:
        return run(x.astype(_shared(x, n)), n)

    yield f"special_{name}.n_scalar(Tensor x, Scalar n) -> Tensor", run
    yield f"special_{name}(Tensor x, Tensor n) -> Tensor", run_together


def spherical_bessel_j0(x: Array) -> Array:
    """The product of cos(x / 2^k): Euler's form of sin x / x."""

    def run(value: float) -> float:
        if math.isinf(value):
            return 0.0
        return math.prod(math.cos(value / 2**k) for k in range(1, 60))

    return _each(run)(x)


def mvlgamma(self: Array, p: int) -> Array:
    """The logarithm of pi^(p (p - 1) / 4) times a product of gamma functions."""
    x, dtype = real(self)
    if not (x > (p - 1) / 2).all():
        raise Unsuited(f"a value is not above {(p - 1) / 2}")
    each = [sum(math.lgamma(v + (1 - j) / 2) for j in range(1, p + 1)) for v in x.reshape(-1)]
    return cut(np.reshape(each, x.shape) + p * (p - 1) / 4 * math.log(math.pi), dtype)


_OF_ARRAYS: dict[str, Any] = {
    **dict.fromkeys(("digamma", "special_digamma", "special_psi"), _digamma),
    **dict.fromkeys(("i0", "special_i0"), _bessel(0, False)),
    "special_i0e": _bessel(0, True),
    "special_i1": _bessel(1, False),
    "special_i1e": _bessel(1, True),
}
_FUNCTIONS: dict[str, Any] = {
    **dict.fromkeys(("lgamma", "special_gammaln"), _lgamma),
    **dict.fromkeys(("erfinv", "special_erfinv"), _erfinv),
    "special_bessel_j0": _bessel_j(0),
    "special_bessel_j1": _bessel_j(1),
    "special_bessel_y0": _bessel_y(0),
    "special_bessel_y1": _bessel_y(1),
    "special_modified_bessel_k0": _bessel_k(0, False),
    "special_modified_bessel_k1": _bessel_k(1, False),
    "special_erfcx": _erfcx,
    "special_ndtr": lambda x: math.erfc(-x / math.sqrt(2)) / 2,
    "special_log_ndtr": _log_ndtr,
    "special_ndtri": _ndtri,
    "special_entr": lambda x: x if math.isnan(x) else _entr(x) if x < math.inf else -math.inf,
}
TABLE: tuple[Row, ...] = (
    *(
        (f"special_scaled_modified_bessel_k{n}(Tensor x) -> Tensor", _scaled(_bessel_k(n, True)))
        for n in (0, 1)
    ),
    *((f"{name}(Tensor self) -> Tensor", _each(f)) for name, f in _FUNCTIONS.items()),
    *((f"{name}(Tensor self) -> Tensor", _all(f)) for name, f in _OF_ARRAYS.items()),
    ("polygamma(int n, Tensor self) -> Tensor", polygamma),
    ("special_zeta.self_scalar(Scalar self, Tensor other) -> Tensor", zeta),
    ("special_zeta(Tensor self, Tensor other) -> Tensor", zeta),
    ("mvlgamma(Tensor self, int p) -> Tensor", mvlgamma),
    ("special_spherical_bessel_j0(Tensor x) -> Tensor", spherical_bessel_j0),
    *(
        row
        for shift in ("", "shifted_")
        for k in "tuvw"
        for row in _polynomial(f"{shift}chebyshev_polynomial_{k}")
    ),
    *(row for k in ("h", "he") for row in _polynomial(f"hermite_polynomial_{k}")),
    *_polynomial("laguerre_polynomial_l"),
    *_polynomial("legendre_polynomial_p"),
)
