"""Elimination and reflections of complex matrices that the graph makes, a step for each column."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import onnx_graphsurgeon as gs

from surgeon.builders.aten_linalg import matrices as m
from surgeon.builders.aten_nn.complex_arithmetic import (
    Operands,
    both_complex,
    both_of,
    number_like,
    only,
    over,
    plus,
    squared_size,
    times,
    turned,
)
from surgeon.builders.aten_nn.complex_functions import logarithm, sign
from surgeon.builders.aten_nn.complex_moves import each
from surgeon.builders.aten_nn.complex_systems import inverse
from surgeon.builders.aten_nn.transforms import Complex
from surgeon.builders.aten_shape.call import TYPE, Call
from surgeon.rewrite import Draft, Refused


class _Eliminated(NamedTuple):
    """What elimination leaves of square matrices.

    Attributes:
        pivots: The diagonal of the upper triangle, each [..., 1, 1].
        swaps: Where two rows changed places, each [..., 1, 1], true or false.
    """

    pivots: list[Complex]
    swaps: list[gs.Tensor]


def _part(
    c: Call, function: Callable[..., gs.Tensor], x: Complex, *at: int, **more: int
) -> Complex:
    """Some rows or columns of either part."""
    return Complex(*(function(c, part, *at, **more) for part in both_of(x)))


def _stacked(c: Call, above: Complex, below: Complex) -> Complex:
    pairs = zip(both_of(above), both_of(below), strict=True)
    return Complex(*(m.stacked(c, list(pair)) for pair in pairs))


def _eliminated(c: Call, a: Complex) -> _Eliminated:
    """Gaussian elimination; the pivot is the largest of its column by the sum of both parts."""
    found, side = _Eliminated([], []), few_sides(c, a, square=True)[0]
    dtype = c.dtype(a.real)
    if dtype == TYPE.DOUBLE and c.opset < 11:
        raise Refused("`ArgMax` in double precision needs opset 11")
    for left in range(side, 1, -1):
        pivot, rest, swap = _with_pivot(c, a, left)
        corner, head = (_part(c, m.columns, x, 0, 1) for x in (pivot, rest))
        found.pivots.append(corner)
        found.swaps.append(swap)
        # a column without a pivot is left as it is: the matrix is singular
        none = c.cast(
            c.op("Equal", sizes_of(c, corner), c.number(0, c.dtype(a.real))), c.dtype(a.real)
        )
        corner = Complex(c.op("Add", corner.real, none), corner.imaginary)
        tail, row = (_part(c, m.columns, x, 1) for x in (rest, pivot))
        a = plus(c.draft, tail, times(c.draft, over(c.draft, head, corner), row), "Sub")
    found.pivots.append(a)
    return found


def _with_pivot(c: Call, a: Complex, left: int) -> tuple[Complex, Complex, gs.Tensor]:
    """The row of the pivot, those below it, and whether it stood elsewhere than in front."""
    rank, zero = c.rank(a.real), c.number(0, c.dtype(a.real))
    column = both_of(_part(c, m.columns, a, 0, 1))
    sizes = c.op("Add", *(c.op("Abs", part) for part in column))
    place = c.op("ArgMax", sizes, axis=rank - 2, keepdims=1)
    here = c.op("Equal", place, c.draft.constant(np.arange(left)[:, None], "rows"))
    axes = c.ints([rank - 2], "axes")
    rows = (c.op("Where", here, part, zero) for part in both_of(a))
    pivot = Complex(*(c.op("ReduceSum", part, axes, keepdims=1) for part in rows))
    rest = (c.op("Where", here, m.rows(c, part, 0, 1), part) for part in both_of(a))
    swap = c.op("Less", c.number(0, TYPE.INT64), place)
    return pivot, Complex(*(m.rows(c, part, 1) for part in rest)), swap


def sizes_of(c: Call, value: Complex) -> gs.Tensor:
    """The larger of the magnitudes of both parts."""
    made: gs.Tensor = c.op("Max", *(c.op("Abs", part) for part in both_of(value)))
    return made


def few_sides(c: Call, a: Complex, *, square: bool = False) -> tuple[int, int]:
    """How many rows and columns there are.

    Raises:
        Refused: They are not square, too many, or known at run time only.
    """
    sides = [m.few(m.side(c, a.real, axis)) for axis in (-2, -1)]
    high, wide = sides
    if high is None or wide is None:
        raise Refused(
            f"its complex matrices have more than {m.LARGEST_SIDE} rows or columns, or none, or "
            "how many is known at run time only"
        )
    if square and high != wide:
        raise Refused(f"its matrices are {high} x {wide} and not square")
    return high, wide


def _signed(c: Call, found: Complex, swaps: list[gs.Tensor]) -> Complex:
    """A product of pivots, turned once for each swap, as a number for each matrix."""
    one, less = number_like(c.draft, found, 1), number_like(c.draft, found, -1)
    for swap in swaps:
        found = times(c.draft, found, c.op("Where", swap, less, one))
    return _part(c, m.scalars, found)


def determinant(draft: Draft, node: gs.Node, operands: Operands) -> Complex:
    """`det`, the product of the pivots."""
    c = Call(draft, node)
    done = _eliminated(c, only(operands))
    found, *rest = done.pivots
    for pivot in rest:
        found = times(draft, found, pivot)
    return _signed(c, found, done.swaps)


def sign_and_size(draft: Draft, node: gs.Node, value: Complex) -> tuple[Complex, gs.Tensor]:
    """`slogdet`: a number of magnitude 1, and the logarithm of the magnitude."""
    c = Call(draft, node)
    done = _eliminated(c, value)
    found, *rest = (sign(draft, node, pivot) for pivot in done.pivots)
    for one in rest:
        found = times(draft, found, one)
    logs, *more = (logarithm(draft, node, pivot).real for pivot in done.pivots)
    for one in more:
        logs = draft.op("Add", logs, one)
    return _signed(c, found, done.swaps), m.scalars(c, logs)


def inverse_and_info(draft: Draft, node: gs.Node, value: Complex) -> tuple[Complex, gs.Tensor]:
    """`linalg_inv_ex`: the inverse, and the number, from 1, of the first pivot that is 0."""
    c = Call(draft, node)
    pivots = [m.scalars(c, sizes_of(c, pivot)) for pivot in _eliminated(c, value).pivots]
    rank = c.rank(pivots[0])
    line = c.concat([c.unsqueeze(pivot, [rank]) for pivot in pivots], rank)
    none = c.op("Equal", line, number_like(draft, value, 0))
    return inverse(draft, node, value), m.first_of(c, none)


def log_determinant(draft: Draft, node: gs.Node, operands: Operands) -> Complex:
    """`logdet`: the logarithm of the sign, and that of the magnitude added."""
    found, logs = sign_and_size(draft, node, only(operands))
    return plus(draft, logarithm(draft, node, found), logs)


# ------------------------------------------------------------------------------------ reflections


class _Reflection(NamedTuple):
    """H = 1 - tau v v^H, of which H^H takes a column to a multiple of the first axis."""

    vector: Complex  # [..., rows, 1]
    tau: Complex  # [..., 1, 1]


def _reflected(c: Call, one: _Reflection, x: Complex, *, adjoint: bool) -> Complex:
    tau = turned(c.draft, one.tau) if adjoint else one.tau
    share = _product(c, _part(c, m.turned, turned(c.draft, one.vector)), x)
    return plus(c.draft, x, times(c.draft, times(c.draft, tau, one.vector), share), "Sub")


def _product(c: Call, a: Complex, b: Complex) -> Complex:
    (p, q), (r, s) = both_of(a), both_of(b)
    return Complex(
        c.op("Sub", c.op("MatMul", p, r), c.op("MatMul", q, s)),
        c.op("Add", c.op("MatMul", p, s), c.op("MatMul", q, r)),
    )


def _reflection(c: Call, column: Complex) -> tuple[_Reflection, gs.Tensor]:
    """What turns a column into a real multiple of the first axis, and that multiple.

    As LAPACK's larfg: the multiple has the sign that the real part of the first element lacks,
    and a column that is a real multiple already stays.
    """
    draft = c.draft
    zero, one = (number_like(draft, column, n) for n in (0, 1))
    head = _part(c, m.rows, column, 0, 1)
    axes = c.ints([c.rank(column.real) - 2], "axes")
    largest = c.op("ReduceMax", sizes_of(c, column), axes, keepdims=1)
    scale = c.op("Where", c.op("Equal", largest, zero), one, largest)
    squares = squared_size(draft, over(draft, column, scale))
    length = c.op("Mul", c.op("Sqrt", c.op("ReduceSum", squares, axes, keepdims=1)), scale)
    multiple = c.op("Where", c.op("Less", head.real, zero), length, c.op("Neg", length))
    below = m.rows(c, sizes_of(c, column), 1)
    rest = c.op("Abs", both_of(head)[1])
    high = c.size(column.real, c.rank(column.real) - 2)
    if high != 1:
        rest = c.op("Max", rest, c.op("ReduceMax", below, axes, keepdims=1))
    still = c.op("Equal", rest, zero)
    multiple = c.op("Where", still, head.real, multiple)
    base = c.op("Where", still, one, multiple)
    tau = Complex(
        c.op("Div", c.op("Sub", multiple, head.real), base),
        c.op("Div", c.op("Neg", both_of(head)[1]), base),
    )
    # where it stays, both differences are 0: 1 is divided by instead
    gap = plus(draft, head, multiple, "Sub")
    gap = Complex(c.op("Where", still, one, gap.real), gap.imaginary)
    first = c.op("Add", c.op("Mul", head.real, zero), one)
    if high == 1:
        return _Reflection(Complex(first, c.op("Sub", first, first)), tau), multiple
    tail = over(draft, _part(c, m.rows, column, 1), gap)
    return _Reflection(_stacked(c, Complex(first, c.op("Sub", first, first)), tail), tau), multiple


def orthogonal_factors(draft: Draft, node: gs.Node, a: Complex) -> tuple[Complex, Complex]:
    """`linalg_qr` and `qr`; the diagonal of R is real."""
    c = Call(draft, node)
    high, wide = few_sides(c, a)
    takes = c.args.schema.takes("mode")
    mode = c.value("mode") if takes else "reduced" if c.value("some") else "complete"
    if mode == "r" and m.is_read(c, 0):
        raise Refused("its mode is `r`, and the other factor is read")
    reflections, r = _householder(c, a, high, wide)
    if mode == "r":
        return r, r
    count = high if mode == "complete" else min(high, wide)
    if count > wide:
        r = _part(c, m.padded, r, below=count - wide)
    return _orthogonal(c, a, reflections, high, count), r


def orthogonal_factor(c: Call, a: Complex, count: int) -> Complex:
    """So many columns of Q of A = Q R."""
    high, wide = few_sides(c, a)
    return _orthogonal(c, a, _householder(c, a, high, wide)[0], high, count)


def _orthogonal(
    c: Call, a: Complex, reflections: list[_Reflection], high: int, count: int
) -> Complex:
    eye = m.identity(c, a.real, high, count)
    q = Complex(eye, c.op("Sub", eye, eye))
    for step in reversed(range(len(reflections))):
        below = _reflected(c, reflections[step], _part(c, m.rows, q, step), adjoint=False)
        q = _stacked(c, _part(c, m.rows, q, 0, step), below) if step else below
    return q


def product_of_reflections(draft: Draft, node: gs.Node, operands: Operands) -> Complex:
    """`linalg_householder_product` and `orgqr`: the first columns of what they make together."""
    c = Call(draft, node)
    a, taus = both_complex(draft, *operands)
    high, wide = few_sides(c, a)
    count = c.size(taus.real, c.rank(taus.real) - 1)
    if not isinstance(count, int):
        raise Refused("how many reflections it has is known at run time only")
    one, none = number_like(draft, a, 1), number_like(draft, a, 0)
    reflections = []
    for step in range(count):
        column = _part(c, m.columns, a, step, step + 1)
        first = _part(c, m.rows, column, 0, 1)
        nothing = c.op("Mul", first.real, none)
        vector = Complex(c.op("Add", nothing, one), nothing)
        if step + 1 < high:
            vector = _stacked(c, vector, _part(c, m.rows, column, step + 1))
        tau = _part(
            c, m.columns, each(taus, lambda x: c.unsqueeze(x, [c.rank(x) - 1])), step, step + 1
        )
        reflections.append(_Reflection(vector, tau))
    return _orthogonal(c, a, reflections, high, wide)


def _householder(c: Call, a: Complex, high: int, wide: int) -> tuple[list[_Reflection], Complex]:
    """The reflections of A = Q R, and R [min(high, wide), wide]."""
    reflections: list[_Reflection] = []
    r: Complex | None = None
    for step in range(min(high, wide)):
        one, corner = _reflection(c, _part(c, m.columns, a, 0, 1))
        reflections.append(one)
        row = Complex(corner, c.op("Sub", corner, corner))
        if step + 1 < wide:
            rest = _reflected(c, one, _part(c, m.columns, a, 1), adjoint=True)
            pairs = zip(both_of(row), both_of(_part(c, m.rows, rest, 0, 1)), strict=True)
            row = Complex(*(c.concat(list(pair), c.rank(corner) - 1) for pair in pairs))
            a = _part(c, m.rows, rest, 1)
        row = _part(c, m.padded, row, left=step)
        r = row if r is None else _stacked(c, r, row)
    assert r is not None
    return reflections, r
