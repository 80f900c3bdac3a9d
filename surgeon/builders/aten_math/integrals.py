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
    """`trapezoid` and `cumulative_trapezoid`: half the width times the sum of neighbours."""
    y = work.args.tensor("y")
    if work.dtype(y) == BOOL:
        raise Refused("PyTorch has no integral of booleans")
    rank = work.rank(y)
    dim = int(work.constant_of("dim", -1))
    if not -rank <= dim < rank:
        raise Refused(f"dim {dim} is outside the rank {rank}")
    axis = dim % rank
    y = work.floating(y)
    both = work.op("Add", part(work, y, axis, 1, _END), part(work, y, axis, 0, -1))
    if not work.args.schema.takes("x"):
        areas = work.op("Mul", both, float(work.constant_of("dx", 1)) / 2)
    else:
        widths = _widths(work, work.args.tensor("x"), axis, rank)
        _, (both, widths) = work.together(both, widths)
        areas = work.op("Mul", work.op("Mul", both, widths), 0.5)
    if work.name == "cumulative_trapezoid":
        return running_sum(work, areas, axis)
    return reduce(work, "ReduceSum", areas, [axis], keepdim=False)


def _widths(work: Work, x: gs.Tensor, axis: int, rank: int) -> gs.Tensor:
    own = work.rank(x)
    if own not in (1, rank):
        raise Refused(f"its points have rank {own}, its values {rank}")
    along = axis if own == rank else 0
    x = work.floating(x)
    widths = work.op("Sub", part(work, x, along, 1, _END), part(work, x, along, 0, -1))
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
    return work.op("Mul", x, work.where(work.op("Less", bound, size), down, 1.0))


FUNCTIONS: Mapping[str, Callable[[Work], gs.Tensor]] = {
    **dict.fromkeys(("trapezoid", "cumulative_trapezoid"), trapezoid),
    **dict.fromkeys(("vander", "linalg_vander"), vander),
    "renorm": renorm,
}
