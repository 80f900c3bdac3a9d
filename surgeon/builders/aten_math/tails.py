"""Tails of the normal distribution, derivatives of digamma, Bessel functions of the first kind.

As in `special`: what the series leave out is below the rounding of the dtype.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np
import onnx_graphsurgeon as gs

from surgeon.builders.aten_math.doubles import erfcx_right
from surgeon.builders.aten_math.reductions import reduce
from surgeon.builders.aten_math.special import digamma, erfinv, from_nearest, lgamma, polynomial
from surgeon.builders.aten_math.work import DOUBLE, FLOAT, Work, numpy_dtype
from surgeon.builders.aten_math.zetas import BERNOULLI, hurwitz
from surgeon.builders.scalar_types import finfo
from surgeon.rewrite import Refused

# Where the integral gives way to the asymptotic series, its points, and the terms of the series.
BESSEL = {FLOAT: (20.0, 12, 8), DOUBLE: (32.0, 20, 24)}
# Polygamma's asymptotic series (DLMF 5.15.8) begins behind this many steps to the right.
_STEPS = {FLOAT: 6, DOUBLE: 14}
_FAR = 1e-4  # below it, 2p - 1 is too near to -1
_NEWTON = {FLOAT: 2, DOUBLE: 4}
_HIGHEST = 4  # derivative of digamma: of higher ones little is left between the poles
_ROOT = math.sqrt(2)


def erfcx(work: Work, x: gs.Tensor) -> gs.Tensor:
    """`special_erfcx`: on the left 2 e^(x^2) less the value on the right."""
    dtype = work.dtype(x)
    right = erfcx_right(work, work.op("Abs", x))
    twice = work.op("Mul", work.op("Exp", work.op("Mul", x, x)), 2.0)
    left = work.op("Less", x, work.number(0, dtype))
    return work.where(left, work.op("Sub", twice, right), right)


def normal_below(work: Work, x: gs.Tensor) -> gs.Tensor:
    """`special_ndtr`: the share of a normal distribution below x, to the last digit of its tail."""
    dtype = work.dtype(x)
    size = work.op("Abs", x)
    half = work.op("Exp", work.op("Mul", work.op("Mul", x, x), -0.5))
    tail = work.op("Mul", erfcx_right(work, work.op("Div", size, _ROOT)), half)
    tail = work.op("Mul", tail, 0.5)
    left = work.op("Less", x, work.number(0, dtype))
    y = work.where(left, tail, work.op("Sub", work.number(1, dtype), tail))
    y = work.where(work.is_infinite(x), work.where(left, 0.0, work.number(1, dtype)), y)
    return work.where(work.is_nan(x), x, y)


def log_normal_below(work: Work, x: gs.Tensor) -> gs.Tensor:
    """`special_log_ndtr`: on the left by the tail without its exponential."""
    dtype = work.dtype(x)
    size = work.op("Abs", x)
    scaled = erfcx_right(work, work.op("Div", size, _ROOT))
    square = work.op("Mul", work.op("Mul", x, x), 0.5)
    left = work.op("Sub", work.op("Log", work.op("Mul", scaled, 0.5)), square)
    tail = work.op("Mul", work.op("Mul", scaled, work.op("Exp", work.op("Neg", square))), 0.5)
    y = work.where(work.op("Less", x, work.number(0, dtype)), left, _log_of_rest(work, tail))
    ends = work.where(work.op("Less", x, work.number(0, dtype)), -np.inf, work.number(0, dtype))
    y = work.where(work.is_infinite(x), ends, y)
    return work.where(work.is_nan(x), x, y)


def _log_of_rest(work: Work, x: gs.Tensor) -> gs.Tensor:
    """log(1 - x), which keeps the digits of small x."""
    dtype = work.dtype(x)
    rest = work.op("Sub", work.number(1, dtype), x)
    lost = work.op("Sub", rest, 1.0)  # what was taken away, as it was rounded
    exact = work.equal(lost, work.number(0, dtype))
    ratio = work.op("Div", work.op("Neg", x), work.where(exact, 1.0, lost))
    return work.where(exact, work.op("Neg", x), work.op("Mul", work.op("Log", rest), ratio))


def normal_quantile(work: Work, p: gs.Tensor) -> gs.Tensor:
    """`special_ndtri`: sqrt(2) erfinv(2p - 1), and by Newton's method where p is small."""
    dtype = work.dtype(p)
    rest = work.op("Mul", p, work.op("Sub", work.number(1, dtype), p))
    x = work.op("Sub", work.op("Mul", p, 2.0), 1.0)
    y = work.op("Mul", erfinv(work, x, work.op("Mul", rest, 4.0)), _ROOT)
    low = work.op("Less", p, work.number(_FAR, dtype))
    inside = work.op("And", low, work.op("Less", work.number(0, dtype), p))
    return work.where(inside, _far_left(work, p), y)


