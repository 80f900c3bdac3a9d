"""Inverse functions and general powers of complex values, in two real parts each.

By roots, whose signs say on which side of a cut a value lies (W. Kahan, Branch Cuts for Complex
Elementary Functions, 1987).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import onnx
import onnx_graphsurgeon as gs

from surgeon.arguments import bind
from surgeon.builders import parts
from surgeon.builders.aten_math.functions import angle_between, by_operator, exp_less_one, log1p
from surgeon.builders.aten_math.work import Work
from surgeon.builders.aten_nn.complex_arithmetic import (
    Operands,
    alike,
    as_complex,
    both_of,
    in_one_precision,
    number_like,
    only,
    over,
    plus,
    size,
    times,
    turned,
)
from surgeon.builders.aten_nn.complex_functions import (
    angle,
    exponential,
    logarithm,
    root,
    sine,
)
from surgeon.builders.aten_nn.transforms import Complex
from surgeon.rewrite import Draft

_DOUBLE = onnx.TensorProto.DOUBLE
_MOST = 8  # a power is so many products


def _shifted(draft: Draft, value: Complex, operator: str) -> Complex:
    """1 - z, 1 + z or z - 1, of which the imaginary part has the sign that z's has there."""
    real, imaginary = both_of(value)
    one = number_like(draft, value, 1)
    if operator == "from":
        return Complex(draft.op("Sub", one, real), draft.op("Neg", imaginary))
    return Complex(draft.op("Add" if operator == "above" else "Sub", real, one), imaginary)


def _roots(draft: Draft, node: gs.Node, value: Complex) -> tuple[Complex, Complex]:
    """Those of 1 - z and of 1 + z."""
    first, second = (root(draft, node, _shifted(draft, value, side)) for side in ("from", "above"))
    return first, second


def _area(draft: Draft, node: gs.Node, x: gs.Tensor) -> gs.Tensor:
    return by_operator(Work(draft, node), "Asinh", x)


def _doubled(draft: Draft, node: gs.Node, y: gs.Tensor, x: gs.Tensor) -> gs.Tensor:
    """Twice an angle."""
    turn = angle_between(Work(draft, node), y, x)
    made: gs.Tensor = draft.op("Add", turn, turn)
    return made


def _sideways(
    function: Callable[[Draft, gs.Node, Complex], Complex],
) -> Callable[[Draft, gs.Node, Complex], Complex]:
    """-i f(iz): the hyperbolic function of a circular one, and the other way round."""

    def run(draft: Draft, node: gs.Node, value: Complex) -> Complex:
        real, imaginary = both_of(value)
        found = function(draft, node, Complex(draft.op("Neg", imaginary), real))
        up, right = both_of(found)
        return Complex(right, draft.op("Neg", up))

    return run


def _arc_sine(draft: Draft, node: gs.Node, value: Complex) -> Complex:
    below, above = _roots(draft, node, value)
    side = angle_between(Work(draft, node), value.real, times(draft, below, above).real)
    height = both_of(times(draft, turned(draft, below), above))[1]
    return Complex(side, _area(draft, node, height))


def _arc_cosine(draft: Draft, node: gs.Node, value: Complex) -> Complex:
    below, above = _roots(draft, node, value)
    height = both_of(times(draft, turned(draft, above), below))[1]
    return Complex(_doubled(draft, node, below.real, above.real), _area(draft, node, height))


def _area_cosine(draft: Draft, node: gs.Node, value: Complex) -> Complex:
    below, above = (root(draft, node, _shifted(draft, value, side)) for side in ("below", "above"))
    width = times(draft, turned(draft, below), above).real
    return Complex(_area(draft, node, width), _doubled(draft, node, both_of(below)[1], above.real))


def _area_tangent(draft: Draft, node: gs.Node, value: Complex) -> Complex:
    """log(1 + 4a / ((1 - a)^2 + b^2)) / 4, and half the angle of ((1 - a)(1 + a) - b^2, 2b)."""
    work, (real, imaginary) = Work(draft, node), both_of(value)
    one, half, quarter = (number_like(draft, value, n) for n in (1, 0.5, 0.25))
    right = draft.op("Abs", real)  # where nothing cancels out
    lower = draft.op("Sub", one, right)
    square = draft.op("Mul", imaginary, imaginary)
    ratio = draft.op("Div", right, draft.op("Add", draft.op("Mul", lower, lower), square))
    grown = log1p(work, draft.op("Mul", ratio, number_like(draft, value, 4)))
    grown = draft.op("Mul", draft.op("Mul", grown, quarter), draft.op("Sign", real))
    across = draft.op("Sub", draft.op("Mul", lower, draft.op("Add", one, right)), square)
    turn = angle_between(work, draft.op("Add", imaginary, imaginary), across)
    return Complex(grown, draft.op("Mul", turn, half))


def _power_less_one(draft: Draft, node: gs.Node, value: Complex) -> Complex:
    """(e^a - 1) cos b - 2 sin^2 (b / 2), and e^a sin b."""
    real, imaginary = both_of(value)
    half, two = (number_like(draft, value, n) for n in (0.5, 2))
    grown = exp_less_one(Work(draft, node), real)
    dip = draft.op("Sin", draft.op("Mul", imaginary, half))
    dip = draft.op("Mul", draft.op("Mul", dip, dip), two)
    return Complex(
        draft.op("Sub", draft.op("Mul", grown, draft.op("Cos", imaginary)), dip),
        draft.op("Mul", draft.op("Exp", real), draft.op("Sin", imaginary)),
    )


