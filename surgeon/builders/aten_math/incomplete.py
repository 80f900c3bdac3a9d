"""Incomplete gamma functions and Airy's function, computed in double precision inside.

Both are integrals of smooth functions: a fixed number of points on a new last axis gives them to
some twelve digits, so that what comes out is the rounding of single precision.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import onnx_graphsurgeon as gs

from surgeon.builders.aten_math.functions import log1p
from surgeon.builders.aten_math.ordered import running_sum
from surgeon.builders.aten_math.reductions import reduce
from surgeon.builders.aten_math.special import lgamma, polynomial
from surgeon.builders.aten_math.work import DOUBLE, Work
from surgeon.builders.parts import Array

# Below this a, the lower function is its power series of so many terms (DLMF 8.11.4); above it both
# are integrals over as many points as needed (W. Press et al., Numerical Recipes, 2007, 6.2.1).
_BORDER, _TERMS, _POINTS = 30.0, 64, 48
_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188)  # DLMF 5.11.1
_LEAST, _MOST = 1e-300, 1e300
# The integrals end where e^-this is left of the integrand at most.
_FALL, _FALL_OF_PEAK = 40.0, 75.0
_LONG = 50.0  # and never nearer on the right, where low peaks fall off like e^-u alone
# Airy's function is its power series up to this magnitude (DLMF 9.4.1).
_NEAR, _POWERS = 2.5, 16
_STEP, _STEPS = 0.25, 32
_AI, _AI_SLOPE = 0.355028053887817239260, -0.258819403792806798405  # at 0 (DLMF 9.2.3, 9.2.4)


def _between(work: Work, x: gs.Tensor, least: float, most: float) -> gs.Tensor:
    dtype = work.dtype(x)
    return work.extreme(
        "Min", work.extreme("Max", x, work.number(least, dtype)), work.number(most, dtype)
    )


def _column(work: Work, x: gs.Tensor) -> gs.Tensor:
    made: gs.Tensor = work.draft.op("Unsqueeze", x, work.axes([work.rank(x)]))
    return made


def _total(work: Work, terms: gs.Tensor) -> gs.Tensor:
    return reduce(work, "ReduceSum", terms, [work.rank(terms) - 1], keepdim=False)


def incomplete_gamma(work: Work) -> gs.Tensor:
    """`igamma` and `igammac` of (a, x): of both the one that is small is computed."""
    dtype, (a, x) = work.together(
        work.args.tensor("self"), work.args.tensor("other"), floating=True
    )
    a, x = work.cast(a, DOUBLE), work.cast(x, DOUBLE)
    inside, at = _between(work, a, _LEAST, _MOST), _between(work, x, _LEAST, _MOST)
    lower, upper = _lower(work, inside, at), _upper(work, inside, at)
    right = work.less(_peak(work, inside, 1.0), at, or_equal=True)
    wanted, other = (lower, upper) if work.name == "igamma" else (upper, lower)
    of_other = right if work.name == "igamma" else work.invert(right)
    y = work.where(of_other, work.op("Sub", work.number(1, DOUBLE), other), wanted)
    return work.cast(_at_the_ends(work, a, x, y), dtype)


def _at_the_ends(work: Work, a: gs.Tensor, x: gs.Tensor, y: gs.Tensor) -> gs.Tensor:
    """At 0, at infinity and at NaN, in the order in which PyTorch asks."""
    full = float(work.name == "igamma")
    zero = work.number(0, DOUBLE)
    no_a, no_x = work.equal(a, zero), work.equal(x, zero)
    far_a, far_x = work.is_infinite(a), work.is_infinite(x)
    y = work.where(work.op("Or", work.is_nan(a), work.is_nan(x)), np.nan, y)
    y = work.where(far_x, full, y)
    y = work.where(work.op("Or", no_x, far_a), 1 - full, y)
    y = work.where(no_a, full, y)
    unsure = work.op("And", no_a, work.op("Or", no_x, work.is_nan(x)))
    unsure = work.op("Or", unsure, work.op("And", far_a, far_x))
    below = work.op("Or", work.op("Less", a, zero), work.op("Less", x, zero))
    return work.where(work.op("Or", unsure, below), np.nan, y)


def _peak(work: Work, a: gs.Tensor, least: float) -> gs.Tensor:
    """Where t^(a-1) e^-t is highest, a - 1, or `least`."""
    return work.extreme("Max", work.op("Sub", a, 1.0), work.number(least, DOUBLE))


def _density(work: Work, a: gs.Tensor, x: gs.Tensor) -> gs.Tensor:
    """x^a e^-x / Gamma(a + 1), by Stirling's formula where a is large."""
    edge = work.number(_BORDER, DOUBLE)
    small, large = work.extreme("Min", a, edge), work.extreme("Max", a, edge)
    power = work.op("Sub", work.op("Mul", small, work.op("Log", x)), x)
    near = work.op("Sub", power, lgamma(work, work.op("Add", small, 1.0)))
    ratio, inverse = work.op("Div", x, large), work.op("Reciprocal", large)
    depth = work.op("Add", work.op("Sub", work.op("Log", ratio), ratio), 1.0)
    series = polynomial(work, work.op("Mul", inverse, inverse), _STIRLING[::-1])
    rest = work.op("Mul", work.op("Log", work.op("Mul", large, 2 * math.pi)), 0.5)
    far = work.op("Sub", work.op("Mul", large, depth), work.op("Mul", inverse, series))
    y = work.where(work.op("Less", a, edge), near, work.op("Sub", far, rest))
    made: gs.Tensor = work.op("Exp", y)
    return made


