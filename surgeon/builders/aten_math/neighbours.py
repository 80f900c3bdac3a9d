"""The float beside a float: `nextafter`, by additions that are rounded once.

Half and single precision are stepped in the next wider dtype: half a unit in the last place and a
little more is added, and rounding to nearest does the rest. Double precision has no wider dtype;
its step is that of S. Rump, P. Zimmermann, S. Boldo and G. Melquiond, Computing predecessor and
successor in rounding to nearest, BIT 49 (2009), algorithm 2.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np
import onnx_graphsurgeon as gs

from surgeon.builders.aten_math.work import DOUBLE, FLOAT, HALF, Work, numpy_dtype
from surgeon.builders.scalar_types import finfo
from surgeon.rewrite import Refused

_WIDER = {HALF: FLOAT, FLOAT: DOUBLE}
_MORE = 1 + 2.0**-8  # above a half, and far from one and a half
_UNIT, _TINY = 2.0**-53, 2.0**-1074  # of double precision: half an ulp of 1, and the least number
_SCALED = 2.0**-969  # below it the step itself would not be exact


def next_after(work: Work) -> gs.Tensor:
    """`nextafter`: from the first towards the second."""
    dtype, (x, y) = work.together(work.args.tensor("self"), work.args.tensor("other"))
    if dtype not in (*_WIDER, DOUBLE):
        raise Refused("no wider dtype holds the step in bfloat16, and integers have none")
    up, down = work.op("Less", x, y), work.op("Less", y, x)
    stepped = _in_double if dtype == DOUBLE else _in_wider
    moved = work.where(up, stepped(work, x, 1.0), stepped(work, x, -1.0))
    beside = work.where(work.op("Or", up, down), moved, y)  # equal: the second, with its sign
    return work.where(work.is_nan(x), x, beside)


def _in_wider(work: Work, x: gs.Tensor, side: float) -> gs.Tensor:
    dtype = work.dtype(x)
    wide, kind = _WIDER[dtype], finfo(numpy_dtype(dtype))
    end = 2.0 ** float(kind.maxexp)  # infinity counts as the number behind the largest
    at = work.cast(x, wide)
    at = work.extreme(
        "Min", work.extreme("Max", at, work.number(-end, wide)), work.number(end, wide)
    )
    step = work.op("Mul", work.op("Abs", at), float(kind.epsneg) * _MORE)
    least = work.number(0.75 * float(kind.smallest_subnormal), wide)
    step = work.extreme("Max", step, least)
    return work.cast(work.op("Add", at, work.op("Mul", step, side)), dtype)


def _in_double(work: Work, x: gs.Tensor, side: float) -> gs.Tensor:
    factor = side * _UNIT * (1 + 2 * _UNIT)
    size = work.op("Abs", x)
    plain = work.op("Add", x, work.op("Mul", size, factor))
    large = work.op("Mul", x, 1 / _UNIT)
    scaled = work.op("Add", large, work.op("Mul", work.op("Abs", large), factor))
    small = work.op("Less", size, work.number(_SCALED, DOUBLE))
    y = work.where(small, work.op("Mul", scaled, _UNIT), plain)
    least = work.op("Less", size, work.number(_TINY / _UNIT, DOUBLE))
    beside = work.op("Add", x, side * _TINY)
    none = work.equal(beside, work.number(0, DOUBLE))  # a zero on the side that it came from
    y = work.where(least, work.where(none, work.op("Mul", x, 0.0), beside), y)
    largest = work.op("Mul", work.op("Sign", x), float(finfo(np.float64).max))
    inward = work.equal(x, work.number(-side * math.inf, DOUBLE))
    return work.where(inward, largest, y)


FUNCTIONS: Mapping[str, Callable[[Work], gs.Tensor]] = {"nextafter": next_after}