def _far_left(work: Work, p: gs.Tensor) -> gs.Tensor:
    dtype = work.dtype(p)
    least = float(finfo(numpy_dtype(dtype)).tiny)
    p = work.extreme(
        "Min", work.extreme("Max", p, work.number(least, dtype)), work.number(_FAR, dtype)
    )
    log = work.op("Log", p)
    twice = work.op("Mul", log, -2.0)
    z = work.op("Sqrt", work.op("Sub", twice, work.op("Log", work.op("Mul", twice, 2 * math.pi))))
    for _ in range(_NEWTON[dtype]):  # on z > 0, of the tail above it
        scaled = erfcx_right(work, work.op("Div", z, _ROOT))
        square = work.op("Mul", work.op("Mul", z, z), 0.5)
        error = work.op(
            "Sub", work.op("Log", work.op("Mul", scaled, 0.5)), work.op("Add", square, log)
        )
        step = work.op("Mul", work.op("Mul", error, scaled), math.sqrt(math.pi / 2))
        z = work.op("Add", z, step)
    return work.op("Neg", z)


def entropy(work: Work, x: gs.Tensor) -> gs.Tensor:
    """`special_entr`: -x log x; 0 at 0, and minus infinity below."""
    zero = work.number(0, work.dtype(x))
    y = work.op("Neg", work.op("Mul", x, work.op("Log", x)))
    y = work.where(work.equal(x, zero), 0.0, y)
    return work.where(work.op("Less", x, zero), -np.inf, y)


def falling_terms(order: int, count: int) -> list[float]:
    """The coefficients a(k) of DLMF 10.17.1, by powers of 1 / x."""
    falling = [1.0]
    for k in range(1, count):
        falling.append(falling[-1] * (4 * order**2 - (2 * k - 1) ** 2) / (8 * k))
    return falling


def far_waves(
    work: Work, x: gs.Tensor, order: int, terms: int
) -> tuple[gs.Tensor, gs.Tensor, gs.Tensor, gs.Tensor]:
    """The even sum, the odd sum, the angle and the amplitude of DLMF 10.17.3 and 10.17.4."""
    falling = falling_terms(order, terms)
    even = [a * (-1) ** k for k, a in enumerate(falling[0::2])]
    odd = [a * (-1) ** k for k, a in enumerate(falling[1::2])]
    inverse = work.op("Reciprocal", x)
    square = work.op("Mul", inverse, inverse)
    return (
        polynomial(work, square, even[::-1]),
        work.op("Mul", inverse, polynomial(work, square, odd[::-1])),
        work.op("Sub", x, (order / 2 + 0.25) * math.pi),
        work.op("Sqrt", work.op("Mul", inverse, 2 / math.pi)),
    )