def _lower(work: Work, a: gs.Tensor, x: gs.Tensor) -> gs.Tensor:
    """The share below x, where x is not far above a."""
    edge = work.number(_BORDER, DOUBLE)
    small = work.extreme("Min", a, edge)
    near = work.extreme("Min", x, work.number(_BORDER + 1, DOUBLE))
    counts = work.draft.constant(np.arange(1.0, _TERMS + 1), "counts")
    ratios = work.op("Div", _column(work, near), work.op("Add", _column(work, small), counts))
    logs = work.op("Log", ratios)
    products = work.op("Exp", running_sum(work, logs, work.rank(logs) - 1))
    series = work.op("Add", _total(work, products), 1.0)
    peak = _peak(work, a, _BORDER - 1)
    place = work.extreme("Min", x, peak)
    slope = work.op("Sub", work.op("Div", peak, place), 1.0)
    reach = _reach(work, slope, _bend(work, peak, place), work.number(_FALL, DOUBLE))
    area = _area(work, peak, place, work.extreme("Min", reach, place), -1.0)
    far = work.op("Mul", work.op("Div", a, x), area)
    factor = work.where(work.op("Less", a, edge), series, far)
    made: gs.Tensor = work.op("Mul", _density(work, a, x), factor)
    return made


def _upper(work: Work, a: gs.Tensor, x: gs.Tensor) -> gs.Tensor:
    """The share above x, where x is at least 1 and at least a - 1."""
    peak = _peak(work, a, 0.0)
    place = work.extreme("Max", x, _peak(work, a, 1.0))
    ratio = work.op("Div", peak, place)
    fall = work.op("Add", work.op("Mul", ratio, _FALL_OF_PEAK - _FALL), _FALL)
    slope = work.op("Sub", work.number(1, DOUBLE), ratio)
    reach = _reach(work, slope, _bend(work, peak, place), fall)
    reach = work.extreme("Max", reach, work.number(_LONG, DOUBLE))
    area = _area(work, work.op("Sub", a, 1.0), place, reach, 1.0)
    density = _density(work, a, x)
    made: gs.Tensor = work.op("Mul", work.op("Mul", density, work.op("Div", a, x)), area)
    return made


def _bend(work: Work, peak: gs.Tensor, place: gs.Tensor) -> gs.Tensor:
    made: gs.Tensor = work.op("Mul", work.op("Div", work.op("Div", peak, place), place), 0.5)
    return made


def _reach(work: Work, slope: gs.Tensor, bend: gs.Tensor, fall: gs.Tensor) -> gs.Tensor:
    """Where slope u + bend u^2 is `fall`."""
    square = work.op("Mul", slope, slope)
    inner = work.op("Add", square, work.op("Mul", work.op("Mul", bend, fall), 4.0))
    below = work.op("Add", slope, work.op("Sqrt", inner))
    made: gs.Tensor = work.op("Div", work.op("Mul", fall, 2.0), below)
    return made


