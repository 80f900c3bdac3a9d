"""Operators by the order of elements: extremes with indices, median, k-th value; and scans."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx_graphsurgeon as gs

from surgeon.builders.aten_math.activations import axis_of
from surgeon.builders.aten_math.comparison import extreme_of_two
from surgeon.builders.aten_math.extreme_places import index_of_extreme
from surgeon.builders.aten_math.functions import log_add
from surgeon.builders.aten_math.reductions import (
    carry_nan,
    chooses,
    extreme,
    flattened,
    keeps,
    reduce,
)
from surgeon.builders.aten_math.work import BOOL, FLOAT, INT32, INT64, NARROW, Work, numpy_dtype
from surgeon.builders.aten_shape.order import topk
from surgeon.builders.bench import Bench, Size, nameless
from surgeon.builders.parts import lengths_given
from surgeon.facts.kinds import FLOATS, HALVES
from surgeon.numerals import NO_LENGTH
from surgeon.rewrite import Refused

_LONGEST_MATRIX = 2048  # the side of a triangular matrix
_LONGEST_SCAN = 1 << 16


def _has_second(work: Work) -> bool:
    return len(work.node.outputs) > 1 and bool(work.node.outputs[1].name)


def largest(work: Work) -> tuple[gs.Tensor, gs.Tensor]:
    """`max` and `min`: of everything, of two tensors, or over a dim with indices."""
    x = work.args.tensor("self")
    kind = "Max" if work.name == "max" else "Min"
    if work.args.schema.takes("other"):
        y = extreme_of_two(work, kind, x, work.args.tensor("other"))
        return y, y
    if not work.args.schema.takes("dim"):
        y = extreme(work, x, f"Reduce{kind}", None, keepdim=False)
        return y, y
    axis, keepdim = axis_of(work, x), keeps(work)
    if not _has_second(work):
        values = extreme(work, x, f"Reduce{kind}", [axis], keepdim)
        return values, values
    index = index_of_extreme(work, x, f"Arg{kind}", axis, keepdim=keepdim)
    if not chooses(work, x):
        return extreme(work, x, f"Reduce{kind}", [axis], keepdim), index
    at = index if keepdim else work.draft.op("Unsqueeze", index, work.axes([axis]))
    values = work.op("GatherElements", x, at, axis=axis)
    return values if keepdim else work.op("Squeeze", values, work.axes([axis])), index


def _at_rank(
    work: Work, x: gs.Tensor, k: int | gs.Tensor, axis: int
) -> tuple[gs.Tensor, gs.Tensor]:
    """The k-th smallest (from 1) along an axis, and its index; the axis stays.

    `k` may be computed, as int64[1].
    """
    bench = Bench(work.draft)
    count = Size(None, lambda: k) if isinstance(k, gs.Tensor) else k
    values, indices = topk(bench, x, axis, count, largest=False)
    last = bench.vector([bench.sub(count, 1)], "last")
    value = work.draft.op("Gather", values, last, axis=axis)
    return value, work.draft.op("Gather", indices, last, axis=axis)


def _without(work: Work, x: gs.Tensor, axis: int) -> gs.Tensor:
    return work.draft.op("Squeeze", x, work.axes([axis]))


def _known_length(work: Work, x: gs.Tensor, axis: int) -> int | None:
    shape = work.facts.of(x).shape
    length = None if shape is None else shape[axis]
    return length if isinstance(length, int) else None


def _computed_middle(work: Work, x: gs.Tensor, axis: int) -> gs.Tensor:
    """int64[1]: which of the elements is the lower one in the middle, from 1."""
    length = work.draft.op("Gather", work.draft.op("Shape", x), work.axes([axis]), axis=0)
    made: gs.Tensor = work.op("Div", work.op("Add", length, 1), 2)
    return made


def median(work: Work) -> tuple[gs.Tensor, gs.Tensor]:
    """`median`: the lower of the two in the middle; NaN where there is one."""
    x = work.args.tensor("self")
    whole = not work.args.schema.takes("dim")
    if work.facts.of(x).rank == 0:
        return x, work.draft.constant(np.asarray(0, np.int64))
    rank = work.facts.of(x).rank
    x = flattened(work, x) if whole else x
    if whole and rank is None:
        raise Refused("the rank of its input is not known")
    axis = 0 if whole else axis_of(work, x)
    length = _known_length(work, x, axis)
    if length == 0 and whole:
        return work.number(of_nothing(work.dtype(x)), work.dtype(x)), work.number(0, INT64)
    if length == 0:
        raise Refused("a median of no elements")
    middle = _computed_middle(work, x, axis) if length is None else (length + 1) // 2
    value, index = _at_rank(work, x, middle, axis)
    value = carry_nan(work, value, x, [axis], keepdim=True)
    if work.dtype(x) in FLOATS and _has_second(work):
        strange = work.cast(work.is_nan(x), INT32)
        first = work.op("ArgMax", strange, axis=axis, keepdims=1)
        index = work.where(work.is_nan(value), first, index)
    if whole or not keeps(work):
        value, index = _without(work, value, axis), _without(work, index, axis)
    return value, index


def of_nothing(dtype: int) -> float:
    """PyTorch's median of no elements: no number, or what a processor makes of it as an integer."""
    if dtype in NARROW:
        return 0
    return float("nan") if dtype in FLOATS else int(np.iinfo(numpy_dtype(dtype)).min)