def logarithm_above_one(draft: Draft, node: gs.Node, value: Complex) -> Complex:
    """log(1 + z); of small values log(1 + a (a + 2) + b^2) / 2, which keeps their digits."""
    real, imaginary = both_of(value)
    half, two = (number_like(draft, value, n) for n in (0.5, 2))
    far = logarithm(draft, node, _shifted(draft, value, "above"))
    along = draft.op("Mul", real, draft.op("Add", real, two))
    square = draft.op("Add", along, draft.op("Mul", imaginary, imaginary))
    near = draft.op("Mul", log1p(Work(draft, node), square), half)
    small = draft.op("Less", draft.op("Abs", square), half)
    return Complex(draft.op("Where", small, near, far.real), far.imaginary)


def _sine_over(draft: Draft, node: gs.Node, value: Complex) -> Complex:
    """sin(pi z) / (pi z), and 1 of nothing."""
    turn = number_like(draft, value, math.pi)
    grown = Complex(*(draft.op("Mul", part, turn) for part in both_of(value)))
    zero, one = (number_like(draft, value, n) for n in (0, 1))
    nothing = draft.op("Equal", size(draft, grown), zero)
    found = over(draft, sine(draft, node, grown), grown)
    real, imaginary = both_of(found)
    return Complex(
        draft.op("Where", nothing, one, real), draft.op("Where", nothing, zero, imaginary)
    )


FUNCTIONS: Mapping[str, Callable[[Draft, gs.Node, Complex], Complex]] = {
    **dict.fromkeys(("asin", "arcsin", "Asin"), _arc_sine),
    **dict.fromkeys(("acos", "arccos", "Acos"), _arc_cosine),
    **dict.fromkeys(("atan", "arctan", "Atan"), _sideways(_area_tangent)),
    **dict.fromkeys(("asinh", "arcsinh", "Asinh"), _sideways(_arc_sine)),
    **dict.fromkeys(("acosh", "arccosh", "Acosh"), _area_cosine),
    **dict.fromkeys(("atanh", "arctanh", "Atanh"), _area_tangent),
    **dict.fromkeys(("expm1", "special_expm1"), _power_less_one),
    **dict.fromkeys(("log1p", "special_log1p"), logarithm_above_one),
    **dict.fromkeys(("sinc", "special_sinc"), _sine_over),
}


def inverse(draft: Draft, node: gs.Node, operands: Operands) -> Complex:
    """A function of one value."""
    return FUNCTIONS[node.op](draft, node, only(operands))


def _by_angle(draft: Draft, node: gs.Node, base: Complex, exponent: float) -> Complex:
    """A power by a number that is not negative: of the magnitude, at so many times the angle."""
    number = number_like(draft, base, exponent)
    magnitude = draft.op("Pow", size(draft, base), number)
    turn = draft.op("Mul", angle(draft, node, base), number)
    return Complex(*(draft.op("Mul", magnitude, draft.op(f, turn)) for f in ("Cos", "Sin")))


def power(draft: Draft, node: gs.Node, operands: Operands) -> Complex:
    """A power: by few products where the exponent is known to be small and whole."""
    base, exponent = operands
    array = None if isinstance(exponent, Complex) else draft.facts.array(exponent)
    if not isinstance(base, Complex) or array is None or array.size != 1:
        return _general_power(draft, node, operands)
    number = float(array.reshape(()))
    if node.op == "float_power":
        base = Complex(*(parts.cast(draft, part, _DOUBLE) for part in both_of(base)))
    if abs(number) == 0.5:
        found = root(draft, node, base)
    elif number == int(number) and 1 <= abs(number) <= _MOST:
        found = base
        for _ in range(int(abs(number)) - 1):
            found = times(draft, found, base)
    else:
        found = _by_angle(draft, node, base, abs(number))
    return found if number >= 0 else over(draft, number_like(draft, base, 1), found)


def _general_power(draft: Draft, node: gs.Node, operands: Operands) -> Complex:
    """e^(y log x), of which one may be real; nothing to a power with a positive part is nothing."""
    both = in_one_precision(draft, *operands)
    like = next(value for value in both if isinstance(value, Complex))
    base, exponent = (as_complex(draft, value, like) for value in both)
    if node.op == "float_power":
        base, exponent, like = (
            Complex(*(parts.cast(draft, part, _DOUBLE) for part in both_of(value)))
            for value in (base, exponent, like)
        )
    zero = number_like(draft, like, 0)
    found = alike(
        draft, exponential(draft, node, times(draft, exponent, logarithm(draft, node, base)))
    )
    vanishes = draft.op("Equal", size(draft, base), zero)
    vanishes = draft.op("And", vanishes, draft.op("Less", zero, exponent.real))
    return Complex(*(draft.op("Where", vanishes, zero, part) for part in both_of(found)))


def logarithm_of_sum(draft: Draft, node: gs.Node, operands: Operands) -> Complex:
    """`logsumexp`: the largest real part is taken out of the exponents."""
    args, value = bind(node, draft.facts), only(operands)
    rank = parts.rank_of(draft, value.real)
    if not rank:  # its angle is none but what a logarithm gives
        powers = exponential(draft, node, plus(draft, value, value.real, "Sub"))
        return plus(draft, logarithm(draft, node, powers), value.real)
    given = args.value("dim")
    dims = sorted({int(d) % rank for d in (given if isinstance(given, list) else [given])})
    dims = dims or list(range(rank))
    axes = draft.constant(dims, "axes")
    most = draft.op("ReduceMax", value.real, axes, keepdims=1)
    powers = exponential(draft, node, plus(draft, value, most, "Sub"))
    total = Complex(*(draft.op("ReduceSum", p, axes, keepdims=1) for p in both_of(powers)))
    found = plus(draft, logarithm(draft, node, total), most)
    if args.value("keepdim"):
        return found
    return Complex(*(parts.squeeze(draft, part, *dims) for part in both_of(found)))
