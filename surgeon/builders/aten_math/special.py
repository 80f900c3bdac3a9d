"""Functions that ONNX lacks: series, cut where the rest is below the rounding of the dtype.

Half precision is computed in single. What a series leaves out is less than what the dtype rounds
away, and PyTorch's own kernels are such series too: so the rules promise `rounding`, and the tests
hold them to a few units in the last place of the result, or of 1 where that is larger.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import onnx_graphsurgeon as gs

from surgeon.builders.aten_math.work import DOUBLE, FLOAT, Work

# B(2k) / 2k for k = 1, 2, ...: psi(x) = log x - 1/2x - sum of these / x^2k (DLMF 5.11.2).
_DIGAMMA = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12, -3617 / 8160)
# B(2k) / (2k (2k - 1)): the rest of Stirling's formula (DLMF 5.11.1), in odd powers of 1/x.
_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)
# erfinv(x) / x in w = -log(1 - x^2), highest power first: in w less a number below a border, above
# in sqrt(w) less a number (M. Giles, Approximating the erfinv function, GPU Computing Gems Jade,
# 2011, in single and in double precision).
_ERFINV_NEAR = (
    2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087,
    -0.00125372503, -0.00417768164, 0.246640727, 1.50140941,
)  # fmt: skip
_ERFINV_FAR = (
    -0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773,
    -0.0076224613, 0.00943887047, 1.00167406, 2.83297682,
)  # fmt: skip
_ERFINV_WIDE_NEAR = (
    -3.6444120640178196996e-21, -1.685059138182016589e-19, 1.2858480715256400167e-18,
    1.115787767802518096e-17, -1.333171662854620906e-16, 2.0972767875968561637e-17,
    6.6376381343583238325e-15, -4.0545662729752068639e-14, -8.1519341976054721522e-14,
    2.6335093153082322977e-12, -1.2975133253453532498e-11, -5.4154120542946279317e-11,
    1.051212273321532285e-09, -4.1126339803469836976e-09, -2.9070369957882005086e-08,
    4.2347877827932403518e-07, -1.3654692000834678645e-06, -1.3882523362786468719e-05,
    0.0001867342080340571352, -0.00074070253416626697512, -0.0060336708714301490533,
    0.24015818242558961693, 1.6536545626831027356,
)  # fmt: skip
_ERFINV_WIDE_FAR = (
    2.2137376921775787049e-09, 9.0756561938885390979e-08, -2.7517406297064545428e-07,
    1.8239629214389227755e-08, 1.5027403968909827627e-06, -4.013867526981545969e-06,
    2.9234449089955446044e-06, 1.2475304481671778723e-05, -4.7318229009055733981e-05,
    6.8284851459573175448e-05, 2.4031110387097893999e-05, -0.0003550375203628474796,
    0.00095328937973738049703, -0.0016882755560235047313, 0.0024914420961078508066,
    -0.0037512085075692412107, 0.005370914553590063617, 1.0052589676941592334,
    3.0838856104922207635,
)  # fmt: skip
_ERFINV_WIDE_END = (
    -2.7109920616438573243e-11, -2.5556418169965252055e-10, 1.5076572693500548083e-09,
    -3.7894654401267369937e-09, 7.6157012080783393804e-09, -1.4960026627149240478e-08,
    2.9147953450901080826e-08, -6.7711997758452339498e-08, 2.2900482228026654717e-07,
    -9.9298272942317002539e-07, 4.5260625972231537039e-06, -1.9681778105531670567e-05,
    7.5995277030017761139e-05, -0.00021503011930044477347, -0.00013871931833623122026,
    1.0103004648645343977, 4.8499064014085844221,
)  # fmt: skip
# (border, what is taken off, polynomial); the border is of w.
_ERFINV = {
    FLOAT: ((0.0, 2.5, _ERFINV_NEAR), (5.0, 3.0, _ERFINV_FAR)),
    DOUBLE: (
        (0.0, 3.125, _ERFINV_WIDE_NEAR),
        (6.25, 3.25, _ERFINV_WIDE_FAR),
        (16.0, 5.0, _ERFINV_WIDE_END),
    ),
}
# How far digamma and lgamma are shifted to the right: the fewer steps, the fewer digits cancel.
_STEPS = {FLOAT: (4, 3), DOUBLE: (10, 8)}
# Where Bessel's power series gives way to the asymptotic one, and how many terms each has.
_BESSEL = {FLOAT: (15.0, 30, 8), DOUBLE: (30.0, 66, 24)}


def polynomial(work: Work, x: gs.Tensor, highest_first: Sequence[float]) -> gs.Tensor:
    """A polynomial by Horner's scheme."""
    y = work.number(highest_first[0], work.dtype(x))
    for coefficient in highest_first[1:]:
        y = work.op("Add", work.op("Mul", x, y), float(coefficient))
    return y


