"""Distances between rows, and how rows vary together."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import onnx_graphsurgeon as gs

from surgeon.builders.aten_shape.call import TYPE, Call, Size
from surgeon.builders.aten_shape.views import squeezed_at_run_time
from surgeon.builders.bench import dim_of
from surgeon.builders.contraction import diagonal
from surgeon.builders.scalar_types import promote
from surgeon.dims import bounds
from surgeon.facts.kinds import FLOATS
from surgeon.rewrite import Refused


def _cdist(c: Call) -> gs.Tensor:
    a, b, p = c.tensor("x1"), c.tensor("x2"), float(c.value("p"))
    rank = c.rank(a)
    lengths = [c.sizes(t) for t in (a, b)]
    if 0 in (*lengths[0], *lengths[1]):  # runtimes reduce no elements amiss
        known = [[n for n in s if isinstance(n, int)] for s in lengths]
        if [len(s) for s in known] != [len(s) for s in lengths]:
            raise Refused("it is of no elements, of a shape that is not known")
        batch = np.broadcast_shapes(*(tuple(s[:-2]) for s in known))
        return c.filled([*batch, known[0][-2], known[1][-2]], 0, c.dtype(a))
    wide = c.op("Sub", c.unsqueeze(a, [rank - 1]), c.unsqueeze(b, [c.rank(b) - 2]))
    return norm_of(c, wide, p)


def norm_of(c: Call, x: gs.Tensor, p: float) -> gs.Tensor:
    """The p-norm over the last axis; NaN wins, and of no elements it is 0."""
    axes = c.ints([-1], "axes")
    if p == 2:
        return c.op("ReduceL2", x, axes, keepdims=0)
    if p == 1:
        return c.op("ReduceL1", x, axes, keepdims=0)
    size, dtype = c.op("Abs", x), c.dtype(x)
    if np.isinf(p):
        return _greatest(c, size)
    if p == 0:
        some = c.cast(c.cast(size, TYPE.BOOL), dtype)
        some = c.where(c.op("IsNaN", size), size, some)
        return c.op("ReduceSum", some, axes, keepdims=0)
    total = c.op("ReduceSum", c.op("Pow", size, c.number(p, dtype)), axes, keepdims=0)
    return c.op("Pow", total, c.number(1 / p, dtype))


def _greatest(c: Call, size: gs.Tensor) -> gs.Tensor:
    """The greatest along the last axis of what is not negative.

    Runtimes pass over some NaN, and say of no elements the least number of the dtype.
    """
    axes, zero = c.ints([-1], "axes"), c.number(0, c.dtype(size))
    strange = c.op("IsNaN", size)
    greatest = c.op("ReduceMax", c.where(strange, zero, size), axes, keepdims=0)
    if not _least(c.size(size, c.rank(size) - 1)):
        greatest = c.where(c.op("Less", greatest, zero), zero, greatest)
    carried = c.op("ReduceSum", c.where(strange, size, zero), axes, keepdims=0)
    return c.op("Add", greatest, carried)


def _euclidean(c: Call) -> gs.Tensor:
    a, b = c.tensor("x1"), c.tensor("x2")
    wide = c.op("Sub", c.unsqueeze(a, [c.rank(a) - 1]), c.unsqueeze(b, [c.rank(b) - 2]))
    return norm_of(c, wide, 2.0)


def _pdist(c: Call) -> gs.Tensor:
    """The distances of every row from each that follows."""
    x = c.tensor()
    if c.rank(x) != 2:
        raise Refused(f"its input has rank {c.rank(x)}")
    rows = c.size(x, 0)
    if isinstance(rows, int) and rows < 2:
        return c.filled([0], 0, c.dtype(x))
    p = float(c.value("p"))
    if not isinstance(rows, int):  # runtimes reduce the distances of no pairs amiss
        whole = norm_of(c, c.op("Sub", c.unsqueeze(x, [1]), c.unsqueeze(x, [0])), p)
        places = c.count(rows)
        later = c.op("Less", c.unsqueeze(places, [1]), c.unsqueeze(places, [0]))
        return c.op("Compress", c.flat(whole), c.flat(later), axis=0)
    first, second = (
        c.op("Gather", x, c.ints(side.tolist(), "rows"), axis=0)
        for side in np.triu_indices(rows, 1)
    )
    return norm_of(c, c.op("Sub", first, second), p)


def _sum(c: Call, x: gs.Tensor, axis: int, *, keep: bool = False) -> gs.Tensor:
    return c.op("ReduceSum", x, c.ints([axis], "axes"), keepdims=int(keep))


def _least(size: Size | int) -> int:
    dim = dim_of(size)
    return 0 if dim is None else bounds(dim)[0] or 0


def covariance(c: Call, *, scaled: bool = False) -> gs.Tensor:
    """Variables in rows and observations in columns; a row of them is one variable.

    `scaled` measures each by its deviations together: squares of small ones would be 0.
    """
    x = c.tensor()
    rank = c.rank(x)
    if rank > 2 or rank == 0:
        raise Refused(f"its input has rank {rank}")
    if c.dtype(x) == TYPE.BOOL:
        raise Refused("PyTorch has no covariance of booleans")
    x = c.unsqueeze(x, [0]) if rank == 1 else x
    correction = 1 if not c.args.schema.takes("correction") else c.integer("correction")
    given = [c.args.optional(n) if c.args.schema.takes(n) else None for n in _SHARES]
    kinds = {k for t in (x, *given) if t is not None and (k := c.dtype(t)) in FLOATS}
    dtype = promote(*kinds or {TYPE.FLOAT})  # of integers alone in single precision
    x = c.cast(x, dtype)
    shares = [c.cast(t, dtype) for t in given if t is not None]
    weight = None if not shares else shares[0] if len(shares) == 1 else c.op("Mul", *shares)
    if weight is None:
        total = c.cast(c.vector([c.size(x, 1)]), dtype)
        mean = c.op("Div", _sum(c, x, 1, keep=True), total)
    else:
        total = _sum(c, weight, 0, keep=True)
        mean = c.op("Div", _sum(c, c.op("Mul", x, weight), 1, keep=True), total)
    gap = c.op("Sub", x, mean)
    if scaled:
        gap = c.op("Div", gap, _sum(c, c.op("Abs", gap), 1, keep=True))
    lost = c.number(correction, dtype)
    if weight is not None and given[1] is not None:
        squares = _sum(c, c.op("Mul", weight, c.cast(given[1], dtype)), 0, keep=True)
        lost = c.op("Mul", c.op("Div", squares, total), lost)
    degrees = c.op("Max", c.op("Sub", total, lost), c.number(0, dtype))
    other = gap if weight is None else c.op("Mul", gap, weight)
    products = c.op("MatMul", gap, c.permute(other, [1, 0]))
    return c.op("Div", c.squeeze(products, [0, 1]) if rank == 1 else products, degrees)


_SHARES = ("fweights", "aweights")


def _is_alone(c: Call) -> bool:
    """Whether there is one variable, whose covariance is a number."""
    return c.rank(c.tensor()) == 1 or c.size(c.tensor(), 0) == 1


def _as_number(c: Call, y: gs.Tensor) -> gs.Tensor:
    """A number where there is one variable, which may be known at run time only."""
    if c.rank(c.tensor()) == 2 and _least(c.size(c.tensor(), 0)) < 2:
        return squeezed_at_run_time(c, y, [0, 1])
    return y


def _cov(c: Call) -> gs.Tensor:
    y = covariance(c)
    return c.op("Reshape", y, c.ints([], "scalar")) if _is_alone(c) else _as_number(c, y)


def _corrcoef(c: Call) -> gs.Tensor:
    y = covariance(c, scaled=True)
    if _is_alone(c):
        return c.op("Reshape", c.op("Div", y, y), c.ints([], "scalar"))
    root = c.op("Sqrt", diagonal(c, y, 0, 0, 1))
    y = c.op("Div", c.op("Div", y, c.unsqueeze(root, [1])), c.unsqueeze(root, [0]))
    dtype = c.dtype(y)
    y = c.op("Min", c.op("Max", y, c.number(-1, dtype)), c.number(1, dtype))
    return _as_number(c, y)


LOWERINGS: Mapping[str, Callable[[Call], Any]] = {
    **dict.fromkeys(("cdist", "_cdist_forward"), _cdist),
    "_euclidean_dist": _euclidean,
    **dict.fromkeys(("pdist", "_pdist_forward"), _pdist),
    "cov": _cov,
    "corrcoef": _corrcoef,
}