def _area(
    work: Work, power: gs.Tensor, place: gs.Tensor, reach: gs.Tensor, side: float
) -> gs.Tensor:
    """The integral of (1 + u/x)^power e^-u for u from 0 to `reach`, on that side (1 or -1) of x."""
    points, weights = np.polynomial.legendre.leggauss(_POINTS)
    line = work.draft.constant(side * (points + 1) / 2, "points")
    u = work.op("Mul", _column(work, reach), line)
    v = work.op("Div", u, _column(work, place))
    exponent = work.op("Sub", work.op("Mul", _column(work, power), log1p(work, v)), u)
    heights = work.op("Mul", work.op("Exp", exponent), work.draft.constant(weights / 2, "weights"))
    made: gs.Tensor = work.op("Mul", reach, _total(work, heights))
    return made


def airy(work: Work) -> gs.Tensor:
    """`special_airy_ai`: near 0 its power series, else its integral along the steepest descent.

    With z = |x| and k = 1 / 3 z^(3/4), that is the integral of e^(-s^2) cos(k s^3) on the right. On
    the left it is the real part of the same on a ray at 60 degrees (DLMF 9.2.14), s turned by 15.
    """
    x = work.floating(work.args.tensor("x"))
    wide = work.cast(x, DOUBLE)
    size = work.extreme("Max", work.op("Abs", wide), work.number(_NEAR, DOUBLE))
    root = work.op("Sqrt", size)
    quarter = work.op("Sqrt", root)
    s = np.arange(_STEPS) * _STEP
    weights = np.where(s == 0, _STEP / 2, _STEP) / math.pi
    factor = work.op("Reciprocal", work.op("Mul", work.op("Mul", root, quarter), 3.0))
    cubes = work.draft.constant(s**3, "cubes")
    waves = work.op("Cos", work.op("Mul", _column(work, factor), cubes))

    def share(heights: Array) -> gs.Tensor:
        return _total(
            work, work.op("Mul", waves, work.draft.constant(weights * heights, "heights"))
        )

    depth = work.op("Mul", work.op("Mul", size, root), 2 / 3)
    right = work.op("Mul", work.op("Exp", work.op("Neg", depth)), share(np.exp(-(s**2))))
    falls = 2 * np.exp(-(s**2) * math.sqrt(3) / 2)
    angle = work.op("Sub", work.number(math.pi / 3, DOUBLE), depth)
    left = work.op(
        "Add",
        work.op("Mul", work.op("Cos", angle), share(falls * np.cos(s**2 / 2))),
        work.op("Mul", work.op("Sin", angle), share(falls * np.sin(s**2 / 2))),
    )
    negative = work.op("Less", wide, work.number(0, DOUBLE))
    far = work.op("Div", work.where(negative, left, right), quarter)
    near = _airy_near(work, _between(work, wide, -_NEAR, _NEAR))
    y = work.where(work.less(work.op("Abs", wide), work.number(_NEAR, DOUBLE)), near, far)
    strange = work.op("Or", work.is_nan(wide), work.is_infinite(wide))  # PyTorch has no number
    return work.cast(work.where(strange, np.nan, y), work.dtype(x))


def _airy_near(work: Work, x: gs.Tensor) -> gs.Tensor:
    cube = work.op("Mul", work.op("Mul", x, x), x)
    first, second = [_AI], [_AI_SLOPE]
    for k in range(1, _POWERS):
        first.append(first[-1] / ((3 * k - 1) * 3 * k))
        second.append(second[-1] / (3 * k * (3 * k + 1)))
    odd = work.op("Mul", x, polynomial(work, cube, second[::-1]))
    made: gs.Tensor = work.op("Add", polynomial(work, cube, first[::-1]), odd)
    return made


FUNCTIONS: Mapping[str, Callable[[Work], Any]] = {
    **dict.fromkeys(("igamma", "igammac"), incomplete_gamma),
    "special_airy_ai": airy,
}
