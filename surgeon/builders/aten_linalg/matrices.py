"""Matrices on the last two axes, batches of any shape before them, taken apart by rows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx_graphsurgeon as gs

from surgeon import dims
from surgeon.builders.aten_shape.call import LARGEST, TYPE, Call, Size
from surgeon.builders.bench import Bench, dim_of
from surgeon.dims import Dim
from surgeon.rewrite import Refused

LARGEST_SIDE = 32  # rows that are eliminated one by one; a step is some fifteen nodes
LARGEST_IN_TURNS = 256  # rows of which each is a turn of a Scan, over the whole matrix


def side(c: Bench, x: gs.Tensor, axis: int, largest: int = LARGEST_IN_TURNS) -> Size | int:
    """The length of an axis counted from behind, which may be known at run time only.

    Raises:
        Refused: It is known, and too large; or there are no matrices that PyTorch takes.
    """
    rank = c.rank(x)
    if rank < 2:
        raise Refused(f"its input has rank {rank}, and is no matrix")
    if c.dtype(x) not in (TYPE.FLOAT, TYPE.DOUBLE):
        raise Refused("PyTorch has it in single and double precision alone")
    size = c.size(x, rank + axis)
    if size == 0:  # as if it came at run time, when it may be 0 too
        return Size(0, lambda: c.ints([0], "none"))
    if isinstance(size, int) and size > largest:
        raise Refused(f"its matrices have {size} rows or columns; up to {largest} are taken")
    return size


def square(c: Bench, x: gs.Tensor, largest: int = LARGEST_IN_TURNS) -> Size | int:
    """The side of square matrices; PyTorch takes no others."""
    rows, columns = side(c, x, -2, largest), side(c, x, -1, largest)
    high, wide = dim_of(rows), dim_of(columns)
    if high is not None and wide is not None and dims.equal(high, wide) is False:
        raise Refused(f"its matrices are {high} x {wide} and not square")
    return columns if isinstance(columns, int) else rows


def few(size: Size | int) -> int | None:
    """A side that is known, and small enough to be unrolled; else None, for turns of a Scan."""
    return size if isinstance(size, int) and size <= LARGEST_SIDE else None


def _known(function: Callable[[Dim, Dim], Dim], a: Size | int, b: Size | int) -> Dim | None:
    first, second = dim_of(a), dim_of(b)
    return None if first is None or second is None else function(first, second)


def smaller(c: Bench, a: Size | int, b: Size | int) -> Size | int:
    """The smaller of two sizes."""
    if isinstance(a, int) and isinstance(b, int):
        return min(a, b)
    return Size(_known(dims.minimum, a, b), lambda: c.op("Min", c.vector([a]), c.vector([b])))


def larger(c: Bench, a: Size | int, b: Size | int) -> Size | int:
    """The larger of two sizes."""
    if isinstance(a, int) and isinstance(b, int):
        return max(a, b)
    return Size(_known(dims.maximum, a, b), lambda: c.op("Max", c.vector([a]), c.vector([b])))


def places(c: Bench, size: Size | int) -> gs.Tensor:
    """The numbers of the rows, [size, 1]."""
    return c.unsqueeze(c.count(size), [1])


def backwards(c: Bench, size: Size | int) -> gs.Tensor:
    """The numbers of the rows from the last to the first."""
    if isinstance(size, int):
        return c.ints(range(size - 1, -1, -1), "order")
    made: gs.Tensor = c.op("Sub", c.vector([c.sub(size, 1)], "last"), c.count(size))
    return made


def rows(c: Bench, x: gs.Tensor, start: Size | int, end: Size | int = LARGEST) -> gs.Tensor:
    """Some rows."""
    return c.slice(x, c.rank(x) - 2, start, end)


def columns(c: Bench, x: gs.Tensor, start: Size | int, end: Size | int = LARGEST) -> gs.Tensor:
    """Some columns."""
    return c.slice(x, c.rank(x) - 1, start, end)


def block(c: Bench, x: gs.Tensor, row: int, column: int) -> gs.Tensor:
    """One element of each matrix, as a matrix of 1 x 1."""
    return columns(c, rows(c, x, row, row + 1), column, column + 1)


def stacked(c: Bench, parts: list[gs.Tensor]) -> gs.Tensor:
    """Rows one below the other."""
    return c.concat(parts, c.rank(parts[0]) - 2)


def turned(c: Bench, x: gs.Tensor) -> gs.Tensor:
    """Transposed matrices."""
    rank = c.rank(x)
    return c.permute(x, [*range(rank - 2), rank - 1, rank - 2])


def padded(c: Bench, x: gs.Tensor, above: int = 0, left: int = 0, below: int = 0) -> gs.Tensor:
    """With zeros around."""
    if not (above or left or below):
        return x
    front = [0] * (c.rank(x) - 2)
    return c.op("Pad", x, c.ints([*front, above, left, *front, below, 0], "pads"))


def identity(c: Bench, like: gs.Tensor, high: Size | int, wide: Size | int) -> gs.Tensor:
    """Ones on the diagonal, for every matrix of a batch."""
    return _as_batch_of(c, c.cast(diagonal_places(c, high, wide), c.dtype(like)), like)


def diagonal_places(c: Bench, high: Size | int, wide: Size | int) -> gs.Tensor:
    """True on the diagonal."""
    if isinstance(high, int) and isinstance(wide, int):
        return c.draft.constant(np.eye(high, wide, dtype=np.bool_), "eye")
    made: gs.Tensor = c.op("Equal", places(c, high), c.count(wide))
    return made


def _as_batch_of(c: Bench, x: gs.Tensor, other: gs.Tensor) -> gs.Tensor:
    lots = c.sizes(other)[:-2]
    return c.op("Expand", x, c.vector([*lots, 1, 1], "lots")) if lots else x


def together(c: Bench, a: gs.Tensor, b: gs.Tensor) -> tuple[gs.Tensor, gs.Tensor]:
    """Both with the batch that they broadcast to."""
    mine, its = c.shape(a), c.shape(b)
    if (
        mine is not None
        and its is not None
        and len(mine) == len(its)
        and all(dims.equal(p, q) is True for p, q in zip(mine[:-2], its[:-2], strict=True))
    ):
        return a, b
    wide = _as_batch_of(c, a, b)
    return wide, _as_batch_of(c, b, a)


def scalars(c: Bench, x: gs.Tensor) -> gs.Tensor:
    """Matrices of 1 x 1 as what they hold."""
    rank = c.rank(x)
    return c.squeeze(x, [rank - 2, rank - 1])


def diagonal_of(c: Bench, x: gs.Tensor, size: Size | int) -> gs.Tensor:
    """The diagonals of square matrices, [..., size]."""
    held = c.op("Where", diagonal_places(c, size, size), x, c.number(0, c.dtype(x)))
    made: gs.Tensor = c.op("ReduceSum", held, c.ints([c.rank(x) - 1], "axes"), keepdims=0)
    return made


def first_of(c: Bench, wrong: gs.Tensor) -> gs.Tensor:
    """int32: the number, from 1, of the first along the last axis that holds; 0 for none."""
    last = c.rank(wrong) - 1
    numbers = c.cast(wrong, TYPE.INT32)
    if not isinstance(c.size(wrong, last), int) or c.size(wrong, last) == 0:
        # there may be none, and runtimes want one
        numbers = c.concat([numbers, c.filled([*c.sizes(wrong)[:-1], 1], 0, TYPE.INT32)], last)
    first = c.cast(c.op("ArgMax", numbers, axis=last, keepdims=0), TYPE.INT32)
    some = c.op("ReduceMax", numbers, c.ints([last], "axes"), keepdims=0)
    made: gs.Tensor = c.op("Mul", c.op("Add", first, c.number(1, TYPE.INT32)), some)
    return made


def is_read(c: Call, output: int) -> bool:
    """Whether somebody reads an output of the node."""
    outputs = c.node.outputs
    if output >= len(outputs) or outputs[output].is_empty():
        return False
    return bool(outputs[output].outputs) or c.draft.surgery.is_output(outputs[output])
