"""QONNX's `FloatQuant`: rounding to floats of a few bits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import onnx_graphsurgeon as gs

from surgeon.builders.bench import TYPE, Bench
from surgeon.builders.qonnx.pairs import layout_of
from surgeon.builders.qonnx.scheme import Array, given, known, mode_of, number_of
from surgeon.match import Match
from surgeon.rewrite import Draft, Refused

_FLOAT8 = 19  # the opset from which QuantizeLinear rounds to 8 bits of floats
_MOST_MANTISSA = 10  # more bits than these, and what is wrong by a rounding of a logarithm is seen
_LEAST_POWER = -126  # of two, of what single precision holds with all its digits
# Exponent bits, mantissa bits, bias of the exponent, and the largest value.
_KINDS: Mapping[tuple[int, int, int, float], Any] = {
    (4, 3, 7, 448.0): ml_dtypes.float8_e4m3fn,
    (4, 3, 8, 240.0): ml_dtypes.float8_e4m3fnuz,
    (5, 2, 15, 57344.0): ml_dtypes.float8_e5m2,
    (5, 2, 16, 57344.0): ml_dtypes.float8_e5m2fnuz,
}


class _Format(NamedTuple):
    x: gs.Tensor
    scale: gs.Tensor
    exponent: int
    mantissa: int
    bias: float
    largest: float


def float_pair(draft: Draft, match: Match) -> gs.Tensor:
    """Where the format is one of ONNX's of 8 bits; of constants, those and a DequantizeLinear."""
    c = Bench(draft)
    f = _format(c, match.root)
    kind = _KINDS.get((f.exponent, f.mantissa, int(f.bias), f.largest))
    if kind is None or f.bias != int(f.bias):
        raise Refused("its format is none of ONNX's of 8 bits")
    if c.opset < _FLOAT8:
        raise Refused(f"floats of 8 bits need opset {_FLOAT8}, and the model has {c.opset}")
    steps = known(c, f.scale)
    if steps is None:
        raise Refused("its scale is known at run time only")
    shape, where = layout_of(c, f.x, steps)
    scale = draft.constant(np.array(steps.reshape(shape)), "scale")
    zero = draft.constant(np.zeros(scale.values.shape, kind), "zero_point")
    array = known(c, f.x)
    if array is None:
        low = c.op("QuantizeLinear", f.x, scale, zero, **where)
    else:
        low = draft.constant(_narrowed(array / steps, kind, f.largest), "levels")
    made: gs.Tensor = c.op("DequantizeLinear", low, scale, zero, **where)
    return made


def float_steps(draft: Draft, match: Match) -> gs.Tensor:
    """Any format, in arithmetic: the power of two below a value tells the size of its steps."""
    c = Bench(draft)
    f = _format(c, match.root)
    if f.mantissa > _MOST_MANTISSA:
        raise Refused(f"its mantissa has {f.mantissa} bits, more than {_MOST_MANTISSA}")

    def number(value: float) -> gs.Tensor:
        return c.number(value, TYPE.FLOAT)

    x = c.op("Div", f.x, f.scale)
    least = float(np.finfo(np.float32).tiny)
    size = c.op("Log", c.op("Max", c.op("Abs", x), number(least)))
    power = c.op("Floor", c.op("Mul", size, number(1 / np.log(2))))
    power = c.op("Sub", c.op("Max", power, number(1 - f.bias)), number(f.mantissa))
    step = c.op("Pow", number(2), power)
    level = c.op("Mul", c.op("Round", c.op("Div", x, step)), step)
    level = c.op("Clip", level, number(-f.largest), number(f.largest))
    made: gs.Tensor = c.op("Mul", level, f.scale)
    return made


def _format(c: Bench, node: gs.Node) -> _Format:
    x, scale, *rest = given(c, node, 6)
    if not node.attrs.get("saturation", 1):
        raise Refused("what is too large becomes infinite or no number, as no operator does here")
    if mode_of(node, "ROUND") != "ROUND":
        raise Refused("only rounding to the nearest is known of it")
    names = ("exponent width", "mantissa width", "exponent bias", "largest value")
    exponent, mantissa, bias, most = (
        number_of(c, value, name) for value, name in zip(rest, names, strict=True)
    )
    if exponent != int(exponent) or mantissa != int(mantissa) or min(exponent, mantissa) < 0:
        raise Refused("its widths are no whole numbers")
    if 1 - bias - mantissa < _LEAST_POWER or 2.0**exponent - 1 - bias > -_LEAST_POWER:
        raise Refused("its format reaches beyond the powers of two that single precision has")
    whole = float(np.exp2(2.0**exponent - 1 - bias) * (2 - np.exp2(-mantissa)))
    return _Format(x, scale, int(exponent), int(mantissa), bias, min(whole, most))


def _narrowed(x: Array, kind: Any, largest: float) -> Array:
    return np.clip(x, -largest, largest).astype(kind)
