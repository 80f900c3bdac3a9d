"""PyTorch's adaptive pooling over 1, 2 or 3 axes, each axis by what is proven of it.

Bin i of O over I elements is [floor(i*I/O), ceil((i+1)*I/O)) (ATen AdaptivePooling.h); the axes are
independent because every bin is a box.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import onnx_graphsurgeon as gs

from surgeon import dims
from surgeon.builders import parts
from surgeon.builders.whole_numbers import averaged_bins
from surgeon.builders.windows import adaptive_bins
from surgeon.dims import Dim
from surgeon.facts.fact import INTEGERS
from surgeon.match import Match
from surgeon.rewrite import Draft, Refused

KEEP, ONE, EVEN, UNEVEN = "keep", "one", "even", "uneven"
_LARGEST_MATRIX = 1 << 22  # elements of a pooling matrix


def adaptive_pool(draft: Draft, match: Match, *, spatial: int, kind: str) -> Any:
    """`aten.adaptive_{avg,max}_pool{1,2,3}d (x, size)` with standard pooling.

    Args:
        draft: Where the nodes go.
        match: Binds `x` and `size`.
        spatial: How many axes are pooled.
        kind: `avg` or `max`.
    """
    facts = draft.facts
    x, size = match.values["x"], match.values["size"]
    assert x is not None
    assert size is not None
    shape, wanted = facts.of(x).shape, facts.of(size).value
    if shape is None:
        raise Refused("the rank of its input is not known")
    if wanted is None:
        wanted = facts.array(size)
    if wanted is None:
        raise Refused("its output size is computed at run time and not provable")
    given = wanted.reshape(-1).tolist()
    if any(isinstance(n, float) and not n.is_integer() for n in given):
        raise Refused("its output size is no whole number")
    # sizes that a scale gives are whole numbers in floats
    sizes: list[Dim] = [int(n) if isinstance(n, float) else n for n in given]
    sizes = sizes * spatial if len(sizes) == 1 else sizes
    if len(shape) not in (spatial + 1, spatial + 2) or len(sizes) != spatial:
        raise Refused(f"its input has rank {len(shape)} and its output size {len(sizes)} numbers")
    batched = len(shape) == spatial + 2
    if not batched:
        x = draft.op("Unsqueeze", x, draft.constant([0], "axes"))
        shape = (1, *shape)
    plan = [_classify(shape[i + 2], sizes[i], i + 2) for i in range(spatial)]
    if kind == "avg" and _is_whole(facts.of(x).dtype):
        y = averaged_bins(
            draft, x, [_bins(*row) for row in zip(plan, shape[2:], sizes, strict=True)]
        )
    else:
        y = _pool(draft, x, shape, sizes, plan, kind)
    if not batched:
        y = draft.op("Squeeze", y, draft.constant([0], "axes"))
    return y


def _is_whole(dtype: int) -> bool:
    if dtype in INTEGERS and dtype != onnx.TensorProto.INT64:
        raise Refused("PyTorch averages no integers but int64")
    return dtype in INTEGERS


def _bins(how: str, length: Dim, out: Dim) -> list[tuple[int, int]] | None:
    """The elements of each bin; None where each has one of its own.

    Raises:
        Refused: The length is known at run time only.
    """
    if how == KEEP:
        return None
    if not isinstance(length, int) or not isinstance(out, int):
        raise Refused("it averages integers, over a length known at run time only")
    return adaptive_bins(length, out)


def _classify(length: Dim, out: Dim, axis: int) -> str:
    if dims.equal(out, length) is True:
        return KEEP
    if out == 1:
        return ONE
    if not isinstance(length, int) or not isinstance(out, int):
        raise Refused(
            f"axis {axis} has {length} elements and {out} bins: no static graph is right for every "
            f"size; fix it with `--shape`"
        )
    if out < 1 or length < 1:
        raise Refused(f"axis {axis} has {length} elements and {out} bins")
    return EVEN if out <= length and length % out in (0, 1) else UNEVEN


def _pool(
    draft: Draft, x: gs.Tensor, shape: Sequence[Dim], sizes: list[Dim], plan: list[str], kind: str
) -> gs.Tensor:
    """Pool each axis as planned: even bins in one pool, the others an axis at a time."""
    # onnxruntime has no pooling in double precision but MaxPool: means and products stand in.
    double = draft.facts.of(x).dtype == onnx.TensorProto.DOUBLE
    if double and kind == "avg":
        plan = [UNEVEN if how == EVEN else how for how in plan]
    ones = [i + 2 for i, how in enumerate(plan) if how == ONE]
    if len(ones) == len(plan) and not double:
        return draft.op("GlobalAveragePool" if kind == "avg" else "GlobalMaxPool", x)
    if all(how == KEEP for how in plan):
        return x
    # one pool takes the whole axes along, if their lengths are known
    windowed = EVEN in plan and all(isinstance(shape[axis], int) for axis in ones)
    if EVEN in plan:
        windows = [
            _window(how if windowed or how == EVEN else KEEP, length, out)
            for how, length, out in zip(plan, shape[2:], sizes, strict=True)
        ]
        kernel, strides = zip(*windows, strict=True)
        operator = "AveragePool" if kind == "avg" else "MaxPool"
        x = draft.op(operator, x, kernel_shape=list(kernel), strides=list(strides))
    if ones and not windowed:
        operator = "ReduceMean" if kind == "avg" else "ReduceMax"
        x = draft.op(operator, x, draft.constant(ones, "axes"), keepdims=1)
    for i, how in enumerate(plan):
        length, out = shape[i + 2], sizes[i]
        if how == UNEVEN and isinstance(length, int) and isinstance(out, int):
            x = _uneven(draft, x, i + 2, len(plan) + 2, length, out, kind)
    return x


def _window(how: str, length: Dim, out: Dim) -> tuple[int, int]:
    """The window and the stride of a pool along an axis: of 1 where something else pools it."""
    if not isinstance(length, int) or not isinstance(out, int) or how not in (EVEN, ONE):
        return 1, 1
    stride = length // out
    return length - (out - 1) * stride, stride


def _uneven(
    draft: Draft, x: gs.Tensor, axis: int, rank: int, length: int, out: int, kind: str
) -> gs.Tensor:
    """One axis with bins of unequal size: a product with a constant matrix, or gathered bins."""
    edges = adaptive_bins(length, out)
    if kind == "max":
        widest = max(e - s for s, e in edges)
        index = [min(s + j, e - 1) for s, e in edges for j in range(widest)]
        bins = draft.op("Gather", x, draft.constant(index, "bins"), axis=axis)
        before = draft.facts.of(x).shape
        target = (
            [0] * axis
            + [out, widest]
            + [d if isinstance(d, int) else -1 for d in (before or ())[axis + 1 :]]
        )
        if target.count(-1) > 1 or before is None:
            raise Refused(f"two axes behind axis {axis} are known at run time only")
        split = draft.op("Reshape", bins, draft.constant(target, "split"), allowzero=0)
        return draft.op("ReduceMax", split, draft.constant([axis + 1], "axes"), keepdims=0)
    if length * out > _LARGEST_MATRIX:
        raise Refused(f"axis {axis} would need a matrix of {length} x {out}")
    dtype = parts.numpy_dtype(draft, x)
    matrix = np.zeros((out, length), np.float64)
    for i, (start, end) in enumerate(edges):
        matrix[i, start:end] = 1.0 / (end - start)
    if axis == rank - 1:
        return draft.op("MatMul", x, draft.constant(matrix.T.astype(dtype), "columns"))
    if axis == rank - 2:
        return draft.op("MatMul", draft.constant(matrix.astype(dtype), "rows"), x)
    perm = [i for i in range(rank) if i != axis] + [axis]
    moved = draft.op("Transpose", x, perm=perm)
    pooled = draft.op("MatMul", moved, draft.constant(matrix.T.astype(dtype), "columns"))
    back = [perm.index(i) for i in range(rank)]
    return draft.op("Transpose", pooled, perm=back)
