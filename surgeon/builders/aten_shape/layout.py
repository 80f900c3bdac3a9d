"""Places in memory, diagonals and masks that are read or written; tables of indices."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import onnx
import onnx_graphsurgeon as gs

from surgeon.builders.aten_shape.call import TYPE, Call, Size
from surgeon.builders.aten_shape.slices import rolled
from surgeon.builders.contraction import diagonal
from surgeon.builders.scalar_types import PARTS
from surgeon.dims import Dim
from surgeon.facts.fact import Array
from surgeon.rewrite import Refused

_LARGEST = 1 << 20  # elements of a table of places
_MOST_AT_A_TIME = 3  # of a line of any length, of which all tuples are made


def _places(c: Call) -> Array:
    """Where in memory each element of a strided view stands."""
    size, stride = ([int(n) for n in c.value(name)] for name in ("size", "stride"))
    start = c.integer("storage_offset") if c.has("storage_offset") else 0
    if int(np.prod(size, dtype=object)) > _LARGEST:
        raise Refused(f"its view has more than {_LARGEST} elements")
    places = np.full(size, start, np.int64)
    for axis, (length, step) in enumerate(zip(size, stride, strict=True)):
        line = np.arange(length, dtype=np.int64) * step
        places = places + line.reshape([-1] + [1] * (len(size) - axis - 1))
    return places


def _as_strided(c: Call) -> gs.Tensor:
    sizes, steps = c.listed("size"), c.listed("stride")
    start = c.scalar(t) if isinstance(t := c.args.given.get("storage_offset"), gs.Tensor) else 0
    if all(isinstance(n, int) for n in (*sizes, *steps, start)):
        return c.op("Gather", c.flat(c.tensor()), c.ints_of(_places(c)), axis=0)
    if len(sizes) != len(steps) or not sizes:
        raise Refused(f"it has {len(sizes)} sizes and {len(steps)} strides")
    places = c.vector([start], "start")
    for axis, (length, step) in enumerate(zip(sizes, steps, strict=True)):
        line = c.op("Mul", c.count(length), c.vector([step], "step"))
        behind = len(sizes) - axis - 1
        places = c.op("Add", places, c.unsqueeze(line, [*range(1, behind + 1)]) if behind else line)
    return c.op("Gather", c.flat(c.tensor()), places, axis=0)


def _as_strided_scatter(c: Call) -> gs.Tensor:
    x, places = c.tensor(), _places(c).reshape(-1)
    whole = c.product(c.sizes(x))
    if len(np.unique(places)) < len(places):
        raise Refused("places of its view overlap, and which write is the last is not said")
    source = c.flat(c.cast(c.tensor("src"), c.dtype(x)))
    if not isinstance(whole, int):
        y = c.op("ScatterElements", c.flat(x), c.ints_of(places), source, axis=0)
        return c.reshape(y, c.sizes(x))
    order = np.arange(whole, dtype=np.int64)
    order[places] = whole + np.arange(len(places))
    both = c.concat([c.flat(x), source], 0)
    return c.reshape(c.op("Gather", both, c.ints_of(order), axis=0), c.sizes(x))


def _linalg_diagonal(c: Call) -> gs.Tensor:
    x = c.tensor("A")
    first, second = (c.axis(c.integer(n), c.rank(x)) for n in ("dim1", "dim2"))
    return diagonal(c, x, c.counted("offset"), first, second)


def _diagonal_scatter(c: Call) -> gs.Tensor:
    return with_diagonal(c, c.tensor(), c.cast(c.tensor("src"), c.dtype(c.tensor())))


def with_diagonal(c: Call, x: gs.Tensor, source: gs.Tensor) -> gs.Tensor:
    """The source along rows or columns of a matrix, where the diagonal passes."""
    rank, offset = c.rank(x), c.integer("offset")
    first, second = (c.axis(c.integer(n), rank) for n in ("dim1", "dim2"))
    if first == second:
        raise Refused(f"dim1 and dim2 are both {first}")
    there = [i for i in range(rank) if i not in (first, second)] + [first, second]
    y = c.permute(x, there)
    rows, columns = c.size(y, rank - 2), c.size(y, rank - 1)
    last = c.sub(c.size(source, rank - 2), 1)
    if last == -1:
        return x
    line = c.count(rows if offset >= 0 else columns)
    index = c.op("Min", line, c.vector([last], "last"))  # beyond the diagonal nothing is taken
    wide = c.op("Gather", source, index, axis=rank - 2)
    wide = c.unsqueeze(wide, [rank - 1 if offset >= 0 else rank - 2])
    down, across = c.unsqueeze(c.count(rows), [1]), c.unsqueeze(c.count(columns), [0])
    here = c.op("Equal", across, c.op("Add", down, c.ints([offset], "offset")))
    made = c.where(here, wide, y)
    return c.permute(made, [there.index(i) for i in range(rank)])


def _broadcasts_into(shape: tuple[Dim, ...] | None, other: tuple[Dim, ...] | None) -> bool:
    """Whether one shape is proven to leave the other as it is."""
    if shape is None or other is None or len(shape) > len(other):
        return False
    return all(a in (1, b) for a, b in zip(reversed(shape), reversed(other), strict=False))


def _masked_scatter(c: Call) -> gs.Tensor:
    return scattered(c, c.tensor(), c.cast(c.tensor("mask"), TYPE.BOOL), c.tensor("source"))


def scattered(c: Call, x: gs.Tensor, mask: gs.Tensor, source: gs.Tensor) -> gs.Tensor:
    """Where the mask holds for the n-th time, the n-th element of the source."""
    if not _broadcasts_into(c.shape(mask), c.shape(x)):
        x = c.op("Expand", x, c.op("Shape", mask))  # to the shape of both
    mask = c.op("Expand", mask, c.op("Shape", x))
    count = c.cast(c.flat(mask), TYPE.INT64)
    so_far = c.op("CumSum", count, c.number(0, TYPE.INT64))
    index = c.op("Max", c.op("Sub", so_far, c.ints([1], "one")), c.ints([0], "zero"))
    source = c.flat(c.cast(source, c.dtype(x)))
    source = c.concat([source, c.filled([1], 0, c.dtype(x))], 0)  # there may be none
    taken = c.reshape(c.op("Gather", source, index, axis=0), c.sizes(x))
    return c.where(mask, taken, x)


def _fill(c: Call) -> gs.Tensor:
    """`fill` and `copy`: another tensor in the shape and the dtype of the first."""
    x = c.tensor()
    value = c.cast(c.tensor("src" if c.node.op == "copy" else "value"), c.dtype(x))
    return c.op("Expand", value, c.op("Shape", x))


def _fill_diagonal(c: Call) -> gs.Tensor:
    """One number where all indices are equal; `wrap` begins anew below a tall matrix's width."""
    x, rank = c.tensor(), c.rank(c.tensor())
    if rank < 2:
        raise Refused(f"its input has rank {rank}")
    *before, last = (c.count(n) for n in c.sizes(x))
    if rank == 2 and c.value("wrap"):
        period = c.vector([c.add(c.size(x, 1), 1)], "period")
        before = [c.op("Mod", before[0], period)]
    here = None
    for axis, line in enumerate(before):
        same = c.op("Equal", c.unsqueeze(line, [*range(1, rank - axis)]), last)
        here = same if here is None else c.op("And", here, same)
    return c.where(here, c.cast(c.tensor("fill_value"), c.dtype(x)), x)


