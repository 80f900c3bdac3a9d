"""Elementary functions of one or two reals; integers go in as float32."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np
import onnx
import onnx_graphsurgeon as gs

from surgeon.builders import parts
from surgeon.builders.aten_math import doubles
from surgeon.builders.aten_math.arithmetic import truncate
from surgeon.builders.aten_math.comparison import sign_bit
from surgeon.builders.aten_math.work import DOUBLE, Work, numpy_dtype
from surgeon.builders.scalar_types import finfo
from surgeon.facts.kinds import FLOATS
from surgeon.rewrite import Refused

_SAME = {
    "exp": "Exp",
    "log": "Log",
    "sqrt": "Sqrt",
    "sin": "Sin",
    "cos": "Cos",
    "tan": "Tan",
    "asin": "Asin",
    "acos": "Acos",
    "atan": "Atan",
    "sinh": "Sinh",
    "cosh": "Cosh",
    "asinh": "Asinh",
    "acosh": "Acosh",
    "atanh": "Atanh",
    "tanh": "Tanh",
    "sigmoid": "Sigmoid",
    "erf": "Erf",
    "reciprocal": "Reciprocal",
    "special_expit": "Sigmoid",
    "special_erf": "Erf",
    **{f"arc{f}": f"A{f}" for f in ("sin", "cos", "tan", "sinh", "cosh", "tanh")},
}
_ROUNDING = {"floor": "Floor", "ceil": "Ceil", "round": "Round"}


def own_operator(work: Work) -> gs.Tensor:
    """A function that ONNX has."""
    return by_operator(work, _SAME[work.name], work.floating(work.args.tensor("self")))


def by_operator(work: Work, operator: str, x: gs.Tensor) -> gs.Tensor:
    """A function of floats by ONNX's operator, or spelt out where no kernel takes doubles."""
    composed = _IN_DOUBLE.get(operator) if work.dtype(x) == DOUBLE else None
    made: gs.Tensor = work.op(operator, x) if composed is None else composed(work, x)
    return made


def _tan(work: Work, x: gs.Tensor) -> gs.Tensor:
    return work.op("Div", work.op("Sin", x), work.op("Cos", x))


def _sinh(work: Work, x: gs.Tensor) -> gs.Tensor:
    # t(1 + 1/(1 + t)) / 2 with t = e^x - 1 keeps the digits of small x.
    t = exp_less_one(work, x)
    return work.op("Div", work.op("Sub", t, exp_less_one(work, work.op("Neg", x))), 2.0)


def _cosh(work: Work, x: gs.Tensor) -> gs.Tensor:
    total = work.op("Add", work.op("Exp", x), work.op("Exp", work.op("Neg", x)))
    return work.op("Div", total, 2.0)


def _asinh(work: Work, x: gs.Tensor) -> gs.Tensor:
    size = work.op("Abs", x)
    root = work.op("Sqrt", work.op("Add", work.op("Mul", x, x), 1.0))
    return work.op("Mul", work.op("Sign", x), work.op("Log", work.op("Add", size, root)))


def _acosh(work: Work, x: gs.Tensor) -> gs.Tensor:
    # Of x^2 - 1, far below 0, rounding left a root of -x, and the logarithm of 0.
    roots = [work.op("Sqrt", work.op(op, x, 1.0)) for op in ("Sub", "Add")]
    return work.op("Log", work.op("Add", x, work.op("Mul", *roots)))


def _atanh(work: Work, x: gs.Tensor) -> gs.Tensor:
    ratio = work.op("Div", work.op("Add", x, 1.0), work.op("Sub", work.number(1, DOUBLE), x))
    return work.op("Mul", work.op("Log", ratio), 0.5)


_IN_DOUBLE: Mapping[str, Callable[[Work, gs.Tensor], gs.Tensor]] = {
    # onnxruntime has these in single precision alone
    "Tan": _tan,
    "Sinh": _sinh,
    "Cosh": _cosh,
    "Asinh": _asinh,
    "Acosh": _acosh,
    "Atanh": _atanh,
    "Atan": doubles.atan,
    "Asin": doubles.asin,
    "Acos": doubles.acos,
    "Erf": doubles.erf,
}


def _away_from_zero(work: Work, x: gs.Tensor) -> gs.Tensor:
    """A number of a script as C's `round` has it, which PyTorch took for it before 1.7."""
    low = work.op("Floor", x)
    rest = work.op("Sub", x, low)
    half = work.op("And", work.equal(rest, work.number(0.5, DOUBLE)), work.op("Greater", x, 0))
    up = work.op("Or", work.op("Greater", rest, 0.5), half)
    made: gs.Tensor = work.op("Add", low, work.cast(up, DOUBLE))
    return made


