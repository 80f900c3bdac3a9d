"""Bessel functions of the second kind, Y and K, without and with their exponential taken off.

Near 0 they hold a logarithm; far out they are DLMF 10.17.4 and 10.40.2. Between them stand means
over an angle, whose points are as many as the dtype needs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np
import onnx_graphsurgeon as gs

from surgeon.builders.aten_math.reductions import reduce
from surgeon.builders.aten_math.special import polynomial
from surgeon.builders.aten_math.tails import BESSEL, falling_terms, far_waves, in_single
from surgeon.builders.aten_math.work import DOUBLE, Work, numpy_dtype
from surgeon.builders.scalar_types import finfo

# Where K's forms meet, the step and the number of its points, and the terms of either series: what
# is left out is below e^(-2 pi^2 / (border step^2)) and e^(-2 border).
_K = {False: (12.0, 0.25, 16, 12), True: (20.0, 0.15, 28, 24)}
_LEAST = 1.0  # below it, K is a series about its logarithm
_SERIES = {False: 8, True: 12}


def _second_kind(order: int) -> Callable[[Work, gs.Tensor], gs.Tensor]:
    """Y0 and Y1 of what is above 0.

    Neumann's series (DLMF 10.8.3) is a sum of J of even orders; each of these is a mean of one
    wave, weighed by another, so the sum is a mean as well. Y1 is minus its derivative.
    """

    def make(work: Work, x: gs.Tensor) -> gs.Tensor:
        dtype = work.dtype(x)
        edge = work.number(BESSEL[dtype][0], dtype)
        tiny = work.number(finfo(numpy_dtype(dtype)).tiny, dtype)
        low = work.extreme("Max", work.extreme("Min", x, edge), tiny)
        near = _near(work, low, order)
        far = _far(work, work.extreme("Max", x, edge), order)
        y = work.where(work.op("Less", x, edge), near, far)
        return _on_the_right(work, x, y, -np.inf)

    return make


def _near(work: Work, x: gs.Tensor, order: int) -> gs.Tensor:
    dtype, rank = work.dtype(x), work.rank(x)
    points = 2 * BESSEL[dtype][1]  # two waves of up to this order are told apart by as many
    angles = (np.arange(points) + 0.5) * np.pi / (2 * points)
    weights = sum((-1) ** k * np.cos(2 * k * angles) / k for k in range(1, points))
    sines, weights = (v.astype(numpy_dtype(dtype)) for v in (np.sin(angles), np.asarray(weights)))
    line = work.draft.constant(sines, "sines")
    turns = work.op("Mul", work.draft.op("Unsqueeze", x, work.axes([rank])), line)
    waves = work.op("Sin" if order else "Cos", turns)
    if order:
        waves = work.op("Mul", waves, line)
    weighed = work.op("Mul", waves, work.draft.constant(weights, "weights"))
    first, rest = (reduce(work, "ReduceMean", w, [rank], keepdim=False) for w in (waves, weighed))
    depth = work.op("Add", work.op("Log", work.op("Mul", x, 0.5)), np.euler_gamma)
    y = work.op("Sub", work.op("Mul", depth, first), work.op("Mul", rest, 2.0))
    if order:
        plain = reduce(work, "ReduceMean", work.op("Cos", turns), [rank], keepdim=False)
        y = work.op("Sub", y, work.op("Div", plain, x))
    made: gs.Tensor = work.op("Mul", y, 2 / math.pi)
    return made


def _far(work: Work, x: gs.Tensor, order: int) -> gs.Tensor:
    first, second, turn, height = far_waves(work, x, order, BESSEL[work.dtype(x)][2])
    waves = work.op(
        "Add",
        work.op("Mul", first, work.op("Sin", turn)),
        work.op("Mul", second, work.op("Cos", turn)),
    )
    made: gs.Tensor = work.op("Mul", waves, height)
    return made


def _modified(order: int, *, scaled: bool) -> Callable[[Work, gs.Tensor], gs.Tensor]:
    """K0 and K1: a series, the integral DLMF 10.32.9 by its trapezoids, and 10.40.2."""

    def make(work: Work, x: gs.Tensor) -> gs.Tensor:
        dtype = work.dtype(x)
        border, step, points, terms = _K[dtype == DOUBLE]
        tiny = work.number(finfo(numpy_dtype(dtype)).tiny, dtype)
        least, edge = work.number(_LEAST, dtype), work.number(border, dtype)
        near = _about_zero(work, work.extreme("Max", work.extreme("Min", x, least), tiny), order)
        middle = work.extreme("Min", work.extreme("Max", x, least), edge)
        between = _trapezoids(work, middle, order, step, points)
        inverse = work.op("Reciprocal", work.extreme("Max", x, edge))
        far = polynomial(work, inverse, falling_terms(order, terms)[::-1])
        far = work.op("Mul", far, work.op("Sqrt", work.op("Mul", inverse, math.pi / 2)))
        beyond = work.where(work.op("Less", x, edge), between, far)
        size = work.extreme("Max", x, work.number(0, dtype))
        if scaled:
            near = work.op("Mul", near, work.op("Exp", work.extreme("Min", size, least)))
        else:
            beyond = work.op("Mul", beyond, work.op("Exp", work.op("Neg", size)))
        y = work.where(work.op("Less", x, least), near, beyond)
        return _on_the_right(work, x, y, np.inf)

    return make


def _about_zero(work: Work, x: gs.Tensor, order: int) -> gs.Tensor:
    """DLMF 10.31.1 and 10.31.2, by powers of x^2 / 4."""
    count = _SERIES[work.dtype(x) == DOUBLE]
    half = work.op("Mul", x, 0.5)
    square = work.op("Mul", half, half)
    digamma = [-np.euler_gamma + sum(1 / i for i in range(1, k + 1)) for k in range(count + 2)]
    faculties = [math.factorial(k) * math.factorial(k + order) for k in range(count)]
    logarithm = work.op("Mul", work.op("Log", half), -1.0 if order == 0 else 1.0)
    plain = polynomial(work, square, [1 / f for f in faculties][::-1])
    if order == 0:
        shifts = [digamma[k] / f for k, f in enumerate(faculties)]
        rest = polynomial(work, square, shifts[::-1])
        made: gs.Tensor = work.op("Add", work.op("Mul", logarithm, plain), rest)
        return made
    shifts = [-(digamma[k] + digamma[k + 1]) / (2 * f) for k, f in enumerate(faculties)]
    rest = polynomial(work, square, shifts[::-1])
    total = work.op("Mul", half, work.op("Add", work.op("Mul", logarithm, plain), rest))
    return work.op("Add", work.op("Reciprocal", x), total)


def _trapezoids(work: Work, x: gs.Tensor, order: int, step: float, points: int) -> gs.Tensor:
    """The scaled function: e^(-x (cosh t - 1)) cosh(n t), summed over t."""
    dtype, rank = work.dtype(x), work.rank(x)
    t = np.arange(points) * step
    heights = np.cosh(order * t) * step
    heights[0] /= 2
    falls = work.draft.constant((1 - np.cosh(t)).astype(numpy_dtype(dtype)), "falls")
    wide = work.draft.op("Unsqueeze", x, work.axes([rank]))
    weights = work.draft.constant(heights.astype(numpy_dtype(dtype)), "heights")
    terms = work.op("Mul", work.op("Exp", work.op("Mul", wide, falls)), weights)
    return reduce(work, "ReduceSum", terms, [rank], keepdim=False)


def _on_the_right(work: Work, x: gs.Tensor, y: gs.Tensor, at_zero: float) -> gs.Tensor:
    """What it is above 0; at 0 a pole, and below it, as at NaN, no number."""
    zero = work.number(0, work.dtype(x))
    y = work.where(work.less(x, zero), np.nan, y)
    y = work.where(work.equal(x, zero), at_zero, y)
    return work.where(work.is_nan(x), x, y)


_OF_ONE: Mapping[str, Callable[[Work, gs.Tensor], gs.Tensor]] = {
    "special_bessel_y0": _second_kind(0),
    "special_bessel_y1": _second_kind(1),
    "special_modified_bessel_k0": _modified(0, scaled=False),
    "special_modified_bessel_k1": _modified(1, scaled=False),
    "special_scaled_modified_bessel_k0": _modified(0, scaled=True),
    "special_scaled_modified_bessel_k1": _modified(1, scaled=True),
}


def of_one(work: Work) -> gs.Tensor:
    """A function of one real."""
    x = work.floating(work.args.first())
    return in_single(work, x, _OF_ONE[work.name])


FUNCTIONS: Mapping[str, Callable[[Work], gs.Tensor]] = dict.fromkeys(_OF_ONE, of_one)
