"""Gradients of what reads a part: they go back into its place among zeros, and those of distances.

Formulas: PyTorch's derivatives (tools/autograd/FunctionsManual.cpp).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import onnx_graphsurgeon as gs

from surgeon.builders import parts
from surgeon.builders.aten_shape.call import TYPE, Call
from surgeon.builders.aten_shape.combining import combined_elements, combined_lines
from surgeon.builders.aten_shape.layout import scattered, with_diagonal
from surgeon.builders.aten_shape.slices import from_front, with_part
from surgeon.builders.windows import digit_of
from surgeon.rewrite import Refused


def _zeros(c: Call, name: str) -> gs.Tensor:
    """Zeros of the gradient's dtype in a shape that an argument lists."""
    return c.filled(c.listed(name), 0, c.dtype(c.args.first()))


def _part(c: Call) -> gs.Tensor:
    """`select_backward` and `slice_backward`."""
    return with_part(c, _zeros(c, "input_sizes"), c.args.first())


def _diagonal(c: Call) -> gs.Tensor:
    return with_diagonal(c, _zeros(c, "input_sizes"), c.args.first())


def _unfold(c: Call) -> gs.Tensor:
    """Each element gets what its windows got: a product with the windows as ones among zeros."""
    gradient = c.args.first()
    rank = c.rank(gradient) - 1
    axis = c.axis(c.integer("dim"), rank)
    size, step, length = c.integer("size"), c.integer("step"), c.listed("input_sizes")[axis]
    if not isinstance(length, int):
        raise Refused(f"the length of axis {axis} is known at run time only")
    count = (length - size) // step + 1
    windows = np.zeros((length, count * size))
    places = np.arange(count)[:, None] * step + np.arange(size)
    windows[places.reshape(-1), np.arange(count * size)] = 1
    rest = [i for i in range(rank) if i != axis]
    lined = c.permute(gradient, [*rest, axis, rank])
    flat = c.reshape(lined, [*(c.size(gradient, i) for i in rest), count * size])
    matrix = parts.constant_matrix(c.draft, windows, parts.numpy_dtype(c.draft, gradient))
    made = c.op("MatMul", flat, matrix(True))
    return c.permute(made, [[*rest, axis].index(i) for i in range(rank)])


def _gather(c: Call) -> gs.Tensor:
    """`gather_backward`: several may have been read from one place."""
    x, gradient = c.tensor(), c.args.first()
    axis = c.axis(c.integer("dim"), c.rank(x))
    index = from_front(c, c.cast(c.tensor("index"), TYPE.INT64), c.size(x, axis))
    zeros = c.filled(c.sizes(x), 0, c.dtype(gradient))
    return combined_elements(c, zeros, index, gradient, axis, "add")


def _chosen(c: Call) -> gs.Tensor:
    """`value_selecting_reduction_backward`: to the places where `max` or `median` found them."""
    gradient, index = c.args.first(), c.cast(c.tensor("indices"), TYPE.INT64)
    sizes = c.listed("sizes")
    zeros = c.filled(sizes, 0, c.dtype(gradient))
    if not sizes:
        return gradient
    axis = c.axis(c.integer("dim"), len(sizes))
    if not c.value("keepdim"):
        gradient, index = (c.unsqueeze(t, [axis]) for t in (gradient, index))
    made: gs.Tensor = c.op("ScatterElements", zeros, index, gradient, axis=axis)
    return made


def _lines(c: Call, zeros: gs.Tensor, index: gs.Tensor, lines: gs.Tensor) -> gs.Tensor:
    return combined_lines(c, zeros, from_front(c, index, c.size(zeros, 0)), lines, "add")


