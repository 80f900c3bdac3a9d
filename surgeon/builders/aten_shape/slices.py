"""Parts of tensors, read and written: slices, splits, reversals, windows; lists of splits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx_graphsurgeon as gs

from surgeon import dims
from surgeon.builders.aten_shape.call import LARGEST, TYPE, Call, Size
from surgeon.builders.bench import Bench
from surgeon.builders.contraction import diagonal
from surgeon.rewrite import Refused


def bound(c: Call, name: str, default: int) -> Size | int:
    """A bound of a slice: a number, or known at run time."""
    found = c.args.given.get(name)
    if found is None:
        return default
    if isinstance(found, list):
        raise Refused(f"`{name}` is a list")
    size = c.scalar(found)
    if isinstance(size, Size) and size.dim is not None:
        known = size.dim
        return known if isinstance(known, int) else size
    return size


def _slice(c: Call) -> gs.Tensor:
    x = c.tensor()
    axis = c.integer("dim")
    if axis < 0:
        axis = c.axis(axis, c.rank(x))
    start, end, step = bound(c, "start", 0), bound(c, "end", LARGEST), bound(c, "step", 1)
    if start == 0 and isinstance(end, int) and end >= 2**31 - 1 and step == 1:
        return x
    if isinstance(step, int) and step < 1:
        raise Refused(f"its step is {step}")
    if isinstance(step, Size) and c.opset < 10:
        raise Refused("its step is known at run time, and a Slice has steps from opset 10 on")
    shape = c.shape(x)
    if isinstance(end, Size) and end.dim is not None and shape is not None and step == 1:
        past = dims.at_most(shape[axis], end.dim)
        if past and start == 0:
            return x
    return c.slice(x, axis, start, end, step)


def _select(c: Call) -> gs.Tensor:
    x = c.tensor()
    dim = c.integer("dim")
    axis = dim if dim >= 0 else c.axis(dim, c.rank(x))
    return select(c, x, axis, bound(c, "index", 0))


def _element(c: Call) -> gs.Tensor:
    """One of a list, as scripted modules take it; counted from the end where it is negative."""
    listed, place = c.args.tensors("list"), c.integer("idx")
    first = c.node.inputs[0]  # flattened lists stand there element by element
    if [t is first for t in listed] == [True] and not c.facts.of(first).dtype:
        raise Refused(f"whether `{first.name}` is a list or its only element is not known")
    if not -len(listed) <= place < len(listed):
        raise Refused(f"element {place} of {len(listed)}")
    return listed[place]


def select(c: Call, x: gs.Tensor, axis: int, index: Size | int) -> gs.Tensor:
    """One element of an axis, which goes."""
    if isinstance(index, int):
        length = c.size(x, axis) if c.facts.of(x).rank is not None else None
        if index < 0 and isinstance(length, int):
            index += length
        if index >= 0:
            return c.op("Gather", x, c.number(index, TYPE.INT64), axis=axis)
        return c.squeeze(c.slice(x, axis, index, index + 1 if index < -1 else LARGEST), [axis])
    where = index.tensor
    if index.dim is None or not dims.not_negative(index.dim):
        where = from_front(c, where, c.size(x, axis))
    scalar = c.op("Reshape", where, c.ints([], "scalar"))
    return c.op("Gather", x, scalar, axis=axis)


def from_front(c: Call, indices: gs.Tensor, length: Size | int) -> gs.Tensor:
    """Indices with those below 0 counted from the end made ones from the front."""
    array = c.facts.array(indices)
    if array is not None and (array >= 0).all():
        return indices
    if array is not None and isinstance(length, int):
        fixed = np.where(array < 0, array + length, array).astype(np.int64)
        return c.draft.constant(fixed, "indices")
    zero = c.number(0, TYPE.INT64)
    below = c.op("Less", indices, zero)
    moved = c.op("Add", indices, c.vector([length], "length"))
    result: gs.Tensor = c.op("Where", below, moved, indices)
    if c.facts.of(indices).rank == 0:
        result = c.op("Reshape", result, c.ints([], "scalar"))
    return result


def _narrow(c: Call) -> gs.Tensor:
    x = c.tensor()
    axis = c.axis(c.integer("dim"), c.rank(x))
    start, length = bound(c, "start", 0), bound(c, "length", 0)
    if isinstance(start, int) and start < 0:
        start = c.add(c.size(x, axis), start)
    elif isinstance(start, Size) and (start.dim is None or not dims.not_negative(start.dim)):
        runtime = start
        start = Size(None, lambda: from_front(c, runtime.tensor, c.size(x, axis)))
    return c.slice(x, axis, start, c.add(start, length))


def reverse(c: Bench, x: gs.Tensor, axes: Sequence[int]) -> gs.Tensor:
    """With the elements of these axes in reverse order."""
    if not axes:
        return x
    if c.opset < 10:  # a Slice has no steps yet
        for axis in axes:
            length = c.size(x, axis)
            last = c.sub(length, 1)
            order = c.op("Sub", c.vector([last], "last"), c.count(length))
            x = c.op("Gather", x, order, axis=axis)
        return x
    count = len(axes)
    return c.op(
        "Slice",
        x,
        c.ints([-1] * count, "starts"),
        c.ints([-LARGEST - 1] * count, "ends"),
        c.ints(axes, "axes"),
        c.ints([-1] * count, "steps"),
    )


def _flip(c: Call) -> gs.Tensor:
    x = c.tensor()
    rank = c.rank(x)
    if c.node.op == "fliplr":
        return reverse(c, x, [1])
    if c.node.op == "flipud":
        return reverse(c, x, [0])
    if rank == 0:
        return x
    return reverse(c, x, sorted({c.axis(int(d), rank) for d in c.args.dims("dims")}))


def _rot90(c: Call) -> gs.Tensor:
    x, k = c.tensor(), c.integer("k") % 4
    rank = c.rank(x)
    first, second = (c.axis(int(d), rank) for d in c.args.dims("dims"))
    if k == 0:
        return x
    if k == 2:
        return reverse(c, x, sorted([first, second]))
    perm = list(range(rank))
    perm[first], perm[second] = second, first
    return c.permute(reverse(c, x, [second if k == 1 else first]), perm)


def _roll(c: Call) -> gs.Tensor:
    x = c.tensor()
    shifts = c.listed("shifts")
    axes = [] if not c.has("dims") or c.is_empty_list("dims") else c.args.dims("dims")
    rank = c.rank(x)
    if rank == 0:
        return x
    if not axes:
        lengths = c.sizes(x)
        return c.reshape(rolled(c, c.flat(x), 0, shifts[0]), lengths)
    for shift, axis in zip(shifts, axes, strict=True):
        x = rolled(c, x, c.axis(int(axis), rank), shift)
    return x


def rolled(c: Call, x: gs.Tensor, axis: int, shift: Size | int) -> gs.Tensor:
    """Moved along an axis; what leaves at its end comes in at its begin."""
    length = c.size(x, axis)
    if isinstance(length, int) and isinstance(shift, int):
        at: Size | int = -shift % length if length else 0
        if at == 0:
            return x
    elif shift == 0:
        return x
    else:  # -shift modulo the length, which could be 0
        back = c.sub(0, shift)
        some = c.add(length, 0)
        at = Size(
            None,
            lambda: _modulo(c, c.vector([back]), c.vector([some])),
        )
    return c.concat([c.slice(x, axis, at, LARGEST), c.slice(x, axis, 0, at)], axis)


def _modulo(c: Call, a: gs.Tensor, n: gs.Tensor) -> gs.Tensor:
    """a modulo n with the sign of n; 0 where n is 0."""
    empty = c.op("Equal", n, c.ints([0], "zero"))
    divisor = c.op("Where", empty, c.ints([1], "one"), n)
    return c.op("Mod", a, divisor)


def _unfold(c: Call) -> gs.Tensor:
    x = c.tensor()
    size, step, rank = c.counted("size"), c.counted("step"), c.rank(x)
    if rank == 0:
        return c.op("Reshape", x, c.ints([1], "target"))
    axis = c.axis(c.integer("dimension"), rank)
    length = c.size(x, axis)
    count = c.add(c.div(c.sub(length, size), step), 1)
    if isinstance(count, int) and isinstance(size, int) and isinstance(step, int):
        starts = np.arange(count, dtype=np.int64)[:, None] * step
        index = c.draft.constant(starts + np.arange(size, dtype=np.int64), "windows")
    else:
        begin = c.op("Mul", c.count(count), c.vector([step]))
        index = c.op("Add", c.unsqueeze(begin, [1]), c.count(size))
    windows = c.op("Gather", x, index, axis=axis)
    return c.permute(windows, [i for i in range(rank + 1) if i != axis + 1] + [axis + 1])


def _diagonal(c: Call) -> gs.Tensor:
    x = c.tensor()
    rank = c.rank(x)
    return diagonal(
        c,
        x,
        c.counted("offset"),
        c.axis(c.integer("dim1"), rank),
        c.axis(c.integer("dim2"), rank),
    )


def _diag(c: Call) -> gs.Tensor:
    x = c.tensor()
    rank = c.rank(x)
    if rank not in (1, 2):
        raise Refused(f"its input has rank {rank}")
    if rank == 2:
        return diagonal(c, x, c.counted("diagonal"), 0, 1)
    return embed_diagonal(c, x, c.integer("diagonal"))


def _diagflat(c: Call) -> gs.Tensor:
    return embed_diagonal(c, c.flat(c.tensor()), c.integer("offset"))


def _diag_embed(c: Call) -> gs.Tensor:
    x = c.tensor()
    rank = c.rank(x) + 1
    first, second = (c.axis(c.integer(n), rank) for n in ("dim1", "dim2"))
    offset = c.integer("offset")
    matrix = embed_diagonal(c, x, offset)
    perm: list[int] = []
    rest = iter(range(rank - 2))
    for axis in range(rank):
        perm.append(rank - 2 if axis == first else rank - 1 if axis == second else next(rest))
    return c.permute(matrix, perm)


def embed_diagonal(c: Call, x: gs.Tensor, offset: int) -> gs.Tensor:
    """Matrices of the last axis on a diagonal, zeros elsewhere."""
    rank, dtype = c.rank(x), c.dtype(x)
    *batch, length = c.sizes(x)
    side = c.add(length, abs(offset))
    if offset:
        pad = c.filled([*batch, abs(offset)], 0, dtype)
        x = c.concat([pad, x] if offset > 0 else [x, pad], rank - 1)
    place = c.count(side)
    rows = c.op("Add", c.unsqueeze(place, [1]), c.ints([offset], "offset"))
    on = c.op("Equal", rows, c.unsqueeze(place, [0]))
    zero = c.number(0, dtype)
    return c.where(on, c.unsqueeze(x, [rank - 1]), zero)


def _trace(c: Call) -> gs.Tensor:
    line = diagonal(c, c.tensor(), 0, 0, 1)
    if c.dtype(line) not in (TYPE.FLOAT, TYPE.DOUBLE, TYPE.FLOAT16, TYPE.BFLOAT16):
        line = c.cast(line, TYPE.INT64)
    return c.op("ReduceSum", line, c.ints([0], "axes"), keepdims=0)


def _part_scatter(c: Call) -> gs.Tensor:
    """`select_scatter` and `slice_scatter`."""
    return with_part(c, c.tensor(), c.cast(c.tensor("src"), c.dtype(c.tensor())))


def with_part(c: Call, x: gs.Tensor, source: gs.Tensor) -> gs.Tensor:
    """Part of an axis replaced: `index` of `dim`, or what `start`, `end` and `step` name."""
    rank = c.rank(x)
    axis = c.axis(c.integer("dim"), rank)
    length = c.size(x, axis)
    if c.args.schema.takes("index"):
        start: Size | int = bound(c, "index", 0)
        source, step = c.unsqueeze(source, [axis]), 1
        end: Size | int = LARGEST
        if isinstance(start, int) and start != -1:
            end = start + 1
    else:
        start, end, step = bound(c, "start", 0), bound(c, "end", LARGEST), c.integer("step")
    if isinstance(length, int) and isinstance(start, int) and isinstance(end, int):
        order = np.arange(length, dtype=np.int64)
        taken = order[slice(start, end, step)]
        order[taken] = length + np.arange(len(taken))
        both = c.op("Concat", x, source, axis=axis)
        return c.op("Gather", both, c.draft.constant(order, "order"), axis=axis)
    open_ended = isinstance(end, int) and end >= 2**31 - 1
    alike = isinstance(end, int) and isinstance(start, int) and (end < 0) == (start < 0)
    if step != 1 or not isinstance(start, int) or not (open_ended or alike):
        return _written(c, x, source, axis, start, step)
    if isinstance(end, int) and alike:
        end = max(start, end)  # nothing is between, where it ends before it starts
    parts = [source]
    if start != 0:
        parts.insert(0, c.slice(x, axis, 0, start))
    if not open_ended:
        parts.append(c.slice(x, axis, end, LARGEST))
    return c.concat(parts, axis)


def _written(
    c: Call, x: gs.Tensor, source: gs.Tensor, axis: int, start: Size | int, step: int
) -> gs.Tensor:
    """As many places as the source has along an axis, from `start` on."""
    length, count = c.vector([c.size(x, axis)]), c.count(c.size(source, axis))
    first = c.vector([start], "start")
    if not isinstance(start, int) or start < 0:
        turned = c.op("Add", first, length)
        first = c.op("Where", c.op("Less", first, c.ints([0], "zero")), turned, first)
        first = c.op("Max", first, c.ints([0], "zero"))
    places = c.op("Add", c.op("Mul", count, c.ints([step], "step")), first)
    wide = c.unsqueeze(places, list(range(1, c.rank(x) - axis)))
    index = c.op("Expand", wide, c.op("Shape", source))
    written: gs.Tensor = c.op("ScatterElements", x, index, source, axis=axis)
    return written


LOWERINGS: Mapping[str, Callable[[Call], Any]] = {
    "slice": _slice,
    "__getitem__": _element,
    "select": _select,
    "narrow": _narrow,
    **dict.fromkeys(("flip", "fliplr", "flipud"), _flip),
    "rot90": _rot90,
    "roll": _roll,
    "unfold": _unfold,
    "diagonal": _diagonal,
    "diag": _diag,
    "diagflat": _diagflat,
    "diag_embed": _diag_embed,
    "trace": _trace,
    **dict.fromkeys(("select_scatter", "slice_scatter"), _part_scatter),
}
