"""LAPACK's own packing: triangles with their exchanges of rows, and reflections below a triangle.

A step does the same to the whole matrix whether it is written out or is a turn of a Scan.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import onnx_graphsurgeon as gs

from surgeon.builders.aten_linalg import matrices as m
from surgeon.builders.aten_linalg import turns
from surgeon.builders.aten_shape.call import TYPE, Call, Size
from surgeon.builders.bench import Bench
from surgeon.rewrite import Draft, Refused


class _Sides(NamedTuple):
    """Of [..., high, wide]; `short` is the shorter one, and how many steps there are."""

    high: Size | int
    wide: Size | int
    short: Size | int

    @property
    def open(self) -> bool:
        """Whether one is known at run time only: there may be no step, and a Scan wants one."""
        return not (isinstance(self.high, int) and isinstance(self.wide, int))


def _sides(c: Call, x: gs.Tensor) -> _Sides:
    high, wide = m.side(c, x, -2), m.side(c, x, -1)
    return _Sides(high, wide, m.smaller(c, high, wide))


def _edged(c: Call, x: gs.Tensor, *, row: bool = True) -> gs.Tensor:
    """With a column of zeros behind, and a row: a step there changes nothing."""
    rank, dtype = c.rank(x), c.dtype(x)
    if row:
        sizes = c.sizes(x)
        x = m.stacked(c, [x, c.filled([*sizes[:-2], 1, sizes[-1]], 0, dtype)])
    return c.concat([x, c.filled([*c.sizes(x)[:-1], 1], 0, dtype)], rank - 1)


class _Field(NamedTuple):
    """What is worked on step by step, and what its rows, columns and steps are told by.

    Attributes:
        a: The matrices, with an edge where there may be no step.
        short: How many steps there are, one at the edge among them.
        lots: The dimensions in front.
        places: The numbers of the rows, in a column.
        across: Those of the columns.
        steps: Those of the steps.
    """

    a: gs.Tensor
    short: Size | int
    lots: list[Size | int]
    places: gs.Tensor
    across: gs.Tensor
    steps: gs.Tensor


def _field(c: Call, a: gs.Tensor, sides: _Sides) -> _Field:
    short = sides.short
    if sides.open:
        a, short = _edged(c, a), c.add(short, 1)
    *lots, high, wide = c.sizes(a)
    return _Field(a, short, lots, m.places(c, high), c.count(wide), c.count(short))


def _without_edge(c: Call, x: gs.Tensor) -> gs.Tensor:
    return m.columns(c, m.rows(c, x, 0, -1), 0, -1)


# ---------------------------------------------------------------------- triangles


class _Triangles(NamedTuple):
    """What elimination leaves.

    Attributes:
        packed: U, and below its diagonal L, whose diagonal is of ones.
        pivots: int64 [..., short]: the row that each one changed places with, from 0.
    """

    packed: gs.Tensor
    pivots: gs.Tensor


def _triangles(c: Call, a: gs.Tensor, sides: _Sides) -> _Triangles:
    """P A = L U; the pivot is the first of the largest in what is left of its column."""
    if c.dtype(a) == TYPE.DOUBLE and c.opset < 11:
        raise Refused("`ArgMax` in double precision needs opset 11")
    if c.args.schema.takes("pivot") and not c.value("pivot"):
        raise Refused("it is without pivots, which PyTorch does not have on the CPU")
    rank, dtype = c.rank(a), c.dtype(a)
    a, short, lots, places, across, steps = _field(c, a, sides)
    pivots = c.filled([*lots, 1, short], 0, TYPE.INT64)

    def step(draft: Draft, state: list[gs.Tensor], number: gs.Tensor) -> list[gs.Tensor]:
        b, (x, pivots) = Bench(draft), state
        left = b.op("Not", b.op("Less", places, number))
        sizes = b.op("Abs", turns.taken(b, x, number, -1))
        sizes = b.op("Where", left, sizes, b.number(-1, dtype))
        place = b.op("ArgMax", sizes, axis=rank - 2, keepdims=1)
        x, pivot = turns.swapped(b, x, number, place, places)
        # a column without a pivot is left as it is: it is of zeros
        corner = turns.taken(b, pivot, number, -1)
        none = b.cast(b.is_nought(corner), dtype)
        factors = b.op("Div", turns.taken(b, x, number, -1), b.op("Add", corner, none))
        less = b.op("Sub", x, b.op("Mul", factors, pivot))
        less = b.op("Where", b.op("Less", number, across), less, x)
        less = b.op("Where", b.op("Equal", number, across), factors, less)
        x = b.op("Where", b.op("Less", number, places), less, x)
        return [x, b.op("Where", b.op("Equal", steps, number), place, pivots)]

    x, pivots = turns.in_steps(c, [a, pivots], short, step)
    if sides.open:
        x, pivots = _without_edge(c, x), m.columns(c, pivots, 0, -1)
    return _Triangles(x, c.squeeze(pivots, [rank - 2]))


def _factored(c: Call) -> tuple[gs.Tensor, ...]:
    """`linalg_lu_factor` and what else gives the packed triangles, with LAPACK's info if asked."""
    a = c.args.first()
    sides = _sides(c, a)
    found = _triangles(c, a, sides)
    pivots = c.cast(c.op("Add", found.pivots, c.ints([1], "one")), TYPE.INT32)
    if not m.is_read(c, 2):
        return found.packed, pivots
    corner = m.columns(c, m.rows(c, found.packed, 0, sides.short), 0, sides.short)
    diagonal = m.diagonal_of(c, corner, sides.short)
    return found.packed, pivots, m.first_of(c, c.is_nought(diagonal))