def _bessel(order: int) -> Callable[[Work, gs.Tensor], gs.Tensor]:
    """J0 and J1: the mean of a wave over a quarter turn, and far out DLMF 10.17.3."""

    def make(work: Work, x: gs.Tensor) -> gs.Tensor:
        dtype = work.dtype(x)
        border, points, terms = BESSEL[dtype]
        edge, rank = work.number(border, dtype), work.rank(x)
        size = work.op("Abs", x)
        low, high = work.extreme("Min", size, edge), work.extreme("Max", size, edge)
        sines = np.sin((np.arange(points) + 0.5) * np.pi / (2 * points)).astype(numpy_dtype(dtype))
        wide = work.draft.op("Unsqueeze", low, work.axes([rank]))
        angles = work.op("Mul", wide, work.draft.constant(sines, "sines"))
        waves = work.op("Sin" if order else "Cos", angles)
        if order:
            waves = work.op("Mul", waves, work.draft.constant(sines, "sines"))
        near = reduce(work, "ReduceMean", waves, [rank], keepdim=False)
        first, second, turn, height = far_waves(work, high, order, terms)
        far = work.op(
            "Sub",
            work.op("Mul", first, work.op("Cos", turn)),
            work.op("Mul", second, work.op("Sin", turn)),
        )
        far = work.op("Mul", far, height)
        y = work.where(work.op("Less", size, edge), near, far)
        if order:
            y = work.where(work.op("Less", x, work.number(0, dtype)), work.op("Neg", y), y)
        return work.where(work.is_nan(x), x, y)

    return make


def polygamma(work: Work) -> gs.Tensor:
    """`polygamma`: the n-th derivative of digamma, on the left by those of a cotangent."""
    n = int(work.args.value("n"))
    x = work.floating(work.args.tensor("self"))
    if n < 0:
        raise Refused(f"PyTorch has no derivative {n} of digamma")
    if n > _HIGHEST:
        return in_single(work, x, lambda w, t: _high_derivative(w, t, n))
    return in_single(work, x, digamma if n == 0 else lambda w, t: _derivative(w, t, n))


def _high_derivative(work: Work, x: gs.Tensor, n: int) -> gs.Tensor:
    """As PyTorch has it: what is too large for the dtype is infinite before it is multiplied."""
    dtype = work.dtype(x)
    most = float(finfo(numpy_dtype(dtype)).max)
    times = float(math.factorial(n)) if n <= 170 else math.inf
    times = times if times <= most else math.inf
    y = hurwitz(work, work.number(n + 1, dtype), x)
    made: gs.Tensor = work.op("Mul", y, times if n % 2 else -times)
    return made


def _derivative(work: Work, x: gs.Tensor, n: int) -> gs.Tensor:
    dtype = work.dtype(x)
    zero, one = work.number(0, dtype), work.number(1, dtype)
    left = work.op("Less", x, zero)
    y = work.where(left, work.op("Sub", one, x), x)
    steps = _STEPS[dtype]
    total = _power(work, y, -n - 1)
    for k in range(1, steps):
        total = work.op("Add", total, _power(work, work.op("Add", y, float(k)), -n - 1))
    far = work.op("Add", y, float(steps))
    inverse = work.op("Reciprocal", far)
    # the tail of the sum: 1/n z^n + 1/2 z^(n+1) + sum B(2k) (2k+n-1)! / (2k)! n! z^(2k+n)
    series = [
        b * math.factorial(2 * k + n - 1) / (math.factorial(2 * k) * math.factorial(n))
        for k, b in enumerate(BERNOULLI, 1)
    ]
    square = work.op("Mul", inverse, inverse)
    rest = work.op("Mul", square, polynomial(work, square, series[::-1]))
    rest = work.op("Add", work.op("Add", rest, work.op("Mul", inverse, 0.5)), 1 / n)
    total = work.op("Add", total, work.op("Mul", rest, _power(work, inverse, n)))
    sign = 1.0 if n % 2 else -1.0
    y = work.op("Mul", total, sign * math.factorial(n))
    angle = work.op("Mul", from_nearest(work, x), math.pi)
    cotangent = work.op("Div", work.op("Cos", angle), work.op("Sin", angle))
    turned = polynomial(work, cotangent, _cotangent(n)[::-1])
    other = work.op("Sub", work.op("Mul", y, -sign), work.op("Mul", turned, math.pi ** (n + 1)))
    y = work.where(left, other, y)
    pole = work.op("And", work.equal(x, work.op("Floor", x)), work.less(x, zero, or_equal=True))
    y = work.where(pole, sign * np.inf, y)
    strange = work.is_nan(x)
    if n == 1:  # PyTorch has no number there
        strange = work.op("Or", strange, work.equal(x, work.number(-np.inf, dtype)))
    return work.where(strange, np.nan, y)


