"""Bits of integers: operators of opset 18, and before it sums of powers of two."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import onnx_graphsurgeon as gs

from surgeon.builders.aten_math.arithmetic import floor_quotient
from surgeon.builders.aten_math.work import BOOL, INT32, INT64, NARROW, Work, numpy_dtype
from surgeon.facts.fact import INTEGERS
from surgeon.facts.kinds import FLOATS
from surgeon.rewrite import Refused

_OPERATORS = {
    "and": ("And", "BitwiseAnd"),
    "or": ("Or", "BitwiseOr"),
    "xor": ("Xor", "BitwiseXor"),
}
_HALF = 1 << 32


def _pair(work: Work) -> tuple[int, gs.Tensor, gs.Tensor]:
    dtype, (a, b) = work.together(*work.args.pair())
    if dtype in FLOATS:
        raise Refused("PyTorch has no bits of floats")
    return dtype, a, b


def bitwise(work: Work) -> gs.Tensor:
    """`bitwise_and`, `__and__` and kin: logic on booleans, bits on integers."""
    on_bool, on_int = _OPERATORS[work.name.strip("_").removeprefix("bitwise_")]
    dtype, a, b = _pair(work)
    if dtype == BOOL:
        return work.op(on_bool, a, b)
    if work.opset >= 18:
        return work.op(on_int, a, b)
    return bit_by_bit(work, on_bool, a, b, dtype)


def bit_by_bit(work: Work, on_bool: str, a: gs.Tensor, b: gs.Tensor, dtype: int) -> gs.Tensor:
    """Every bit on an axis of its own, 32 at a time, combined and added up again."""
    a, b = work.cast(a, INT64), work.cast(b, INT64)
    bits = np.iinfo(numpy_dtype(dtype)).bits
    if bits < 64:
        signed = numpy_dtype(dtype).kind == "i"
        return work.cast(_combined(work, on_bool, a, b, bits, signed=signed), dtype)
    low = [work.op("Mod", x, _HALF) for x in (a, b)]
    high = [
        work.op("Div", work.op("Sub", x, rest), _HALF) for x, rest in zip((a, b), low, strict=True)
    ]
    upper = work.op("Mul", _combined(work, on_bool, high[0], high[1], 32, signed=True), _HALF)
    made: gs.Tensor = work.op(
        "Add", upper, _combined(work, on_bool, low[0], low[1], 32, signed=False)
    )
    return made


def _combined(
    work: Work, on_bool: str, a: gs.Tensor, b: gs.Tensor, bits: int, *, signed: bool
) -> gs.Tensor:
    """Two int64 values of so many bits combined bit by bit; the last bit may be the sign."""
    places = 1 << np.arange(bits, dtype=np.int64)
    weights = places.copy()
    weights[-1] *= -1 if signed else 1
    spread = []
    for x in (a, b):
        column = work.draft.op("Unsqueeze", x, work.axes([work.rank(x)]))
        rest = work.op("Mod", column, work.draft.constant(places * 2, "moduli"))
        spread.append(work.less(work.draft.constant(places, "places"), rest, or_equal=True))
    chosen = work.cast(work.op(on_bool, *spread), INT64)
    terms = work.op("Mul", chosen, work.draft.constant(weights, "weights"))
    axis = work.axes([max(work.rank(a), work.rank(b))])
    made: gs.Tensor = work.draft.op("ReduceSum", terms, axis, keepdims=0)
    return made


def bitwise_not(work: Work) -> gs.Tensor:
    """`bitwise_not`: Not on booleans; -1 - x on integers, which in two's complement is the same."""
    x = work.args.tensor("self")
    dtype = work.dtype(x)
    if dtype in FLOATS:
        raise Refused("PyTorch has no bits of floats")
    if dtype == BOOL:
        return work.invert(x)
    if work.opset >= 18 and dtype in NARROW:
        return work.op("BitwiseNot", x)
    return opposite_bits(work, x, dtype)


def opposite_bits(work: Work, x: gs.Tensor, dtype: int) -> gs.Tensor:
    """-1 - x of integers, every bit of which is the opposite in two's complement."""
    by_way = INT32 if dtype in NARROW else dtype
    return work.cast(work.op("Sub", work.number(-1, by_way), work.cast(x, by_way)), dtype)


def shift(work: Work) -> gs.Tensor:
    """`<<` and `>>`: a product with a power of two, or a quotient by it, rounded down.

    By more bits than there are, or by fewer than none, nothing is left but the sign of `>>`: so
    since PyTorch 2.1, before it was as the machine had it.
    """
    left = "left" in work.name or "lshift" in work.name
    dtype, a, b = _pair(work)
    if dtype not in INTEGERS:
        raise Refused("PyTorch shifts integers alone")
    kind = numpy_dtype(dtype)
    limits = np.iinfo(kind)
    # the last power of a signed type is negative: as a factor it is right, as a divisor it is not
    count = limits.bits if left or not limits.min else limits.bits - 1
    powers = np.left_shift(np.ones(count, kind), np.arange(count).astype(kind))
    table = np.append(powers, kind.type(not left))  # the last one where nothing is left
    array = work.facts.array(b)
    if array is not None:
        held = (array >= 0) & (array < count)
        factors = table[np.where(held, array, count).astype(int)]
        factor = work.draft.constant(np.asarray(factors))
        inside = None if held.all() else work.draft.constant(held)
    else:
        places = work.cast(b, INT64)
        inside = work.op(
            "And",
            work.less(work.number(-1, INT64), places),
            work.less(places, work.number(count, INT64)),
        )
        at = work.where(inside, places, count)
        factor = work.draft.op("Gather", work.draft.constant(table, "powers"), at, axis=0)
    if left:
        return work.widely("Mul", a, factor)
    made = floor_quotient(work, a, factor)
    if inside is None:
        return made
    zero = work.number(0, dtype)
    sign = work.where(work.less(a, zero), -1, zero) if limits.min else zero
    return work.where(inside, made, sign)


FUNCTIONS: Mapping[str, Callable[[Work], gs.Tensor]] = {
    **dict.fromkeys("bitwise_and bitwise_or bitwise_xor __and__ __or__ __xor__".split(), bitwise),
    "bitwise_not": bitwise_not,
    **dict.fromkeys("__lshift__ __rshift__ bitwise_left_shift bitwise_right_shift".split(), shift),
}
