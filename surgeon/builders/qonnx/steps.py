"""QONNX's quantisers of whole numbers, in arithmetic of floats."""

from __future__ import annotations

import numpy as np
import onnx_graphsurgeon as gs

from surgeon.builders.bench import TYPE, Bench
from surgeon.builders.qonnx.scheme import (
    Array,
    bits_of,
    ends,
    given,
    known,
    mode_of,
    rounded,
    scheme_of,
)
from surgeon.match import Match
from surgeon.rewrite import Draft, Refused

_OR_EQUAL = 12  # the opset from which GreaterOrEqual is


def steps(draft: Draft, match: Match) -> gs.Tensor:
    """`Quant (x, scale, zero, bits)`: any scale, zero point and rounding."""
    c = Bench(draft)
    s = scheme_of(c, match.root)
    level = _levels(c, s.x, s.scale, s.zero)
    low, high = (c.number(end, TYPE.FLOAT) for end in (s.low, s.high))
    level = rounded(c, c.op("Clip", level, low, high), s.mode)
    return _values(c, level, s.scale, s.zero)


def trunc(draft: Draft, match: Match) -> gs.Tensor:
    """`Trunc`: levels cut to fewer bits.

    Version 1 is (x, scale, zero, bits, bits of the result), and keeps the scale and ends nowhere;
    version 2 is (x, scale, zero, bits, scale of the result, bits of the result).
    """
    node, c = match.root, Bench(draft)
    count = len(node.inputs)
    if count not in (5, 6):
        raise Refused("it is neither of QONNX's versions of it, which have 5 and 6 operands")
    x, scale, zero, bits, *rest = given(c, node, count)
    mode = mode_of(node, "FLOOR")
    level = c.op("Round", _levels(c, x, scale, zero))
    if count == 5:
        cut = bits_of(c, bits, "bit width") - bits_of(c, rest[0], "bit width of the result")
        level = _scaled(c, level, np.asarray(2.0**-cut, np.float32))
        return _values(c, rounded(c, level, mode), scale, zero)
    before, after, shift = (known(c, value) for value in (scale, rest[0], zero))
    if before is None or after is None or shift is None:
        raise Refused("its scales are known at run time only, and how far they are apart with them")
    with np.errstate(all="ignore"):
        step = np.exp2(np.rint(np.log2(after / before))).astype(np.float32)
    if not (np.isfinite(step) & (step > 0)).all():
        raise Refused("its scales are not all above 0")
    signed, narrow = (bool(node.attrs.get(n, d)) for n, d in (("signed", 1), ("narrow", 0)))
    levels = ends(bits_of(c, rest[1], "bit width of the result"), signed, narrow)
    level = _scaled(c, level, 1 / step)
    level = c.op("Clip", level, *(c.number(end, TYPE.FLOAT) for end in levels))
    return _values(c, rounded(c, level, mode), rest[0], draft.constant(shift / step, "zero_point"))


def bipolar(draft: Draft, match: Match) -> gs.Tensor:
    """`BipolarQuant (x, scale)`: the scale from 0 on, and below it the other way."""
    c = Bench(draft)
    x, scale = given(c, match.root, 2)
    steps_known = known(c, scale)
    below = c.op("Neg", scale) if steps_known is None else draft.constant(-steps_known, "below")
    nought = c.number(0, TYPE.FLOAT)
    if c.opset >= _OR_EQUAL:
        made: gs.Tensor = c.op("Where", c.op("GreaterOrEqual", x, nought), scale, below)
    else:
        made = c.op("Where", c.op("Less", x, nought), below, scale)
    return made


def _levels(c: Bench, x: gs.Tensor, scale: gs.Tensor, zero: gs.Tensor) -> gs.Tensor:
    """x / scale + zero; what changes nothing is left out."""
    if not _is_all(known(c, scale), 1):
        x = c.op("Div", x, scale)
    return x if _is_all(known(c, zero), 0) else c.op("Add", x, c.cast(zero, TYPE.FLOAT))


def _values(c: Bench, level: gs.Tensor, scale: gs.Tensor, zero: gs.Tensor) -> gs.Tensor:
    """(level - zero) * scale."""
    if not _is_all(known(c, zero), 0):
        level = c.op("Sub", level, c.cast(zero, TYPE.FLOAT))
    return level if _is_all(known(c, scale), 1) else c.op("Mul", level, scale)


def _scaled(c: Bench, x: gs.Tensor, by: Array) -> gs.Tensor:
    """Times powers of two."""
    return (
        x
        if _is_all(by, 1)
        else c.op("Mul", x, c.draft.constant(np.asarray(by, np.float32), "fewer"))
    )


def _is_all(array: Array | None, value: float) -> bool:
    """Whether it is that number everywhere, and gives the result no axis."""
    return array is not None and set(array.shape) <= {1} and bool((array == value).all())