def _shifted(work: Work, x: gs.Tensor, steps: int) -> list[gs.Tensor]:
    """x, x + 1, ... x + steps."""
    return [x, *(work.op("Add", x, float(k)) for k in range(1, steps + 1))]


def _total(work: Work, operator: str, terms: Sequence[gs.Tensor]) -> gs.Tensor:
    y = terms[0]
    for term in terms[1:]:
        y = work.op(operator, y, term)
    return y


def from_nearest(work: Work, x: gs.Tensor) -> gs.Tensor:
    """x less the nearest integer: what a function of period 1 sees of x, exactly."""
    return work.op("Sub", x, work.op("Floor", work.op("Add", x, 0.5)))


def digamma(work: Work, x: gs.Tensor) -> gs.Tensor:
    """The derivative of `lgamma`."""
    dtype = work.dtype(x)
    zero = work.number(0, dtype)
    left = work.op("Less", x, zero)
    # psi(x) = psi(1 - x) - pi / tan(pi x) on the left
    y = work.where(left, work.op("Sub", work.number(1, dtype), x), x)
    *passed, far = _shifted(work, y, _STEPS[dtype][0])
    poles = _total(work, "Add", [work.op("Reciprocal", t) for t in passed])
    squared = work.op("Reciprocal", work.op("Mul", far, far))
    series = work.op("Mul", squared, polynomial(work, squared, _DIGAMMA[::-1]))
    y = work.op("Sub", work.op("Log", far), work.op("Div", work.number(0.5, dtype), far))
    y = work.op("Sub", work.op("Sub", y, series), poles)
    angle = work.op("Mul", from_nearest(work, x), math.pi)
    turned = work.op("Div", work.op("Mul", work.op("Cos", angle), math.pi), work.op("Sin", angle))
    y = work.where(left, work.op("Sub", y, turned), y)
    whole = work.op("And", left, work.equal(x, work.op("Floor", x)))
    y = work.where(whole, np.nan, y)
    # at 0 it is infinite, on the side that the sign of the 0 says
    return work.where(work.equal(x, zero), work.op("Neg", work.op("Reciprocal", x)), y)


def lgamma(work: Work, x: gs.Tensor) -> gs.Tensor:
    """The logarithm of the gamma function's magnitude."""
    dtype = work.dtype(x)
    half, zero = work.number(0.5, dtype), work.number(0, dtype)
    left = work.op("Less", x, half)
    # log|gamma(x)| = log(pi / |sin(pi x)|) - log gamma(1 - x) on the left
    y = work.where(left, work.op("Sub", work.number(1, dtype), x), x)
    steps = _STEPS[dtype][1]
    small = work.op("Less", y, steps + 1.0)
    near = work.extreme("Min", y, work.number(steps + 1, dtype))
    passed = _total(work, "Mul", _shifted(work, near, steps)[:-1])
    far = work.where(small, work.op("Add", y, float(steps)), y)
    inverse = work.op("Reciprocal", far)
    series = polynomial(work, work.op("Mul", inverse, inverse), _STIRLING[::-1])
    rest = work.op("Add", work.op("Mul", series, inverse), 0.5 * math.log(2 * math.pi))
    log = work.op("Mul", work.op("Sub", far, half), work.op("Sub", work.op("Log", far), 1.0))
    y = work.op("Add", log, work.op("Sub", rest, half))
    y = work.where(small, work.op("Sub", y, work.op("Log", passed)), y)
    sine = work.op("Abs", work.op("Sin", work.op("Mul", from_nearest(work, x), math.pi)))
    turned = work.op("Sub", work.number(math.log(math.pi), dtype), work.op("Log", sine))
    y = work.where(left, work.op("Sub", turned, y), y)
    whole = work.op("And", work.equal(x, work.op("Floor", x)), work.less(x, zero, or_equal=True))
    endless = work.op("Or", whole, work.is_infinite(x))
    return work.where(endless, np.inf, y)


