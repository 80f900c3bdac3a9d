"""Convolutions and pooling of integers, which ONNX has for floats alone: windows are gathered.

A table says for each axis which element is under each tap of each window; what lies outside is a
neutral element behind the last. Sums of products are those of int64, which wrap as PyTorch's do in
any narrower dtype.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx_graphsurgeon as gs

from surgeon.builders.bench import TYPE, Bench, Size
from surgeon.builders.windows import Window
from surgeon.rewrite import Draft, Refused


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis of a window that slides, or is spread by a transposed convolution.

    Attributes:
        window: Its kernel, stride, padding and dilation.
        length: How many elements there are.
        count: How many windows; of a transposed convolution, how many outputs.
        spread: Whether the convolution is transposed.
    """

    window: Window
    length: Size | int
    count: Size | int
    spread: bool = False


def slid(c: Bench, window: Window, length: Size | int) -> Axis:
    """An axis over which a window slides.

    Raises:
        Refused: How many windows there are is known for no length, or there are none.
    """
    if isinstance(length, int):
        return Axis(window, length, window.count(length))
    room = c.sub(c.add(length, window.pads), window.reach)
    if window.ceil and window.stride > 1:
        if not window.never_drops:
            raise Refused(
                "its last window depends on a length known at run time; fix it with `--shape`"
            )
        room = c.add(room, window.stride - 1)
    return Axis(window, length, c.add(c.div(room, window.stride), 1))


def spread(c: Bench, window: Window, length: Size | int, extra: int) -> Axis:
    """An axis of a transposed convolution with so much output padding."""
    whole = c.add(c.mul(c.sub(length, 1), window.stride), window.reach + extra - window.pads)
    if isinstance(whole, int) and whole < 1:
        raise Refused(f"its output would have the length {whole}")
    return Axis(window, length, whole, spread=True)


def _table(c: Bench, axis: Axis) -> gs.Tensor:
    """The element under each tap of each window, int64[kernel, count]; the length for none."""
    window, length = axis.window, axis.length
    taps = np.arange(window.kernel, dtype=np.int64)[:, None] * window.dilation - window.padding
    windows, end = c.count(axis.count), c.vector([length])
    if axis.spread:
        stride = c.ints([window.stride], "stride")
        there = c.op("Sub", windows, c.ints_of(taps, "taps"))
        place = c.op("Div", there, stride)
        outside = c.op("Not", c.op("Equal", c.op("Mul", place, stride), there))
        outside = c.op("Or", outside, c.op("Less", there, c.ints([0], "zero")))
    else:
        first = c.op("Mul", windows, c.ints([window.stride], "stride"))
        place = c.op("Add", first, c.ints_of(taps, "taps"))
        outside = c.op("Less", place, c.ints([0], "zero"))
    inside = c.op("And", c.op("Not", outside), c.op("Less", place, end))
    made: gs.Tensor = c.op("Where", inside, place, end)
    return made


def _gathered(c: Bench, x: gs.Tensor, axes: Sequence[Axis], fill: int) -> gs.Tensor:
    """[N, C, *kernel, *count]: what is under the taps, and `fill` where nothing is."""
    for index, axis in enumerate(axes):
        at = 2 + 2 * index
        sizes: list[Size | int] = c.sizes(x)
        sizes[at] = 1
        x = c.concat([x, c.filled(sizes, fill, c.dtype(x))], at)
        x = c.op("Gather", x, _table(c, axis), axis=at)
    kernels, counts = range(2, c.rank(x), 2), range(3, c.rank(x), 2)
    return c.permute(x, [0, 1, *kernels, *counts])


def convolved(
    draft: Draft,
    x: gs.Tensor,
    weight: gs.Tensor,
    bias: gs.Tensor | None,
    windows: Sequence[Window],
    groups: int,
    extra: Sequence[int] | None,
) -> gs.Tensor:
    """A convolution; transposed where it is given an output padding.

    Args:
        draft: Where the nodes go.
        x: [N, C, ...].
        weight: [O, C / groups, ...], transposed [C, O / groups, ...], of known sizes.
        bias: [O], or None.
        windows: One for each axis behind the channels.
        groups: Of channels, each with kernels of its own.
        extra: What is added to each axis of a transposed convolution; None for a plain one.
    """
    c = Bench(draft)
    dtype, rank = c.dtype(x), len(windows)
    shape = c.shape(weight)
    known = [d for d in shape or () if isinstance(d, int)]
    if len(known) != rank + 2:
        raise Refused("it is of integers, and the shape of its weight is not known")
    lengths = c.sizes(x)[2:]
    if extra is None:
        axes = [slid(c, w, n) for w, n in zip(windows, lengths, strict=True)]
    else:
        axes = [spread(c, *row) for row in zip(windows, lengths, extra, strict=True)]
    x, weight = c.cast(x, TYPE.INT64), c.cast(weight, TYPE.INT64)
    each, taps = known[0] // groups, int(np.prod(known[2:]))
    into, out = (known[1], each) if extra is None else (each, known[1])
    weight = c.reshape(weight, [groups, each, known[1], taps])
    if extra is not None:
        weight = c.permute(weight, [0, 2, 1, 3])
    weight = c.reshape(weight, [groups, out, into * taps])
    counts = [axis.count for axis in axes]
    count, lots = c.product(counts), c.size(x, 0)
    under = c.reshape(_gathered(c, x, axes, 0), [lots, groups, into * taps, count])
    y = c.reshape(c.op("MatMul", weight, under), [lots, groups * out, *counts])
    if bias is not None:
        wide = c.cast(bias, TYPE.INT64)
        y = c.op("Add", y, c.unsqueeze(wide, list(range(1, rank + 1))))
    return c.cast(y, dtype)