def _power(work: Work, x: gs.Tensor, exponent: int) -> gs.Tensor:
    """A whole power by products."""
    y = work.op("Reciprocal", x) if exponent < 0 else x
    result, square, rest = None, y, abs(exponent)
    while rest:
        if rest & 1:
            result = square if result is None else work.op("Mul", result, square)
        rest >>= 1
        square = work.op("Mul", square, square) if rest else square
    assert result is not None
    return result


def _cotangent(n: int) -> list[float]:
    """The n-th derivative of cot as a polynomial of it: of p(c) it is -(1 + c^2) p'(c)."""
    p = np.polynomial.Polynomial([0, 1])
    for _ in range(n):
        p = -np.polynomial.Polynomial([1, 0, 1]) * p.deriv()
    return [float(v) for v in p.coef]


def log_multigamma(work: Work) -> gs.Tensor:
    """`mvlgamma`: a sum of `lgamma` at p places half a step apart."""
    x, p = work.floating(work.args.tensor("self")), int(work.args.value("p"))
    if not 1 <= p <= 64:
        raise Refused(f"p = {p}")

    def total(w: Work, t: gs.Tensor) -> gs.Tensor:
        y = lgamma(w, t)
        for j in range(1, p):
            y = w.op("Add", y, lgamma(w, w.op("Sub", t, j / 2)))
        return w.op("Add", y, p * (p - 1) / 4 * math.log(math.pi)) if p > 1 else y

    return in_single(work, x, total)


def zeta(work: Work) -> gs.Tensor:
    """`special_zeta`; of a constant whole number it is a derivative of digamma."""
    exponent, q = work.args.tensor("self"), work.args.tensor("other")
    known = work.facts.array(exponent)
    s = None if known is None or known.size != 1 or known.ndim else float(known)
    if s is None or s != int(s) or not 2 <= s <= _HIGHEST + 1:
        dtype, (exponent, q) = work.together(exponent, q, floating=True)
        wide = dtype if dtype in (FLOAT, DOUBLE) else FLOAT
        y = hurwitz(work, work.cast(exponent, wide), work.cast(q, wide))
        return work.cast(y, dtype)
    n = int(s) - 1
    _, (q,) = work.together(q, floating=True)
    scale = (1.0 if n % 2 else -1.0) / math.factorial(n)
    y = in_single(work, q, lambda w, t: w.op("Mul", _derivative(w, t, n), scale))
    pole = work.op(
        "And",
        work.equal(q, work.op("Floor", q)),
        work.less(q, work.number(0, work.dtype(q)), or_equal=True),
    )
    return work.where(pole, np.inf, y)


def in_single(
    work: Work, x: gs.Tensor, function: Callable[[Work, gs.Tensor], gs.Tensor]
) -> gs.Tensor:
    """Half precision by way of single."""
    dtype = work.dtype(x)
    wide = x if dtype in (FLOAT, DOUBLE) else work.cast(x, FLOAT)
    return work.cast(function(work, wide), dtype)


_OF_ONE: Mapping[str, Callable[[Work, gs.Tensor], gs.Tensor]] = {
    "special_erfcx": erfcx,
    "special_ndtr": normal_below,
    "special_log_ndtr": log_normal_below,
    "special_ndtri": normal_quantile,
    "special_entr": entropy,
    "special_bessel_j0": _bessel(0),
    "special_bessel_j1": _bessel(1),
}


def of_one(work: Work) -> gs.Tensor:
    """A function of one real."""
    return in_single(work, work.floating(work.args.tensor("self")), _OF_ONE[work.name])


FUNCTIONS: Mapping[str, Callable[[Work], gs.Tensor]] = {
    **dict.fromkeys(_OF_ONE, of_one),
    "polygamma": polygamma,
    "mvlgamma": log_multigamma,
    "special_zeta": zeta,
}
