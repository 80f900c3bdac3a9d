"""Hurwitz's zeta function of any exponent, and the derivatives of digamma that it says.

As Euler and Maclaurin sum it (DLMF 25.11.5): term after term up to 10, and a series from there on.
"""

from __future__ import annotations

import math

import onnx_graphsurgeon as gs

from surgeon.builders.aten_math.work import INT64, Work
from surgeon.builders.bench import Bench, Size
from surgeon.builders.turns import in_turns
from surgeon.rewrite import Draft

BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510)  # B(2k)
_FAR = 10  # where the series begins
_LEFT = 2.0**23  # of single precision, what is further left is whole, and a pole


def hurwitz(work: Work, s: gs.Tensor, q: gs.Tensor) -> gs.Tensor:
    """The sum of (q + k)^-s over all k from 0 on, of two tensors in one precision."""
    dtype = work.dtype(q)
    zero, one = work.number(0, dtype), work.number(1, dtype)
    power = work.op("Neg", s)
    total = _near(work, power, q)
    gap = work.op("Ceil", work.op("Sub", work.number(_FAR, dtype), q))
    far = work.op("Add", q, work.extreme("Max", gap, work.number(_FAR, dtype)))
    inverse = work.op("Reciprocal", far)
    last = work.op("Pow", far, power)
    rest = work.op("Div", work.op("Mul", last, far), work.op("Sub", s, one))
    rest = work.op("Add", rest, work.op("Mul", last, 0.5))
    factor = work.op("Mul", work.op("Mul", last, s), inverse)
    for k, b in enumerate(BERNOULLI, 1):
        rest = work.op("Add", rest, work.op("Mul", factor, b / math.factorial(2 * k)))
        for step in (2 * k - 1, 2 * k):
            factor = work.op("Mul", factor, work.op("Mul", work.op("Add", s, float(step)), inverse))
    y = work.op("Add", total, rest)
    whole = work.equal(q, work.op("Floor", q))
    left = work.less(q, zero, or_equal=True)
    y = work.where(work.op("And", left, whole), math.inf, y)
    y = work.where(work.op("Less", s, one), math.nan, y)
    return work.where(work.equal(s, one), math.inf, y)


def _near(work: Work, power: gs.Tensor, q: gs.Tensor) -> gs.Tensor:
    """The terms up to where the series begins: a turn for each, further left the more of them."""
    dtype, bench = work.dtype(q), Bench(work.draft)
    known = work.where(work.is_nan(q), 0.0, q)
    lowest = bench.concat([bench.flat(known), bench.cast(bench.ints([0], "least"), dtype)], 0)
    lowest = work.draft.op("ReduceMin", lowest, work.axes([0]), keepdims=1)
    lowest = work.extreme("Max", lowest, work.number(-_LEFT, dtype))
    steps = work.op("Sub", work.number(_FAR, dtype), work.op("Floor", lowest))
    count = bench.cast(steps, INT64)
    sizes = work.draft.op("Shape", work.op("Add", power, q))
    start = work.draft.op("Expand", work.number(0, dtype), sizes)

    def step(draft: Draft, state: list[gs.Tensor], number: gs.Tensor) -> list[gs.Tensor]:
        inner, (total,) = work.within(draft), state
        k = inner.cast(draft.op("Squeeze", number, inner.axes([0])), dtype)
        here = inner.op("Add", q, k)
        edge = inner.number(_FAR, dtype)
        near = inner.op("Or", inner.op("Less", k, edge), inner.op("Less", here, edge))
        term = inner.where(near, inner.op("Pow", here, power), 0.0)
        return [inner.op("Add", total, term)]

    numbers = bench.unsqueeze(bench.count(Size(None, lambda: count)), [1])
    return in_turns(work.draft, [start], numbers, step)[0]
