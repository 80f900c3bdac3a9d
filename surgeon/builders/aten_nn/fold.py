"""PyTorch's fold and unfold: col2im and im2col.

unfold is gathered, which copies elements of any dtype. fold adds windows up: blocks that do not
overlap are moved, others go through a transposed convolution with an identity kernel, or through
two products with matrices of zeros and ones where onnxruntime has no such convolution.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_graphsurgeon as gs

from surgeon.arguments import Arguments, bind
from surgeon.builders.aten_nn import parts
from surgeon.builders.aten_nn.parts import Array, Length
from surgeon.builders.aten_nn.windows import Window, with_batch
from surgeon.match import Match
from surgeon.rewrite import Draft, Refused


def _windows(args: Arguments) -> list[Window]:
    rows = [
        parts.per_axis(args.value(f), 2, f)
        for f in ("kernel_size", "stride", "padding", "dilation")
    ]
    return [Window(*row) for row in zip(*rows, strict=True)]


def _counts(draft: Draft, length: Length, window: Window) -> Length:
    """How many windows there are over a length that may be computed."""
    if length.static is not None:
        return parts.constant_length(draft, window.count(length.static))
    slack = 2 * window.padding - window.reach

    def make() -> gs.Tensor:
        room = draft.op("Add", length.make(), draft.constant([slack], "slack"))
        if window.stride != 1:
            room = draft.op("Div", room, draft.constant([window.stride], "stride"))
        return draft.op("Add", room, draft.constant([1], "one"))

    dim = None
    if length.dim is not None:
        dim = (length.dim + slack) // window.stride + 1
    return Length(dim, make)


# --------------------------------------------------------------------------------------- im2col


def im2col(draft: Draft, match: Match) -> Any:
    """`aten.im2col (x, kernel_size, dilation, padding, stride)`, x [N, C, H, W] or [C, H, W]."""
    args = bind(match.root, draft.facts)
    windows = _windows(args)
    x, batched = with_batch(draft, match.root.inputs[0], 2)
    lengths = parts.lengths_of(draft, x, 4)
    counts = [_counts(draft, n, w) for n, w in zip(lengths[2:], windows, strict=True)]
    indices = [
        _places(draft, n, c, w) for n, c, w in zip(lengths[2:], counts, windows, strict=True)
    ]
    if any(window.padding for window in windows):
        edges = [0, 0, *(window.padding for window in windows)] * 2
        x = draft.op("Pad", x, draft.constant(edges, "pads"))
    x = draft.op("Gather", x, indices[0], axis=2)  # [N, C, kh, Lh, W]
    x = draft.op("Gather", x, indices[1], axis=4)  # [N, C, kh, Lh, kw, Lw]
    x = draft.op("Transpose", x, perm=[0, 1, 2, 4, 3, 5])
    size = windows[0].kernel * windows[1].kernel
    channels = lengths[1]
    if channels.static is not None:
        y = parts.reshape(draft, x, [0, channels.static * size, -1])
    elif all(count.static is not None for count in counts):
        product = int(np.prod([count.static or 0 for count in counts]))
        y = parts.reshape(draft, x, [0, -1, product])
    else:
        whole = Length(
            None, lambda: draft.op("Mul", channels.make(), draft.constant([size], "size"))
        )
        y = draft.op("Reshape", x, parts.shape_from(draft, [0, whole, -1]))
    return y if batched else parts.squeeze(draft, y, 0)


def _places(draft: Draft, length: Length, count: Length, window: Window) -> gs.Tensor:
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
    args = bind(match.root, draft.facts)
    x, windows = match.root.inputs[0], _windows(args)
    outs = parts.lengths_given(draft, args, "output_size", 2)
    rank = draft.facts.of(x).rank
    if rank not in (None, 2, 3):
        raise Refused(f"its input has rank {rank}, not 2 or 3")
    if rank == 2:
        x = parts.unsqueeze(draft, x, 0)
    counts = [_counts(draft, n, w) for n, w in zip(outs, windows, strict=True)]
    dtype = parts.numpy_dtype(draft, x)
    columns = parts.lengths_of(draft, x, 3)[1].static
    apart = all(w.stride == w.kernel and not w.padding and w.dilation == 1 for w in windows)
    if apart and all(
        n.static is not None and n.static % w.kernel == 0 for n, w in _zip(outs, windows)
    ):
        y = _blocks(draft, x, windows, counts, outs)
    elif dtype == np.float32 and columns is not None:
        y = _transposed(draft, x, columns, windows, counts, outs)
    else:
        y = _products(draft, x, windows, counts, outs, dtype)
    return parts.squeeze(draft, y, 0) if rank == 2 else y


def _zip(outs: list[Length], windows: list[Window]) -> list[tuple[Length, Window]]:
    return list(zip(outs, windows, strict=True))


def _blocks(
    draft: Draft, x: gs.Tensor, windows: list[Window], counts: list[Length], outs: list[Length]
) -> gs.Tensor:
    """Blocks side by side: nothing is added."""
    high, wide = windows
    x = parts.reshape(draft, x, [0, -1, high.kernel, wide.kernel, counts[0], counts[1]])
    x = draft.op("Transpose", x, perm=[0, 1, 4, 2, 5, 3])
    return parts.reshape(draft, x, [0, 0, -1, outs[1]])


def _transposed(
    draft: Draft,
    x: gs.Tensor,
    columns: int,
    windows: list[Window],
    counts: list[Length],
    outs: list[Length],
) -> gs.Tensor:
    """A transposed convolution whose kernel puts every column where it belongs."""
    size = windows[0].kernel * windows[1].kernel
    if columns % size:
        raise Refused(f"{columns} columns are no multiple of a kernel of {size}")
    high, wide = windows
    kernel = np.tile(
        np.eye(size, dtype=np.float32).reshape(size, 1, high.kernel, wide.kernel),
        (columns // size, 1, 1, 1),
    )
    extra: list[int | None] = []
    for out, window in _zip(outs, windows):
        if out.static is not None:
            extra.append(out.static - window.covered(out.static))
        else:
            extra.append(0 if window.stride == 1 else None)
    x = parts.reshape(draft, x, [0, columns, counts[0], counts[1]])
    attributes: dict[str, Any] = {}
    if any(extra):
        attributes["output_padding"] = [e or 0 for e in extra]
    y = draft.op(
        "ConvTranspose",
        x,
        draft.constant(kernel, "identity"),
        dilations=[w.dilation for w in windows],
        group=columns // size,
        kernel_shape=[w.kernel for w in windows],
        pads=[w.padding for w in windows] * 2,
        strides=[w.stride for w in windows],
        **attributes,
    )
    if all(e is not None for e in extra):
        return y
    missing: list[Length | int] = [
        0 if e is not None else _missing(draft, out, count, window)
        for e, (out, window), count in zip(extra, _zip(outs, windows), counts, strict=True)
    ]
    return draft.op("Pad", y, parts.shape_from(draft, [0, 0, 0, 0, 0, 0, *missing]))


def _missing(draft: Draft, out: Length, count: Length, window: Window) -> Length:
    """What no window reaches at the end of an axis of computed length."""

    def make() -> gs.Tensor:
        before = draft.op("Sub", count.make(), draft.constant([1], "one"))
        reached = draft.op(
            "Add",
            draft.op("Mul", before, draft.constant([window.stride], "stride")),
            draft.constant([window.reach - 2 * window.padding], "reach"),
        )
        return draft.op("Sub", out.make(), reached)

    return Length(None, make)


def _products(
    draft: Draft,
    x: gs.Tensor,
    windows: list[Window],
    counts: list[Length],
    outs: list[Length],
    dtype: np.dtype[Any],
) -> gs.Tensor:
    """Two products with matrices of zeros and ones, one for each axis."""
    high, wide = windows
    matrices = []
    for out, window in _zip(outs, windows):
        if out.static is None:
            raise Refused("its output size is computed; fix it with `--shape`")
        matrices.append(_adding(out.static, window))
    x = parts.reshape(draft, x, [0, -1, high.kernel, wide.kernel, counts[0], counts[1]])
    x = draft.op("Transpose", x, perm=[0, 1, 2, 4, 3, 5])
    rows, columns = (m.shape[1] for m in matrices)
    x = parts.reshape(draft, x, [0, -1, rows, columns])
    for index, matrix in enumerate(matrices):
        x = parts.multiply_axis(draft, x, index + 2, 4, parts.constant_matrix(draft, matrix, dtype))
    return x


def _adding(length: int, window: Window) -> Array:
    """[length, kernel * count]: where each column's elements are added."""
    count = window.count(length)
    matrix = np.zeros((length, window.kernel * count))
    for tap in range(window.kernel):
        for step in range(count):
            at = step * window.stride - window.padding + tap * window.dilation
            if 0 <= at < length:
                matrix[at, tap * count + step] = 1
    return matrix