def _parted(c: Call, packed: gs.Tensor, sides: _Sides) -> tuple[gs.Tensor, gs.Tensor]:
    """L [..., high, short] and U [..., short, wide]."""
    zero = c.number(0, c.dtype(packed))
    places, across = m.places(c, sides.high), c.count(sides.short)
    below = m.columns(c, packed, 0, sides.short)
    below = c.op("Where", c.op("Less", across, places), below, zero)
    ones = c.op("Equal", across, places)
    lower = c.op("Where", ones, c.number(1, c.dtype(packed)), below)
    above = m.rows(c, packed, 0, sides.short)
    under = c.op("Less", c.count(sides.wide), m.places(c, sides.short))
    return lower, c.op("Where", under, zero, above)


def _permutation(c: Call, like: gs.Tensor, pivots: gs.Tensor, sides: _Sides) -> gs.Tensor:
    """P of A = P L U: the exchanges undone on an identity, the last one first."""
    eye = m.identity(c, like, sides.high, sides.high)
    last = c.rank(pivots) - 1
    if c.size(pivots, last) != sides.short:  # PyTorch looks at no more
        pivots = c.slice(pivots, last, 0, sides.short)
    return turns.exchanged(c, eye, pivots, sides.high, sides.short, back=True)


def _three(c: Call) -> tuple[gs.Tensor, ...]:
    """`linalg_lu`: P, L and U."""
    a = c.args.first()
    sides = _sides(c, a)
    found = _triangles(c, a, sides)
    return _permutation(c, a, found.pivots, sides), *_parted(c, found.packed, sides)


def _unpacked(c: Call) -> tuple[gs.Tensor, ...]:
    """`lu_unpack`: what is not asked for has no elements."""
    packed = c.tensor("LU_data")
    sides = _sides(c, packed)
    none = c.filled([0], 0, c.dtype(packed))
    permutation = none
    if c.value("unpack_pivots"):
        pivots = c.cast(c.tensor("LU_pivots"), TYPE.INT64)
        pivots = c.op("Sub", pivots, c.ints([1], "one"))
        permutation = _permutation(c, packed, pivots, sides)
    parts = _parted(c, packed, sides) if c.value("unpack_data") else (none, none)
    return permutation, *parts


# ---------------------------------------------------------------------- reflections


