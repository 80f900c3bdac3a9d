"""PyTorch's fold and unfold: col2im and im2col.

unfold is gathered, which copies elements of any dtype. fold adds windows up, see `columns`.
"""

from __future__ import annotations

from functools import partial, reduce
from typing import Any

import numpy as np
import onnx_graphsurgeon as gs

from surgeon.arguments import Arguments, bind
from surgeon.builders import parts
from surgeon.builders.columns import add_up, counts_of
from surgeon.builders.parts import Length
from surgeon.builders.windows import Window, gathered_places, with_batch
from surgeon.match import Match
from surgeon.rewrite import Draft, Refused


def _windows(args: Arguments) -> list[Window]:
    rows = [
        parts.per_axis(args.value(f), 2, f)
        for f in ("kernel_size", "stride", "padding", "dilation")
    ]
    return [Window(*row) for row in zip(*rows, strict=True)]


# --------------------------------------------------------------------------------------- im2col


def im2col(draft: Draft, match: Match) -> Any:
    """`aten.im2col (x, kernel_size, dilation, padding, stride)`, x [N, C, H, W] or [C, H, W]."""
    return columns_of(draft, bind(match.root, draft.facts), match.root.inputs[0])


def columns_of(draft: Draft, args: Arguments, x: gs.Tensor) -> gs.Tensor:
    """The columns of windows of what `im2col` is given."""
    x, batched = with_batch(draft, x, 2)
    lengths = parts.lengths_of(draft, x, 4)
    sizes = [parts.lengths_given(draft, args, f, 2) for f in ("kernel_size", "stride", "padding")]
    if any(size.static is None for both in sizes for size in both):
        apart = parts.per_axis(args.value("dilation"), 2, "dilation")
        y = _of_computed_sizes(draft, x, sizes, apart)
        return y if batched else parts.squeeze(draft, y, 0)
    windows = _windows(args)
    counts = [counts_of(draft, n, w) for n, w in zip(lengths[2:], windows, strict=True)]
    indices = [_places(draft, c, w) for c, w in zip(counts, windows, strict=True)]
    if any(window.padding for window in windows):
        edges = [0, 0, *(window.padding for window in windows)] * 2
        x = draft.op("Pad", x, draft.constant(edges, "pads"))
    x = draft.op("Gather", x, indices[0], axis=2)  # [N, C, kh, Lh, W]
    x = draft.op("Gather", x, indices[1], axis=4)  # [N, C, kh, Lh, kw, Lw]
    x = draft.op("Transpose", x, perm=[0, 1, 2, 4, 3, 5])
    size = windows[0].kernel * windows[1].kernel
    channels = lengths[1]
    known = [count.static for count in counts if count.static is not None]
    if channels.static is not None and len(known) == 2:
        y = parts.reshape(draft, x, [0, channels.static * size, known[0] * known[1]])
    elif channels.static is not None:
        y = parts.reshape(draft, x, [0, channels.static * size, -1])
    elif all(count.static is not None for count in counts):
        product = int(np.prod([count.static or 0 for count in counts]))
        y = parts.reshape(draft, x, [0, -1, product])
    else:
        whole = Length(
            None, lambda: draft.op("Mul", channels.make(), draft.constant([size], "size"))
        )
        many = Length(None, lambda: draft.op("Mul", *(count.make() for count in counts)))
        y = draft.op("Reshape", x, parts.shape_from(draft, [0, whole, many]))
    return y if batched else parts.squeeze(draft, y, 0)


def _of_computed_sizes(
    draft: Draft, x: gs.Tensor, sizes: list[list[Length]], dilation: list[int]
) -> gs.Tensor:
    """Windows of a batch of planes: their sizes, steps and padding, known at run time only."""
    kernel, stride, padding = sizes
    if any(edge.static != 0 for edge in padding):
        x = draft.op("Pad", x, parts.shape_from(draft, [0, 0, *padding] * 2))
    lengths = parts.lengths_of(draft, x, 4)
    for axis, row in enumerate(zip(lengths[2:], kernel, stride, dilation, strict=True)):
        x = draft.op("Gather", x, gathered_places(draft, *row), axis=2 * axis + 2)
    x = draft.op("Transpose", x, perm=[0, 1, 3, 5, 2, 4])  # of [N, C, Lh, kh, Lw, kw]
    _, *columns, high, wide = parts.lengths_of(draft, x, 6)

    def product(*factors: Length) -> Length:
        return Length(None, lambda: reduce(partial(draft.op, "Mul"), [n.make() for n in factors]))

    whole = [product(*columns), product(high, wide)]
    y: gs.Tensor = draft.op("Reshape", x, parts.shape_from(draft, [0, *whole]))
    return y


def _places(draft: Draft, count: Length, window: Window) -> gs.Tensor:
    """The padded positions [kernel, count] that the windows read."""
    taps = np.arange(window.kernel, dtype=np.int64)[:, None] * window.dilation
    if count.static is not None:
        steps = np.arange(count.static, dtype=np.int64)[None] * window.stride
        return draft.constant(taps + steps, "index")
    steps = parts.counting(draft, count)
    if window.stride != 1:
        steps = draft.op("Mul", steps, draft.constant([window.stride], "stride"))
    return draft.op("Add", parts.unsqueeze(draft, steps, 0), draft.constant(taps, "taps"))


# --------------------------------------------------------------------------------------- col2im


def col2im(draft: Draft, match: Match) -> Any:
    """`aten.col2im (x, output_size, kernel_size, dilation, padding, stride)`, x [N, C * kk, L]."""
    return plane_of(draft, bind(match.root, draft.facts), match.root.inputs[0])


def plane_of(draft: Draft, args: Arguments, x: gs.Tensor) -> gs.Tensor:
    """The planes that the columns of `col2im` are added up to."""
    windows = _windows(args)
    outs = parts.lengths_given(draft, args, "output_size", 2)
    rank = draft.facts.of(x).rank
    if rank not in (None, 2, 3):
        raise Refused(f"its input has rank {rank}, not 2 or 3")
    if rank == 2:
        x = parts.unsqueeze(draft, x, 0)
    y = add_up(draft, x, windows, outs)
    return parts.squeeze(draft, y, 0) if rank == 2 else y
