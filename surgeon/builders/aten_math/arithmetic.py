"""Arithmetic of tensors and numbers: sums, products, quotients, remainders, powers."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import onnx_graphsurgeon as gs

from surgeon import dims
from surgeon.builders.aten_math.powers import whole_power
from surgeon.builders.aten_math.work import BOOL, DOUBLE, FLOAT, INT64, Work
from surgeon.builders.bench import Bench
from surgeon.builders.nearer import between
from surgeon.facts.fact import INTEGERS
from surgeon.facts.kinds import FLOATS
from surgeon.rewrite import Refused


def add_or_subtract(work: Work) -> gs.Tensor:
    """`add`, `sub` and `rsub` with alpha."""
    a, b = work.args.pair()
    alpha = work.constant_of("alpha", 1)
    dtype, (a, b) = work.together(a, b)
    if work.name == "rsub":
        a, b = b, a
    if dtype == BOOL:
        if work.name not in ("add", "_add_relu"):
            raise Refused("PyTorch does not subtract booleans")
        return work.op("Or", a, b) if alpha else a
    if alpha != 1:
        if dtype not in FLOATS and alpha != int(alpha):
            raise Refused(f"PyTorch does not multiply integers by alpha = {alpha}")
        b = work.widely("Mul", b, work.number(alpha, dtype))
    return work.widely("Add" if work.name in ("add", "_add_relu") else "Sub", a, b)


def rectified_sum(work: Work) -> gs.Tensor:
    """`_add_relu`."""
    y = add_or_subtract(work)
    if work.dtype(y) == BOOL:
        raise Refused("PyTorch has no `relu` of booleans")
    return work.extreme("Max", y, work.number(0, work.dtype(y)))


def multiply(work: Work) -> gs.Tensor:
    """`mul`; booleans are combined with And."""
    dtype, (a, b) = work.together(*work.args.pair())
    return work.op("And", a, b) if dtype == BOOL else work.widely("Mul", a, b)


def divide(work: Work) -> gs.Tensor:
    """`div`, `true_divide` and `divide`, with rounding where the mode says so."""
    schema = work.args.schema
    mode = work.args.value("rounding_mode") if schema.takes("rounding_mode") else None
    a, b = work.args.pair()
    if mode == "floor":
        return floor_quotient(work, a, b)
    if mode == "trunc":
        return truncated_quotient(work, a, b)
    if mode is not None:
        raise Refused(f"rounding_mode {mode!r}")
    whole = work.node.op == "div" and work.result_type(a, b) not in FLOATS
    if whole and work.facts.model.is_before(1, 6):
        return truncated_quotient(work, a, b)  # up to 1.5, `div` of integers was an integer
    _, (a, b) = work.together(a, b, floating=True)
    return work.op("Div", a, b)


def floor_divide(work: Work) -> gs.Tensor:
    """`floor_divide`: it rounds down, and before PyTorch 1.13 to zero."""
    if work.facts.model.is_before(1, 13):
        return truncated_quotient(work, *work.args.pair())
    return floor_quotient(work, *work.args.pair())


def floordiv(work: Work) -> gs.Tensor:
    """Python's `//`, which scripted modules compute sizes by; before PyTorch 1.5 of tensors too."""
    a, b = work.args.pair()
    if work.facts.model.is_before(1, 5) and max(work.rank(a), work.rank(b)) > 0:
        return truncated_quotient(work, a, b)
    return floor_quotient_of_sizes(work, a, b)


def floor_quotient_of_sizes(work: Work, a: gs.Tensor, b: gs.Tensor) -> gs.Tensor:
    """The quotient rounded down, which of what is not negative is ONNX's Div of integers."""
    fact, by = work.facts.of(a), work.facts.array(b)
    sizes = [] if fact.value is None else fact.value.reshape(-1).tolist()
    above = by is not None and by.dtype.kind == "i" and bool((by > 0).all())
    if fact.dtype in INTEGERS and above and sizes and all(map(dims.not_negative, sizes)):
        return truncated_quotient(work, a, b)  # which shape arithmetic follows
    return floor_quotient(work, a, b)


