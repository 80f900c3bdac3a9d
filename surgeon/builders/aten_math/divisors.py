"""`gcd` and `lcm` of integers: Euclid's algorithm with as many steps as the dtype can need."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import onnx_graphsurgeon as gs

from surgeon.builders.aten_math.work import BOOL, INT32, NARROW, Work, numpy_dtype
from surgeon.facts.kinds import FLOATS
from surgeon.rewrite import Refused


def _steps(work: Work, operands: tuple[gs.Tensor, gs.Tensor], dtype: int) -> int:
    """How many divisions suffice: Fibonacci's numbers take the most (G. Lame, 1844).

    After the first, the smaller operand is below the smallest that is known.
    """
    least = int(np.iinfo(numpy_dtype(dtype)).max)
    for x in operands:
        array = work.facts.array(x)
        if array is not None and array.dtype != object and array.size:
            least = min(least, int(np.abs(array.astype(np.float64)).max()))
    a, b, count = 1, 1, 1
    while b <= least:
        a, b, count = b, a + b, count + 1
    return count + 1


def _divisor(work: Work) -> tuple[gs.Tensor, gs.Tensor, gs.Tensor]:
    """The greatest common divisor, and both operands without their signs."""
    given = work.args.tensor("self"), work.args.tensor("other")
    dtype, operands = work.together(*given)
    if dtype in FLOATS or dtype == BOOL:
        raise Refused("PyTorch has no common divisor of floats or booleans")
    wide = INT32 if dtype in NARROW else dtype
    a, b = (work.op("Abs", work.cast(x, wide)) for x in operands)
    first = (a, b)
    zero, one = work.number(0, wide), work.number(1, wide)
    for _ in range(_steps(work, given, dtype)):
        done = work.op("Equal", b, zero)
        rest = work.op("Mod", a, work.extreme("Max", b, one))  # of 1 it is 0
        a, b = work.draft.op("Where", done, a, b), rest
    return a, *first


def greatest_common_divisor(work: Work) -> gs.Tensor:
    """`gcd`: never negative; of 0 and 0 it is 0."""
    dtype = work.result_type(work.args.tensor("self"), work.args.tensor("other"))
    return work.cast(_divisor(work)[0], dtype)


def least_common_multiple(work: Work) -> gs.Tensor:
    """`lcm`: |a / gcd * b|, 0 where one of them is."""
    dtype = work.result_type(work.args.tensor("self"), work.args.tensor("other"))
    found, a, b = _divisor(work)
    share = work.op("Div", a, work.extreme("Max", found, work.number(1, work.dtype(found))))
    product = work.cast(work.op("Mul", share, b), dtype)
    return work.widely("Abs", product)


FUNCTIONS: Mapping[str, Callable[[Work], gs.Tensor]] = {
    "gcd": greatest_common_divisor,
    "lcm": least_common_multiple,
}
