"""Logarithms of sums of exponentials of complex values, in two real parts each.

An angle is no remainder here: it is that of the addend with the larger real part, and so much more
as a sum is turned from it. So the order in which several are added is PyTorch's, one by one.
"""

from __future__ import annotations

import math

import numpy as np
import onnx_graphsurgeon as gs

from surgeon.arguments import bind
from surgeon.builders import parts
from surgeon.builders.aten_math.work import Work
from surgeon.builders.aten_nn.complex_arithmetic import (
    Operands,
    both_complex,
    both_of,
    in_one_precision,
    number_like,
    only,
    plus,
)
from surgeon.builders.aten_nn.complex_functions import exponential
from surgeon.builders.aten_nn.complex_inverses import logarithm_above_one
from surgeon.builders.aten_nn.transforms import Complex
from surgeon.builders.bench import Bench
from surgeon.builders.turns import row_by_row
from surgeon.rewrite import Draft


def log_added(draft: Draft, node: gs.Node, operands: Operands) -> Complex:
    """`logaddexp`."""
    first, second = in_one_precision(draft, *operands)
    return _sum(draft, node, *both_complex(draft, first, second))


def _sum(draft: Draft, node: gs.Node, a: Complex, b: Complex) -> Complex:
    """The larger, and log(1 + e^z) of the difference z, whose real part is not above 0."""
    work = Work(draft, node)
    nothing, no_number = (number_like(draft, a, n) for n in (-math.inf, math.nan))
    swapped = draft.op("Less", a.real, b.real)
    pairs = list(zip(both_of(a), both_of(b), strict=True))
    low = Complex(*(draft.op("Where", swapped, p, q) for p, q in pairs))
    high = Complex(*(draft.op("Where", swapped, q, p) for p, q in pairs))
    share = exponential(draft, node, plus(draft, low, high, "Sub"))
    found = plus(draft, high, logarithm_above_one(draft, node, share))
    none = draft.op("Equal", high.real, nothing)
    broken = [work.is_nan(part) for value in (a, b) for part in both_of(value)]
    broken = [draft.op("Or", draft.op("Or", *broken[:2]), draft.op("Or", *broken[2:]))]
    made = []
    for part, rest in zip(both_of(found), both_of(low), strict=True):
        chosen = draft.op("Where", none, rest, part)
        made.append(draft.op("Where", broken[0], no_number, chosen))
    return Complex(*made)


def log_cumulated(draft: Draft, node: gs.Node, operands: Operands) -> Complex:
    """`logcumsumexp`, a turn of a Scan for each element of its axis."""
    value, bench = only(operands), Bench(draft)
    rank = parts.rank_of(draft, value.real)
    if rank == 0:
        return value
    axis = int(bind(node, draft.facts).value("dim")) % rank
    order = [axis, *(i for i in range(rank) if i != axis)]
    back = [order.index(i) for i in range(rank)]
    length = bench.size(value.real, axis)
    is_certain = isinstance(length, int) and length > 0
    rows = []
    for part in both_of(value):
        line = bench.permute(part, order)
        if not is_certain:  # a Scan has a turn at least
            none = bench.filled([1, *bench.sizes(line)[1:]], 0, bench.dtype(line))
            line = bench.concat([line, none], 0)
        rows.append(line)
    start = [
        bench.filled(bench.sizes(rows[0])[1:], number, bench.dtype(rows[0]))
        for number in (-np.inf, 0)
    ]

    def turn(
        inner: Draft, state: list[gs.Tensor], row: list[gs.Tensor]
    ) -> tuple[list[gs.Tensor], list[gs.Tensor]]:
        made = both_of(_sum(inner, node, Complex(*row), Complex(*state)))
        return list(made), [inner.op("Identity", part) for part in made]

    _, found = row_by_row(draft, start, rows, turn)
    if not is_certain:
        found = [bench.slice(line, 0, 0, -1) for line in found]
    return Complex(*(bench.permute(line, back) for line in found))
