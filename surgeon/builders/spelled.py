"""Activations and sums spelled out along axes: Softmax, LogSoftmax, Hardmax, reductions."""

from __future__ import annotations

import numpy as np
import onnx_graphsurgeon as gs

from surgeon.builders import parts
from surgeon.builders.bench import TYPE, Bench, operand
from surgeon.builders.bounds import need_clip
from surgeon.builders.scalar_types import finfo
from surgeon.facts.kinds import FLOATS
from surgeon.match import Match, attribute_of
from surgeon.rewrite import Draft, Refused

_MOST_FACTORS = 32
_SQUARE = 2


def scaled_by_ones(draft: Draft, match: Match) -> gs.Tensor:
    """LayerNormalization that leaves its scale out, which ONNX does not allow: of ones."""
    c, node = Bench(draft), match.root
    x, scale, *shifts = node.inputs
    if not scale.is_empty():
        raise Refused("it has a scale")
    if len(node.outputs) > 1:
        raise Refused("its mean is read too")
    axis = attribute_of(node, "axis")
    place = c.axis(-1 if axis is None else int(axis), c.rank(x))
    ones = c.filled(c.sizes(x)[place:], 1, c.dtype(x))
    given = [shift for shift in shifts if not shift.is_empty()]
    y: gs.Tensor = c.op("LayerNormalization", x, ones, *given, **node.attrs)
    return y


def log_softmax_as_difference(draft: Draft, match: Match) -> gs.Tensor:
    """LogSoftmax: x - max - log(sum(exp(x - max)))."""
    c = Bench(draft)
    below, _, total = _exponentials(c, match.root)
    y: gs.Tensor = c.op("Sub", below, c.op("Log", total))
    return y


def softmax_as_quotient(draft: Draft, match: Match) -> gs.Tensor:
    """Softmax: exp(x - max) by its sum."""
    c = Bench(draft)
    _, powers, total = _exponentials(c, match.root)
    y: gs.Tensor = c.op("Div", powers, total)
    return y


def _exponentials(c: Bench, node: gs.Node) -> tuple[gs.Tensor, gs.Tensor, gs.Tensor]:
    """Of a softmax: x - max, the exponentials of it, and their sum along the axis."""
    x = node.inputs[0]
    if c.dtype(x) not in FLOATS:
        raise Refused("its input is not of floats")
    axes = [_axis_of_softmax(c, node)]
    below = c.op("Sub", x, reduced(c, "ReduceMax", x, axes, keepdims=1))
    powers = c.op("Exp", below)
    return below, powers, reduced(c, "ReduceSum", powers, axes, keepdims=1)


def hardmax_as_places(draft: Draft, match: Match) -> gs.Tensor:
    """Hardmax: where a place is that of the first greatest element."""
    c, node = Bench(draft), match.root
    x = node.inputs[0]
    axis = _axis_of_softmax(c, node)
    rank = parts.rank_of(draft, x)
    place = c.op("ArgMax", x, axis=axis, keepdims=1)
    count = c.count(c.size(x, axis))
    if behind := rank - 1 - axis:
        count = c.unsqueeze(count, [1 + n for n in range(behind)])
    return c.cast(c.op("Equal", place, count), c.dtype(x))


def _axis_of_softmax(c: Bench, node: gs.Node) -> int:
    """The axis of a softmax, from the front."""
    rank = c.rank(node.inputs[0])
    if not rank:
        raise Refused("its input has no axis")
    axis = attribute_of(node, "axis")
    return c.axis(-1 if axis is None else int(axis), rank)


def reduced(c: Bench, op: str, x: gs.Tensor, axes: list[int], *, keepdims: int) -> gs.Tensor:
    """A reduction along axes, as an operand or as an attribute."""
    made: gs.Tensor = c.op(op, x, c.ints(axes, "axes"), keepdims=keepdims)
    return made


def exponentials_as_sum(draft: Draft, match: Match) -> gs.Tensor:
    """ReduceLogSumExp: log(sum(exp(x - max))) + max, of a greatest that is a finite number."""
    c, node = Bench(draft), match.root
    x = node.inputs[0]
    if c.dtype(x) not in FLOATS:
        raise Refused("its input is not of floats")
    axes = axes_of(c, node)
    need_clip(c, c.dtype(x))
    # where all are -inf, or one is inf, a finite number in place of it gives the same
    limits = finfo(parts.numpy_dtype(draft, x))
    bounds = (c.number(limits.min, c.dtype(x)), c.number(limits.max, c.dtype(x)))
    most = c.op("Clip", reduced(c, "ReduceMax", x, axes, keepdims=1), *bounds)
    total = reduced(c, "ReduceSum", c.op("Exp", c.op("Sub", x, most)), axes, keepdims=1)
    y: gs.Tensor = c.op("Add", c.op("Log", total), most)
    return y if _keeps(node) else c.squeeze(y, axes)


