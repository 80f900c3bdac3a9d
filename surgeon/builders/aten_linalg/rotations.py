"""Columns made orthogonal by rotations in pairs (one-sided Jacobi), as turns of a Scan.

A V = B, of which no two columns lie towards each other: their lengths are the singular values. In a
turn each column meets one other, as in a tournament; after N - 1 turns each met all (a sweep).

Complex columns are real ones of twice the length, the real parts above the imaginary ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import onnx
import onnx_graphsurgeon as gs

from surgeon.builders.aten_linalg import matrices as m
from surgeon.builders.aten_shape.call import TYPE, Call, Size
from surgeon.builders.aten_shape.order import topk
from surgeon.builders.bench import Bench
from surgeon.builders.scalar_types import finfo
from surgeon.builders.turns import in_turns
from surgeon.rewrite import Draft, Refused

LARGEST_TURNED = 128  # columns; each sweep is as many turns
# Sweeps after which random, graded, clustered and rank-deficient matrices of 128 columns, and
# Hilbert's of 64, changed by rounding alone.
_SWEEPS: Mapping[int, int] = {TYPE.FLOAT: 12, TYPE.DOUBLE: 18}


class Orthogonal(NamedTuple):
    """What the rotations make of A.

    Attributes:
        product: B / scale, [..., rows, N]; N is even, and columns of zeros fill it up. Where sizes
            come at run time a row of zeros stands below.
        basis: V, [..., columns, N]; None where nobody wants it.
        scale: The largest element of A, [..., 1, 1]; 1 where that is 0.
    """

    product: gs.Tensor
    basis: gs.Tensor | None
    scale: gs.Tensor


def orthogonal_columns(
    c: Call, a: gs.Tensor, *, basis: bool, is_complex: bool = False
) -> Orthogonal:
    """The columns of A, rotated until they are orthogonal; complex ones are of known sizes."""
    high = m.side(c, a, -2, LARGEST_TURNED)
    wide = m.side(c, a, -1, LARGEST_TURNED)
    rank, dtype = c.rank(a), c.dtype(a)
    if isinstance(wide, int):
        full: Size | int = wide + wide % 2
    else:
        full = c.mul(c.add(c.div(wide, 2), 1), 2)
    spare = c.sub(full, wide)
    a = _with_zeros(c, a, spare, rank - 1)
    if not isinstance(high, int):
        a = _with_zeros(c, a, 1, rank - 2)
    rows = c.op("ReduceMax", c.op("Abs", a), c.ints([rank - 2], "axes"), keepdims=1)
    scale = c.op("ReduceMax", rows, c.ints([rank - 1], "axes"), keepdims=1)
    scale = c.op("Add", scale, c.cast(c.is_nought(scale), dtype))
    state = [c.op("Div", a, scale)]
    if basis:
        below = c.mul(wide, 2) if is_complex else wide
        state.append(_with_zeros(c, m.identity(c, a, below, wide), spare, rank - 1))
    found = _swept(c, state, full, is_complex=is_complex)
    return Orthogonal(found[0], found[1] if basis else None, scale)


def _with_zeros(c: Call, x: gs.Tensor, count: Size | int, axis: int) -> gs.Tensor:
    if count == 0:
        return x
    sizes = c.sizes(x)
    sizes[axis] = count
    return c.concat([x, c.filled(sizes, 0, c.dtype(x))], axis)


def _swept(
    c: Call, state: list[gs.Tensor], full: Size | int, *, is_complex: bool
) -> list[gs.Tensor]:
    sweeps = _SWEEPS[c.dtype(state[0])]
    half, turns = c.div(full, 2), c.mul(c.sub(full, 1), sweeps)
    numbers = range(turns) if isinstance(turns, int) else m.places(c, turns)
    order = None if full == 2 else _next_places(c, full, half)
    sides = [c.size(x, c.rank(x) - 2) for x in state] if is_complex else []

    def step(draft: Draft, given: list[gs.Tensor], number: gs.Tensor) -> list[gs.Tensor]:
        b = Bench(draft)
        last = b.rank(given[0]) - 1
        pairs = [(b.slice(x, last, 0, half), b.slice(x, last, half, full)) for x in given]
        pairs = _in_phase(b, pairs, sides) if is_complex else pairs
        sine, half_tangent = _angles(b, *pairs[0])
        made = []
        for (
            left,
            right,
        ) in pairs:  # in Rutishauser's form, which hardly rounds where angles are small
            more = b.op("Add", right, b.op("Mul", half_tangent, left))
            less = b.op("Sub", left, b.op("Mul", half_tangent, right))
            first = b.op("Sub", left, b.op("Mul", sine, more))
            both = b.concat([first, b.op("Add", right, b.op("Mul", sine, less))], last)
            made.append(both if order is None else b.op("Gather", both, order, axis=last))
        return made

    return in_turns(c.draft, state, numbers, step)


_Pairs = list[tuple[gs.Tensor, gs.Tensor]]


def _in_phase(b: Bench, pairs: _Pairs, sides: Sequence[Size | int]) -> _Pairs:
    """Right columns turned by phases, so that their products with the left ones are real."""
    left, right = pairs[0]
    turned = [_by_minus_i(b, other, side) for (_, other), side in zip(pairs, sides, strict=True)]
    real, imaginary = _dot(b, left, right), _dot(b, left, turned[0])
    length = b.op("Sqrt", b.op("Add", b.op("Mul", real, real), b.op("Mul", imaginary, imaginary)))
    dtype = b.dtype(left)
    one, zero = b.number(1, dtype), b.number(0, dtype)
    tiny = b.number(finfo(onnx.helper.tensor_dtype_to_np_dtype(dtype)).tiny, dtype)
    apart = b.op("Less", length, tiny)
    length = b.op("Where", apart, one, length)
    cosine = b.op("Where", apart, one, b.op("Div", real, length))
    sine = b.op("Where", apart, zero, b.op("Div", imaginary, length))
    return [
        (first, b.op("Add", b.op("Mul", cosine, second), b.op("Mul", sine, other)))
        for (first, second), other in zip(pairs, turned, strict=True)
    ]


def _by_minus_i(b: Bench, x: gs.Tensor, side: Size | int) -> gs.Tensor:
    """-i times complex columns: the imaginary parts above the real ones turned round."""
    if not isinstance(side, int):
        raise Refused("the size of its complex matrices is known at run time only")
    half = side // 2
    order = b.ints([*range(half, side), *range(half)], "order")
    signs = np.repeat([1, -1], half)[:, None]
    kind = onnx.helper.tensor_dtype_to_np_dtype(b.dtype(x))
    swapped = b.op("Gather", x, order, axis=b.rank(x) - 2)
    made: gs.Tensor = b.op("Mul", swapped, b.draft.constant(signs.astype(kind), "signs"))
    return made


def _dot(b: Bench, p: gs.Tensor, q: gs.Tensor) -> gs.Tensor:
    """The products of columns, each with its other, [..., 1, N]."""
    axes = b.ints([b.rank(p) - 2], "axes")
    made: gs.Tensor = b.op("ReduceSum", b.op("Mul", p, q), axes, keepdims=1)
    return made


def _angles(b: Bench, left: gs.Tensor, right: gs.Tensor) -> tuple[gs.Tensor, gs.Tensor]:
    """Sine, and tangent of half, of the smaller angle by which two columns become orthogonal."""
    dtype = b.dtype(left)
    kind = onnx.helper.tensor_dtype_to_np_dtype(dtype)
    one, zero = b.number(1, dtype), b.number(0, dtype)

    both = _dot(b, left, right)
    tiny = b.number(finfo(kind).tiny, dtype)
    apart = b.op("Less", b.op("Abs", both), tiny)  # already; nothing is divided by 0
    twice = b.op("Where", apart, one, b.op("Add", both, both))
    ratio = b.op("Div", b.op("Sub", _dot(b, right, right), _dot(b, left, left)), twice)
    length = b.op("Sqrt", b.op("Add", b.op("Mul", ratio, ratio), one))
    sign = b.op("Where", b.op("Less", ratio, zero), b.number(-1, dtype), one)
    tangent = b.op("Div", sign, b.op("Add", b.op("Abs", ratio), length))
    tangent = b.op("Where", apart, zero, tangent)
    cosine = b.op("Div", one, b.op("Sqrt", b.op("Add", b.op("Mul", tangent, tangent), one)))
    sine = b.op("Mul", cosine, tangent)
    return sine, b.op("Div", sine, b.op("Add", cosine, one))


def _next_places(c: Call, full: Size | int, half: Size | int) -> gs.Tensor:
    """Which column stands where in the next turn: the first stays, the others move round."""
    if isinstance(full, int) and isinstance(half, int):
        left, right = list(range(half)), list(range(half, full))
        return c.ints([0, right[0], *left[1:-1], *right[1:], left[-1]], "places")
    place, middle = c.count(full), c.vector([half])
    moved = c.op("Add", place, c.ints([1], "one"))
    for condition, other in (
        (c.op("Less", place, middle), c.op("Sub", place, c.ints([1], "one"))),
        (c.op("Equal", place, c.vector([c.sub(full, 1)])), c.vector([c.sub(half, 1)])),
        (c.op("Equal", place, c.ints([1], "one")), middle),
        (c.op("Equal", place, c.ints([0], "zero")), place),
    ):
        moved = c.op("Where", condition, other, moved)
    made: gs.Tensor = moved
    return made


def lengths(c: Call, x: gs.Tensor) -> gs.Tensor:
    """Of the columns, [..., N]."""
    made: gs.Tensor = c.op("ReduceL2", x, c.ints([c.rank(x) - 2], "axes"), keepdims=0)
    return made


def singular_values(c: Call, a: gs.Tensor) -> gs.Tensor:
    """The singular values, the largest first, [..., min(rows, columns)]."""
    high, wide = (m.side(c, a, axis, LARGEST_TURNED) for axis in (-2, -1))
    if isinstance(high, int) and isinstance(wide, int) and high < wide:
        a = m.turned(c, a)  # fewer columns, fewer turns
    found = orthogonal_columns(c, a, basis=False)
    values = lengths(c, found.product)  # of large elements, squares would be infinite
    values = c.op("Mul", values, c.squeeze(found.scale, [c.rank(a) - 1]))
    values, _ = topk(c, values, c.rank(values) - 1, m.smaller(c, high, wide), largest=True)
    return values


def eigenvalues(c: Call, a: gs.Tensor) -> gs.Tensor:
    """The eigenvalues of symmetric matrices, the smallest first, [..., size]."""
    moved, shift = shifted(c, a)
    values = c.op("Sub", singular_values(c, moved), shift)
    size = m.square(c, a, LARGEST_TURNED)
    return c.op("Gather", values, m.backwards(c, size), axis=c.rank(values) - 1)


def shifted(c: Call, a: gs.Tensor) -> tuple[gs.Tensor, gs.Tensor]:
    """A + shift, and the shift, [..., 1]; its singular values are its eigenvalues, none below 0."""
    size, rank = m.square(c, a, LARGEST_TURNED), c.rank(a)
    sizes = c.op("ReduceSum", c.op("Abs", a), c.ints([rank - 1], "axes"), keepdims=0)
    if not isinstance(size, int):  # there may be none, and runtimes want one
        sizes = _with_zeros(c, sizes, 1, rank - 2)
    shift = c.op("ReduceMax", sizes, c.ints([rank - 2], "axes"), keepdims=1)  # above every |value|
    on_diagonal = c.op("Mul", m.identity(c, a, size, size), c.unsqueeze(shift, [rank - 1]))
    return c.op("Add", a, on_diagonal), shift


def reads_upper(c: Call) -> bool:
    """Whether the node reads the upper triangle of its matrices."""
    if c.args.schema.takes("UPLO"):
        return bool(c.value("UPLO").upper() == "U")
    return bool(c.value("upper"))


def symmetric(c: Call, a: gs.Tensor, *, upper: bool) -> gs.Tensor:
    """The matrix whose one triangle this is; what stands in the other is not looked at."""
    size = m.square(c, a, LARGEST_TURNED)
    rows, columns = m.places(c, size), c.count(size)
    read = c.op("Less", columns, rows) if upper else c.op("Less", rows, columns)
    return c.op("Where", read, m.turned(c, a), a)