def _erfinv(work: Work, x: gs.Tensor) -> gs.Tensor:
    one = work.number(1, work.dtype(x))
    return erfinv(work, x, work.op("Mul", work.op("Sub", one, x), work.op("Add", one, x)))


def erfinv(work: Work, x: gs.Tensor, rest: gs.Tensor) -> gs.Tensor:
    """The inverse of erf, of which 1 - x^2 is known as well as x."""
    dtype = work.dtype(x)
    w = work.op("Neg", work.op("Log", rest))
    root = work.op("Sqrt", work.extreme("Max", w, work.number(0, dtype)))
    (_, less, near), *farther = _ERFINV[dtype]
    ratio = polynomial(work, work.op("Sub", w, less), near)
    for border, less, coefficients in farther:
        far = polynomial(work, work.op("Sub", root, less), coefficients)
        ratio = work.where(work.op("Less", w, border), ratio, far)
    y = work.op("Mul", x, ratio)
    endless = work.op("Mul", x, np.inf)
    return work.where(work.equal(rest, work.number(0, dtype)), endless, y)


def _bessel(order: int, *, scaled: bool) -> Callable[[Work, gs.Tensor], gs.Tensor]:
    """I0 and I1, times e^-|x| where scaled (DLMF 10.25.2, 10.40.1)."""

    def make(work: Work, x: gs.Tensor) -> gs.Tensor:
        dtype = work.dtype(x)
        border, powers, terms = _BESSEL[dtype]
        edge = work.number(border, dtype)
        size = work.op("Abs", x)
        low, high = work.extreme("Min", size, edge), work.extreme("Max", size, edge)
        # a power of 2 near the largest square, so that no coefficient is as good as 0: onnxruntime
        # leaves out an Add of what single precision has as 0, of doubles as well (seen in 1.32)
        unit = 2 ** round(math.log2(border**2 / 4))
        series = [unit**k / (math.factorial(k) * math.factorial(k + order)) for k in range(powers)]
        quarter = work.op("Mul", work.op("Mul", low, low), 0.25 / unit)
        near = polynomial(work, quarter, series[::-1])
        if order:
            near = work.op("Mul", near, work.op("Mul", low, 0.5))
        falling = [1.0]
        for k in range(1, terms):
            falling.append(falling[-1] * ((2 * k - 1) ** 2 - 4 * order**2) / (8 * k))
        far = polynomial(work, work.op("Reciprocal", high), falling[::-1])
        far = work.op("Div", far, work.op("Sqrt", work.op("Mul", high, 2 * math.pi)))
        if scaled:
            near = work.op("Mul", near, work.op("Exp", work.op("Neg", low)))
        else:  # in two steps: e^x overflows before the result does
            half = work.op("Exp", work.op("Mul", high, 0.5))
            far = work.op("Mul", work.op("Mul", far, half), half)
        y = work.where(work.op("Less", size, edge), near, far)
        if order:
            y = work.where(work.op("Less", x, work.number(0, dtype)), work.op("Neg", y), y)
        return work.where(work.is_nan(x), x, y)

    return make


_MADE: Mapping[str, Callable[[Work, gs.Tensor], gs.Tensor]] = {
    **dict.fromkeys(("digamma", "special_digamma", "special_psi"), digamma),
    **dict.fromkeys(("lgamma", "special_gammaln"), lgamma),
    **dict.fromkeys(("erfinv", "special_erfinv"), _erfinv),
    **dict.fromkeys(("i0", "special_i0"), _bessel(0, scaled=False)),
    "special_i0e": _bessel(0, scaled=True),
    "special_i1": _bessel(1, scaled=False),
    "special_i1e": _bessel(1, scaled=True),
}


def special(work: Work) -> gs.Tensor:
    """A function of one real; half precision by way of single."""
    x = work.floating(work.args.tensor("self"))
    dtype = work.dtype(x)
    wide = x if dtype in (FLOAT, DOUBLE) else work.cast(x, FLOAT)
    return work.cast(_MADE[work.name](work, wide), dtype)


FUNCTIONS: Mapping[str, Callable[[Work], gs.Tensor]] = dict.fromkeys(_MADE, special)
