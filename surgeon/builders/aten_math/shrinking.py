"""Sums and norms that leave what is asked for: the shape of a smaller tensor, or one axis."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import onnx_graphsurgeon as gs

from surgeon import dims
from surgeon.builders.aten_math.reductions import dims_of, keeps, p_norm, reduce
from surgeon.builders.aten_math.work import INT64, Work
from surgeon.facts.kinds import FLOATS
from surgeon.rewrite import Refused


def sum_to_size(work: Work) -> gs.Tensor:
    """`sum_to_size`: summed over the axes that broadcasting to its shape would have made."""
    x = work.args.tensor("self")
    if not work.args.has("size") and work.name == "_grad_sum_to_size":
        return x
    wanted, shape = work.args.dims("size"), work.facts.of(x).shape
    if shape is None:
        raise Refused(f"the rank of `{x.name}` is not known")
    lead = len(shape) - len(wanted)
    if lead < 0:
        raise Refused(f"an input of rank {len(shape)} does not sum to {len(wanted)} axes")
    gone = list(range(lead))
    for axis, size in enumerate(wanted, lead):
        if size == 1 and shape[axis] != 1:
            gone.append(axis)
        elif size != 1 and dims.equal(shape[axis], size) is not True:
            raise Refused(f"whether its axis {axis} is summed is known at run time only")
    if not gone and wanted:
        return x
    if work.dtype(x) not in (*FLOATS, INT64):  # as every sum of integers; without one they stay
        if not lead and any(not isinstance(shape[axis], int) for axis in gone):
            raise Refused("whether there is a sum, which gives int64, is known at run time only")
        x = work.cast(x, INT64)
    y = reduce(work, "ReduceSum", x, gone, keepdim=True) if gone else x
    return work.draft.op("Squeeze", y, work.axes(range(lead))) if lead else y


def norm_except_dim(work: Work) -> gs.Tensor:
    """`norm_except_dim`: over all axes but one; -1 stands for none, as weight norm has it."""
    v = work.args.tensor("v")
    rank, dim, power = work.rank(v), int(work.args.value("dim")), float(work.args.value("pow"))
    if work.dtype(v) not in FLOATS:
        raise Refused("PyTorch takes no norm of integers")
    if dim == -1:
        return p_norm(work, v, power, None, keepdim=False)
    if not -rank <= dim < rank:
        raise Refused(f"dim {dim} is outside the rank {rank}")
    others = [axis for axis in range(rank) if axis != dim % rank]
    return p_norm(work, v, power, others, keepdim=True) if others else work.op("Abs", v)


def power_sum(work: Work) -> gs.Tensor:
    """`linalg__powsum`: the sum of powers of magnitudes, without the root of a norm."""
    x = work.args.tensor("self")
    dtype = work.dtype_argument()
    x = x if dtype is None else work.cast(x, dtype)
    order = float(work.constant_of("ord", 2))
    if work.dtype(x) not in FLOATS or not math.isfinite(order):
        raise Refused(f"PyTorch takes no sum of the powers {order} of such numbers")
    if order == 0:
        apart = work.invert(work.equal(x, work.number(0, work.dtype(x))))
        powers = work.cast(apart, work.dtype(x))
    elif order == 2:
        powers = work.op("Mul", x, x)
    else:
        powers = work.op("Abs", x) if order == 1 else work.op("Pow", work.op("Abs", x), order)
    return reduce(work, "ReduceSum", powers, dims_of(work, x), keepdim=keeps(work))


FUNCTIONS: Mapping[str, Callable[[Work], gs.Tensor]] = {
    **dict.fromkeys(("sum_to_size", "_grad_sum_to_size"), sum_to_size),
    "norm_except_dim": norm_except_dim,
    "linalg__powsum": power_sum,
}
