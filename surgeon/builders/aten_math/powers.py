"""Powers of integers as they wrap: squares multiplied, since runtimes take powers in floats."""

from __future__ import annotations

import numpy as np
import onnx_graphsurgeon as gs

from surgeon.builders.aten_math.work import BOOL, INT32, NARROW, Work, numpy_dtype
from surgeon.builders.bench import Bench
from surgeon.builders.turns import in_turns
from surgeon.rewrite import Draft

_LONGEST = 1 << 6  # what a constant exponent may be, in eleven products at most


def whole_power(work: Work, base: gs.Tensor, exponent: gs.Tensor, dtype: int) -> gs.Tensor:
    """A power of integers, in their dtype."""
    by_way = INT32 if dtype in NARROW else dtype
    array = work.facts.array(exponent)
    base, wide = work.cast(base, by_way), work.cast(exponent, by_way)
    if array is not None and array.ndim == 0 and 0 <= int(array) <= _LONGEST:
        return work.cast(_constant_power(work, base, int(array)), dtype)
    zero, one = work.number(0, by_way), work.number(1, by_way)
    below = work.op("Less", wide, zero)
    rest = work.draft.op("Where", below, zero, wide)
    nothing = work.op("Mul", work.op("Add", base, wide), 0)  # in the shape of both
    start = [work.op("Add", nothing, t) for t in (one, base, rest)]
    places = range(np.iinfo(numpy_dtype(by_way)).bits - 1)
    found = in_turns(work.draft, start, places, _square)[0]
    return work.cast(work.where(below, _inverse(work, base, wide), found), dtype)


def _constant_power(work: Work, base: gs.Tensor, exponent: int) -> gs.Tensor:
    found: gs.Tensor | None = None
    while exponent:
        if exponent & 1:
            found = base if found is None else work.op("Mul", found, base)
        exponent >>= 1
        base = work.op("Mul", base, base) if exponent else base
    made: gs.Tensor = work.op("Add", work.op("Mul", base, 0), 1) if found is None else found
    return made


def _square(draft: Draft, state: list[gs.Tensor], number: gs.Tensor) -> list[gs.Tensor]:
    """One bit of the exponent: what was found, the base's power, and what is left of the bits."""
    b, (found, power, rest) = Bench(draft), state
    half = b.op("Div", rest, b.number(2, b.dtype(rest)))
    odd = b.cast(b.op("Sub", rest, b.op("Add", half, half)), BOOL)
    return [b.op("Where", odd, b.op("Mul", found, power), found), b.op("Mul", power, power), half]


def _inverse(work: Work, base: gs.Tensor, exponent: gs.Tensor) -> gs.Tensor:
    """A power below 0, rounded to 0: of 1 and -1 alone something is left."""
    one = work.number(1, work.dtype(base))
    odd = work.cast(work.op("Mod", exponent, 2), BOOL)
    signed = work.where(work.op("And", odd, work.op("Less", base, one)), -1, one)
    unit = work.op("Equal", work.op("Abs", base), one)
    return work.where(unit, signed, 0)
