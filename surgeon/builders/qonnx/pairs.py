"""QONNX's quantisers as QuantizeLinear and DequantizeLinear, and constants that are quantised."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import onnx_graphsurgeon as gs

from surgeon import dims
from surgeon.builders.bench import Bench
from surgeon.builders.qonnx.scheme import Array, Scheme, given, known, scheme_of
from surgeon.match import Match
from surgeon.rewrite import Draft, Refused

PAIRS, PER_AXIS, PER_BLOCK = 10, 13, 21  # the opsets from which these operators have it
_WIDE = 21  # the opset from which they have 16 and 4 bits
# Dtypes of whole numbers, the smallest first: with their bits, and the opset from which they are.
_KINDS: tuple[tuple[Any, int, int], ...] = (
    (ml_dtypes.uint4, 4, _WIDE),
    (ml_dtypes.int4, 4, _WIDE),
    (np.uint8, 8, PAIRS),
    (np.int8, 8, PAIRS),
    (np.uint16, 16, _WIDE),
    (np.int16, 16, _WIDE),
)


def pair(draft: Draft, match: Match, shifted: bool = False) -> gs.Tensor:
    """`Quant` where ONNX's operators hold its levels: whole ones of 8 bits, or 16 at opset 21.

    They add the zero point behind the rounding. Levels at the ends that are not to be used are cut
    off in front, as runtimes want the pair to stand together.

    Args:
        draft: Where the nodes go.
        match: The quantiser.
        shifted: Whether the level of 0 may be another; then halves may go the other way.
    """
    c = Bench(draft)
    s = scheme_of(c, match.root)
    if s.mode != "ROUND":
        raise Refused(f"QuantizeLinear does not round as `{s.mode}` says")
    if s.shift is None or s.steps is None:
        raise Refused("its scale or zero point is known at run time only")
    if not shifted and s.shift.any():
        raise Refused(
            "its zero point is added before it rounds; allow it with `--allow approximate`"
        )
    kind = kind_of(c, s)
    layout = layout_of(c, s.x, s.steps, s.shift)
    x = _within(c, s, kind, s.x)
    scale, zero, where = _operands(draft, s, layout, kind)
    level = c.op("QuantizeLinear", x, scale, zero, **where)
    made: gs.Tensor = c.op("DequantizeLinear", level, scale, zero, **where)
    return made


def constant(draft: Draft, match: Match) -> gs.Tensor:
    """Any quantiser of whole numbers, of a constant: levels and a DequantizeLinear, or floats.

    Levels that no runtime dequantises, of more than 8 bits or without a whole zero point, are
    floats.
    """
    c = Bench(draft)
    node = match.root
    if node.op == "BipolarQuant":
        x, scale = given(c, node, 2)
        array, steps = known(c, x), known(c, scale)
        if array is None or steps is None:
            raise Refused("it is not of constants")
        level = np.where(array >= 0, np.float32(1), np.float32(-1))
        s = Scheme(x, scale, scale, steps, np.zeros((), np.float32), -1, 1, "ROUND")
    else:
        s = scheme_of(c, node)
        array = known(c, s.x)
        if array is None or s.steps is None or s.shift is None:
            raise Refused("it is not of constants")
        level = s.levels(array)
    assert s.steps is not None
    assert s.shift is not None
    try:
        kind = kind_of(c, s, of=(4, 8))
        layout = layout_of(c, s.x, s.steps, s.shift)
    except Refused:
        with np.errstate(all="ignore"):
            return draft.constant(np.asarray((level - s.shift) * s.steps, np.float32), "quantised")
    scale, zero, where = _operands(draft, s, layout, kind)
    made: gs.Tensor = c.op(
        "DequantizeLinear", draft.constant(level.astype(kind), "levels"), scale, zero, **where
    )
    return made


def kind_of(c: Bench, s: Scheme, *, of: tuple[int, ...] = (8, 16)) -> Any:
    """The dtype that holds the levels.

    Args:
        c: The draft, and what is known.
        s: What is asked for.
        of: Of how many bits it may be; only constants are stored in 4.
    """
    assert s.shift is not None
    if (s.shift != np.rint(s.shift)).any():
        raise Refused("its zero point is no whole number")
    low, high = min(s.low, s.shift.min()), max(s.high, s.shift.max())
    for kind, bits, since in _KINDS:
        least, greatest = _ends(kind)
        if bits in of and c.opset >= since and least <= low and high <= greatest:
            return kind
    more = "" if c.opset >= _WIDE else f"; opset {_WIDE} has 16 bits"
    raise Refused(f"its levels go from {s.low} to {s.high}, and 8 bits do not hold them{more}")


def _ends(kind: Any) -> tuple[int, int]:
    """The least and the greatest number of a dtype."""
    found = ml_dtypes.iinfo(kind)  # type: ignore[no-untyped-call]
    return int(found.min), int(found.max)


def layout_of(c: Bench, x: gs.Tensor, *numbers: Array) -> tuple[list[int], dict[str, int]]:
    """The shape in which ONNX's operators take such scales, and the attributes that go with it.

    Raises:
        Refused: They have none, or the model's opset lacks it.
    """
    if c.opset < PAIRS:
        raise Refused(f"QuantizeLinear needs opset {PAIRS}, and the model has {c.opset}")
    shape = np.broadcast_shapes(*(each.shape for each in numbers))
    if all(size == 1 for size in shape):
        if len(shape) > c.rank(x):
            raise Refused("its scale has more axes than what is quantised")
        return [], {}
    of_x = c.shape(x)
    if of_x is None or len(shape) > len(of_x):
        raise Refused("that its scales go along an axis is not known")
    shape = (1,) * (len(of_x) - len(shape)) + shape
    axes = [axis for axis, size in enumerate(shape) if size != 1]
    if any(dims.equal(shape[axis], of_x[axis]) is not True for axis in axes):
        raise Refused("that its scales go along an axis is not known")
    if len(axes) == 1:
        if c.opset < PER_AXIS:
            raise Refused(
                f"scales along an axis need opset {PER_AXIS}, and the model has {c.opset}"
            )
        return [-1], {"axis": axes[0]}
    others = [axis for axis in range(len(shape)) if axis not in axes and of_x[axis] != 1]
    length = of_x[others[0]] if len(others) == 1 else None
    if not isinstance(length, int):
        raise Refused("its scales stand along several axes, and not for each block of another")
    if c.opset < PER_BLOCK:
        raise Refused(f"scales of blocks need opset {PER_BLOCK}, and the model has {c.opset}")
    return list(shape), {"axis": others[0], "block_size": length}


def _operands(
    draft: Draft, s: Scheme, layout: tuple[list[int], dict[str, int]], kind: Any
) -> tuple[gs.Tensor, gs.Tensor, dict[str, int]]:
    """Scale and zero point as ONNX's operators want them."""
    assert s.steps is not None
    assert s.shift is not None
    steps, shift = np.broadcast_arrays(s.steps, s.shift)
    shape, where = layout
    scale = draft.constant(np.array(steps.reshape(shape)), "scale")
    zero = draft.constant(shift.reshape(shape).astype(kind), "zero_point")
    return scale, zero, where


def _within(c: Bench, s: Scheme, kind: Any, x: gs.Tensor) -> gs.Tensor:
    """What lies between the ends that are used, where the dtype has others."""
    assert s.steps is not None
    assert s.shift is not None
    if not (s.steps > 0).all():
        raise Refused("its scale is not above 0")
    least, greatest = _ends(kind)
    lowest, highest = ((end - s.shift) * s.steps for end in (s.low, s.high))
    low, high = (c.draft.constant(np.asarray(end, np.float32), "end") for end in (lowest, highest))
    if lowest.size == 1 and (s.low != least or s.high != greatest):
        return c.op("Clip", x, *(_scalar(c, end) for end in (lowest, highest)))
    if s.low != least:
        x = c.op("Max", x, low)
    return x if s.high == greatest else c.op("Min", x, high)


def _scalar(c: Bench, number: Array) -> gs.Tensor:
    return c.draft.constant(np.asarray(number, np.float32).reshape(()), "end")
