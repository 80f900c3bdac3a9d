"""Complex matrices of known sizes: Cholesky factors, singular values and what they decide.

A matrix is two real ones, its parts; where its columns are rotated, one above the other.
"""

from __future__ import annotations

from typing import NamedTuple

import onnx_graphsurgeon as gs

from surgeon.builders.aten_linalg import matrices as m
from surgeon.builders.aten_linalg import rotations as r
from surgeon.builders.aten_linalg.singular import cut, is_symmetric
from surgeon.builders.aten_shape.call import Call
from surgeon.builders.aten_shape.order import topk
from surgeon.rewrite import Refused


class Parts(NamedTuple):
    """The real parts and the imaginary ones, each [..., rows, columns]."""

    real: gs.Tensor
    imaginary: gs.Tensor


def singular_values(c: Call, a: Parts) -> gs.Tensor:
    """The largest first, [..., min(rows, columns)]."""
    a = _adjoint(c, a) if _side(c, a, -2) < _side(c, a, -1) else a
    return _values(c, r.orthogonal_columns(c, _above(c, a), basis=False, is_complex=True), a)[0]


def _values(c: Call, found: r.Orthogonal, a: Parts) -> tuple[gs.Tensor, gs.Tensor]:
    """Lengths of the columns, the largest first, and where they stood."""
    rank, wide = c.rank(a.real), _side(c, a, -1)
    # behind the last turn of a sweep every column stands where it stood, and a zero one at the end
    sizes = r.lengths(c, m.columns(c, found.product, 0, wide))
    sizes = c.op("Mul", sizes, c.squeeze(found.scale, [rank - 1]))
    return topk(c, sizes, rank - 2, wide, largest=True)


def eigen(c: Call, a: Parts, *, upper: bool, with_vectors: bool) -> tuple[gs.Tensor, Parts | None]:
    """The eigenvalues of Hermitian matrices, the smallest first, and the vectors as columns."""
    a, rank, side = hermitian(c, a, upper=upper), c.rank(a.real), _side(c, a, -1)
    sizes = c.op("Add", *(c.op("Abs", part) for part in a))
    sizes = c.op("ReduceSum", sizes, c.ints([rank - 1], "axes"), keepdims=0)
    shift = c.op("ReduceMax", sizes, c.ints([rank - 2], "axes"), keepdims=1)  # above every |value|
    eye = m.identity(c, a.real, side, side)
    real = c.op("Add", a.real, c.op("Mul", eye, c.unsqueeze(shift, [rank - 1])))
    moved = _above(c, Parts(real, a.imaginary))
    found = r.orthogonal_columns(c, moved, basis=with_vectors, is_complex=True)
    values, order = _values(c, found, a)
    backwards = m.backwards(c, side)
    values = c.op("Gather", c.op("Sub", values, shift), backwards, axis=rank - 2)
    if found.basis is None:
        return values, None
    places = c.op("Gather", order, backwards, axis=rank - 2)
    equal = c.op("Equal", m.places(c, side), c.unsqueeze(places, [rank - 2]))
    sorting = c.cast(equal, c.dtype(a.real))  # in each column one 1
    vectors = c.op("MatMul", m.columns(c, found.basis, 0, side), sorting)
    return values, _apart(c, vectors, side)


def hermitian(c: Call, a: Parts, *, upper: bool) -> Parts:
    """The matrix whose one triangle this is; what stands beside its real diagonal is not read."""
    side = _square(c, a)
    real = r.symmetric(c, a.real, upper=upper)
    rows, columns = m.places(c, side), c.count(side)
    read = c.op("Less", *((rows, columns) if upper else (columns, rows)))
    zero = c.number(0, c.dtype(real))
    there = c.op("Where", read, a.imaginary, zero)
    return Parts(real, c.op("Sub", there, m.turned(c, there)))


