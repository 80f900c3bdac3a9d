"""Quantisation as PyTorch's graphs have it (`quantized_decomposed`), and torchao's.

Whole numbers, their scale and their zero point are tensors of their own there: what quantises is a
QuantizeLinear, what reads it a DequantizeLinear, and arithmetic where ONNX has neither.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import onnx
import onnx_graphsurgeon as gs

from surgeon.arguments import Arguments, bind
from surgeon.builders.aten_quantized.layout import Layout, layout_of
from surgeon.builders.bench import TYPE, Bench
from surgeon.match import Match
from surgeon.rewrite import Draft, Refused

# PyTorch's numbers of dtypes, as ONNX numbers them; whole numbers of fewer bits lie in bytes.
_KINDS: Mapping[int, int] = {
    0: TYPE.UINT8,
    1: TYPE.INT8,
    2: TYPE.INT16,
    3: TYPE.INT32,
    27: TYPE.UINT16,
    **dict.fromkeys(range(30, 37), TYPE.UINT8),
}
_FEWER_BITS = 30  # the first of those: of one bit
_FLOATS: Mapping[int, int] = {5: TYPE.FLOAT16, 6: TYPE.FLOAT, 7: TYPE.DOUBLE}
_PAIRS, _PER_AXIS, _PER_BLOCK = 10, 13, 21  # the opsets from which ONNX's operators have it
_BYTES = frozenset({TYPE.INT8, TYPE.UINT8})
_WORDS = frozenset({TYPE.INT16, TYPE.UINT16})
_WIDE = 21  # the opset from which they have 16 bits
_CLIPS_DOUBLES = 12  # the opset from which onnxruntime has Clip of doubles
# What adds the zero point before it rounds.
_BEFORE = frozenset({"quantize_per_token", "quantize_per_channel_group"})


def quantized_apart(draft: Draft, match: Match, arithmetic: bool = False) -> gs.Tensor:
    """`quantize_per_tensor` and its like, which give whole numbers.

    Args:
        draft: Where the nodes go.
        match: The operator.
        arithmetic: Spell it in floats, as PyTorch computes it: by the reciprocal of the scale.
    """
    c = Bench(draft)
    args = _bound(c, match)
    x, kind = args.tensor("self"), _kind_of(args, "dtype", "output_dtype")
    if c.dtype(x) != TYPE.FLOAT:
        raise Refused("only single precision is quantised here")
    layout = layout_of(c, args)
    low, high = _ends(args, kind)
    before = match.root.op in _BEFORE
    if arithmetic:
        return _steps(c, layout, low, high, kind, before=before)
    if c.facts.array(x) is not None:
        raise Refused("it is of a constant, which arithmetic leaves as whole numbers")
    _has_operators(c, layout, kind)
    shift = None if layout.zero is None else c.facts.array(layout.zero)
    if before and (layout.zero is not None and (shift is None or shift.any())):
        raise Refused("its zero point is added before it rounds")
    x = _within(c, layout, low, high, kind)
    scale, zero, where = layout.operands(c, kind)
    made: gs.Tensor = c.op("QuantizeLinear", x, scale, zero, **where)
    return made


def dequantized_apart(draft: Draft, match: Match) -> gs.Tensor:
    """`dequantize_per_tensor` and its like, which read whole numbers."""
    c = Bench(draft)
    args = _bound(c, match)
    x, kind = args.tensor("self"), _kind_of(args, "dtype", "input_dtype")
    if c.dtype(x) != kind:
        raise Refused("what it reads is not in the dtype that it names")
    name = "out_dtype" if args.schema.takes("out_dtype") else "output_dtype"
    told = args.value(name)
    out = TYPE.FLOAT if told is None else _FLOATS.get(int(told))
    if out != TYPE.FLOAT:
        raise Refused("only single precision is given out here")
    layout = layout_of(c, args)
    try:
        _has_operators(c, layout, kind, reads=True)
        scale, zero, where = layout.operands(c, kind)
    except Refused:
        return _values(c, layout, kind)
    made: gs.Tensor = c.op("DequantizeLinear", x, scale, zero, **where)
    return made


def _bound(c: Bench, match: Match) -> Arguments:
    args = bind(match.root, c.facts)
    if not any(map(args.schema.takes, ("quant_min", "block_size"))):
        raise Refused("it is the operator of quantised tensors")
    return args


def _kind_of(args: Arguments, *names: str) -> int:
    name = next(name for name in names if args.schema.takes(name))
    number = int(args.value(name))
    if number not in _KINDS:
        raise Refused(f"PyTorch's dtype {number} is none of whole numbers that ONNX has")
    return _KINDS[number]


def _ends(args: Arguments, kind: int) -> tuple[int, int]:
    """The least and the greatest level."""
    most = np.iinfo(onnx.helper.tensor_dtype_to_np_dtype(kind))
    low, high = (args.value(name) for name in ("quant_min", "quant_max"))
    greatest = int(most.max)
    if args.schema.takes("output_dtype") and args.schema.takes("block_size"):
        bits = int(args.value("output_dtype")) - _FEWER_BITS + 1
        greatest = 2**bits - 1 if bits > 0 else greatest
    found = int(most.min) if low is None else int(low), greatest if high is None else int(high)
    if found[0] < most.min or found[1] > most.max:
        raise Refused(f"its levels go from {found[0]} to {found[1]}, which its dtype does not hold")
    return found


def _has_operators(c: Bench, layout: Layout, kind: int, *, reads: bool = False) -> None:
    """Refuses what QuantizeLinear or DequantizeLinear are not of at the model's opset."""
    since = _PAIRS if layout.axis is None else _PER_AXIS
    if layout.block:
        since = _PER_BLOCK
    if layout.broadcast:
        raise Refused("its scales stand for each row, and are computed")
    if kind in _WORDS:
        since = max(since, _WIDE)
    if c.opset < since:
        raise Refused(f"it needs opset {since}, and the model has {c.opset}")
    if kind in _BYTES or kind in _WORDS:
        return
    if not reads or layout.block or not layout.is_symmetric(c):
        raise Refused("it is of 32 bits")


