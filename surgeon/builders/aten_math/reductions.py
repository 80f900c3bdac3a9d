"""Sums, means, extremes, norms and moments over some axes or all."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx_graphsurgeon as gs

from surgeon.builders.aten_math.comparison import truth
from surgeon.builders.aten_math.work import BOOL, DOUBLE, FLOAT, INT32, INT64, NARROW, UINT8, Work
from surgeon.builders.bench import Bench, Size
from surgeon.facts.kinds import FLOATS
from surgeon.rewrite import Refused


def dims_of(work: Work, x: gs.Tensor, name: str = "dim") -> list[int] | None:
    """The axes counted from the front; None for all of them."""
    if not work.args.schema.takes(name):
        return None
    given = work.args.value(name)
    if given is None:
        return None
    dims = [int(d) for d in (given if isinstance(given, (list, tuple)) else [given])]
    if not dims:
        return None
    rank = work.facts.of(x).rank
    if rank is None:
        if min(dims) < 0 and work.opset < 11:
            raise Refused("the rank of its input is not known")
        return dims
    if any(not -max(rank, 1) <= d < max(rank, 1) for d in dims):
        raise Refused(f"dims {dims} are outside the rank {rank}")
    return sorted({d % max(rank, 1) for d in dims}) if rank else None


def keeps(work: Work) -> bool:
    """Whether reduced axes stay with length 1."""
    return work.args.schema.takes("keepdim") and bool(work.args.value("keepdim"))


# No number to PyTorch, the least number of the dtype to onnxruntime.
_NEED_SOME = {
    "ReduceMax": "the largest",
    "ReduceMin": "the smallest",
}


def reduce(
    work: Work, operator: str, x: gs.Tensor, dims: Sequence[int] | None, *, keepdim: bool
) -> gs.Tensor:
    """A `Reduce*` node; integers of 8 and 16 bits go by way of int32."""
    dtype = work.dtype(x)
    wide = work.cast(x, INT32) if dtype in NARROW or dtype == BOOL else x
    if work.facts.of(x).rank == 0:
        operator = {"ReduceL1": "Abs", "ReduceL2": "Abs"}.get(operator, "")
        return work.op(operator, x) if operator else x
    shape = work.facts.of(x).shape or ()
    over = shape if dims is None else [shape[d] for d in dims if d < len(shape)]
    if operator in _NEED_SOME and 0 in over:
        raise Refused(f"{_NEED_SOME[operator]} of no elements")
    if operator == "ReduceMean" and 0 in over:
        return _nothing(work, x, dims, keepdim=keepdim)
    inputs = [wide] if dims is None else [wide, work.axes(dims)]
    return work.cast(work.draft.op(operator, *inputs, keepdims=int(keepdim)), dtype)


def _nothing(work: Work, x: gs.Tensor, dims: Sequence[int] | None, *, keepdim: bool) -> gs.Tensor:
    """NaN, which is PyTorch's mean of no elements; to onnxruntime it is 0."""
    bench, rank = Bench(work.draft), work.rank(x)
    gone = {d % rank for d in (range(rank) if dims is None else dims)}
    kept: list[Size | int] = [
        1 if axis in gone else bench.size(x, axis)
        for axis in range(rank)
        if keepdim or axis not in gone
    ]
    return bench.filled(kept, np.nan, work.dtype(x))


def summed(work: Work) -> gs.Tensor:
    """`sum`, `nansum` and `prod`: booleans and integers into int64."""
    x = work.args.tensor("self")
    dtype = work.dtype_argument()
    if dtype is None:
        dtype = work.dtype(x) if work.dtype(x) in FLOATS else INT64
    x = work.cast(x, dtype)
    if work.name == "nansum" and dtype in FLOATS:
        x = work.where(work.is_nan(x), 0.0, x)
    operator = "ReduceProd" if work.name == "prod" else "ReduceSum"
    if dtype == BOOL:
        return _of_truth(work, x, dims_of(work, x), every=work.name == "prod")
    return reduce(work, operator, x, dims_of(work, x), keepdim=keeps(work))