def kth_value(work: Work) -> tuple[gs.Tensor, gs.Tensor]:
    """`kthvalue`: NaN counts as the largest."""
    x = work.args.tensor("self")
    axis = axis_of(work, x)
    if work.rank(x) == 0:
        return x, work.draft.constant(np.asarray(0, np.int64))
    length, asked = _known_length(work, x, axis), lengths_given(work.draft, work.args, "k", 1)[0]
    k = asked.make() if asked.static is None else asked.static
    if isinstance(k, int) and (k < 1 or (length is not None and k > length)):
        raise Refused(f"the {k}-th of {length} elements")
    ordered = x
    if work.dtype(x) in FLOATS:
        ordered = work.where(work.is_nan(x), np.inf, x)
    value, index = _at_rank(work, ordered, k, axis)
    if ordered is not x:
        ones = work.cast(work.invert(work.is_nan(x)), INT64)
        numbers = reduce(work, "ReduceSum", ones, [axis], keepdim=True)
        value = work.where(work.op("Less", numbers, k), np.nan, value)
    if not keeps(work):
        value, index = _without(work, value, axis), _without(work, index, axis)
    return value, index


def part(work: Work, x: gs.Tensor, axis: int, start: int, end: int) -> gs.Tensor:
    """A slice of one axis."""
    x = nameless(work.draft, x, [axis])
    return work.draft.op("Slice", x, work.axes([start]), work.axes([end]), work.axes([axis]))


def scan(
    work: Work,
    parts: Sequence[gs.Tensor],
    axis: int,
    combine: Callable[[Sequence[gs.Tensor], Sequence[gs.Tensor]], Sequence[gs.Tensor]],
) -> list[gs.Tensor]:
    """Running results along an axis in log2(length) steps.

    Args:
        work: The node.
        parts: What is carried along.
        axis: Where its length is known at run time only, as many steps as a tensor can need: what
            lies beyond the length is cut off, and joining nothing changes nothing.
        combine: Earlier and later into their result; associative.
    """
    length = _known_length(work, parts[0], axis)
    if length is not None and length > _LONGEST_SCAN:
        raise Refused(f"axis {axis} has {length} elements")
    step = 1
    found = list(parts)
    while step < (NO_LENGTH if length is None else length):
        earlier = [part(work, x, axis, 0, -step) for x in found]
        later = [part(work, x, axis, step, NO_LENGTH) for x in found]
        heads = [part(work, x, axis, 0, step) for x in found]
        made = combine(earlier, later)
        found = [
            work.draft.op("Concat", head, rest, axis=axis)
            for head, rest in zip(heads, made, strict=True)
        ]
        step *= 2
    if length is None:  # the shape is as before, which no rule of inference sees
        shape = work.draft.op("Shape", parts[0])
        found = [work.draft.op("Reshape", x, shape) for x in found]
    return found