def _index_select(c: Call) -> gs.Tensor:
    sizes = c.listed("self_sizes")
    if not sizes:
        raise Refused("its input has no axis")
    axis, gradient = c.axis(c.integer("dim"), len(sizes)), c.args.first()
    there = [axis, *(i for i in range(len(sizes)) if i != axis)]
    zeros = c.filled([sizes[i] for i in there], 0, c.dtype(gradient))
    index = c.cast(c.tensor("index"), TYPE.INT64)
    made = _lines(c, zeros, c.reshape(index, [-1]), c.permute(gradient, there))
    return c.permute(made, [there.index(i) for i in range(len(sizes))])


def _embedding(c: Call) -> gs.Tensor:
    """Of the table: what was read of each row, added up; none for the row that pads."""
    if c.value("scale_grad_by_freq"):
        raise Refused("it weighs rows by how often they are read")
    gradient, index = c.args.first(), c.cast(c.tensor("indices"), TYPE.INT64)
    count, rank = c.listed("num_weights")[0], c.rank(gradient)
    width = c.size(gradient, rank - 1)
    padding = c.integer("padding_idx")
    index = c.reshape(index, [-1])
    rows = c.reshape(gradient, [-1, width])
    if padding >= 0:
        pads = c.unsqueeze(c.op("Equal", index, c.ints([padding], "padding")), [1])
        rows = c.where(pads, c.number(0, c.dtype(rows)), rows)
    return _lines(c, c.filled([count, width], 0, c.dtype(gradient)), index, rows)


def _cdist(c: Call) -> gs.Tensor:
    """`_cdist_backward`, of `x1`."""
    return _of_distances(c, c.tensor("x1"), c.tensor("x2"), c.args.first(), c.tensor("cdist"))


def _of_distances(
    c: Call, a: gs.Tensor, b: gs.Tensor, gradient: gs.Tensor, far: gs.Tensor
) -> gs.Tensor:
    """Of the first: each difference by its share of the distance; 0 where that is."""
    p, rank, dtype = float(c.value("p")), c.rank(a), c.dtype(a)
    apart = c.op("Sub", c.unsqueeze(a, [rank - 1]), c.unsqueeze(b, [c.rank(b) - 2]))
    weight, far = (c.unsqueeze(t, [c.rank(t)]) for t in (gradient, far))
    one, zero = c.number(1, dtype), c.number(0, dtype)
    nowhere = c.op("Equal", far, zero)
    if p == 2:
        share = c.op("Div", apart, c.where(nowhere, one, far))
    elif p == 1:
        share = c.op("Sign", apart)
    elif p == 0:
        share = c.op("Mul", apart, zero)
    elif np.isinf(p):
        most = c.op("Equal", c.op("Abs", apart), far)
        share = c.where(most, c.op("Sign", apart), zero)
    else:
        power = c.number(p - 1, dtype)
        size = c.op("Pow", c.op("Abs", apart), power)
        same = c.op("Equal", apart, zero)
        size = c.where(same, zero, size) if p < 1 else size
        share = c.op("Mul", c.op("Sign", apart), size)
        share = c.op("Div", share, c.op("Pow", c.where(nowhere, one, far), power))
    each = c.where(nowhere, zero, c.op("Mul", share, weight))
    made: gs.Tensor = c.op("ReduceSum", each, c.ints([-2], "axes"), keepdims=0)
    return made