def floor_quotient(work: Work, a: gs.Tensor, b: gs.Tensor) -> gs.Tensor:
    """The quotient rounded down."""
    dtype, (a, b) = work.together(a, b)
    if dtype == BOOL:
        raise Refused("PyTorch does not divide booleans so")
    if dtype in FLOATS:
        # As PyTorch computes it (c10::div_floor_floating): by the remainder.
        rest, zero = float_fmod(work, a, b), work.number(0, dtype)
        quotient = work.op("Div", work.op("Sub", a, rest), b)
        apart = work.op("Xor", work.op("Less", rest, zero), work.op("Less", b, zero))
        lower = work.cast(work.op("And", apart, _nonzero(work, rest)), dtype)
        rounded = nearest(work, work.op("Sub", quotient, lower))
        return work.where(_nonzero(work, b), rounded, work.op("Div", a, b))
    quotient = work.widely("Div", a, b)
    rest = work.widely("Sub", a, work.widely("Mul", quotient, b))
    zero = work.number(0, dtype)
    apart = work.op("Xor", work.less(rest, zero), work.less(b, zero))
    lower = work.op("And", apart, work.invert(work.equal(rest, zero)))
    return work.widely("Sub", quotient, work.cast(lower, dtype))


def _nonzero(work: Work, b: gs.Tensor) -> gs.Tensor:
    return work.invert(work.equal(b, work.number(0, work.dtype(b))))


def nearest(work: Work, x: gs.Tensor) -> gs.Tensor:
    """A value that is an integer but for rounding errors, as that integer."""
    low = work.op("Floor", x)
    above = work.op("Less", work.number(0.5, work.dtype(x)), work.op("Sub", x, low))
    made: gs.Tensor = work.op("Add", low, work.cast(above, work.dtype(x)))
    return made


def truncated_quotient(work: Work, a: gs.Tensor, b: gs.Tensor) -> gs.Tensor:
    """The quotient rounded to zero; ONNX's Div of integers is so."""
    dtype, (a, b) = work.together(a, b)
    if dtype == BOOL:
        raise Refused("PyTorch does not divide booleans so")
    return truncate(work, work.widely("Div", a, b))


def truncate(work: Work, x: gs.Tensor) -> gs.Tensor:
    """A value rounded to zero."""
    if work.dtype(x) not in FLOATS:
        return x
    positive = work.op("Less", work.number(0, work.dtype(x)), x)
    return work.where(positive, work.op("Floor", x), work.op("Ceil", x))


def float_remainder(work: Work, a: gs.Tensor, b: gs.Tensor) -> gs.Tensor:
    """The remainder with the divisor's sign."""
    rest = float_fmod(work, a, b)
    zero = work.number(0, work.dtype(a))
    apart = work.op("Xor", work.op("Less", rest, zero), work.op("Less", b, zero))
    other = work.op("And", apart, _nonzero(work, rest))
    return work.where(other, work.op("Add", rest, b), rest)


def float_fmod(work: Work, a: gs.Tensor, b: gs.Tensor) -> gs.Tensor:
    """The remainder with the dividend's sign, exact from opset 10.

    Below, it is computed in double precision, which holds quotients of single precision exactly up
    to 2^29.
    """
    if work.opset >= 10:
        made: gs.Tensor = work.op("Mod", a, b, fmod=1)
        return made
    dtype = work.dtype(a)
    if dtype != DOUBLE:
        wide = float_fmod(work, work.cast(a, DOUBLE), work.cast(b, DOUBLE))
        return work.cast(wide, dtype)
    quotient = truncate(work, work.op("Div", a, b))
    rest = work.op("Sub", a, work.op("Mul", quotient, b))
    finite = work.op("Less", work.op("Abs", a), np.inf)
    endless = work.op("And", work.is_infinite(b), finite)
    return work.where(endless, a, rest)


def remainder(work: Work) -> gs.Tensor:
    """`remainder` (the divisor's sign) and `fmod` (the dividend's).

    Before PyTorch 1.8 a number beside integers became one, and `fmod` gave the dividend's dtype.
    """
    a, b = work.args.pair()
    is_old, given = work.facts.model.is_before(1, 8), work.dtype(a)
    if is_old and given in INTEGERS and work.is_number(b):
        b = work.cast(b, given)
        if (by := work.facts.array(b)) is not None and not by.all():
            raise Refused("before PyTorch 1.8 integers were divided by an integer, here by 0")
    dtype, (a, b) = work.together(a, b)
    if dtype == BOOL:
        raise Refused("PyTorch has no remainder of booleans")
    if dtype in FLOATS:
        made = (float_remainder if work.name == "remainder" else float_fmod)(work, a, b)
    else:
        made = work.widely("Mod", a, b, **({"fmod": 1} if work.name == "fmod" else {}))
    return work.cast(made, given) if is_old and work.name == "fmod" else made


