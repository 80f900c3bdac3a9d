"""Elimination, substitution and Cholesky factors of larger matrices: a turn of a Scan for each row.

Each turn does to the whole matrix what an unrolled step does to the part that is left, and keeps
what the step would not have touched.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import onnx_graphsurgeon as gs

from surgeon.builders.aten_linalg import matrices as m
from surgeon.builders.aten_shape.call import TYPE, Size
from surgeon.builders.bench import Bench
from surgeon.builders.turns import Step, in_turns
from surgeon.rewrite import Draft, Refused


def taken(c: Bench, x: gs.Tensor, number: gs.Tensor, axis: int) -> gs.Tensor:
    """The row (axis -2) or the column (-1) of this number; the axis stays."""
    made: gs.Tensor = c.op("Gather", x, number, axis=c.rank(x) + axis)
    return made


def in_steps(
    c: Bench, state: Sequence[gs.Tensor], count: Size | int, step: Step, *, back: bool = False
) -> list[gs.Tensor]:
    """The state after a step for each number below `count`, written out where they are few.

    Args:
        c: The node.
        state: What it begins with.
        count: How many steps there are; a number that comes at run time must be 1 at least.
        step: As of `in_turns`.
        back: Whether the last number comes first.
    """
    few = m.few(count)
    if few is None:
        numbers = c.unsqueeze(m.backwards(c, count), [1]) if back else m.places(c, count)
        return in_turns(c.draft, state, numbers, step)
    made = list(state)
    for number in reversed(range(few)) if back else range(few):
        made = step(c.draft, made, c.ints([number], "number"))
    return made


def swapped(
    b: Bench, x: gs.Tensor, number: gs.Tensor, place: gs.Tensor, places: gs.Tensor
) -> tuple[gs.Tensor, gs.Tensor]:
    """The row of this number and that of each matrix's `place` [..., 1, 1] exchanged.

    Returns:
        The matrices, and the row that is now in the place of this number.
    """
    there = b.op("Equal", place, places)
    chosen = b.op("Where", there, x, b.number(0, b.dtype(x)))
    chosen = b.op("ReduceSum", chosen, b.ints([b.rank(x) - 2], "axes"), keepdims=1)
    x = b.op("Where", there, taken(b, x, number, -2), x)
    return b.op("Where", b.op("Equal", places, number), chosen, x), chosen


def with_one(c: Bench, a: gs.Tensor, size: Size | int) -> tuple[gs.Tensor, Size | int]:
    """[[A, 0], [0, 1]] and its side where that comes at run time: a Scan has a turn at least."""
    if isinstance(size, int):
        return a, size
    lots, dtype, rank = c.sizes(a)[:-2], c.dtype(a), c.rank(a)
    a = c.concat([a, c.filled([*lots, size, 1], 0, dtype)], rank - 1)
    last = [c.filled([*lots, 1, size], 0, dtype), c.filled([*lots, 1, 1], 1, dtype)]
    return m.stacked(c, [a, c.concat(last, rank - 1)]), c.add(size, 1)


def with_none(c: Bench, b: gs.Tensor, size: Size | int) -> gs.Tensor:
    """[B; 0], the right side for it."""
    if isinstance(size, int):
        return b
    sizes = c.sizes(b)
    return m.stacked(c, [b, c.filled([*sizes[:-2], 1, sizes[-1]], 0, c.dtype(b))])


def without(c: Bench, x: gs.Tensor, size: Size | int) -> gs.Tensor:
    """The rows that were there before."""
    return x if isinstance(size, int) else m.rows(c, x, 0, size)


def eliminated(c: Bench, x: gs.Tensor, size: Size | int) -> tuple[gs.Tensor, gs.Tensor]:
    """The triangle with what B became, of [A | B], and the sign [..., 1, 1] of the swaps."""
    if c.dtype(x) == TYPE.DOUBLE and c.opset < 11:
        raise Refused("`ArgMax` in double precision needs opset 11")
    rank, dtype = c.rank(x), c.dtype(x)
    ones = [*c.sizes(x)[:-2], 1, 1]
    sign = c.op("Expand", c.number(1, dtype), c.vector(ones, "ones"))
    places = m.places(c, size)

    def step(draft: Draft, state: list[gs.Tensor], number: gs.Tensor) -> list[gs.Tensor]:
        b, (x, sign) = Bench(draft), state
        left = b.op("Not", b.op("Less", places, number))
        sizes = b.op("Where", left, b.op("Abs", taken(b, x, number, -1)), b.number(-1, dtype))
        place = b.op("ArgMax", sizes, axis=rank - 2, keepdims=1)
        moved, pivot = swapped(b, x, number, place, places)
        # a column without a pivot is left as it is: the matrix is singular
        corner = taken(b, pivot, number, -1)
        none = b.cast(b.is_nought(corner), dtype)
        factors = b.op("Div", taken(b, moved, number, -1), b.op("Add", corner, none))
        less = b.op("Sub", moved, b.op("Mul", factors, pivot))
        below = b.op("Less", number, places)
        kept = b.op("Equal", place, number)
        turned = b.op("Where", kept, sign, b.op("Neg", sign))
        return [b.op("Where", below, less, moved), turned]

    found, sign = in_turns(c.draft, [x, sign], places, step)
    return found, sign


def pivots(c: Bench, a: gs.Tensor, size: Size | int) -> tuple[gs.Tensor, gs.Tensor]:
    """The diagonal that elimination leaves, [..., size], and the sign of the swaps, [...]."""
    a, size = with_one(c, a, size)
    found, sign = eliminated(c, a, size)
    rank = c.rank(a)
    return m.diagonal_of(c, found, size), c.squeeze(sign, [rank - 2, rank - 1])


def substituted(
    c: Bench, upper: gs.Tensor, right: gs.Tensor, size: Size | int, *, unit: bool = False
) -> gs.Tensor:
    """X of U X = B, from the last row upwards; left of the diagonal nothing is looked at."""
    dtype = c.dtype(right)
    start = c.op("Expand", c.number(0, dtype), c.op("Shape", right))
    places, columns = m.places(c, size), c.count(size)

    def step(draft: Draft, state: list[gs.Tensor], number: gs.Tensor) -> list[gs.Tensor]:
        b, (solved,) = Bench(draft), state
        row = taken(b, upper, number, -2)
        known = b.op("Where", b.op("Less", number, columns), row, b.number(0, dtype))
        part = b.op("Sub", taken(b, right, number, -2), b.op("MatMul", known, solved))
        if not unit:
            part = b.op("Div", part, taken(b, row, number, -1))
        return [b.op("Where", b.op("Equal", places, number), part, solved)]

    (solved,) = in_turns(c.draft, [start], c.unsqueeze(m.backwards(c, size), [1]), step)
    return solved


def lower_factor(c: Bench, a: gs.Tensor, size: Size | int) -> gs.Tensor:
    """L of A = L L^T; the upper triangle of A is not looked at."""
    dtype, rank = c.dtype(a), c.rank(a)
    start = c.op("Expand", c.number(0, dtype), c.op("Shape", a))
    turn = [*range(rank - 2), rank - 1, rank - 2]
    places, columns = m.places(c, size), c.count(size)

    def step(draft: Draft, state: list[gs.Tensor], number: gs.Tensor) -> list[gs.Tensor]:
        b, (a, factor) = Bench(draft), state
        column = taken(b, a, number, -1)
        column = b.op("Div", column, b.op("Sqrt", taken(b, column, number, -2)))
        above = b.op("Less", places, number)
        column = b.op("Where", above, b.number(0, dtype), column)
        rest = b.op("Sub", a, b.op("MatMul", column, b.op("Transpose", column, perm=turn)))
        mine = b.op("Equal", columns, number)
        return [rest, b.op("Where", mine, column, factor)]

    _, factor = in_turns(c.draft, [a, start], places, step)
    return factor


class Reflection(NamedTuple):
    """H = 1 - tau v v^T, and the multiple of an axis that it makes of a column."""

    vector: gs.Tensor  # [..., rows, 1], 0 above its 1
    tau: gs.Tensor  # [..., 1, 1]
    multiple: gs.Tensor  # [..., 1, 1]


def reflection(b: Bench, column: gs.Tensor, number: gs.Tensor, places: gs.Tensor) -> Reflection:
    """What makes 0 of a column below its element of this number, as LAPACK's larfg does."""
    dtype, rank = b.dtype(column), b.rank(column)
    zero, one = b.number(0, dtype), b.number(1, dtype)
    axes = b.ints([rank - 2], "axes")
    head = taken(b, column, number, -2)
    tail = b.op("Where", b.op("Less", number, places), column, zero)
    still = b.op("Equal", b.op("ReduceMax", b.op("Abs", tail), axes, keepdims=1), zero)
    both = b.op("Concat", head, tail, axis=rank - 2)
    length = b.op("ReduceL2", both, axes, keepdims=1)
    multiple = b.op("Where", b.op("Less", head, zero), length, b.op("Neg", length))
    multiple = b.op("Where", still, head, multiple)
    # where it stays, both differences are 0: 1 is divided by instead
    gap = b.op("Where", still, one, b.op("Sub", head, multiple))
    tau = b.op("Div", b.op("Sub", multiple, head), b.op("Where", still, one, multiple))
    vector = b.op("Where", b.op("Equal", places, number), one, b.op("Div", tail, gap))
    return Reflection(vector, tau, multiple)


