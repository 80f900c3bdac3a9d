"""What falls on one place, combined: by the runtime where it can, else by a table or in turns."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx_graphsurgeon as gs

from surgeon import dims
from surgeon.builders.aten_shape.indices import at_places
from surgeon.builders.bench import NARROW, TYPE, Bench
from surgeon.builders.turns import in_turns
from surgeon.facts.fact import same_dims
from surgeon.facts.kinds import FLOATS
from surgeon.rewrite import Draft

_LARGEST_TABLE = 1 << 24  # elements of a comparison of every place with every index
_SINCE = {"add": 16, "mul": 16, "max": 18, "min": 18}  # of `reduction`


def neutral(dtype: int, kind: str) -> Any:
    """What changes nothing when it is combined."""
    if kind in ("add", "mul"):
        return 0 if kind == "add" else 1
    if dtype == TYPE.BOOL:
        return kind == "min"
    if dtype in FLOATS:
        return -np.inf if kind == "max" else np.inf
    limits = np.iinfo(onnx.helper.tensor_dtype_to_np_dtype(dtype))
    return limits.min if kind == "max" else limits.max


def combined_lines(
    c: Bench, x: gs.Tensor, index: gs.Tensor, lines: gs.Tensor, kind: str
) -> gs.Tensor:
    """Lines of `x` (its first axis), each with the lines that the index sends there.

    `index` has an element for each line, whatever its rank, and counts from the front.
    """
    dtype = c.dtype(x)
    if (way := _by_way(dtype)) != dtype:
        made = combined_lines(c, c.cast(x, way), index, c.cast(lines, way), kind)
        return c.cast(made, dtype)
    if c.opset >= _SINCE[kind]:
        scattered: gs.Tensor = c.op("ScatterND", x, c.column(index), lines, reduction=kind)
        return scattered
    if kind == "add" and _fits_a_table(c, x, index):
        return _added_by_table(c, x, index, lines)
    return _in_turns(c, x, c.column(index, c.rank(x)), lines, kind)


def combined_elements(
    c: Bench, x: gs.Tensor, index: gs.Tensor, source: gs.Tensor, axis: int, kind: str
) -> gs.Tensor:
    """Elements of `x`, each with those that the index sends there along an axis."""
    dtype = c.dtype(x)
    if (way := _by_way(dtype)) != dtype:
        made = combined_elements(c, c.cast(x, way), index, c.cast(source, way), axis, kind)
        return c.cast(made, dtype)
    if c.opset >= _SINCE[kind]:
        scattered: gs.Tensor = c.op("ScatterElements", x, index, source, axis=axis, reduction=kind)
        return scattered
    there = [axis, *[i for i in range(c.rank(x)) if i != axis]]
    moved = [c.permute(t, there) for t in (x, index, source)]
    mine, its = c.shape(moved[0]), c.shape(moved[1])
    beside = mine is not None and its is not None and same_dims(mine[1:], its[1:])
    if beside and not (kind == "add" and _fits_a_table(c, x, index)):
        result = _in_turns(c, moved[0], moved[1], moved[2], kind)
        return c.permute(result, [there.index(i) for i in range(c.rank(x))])
    lengths, places = c.sizes(x), c.flat(at_places(c, x, index, axis))
    return c.reshape(combined_lines(c, c.flat(x), places, c.flat(source), kind), lengths)


def _by_way(dtype: int) -> int:
    """The dtype in which runtimes combine: half precision by single, bytes as they wrap."""
    if dtype in (TYPE.FLOAT16, TYPE.BFLOAT16):
        return int(TYPE.FLOAT)
    return int(TYPE.INT32) if dtype in NARROW else dtype


def _fits_a_table(c: Bench, x: gs.Tensor, index: gs.Tensor) -> bool:
    shapes = c.shape(x), c.shape(index)
    if shapes[0] is None or shapes[1] is None:
        return False
    room = dims.product([*shapes[0], *shapes[1]])
    return isinstance(room, int) and room <= _LARGEST_TABLE


def _added_by_table(c: Bench, x: gs.Tensor, index: gs.Tensor, lines: gs.Tensor) -> gs.Tensor:
    """Sums by comparing every place with every index: right for repeated ones, in any opset."""
    rank = c.rank(lines)
    places = c.unsqueeze(c.count(c.size(x, 0)), list(range(1, rank + 1)))
    hit = c.op("Equal", places, c.column(index, rank))
    found = c.where(hit, lines, c.number(0, c.dtype(x)))
    total = c.op("ReduceSum", found, c.ints([1], "axes"), keepdims=0)
    made: gs.Tensor = c.op("Add", x, total)
    return made


def _in_turns(c: Bench, x: gs.Tensor, index: gs.Tensor, source: gs.Tensor, kind: str) -> gs.Tensor:
    """One line of the source after the other, each wherever its line of the index names the place.

    All run along the first axis; besides it the index is as long as `x`, or 1.
    """
    count = c.size(index, 0)
    if count == 0:
        return x
    if not isinstance(count, int):  # a turn that changes nothing: a Scan has one at least
        ends = [
            c.filled([1, *c.sizes(t)[1:]], v, c.dtype(t)) for t, v in ((index, -1), (source, 0))
        ]
        index, source = (c.concat([t, e], 0) for t, e in zip((index, source), ends, strict=True))
    numbers = c.unsqueeze(c.count(c.size(index, 0)), [1])
    places = c.unsqueeze(c.count(c.size(x, 0)), list(range(1, c.rank(x))))

    def step(draft: Draft, state: list[gs.Tensor], number: gs.Tensor) -> list[gs.Tensor]:
        b, (x,) = Bench(draft), state
        row, line = (b.op("Gather", t, number, axis=0) for t in (index, source))
        return [b.op("Where", b.op("Equal", places, row), _combined(b, x, line, kind), x)]

    (found,) = in_turns(c.draft, [x], numbers, step)
    return found


def _combined(b: Bench, x: gs.Tensor, line: gs.Tensor, kind: str) -> Any:
    if kind in ("add", "mul"):
        return b.op("Add" if kind == "add" else "Mul", x, line)
    if b.dtype(x) in FLOATS:
        return b.op("Max" if kind == "max" else "Min", x, line)
    less = b.op("Less", x, line)
    return b.op("Where", less, line, x) if kind == "max" else b.op("Where", less, x, line)