def mean(work: Work) -> gs.Tensor:
    """`mean`; of integers only with a dtype; `nanmean` of what is a number."""
    x = work.args.tensor("self")
    dtype = work.dtype_argument()
    x = x if dtype is None else work.cast(x, dtype)
    if work.dtype(x) not in FLOATS:
        raise Refused("PyTorch takes no mean of integers")
    if work.name == "nanmean":
        strange, dims, keepdim = work.is_nan(x), dims_of(work, x), keeps(work)
        numbers = work.cast(work.invert(strange), work.dtype(x))
        total = reduce(work, "ReduceSum", work.where(strange, 0.0, x), dims, keepdim=keepdim)
        return work.op("Div", total, reduce(work, "ReduceSum", numbers, dims, keepdim=keepdim))
    return reduce(work, "ReduceMean", x, dims_of(work, x), keepdim=keeps(work))


def carry_nan(
    work: Work, y: gs.Tensor, x: gs.Tensor, dims: Sequence[int] | None, *, keepdim: bool
) -> gs.Tensor:
    """`y`, or NaN where the part of `x` behind it holds one, which runtimes skip."""
    if work.dtype(x) not in FLOATS:
        return y
    only = work.where(work.is_nan(x), x, 0.0)
    return work.op("Add", y, reduce(work, "ReduceSum", only, dims, keepdim=keepdim))


def extreme(
    work: Work, x: gs.Tensor, operator: str, dims: Sequence[int] | None, keepdim: bool
) -> gs.Tensor:
    """The largest or smallest elements; NaN wins."""
    if work.facts.of(x).rank == 0:
        return x
    if chooses(work, x):
        return _whole_extreme(work, x, operator, dims, keepdim)
    y = reduce(work, operator, x, dims, keepdim=keepdim)
    return carry_nan(work, y, x, dims, keepdim=keepdim)


def chooses(work: Work, x: gs.Tensor) -> bool:
    """Whether an extreme is taken by its index: of int64 onnxruntime compares the lower halves."""
    return work.dtype(x) == INT64 and work.opset >= 11 and work.rank(x) > 0


def _whole_extreme(
    work: Work, x: gs.Tensor, operator: str, dims: Sequence[int] | None, keepdim: bool
) -> gs.Tensor:
    """By its index, one axis after the other."""
    rank = work.rank(x)
    axes = sorted(range(rank) if dims is None else dims)
    shape = work.facts.of(x).shape or ()
    if 0 in [shape[axis] for axis in axes if shape]:
        raise Refused(f"{_NEED_SOME[operator]} of no elements")
    if len(axes) == rank > 1 and not keepdim:
        x, axes, rank = flattened(work, x), [0], 1
    for axis in axes:
        index = work.op(operator.replace("Reduce", "Arg"), x, axis=axis, keepdims=1)
        x = work.op("GatherElements", x, index, axis=axis)
    return x if keepdim else work.op("Squeeze", x, work.axes(axes))


def amax(work: Work) -> gs.Tensor:
    """`amax` and `amin`."""
    x = work.args.tensor("self")
    operator = "ReduceMax" if work.name == "amax" else "ReduceMin"
    return extreme(work, x, operator, dims_of(work, x), keeps(work))


def aminmax(work: Work) -> tuple[gs.Tensor, gs.Tensor]:
    """`aminmax`."""
    x = work.args.tensor("self")
    dims = dims_of(work, x)
    least = extreme(work, x, "ReduceMin", dims, keeps(work))
    return least, extreme(work, x, "ReduceMax", dims, keeps(work))


def flattened(work: Work, x: gs.Tensor) -> gs.Tensor:
    """All elements in one row."""
    if work.facts.of(x).rank == 1:
        return x
    return work.draft.op("Reshape", x, work.axes([-1]))


def quantified(work: Work) -> gs.Tensor:
    """`any` and `all`: of bytes a byte, else a bool; over an empty list of dims each by itself."""
    x = work.args.tensor("self")
    result = UINT8 if work.dtype(x) == UINT8 else BOOL
    truth = work.cast(x, BOOL)
    if work.args.schema.takes("dim") and work.args.value("dim") in ([], ()):
        return work.cast(truth, result)
    return work.cast(_of_truth(work, truth, dims_of(work, x), every=work.name == "all"), result)