def reflected(
    c: Bench, a: gs.Tensor, high: Size | int, wide: Size | int
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
    places = m.places(c, high)

    def step(draft: Draft, state: list[gs.Tensor], number: gs.Tensor) -> list[gs.Tensor]:
        b, (r, q) = Bench(draft), state
        one = reflection(b, taken(b, r, number, -1), number, places)
        over = b.op("Transpose", one.vector, perm=turn)
        share = b.op("Mul", b.op("Mul", one.tau, one.vector), b.op("MatMul", over, r))
        spread = b.op("Mul", b.op("MatMul", q, one.vector), b.op("Mul", one.tau, over))
        return [b.op("Sub", r, share), b.op("Sub", q, spread)]

    count = m.smaller(c, high, wide)
    numbers = m.places(c, count)
    r, q = in_turns(c.draft, [a, m.identity(c, a, high, high)], numbers, step)
    above = c.op("Less", c.count(wide), places)  # left of the diagonal is rounding
    return q, m.columns(c, c.op("Where", above, c.number(0, dtype), r), 0, c.sub(wide, 1))


def exchanged(
    c: Bench, x: gs.Tensor, pivots: gs.Tensor, high: Size | int, count: Size | int, *, back: bool
) -> gs.Tensor:
    """Rows exchanged one after the other.

    Args:
        c: The node.
        x: The rows, `high` of them.
        pivots: int64 [..., count]: the row that each of the first `count` changes places with.
        high: How many rows there are.
        count: How many exchanges there are.
        back: Whether the last one comes first.
    """
    pivots = c.unsqueeze(pivots, [c.rank(pivots)])
    is_open = not (isinstance(high, int) and isinstance(count, int))
    if is_open:  # an exchange more, which changes nothing, and a row more where it may be
        own = c.vector([*c.sizes(pivots)[:-2], 1, 1], "sizes")
        pivots = m.stacked(c, [pivots, c.op("Expand", c.vector([count]), own)])
        sizes = c.sizes(x)
        x = m.stacked(c, [x, c.filled([*sizes[:-2], 1, sizes[-1]], 0, c.dtype(x))])
        count = c.add(count, 1)
    places = m.places(c, c.add(high, 1) if is_open else high)

    def step(draft: Draft, state: list[gs.Tensor], number: gs.Tensor) -> list[gs.Tensor]:
        b, (x,) = Bench(draft), state
        return [swapped(b, x, number, taken(b, pivots, number, -2), places)[0]]

    (found,) = in_steps(c, [x], count, step, back=back)
    return m.rows(c, found, 0, -1) if is_open else found