def rounding(work: Work) -> gs.Tensor:
    """`floor ceil round trunc`; integers stay as they are."""
    x = work.args.tensor("self")
    digits = 0
    if work.name == "round" and work.args.schema.takes("decimals"):
        digits = int(work.constant_of("decimals", 0))
    if work.dtype(x) not in FLOATS:
        if digits < 0:
            raise Refused("PyTorch does not round integers to tens")
        return x
    if work.name in ("trunc", "fix"):
        return truncate(work, x)
    is_number = work.dtype(x) == DOUBLE and work.facts.of(x).rank == 0
    if work.name == "round" and is_number and work.facts.model.is_before(1, 7):
        return _away_from_zero(work, x)
    if work.name == "round" and digits:
        scale = 10.0 ** abs(digits)
        first, second = ("Mul", "Div") if digits > 0 else ("Div", "Mul")
        made: gs.Tensor = work.op(second, work.op("Round", work.op(first, x, scale)), scale)
        return made
    return work.op(_ROUNDING[work.name], x)


def fraction(work: Work) -> gs.Tensor:
    """`frac`: what truncation takes away."""
    x = work.args.tensor("self")
    if work.dtype(x) not in FLOATS:
        raise Refused("PyTorch has no fraction of integers")
    return work.op("Sub", x, truncate(work, x))


def exp_less_one(work: Work, x: gs.Tensor) -> gs.Tensor:
    """e^x - 1 as tanh(x/2) (e^x + 1), which keeps the digits of small x."""
    half = work.op("Tanh", work.op("Mul", x, 0.5))
    return work.op("Mul", half, work.op("Add", work.op("Exp", x), 1.0))


def log1p(work: Work, x: gs.Tensor) -> gs.Tensor:
    """log(1 + x), whose rounding of 1 + x is divided out: it keeps the digits of small x."""
    dtype = work.dtype(x)
    above = work.op("Add", x, 1.0)
    # of infinity a number is taken, or the ratio would be none
    most = float(finfo(numpy_dtype(dtype)).max)
    taken = work.extreme("Min", work.op("Sub", above, 1.0), work.number(most, dtype))
    none = work.equal(taken, work.number(0, dtype))
    ratio = work.op("Div", x, taken)
    return work.where(none, x, work.op("Mul", work.op("Log", above), ratio))


def _scaled_log(base: float) -> Callable[[Work, gs.Tensor], gs.Tensor]:
    return lambda work, x: work.op("Mul", work.op("Log", x), 1 / math.log(base))


def _exp2(work: Work, x: gs.Tensor) -> gs.Tensor:
    return work.op("Pow", work.number(2, work.dtype(x)), x)


def _rsqrt(work: Work, x: gs.Tensor) -> gs.Tensor:
    return work.op("Reciprocal", work.op("Sqrt", x))


def _erfc(work: Work, x: gs.Tensor) -> gs.Tensor:
    if work.dtype(x) == DOUBLE:
        return doubles.erfc(work, x)
    return work.op("Sub", work.number(1, work.dtype(x)), work.op("Erf", x))


def _scaled(factor: float) -> Callable[[Work, gs.Tensor], gs.Tensor]:
    return lambda work, x: work.op("Mul", x, factor)


def _sinc(work: Work, x: gs.Tensor) -> gs.Tensor:
    """sin(pi x) / (pi x), 1 at zero."""
    angle = work.op("Mul", x, math.pi)
    zero = work.equal(x, work.number(0, work.dtype(x)))
    return work.where(zero, 1.0, work.op("Div", work.op("Sin", angle), angle))


_COMPOSED: Mapping[str, Callable[[Work, gs.Tensor], gs.Tensor]] = {
    "expm1": exp_less_one,
    "special_expm1": exp_less_one,
    "log1p": log1p,
    "special_log1p": log1p,
    "log2": _scaled_log(2),
    "log10": _scaled_log(10),
    "exp2": _exp2,
    "special_exp2": _exp2,
    "rsqrt": _rsqrt,
    "erfc": _erfc,
    "special_erfc": _erfc,
    "deg2rad": _scaled(math.pi / 180),
    "rad2deg": _scaled(180 / math.pi),
    "sinc": _sinc,
    "special_sinc": _sinc,
}


def composed(work: Work) -> gs.Tensor:
    """A function made of those that ONNX has."""
    return _COMPOSED[work.name](work, work.floating(work.args.tensor("self")))


def logit(work: Work) -> gs.Tensor:
    """`logit`: log(x / (1 - x)), x kept `eps` away from 0 and 1."""
    x = work.floating(work.args.tensor("self"))
    eps = work.args.value("eps")
    if eps is not None:
        x = work.extreme("Max", x, work.number(eps, work.dtype(x)))
        x = work.extreme("Min", x, work.number(1 - eps, work.dtype(x)))
    rest = work.op("Sub", work.number(1, work.dtype(x)), x)
    return work.op("Log", work.op("Div", x, rest))


def _pair(work: Work) -> tuple[gs.Tensor, gs.Tensor]:
    _, (a, b) = work.together(*work.args.pair(), floating=True)
    return a, b