def _within(c: Bench, layout: Layout, low: int, high: int, kind: int) -> gs.Tensor:
    """What lies between the levels that are used, where the dtype has others."""
    most = np.iinfo(onnx.helper.tensor_dtype_to_np_dtype(kind))
    if (low, high) == (most.min, most.max):
        return layout.x
    steps = c.facts.array(layout.scale)
    shift = np.zeros(1) if layout.zero is None else c.facts.array(layout.zero)
    if steps is None or shift is None or layout.block or not (steps > 0).all():
        raise Refused("where its levels end is known at run time only")
    shape = layout.shape_beside(c)
    ends = [
        np.asarray((end - shift) * steps, np.float32).reshape(shape or ()) for end in (low, high)
    ]
    least, greatest = (c.draft.constant(end, "end") for end in ends)
    if not shape:
        made: gs.Tensor = c.op("Clip", layout.x, least, greatest)
        return made
    return c.op("Min", c.op("Max", layout.x, least), greatest)


def _steps(c: Bench, layout: Layout, low: int, high: int, kind: int, *, before: bool) -> gs.Tensor:
    """Times the reciprocal of the scale, rounded, and kept between the ends."""
    x, back = layout.apart(c, layout.x)
    scale, zero = layout.numbers(c)
    dtype = c.dtype(scale)
    inverse = c.op("Reciprocal", scale)
    if layout.axis is None and not layout.broadcast:  # a number of Python's, in double precision
        inverse, dtype = c.cast(inverse, TYPE.FLOAT), int(TYPE.FLOAT)
    level = c.op("Mul", c.cast(x, dtype), inverse)
    shift = None if zero is None else c.cast(zero, dtype)
    if shift is not None and before:
        level = c.op("Add", level, shift)
    level = c.op("Round", level)
    if shift is not None and not before:
        level = c.op("Add", level, shift)
    if c.opset < _CLIPS_DOUBLES:
        level, dtype = c.cast(level, TYPE.FLOAT), int(TYPE.FLOAT)
    level = c.op("Min", c.op("Max", level, c.number(low, dtype)), c.number(high, dtype))
    return back(c.op("Cast", level, to=kind))


def _values(c: Bench, layout: Layout, kind: int) -> gs.Tensor:
    """The levels from the zero point on, times the scale; of blocks, as rows of their own."""
    x, back = layout.apart(c, layout.x)
    rows = layout.as_rows(c, x)
    if rows is not None and rows.holds_zero(c, kind) and kind in _BYTES and c.opset >= _PER_AXIS:
        scale, zero, where = rows.operands(c, kind)
        return back(c.op("DequantizeLinear", x, scale, zero, **where))
    scale, zero = layout.numbers(c)
    if zero is None:
        level = c.op("Cast", x, to=TYPE.FLOAT)
    elif kind == TYPE.INT32:  # which floats do not hold
        level = c.op("Sub", c.op("Cast", x, to=TYPE.INT64), c.cast(zero, TYPE.INT64))
        level = c.op("Cast", level, to=TYPE.FLOAT)
    else:
        level = c.op("Sub", c.op("Cast", x, to=TYPE.FLOAT), c.cast(zero, TYPE.FLOAT))
    return back(c.op("Mul", level, c.cast(scale, TYPE.FLOAT)))


TABLE: Mapping[str, Callable[..., Any]] = {
    "quantized_apart": quantized_apart,
    "dequantized_apart": dequantized_apart,
}