def _pdist(c: Call) -> gs.Tensor:
    """`_pdist_backward`: as of all distances, of which those of a pair are one number."""
    x = c.tensor()
    count = c.size(x, 0)
    if c.rank(x) != 2 or not isinstance(count, int):
        raise Refused("how many rows its distances are between is known at run time only")
    if count < 2:
        return c.filled(c.sizes(x), 0, c.dtype(x))
    # of no pair is what stands on the diagonal
    pairs = np.full((count, count), count * (count - 1) // 2)
    pairs[np.triu_indices(count, 1)] = np.arange(count * (count - 1) // 2)
    places = c.draft.constant(np.minimum(pairs, pairs.T), "pairs")
    none = c.filled([1], 0, c.dtype(x))
    gradient, far = (
        c.op("Gather", c.concat([t, none], 0), places, axis=0)
        for t in (c.args.first(), c.tensor("pdist"))
    )
    return _of_distances(c, x, x, gradient, far)


def _trace(c: Call) -> gs.Tensor:
    """`trace_backward`: on the diagonal."""
    gradient = c.args.first()
    high, wide = c.listed("sizes")
    if isinstance(high, int) and isinstance(wide, int):
        there = c.draft.constant(np.eye(high, wide, dtype=np.bool_), "eye")
    else:
        there = c.op("Equal", c.unsqueeze(c.count(high), [1]), c.count(wide))
    return c.where(there, gradient, c.number(0, c.dtype(gradient)))


def _masked_select(c: Call) -> gs.Tensor:
    """To the places that were read; its input and its mask may have been repeated."""
    gradient, mask = c.args.first(), c.cast(c.tensor("mask"), TYPE.BOOL)
    zeros = c.filled(c.sizes(c.tensor("input")), 0, c.dtype(gradient))
    return scattered(c, zeros, mask, gradient)


def _masked_scatter(c: Call) -> gs.Tensor:
    """`masked_scatter_backward`: what was written, and zeros for what was left over."""
    gradient, mask = c.args.first(), c.cast(c.tensor("mask"), TYPE.BOOL)
    sizes = c.listed("sizes")
    count = c.product(sizes)
    wide = c.op("Expand", c.cast(mask, TYPE.INT64), c.op("Shape", gradient))
    read = c.op("Compress", c.flat(gradient), c.cast(c.flat(wide), TYPE.BOOL), axis=0)
    zeros = c.filled([count], 0, c.dtype(gradient))
    return c.reshape(c.slice(c.concat([read, zeros], 0), 0, 0, count), sizes)


def _extremes(c: Call) -> gs.Tensor:
    """`cummaxmin_backward`: to the elements that were the largest, for as long as they were."""
    gradient, x = c.args.first(), c.tensor("input")
    if c.rank(x) == 0:
        return gradient
    index = c.cast(c.tensor("indices"), TYPE.INT64)
    axis = c.axis(c.integer("dim"), c.rank(x))
    zeros = c.filled(c.sizes(x), 0, c.dtype(gradient))
    return combined_elements(c, zeros, index, gradient, axis, "add")


def _max_pool(c: Call) -> gs.Tensor:
    """To the places that the indices name in each plane; windows that overlap share some."""
    x, gradient, index = c.tensor(), c.args.first(), c.cast(c.tensor("indices"), TYPE.INT64)
    rank, spatial = c.rank(x), digit_of(c.node.op)
    sizes = c.sizes(x)
    lead, plane = [*sizes[: rank - spatial]], c.product(sizes[rank - spatial :])
    gradient, index = (c.reshape(t, [*lead, -1]) for t in (gradient, index))
    zeros = c.filled([*lead, plane], 0, c.dtype(gradient))
    made = combined_elements(c, zeros, index, gradient, rank - spatial, "add")
    return c.reshape(made, sizes)


LOWERINGS: Mapping[str, Callable[[Call], Any]] = {
    **dict.fromkeys(("select_backward", "slice_backward"), _part),
    "diagonal_backward": _diagonal,
    "unfold_backward": _unfold,
    "gather_backward": _gather,
    "value_selecting_reduction_backward": _chosen,
    "index_select_backward": _index_select,
    **dict.fromkeys(("embedding_backward", "embedding_dense_backward"), _embedding),
    "_cdist_backward": _cdist,
    "_pdist_backward": _pdist,
    "trace_backward": _trace,
    "masked_select_backward": _masked_select,
    "masked_scatter_backward": _masked_scatter,
    "cummaxmin_backward": _extremes,
    **dict.fromkeys(
        (
            *("max_pool2d_with_indices_backward", "max_pool3d_with_indices_backward"),
            *("adaptive_max_pool2d_backward", "adaptive_max_pool3d_backward"),
            *("fractional_max_pool2d_backward", "fractional_max_pool3d_backward"),
        ),
        _max_pool,
    ),
}