def product_of_few(draft: Draft, match: Match) -> gs.Tensor:
    """ReduceProd along axes of few elements: products of two and two."""
    c, node = Bench(draft), match.root
    x = node.inputs[0]
    axes = axes_of(c, node)
    lengths = [c.size(x, axis) for axis in axes]
    known = [length for length in lengths if isinstance(length, int)]
    if len(known) < len(lengths) or not 2 <= int(np.prod(known)) <= _MOST_FACTORS:
        raise Refused(f"it is not known to be of 2 to {_MOST_FACTORS} elements")
    made: gs.Tensor = x
    for axis, length in zip(axes, known, strict=True):
        factors = [made]
        if length > 1:
            factors = [c.slice(made, axis, place, place + 1) for place in range(length)]
        while len(factors) > 1:
            pairs = zip(factors[::2], factors[1::2], strict=False)
            odd = factors[len(factors) & ~1 :]
            factors = [c.op("Mul", a, b) for a, b in pairs] + odd
        made = factors[0]
    return made if _keeps(node) else c.squeeze(made, axes)


def normal_as_quotient(draft: Draft, match: Match) -> gs.Tensor:
    """LpNormalization: x / norm, and 0 where the norm is 0."""
    c, node = Bench(draft), match.root
    x = node.inputs[0]
    if c.dtype(x) not in FLOATS:
        raise Refused("its input is not of floats")
    axis, power = attribute_of(node, "axis"), attribute_of(node, "p")
    axes = [c.axis(-1 if axis is None else int(axis), c.rank(x))]
    # squares of halves leave their range, and a half of the least norm is no small one
    dtype = c.dtype(x)
    wide = x if dtype == TYPE.DOUBLE else c.cast(x, TYPE.FLOAT)
    power = 2 if power is None else int(power)
    norm, info = _norm(c, wide, axes, power), finfo(parts.numpy_dtype(draft, wide))
    # of small numbers the squares are 0, and so is what is divided by the norm; NaN stays
    smallest = float(info.smallest_subnormal if power == 1 else info.tiny)
    nothing = c.op("Less", norm, c.number(smallest, c.dtype(wide)))
    divisor = c.where(nothing, c.number(np.inf, c.dtype(wide)), norm)
    y: gs.Tensor = c.cast(c.op("Div", wide, divisor), dtype)
    return y


def norms_of_planes(draft: Draft, match: Match) -> gs.Tensor:
    """GlobalLpPool: the norm over all axes behind the channels."""
    c, node = Bench(draft), match.root
    x = node.inputs[0]
    power = attribute_of(node, "p")
    return _norm(c, x, list(range(2, c.rank(x))), 2 if power is None else int(power))


def norms_of_windows(draft: Draft, match: Match) -> gs.Tensor:
    """LpPool: the root of the mean of powers times how many a window has."""
    c, node = Bench(draft), match.root
    x = node.inputs[0]
    attributes = dict(node.attrs)
    power = attributes.pop("p", None)
    power = 2 if power is None else int(power)
    if attributes.get("auto_pad", "NOTSET") != "NOTSET":
        raise Refused("its pads are worked out of its lengths")
    if attributes.pop("ceil_mode", 0):
        raise Refused("its last windows hang over")
    if max(attributes.pop("dilations", None) or [1]) > 1:
        raise Refused("it has dilations")
    count = float(np.prod(attributes["kernel_shape"]))
    means = c.op("AveragePool", _powers(c, x, power), count_include_pad=1, **attributes)
    return _root(c, c.op("Mul", means, c.number(count, c.dtype(x))), power)


def _norm(c: Bench, x: gs.Tensor, axes: list[int], power: int) -> gs.Tensor:
    """The norm along axes, which stay."""
    return _root(c, reduced(c, "ReduceSum", _powers(c, x, power), axes, keepdims=1), power)


def _powers(c: Bench, x: gs.Tensor, power: int) -> gs.Tensor:
    """The magnitudes to a power, of which a norm is made."""
    made: gs.Tensor
    if power < 1:
        raise Refused("it is no norm")
    if power == _SQUARE:
        made = c.op("Mul", x, x)
    else:
        made = c.op("Abs", x)
        if power != 1:
            made = c.op("Pow", made, c.number(power, c.dtype(x)))
    return made


def _root(c: Bench, x: gs.Tensor, power: int) -> gs.Tensor:
    """The root of sums of powers."""
    made: gs.Tensor = x
    if power == _SQUARE:
        made = c.op("Sqrt", x)
    elif power != 1:
        made = c.op("Pow", x, c.number(1 / power, c.dtype(x)))
    return made


def axes_of(c: Bench, node: gs.Node) -> list[int]:
    """The axes of a reduction, from the front.

    Raises:
        Refused: They are computed, or there are none and that means none.
    """
    rank = c.rank(node.inputs[0])
    given = operand(node, 1)
    axes = None if given is None else c.facts.array(given)
    if given is not None and axes is None:
        raise Refused("its axes are computed at run time")
    found = [] if axes is None else [c.axis(int(n), rank) for n in axes.reshape(-1)]
    if not found and attribute_of(node, "noop_with_empty_axes"):
        raise Refused("without axes it is along none")
    return sorted(found) or list(range(rank))


def _keeps(node: gs.Node) -> bool:
    return bool(attribute_of(node, "keepdims") != 0)