def _shifted(c: Call) -> gs.Tensor:
    """`fft_fftshift` brings what stands first to the middle, `fft_ifftshift` back."""
    x = c.tensor()
    rank = c.rank(x)
    axes = range(rank) if not c.has("dim") else [c.axis(int(d), rank) for d in c.args.dims("dim")]
    for axis in axes:
        half: Size | int = c.div(c.size(x, axis), 2)
        x = rolled(c, x, axis, half if c.node.op == "fft_fftshift" else c.sub(0, half))
    return x


def _triangle_indices(c: Call) -> gs.Tensor:
    rows, columns, offset = c.counted("row"), c.counted("col"), c.integer("offset")
    if not isinstance(rows, int) or not isinstance(columns, int):
        return _computed_triangle(c, rows, columns, offset)
    if rows * columns > _LARGEST:
        raise Refused(f"a matrix of {rows} x {columns}")
    ones = np.ones((rows, columns), np.bool_)
    found = np.nonzero(
        np.tril(ones, offset) if c.node.op == "tril_indices" else np.triu(ones, offset)
    )
    kind = onnx.helper.tensor_dtype_to_np_dtype(c.wanted_dtype(TYPE.INT64))
    return c.draft.constant(np.stack(found).astype(kind), "indices")


def _computed_triangle(c: Call, rows: Size | int, columns: Size | int, offset: int) -> gs.Tensor:
    """The places in a matrix whose sizes are known at run time, row by row."""
    down = c.op("Add", c.unsqueeze(c.count(rows), [1]), c.ints([offset], "offset"))
    along = c.unsqueeze(c.count(columns), [0])
    lower = c.node.op == "tril_indices"
    outside = c.op("Less", *((down, along) if lower else (along, down)))
    found = c.op("NonZero", c.op("Not", outside))
    return c.cast(found, c.wanted_dtype(TYPE.INT64))


