"""Spreads of complex values, and what is scaled by their sizes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_graphsurgeon as gs

from surgeon.builders import parts
from surgeon.builders.aten_math.integrals import shares_of_bound
from surgeon.builders.aten_math.work import Work
from surgeon.builders.aten_nn import complex_moves as moves
from surgeon.builders.aten_nn.complex_arithmetic import (
    Operands,
    both_of,
    certain,
    number_like,
    only,
    over,
    size,
    times,
)
from surgeon.builders.aten_nn.complex_functions import root
from surgeon.builders.aten_nn.transforms import Complex
from surgeon.builders.aten_shape.call import LARGEST
from surgeon.builders.aten_shape.distances import covariance as of_variables
from surgeon.builders.scalar_types import finfo
from surgeon.rewrite import Draft, Refused


def covariance(draft: Draft, node: gs.Node, operands: Operands) -> Complex:
    """`cov`: that of the real parts and the imaginary ones as variables of their own.

    Of a = p + iq and b = r + is it is that of p and r and that of q and s, and i times that of q
    and r less that of p and s.
    """
    value = only(operands)
    rank = parts.rank_of(draft, value.real)
    if rank not in (1, 2):
        raise Refused(f"its input has rank {rank}")
    rows = both_of(value)
    if rank == 1:
        rows = (parts.unsqueeze(draft, rows[0], 0), parts.unsqueeze(draft, rows[1], 0))
    count = _variables(draft, rows[0])
    c = moves.called(draft, node, {"self": draft.op("Concat", *rows, axis=0)})
    whole = of_variables(c)

    def block(row: int, column: int) -> gs.Tensor:
        ends = (count, LARGEST)
        line = c.slice(whole, 0, row * count, ends[row])
        return c.slice(line, 1, column * count, ends[column])

    real = draft.op("Add", block(0, 0), block(1, 1))
    imaginary = draft.op("Sub", block(1, 0), block(0, 1))
    if count == 1:  # one variable has a number
        none = c.ints([], "number")
        return Complex(*(draft.op("Reshape", part, none) for part in (real, imaginary)))
    return Complex(real, imaginary)


def correlation(draft: Draft, node: gs.Node, operands: Operands) -> Complex:
    """`corrcoef`: the covariances over both deviations, either part between -1 and 1."""
    found = covariance(draft, node, operands)
    if parts.rank_of(draft, found.real) == 0:
        return over(draft, found, found)
    eye = np.eye(_variables(draft, found.real), dtype=np.bool_)
    zero, one, less = (number_like(draft, found, n) for n in (0, 1, -1))
    alone = draft.op("Where", draft.constant(eye, "eye"), found.real, zero)
    across = draft.constant(np.array([1]), "axes")
    column = draft.op("Sqrt", draft.op("ReduceSum", alone, across, keepdims=1))
    row = draft.op("Transpose", column, perm=[1, 0])
    shares = (draft.op("Div", draft.op("Div", p, column), row) for p in both_of(found))
    return Complex(*(draft.op("Min", draft.op("Max", p, less), one) for p in shares))


def _variables(draft: Draft, rows: gs.Tensor) -> int:
    shape = draft.facts.of(rows).shape
    count = shape[0] if shape else None
    if not isinstance(count, int) or count < 1:
        raise Refused("how many complex variables it has is known at run time only")
    return count


def bounded(draft: Draft, node: gs.Node, operands: Operands) -> Complex:
    """`renorm`, by the norms of the magnitudes."""
    value = only(operands)
    return times(draft, value, shares_of_bound(Work(draft, node), size(draft, value)))


def by_root_of_squares(draft: Draft, node: gs.Node, operands: Operands) -> Complex:
    """`rms_norm`: over the root of the mean of the squares, which are no squared magnitudes."""
    c, (given, *weight) = moves.called(draft, node, {}), operands
    value = certain(given)
    rank, count = c.rank(value.real), len(c.listed("normalized_shape"))
    axes = c.ints(range(rank - count, rank), "axes")
    squares = times(draft, value, value)
    mean = moves.each(certain(squares), lambda x: c.op("ReduceMean", x, axes, keepdims=1))
    told = c.value("eps")
    eps = float(finfo(parts.numpy_dtype(draft, value.real)).eps) if told is None else float(told)
    raised = Complex(c.op("Add", mean.real, number_like(draft, value, eps)), mean.imaginary)
    y = over(draft, value, root(draft, node, raised))
    return certain(times(draft, y, weight[0])) if weight else certain(y)


def moments(draft: Draft, node: gs.Node, value: Complex) -> tuple[gs.Tensor, Complex]:
    """`var_mean` and `std_mean`: the variances of both parts added up, and the mean of each."""
    both = [moves.by_lowering(draft, node, several=True, self=part) for part in both_of(value)]
    spreads, means = zip(*both, strict=True)
    return together(draft, node.op, spreads), Complex(*means)


def together(draft: Draft, operator: str, spreads: Sequence[gs.Tensor]) -> gs.Tensor:
    """The variance or the deviation of complex values, from those of their parts."""
    if not operator.startswith("std"):
        return draft.op("Add", *spreads)
    return draft.op("Sqrt", draft.op("Add", *(draft.op("Mul", one, one) for one in spreads)))