def _accumulated(work: Work) -> tuple[gs.Tensor, int]:
    x = work.args.tensor("self")
    dtype = work.dtype_argument()
    if dtype is None:
        dtype = work.dtype(x) if work.dtype(x) in FLOATS else INT64
    if dtype in NARROW or dtype == BOOL:
        raise Refused("its dtype is one that no runtime accumulates in")
    return work.cast(x, dtype), axis_of(work, x)


def cumsum(work: Work) -> gs.Tensor:
    """`cumsum`: CumSum, or before opset 11 a product with a triangular matrix."""
    x, axis = _accumulated(work)
    return x if work.rank(x) == 0 else running_sum(work, x, axis)


def running_sum(work: Work, x: gs.Tensor, axis: int) -> gs.Tensor:
    """Sums up to each place of an axis."""
    if work.opset >= 11:
        dtype = work.dtype(x)  # onnxruntime has none of halves
        wide = work.cast(x, FLOAT) if dtype in HALVES else x
        axes = work.draft.constant(np.asarray(axis, np.int64))
        return work.cast(work.draft.op("CumSum", wide, axes), dtype)
    matrix, rank = _triangle(work, x, axis), work.rank(x)
    if axis == rank - 1:
        return work.draft.op("MatMul", x, matrix)
    swap = list(range(rank))
    swap[axis], swap[-1] = swap[-1], swap[axis]
    moved = work.draft.op("MatMul", work.draft.op("Transpose", x, perm=swap), matrix)
    return work.draft.op("Transpose", moved, perm=swap)


def _triangle(work: Work, x: gs.Tensor, axis: int) -> gs.Tensor:
    """Ones on and above the diagonal, as many as the axis is long, also at run time."""
    shape, dtype = work.facts.of(x).shape, work.dtype(x)
    length = None if shape is None else shape[axis]
    if isinstance(length, int):
        if length > _LONGEST_MATRIX:
            raise Refused(f"axis {axis} has {length} elements; `CumSum` needs opset 11")
        ones = np.ones((length, length), numpy_dtype(dtype))
        return work.draft.constant(np.triu(ones), "triangle")
    columns = _places(work, x, axis)
    rows = work.draft.op("Transpose", columns, perm=[1, 0])
    return work.cast(work.invert(work.op("Less", columns, rows)), dtype)


def _places(work: Work, x: gs.Tensor, axis: int) -> gs.Tensor:
    """int64[1, n]: the places of an axis."""
    length = _known_length(work, x, axis)
    if length is not None:
        return work.draft.constant(np.arange(length, dtype=np.int64)[None], "places")
    size = work.draft.op("Gather", work.draft.op("Shape", x), work.axes([axis]), axis=0)
    made: gs.Tensor = work.draft.op(
        "NonZero", work.draft.op("ConstantOfShape", size, value=np.ones(1, np.int64))
    )
    return made


def cumprod(work: Work) -> gs.Tensor:
    """`cumprod`, of halves in single precision; of that PyTorch's products are in double."""
    x, axis = _accumulated(work)
    if work.rank(x) == 0:
        return x
    dtype = work.dtype(x)
    wide = work.cast(x, FLOAT) if dtype in HALVES else x
    return work.cast(running_product(work, wide, axis, is_wider=dtype == FLOAT), dtype)