def _of_truth(
    work: Work, truth: gs.Tensor, dims: Sequence[int] | None, *, every: bool
) -> gs.Tensor:
    """Whether any is true, or every one; of none at all as well."""
    counted = work.cast(work.invert(truth) if every else truth, INT32)
    count = reduce(work, "ReduceSum", counted, dims, keepdim=keeps(work))
    none = work.number(0, INT32)  # compared, because runtimes hold a Cast to booleans as the number
    return work.equal(count, none) if every else work.less(none, count)


def count_nonzero(work: Work) -> gs.Tensor:
    """`count_nonzero`."""
    x = work.args.tensor("self")
    ones = work.cast(truth(work, x), INT64)
    return reduce(work, "ReduceSum", ones, dims_of(work, x), keepdim=False)


def _known_count(work: Work, x: gs.Tensor, dims: Sequence[int] | None) -> int | None:
    shape = work.facts.of(x).shape
    if shape is None:
        return None
    reduced = [shape[d] for d in (range(len(shape)) if dims is None else dims)]
    known = [d for d in reduced if isinstance(d, int)]
    return math.prod(known) if len(known) == len(reduced) or 0 in known else None


def element_count(
    work: Work, x: gs.Tensor, dims: Sequence[int] | None, dtype: int
) -> gs.Tensor | int:
    """How many elements are reduced: a number where it is known, else computed."""
    known = _known_count(work, x, dims)
    if known is not None:
        return known
    if dims is None:
        return work.cast(work.draft.op("Size", x), dtype)
    lengths = work.draft.op("Gather", work.draft.op("Shape", x), work.axes(dims), axis=0)
    return work.cast(work.draft.op("ReduceProd", lengths, keepdims=0), dtype)


def moments(work: Work, x: gs.Tensor) -> tuple[gs.Tensor, gs.Tensor]:
    """The variance and the mean."""
    schema = work.args.schema
    dims, keepdim = dims_of(work, x), keeps(work)
    if work.dtype(x) not in FLOATS:
        raise Refused("PyTorch takes no deviation of integers")
    if schema.takes("correction"):
        correction = float(work.constant_of("correction", 1))
    else:
        correction = 1.0 if work.constant_of("unbiased", True) else 0.0
    if work.facts.of(x).rank == 0:
        if correction:
            raise Refused("the deviation of a single number")
        return work.op("Sub", x, x), x
    if _known_count(work, x, dims) == 0:
        nothing = _nothing(work, x, dims, keepdim=keepdim)
        return nothing, nothing
    center = reduce(work, "ReduceMean", x, dims, keepdim=True)
    apart = work.op("Sub", x, center)
    squares = work.op("Mul", apart, apart)
    middle = center if keepdim else reduce(work, "ReduceMean", x, dims, keepdim=False)
    if correction == 0:
        return reduce(work, "ReduceMean", squares, dims, keepdim=keepdim), middle
    total = reduce(work, "ReduceSum", squares, dims, keepdim=keepdim)
    count = element_count(work, x, dims, work.dtype(x))
    if isinstance(count, int):
        return work.op("Div", total, float(max(count - correction, 0))), middle
    rest = work.extreme("Max", work.op("Sub", count, correction), work.number(0, work.dtype(x)))
    return work.op("Div", total, rest), middle


def variance(work: Work) -> gs.Tensor:
    """`var` and `std`."""
    found, _ = moments(work, work.args.tensor("self"))
    return work.op("Sqrt", found) if work.name == "std" else found


def variance_and_mean(work: Work) -> tuple[gs.Tensor, gs.Tensor]:
    """`var_mean` and `std_mean`."""
    found, middle = moments(work, work.args.tensor("self"))
    return (work.op("Sqrt", found) if work.name == "std_mean" else found), middle


def p_norm(
    work: Work, x: gs.Tensor, p: float, dims: Sequence[int] | None, *, keepdim: bool
) -> gs.Tensor:
    """The vector norm of any order."""
    if p == 2:
        return reduce(work, "ReduceL2", x, dims, keepdim=keepdim)
    if p == 1:
        return reduce(work, "ReduceL1", x, dims, keepdim=keepdim)
    size = work.op("Abs", x)
    if p == math.inf:
        return extreme(work, size, "ReduceMax", dims, keepdim)
    if p == -math.inf:
        return extreme(work, size, "ReduceMin", dims, keepdim)
    if p == 0:
        apart = work.invert(work.equal(x, work.number(0, work.dtype(x))))
        return reduce(work, "ReduceSum", work.cast(apart, work.dtype(x)), dims, keepdim=keepdim)
    total = reduce(work, "ReduceSum", work.op("Pow", size, float(p)), dims, keepdim=keepdim)
    return work.op("Pow", total, 1 / float(p))


