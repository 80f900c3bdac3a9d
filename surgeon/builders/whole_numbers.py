"""Convolutions and pooling of integers, which ONNX has for floats alone: windows are gathered.

A table says for each axis which element is under each tap of each window; what lies outside is a
neutral element behind the last. Sums of products are those of int64, which wrap as PyTorch's do in
any narrower dtype; they are products of matrices, because onnxruntime's sums go through doubles.
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


def _slid(c: Bench, window: Window, length: Size | int) -> Axis:
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


def _spread(c: Bench, window: Window, length: Size | int, extra: int) -> Axis:
    whole = c.add(c.mul(c.sub(length, 1), window.stride), window.reach + extra - window.pads)
    if isinstance(whole, int) and whole < 1:
        raise Refused(f"its output would have the length {whole}")
    return Axis(window, length, whole, spread=True)


def _table(c: Bench, axis: Axis) -> gs.Tensor:
    """The element under each tap of each window, int64[kernel, count]; the length for none."""
    window, end = axis.window, c.vector([axis.length])
    apart = np.arange(window.kernel)[:, None] * window.dilation - window.padding
    taps = c.ints_of(apart, "taps")
    windows, stride = c.count(axis.count), c.ints([window.stride], "stride")
    zero = c.ints([0], "zero")
    if axis.spread:
        there = c.op("Sub", windows, taps)
        place = c.op("Div", there, stride)
        outside = c.op("Not", c.op("Equal", c.op("Mul", place, stride), there))
        outside = c.op("Or", outside, c.op("Less", there, zero))
    else:
        place = c.op("Add", c.op("Mul", windows, stride), taps)
        outside = c.op("Less", place, zero)
    inside = c.op("And", c.op("Not", outside), c.op("Less", place, end))
    made: gs.Tensor = c.op("Where", inside, place, end)
    return made


def _under(c: Bench, x: gs.Tensor, axis: Axis, at: int, fill: int) -> gs.Tensor:
    """[..., kernel, count, ...]: what is under the taps, and `fill` where nothing is."""
    sizes: list[Size | int] = c.sizes(x)
    sizes[at] = 1
    x = c.concat([x, c.filled(sizes, fill, c.dtype(x))], at)
    made: gs.Tensor = c.op("Gather", x, _table(c, axis), axis=at)
    return made


def _gathered(c: Bench, x: gs.Tensor, axes: Sequence[Axis], fill: int) -> gs.Tensor:
    """[N, C, *kernel, *count]."""
    for index, axis in enumerate(axes):
        x = _under(c, x, axis, 2 + 2 * index, fill)
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
        weight: [O, C / groups, ...], transposed [C, O / groups, ...].
        bias: [O], or None.
        windows: One for each axis behind the channels; their kernels are the weight's.
        groups: Of channels, each with kernels of its own.
        extra: What is added to each axis of a transposed convolution; None for a plain one.
    """
    c = Bench(draft)
    dtype, rank = c.dtype(x), len(windows)
    first, second = c.sizes(weight)[:2]
    lengths = c.sizes(x)[2:]
    if extra is None:
        axes = [_slid(c, *row) for row in zip(windows, lengths, strict=True)]
    else:
        axes = [_spread(c, *row) for row in zip(windows, lengths, extra, strict=True)]
    x, weight = c.cast(x, TYPE.INT64), c.cast(weight, TYPE.INT64)
    taps = int(np.prod([w.kernel for w in windows]))
    into, out = second, c.div(first, groups)
    weight = c.reshape(weight, [groups, out, into, taps])
    if extra is not None:
        weight, into, out = c.permute(weight, [0, 2, 1, 3]), out, into
    weight = c.reshape(weight, [groups, out, c.mul(into, taps)])
    counts = [axis.count for axis in axes]
    count, lots = c.product(counts), c.size(x, 0)
    under = c.reshape(_gathered(c, x, axes, 0), [lots, groups, c.mul(into, taps), count])
    y = c.reshape(c.op("MatMul", weight, under), [lots, c.mul(out, groups), *counts])
    if bias is not None:
        y = c.op("Add", y, c.unsqueeze(c.cast(bias, TYPE.INT64), list(range(1, rank + 1))))
    return c.cast(y, dtype)


def averaged(
    draft: Draft, x: gs.Tensor, windows: Sequence[Window], *, whole: bool, divisor: int | None
) -> gs.Tensor:
    """Sums over windows of int64, divided as C++ does: what is left over is dropped."""
    c, rank = Bench(draft), len(windows)
    lengths = c.sizes(x)[2:]
    axes = [_slid(c, w, n) for w, n in zip(windows, lengths, strict=True)]
    for at, axis in enumerate(axes, 2):
        under = _under(c, x, axis, at, 0)
        x = c.op("MatMul", _last(c, under, at), _ones(c, axis.window.kernel))
        x = c.squeeze(x, [rank + 2])
    if divisor is not None:
        return _divided(c, x, c.ints([divisor], "divisor"))
    total: gs.Tensor | None = None
    for index, axis in enumerate(axes):
        size = c.unsqueeze(_counted(c, axis, whole=whole), list(range(1, rank - index)))
        total = size if total is None else c.op("Mul", total, size)
    assert total is not None
    return _divided(c, x, total)


def _last(c: Bench, x: gs.Tensor, at: int) -> gs.Tensor:
    """This axis behind the others."""
    return c.permute(x, [*(i for i in range(c.rank(x)) if i != at), at])


def _ones(c: Bench, count: int) -> gs.Tensor:
    return c.ints_of(np.ones((count, 1)), "ones")


def _divided(c: Bench, x: gs.Tensor, by: gs.Tensor) -> gs.Tensor:
    made: gs.Tensor = c.op("Div", x, by)
    return made


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


def averaged_bins(
    draft: Draft, x: gs.Tensor, bins: Sequence[Sequence[tuple[int, int]] | None]
) -> gs.Tensor:
    """Averages of int64 over bins [start, end) of each axis behind the channels; None keeps it."""
    c, rank = Bench(draft), len(bins)
    total = np.ones([1] * rank, np.int64)
    for index, edges in enumerate(bins):
        if edges is None:
            continue
        places = np.arange(max(end for _, end in edges))
        under = [(start <= places) & (places < end) for start, end in edges]
        matrix = c.ints_of(np.array(under).T, "bins")  # [length, count]
        x = c.op("MatMul", _last(c, x, 2 + index), matrix)
        back = [*range(2 + index), rank + 1, *range(2 + index, rank + 1)]
        x = c.permute(x, back)
        sizes = np.array([end - start for start, end in edges], np.int64)
        total = total * sizes.reshape([-1 if i == index else 1 for i in range(rank)])
    return _divided(c, x, c.ints_of(total, "sizes"))


def largest(
    draft: Draft, x: gs.Tensor, windows: Sequence[Window], *, indices: bool
) -> tuple[gs.Tensor, gs.Tensor | None]:
    """The largest of each window, and the place in its plane of the first such one."""
    c, rank = Bench(draft), len(windows)
    dtype = c.dtype(x)
    lengths = c.sizes(x)[2:]
    axes = [_slid(c, w, n) for w, n in zip(windows, lengths, strict=True)]
    least = int(np.iinfo(np.int64).min)
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