def power(work: Work) -> gs.Tensor:
    """`pow` of tensors and numbers; small constants are products."""
    base, exponent = work.args.pair()
    dtype = work.result_type(base, exponent)
    if dtype == BOOL:
        raise Refused("PyTorch has no power of booleans")
    whole = not work.is_number(base) and work.dtype(base) in INTEGERS
    if dtype in FLOATS and whole and work.facts.model.is_before(1, 6):
        # it was cut to an integer, as they came in; of what is computed PyTorch gave none
        if not work.is_number(exponent):
            raise Refused("PyTorch before 1.6 has no power of integers by floats")
        wide = work.op("Pow", work.cast(base, DOUBLE), work.cast(exponent, DOUBLE))
        return work.cast(truncate(work, wide), work.dtype(base))
    base = work.cast(base, dtype)
    if dtype not in FLOATS and work.dtype(exponent) in FLOATS:
        exponent = work.cast(exponent, dtype)  # as before 1.3
    array = work.facts.array(exponent)
    number = array.reshape(()).item() if array is not None and array.size == 1 else None
    same_rank = work.facts.of(exponent).rank == 0
    if number is not None and same_rank:
        if number == 2:
            return work.widely("Mul", base, base)
        if number == 1:
            return base
        if number == 0.5 and dtype in FLOATS:
            return work.op("Sqrt", base)
        if number == -0.5 and dtype in (FLOAT, DOUBLE):  # of -inf and -0.0 another than by Pow
            return work.op("Reciprocal", work.op("Sqrt", base))
        if dtype not in FLOATS and number < 0:
            raise Refused("PyTorch has no negative powers of integers")
        if number == 3 and dtype in FLOATS:
            return work.op("Mul", work.op("Mul", base, base), base)
    if dtype in FLOATS:
        return work.op("Pow", base, work.cast(exponent, dtype))
    return whole_power(work, base, exponent, dtype)


def float_power(work: Work) -> gs.Tensor:
    """`float_power`: in double precision, whatever comes in."""
    pair = work.args.pair()
    for x in pair:
        work.dtype(x)  # which is no complex one: a Cast would drop the imaginary part
    base, exponent = (work.cast(x, DOUBLE) for x in pair)
    return work.op("Pow", base, exponent)


def add_scaled(work: Work) -> gs.Tensor:
    """`addcmul` and `addcdiv`: self + value * a (* or /) b."""
    names = ("self", "tensor1", "tensor2")
    operands = [work.args.tensor(n) for n in names]
    dtype, (x, a, b) = work.together(*operands)
    value = work.constant_of("value", 1)
    if dtype not in FLOATS and (work.name == "addcdiv" or dtype == BOOL):
        raise Refused("PyTorch has no such quotient of integers")
    term = work.widely("Div" if work.name == "addcdiv" else "Mul", a, b)
    if value != 1:
        term = work.widely("Mul", term, work.number(value, dtype))
    return work.widely("Add", x, term)


def interpolate(work: Work) -> gs.Tensor:
    """`lerp`."""
    start, end = work.args.tensor("self"), work.args.tensor("end")
    weight = work.cast(work.args.tensor("weight"), work.result_type(start, end))
    return between(Bench(work.draft), start, end, weight)


def negate(work: Work) -> gs.Tensor:
    """`neg`; integers of 8 bits wrap."""
    x = work.args.tensor("self")
    if work.dtype(x) == BOOL:
        raise Refused("PyTorch does not negate booleans so")
    return work.widely("Neg", x)


def magnitude(work: Work) -> gs.Tensor:
    """`abs`."""
    x = work.args.tensor("self")
    return x if work.dtype(x) == BOOL else work.op("Abs", x)


def square(work: Work) -> gs.Tensor:
    """`square`; a bool becomes an integer."""
    x = work.args.tensor("self")
    x = work.cast(x, INT64) if work.dtype(x) == BOOL else x
    return work.widely("Mul", x, x)


FUNCTIONS: Mapping[str, Callable[[Work], gs.Tensor]] = {
    **dict.fromkeys(("add", "sub", "rsub", "subtract"), add_or_subtract),
    "_add_relu": rectified_sum,
    **dict.fromkeys(("mul", "multiply"), multiply),
    **dict.fromkeys(("div", "divide", "true_divide"), divide),
    "floor_divide": floor_divide,
    "floordiv": floordiv,
    "remainder": remainder,
    "fmod": remainder,
    "pow": power,
    "float_power": float_power,
    "addcmul": add_scaled,
    "addcdiv": add_scaled,
    "lerp": interpolate,
    "neg": negate,
    "negative": negate,
    "abs": magnitude,
    "absolute": magnitude,
    "square": square,
}