def pseudo_inverse(c: Call, a: Parts) -> Parts:
    """V S^-2 B^H of A V = B, without the singular values that count as 0."""
    given = a.real
    if is_symmetric(c):
        a = hermitian(c, a, upper=False)
    flat = _side(c, a, -2) < _side(c, a, -1)
    a = _adjoint(c, a) if flat else a
    high, wide, rank = _side(c, a, -2), _side(c, a, -1), c.rank(a.real)
    found = r.orthogonal_columns(c, _above(c, a), basis=True, is_complex=True)
    assert found.basis is not None
    product, basis = (m.columns(c, x, 0, wide) for x in (found.product, found.basis))
    values = r.lengths(c, product)  # of A / scale
    sizes = c.op("Mul", values, c.squeeze(found.scale, [rank - 1]))
    largest = c.op("ReduceMax", sizes, c.ints([rank - 2], "axes"), keepdims=1)
    below = cut(c, given, largest)
    if c.rank(below) != c.rank(sizes):
        raise Refused("its tolerance has more dimensions than there are batches of matrices")
    kept = c.op("Less", below, sizes)
    one, zero = c.number(1, c.dtype(given)), c.number(0, c.dtype(given))
    inverted = c.op("Where", kept, c.op("Div", one, c.op("Where", kept, values, one)), zero)
    inverted = c.unsqueeze(inverted, [rank - 2])
    left = _apart(c, c.op("Div", c.op("Mul", basis, inverted), found.scale), wide)
    right = _apart(c, c.op("Mul", product, inverted), high)
    made = _product(c, left, _adjoint(c, right))
    return _adjoint(c, made) if flat else made


def cholesky(c: Call, a: Parts, *, upper: bool) -> Parts:
    """L of A = L L^H, or L^H; the other triangle is not looked at, nor what is beside the diagonal.

    Raises:
        Refused: There are more rows than are unrolled.
    """
    side = _square(c, a)
    if m.few(side) is None:
        raise Refused(f"its complex matrices have {side} rows; up to {m.LARGEST_SIDE} are taken")
    a = _adjoint(c, a) if upper else a
    found: list[Parts] = []
    for step in range(side):
        root = c.op("Sqrt", m.block(c, a.real, 0, 0))
        below = Parts(*(c.op("Div", m.rows(c, m.columns(c, x, 0, 1), 1), root) for x in a))
        nought = c.op("Sub", root, root)
        ends = (root, nought)
        column = [m.stacked(c, [end, x]) for end, x in zip(ends, below, strict=True)]
        found.append(Parts(*(m.padded(c, x, above=step) for x in column)))
        if step + 1 < side:
            taken = _product(c, below, _adjoint(c, below))
            rest = (m.columns(c, m.rows(c, x, 1), 1) for x in a)
            a = Parts(*(c.op("Sub", x, y) for x, y in zip(rest, taken, strict=True)))
    factor = Parts(*(c.concat(list(x), c.rank(x[0]) - 1) for x in zip(*found, strict=True)))
    return _adjoint(c, factor) if upper else factor


def _side(c: Call, a: Parts, axis: int) -> int:
    size = m.side(c, a.real, axis, r.LARGEST_TURNED // 2)
    if not isinstance(size, int):
        raise Refused("the size of its complex matrices is known at run time only")
    return size


def _square(c: Call, a: Parts) -> int:
    high, wide = _side(c, a, -2), _side(c, a, -1)
    if high != wide:
        raise Refused(f"its matrices are {high} x {wide} and not square")
    return wide


def _above(c: Call, a: Parts) -> gs.Tensor:
    return m.stacked(c, list(a))


def _apart(c: Call, x: gs.Tensor, side: int) -> Parts:
    return Parts(m.rows(c, x, 0, side), m.rows(c, x, side, 2 * side))


def _adjoint(c: Call, a: Parts) -> Parts:
    return Parts(m.turned(c, a.real), c.op("Neg", m.turned(c, a.imaginary)))


def _product(c: Call, a: Parts, b: Parts) -> Parts:
    return Parts(
        c.op("Sub", c.op("MatMul", a.real, b.real), c.op("MatMul", a.imaginary, b.imaginary)),
        c.op("Add", c.op("MatMul", a.real, b.imaginary), c.op("MatMul", a.imaginary, b.real)),
    )
