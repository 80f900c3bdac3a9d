"""`FakeQuantize (x, input_low, input_high, output_low, output_high)`, of so many levels.

Between two inputs' ends lie as many steps as there are levels less one, and as many between two
outputs' ends. NNCF writes it of what it quantises.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_graphsurgeon as gs

from surgeon.builders.bench import TYPE, Bench, operand
from surgeon.builders.qonnx.pairs import layout_of
from surgeon.match import Match
from surgeon.rewrite import Draft, Refused

Array = np.ndarray[Any, Any]
_MOST = 256  # levels of 8 bits
_FEWEST = 64  # levels, or one of them is more than the rule allows
_CLOSE = 1e-4  # of a level: how far from a whole number the level of 0 may be, as floats round
_CLIP = 11  # the opset from which it takes its bounds as they are said here


@dataclass(frozen=True)
class _Ranges:
    """What it is given.

    Attributes:
        x: What is quantised, in float32.
        low: The least input, float32.
        high: The greatest.
        to_low: What the least becomes.
        to_high: What the greatest becomes.
        steps: How many steps there are between, levels less one.
    """

    x: gs.Tensor
    low: Array
    high: Array
    to_low: Array
    to_high: Array
    steps: int

    def level(self, x: Array) -> Array:
        """The levels of a constant, as floats from 0 on."""
        with np.errstate(all="ignore"):
            level = np.rint((x - self.low) / (self.high - self.low) * np.float32(self.steps))
        level = np.where(x > self.high, np.float32(self.steps), level)
        return np.asarray(np.where(x <= self.low, np.float32(0), level))


@dataclass(frozen=True)
class _Scheme:
    """Levels as ONNX's operators have them: a scale, and a whole number that 0 is.

    Attributes:
        scale: The size of a step, float32.
        zero: The level of 0, whole.
    """

    scale: Array
    zero: Array


def constant(draft: Draft, match: Match) -> gs.Tensor:
    """Of a constant: levels and a DequantizeLinear, or floats where these have no such form."""
    c = Bench(draft)
    r = _ranges(c, match.root)
    array = c.facts.array(r.x)
    if array is None:
        raise Refused("it is not of a constant")
    level = r.level(np.asarray(array, np.float32))
    try:
        target = _scheme(r.to_low, r.to_high, r.steps)
        shape, where = layout_of(c, r.x, target.scale, target.zero)
        kind, least = _kind(target, r.steps)
    except Refused:
        span = np.asarray(r.to_high - r.to_low, np.float32)
        level = level / np.float32(r.steps) * span + r.to_low
        return draft.constant(np.asarray(level, np.float32), "quantised")
    scale = draft.constant(np.array(target.scale.reshape(shape)), "scale")
    zero = draft.constant((target.zero - least).reshape(shape).astype(kind), "zero_point")
    levels = draft.constant((level - least).astype(kind), "levels")
    made: gs.Tensor = c.op("DequantizeLinear", levels, scale, zero, **where)
    return made


def pair(draft: Draft, match: Match) -> gs.Tensor:
    """QuantizeLinear and DequantizeLinear, where 0 is a level of both ranges."""
    c = Bench(draft)
    r = _ranges(c, match.root)
    if r.steps + 1 < _FEWEST:
        raise Refused(f"a step of {r.steps + 1} levels is more than may be wrong")
    source = _scheme(r.low, r.high, r.steps)
    alike = np.array_equal(r.low, r.to_low) and np.array_equal(r.high, r.to_high)
    target = source if alike else _scheme(r.to_low, r.to_high, r.steps)
    if (source.zero != target.zero).any():
        raise Refused("0 is another level of what comes out than of what goes in")
    kind, least = _kind(source, r.steps)
    shape, where = layout_of(c, r.x, source.scale, target.scale, source.zero)
    sizes = np.broadcast_shapes(*(a.shape for a in (source.scale, target.scale, source.zero)))

    def operand_of(array: Array, name: str) -> gs.Tensor:
        return draft.constant(np.array(np.broadcast_to(array, sizes).reshape(shape)), name)

    scale = operand_of(source.scale, "scale")
    zero = operand_of((source.zero - least).astype(kind), "zero_point")
    x = r.x if r.steps + 1 == _MOST else _cut(c, r)
    level = c.op("QuantizeLinear", x, scale, zero, **where)
    scale = scale if alike else operand_of(target.scale, "scale")
    made: gs.Tensor = c.op("DequantizeLinear", level, scale, zero, **where)
    return made


def steps(draft: Draft, match: Match) -> gs.Tensor:
    """Cut off at the ends, counted in steps, rounded and counted back, with any ranges."""
    c = Bench(draft)
    r = _ranges(c, match.root)
    empty = r.low == r.high
    width = np.where(empty, np.float32(1), r.high - r.low)
    span = (r.to_high - r.to_low).astype(np.float32)
    y = _cut(c, r)
    if r.low.any():
        y = c.op("Sub", y, _number(c, r.low))
    y = c.op("Mul", c.op("Div", y, _number(c, width)), c.number(r.steps, TYPE.FLOAT))
    y = c.op("Round", y)
    if r.to_low.any():  # where terms cancel, as it is documented
        y = c.op("Mul", c.op("Div", y, c.number(r.steps, TYPE.FLOAT)), _number(c, span))
        y = c.op("Add", y, _number(c, r.to_low))
    else:
        y = c.op("Mul", y, _number(c, span / np.float32(r.steps)))
    if empty.any():
        limit = np.where(empty, r.low, np.float32(np.inf))
        above = c.op("Greater", r.x, _number(c, limit))
        y = c.op("Where", above, _number(c, r.to_high), y)
    made: gs.Tensor = y
    return made


def _cut(c: Bench, r: _Ranges) -> gs.Tensor:
    """What lies between the ends of the inputs."""
    low, high = (_number(c, end) for end in (r.low, r.high))
    if r.low.size == r.high.size == 1 and c.opset >= _CLIP:
        made: gs.Tensor = c.op("Clip", r.x, low, high)
    else:
        made = c.op("Min", c.op("Max", r.x, low), high)
    return made


def _number(c: Bench, array: Array) -> gs.Tensor:
    """A constant in single precision; without axes where it is one number."""
    array = np.asarray(array, np.float32)
    return c.draft.constant(array.reshape(()) if array.size == 1 else array, "end")


def _ranges(c: Bench, node: gs.Node) -> _Ranges:
    given = [operand(node, index) for index in range(len(node.inputs))]
    values = [value for value in given if value is not None]
    if len(given) != 5 or len(values) != len(given):
        raise Refused("it lacks its five operands")
    x, levels = values[0], node.attrs.get("levels")
    if c.dtype(x) != TYPE.FLOAT:
        raise Refused("only single precision is quantised here")
    if not isinstance(levels, int) or levels < 2:
        raise Refused(f"its `levels` is {levels}, no whole number of at least 2")
    if (way := node.attrs.get("auto_broadcast", "numpy")) not in ("numpy", b"numpy"):
        raise Refused(f"its `auto_broadcast` is `{way}`, not as NumPy does")
    arrays = [c.facts.array(value) for value in values[1:]]
    known = [np.asarray(array, np.float32) for array in arrays if array is not None]
    if len(known) != len(arrays):
        raise Refused("its ranges are known at run time only")
    if max(array.ndim for array in known) > c.rank(x):
        raise Refused("its ranges have more axes than what is quantised")
    if not all(np.isfinite(array).all() for array in known) or (known[0] > known[1]).any():
        raise Refused("a range ends before it begins, or nowhere")
    low, high, to_low, to_high = known
    return _Ranges(x, low, high, to_low, to_high, levels - 1)


def _scheme(low: Array, high: Array, steps: int) -> _Scheme:
    """A scale and a whole zero point for such a range.

    Raises:
        Refused: 0 is no level of it.
    """
    low, high = low.astype(np.float64), high.astype(np.float64)
    if (low >= high).any():
        raise Refused("a range has no length")
    scale = (high - low) / steps
    zero = np.rint(-low / scale)
    if (abs(-low / scale - zero) > _CLOSE).any():
        raise Refused("0 is none of its levels, as ONNX's operators have it")
    return _Scheme(scale.astype(np.float32), zero)


def _kind(scheme: _Scheme, steps: int) -> tuple[Any, int]:
    """The dtype that holds the levels, and the level that is 0 of it.

    Levels around 0 are signed ones whose zero point is 0.
    """
    least, most = int(scheme.zero.min()), int(scheme.zero.max())
    if steps < _MOST and least == most and 0 < least <= 128 and steps - least <= 127:
        return np.int8, least
    if steps < _MOST and least >= 0 and most < _MOST:
        return np.uint8, 0
    raise Refused("8 bits do not hold its levels and that of 0")