def averaged(
    draft: Draft, x: gs.Tensor, windows: Sequence[Window], *, whole: bool, divisor: int | None
) -> gs.Tensor:
    """Sums over windows of int64, divided as C++ does: what is left over is dropped."""
    c, rank = Bench(draft), len(windows)
    lengths = c.sizes(x)[2:]
    axes = [slid(c, w, n) for w, n in zip(windows, lengths, strict=True)]
    counts, taps = [axis.count for axis in axes], int(np.prod([w.kernel for w in windows]))
    lots = c.sizes(x)[:2]
    under = c.reshape(_gathered(c, x, axes, 0), [*lots, taps, c.product(counts)])
    # onnxruntime's ReduceSum goes through doubles, its MatMul does not
    ones = c.draft.constant(np.ones((1, taps), np.int64), "ones")
    sums = c.reshape(c.op("MatMul", ones, under), [*lots, *counts])
    if divisor is not None:
        made: gs.Tensor = c.op("Div", sums, c.ints([divisor], "divisor"))
        return made
    total: gs.Tensor | None = None
    for index, axis in enumerate(axes):
        size = c.unsqueeze(_counted(c, axis, whole=whole), list(range(1, rank - index)))
        total = size if total is None else c.op("Mul", total, size)
    return c.op("Div", sums, total)


def _counted(c: Bench, axis: Axis, *, whole: bool) -> gs.Tensor:
    """How many elements of each window count along an axis, int64[count]."""
    window = axis.window
    first = c.op("Mul", c.count(axis.count), c.ints([window.stride], "stride"))
    first = c.op("Sub", first, c.ints([window.padding], "padding"))
    room = c.vector([c.add(axis.length, window.padding if whole else 0)])
    behind = c.op("Add", first, c.ints([window.kernel], "kernel"))
    behind = c.op("Where", c.op("Less", behind, room), behind, room)
    if not whole:
        zero = c.ints([0], "zero")
        first = c.op("Where", c.op("Less", first, zero), zero, first)
    made: gs.Tensor = c.op("Sub", behind, first)
    return made


def largest(
    draft: Draft, x: gs.Tensor, windows: Sequence[Window], *, indices: bool
) -> tuple[gs.Tensor, gs.Tensor | None]:
    """The largest of each window, and the place in its plane of the first such one."""
    c, rank = Bench(draft), len(windows)
    dtype = c.dtype(x)
    lengths = c.sizes(x)[2:]
    axes = [slid(c, w, n) for w, n in zip(windows, lengths, strict=True)]
    least = int(np.iinfo(np.int64).min) if dtype == TYPE.INT64 else -(1 << 40)
    under = _gathered(c, c.cast(x, TYPE.INT64), axes, least)
    over = c.ints(range(2, 2 + rank), "axes")
    best = c.op("ReduceMax", under, over, keepdims=1)
    y = c.cast(c.squeeze(best, list(range(2, 2 + rank))), dtype)
    if not indices:
        return y, None
    places, inside = None, None
    for index, axis in enumerate(axes):
        table, end = _table(c, axis), c.vector([axis.length])
        here = [i for i in range(2 * rank) if i not in (index, rank + index)]
        table = c.unsqueeze(table, here)  # [*kernel, *count]
        one = c.op("Less", table, end)
        inside = one if inside is None else c.op("And", inside, one)
        places = table if places is None else c.op("Add", c.op("Mul", places, end), table)
    chosen = c.op("And", c.op("Equal", under, best), inside)
    last = c.number(np.iinfo(np.int64).max, TYPE.INT64)
    place = c.op("ReduceMin", c.op("Where", chosen, places, last), over, keepdims=0)
    return y, place