def hypot(work: Work) -> gs.Tensor:
    """`hypot` without overflow: the larger times sqrt(1 + ratio**2)."""
    a, b = _pair(work)
    a, b = work.op("Abs", a), work.op("Abs", b)
    large, small = work.extreme("Max", a, b), work.extreme("Min", a, b)
    ratio = work.op("Div", small, large)
    root = work.op("Sqrt", work.op("Add", work.op("Mul", ratio, ratio), 1.0))
    plain = work.op("Mul", large, root)
    # 0 / 0 and inf / inf are no ratios: there the larger is the result.
    plain = work.where(work.equal(large, work.number(0, work.dtype(a))), large, plain)
    endless = work.op("Or", *(work.is_infinite(t, is_magnitude=True) for t in (a, b)))
    return work.where(endless, np.inf, plain)


def atan2(work: Work) -> gs.Tensor:
    """`atan2` of two operands in their common dtype."""
    return angle_between(work, *_pair(work))


def angle_between(work: Work, y: gs.Tensor, x: gs.Tensor) -> gs.Tensor:
    """Atan of the quotient, moved by pi to the left half plane; signed zeros count."""
    dtype = work.dtype(y)
    ratio = work.op("Div", y, x)
    zero = work.number(0, dtype)
    both_zero = work.op("And", work.equal(x, zero), work.equal(y, zero))
    both_infinite = work.op("And", work.is_infinite(x), work.is_infinite(y))
    one = work.op("Mul", work.op("Sign", x), work.op("Sign", y))
    ratio = work.where(both_infinite, one, ratio)
    angle = by_operator(work, "Atan", ratio)
    left, below = sign_bit(work, x), sign_bit(work, y)
    turn = work.where(below, work.number(-math.pi, dtype), work.number(math.pi, dtype))
    small = work.where(below, work.number(-0.0, dtype), zero)
    angle = work.where(both_zero, small, angle)
    return work.where(left, work.op("Add", angle, turn), angle)


def log_add_exp(work: Work) -> gs.Tensor:
    """`logaddexp` and `logaddexp2`."""
    return log_add(work, *_pair(work), base=2.0 if work.name.endswith("2") else math.e)


def log_add(work: Work, a: gs.Tensor, b: gs.Tensor, base: float = math.e) -> gs.Tensor:
    """log(base^a + base^b) without overflow."""
    large = work.extreme("Max", a, b)
    same = work.equal(a, b)
    apart = work.where(same, 0.0, work.op("Neg", work.op("Abs", work.op("Sub", a, b))))
    power = work.op("Exp", work.op("Mul", apart, math.log(base)) if base == 2.0 else apart)
    rest = work.op("Log", work.op("Add", power, 1.0))
    rest = work.op("Mul", rest, 1 / math.log(2)) if base == 2.0 else rest
    return work.op("Add", large, rest)


def x_log_y(work: Work) -> gs.Tensor:
    """`xlogy` and `xlog1py`: zero where x is, unless y is NaN."""
    x, y = _pair(work)
    log = log1p(work, y) if work.name.endswith("1py") else work.op("Log", y)
    product = work.op("Mul", x, log)
    product = work.where(work.equal(x, work.number(0, work.dtype(x))), 0.0, product)
    return work.where(work.is_nan(y), np.nan, product)


def angle(work: Work) -> gs.Tensor:
    """`angle` of reals: pi on the left, 0 elsewhere, NaN as it is; before PyTorch 1.8 always 0."""
    given = work.args.tensor("self")
    if work.facts.model.is_before(1, 8):
        zero = np.zeros(1, onnx.helper.tensor_dtype_to_np_dtype(work.dtype(given)))
        return parts.filled(work.draft, work.op("Shape", given), zero)
    x = work.floating(given)
    dtype = work.dtype(x)
    left = work.op("Less", x, work.number(0, dtype))
    made = work.where(left, work.number(math.pi, dtype), work.number(0, dtype))
    return work.where(work.is_nan(x), x, made)


def scale_by_power(work: Work) -> gs.Tensor:
    """`ldexp`: x 2^y, whose power of a float is of that float's dtype."""
    x, y = work.args.pair()
    if work.dtype(y) in FLOATS:
        _, (x, power) = work.together(x, _exp2(work, y), floating=True)
    else:
        _, (x, y) = work.together(x, y, floating=True)
        power = _exp2(work, y)
    made: gs.Tensor = work.op("Mul", x, power)
    return made


FUNCTIONS: Mapping[str, Callable[[Work], gs.Tensor]] = {
    "angle": angle,
    "ldexp": scale_by_power,
    **dict.fromkeys(_SAME, own_operator),
    **dict.fromkeys((*_ROUNDING, "trunc", "fix"), rounding),
    **dict.fromkeys(_COMPOSED, composed),
    "frac": fraction,
    "logit": logit,
    "special_logit": logit,
    "hypot": hypot,
    **dict.fromkeys(("atan2", "arctan2"), atan2),
    **dict.fromkeys(("logaddexp", "logaddexp2"), log_add_exp),
    **dict.fromkeys(("xlogy", "special_xlogy", "special_xlog1py"), x_log_y),
}