def norm(work: Work) -> gs.Tensor:
    """`norm`, `frobenius_norm`, `linalg_vector_norm`, and the vector kinds of `linalg_norm`."""
    x = work.args.tensor("self")
    schema = work.args.schema
    dtype = work.dtype_argument()
    x = x if dtype is None else work.cast(x, dtype)
    if work.dtype(x) not in FLOATS:
        raise Refused("PyTorch takes no norm of integers")
    name = next((n for n in ("p", "ord") if schema.takes(n)), None)
    p: Any = 2 if name is None else work.constant_of(name, 2)
    dims = dims_of(work, x)
    ordered = work.name == "linalg_norm" and work.args.has("ord")
    if (ordered and len(dims or range(work.rank(x))) != 1) or isinstance(p, str):
        given = None if not schema.takes("dim") else work.args.value("dim")
        rank = work.rank(x)
        return matrix_norm(work, x, p, given or list(range(rank)))
    return p_norm(work, x, float(p), dims, keepdim=keeps(work))


def matrix_norm(work: Work, x: gs.Tensor, order: Any, dims: Sequence[int]) -> gs.Tensor:
    """`linalg_matrix_norm`: of all elements, or the greatest or least sum of rows or columns."""
    rank = work.rank(x)
    if len(dims) != 2 or any(not -rank <= d < rank for d in dims):
        raise Refused(f"a matrix norm over dims {list(dims)} of an input of rank {rank}")
    rows, columns = (int(d) % rank for d in dims)
    if order == "fro":
        return p_norm(work, x, 2.0, sorted((rows, columns)), keepdim=keeps(work))
    if order not in (1, -1, math.inf, -math.inf):
        raise Refused(
            f"the matrix norm {order!r} is made of singular values, which `aten-linalg` finds"
        )
    along, across = (rows, columns) if abs(order) == 1 else (columns, rows)
    sums = reduce(work, "ReduceL1", x, [along], keepdim=True)
    y = extreme(work, sums, "ReduceMax" if order > 0 else "ReduceMin", [across], True)
    if keeps(work):
        return y
    made: gs.Tensor = work.draft.op("Squeeze", y, work.axes(sorted((rows, columns))))
    return made


def norm_of_matrices(work: Work) -> gs.Tensor:
    """`linalg_matrix_norm`."""
    x = work.args.tensor("self")
    dtype = work.dtype_argument()
    x = x if dtype is None else work.cast(x, dtype)
    if work.dtype(x) not in FLOATS:
        raise Refused("PyTorch takes no norm of integers")
    order = work.constant_of("ord", "fro")
    return matrix_norm(work, x, order, work.constant_of("dim", [-2, -1]))


def logsumexp(work: Work) -> gs.Tensor:
    """`logsumexp`; integers become float32."""
    x = work.floating(work.args.tensor("self"))
    dtype = work.dtype(x)
    if dtype != DOUBLE:  # of halves onnxruntime takes the exponentials first, which overflow
        x = work.cast(x, FLOAT)
    found = reduce(work, "ReduceLogSumExp", x, dims_of(work, x), keepdim=keeps(work))
    return work.cast(found, dtype)


FUNCTIONS: Mapping[str, Callable[[Work], Any]] = {
    **dict.fromkeys(("sum", "nansum", "prod"), summed),
    **dict.fromkeys(("mean", "nanmean"), mean),
    **dict.fromkeys(("amax", "amin"), amax),
    **dict.fromkeys(("any", "all"), quantified),
    "count_nonzero": count_nonzero,
    **dict.fromkeys(("var", "std"), variance),
    **dict.fromkeys(("norm", "frobenius_norm", "linalg_vector_norm", "linalg_norm"), norm),
    "linalg_matrix_norm": norm_of_matrices,
    **dict.fromkeys(("logsumexp", "special_logsumexp"), logsumexp),
    "aminmax": aminmax,
    **dict.fromkeys(("var_mean", "std_mean"), variance_and_mean),
}
