"""Elimination, substitution and Cholesky factors of larger matrices: a turn of a Scan for each row.

Each turn does to the whole matrix what an unrolled step does to the part that is left, and keeps
what the step would not have touched.
"""

from __future__ import annotations

import onnx_graphsurgeon as gs

from surgeon.builders.aten_linalg import matrices as m
from surgeon.builders.aten_shape.call import TYPE, Call, Size
from surgeon.builders.bench import Bench
from surgeon.builders.turns import in_turns
from surgeon.rewrite import Draft, Refused


def _taken(c: Bench, x: gs.Tensor, number: gs.Tensor, axis: int) -> gs.Tensor:
    """The row (axis -2) or the column (-1) of this number; the axis stays."""
    made: gs.Tensor = c.op("Gather", x, number, axis=c.rank(x) + axis)
    return made


def with_one(c: Call, a: gs.Tensor, size: Size | int) -> tuple[gs.Tensor, Size | int]:
    """[[A, 0], [0, 1]] and its side where that comes at run time: a Scan has a turn at least."""
    if isinstance(size, int):
        return a, size
    lots, dtype, rank = c.sizes(a)[:-2], c.dtype(a), c.rank(a)
    a = c.concat([a, c.filled([*lots, size, 1], 0, dtype)], rank - 1)
    last = [c.filled([*lots, 1, size], 0, dtype), c.filled([*lots, 1, 1], 1, dtype)]
    return m.stacked(c, [a, c.concat(last, rank - 1)]), c.add(size, 1)


def with_none(c: Call, b: gs.Tensor, size: Size | int) -> gs.Tensor:
    """[B; 0], the right side for it."""
    if isinstance(size, int):
        return b
    sizes = c.sizes(b)
    return m.stacked(c, [b, c.filled([*sizes[:-2], 1, sizes[-1]], 0, c.dtype(b))])


def without(c: Call, x: gs.Tensor, size: Size | int) -> gs.Tensor:
    """The rows that were there before."""
    return x if isinstance(size, int) else m.rows(c, x, 0, size)


def eliminated(c: Call, x: gs.Tensor, size: Size | int) -> tuple[gs.Tensor, gs.Tensor]:
    """The triangle with what B became, of [A | B], and the sign [..., 1, 1] of the swaps."""
    if c.dtype(x) == TYPE.DOUBLE and c.opset < 11:
        raise Refused("`ArgMax` in double precision needs opset 11")
    rank, dtype = c.rank(x), c.dtype(x)
    ones = [*c.sizes(x)[:-2], 1, 1]
    sign = c.op("Expand", c.number(1, dtype), c.vector(ones, "ones"))
    places = m.places(c, size)

    def step(draft: Draft, state: list[gs.Tensor], number: gs.Tensor) -> list[gs.Tensor]:
        b, (x, sign) = Bench(draft), state
        zero = b.number(0, dtype)
        left = b.op("Not", b.op("Less", places, number))
        sizes = b.op("Where", left, b.op("Abs", _taken(b, x, number, -1)), b.number(-1, dtype))
        place = b.op("ArgMax", sizes, axis=rank - 2, keepdims=1)
        here = b.op("Equal", place, places)
        chosen = b.op("Where", here, x, zero)
        pivot = b.op("ReduceSum", chosen, b.ints([rank - 2], "axes"), keepdims=1)
        swapped = b.op("Where", here, _taken(b, x, number, -2), x)
        swapped = b.op("Where", b.op("Equal", places, number), pivot, swapped)
        # a column without a pivot is left as it is: the matrix is singular
        corner = _taken(b, pivot, number, -1)
        none = b.cast(b.op("Not", b.cast(corner, TYPE.BOOL)), dtype)
        factors = b.op("Div", _taken(b, swapped, number, -1), b.op("Add", corner, none))
        less = b.op("Sub", swapped, b.op("Mul", factors, pivot))
        below = b.op("Less", number, places)
        kept = b.op("Equal", place, number)
        turned = b.op("Where", kept, sign, b.op("Neg", sign))
        return [b.op("Where", below, less, swapped), turned]

    found, sign = in_turns(c.draft, [x, sign], places, step)
    return found, sign


def pivots(c: Call, a: gs.Tensor, size: Size | int) -> tuple[gs.Tensor, gs.Tensor]:
    """The diagonal that elimination leaves, [..., size], and the sign of the swaps, [...]."""
    a, size = with_one(c, a, size)
    found, sign = eliminated(c, a, size)
    rank = c.rank(a)
    return m.diagonal_of(c, found, size), c.squeeze(sign, [rank - 2, rank - 1])


def substituted(
    c: Call, upper: gs.Tensor, right: gs.Tensor, size: Size | int, *, unit: bool = False
) -> gs.Tensor:
    """X of U X = B, from the last row upwards; left of the diagonal nothing is looked at."""
    dtype = c.dtype(right)
    start = c.op("Expand", c.number(0, dtype), c.op("Shape", right))
    places, columns = m.places(c, size), c.count(size)

    def step(draft: Draft, state: list[gs.Tensor], number: gs.Tensor) -> list[gs.Tensor]:
        b, (solved,) = Bench(draft), state
        row = _taken(b, upper, number, -2)
        known = b.op("Where", b.op("Less", number, columns), row, b.number(0, dtype))
        part = b.op("Sub", _taken(b, right, number, -2), b.op("MatMul", known, solved))
        if not unit:
            part = b.op("Div", part, _taken(b, row, number, -1))
        return [b.op("Where", b.op("Equal", places, number), part, solved)]

    (solved,) = in_turns(c.draft, [start], c.unsqueeze(m.backwards(c, size), [1]), step)
    return solved


