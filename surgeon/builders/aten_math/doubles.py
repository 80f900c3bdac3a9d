"""Functions in double precision of which onnxruntime has kernels in single precision alone."""

from __future__ import annotations

import math

import onnx_graphsurgeon as gs

from surgeon.builders.aten_math.special import polynomial
from surgeon.builders.aten_math.work import DOUBLE, FLOAT, Work

# log(erfcx(x) / t) in Chebyshev polynomials of 4t - 2, where t = 2 / (2 + x) (W. Press et al.,
# Numerical Recipes, 3rd edition, 2007, section 6.2.2).
_ERFC = (
    -1.3026537197817094, 6.4196979235649026e-1, 1.9476473204185836e-2, -9.561514786808631e-3,
    -9.46595344482036e-4, 3.66839497852761e-4, 4.2523324806907e-5, -2.0278578112534e-5,
    -1.624290004647e-6, 1.303655835580e-6, 1.5626441722e-8, -8.5238095915e-8, 6.529054439e-9,
    5.059343495e-9, -9.91364156e-10, -2.27365122e-10, 9.6467911e-11, 2.394038e-12, -6.886027e-12,
    8.94487e-13, 3.13092e-13, -1.12708e-13, 3.81e-16, 7.106e-15, -1.523e-15, -9.4e-17, 1.21e-16,
    -2.8e-17,
)  # fmt: skip
_TERMS = {FLOAT: 12, DOUBLE: 28}
# erf(x) = x times this polynomial of x^2 (DLMF 7.6.1), to the last digit up to 1.
_SERIES = [
    2 / math.sqrt(math.pi) * (-1) ** n / (math.factorial(n) * (2 * n + 1)) for n in range(20)
]


def atan(work: Work, x: gs.Tensor) -> gs.Tensor:
    """By that of single precision, whose error is an angle near 0: two terms of it are enough.

    What is beyond 1 is turned to its reciprocal, which is finite where it is infinite.
    """
    one, zero = work.number(1, DOUBLE), work.number(0, DOUBLE)
    is_far = work.op("Less", one, work.op("Abs", x))
    near = work.where(is_far, work.op("Div", one, x), x)
    angle = work.cast(work.op("Atan", work.cast(near, FLOAT)), DOUBLE)
    sine, cosine = work.op("Sin", angle), work.op("Cos", angle)
    rest = work.op(
        "Div",
        work.op("Sub", work.op("Mul", near, cosine), sine),
        work.op("Add", cosine, work.op("Mul", near, sine)),
    )
    cube = work.op("Mul", work.op("Mul", rest, rest), rest)
    rest = work.op("Sub", rest, work.op("Div", cube, 3.0))
    found = work.op("Add", angle, rest)
    found = work.where(work.equal(near, zero), near, found)  # with its sign
    right = work.op("Mul", work.op("Sign", x), math.pi / 2)
    return work.where(is_far, work.op("Sub", right, found), found)


def _beside(work: Work, x: gs.Tensor) -> tuple[gs.Tensor, gs.Tensor]:
    """1 - x and 1 + x, in which the digits near the ends are."""
    one = work.number(1, DOUBLE)
    return work.op("Sub", one, x), work.op("Add", one, x)


def asin(work: Work, x: gs.Tensor) -> gs.Tensor:
    """The angle of x over the other leg."""
    other = work.op("Sqrt", work.op("Mul", *_beside(work, x)))
    return atan(work, work.op("Div", x, other))


def acos(work: Work, x: gs.Tensor) -> gs.Tensor:
    """Twice the angle of half: its tangent is the root of (1 - x) / (1 + x)."""
    half = atan(work, work.op("Sqrt", work.op("Div", *_beside(work, x))))
    return work.op("Mul", half, 2.0)


def erf(work: Work, x: gs.Tensor) -> gs.Tensor:
    """By its series near 0, elsewhere by what is left of 1 at the end of the tail."""
    one = work.number(1, DOUBLE)
    size = work.op("Abs", x)
    least = work.extreme("Min", size, one)
    square = work.op("Mul", least, least)
    near = work.op("Mul", x, polynomial(work, square, _SERIES[::-1]))
    far = work.op("Mul", work.op("Sign", x), work.op("Sub", one, _tail(work, size)))
    return work.where(work.op("Less", size, one), near, far)


def erfc(work: Work, x: gs.Tensor) -> gs.Tensor:
    """The tail on the right, and 2 less it on the left."""
    tail = _tail(work, work.op("Abs", x))
    on_left = work.op("Less", x, work.number(0, DOUBLE))
    return work.where(on_left, work.op("Sub", work.number(2, DOUBLE), tail), tail)


def _tail(work: Work, x: gs.Tensor) -> gs.Tensor:
    """The complement of erf of what is not negative."""
    fall = work.op("Exp", work.op("Neg", work.op("Mul", x, x)))
    return work.op("Mul", fall, erfcx_right(work, x))


def erfcx_right(work: Work, x: gs.Tensor) -> gs.Tensor:
    """e^(x^2) erfc(x) of what is not negative, by Clenshaw's recurrence."""
    dtype = work.dtype(x)
    two = work.number(2, dtype)
    t = work.op("Div", two, work.op("Add", x, 2.0))
    y = work.op("Sub", work.op("Mul", t, 4.0), two)
    last, before = work.number(0, dtype), work.number(0, dtype)
    for k in range(_TERMS[dtype] - 1, 0, -1):
        grown = work.op("Add", work.op("Sub", work.op("Mul", y, last), before), _ERFC[k])
        last, before = grown, last
    series = work.op("Mul", work.op("Add", work.op("Mul", y, last), _ERFC[0]), 0.5)
    return work.op("Mul", t, work.op("Exp", work.op("Sub", series, before)))
