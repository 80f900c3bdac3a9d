"""Functions of complex values, in two real parts each (a + bi)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import onnx_graphsurgeon as gs

from surgeon.builders.aten_math.comparison import sign_bit
from surgeon.builders.aten_math.functions import angle_between, by_operator
from surgeon.builders.aten_math.work import Work
from surgeon.builders.aten_nn.complex_arithmetic import (
    Operands,
    as_factor,
    both_of,
    certain,
    evened,
    number_like,
    only,
    over,
    plus,
    scaled,
    size,
    times,
    turned,
)
from surgeon.builders.aten_nn.transforms import Complex
from surgeon.rewrite import Draft


def angle(draft: Draft, node: gs.Node, value: Complex) -> gs.Tensor:
    """The angle from the positive real axis."""
    return angle_between(Work(draft, node), *reversed(both_of(value)))


def exponential(draft: Draft, node: gs.Node, value: Complex) -> Complex:
    """e^a (cos b + i sin b)."""
    real, imaginary = both_of(value)
    magnitude = draft.op("Exp", real)
    return Complex(*(draft.op("Mul", magnitude, draft.op(f, imaginary)) for f in ("Cos", "Sin")))


def logarithm(draft: Draft, node: gs.Node, value: Complex) -> Complex:
    """The logarithm of the magnitude, and the angle; to another base by a factor."""
    largest, even = evened(draft, value)
    logs = (draft.op("Log", x) for x in (largest, size(draft, even)))
    found = Complex(draft.op("Add", *logs), angle(draft, node, value))
    base = {"log2": 2.0, "log10": 10.0}.get(node.op)
    return scaled(draft, found, 1.0 if base is None else 1 / math.log(base))


def root(draft: Draft, node: gs.Node, value: Complex) -> Complex:
    """The root whose real part is not negative.

    Its larger part is t = sqrt((|z| + |a|) / 2), the other |b| / 2t: nothing cancels out.
    """
    real, imaginary = both_of(value)
    zero, one, half = (number_like(draft, value, n) for n in (0, 1, 0.5))
    whole = draft.op("Add", size(draft, value), draft.op("Abs", real))
    larger = draft.op("Sqrt", draft.op("Mul", whole, half))
    divisor = draft.op("Where", draft.op("Equal", larger, zero), one, larger)
    other = draft.op("Div", draft.op("Mul", draft.op("Abs", imaginary), half), divisor)
    left, below = draft.op("Less", real, zero), sign_bit(Work(draft, node), imaginary)
    upright = draft.op("Where", left, larger, other)
    return Complex(
        draft.op("Where", left, other, larger),
        draft.op("Where", below, draft.op("Neg", upright), upright),
    )


def sign(draft: Draft, node: gs.Node, value: Complex) -> Complex:
    """What has the angle and the magnitude 1; 0 of 0."""
    _, even = evened(draft, value)
    magnitude = size(draft, even)
    zero, one = (number_like(draft, value, n) for n in (0, 1))
    divisor = draft.op("Where", draft.op("Equal", magnitude, zero), one, magnitude)
    return over(draft, even, divisor)


def _square(draft: Draft, node: gs.Node, value: Complex) -> Complex:
    return times(draft, value, value)


def _reciprocal(draft: Draft, node: gs.Node, value: Complex) -> Complex:
    return over(draft, number_like(draft, value, 1), value)


def sine(draft: Draft, node: gs.Node, value: Complex) -> Complex:
    """sin a cosh b + i cos a sinh b."""
    return _crossed(Work(draft, node), value, ("Sin", "Cosh"), ("Cos", "Sinh"))


def _cosine(draft: Draft, node: gs.Node, value: Complex) -> Complex:
    """cos a cosh b - i sin a sinh b."""
    return turned(draft, _crossed(Work(draft, node), value, ("Cos", "Cosh"), ("Sin", "Sinh")))


def _hyperbolic_sine(draft: Draft, node: gs.Node, value: Complex) -> Complex:
    """sinh a cos b + i cosh a sin b."""
    return _crossed(Work(draft, node), value, ("Sinh", "Cos"), ("Cosh", "Sin"))


def _hyperbolic_cosine(draft: Draft, node: gs.Node, value: Complex) -> Complex:
    """cosh a cos b + i sinh a sin b."""
    return _crossed(Work(draft, node), value, ("Cosh", "Cos"), ("Sinh", "Sin"))


def _crossed(
    work: Work, value: Complex, first: tuple[str, str], second: tuple[str, str]
) -> Complex:
    """Each part a function of the real part times one of the imaginary part."""
    made = []
    for functions in (first, second):
        pairs = zip(functions, both_of(value), strict=True)
        made.append(work.op("Mul", *(by_operator(work, f, part) for f, part in pairs)))
    return Complex(*made)


def _tangent(draft: Draft, node: gs.Node, value: Complex) -> Complex:
    """With t = tanh a and u = tan b: (t (1 + u^2) + i u (1 - t^2)) / (1 + t^2 u^2)."""
    real, imaginary = both_of(value)
    t, u = draft.op("Tanh", real), by_operator(Work(draft, node), "Tan", imaginary)
    one = number_like(draft, value, 1)
    t2, u2 = (draft.op("Mul", x, x) for x in (t, u))
    divisor = draft.op("Add", one, draft.op("Mul", t2, u2))
    above = Complex(
        draft.op("Mul", t, draft.op("Add", one, u2)),
        draft.op("Mul", u, draft.op("Sub", one, t2)),
    )
    return over(draft, above, divisor)


def _circular_tangent(draft: Draft, node: gs.Node, value: Complex) -> Complex:
    """-i tanh(iz)."""
    real, imaginary = both_of(value)
    found = _tangent(draft, node, Complex(draft.op("Neg", imaginary), real))
    return Complex(found.imaginary, draft.op("Neg", found.real))


def _power_of_two(draft: Draft, node: gs.Node, value: Complex) -> Complex:
    """e^(z log 2)."""
    factor = number_like(draft, value, math.log(2))
    grown = Complex(*(draft.op("Mul", part, factor) for part in both_of(value)))
    return exponential(draft, node, grown)


def _reciprocal_root(draft: Draft, node: gs.Node, value: Complex) -> Complex:
    return _reciprocal(draft, node, root(draft, node, value))


def _sigmoid(draft: Draft, node: gs.Node, value: Complex) -> Complex:
    """1 / (1 + e^-z)."""
    return over(draft, number_like(draft, value, 1), _above_one(draft, node, value))


def _above_one(draft: Draft, node: gs.Node, value: Complex) -> Complex:
    one = number_like(draft, value, 1)
    back = Complex(*(draft.op("Neg", part) for part in both_of(value)))
    return certain(plus(draft, one, exponential(draft, node, back)))


def _swish(draft: Draft, node: gs.Node, value: Complex) -> Complex:
    """z / (1 + e^-z)."""
    return over(draft, value, _above_one(draft, node, value))


def scaled_by_power(draft: Draft, node: gs.Node, operands: Operands) -> Complex:
    """`ldexp`: x 2^y, of which one may be real."""
    value, exponent = operands
    if isinstance(exponent, Complex):
        return times(draft, value, _power_of_two(draft, node, exponent))
    exponent = as_factor(draft, exponent, certain(value).real)
    return times(draft, value, draft.op("Pow", number_like(draft, certain(value), 2), exponent))


FUNCTIONS: Mapping[str, Callable[[Draft, gs.Node, Complex], Complex]] = {
    **dict.fromkeys(("exp", "Exp"), exponential),
    **dict.fromkeys(("log", "Log", "log2", "log10"), logarithm),
    **dict.fromkeys(("sqrt", "Sqrt"), root),
    **dict.fromkeys(("reciprocal", "Reciprocal"), _reciprocal),
    **dict.fromkeys(("sin", "Sin"), sine),
    **dict.fromkeys(("cos", "Cos"), _cosine),
    **dict.fromkeys(("sinh", "Sinh"), _hyperbolic_sine),
    **dict.fromkeys(("cosh", "Cosh"), _hyperbolic_cosine),
    **dict.fromkeys(("tanh", "Tanh"), _tangent),
    **dict.fromkeys(("sigmoid", "Sigmoid"), _sigmoid),
    **dict.fromkeys(("tan", "Tan"), _circular_tangent),
    **dict.fromkeys(("exp2", "special_exp2"), _power_of_two),
    "rsqrt": _reciprocal_root,
    "sgn": sign,
    "square": _square,
    "silu": _swish,
}


def function(draft: Draft, node: gs.Node, operands: Operands) -> Complex:
    """A function of one value."""
    return FUNCTIONS[node.op](draft, node, only(operands))