def lower_factor(c: Call, a: gs.Tensor, size: Size | int) -> gs.Tensor:
    """L of A = L L^T; the upper triangle of A is not looked at."""
    dtype, rank = c.dtype(a), c.rank(a)
    start = c.op("Expand", c.number(0, dtype), c.op("Shape", a))
    turn = [*range(rank - 2), rank - 1, rank - 2]
    places, columns = m.places(c, size), c.count(size)

    def step(draft: Draft, state: list[gs.Tensor], number: gs.Tensor) -> list[gs.Tensor]:
        b, (a, factor) = Bench(draft), state
        column = _taken(b, a, number, -1)
        column = b.op("Div", column, b.op("Sqrt", _taken(b, column, number, -2)))
        above = b.op("Less", places, number)
        column = b.op("Where", above, b.number(0, dtype), column)
        rest = b.op("Sub", a, b.op("MatMul", column, b.op("Transpose", column, perm=turn)))
        mine = b.op("Equal", columns, number)
        return [rest, b.op("Where", mine, column, factor)]

    _, factor = in_turns(c.draft, [a, start], places, step)
    return factor


def reflected(
    c: Call, a: gs.Tensor, high: Size | int, wide: Size | int
) -> tuple[gs.Tensor, gs.Tensor]:
    """Q [..., high, high] and R [..., high, wide] of A = Q R, each with a row and a column more.

    A column is reflected in each turn, with the signs that LAPACK gives, as in `factors`; the last
    turn meets a column of zeros, and there is one turn at least.
    """
    rank, dtype, lots = c.rank(a), c.dtype(a), c.sizes(a)[:-2]
    a = c.concat([a, c.filled([*lots, high, 1], 0, dtype)], rank - 1)
    a = m.stacked(c, [a, c.filled([*lots, 1, c.add(wide, 1)], 0, dtype)])
    high, wide = c.add(high, 1), c.add(wide, 1)
    turn = [*range(rank - 2), rank - 1, rank - 2]
    places, axes = m.places(c, high), c.ints([rank - 2], "axes")

    def step(draft: Draft, state: list[gs.Tensor], number: gs.Tensor) -> list[gs.Tensor]:
        b, (r, q) = Bench(draft), state
        zero, one = b.number(0, dtype), b.number(1, dtype)
        head = _taken(b, _taken(b, r, number, -1), number, -2)
        below = b.op("Less", number, places)
        tail = b.op("Where", below, _taken(b, r, number, -1), zero)
        still = b.op("Equal", b.op("ReduceMax", b.op("Abs", tail), axes, keepdims=1), zero)
        both = b.op("Concat", head, tail, axis=rank - 2)
        length = b.op("ReduceL2", both, axes, keepdims=1)
        multiple = b.op("Where", b.op("Less", head, zero), length, b.op("Neg", length))
        gap = b.op("Where", still, one, b.op("Sub", head, multiple))
        base = b.op("Where", still, one, multiple)
        tau = b.op("Where", still, zero, b.op("Div", b.op("Sub", multiple, head), base))
        vector = b.op("Where", b.op("Equal", places, number), one, b.op("Div", tail, gap))
        over = b.op("Transpose", vector, perm=turn)
        share = b.op("Mul", b.op("Mul", tau, vector), b.op("MatMul", over, r))
        spread = b.op("Mul", b.op("MatMul", q, vector), b.op("Mul", tau, over))
        return [b.op("Sub", r, share), b.op("Sub", q, spread)]

    count = m.smaller(c, high, wide)
    numbers = m.places(c, count)
    r, q = in_turns(c.draft, [a, m.identity(c, a, high, high)], numbers, step)
    above = c.op("Less", c.count(wide), places)  # left of the diagonal is rounding
    return q, m.columns(c, c.op("Where", above, c.number(0, dtype), r), 0, c.sub(wide, 1))


def exchanged(
    c: Call, b: gs.Tensor, pivots: gs.Tensor, size: Size | int, *, back: bool
) -> gs.Tensor:
    """Rows exchanged one after the other, each with that of its number in [..., size, 1]."""
    rank, dtype, places = c.rank(b), c.dtype(b), m.places(c, size)

    def step(draft: Draft, state: list[gs.Tensor], number: gs.Tensor) -> list[gs.Tensor]:
        t, (b,) = Bench(draft), state
        there = t.op("Equal", places, _taken(t, pivots, number, -2))
        picked = t.op("Where", there, b, t.number(0, dtype))
        picked = t.op("ReduceSum", picked, t.ints([rank - 2], "axes"), keepdims=1)
        b = t.op("Where", there, _taken(t, b, number, -2), b)
        return [t.op("Where", t.op("Equal", places, number), picked, b)]

    numbers = c.unsqueeze(m.backwards(c, size), [1]) if back else places
    (found,) = in_turns(c.draft, [b], numbers, step)
    return found
