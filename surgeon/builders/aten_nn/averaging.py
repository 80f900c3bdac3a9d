"""PyTorch's average pooling.

Windows are those of its maxima; an average divides by the window inside the padded input, or by
what of it is inside the input, or by a number that was given.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_graphsurgeon as gs

from surgeon.arguments import bind
from surgeon.builders import parts
from surgeon.builders.aten_nn.fitted import Fitted, fitted
from surgeon.builders.parts import Array, Length
from surgeon.builders.whole_numbers import averaged
from surgeon.builders.windows import Window, begun, digit_of, with_batch
from surgeon.match import Match
from surgeon.rewrite import Draft, Refused


def avg_pool(draft: Draft, match: Match) -> Any:
    """`aten.avg_pool{1,2,3}d`."""
    args = bind(match.root, draft.facts)
    spatial = digit_of(match.root.op)
    x, batched = with_batch(draft, match.root.inputs[0], spatial)
    dtype = parts.numpy_dtype(draft, x)
    if not parts.is_float(dtype) and dtype != np.int64:
        raise Refused(f"PyTorch does not average {dtype.name}")
    divisor = args.value("divisor_override") if args.schema.takes("divisor_override") else None
    whole = bool(args.value("count_include_pad"))
    fill = draft.constant(np.array(0, dtype), "fill") if whole else None
    fit = fitted(draft, args, x, spatial, "ReduceMean", fill=fill)
    if (fit.pooled and divisor is not None) or (fit.computed and dtype == np.int64):
        raise Refused("its window or padding is known at run time only, and it is no plain mean")
    x, windows = fit.padded(draft, fit.x), fit.windows
    if fit.is_done:
        return x if batched else parts.squeeze(draft, x, 0)
    if dtype == np.int64:
        y = averaged(draft, x, windows, whole=whole, divisor=divisor)
        return y if batched else parts.squeeze(draft, y, 0)
    lengths = parts.lengths_of(draft, x, spatial + 2)[2:]
    pairs = list(zip(lengths, windows, strict=True))
    if all(w.floors(n) for n, w in pairs) and dtype != np.float64:
        y = _average(draft, x, windows, whole=whole or divisor is not None)
        size = int(np.prod([w.kernel for w in windows]))
        if divisor is not None and int(divisor) != size:
            factor = np.array(size / int(divisor), dtype)
            y = draft.op("Mul", y, draft.constant(factor, "factor"))
        if fit.pads is not None and divisor is None and not whole:
            y = draft.op("Div", y, _shares(draft, fit, dtype))
    elif all(n.static is not None for n in lengths):
        y = _by_matrices(draft, x, pairs, dtype, whole=whole, divisor=divisor)
    elif dtype != np.float64:
        y = _counted(draft, x, windows, dtype, whole=whole, divisor=divisor)
        y = begun(draft, y, pairs)
    else:
        raise Refused("it is of doubles, of a length known at run time; fix it with `--shape`")
    return y if batched else parts.squeeze(draft, y, 0)


def _shares(draft: Draft, fit: Fitted, dtype: np.dtype[Any]) -> gs.Tensor:
    """Which share of each window is no padding, where the padding is computed."""
    lengths = parts.lengths_of(draft, fit.x, len(fit.windows) + 2)[2:]
    ones = parts.filled(draft, parts.shape_from(draft, [1, 1, *lengths]), dtype.type(1))
    return _average(draft, fit.padded(draft, ones), fit.windows, whole=False)


def _average(draft: Draft, x: gs.Tensor, windows: list[Window], *, whole: bool) -> gs.Tensor:
    padding = [w.padding for w in windows]
    attributes: dict[str, Any] = {"count_include_pad": 1} if whole and any(padding) else {}
    return draft.op(
        "AveragePool",
        x,
        kernel_shape=[w.kernel for w in windows],
        pads=padding * 2,
        strides=[w.stride for w in windows],
        **attributes,
    )


def _by_matrices(
    draft: Draft,
    x: gs.Tensor,
    pairs: list[tuple[Length, Window]],
    dtype: np.dtype[Any],
    *,
    whole: bool,
    divisor: Any,
) -> gs.Tensor:
    """One product for each axis: the divisor of a box is the product of those of its sides."""
    matrices = []
    for length, window in pairs:
        assert length.static is not None
        matrices.append(_weights(length.static, window, whole=whole, plain=divisor is not None))
    if divisor is not None:
        matrices[0] = matrices[0] / int(divisor)
    for index, matrix in enumerate(matrices):
        make = parts.constant_matrix(draft, matrix, dtype)
        x = parts.multiply_axis(draft, x, index + 2, len(pairs) + 2, make)
    return x


def _weights(length: int, window: Window, *, whole: bool, plain: bool) -> Array:
    count = window.count(length)
    matrix = np.zeros((count, length))
    for row in range(count):
        start = row * window.stride - window.padding
        end = min(start + window.kernel, length + window.padding)
        size = end - start
        start, end = max(start, 0), min(end, length)
        matrix[row, start:end] = 1.0 if plain else 1.0 / (size if whole else max(end - start, 1))
    return matrix


def _counted(
    draft: Draft,
    x: gs.Tensor,
    windows: list[Window],
    dtype: np.dtype[Any],
    *,
    whole: bool,
    divisor: Any,
) -> gs.Tensor:
    """Sums over full windows of a longer input, and how much of each is counted."""
    kernel = [w.kernel for w in windows]
    strides = [w.stride for w in windows]
    size = int(np.prod(kernel))
    near = [w.padding for w in windows]
    far = [w.padding + w.stride - 1 for w in windows]
    edges = draft.constant([0, 0, *near, 0, 0, *far], "pads")

    def pooled(value: gs.Tensor) -> gs.Tensor:
        return draft.op("AveragePool", value, kernel_shape=kernel, strides=strides)

    sums = pooled(draft.op("Pad", x, edges))
    if divisor is not None:
        factor = draft.constant(np.array(size / int(divisor), dtype), "factor")
        return draft.op("Mul", sums, factor)
    # a plane of ones has the shape of one channel of one image
    lengths = parts.lengths_of(draft, x, len(windows) + 2)[2:]
    ones = parts.filled(draft, parts.shape_from(draft, [1, 1, *lengths]), dtype.type(1))
    inner = [0] * len(windows)
    if whole:
        pads = draft.constant([0, 0, *near, 0, 0, *near], "pads")
        ones = draft.op("Pad", ones, pads, draft.constant(np.array(1, dtype), "one"))
        edges = draft.constant([0, 0, *inner, 0, 0, *(w.stride - 1 for w in windows)], "pads")
    return draft.op("Div", sums, pooled(draft.op("Pad", ones, edges)))
