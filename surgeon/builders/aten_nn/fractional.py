"""Fractional maximum pooling: windows whose first places follow from a sample of each plane.

Place i of O over I elements with windows of K is trunc((i + u) * a) - trunc(u * a), a being
(I - K) / (O - 1), in the dtype of the sample u; the last place is I - K
(ATen/native/FractionalMaxPooling.h).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx_graphsurgeon as gs

from surgeon.arguments import bind
from surgeon.builders import parts
from surgeon.builders.bench import TYPE, Bench, Size
from surgeon.builders.windows import digit_of
from surgeon.facts.kinds import FLOATS, HALVES
from surgeon.match import Match
from surgeon.rewrite import Draft, Refused


def fractional_max_pool(draft: Draft, match: Match) -> Any:
    """`aten.fractional_max_pool{2,3}d (x, kernel_size, output_size, random_samples)`."""
    c, args = Bench(draft), bind(match.root, draft.facts)
    spatial = digit_of(match.root.op)
    x, samples = args.tensor("self"), args.tensor("random_samples")
    dtype = c.dtype(x)
    if dtype not in FLOATS or c.dtype(samples) != dtype:
        raise Refused(
            "its windows are placed in the dtype of its input, and its samples have another"
        )
    if dtype == TYPE.DOUBLE and c.opset < 11:
        raise Refused("`ArgMax` in double precision needs opset 11")
    kernel = parts.per_axis(args.value("kernel_size"), spatial, "kernel_size")
    outs = parts.per_axis(args.value("output_size"), spatial, "output_size")
    rank = c.rank(x)
    if rank not in (spatial + 1, spatial + 2) or min(*kernel, *outs) < 1:
        raise Refused(f"its input has rank {rank}, its windows {kernel} and its output {outs}")
    batched = rank == spatial + 2
    x = x if batched else c.unsqueeze(x, [0])
    sizes = c.sizes(x)
    lots = c.mul(sizes[0], sizes[1])
    if c.size(samples, 0) != sizes[0]:  # PyTorch takes samples for more images than there are
        samples = c.slice(samples, 0, 0, sizes[0])
    samples = c.reshape(samples, [lots, spatial])
    if dtype in HALVES:  # each of their elements is one of single precision
        x = c.cast(x, TYPE.FLOAT)
    places = _places(c, samples, sizes[2:], kernel, outs)
    area = [int(np.prod(outs)), int(np.prod(kernel))]
    places = c.reshape(places, [lots, *area])
    values, found = _largest(c, x, places, area[1], lots, c.product(sizes[2:]))
    shape = [*(sizes[:2] if batched else sizes[1:2]), *outs]
    return c.reshape(c.cast(values, dtype), shape), c.reshape(found, shape)


def _places(
    c: Bench, samples: gs.Tensor, lengths: list[Size | int], kernel: list[int], outs: list[int]
) -> gs.Tensor:
    """The places in its plane of all that each window holds, [planes, *outs, *kernel]."""
    spatial = len(kernel)
    found: gs.Tensor | None = None
    for axis, length in enumerate(lengths):
        # the samples of a plane are those of its width and its height, of a volume in order
        column = spatial - 1 - axis if spatial == 2 else axis
        sample = c.slice(samples, 1, column, column + 1)
        starts = _starts(c, sample, length, kernel[axis], outs[axis])
        starts = c.unsqueeze(starts, [2])
        here = c.op("Add", starts, c.count(kernel[axis]))  # [planes, out, kernel]
        first = [1 + i for i in range(spatial) if i != axis]
        behind = [1 + spatial + i for i in range(spatial) if i != axis]
        here = c.unsqueeze(here, [*first, *behind])
        if found is not None:
            here = c.op("Add", c.op("Mul", found, c.vector([length])), here)
        found = here
    assert found is not None
    return found


def _starts(c: Bench, sample: gs.Tensor, length: Size | int, kernel: int, out: int) -> gs.Tensor:
    """The first place of each window along an axis, int64[planes, out].

    Runtimes compute halves in single precision: each result is rounded by casts.
    """
    if isinstance(length, int) and length < kernel:
        raise Refused(f"windows of {kernel} do not fit into {length}")
    own, span = c.dtype(sample), c.sub(length, kernel)
    dtype = TYPE.FLOAT if own in HALVES else own
    kind, wide = (onnx.helper.tensor_dtype_to_np_dtype(t).type for t in (own, dtype))

    sample, steps = c.cast(sample, dtype), np.asarray(max(out - 1, 1)).astype(kind)
    if isinstance(span, int):
        step = c.number(float(np.asarray(span).astype(kind) / steps), dtype)
    else:
        length_of_span = c.through(c.cast(span.tensor, dtype), own)
        step = c.through(c.op("Div", length_of_span, c.number(float(steps), dtype)), own)
    numbers = c.draft.constant(np.arange(out).astype(kind).astype(wide), "windows")
    begins = (c.through(c.op("Add", numbers, sample), own), sample)
    far, near = (c.through(c.op("Mul", begin, step), own) for begin in begins)
    starts = c.op("Sub", c.cast(far, TYPE.INT64), c.cast(near, TYPE.INT64))
    last = c.draft.constant(np.arange(out) == out - 1, "last")
    made: gs.Tensor = c.op("Where", last, c.vector([span]), starts)
    return made


def _largest(
    c: Bench, x: gs.Tensor, places: gs.Tensor, width: int, lots: Size | int, plane: Size | int
) -> tuple[gs.Tensor, gs.Tensor]:
    """The largest of each window and its place in the plane: the first, or the last NaN."""
    flat = c.reshape(x, [c.mul(lots, plane)])
    before = c.op("Mul", c.unsqueeze(c.count(lots), [1, 2]), c.vector([plane]))
    windows = c.op("Gather", flat, c.op("Add", before, places), axis=0)
    count = c.count(width)
    nan = c.op("IsNaN", windows)
    axes = c.ints([2], "axes")
    last = c.op("Where", nan, count, c.ints([-1], "none"))
    last = c.op("ReduceMax", last, axes, keepdims=1)
    numbers = c.op("Where", nan, c.number(-np.inf, c.dtype(x)), windows)
    best = c.op("ArgMax", numbers, axis=2, keepdims=1)
    best = c.op("Where", c.op("Less", last, c.ints([0], "zero")), best, last)
    place = c.op("Where", c.op("Equal", best, count), places, c.ints([0], "zero"))
    place = c.op("ReduceSum", place, axes, keepdims=1)
    values = c.op("Gather", flat, c.op("Add", before, place), axis=0)
    return values, place
