"""Columns of windows added up where the windows lay: what fold and Col2Im compute.

Blocks that do not overlap are moved; others go through a transposed convolution with an identity
kernel, or, where onnxruntime has no such convolution, through a product for each axis with a
matrix of zeros and ones.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_graphsurgeon as gs

from surgeon.builders import parts
from surgeon.builders.parts import Array, Length
from surgeon.builders.windows import Window
from surgeon.rewrite import Draft, Refused


def counts_of(draft: Draft, length: Length, window: Window) -> Length:
    """How many windows there are over a length that may be computed."""
    if length.static is not None:
        return parts.constant_length(draft, window.count(length.static))
    slack = window.pads - window.reach

    def make() -> gs.Tensor:
        room = draft.op("Add", length.make(), draft.constant([slack], "slack"))
        if window.stride != 1:
            room = draft.op("Div", room, draft.constant([window.stride], "stride"))
        return draft.op("Add", room, draft.constant([1], "one"))

    dim = None
    if length.dim is not None:
        dim = (length.dim + slack) // window.stride + 1
    return Length(dim, make)


def add_up(
    draft: Draft, x: gs.Tensor, windows: Sequence[Window], outs: Sequence[Length]
) -> gs.Tensor:
    """The windows' sum.

    Args:
        draft: Where the nodes go.
        x: [N, C * product of kernels, product of counts]: a column for each window.
        windows: The sliding window of each spatial axis.
        outs: The lengths of the spatial axes of the result, [N, C, *outs].

    Raises:
        Refused: The columns do not hold whole windows, or a size is missing that is needed.
    """
    counts = [counts_of(draft, n, w) for n, w in zip(outs, windows, strict=True)]
    dtype = parts.numpy_dtype(draft, x)
    columns = parts.lengths_of(draft, x, 3)[1].static
    size = math.prod(w.kernel for w in windows)
    if columns is not None and columns % size:
        raise Refused(f"{columns} columns are no multiple of a kernel of {size}")
    if side_by_side(windows, outs):
        return _blocks(draft, x, windows, counts, outs)
    if dtype == np.float32 and columns is not None:
        x = parts.reshape(draft, x, [0, columns, *counts])
        return _transposed(draft, x, columns, windows, counts, outs)
    if dtype == np.float32 and any(n.static is None for n in outs):
        # how many channels there are is known at run time: each is a sample of its own
        batch = parts.lengths_of(draft, x, 3)[0]
        x = parts.reshape(draft, x, [-1, size, *counts])
        y = _transposed(draft, x, size, windows, counts, outs)
        return parts.reshape(draft, y, [batch, -1, *outs])
    return _products(draft, x, windows, counts, outs, dtype)


def side_by_side(windows: Sequence[Window], outs: Sequence[Length]) -> bool:
    """Whether the windows tile the result, so that nothing is added."""
    return all(
        w.stride == w.kernel
        and not w.pads
        and w.dilation == 1
        and n.static is not None
        and n.static % w.kernel == 0
        for n, w in zip(outs, windows, strict=True)
    )


def _apart(
    draft: Draft, x: gs.Tensor, windows: Sequence[Window], counts: Sequence[Length]
) -> gs.Tensor:
    """[N, C, kernels..., counts...]."""
    return parts.reshape(draft, x, [0, -1, *(w.kernel for w in windows), *counts])


def _blocks(
    draft: Draft,
    x: gs.Tensor,
    windows: Sequence[Window],
    counts: Sequence[Length],
    outs: Sequence[Length],
) -> gs.Tensor:
    """Blocks side by side: nothing is added."""
    axes = len(windows)
    pairs = [axis for i in range(axes) for axis in (2 + axes + i, 2 + i)]
    x = draft.op("Transpose", _apart(draft, x, windows, counts), perm=[0, 1, *pairs])
    return parts.reshape(draft, x, [0, 0, -1, *outs[1:]])


def _transposed(
    draft: Draft,
    x: gs.Tensor,
    columns: int,
    windows: Sequence[Window],
    counts: Sequence[Length],
    outs: Sequence[Length],
) -> gs.Tensor:
    """A transposed convolution whose kernel puts every column where it belongs.

    `x` is [N, columns, *counts].
    """
    kernels = [w.kernel for w in windows]
    groups = columns // math.prod(kernels)
    extra: list[int | None] = []
    for out, window in zip(outs, windows, strict=True):
        if out.static is not None:
            extra.append(out.static - window.covered(out.static))
        else:
            extra.append(0 if window.stride == 1 else None)
    axes = list(zip(windows, extra, strict=True))
    attributes: dict[str, Any] = {}
    if any(extra):
        attributes["output_padding"] = [e or 0 for e in extra]
    y = draft.op(
        "ConvTranspose",
        x,
        draft.constant(_identity(kernels, groups), "identity"),
        dilations=[w.dilation for w in windows],
        group=groups,
        kernel_shape=kernels,
        pads=[
            *(w.padding for w in windows),
            *(w.pads - w.padding - (_spare(w) if e is None else 0) for w, e in axes),
        ],
        strides=[w.stride for w in windows],
        **attributes,
    )
    if all(e is not None for e in extra):
        return y
    missing: list[Length | int] = [
        0 if e is not None else _missing(draft, out, count, window)
        for e, out, window, count in zip(extra, outs, windows, counts, strict=True)
    ]
    ahead = [0] * (len(windows) + 4)
    return draft.op("Pad", y, parts.shape_from(draft, [*ahead, *missing]))


def _identity(kernels: Sequence[int], groups: int) -> Array:
    """[groups * elements of a window, 1, *kernels]: each element where it lies in the window."""
    size = math.prod(kernels)
    identity = np.eye(size, dtype=np.float32).reshape(size, 1, *kernels)
    return np.tile(identity, (groups, 1, *[1] * len(kernels)))


def _spare(window: Window) -> int:
    """What stays of the padding behind, to be cut off later: a short result had no length else."""
    return min(window.pads - window.padding, window.stride - 1)


def _missing(draft: Draft, out: Length, count: Length, window: Window) -> Length:
    """What no window reaches at the end of a computed length; below 0, what is too much."""

    def make() -> gs.Tensor:
        before = draft.op("Sub", count.make(), draft.constant([1], "one"))
        reached = draft.op(
            "Add",
            draft.op("Mul", before, draft.constant([window.stride], "stride")),
            draft.constant([window.reach - window.pads + _spare(window)], "reach"),
        )
        return draft.op("Sub", out.make(), reached)

    return Length(None, make)


def _products(
    draft: Draft,
    x: gs.Tensor,
    windows: Sequence[Window],
    counts: Sequence[Length],
    outs: Sequence[Length],
    dtype: np.dtype[Any],
) -> gs.Tensor:
    """A product for each axis with a matrix of zeros and ones."""
    matrices = []
    for out, window in zip(outs, windows, strict=True):
        if out.static is None:
            raise Refused("its output size is computed; fix it with `--shape`")
        matrices.append(_adding(out.static, window))
    axes = len(windows)
    pairs = [axis for i in range(axes) for axis in (2 + i, 2 + axes + i)]
    x = draft.op("Transpose", _apart(draft, x, windows, counts), perm=[0, 1, *pairs])
    x = parts.reshape(draft, x, [0, -1, *(m.shape[1] for m in matrices)])
    for index, matrix in enumerate(matrices):
        of_axis = parts.constant_matrix(draft, matrix, dtype)
        x = parts.multiply_axis(draft, x, index + 2, axes + 2, of_axis)
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
