"""New numbers: uniform, normal, whole, and made of these; choices by weight and orders."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import onnx_graphsurgeon as gs

from surgeon.builders.aten_random.sources import (
    Like,
    computed,
    exponential,
    normal,
    uniform,
    uniform_in,
)
from surgeon.builders.aten_shape.call import TYPE, Call
from surgeon.facts.kinds import FLOATS
from surgeon.rewrite import Refused

# Whole numbers that a float holds exactly: PyTorch's bounds of `random_` without bounds.
_EXACT = {
    int(TYPE.DOUBLE): 53,
    int(TYPE.FLOAT): 24,
    int(TYPE.FLOAT16): 11,
    int(TYPE.BFLOAT16): 8,
    int(TYPE.UINT8): 8,
    int(TYPE.INT8): 7,
    int(TYPE.INT16): 15,
    int(TYPE.INT32): 31,
    int(TYPE.BOOL): 1,
}
_WIDEST = 53  # bits of a draw in double precision
# The least normal number of single precision, beside which a time is what it was.
_LEAST = 2.0**-126


def _shape(c: Call) -> tuple[Like, int]:
    """Whose shape the result has, and its dtype."""
    if not c.args.schema.takes("size"):
        x = c.tensor()
        has = c.args.schema.takes("dtype")
        return x, c.wanted_dtype(c.dtype(x)) if has else c.dtype(x)
    return c.listed("size"), c.wanted_dtype(TYPE.FLOAT)


def _rand(c: Call) -> gs.Tensor:
    like, dtype = _shape(c)
    return uniform_in(c, like, dtype)


def _randn(c: Call) -> gs.Tensor:
    like, dtype = _shape(c)
    return c.cast(normal(c, like, computed(dtype)), dtype)


def _whole(c: Call, like: Like, low: int, high: int, dtype: int) -> gs.Tensor:
    """Whole numbers from `low` inclusive to `high` exclusive, each as likely."""
    count = high - low
    if count < 1:
        raise Refused(f"there is no whole number from {low} to below {high}")
    if count > 1 << _WIDEST:
        raise Refused(f"it draws of more than 2**{_WIDEST} numbers, which no runtime can")
    share = c.op("Mul", uniform(c, like, TYPE.DOUBLE), c.number(count, TYPE.DOUBLE))
    last = c.number(count - 1, TYPE.DOUBLE)  # the product may round up to `count`
    share = c.cast(c.op("Min", c.op("Floor", share), last), TYPE.INT64)
    return c.cast(c.op("Add", share, c.number(low, TYPE.INT64)) if low else share, dtype)


def _randint(c: Call) -> gs.Tensor:
    low = c.integer("low") if c.args.schema.takes("low") else 0
    if not c.args.schema.takes("size"):
        x = c.tensor()
        return _whole(c, x, low, c.integer("high"), c.wanted_dtype(c.dtype(x)))
    return _whole(c, c.listed("size"), low, c.integer("high"), c.wanted_dtype(TYPE.INT64))


def _random(c: Call) -> gs.Tensor:
    """`random_`: without bounds as far as the dtype is exact."""
    x = c.tensor()
    dtype = c.dtype(x)
    bits = _EXACT.get(dtype)
    low = c.integer("from") if c.args.schema.takes("from") else 0
    high = None
    if c.args.schema.takes("to") and c.has("to"):
        high = c.integer("to")
    if high is None:
        if bits is None:
            raise Refused("it draws of more numbers than a runtime can")
        high = (1 << bits) + (dtype in FLOATS)
    return _whole(c, x, low, high, dtype)


def _bernoulli(c: Call) -> gs.Tensor:
    x = c.tensor()
    dtype = c.dtype(x)
    if not c.args.schema.takes("p"):
        chance = x
    elif c.args.schema.overload == "Tensor":
        chance = c.tensor("p")
    else:
        chance = c.number(float(c.value("p")), TYPE.DOUBLE)
    kind = computed(c.dtype(chance))
    return c.cast(c.op("Less", uniform(c, x, kind), c.cast(chance, kind)), dtype)


def _normal(c: Call) -> gs.Tensor:
    if c.args.schema.takes("size") or c.args.schema.takes("self"):
        like, dtype = _shape(c)
        mean, std = (c.number(float(c.value(n)), computed(dtype)) for n in ("mean", "std"))
        y = normal(c, like, computed(dtype))
        return c.cast(c.op("Add", c.op("Mul", y, std), mean), dtype)
    both = [c.tensor(n) for n in ("mean", "std")]
    # Of two tensors, whatever the file says: exporters name the overload by the count alone.
    whole = [t for t in both if not (isinstance(t, gs.Constant) and len(t.shape) == 0)] or both
    dtype = c.dtype(c.promoted(whole)[0])
    kind = computed(dtype)
    mean, std = (c.cast(t, kind) for t in both)
    y = normal(c, c.op("Add", mean, std), kind)
    return c.cast(c.op("Add", c.op("Mul", y, std), mean), dtype)


def _uniform(c: Call) -> gs.Tensor:
    x = c.tensor()
    dtype = c.dtype(x)
    low, high = float(c.value("from")), float(c.value("to"))
    if (low, high) == (0.0, 1.0):
        return uniform_in(c, x, dtype)
    kind = computed(dtype)
    y = c.op("Mul", uniform(c, x, kind), c.number(high - low, kind))
    return c.cast(c.op("Add", y, c.number(low, kind)), dtype)


def _exponential(c: Call) -> gs.Tensor:
    x = c.tensor()
    kind, rate = computed(c.dtype(x)), float(c.value("lambd"))
    if rate <= 0:
        raise Refused(f"PyTorch draws none of a rate of {rate}")
    y = exponential(c, x, kind)
    return c.cast(y if rate == 1 else c.op("Div", y, c.number(rate, kind)), c.dtype(x))


def _geometric(c: Call) -> gs.Tensor:
    """How many tries until one succeeds, the last one counted."""
    x, p = c.tensor(), float(c.value("p"))
    if not 0 < p < 1:
        raise Refused(f"PyTorch draws none of a chance of {p}")
    tries = c.op("Div", exponential(c, x, TYPE.DOUBLE), c.number(-math.log1p(-p), TYPE.DOUBLE))
    return c.cast(c.op("Max", c.op("Ceil", tries), c.number(1, TYPE.DOUBLE)), c.dtype(x))


def _cauchy(c: Call) -> gs.Tensor:
    """median + sigma tan(pi (u - 1/2)), the tangent as a quotient, which every runtime has."""
    x = c.tensor()
    kind = computed(c.dtype(x))
    turn = c.op("Sub", uniform(c, x, kind), c.number(0.5, kind))
    angle = c.op("Mul", turn, c.number(math.pi, kind))
    tangent = c.op("Div", c.op("Sin", angle), c.op("Cos", angle))
    wide = c.op("Mul", tangent, c.number(float(c.value("sigma")), kind))
    return c.cast(c.op("Add", wide, c.number(float(c.value("median")), kind)), c.dtype(x))


def _log_normal(c: Call) -> gs.Tensor:
    x = c.tensor()
    kind = computed(c.dtype(x))
    y = c.op("Mul", normal(c, x, kind), c.number(float(c.value("std")), kind))
    y = c.op("Exp", c.op("Add", y, c.number(float(c.value("mean")), kind)))
    return c.cast(y, c.dtype(x))


def _multinomial(c: Call) -> gs.Tensor:
    """Places by weight.

    Put back, by ONNX's own operator; else the first places of a race in which each place's time is
    exponential, with its weight as the rate, which is how PyTorch draws them.
    """
    x, count = c.tensor(), c.scalar(c.tensor("num_samples"))
    dtype, rank = c.dtype(x), c.rank(x)
    if rank not in (1, 2):
        raise Refused(f"its input has rank {rank}")
    kind = computed(dtype)
    x = c.cast(x, kind)
    if count == 1 or not bool(c.value("replacement")):
        # a time may be 0, at which what weighs nothing would have no speed
        time = c.op("Add", exponential(c, x, kind), c.number(_LEAST, kind))
        speed = c.op("Div", x, time)
        inputs = (speed, c.vector([count], "k"))
        return c.op("TopK", *inputs, axis=rank - 1, outputs=2)[1]
    if not isinstance(count, int):
        raise Refused("how many it draws is known at run time only")
    logs = c.op("Log", c.cast(x, TYPE.FLOAT))
    logs = c.unsqueeze(logs, [0]) if rank == 1 else logs
    y = c.op("Multinomial", logs, dtype=int(TYPE.INT64), sample_size=count)
    return c.squeeze(y, [0]) if rank == 1 else y


def _permutation(c: Call) -> gs.Tensor:
    """The order of as many uniform numbers."""
    count = c.scalar(c.tensor("n"))
    dtype = c.wanted_dtype(TYPE.INT64)
    if count == 0:
        return c.filled([0], 0, dtype)
    keys = uniform(c, [count], TYPE.DOUBLE)
    return c.cast(c.op("TopK", keys, c.vector([count], "k"), axis=0, outputs=2)[1], dtype)


LOWERINGS: Mapping[str, Callable[[Call], Any]] = {
    **dict.fromkeys(("rand", "rand_like"), _rand),
    **dict.fromkeys(("randn", "randn_like"), _randn),
    **dict.fromkeys(("randint", "randint_like"), _randint),
    "random": _random,
    "bernoulli": _bernoulli,
    **dict.fromkeys(("normal", "normal_functional"), _normal),
    "uniform": _uniform,
    "exponential": _exponential,
    "geometric": _geometric,
    "cauchy": _cauchy,
    "log_normal": _log_normal,
    "multinomial": _multinomial,
    "randperm": _permutation,
}