def running_product(work: Work, x: gs.Tensor, axis: int, *, is_wider: bool) -> gs.Tensor:
    """Products up to each place of an axis, as if they were made one by one.

    A product of a block in the middle may be infinite where the one that PyTorch has there is not:
    with a zero before it that is 0, unless an element was infinite or no number.

    Args:
        work: The node.
        x: The factors.
        axis: Where they stand.
        is_wider: Whether products are made in a wider dtype, where none is infinite before a zero.
    """
    (made,) = scan(work, [x], axis, lambda a, b: [work.op("Mul", a[0], b[0])])
    dtype = work.dtype(x)
    if dtype not in FLOATS or _known_length(work, x, axis) == 1:
        return made
    zero = work.number(0, dtype)
    # how many zeros there were; from what is infinite or no number on, no number: so is the product
    ends = work.cast(work.draft.op("Equal", x, zero), dtype)
    ended = work.less(zero, _so_far(work, work.op("Add", ends, work.op("Mul", x, zero)), axis))
    end = zero
    if not is_wider:
        strange = work.op("Or", work.is_nan(made), work.is_infinite(made))
        before = work.cast(work.op("And", work.invert(ended), strange), dtype)
        met = work.less(zero, _so_far(work, before, axis))
        end = work.where(met, work.number(np.nan, dtype), zero)
    return work.where(ended, end, made)


def _so_far(work: Work, x: gs.Tensor, axis: int) -> gs.Tensor:
    """The sum up to each place: what is no number reaches none before it, as by a product."""
    if work.opset < 11:
        return scan(work, [x], axis, lambda a, b: [work.op("Add", a[0], b[0])])[0]
    return running_sum(work, x, axis)


def log_cumsum_exp(work: Work) -> gs.Tensor:
    """`logcumsumexp`."""
    x, axis = work.args.tensor("self"), axis_of(work, work.args.tensor("self"))
    if work.dtype(x) not in FLOATS:
        raise Refused("PyTorch has no logcumsumexp of integers")
    if work.rank(x) == 0:
        return x
    return scan(work, [x], axis, lambda a, b: [log_add(work, a[0], b[0])])[0]


def running_extreme(work: Work) -> tuple[gs.Tensor, gs.Tensor]:
    """`cummax` and `cummin`: of equals the last counts; NaN stays once met."""
    x = work.args.tensor("self")
    axis = axis_of(work, x)
    if work.rank(x) == 0:
        return x, work.draft.constant(np.asarray(0, np.int64))
    dtype = work.dtype(x)

    def later_counts(a: gs.Tensor, b: gs.Tensor) -> gs.Tensor:
        first, second = (a, b) if work.name == "cummax" else (b, a)
        chosen = work.less(first, second, or_equal=True)
        return work.op("Or", chosen, work.is_nan(b)) if dtype in FLOATS else chosen

    def combine(a: Sequence[gs.Tensor], b: Sequence[gs.Tensor]) -> list[gs.Tensor]:
        chosen = later_counts(a[0], b[0])
        return [work.where(chosen, q, p) for p, q in zip(a, b, strict=True)]

    if not _has_second(work):
        values = scan(work, [x], axis, combine)[0]
        return values, values
    places = work.draft.op(
        "Reshape", _places(work, x, axis), work.axes([-1] + [1] * (work.rank(x) - axis - 1))
    )
    zeros = work.op("Mul", work.cast(work.cast(x, BOOL), INT64), 0)
    index = work.op("Add", zeros, places)
    values, indices = scan(work, [x, index], axis, combine)
    return values, indices


SINGLE: Mapping[str, Callable[[Work], gs.Tensor]] = {
    "cumsum": cumsum,
    "cumprod": cumprod,
    "logcumsumexp": log_cumsum_exp,
}
DOUBLES: Mapping[str, Callable[[Work], tuple[gs.Tensor, gs.Tensor]]] = {
    "max": largest,
    "min": largest,
    "median": median,
    "kthvalue": kth_value,
    "cummax": running_extreme,
    "cummin": running_extreme,
}
FUNCTIONS: Mapping[str, Callable[[Work], Any]] = {**SINGLE, **DOUBLES}