def _chosen(c: Call, x: gs.Tensor, length: Size, count: int) -> gs.Tensor:
    """So many at a time of a line of any length: of all tuples, those whose places rise."""
    if not 0 < count <= _MOST_AT_A_TIME:
        raise Refused(f"its length is known at run time only, and it takes {count} at a time")
    lines = [
        c.unsqueeze(c.count(length), [i for i in range(count) if i != axis])
        for axis in range(count)
    ]
    wide = c.vector([length] * count)
    table = c.concat([c.unsqueeze(c.flat(c.op("Expand", t, wide)), [1]) for t in lines], 1)
    falls: gs.Tensor = c.filled([length] * count, 0, TYPE.BOOL)
    for before, behind in pairwise(lines):
        wrong = c.op("Less", behind, before)
        if not bool(c.value("with_replacement")):
            wrong = c.op("Or", wrong, c.op("Equal", behind, before))
        falls = c.op("Or", falls, wrong)
    table = c.op("Compress", table, c.flat(c.op("Not", falls)), axis=0)
    return c.op("Gather", x, table, axis=0)


def _combinations(c: Call) -> gs.Tensor:
    x, count = c.tensor(), c.integer("r")
    length = c.size(x, 0)
    if count == 0:  # an empty line, and none of nothing
        return c.slice(x, 0, 0, 0)
    if not isinstance(length, int):
        return _chosen(c, x, length, count)
    choose = itertools.combinations_with_replacement
    if not bool(c.value("with_replacement")):
        choose = itertools.combinations  # type: ignore[assignment]
    found = list(itertools.islice(choose(range(length), count), _LARGEST + 1))
    if len(found) > _LARGEST:
        raise Refused(f"there are more than {_LARGEST} combinations")
    table = np.asarray(found, np.int64).reshape(-1, count)
    return c.op("Gather", x, c.ints_of(table), axis=0)


def _same_of_real(c: Call) -> gs.Tensor:
    """What only turns or copies complex numbers leaves real ones as they are."""
    x = c.tensor()
    if c.dtype(x) in PARTS:
        raise Refused(f"`{x.name}` is complex")
    return x


def _adjoint(c: Call) -> gs.Tensor:
    x = _same_of_real(c)
    rank = c.rank(x)
    if rank == 0 and c.node.op != "adjoint":
        return x
    if rank < 2 or (c.node.op == "matrix_H" and rank != 2):
        raise Refused(f"its input has rank {rank}")
    return c.permute(x, [*range(rank - 2), rank - 1, rank - 2])


def _dim(c: Call) -> gs.Tensor:
    """How many axes there are; of what a Loop carries that is known at run time."""
    rank = c.facts.of(c.tensor()).rank
    if rank is not None:
        return c.number(rank, TYPE.INT64)
    count: gs.Tensor = c.op("Size", c.op("Shape", c.tensor()))
    return count


LOWERINGS: Mapping[str, Callable[[Call], Any]] = {
    "dim": _dim,
    "as_strided": _as_strided,
    "as_strided_scatter": _as_strided_scatter,
    "linalg_diagonal": _linalg_diagonal,
    "diagonal_scatter": _diagonal_scatter,
    "masked_scatter": _masked_scatter,
    **dict.fromkeys(("fill", "copy"), _fill),
    "fill_diagonal": _fill_diagonal,
    **dict.fromkeys(("fft_fftshift", "fft_ifftshift"), _shifted),
    **dict.fromkeys(("tril_indices", "triu_indices"), _triangle_indices),
    "combinations": _combinations,
    **dict.fromkeys(
        "lift cpu cuda data pin_memory conj conj_physical _conj _conj_physical resolve_conj "
        "resolve_neg".split(),
        _same_of_real,
    ),
    **dict.fromkeys(("mH", "matrix_H", "adjoint"), _adjoint),
}