def _reflections(c: Call) -> tuple[gs.Tensor, gs.Tensor]:
    """`geqrf`: R, below its diagonal the vectors without their ones, and the factors tau."""
    a = c.args.first()
    sides = _sides(c, a)
    rank, dtype = c.rank(a), c.dtype(a)
    a, short, lots, places, across, steps = _field(c, a, sides)

    def step(draft: Draft, state: list[gs.Tensor], number: gs.Tensor) -> list[gs.Tensor]:
        b, (x, taus) = Bench(draft), state
        one = turns.reflection(b, turns.taken(b, x, number, -1), number, places)
        turned = b.op("Transpose", one.vector, perm=[*range(rank - 2), rank - 1, rank - 2])
        share = b.op("MatMul", turned, x)
        less = b.op("Sub", x, b.op("Mul", b.op("Mul", one.tau, one.vector), share))
        head = b.op("Where", b.op("Equal", places, number), one.multiple, one.vector)
        head = b.op("Where", b.op("Less", places, number), x, head)
        x = b.op("Where", b.op("Less", number, across), less, x)
        x = b.op("Where", b.op("Equal", number, across), head, x)
        return [x, b.op("Where", b.op("Equal", steps, number), one.tau, taus)]

    start = [a, c.filled([*lots, 1, short], 0, dtype)]
    x, taus = turns.in_steps(c, start, short, step)
    if sides.open:
        x, taus = _without_edge(c, x), m.columns(c, taus, 0, -1)
    return x, c.squeeze(taus, [rank - 2])


def _reflected(
    c: Call, x: gs.Tensor, packed: gs.Tensor, taus: gs.Tensor, *, back: bool
) -> gs.Tensor:
    """The reflections of `packed` one after the other on X, the first one first, or last."""
    high, _, _ = _sides(c, packed)
    rank = c.rank(packed)
    count = c.size(taus, c.rank(taus) - 1)
    taus = c.unsqueeze(taus, [rank - 2])
    if not isinstance(count, int):
        packed, taus = _edged(c, packed, row=False), _edged(c, taus, row=False)
        count = c.add(count, 1)
    places, dtype = m.places(c, high), c.dtype(packed)

    def step(draft: Draft, state: list[gs.Tensor], number: gs.Tensor) -> list[gs.Tensor]:
        b, (x,) = Bench(draft), state
        zero, one = b.number(0, dtype), b.number(1, dtype)
        vector = b.op(
            "Where", b.op("Less", places, number), zero, turns.taken(b, packed, number, -1)
        )
        vector = b.op("Where", b.op("Equal", places, number), one, vector)
        turned = b.op("Transpose", vector, perm=[*range(rank - 2), rank - 1, rank - 2])
        scaled = b.op("Mul", turns.taken(b, taus, number, -1), vector)
        return [b.op("Sub", x, b.op("Mul", scaled, b.op("MatMul", turned, x)))]

    (found,) = turns.in_steps(c, [x], count, step, back=back)
    return found


def _product(c: Call) -> gs.Tensor:
    """`linalg_householder_product`: the first columns of H1 H2 ... Hk."""
    packed, taus = c.args.pair()
    sides = _sides(c, packed)
    eye = m.identity(c, packed, sides.high, sides.wide)
    return _reflected(c, eye, packed, taus, back=True)


def _multiplied(c: Call) -> gs.Tensor:
    """`ormqr`: Q C, C Q, or with the transposed Q, without making Q."""
    packed, taus, x = (c.tensor(name) for name in ("self", "input2", "input3"))
    left, transpose = bool(c.value("left")), bool(c.value("transpose"))
    x = x if left else m.turned(c, x)
    # C Q is (Q^T C^T)^T, and the first factor of Q^T is the last reflection
    made = _reflected(c, x, packed, taus, back=left is not transpose)
    return made if left else m.turned(c, made)


LOWERINGS: Mapping[str, Callable[[Call], Any]] = {
    **dict.fromkeys(("linalg_lu_factor", "linalg_lu_factor_ex", "_lu_with_info"), _factored),
    "linalg_lu": _three,
    "lu_unpack": _unpacked,
    "geqrf": _reflections,
    **dict.fromkeys(("linalg_householder_product", "orgqr"), _product),
    "ormqr": _multiplied,
}
