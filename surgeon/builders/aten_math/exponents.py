"""`frexp`: a float as a number of [0.5, 1) times a power of two, by exact scalings alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import onnx_graphsurgeon as gs

from surgeon.builders.aten_math.work import DOUBLE, FLOAT, INT32, Work
from surgeon.facts.kinds import FLOATS
from surgeon.rewrite import Refused

# Powers of two that bring any float below 2 and, in the other direction, the least of them, which
# have no exponent of their own, to 0.5.
_DOWN = {FLOAT: (64, 32, 16, 8, 4, 2, 1), DOUBLE: (512, 256, 128, 64, 32, 16, 8, 4, 2, 1)}
_UP = {FLOAT: (64, *_DOWN[FLOAT]), DOUBLE: (512, *_DOWN[DOUBLE])}


def frexp(work: Work) -> tuple[gs.Tensor, gs.Tensor]:
    """`frexp`; of what is not finite the number itself, and 0."""
    x = work.node.inputs[0]
    own = work.dtype(x)
    if work.args.schema.overload != "Tensor" and own == DOUBLE:  # its exponent has 64 bits
        raise Refused("it may take one number of Python's apart")
    if own not in FLOATS:
        raise Refused("PyTorch has it of floats alone")
    dtype = DOUBLE if own == DOUBLE else FLOAT
    wide = work.cast(x, dtype)
    size = work.op("Abs", wide)
    plain = work.op("And", work.op("Less", size, np.inf), work.op("Greater", size, 0.0))
    return _taken_apart(work, wide, size, plain, own, dtype)


def _taken_apart(
    work: Work, x: gs.Tensor, size: gs.Tensor, plain: gs.Tensor, own: int, dtype: int
) -> tuple[gs.Tensor, gs.Tensor]:
    rest, count = work.where(plain, size, 0.5), None
    for power in (*_DOWN[dtype], 0):
        limit = 2.0**power
        far = work.less(work.number(limit, dtype), rest, or_equal=True)
        step = max(power, 1)
        rest = work.where(far, work.op("Mul", rest, 2.0**-step), rest)
        count = _counted(work, count, far, step)
    for power in _UP[dtype]:
        near = work.op("Less", rest, 2.0**-power)
        rest = work.where(near, work.op("Mul", rest, 2.0**power), rest)
        count = _counted(work, count, near, -power)
    below = work.op("Less", x, 0.0)
    signed = work.where(below, work.op("Neg", rest), rest)
    assert count is not None
    return work.cast(work.where(plain, signed, x), own), work.where(plain, count, 0)


def _counted(work: Work, count: gs.Tensor | None, where: gs.Tensor, step: int) -> gs.Tensor:
    more = work.op("Mul", work.cast(where, INT32), step)
    made: gs.Tensor = more if count is None else work.op("Add", count, more)
    return made


FUNCTIONS: Mapping[str, Callable[[Work], Any]] = {"frexp": frexp}
