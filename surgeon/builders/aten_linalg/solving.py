"""Elimination with pivots, substitution, and what is made of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
import onnx_graphsurgeon as gs

from surgeon import dims
from surgeon.builders.aten_linalg import matrices as m
from surgeon.builders.aten_linalg import turns
from surgeon.builders.aten_shape.call import TYPE, Call, Size
from surgeon.builders.bench import Bench
from surgeon.facts.fact import same_dims
from surgeon.rewrite import Refused


class Eliminated(NamedTuple):
    """What elimination leaves of [A | B].

    Attributes:
        rows: The rows of the upper triangle with what B became, each [..., 1, columns].
        pivots: Their diagonal elements, each [..., 1, 1].
        swaps: Where two rows changed places, each [..., 1, 1], true or false.
    """

    rows: list[gs.Tensor]
    pivots: list[gs.Tensor]
    swaps: list[gs.Tensor]


def eliminate(c: Bench, x: gs.Tensor, size: int) -> Eliminated:
    """Gaussian elimination; the pivot is the largest element of its column, as in LAPACK."""
    if c.dtype(x) == TYPE.DOUBLE and c.opset < 11:
        raise Refused("`ArgMax` in double precision needs opset 11")
    rank = c.rank(x)
    zero = c.number(0, c.dtype(x))
    found = Eliminated([], [], [])
    for step in range(size):
        left = size - step
        if left > 1:
            sizes = c.op("Abs", m.columns(c, x, step, step + 1))
            place = c.op("ArgMax", sizes, axis=rank - 2, keepdims=1)  # [..., 1, 1]
            here = c.op("Equal", place, c.draft.constant(np.arange(left)[:, None], "rows"))
            chosen = c.op("Where", here, x, zero)
            pivot = c.op("ReduceSum", chosen, c.ints([rank - 2], "axes"), keepdims=1)
            rest = m.rows(c, c.op("Where", here, m.rows(c, x, 0, 1), x), 1)
            found.swaps.append(c.op("Less", c.number(0, TYPE.INT64), place))
        else:
            pivot, rest = x, None
        corner = m.columns(c, pivot, step, step + 1)
        found.rows.append(pivot)
        found.pivots.append(corner)
        if rest is not None:
            # a column without a pivot is left as it is: the matrix is singular
            none = c.cast(c.is_nought(corner), c.dtype(x))
            factors = c.op("Div", m.columns(c, rest, step, step + 1), c.op("Add", corner, none))
            x = c.op("Sub", rest, c.op("Mul", factors, pivot))
    return found


def substitute(
    c: Call, upper: list[gs.Tensor], right: list[gs.Tensor], *, unit: bool = False
) -> gs.Tensor:
    """X of U X = B, from the last row upwards.

    Args:
        c: The node.
        upper: The rows of U; what stands left of the diagonal is not looked at.
        right: The rows of B.
        unit: Whether the diagonal counts as 1.
    """
    size = len(upper)
    solved: gs.Tensor | None = None
    for row in reversed(range(size)):
        part = right[row]
        if solved is not None:
            known = m.columns(c, upper[row], row + 1, size)
            part = c.op("Sub", part, c.op("MatMul", known, solved))
        if not unit:
            part = c.op("Div", part, m.columns(c, upper[row], row, row + 1))
        solved = part if solved is None else m.stacked(c, [part, solved])
    assert solved is not None
    return solved


def solve(c: Call, a: gs.Tensor, b: gs.Tensor) -> gs.Tensor:
    """X of A X = B, for matrices of one batch."""
    return _solved(c, a, b)[0]


def _solved(c: Call, a: gs.Tensor, b: gs.Tensor) -> tuple[gs.Tensor, gs.Tensor]:
    """X of A X = B, and the pivots that were met, [..., size]."""
    size = m.square(c, a)
    few = m.few(size)
    if few is None:
        (a, side), b = turns.with_one(c, a, size), turns.with_none(c, b, size)
        found, _ = turns.eliminated(c, c.concat([a, b], c.rank(a) - 1), side)
        right = m.columns(c, found, side)
        triangle = m.columns(c, found, 0, side)
        x = turns.substituted(c, triangle, right, side)
        return turns.without(c, x, size), m.diagonal_of(c, triangle, side)
    both = c.concat([a, b], c.rank(a) - 1)
    done = eliminate(c, both, few)
    x = substitute(c, done.rows, [m.columns(c, row, few) for row in done.rows])
    pivots = c.concat(done.pivots, c.rank(a) - 1)
    return x, c.squeeze(pivots, [c.rank(a) - 2])


def inverse(c: Call, a: gs.Tensor) -> gs.Tensor:
    """The inverse of square matrices."""
    return _inverted(c, a)[0]


def _inverted(c: Call, a: gs.Tensor) -> tuple[gs.Tensor, gs.Tensor]:
    size = m.square(c, a)
    return _solved(c, a, m.identity(c, a, size, size))


def _inverse(c: Call) -> tuple[gs.Tensor, ...]:
    """The inverse; and in `linalg_inv_ex` where the first pivot is 0."""
    x, pivots = _inverted(c, c.args.first())
    return (x, *_info(c, pivots))


def _info(c: Call, pivots: gs.Tensor) -> list[gs.Tensor]:
    """The number, from 1, of the first pivot that is 0; what nobody reads is not made."""
    if not m.is_read(c, 1):
        return []
    return [m.first_of(c, c.is_nought(pivots))]


def is_vector(c: Call, a: gs.Tensor, b: gs.Tensor) -> bool:
    """Whether B is a batch of vectors (torch.linalg.solve: one rank less, and of A's shape)."""
    rank = c.rank(b)
    if rank == 1:
        return True
    if rank != c.rank(a) - 1:
        return False
    mine, its = c.shape(a), c.shape(b)
    if mine is not None and its is not None:
        same = [dims.equal(p, q) for p, q in zip(mine[:-1], its, strict=True)]
        if False in same:
            return False
        if all(one is True for one in same):
            return True
    raise Refused("whether its right side holds vectors or matrices is known at run time only")


def _solve(c: Call) -> tuple[gs.Tensor, ...]:
    a, b = c.tensor("A"), c.tensor("B")
    m.square(c, a)
    vector = is_vector(c, a, b)
    left = not c.args.schema.takes("left") or bool(c.value("left"))
    if vector:
        b = c.unsqueeze(b, [c.rank(b)])
        if not left:
            raise Refused("vectors on the left are given to it as matrices of one row")
    if not left:
        a, b = m.turned(c, a), m.turned(c, b)
    batch = c.shape(a)
    x, pivots = _solved(c, *m.together(c, a, b))
    if m.is_read(c, 1) and not same_dims(batch and batch[:-1], c.shape(pivots)):
        raise Refused("its `info` is read, and its right side may have other batches")
    x = x if left else m.turned(c, x)
    return (c.squeeze(x, [c.rank(x) - 1]) if vector else x, *_info(c, pivots))


def _tensor_solve(c: Call) -> gs.Tensor:
    """The axes behind those of the right side are the unknown's; both flattened, a matrix."""
    a, b = c.tensor(), c.tensor("other")
    a = c.permute(a, axes_of_unknown_last(c, c.rank(a)))
    unknown = c.sizes(a)[c.rank(b) :]
    side = c.product(unknown)
    a = c.reshape(a, [side, side])
    x = solve(c, *m.together(c, a, c.op("Reshape", b, c.ints([-1, 1], "column"))))
    return c.reshape(x, unknown)


def axes_of_unknown_last(c: Call, rank: int) -> list[int]:
    """The axes of `linalg_tensorsolve`, those that `dims` names behind the others."""
    back = [c.axis(int(d), rank) for d in c.args.dims("dims")] if c.has("dims") else []
    return [*(i for i in range(rank) if i not in back), *back]


def _tensor_inverse(c: Call) -> gs.Tensor:
    """The inverse of the matrix that the axes before `ind` and those behind it make."""
    a = c.tensor()
    rows, columns = rows_and_columns(c, a)
    flat = c.reshape(a, [c.product(rows), c.product(columns)])
    return c.reshape(inverse(c, flat), [*columns, *rows])


def rows_and_columns(c: Call, a: gs.Tensor) -> tuple[list[Size | int], list[Size | int]]:
    """The sizes before `ind` and behind it, of `linalg_tensorinv`."""
    ind = c.integer("ind")
    if not 0 < ind < c.rank(a):
        raise Refused(f"ind {ind} for an input of rank {c.rank(a)}")
    return c.sizes(a)[:ind], c.sizes(a)[ind:]


def _old_solve(c: Call) -> gs.Tensor:
    a = c.tensor("A")
    m.square(c, a)
    return solve(c, *m.together(c, a, c.tensor()))


def triangular(
    c: Call, a: gs.Tensor, b: gs.Tensor, *, upper: bool, unit: bool = False
) -> gs.Tensor:
    """X of A X = B, of which A's other triangle is not looked at."""
    size = m.square(c, a)
    a, b = m.together(c, a, b)
    few = m.few(size)
    (a, side), b = turns.with_one(c, a, size), turns.with_none(c, b, size)
    back = m.backwards(c, side)
    if not upper:  # from behind, a lower triangle is an upper one
        a = c.op("Gather", a, back, axis=c.rank(a) - 1)
    if few is None:
        if not upper:
            a, b = (c.op("Gather", t, back, axis=c.rank(t) - 2) for t in (a, b))
        x = turns.substituted(c, a, b, side, unit=unit)
    else:
        order = range(few) if upper else range(few - 1, -1, -1)
        over = [m.rows(c, a, row, row + 1) for row in order]
        x = substitute(c, over, [m.rows(c, b, row, row + 1) for row in order], unit=unit)
    x = x if upper else c.op("Gather", x, back, axis=c.rank(x) - 2)
    return turns.without(c, x, size)


def _triangular_solve(c: Call) -> tuple[gs.Tensor, gs.Tensor]:
    a = c.tensor("A")
    upper, flip = bool(c.value("upper")), bool(c.value("transpose"))
    unit = bool(c.value("unitriangular"))
    used = m.turned(c, a) if flip else a
    return triangular(c, used, c.tensor("self"), upper=upper != flip, unit=unit), a


def _solve_triangular(c: Call) -> gs.Tensor:
    a, b = c.tensor("self"), c.tensor("B")
    upper, unit = bool(c.value("upper")), bool(c.value("unitriangular"))
    if c.value("left"):
        return triangular(c, a, b, upper=upper, unit=unit)
    x = triangular(c, m.turned(c, a), m.turned(c, b), upper=not upper, unit=unit)
    return m.turned(c, x)


def _lu_solve(c: Call) -> gs.Tensor:
    """Rows exchanged, then a lower triangle with ones on its diagonal, then an upper one.

    With the unknown on the left it is the transposed equation.
    """
    old = c.node.op == "lu_solve"
    names = ("LU_data", "LU_pivots", "self") if old else ("LU", "pivots", "B")
    factors, pivots, b = (c.tensor(n) for n in names)
    left = old or bool(c.value("left"))
    b = b if left else m.turned(c, b)
    factors, b = m.together(c, factors, b)
    adjoint = not old and bool(c.value("adjoint"))
    x = _with_factors(c, factors, pivots, b, turned=adjoint is left)
    return x if left else m.turned(c, x)


def _with_factors(
    c: Call, factors: gs.Tensor, pivots: gs.Tensor, b: gs.Tensor, *, turned: bool
) -> gs.Tensor:
    size = m.square(c, factors)
    pivots = c.op("Sub", c.cast(pivots, TYPE.INT64), c.ints([1], "one"))
    if not turned:
        b = turns.exchanged(c, b, pivots, size, size, back=False)
        y = triangular(c, factors, b, upper=False, unit=True)
        return triangular(c, factors, y, upper=True)
    over = m.turned(c, factors)
    y = triangular(c, over, b, upper=False)
    y = triangular(c, over, y, upper=True, unit=True)
    return turns.exchanged(c, y, pivots, size, size, back=True)


def _matrices(c: Call) -> tuple[gs.Tensor, Size | int]:
    a = c.args.first()
    return a, m.square(c, a)


def _sign(c: Bench, done: Eliminated, start: list[gs.Tensor]) -> gs.Tensor:
    """The product of some factors, turned once for each swap."""
    dtype = c.dtype(done.pivots[0])
    one, less = c.number(1, dtype), c.number(-1, dtype)
    signs = [c.op("Where", swap, less, one) for swap in done.swaps]
    return m.scalars(c, reduce(lambda p, q: c.op("Mul", p, q), [*start, *signs]))


def _over_last(c: Bench, operator: str, x: gs.Tensor) -> gs.Tensor:
    made: gs.Tensor = c.op(operator, x, c.ints([c.rank(x) - 1], "axes"), keepdims=0)
    return made


def determinants(c: Bench, a: gs.Tensor) -> gs.Tensor:
    """The determinants of square matrices on the last two axes: the product of the pivots."""
    size = m.square(c, a)
    few = m.few(size)
    if few is None:
        pivots, sign = turns.pivots(c, a, size)
        made: gs.Tensor = c.op("Mul", _over_last(c, "ReduceProd", pivots), sign)
        return made
    done = eliminate(c, a, few)
    return _sign(c, done, done.pivots)


def _det(c: Call) -> gs.Tensor:
    return determinants(c, c.args.first())


def _log_magnitude(c: Call, done: Eliminated) -> gs.Tensor:
    logs = [c.op("Log", c.op("Abs", pivot)) for pivot in done.pivots]
    return m.scalars(c, reduce(lambda p, q: c.op("Add", p, q), logs))


def _slogdet(c: Call) -> tuple[gs.Tensor, gs.Tensor]:
    a, size = _matrices(c)
    few = m.few(size)
    if few is None:
        pivots, sign = turns.pivots(c, a, size)
        signs = _over_last(c, "ReduceProd", c.op("Sign", pivots))
        logs = c.op("Log", c.op("Abs", pivots))
        return c.op("Mul", signs, sign), _over_last(c, "ReduceSum", logs)
    done = eliminate(c, a, few)
    return _sign(c, done, [c.op("Sign", p) for p in done.pivots]), _log_magnitude(c, done)


def _logdet(c: Call) -> gs.Tensor:
    sign, size = _slogdet(c)
    dtype = c.dtype(size)
    return c.op("Where", c.op("Less", sign, c.number(0, dtype)), c.number(np.nan, dtype), size)


LOWERINGS: Mapping[str, Callable[[Call], Any]] = {
    **dict.fromkeys(("inverse", "linalg_inv", "linalg_inv_ex"), _inverse),
    **dict.fromkeys(("linalg_solve", "linalg_solve_ex", "_linalg_solve_ex"), _solve),
    "solve": _old_solve,
    "triangular_solve": _triangular_solve,
    "linalg_solve_triangular": _solve_triangular,
    **dict.fromkeys(("det", "linalg_det", "_linalg_det"), _det),
    **dict.fromkeys(("slogdet", "linalg_slogdet", "_linalg_slogdet"), _slogdet),
    "logdet": _logdet,
    "linalg_tensorsolve": _tensor_solve,
    "linalg_tensorinv": _tensor_inverse,
    **dict.fromkeys(("lu_solve", "linalg_lu_solve"), _lu_solve),
}
