"""Integrals by trapezoids, powers in columns, and norms that are kept below a bound."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import onnx_graphsurgeon as gs

from surgeon.builders.aten_math.ordered import part, running_sum
from surgeon.builders.aten_math.reductions import p_norm, reduce
from surgeon.builders.aten_math.work import BOOL, DOUBLE, FLOAT, INT64, Work, numpy_dtype
from surgeon.builders.bench import Bench
from surgeon.facts.kinds import FLOATS
from surgeon.rewrite import Refused

_END = int(np.iinfo(np.int64).max)
_MOST_POWERS = 256


def trapezoid(work: Work) -> gs.Tensor:
    """`trapezoid` and `cumulative_trapezoid`: half the width times the sum of neighbours.

    As PyTorch computes them: integers in their own type, which wraps, and added up in int64.
    """
    y = work.args.tensor("y")
    if work.dtype(y) == BOOL:
        raise Refused("PyTorch has no integral of booleans")
    rank = work.rank(y)
    dim = int(work.constant_of("dim", -1))
    if not -rank <= dim < rank:
        raise Refused(f"dim {dim} is outside the rank {rank}")
    axis = dim % rank
    if work.args.schema.takes("x"):
        areas = _between(work, y, work.args.tensor("x"), axis)
    else:
        step = float(work.constant_of("dx", 1))
        if work.name == "trapezoid" and work.dtype(y) not in FLOATS:
            return _evenly(work, y, axis, step)
        areas = work.op("Mul", work.floating(_neighbours(work, y, axis)), step / 2)
    if work.name == "cumulative_trapezoid":
        made = running_sum(work, areas, axis)
    else:
        made = reduce(work, "ReduceSum", areas, [axis], keepdim=False)
    return made if work.dtype(made) in FLOATS else work.op("Mul", work.floating(made), 0.5)


def _neighbours(work: Work, y: gs.Tensor, axis: int) -> gs.Tensor:
    made: gs.Tensor = work.widely("Add", part(work, y, axis, 1, _END), part(work, y, axis, 0, -1))
    return made


def _between(work: Work, y: gs.Tensor, x: gs.Tensor, axis: int) -> gs.Tensor:
    """The areas between points; those of integers between integers twice as large, in int64."""
    widths = _widths(work, x, axis, work.rank(y))
    dtype, (both, widths) = work.together(_neighbours(work, y, axis), widths)
    areas = work.widely("Mul", both, widths)
    return work.op("Mul", areas, 0.5) if dtype in FLOATS else work.cast(areas, INT64)


def _evenly(work: Work, y: gs.Tensor, axis: int, step: float) -> gs.Tensor:
    """Of integers in equal steps: their sum, less half of both ends."""
    total = reduce(work, "ReduceSum", work.cast(y, INT64), [axis], keepdim=False)
    ends = work.widely("Add", part(work, y, axis, 0, 1), part(work, y, axis, -1, _END))
    half = work.op("Mul", work.floating(ends), 0.5)
    half = reduce(work, "ReduceSum", half, [axis], keepdim=False)
    return work.op("Mul", work.op("Sub", work.floating(total), half), step)


def _widths(work: Work, x: gs.Tensor, axis: int, rank: int) -> gs.Tensor:
    own = work.rank(x)
    if own not in (1, rank):
        raise Refused(f"its points have rank {own}, its values {rank}")
    if work.dtype(x) == BOOL:
        raise Refused("PyTorch has no differences of booleans")
    along = axis if own == rank else 0
    widths = work.widely("Sub", part(work, x, along, 1, _END), part(work, x, along, 0, -1))
    behind = rank - axis - 1
    if own == 1 and behind:
        widths = work.draft.op("Unsqueeze", widths, work.axes(range(1, behind + 1)))
    return widths


def vander(work: Work) -> gs.Tensor:
    """`vander` and `linalg_vander`: the powers of each element, by products."""
    x = work.as_list(work.args.tensor("x"))
    dtype, rank = work.dtype(x), work.rank(x)
    rising = work.name == "linalg_vander" or bool(work.args.value("increasing"))
    count = work.args.value("N")
    if count is None:
        shape = work.facts.of(x).shape
        count = shape[-1] if shape else None
    if not isinstance(count, int) and dtype in (FLOAT, DOUBLE):
        return _powers_of_all(work, x, rising=rising)
    if not isinstance(count, int):
        raise Refused("how many powers of integers or halves there are is known at run time only")
    if not 1 <= count <= _MOST_POWERS:
        raise Refused(f"it has {count} columns")
    kind = dtype if dtype in FLOATS else INT64
    column = work.draft.op("Unsqueeze", work.cast(x, kind), work.axes([rank]))
    one = np.ones(1, numpy_dtype(kind))
    powers = [
        work.draft.op(
            "Expand", work.draft.constant(one.reshape(1, 1)), work.draft.op("Shape", column)
        )
    ]
    for _ in range(count - 1):
        powers.append(column if len(powers) == 1 else work.op("Mul", powers[-1], column))
    made: gs.Tensor = work.draft.op("Concat", *(powers if rising else powers[::-1]), axis=rank)
    return made


def _powers_of_all(work: Work, x: gs.Tensor, *, rising: bool) -> gs.Tensor:
    """As many powers as the last axis has elements, at run time."""
    bench, rank = Bench(work.draft), work.rank(x)
    length = bench.size(x, rank - 1)
    line = bench.count(length)
    if not rising:
        line = work.op("Sub", bench.vector([bench.sub(length, 1)], "last"), line)
    column = work.draft.op("Unsqueeze", x, work.axes([rank]))
    made: gs.Tensor = work.op("Pow", column, work.cast(line, work.dtype(x)))
    return made


def renorm(work: Work) -> gs.Tensor:
    """`renorm`: parts along a dim whose norm is above the bound are scaled down to it."""
    x = work.args.tensor("self")
    return work.op("Mul", x, shares_of_bound(work, x))


def shares_of_bound(work: Work, x: gs.Tensor) -> gs.Tensor:
    """What `renorm` multiplies the parts with."""
    dtype, rank = work.dtype(x), work.rank(x)
    if dtype not in FLOATS:
        raise Refused("PyTorch takes no norm of integers")
    dim = int(work.constant_of("dim", 0))
    if rank < 2 or not -rank <= dim < rank:
        raise Refused(f"dim {dim} of an input of rank {rank}")
    others = [i for i in range(rank) if i != dim % rank]
    size = p_norm(work, x, float(work.args.value("p")), others, keepdim=True)
    bound = work.number(float(work.args.value("maxnorm")), dtype)
    down = work.op("Div", bound, work.op("Add", size, 1e-7))
    return work.where(work.op("Less", bound, size), down, 1.0)


FUNCTIONS: Mapping[str, Callable[[Work], gs.Tensor]] = {
    **dict.fromkeys(("trapezoid", "cumulative_trapezoid"), trapezoid),
    **dict.fromkeys(("vander", "linalg_vander"), vander),
    "renorm": renorm,
}
