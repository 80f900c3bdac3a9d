"""Shifts of signed integers as PyTorch's exporter writes them, rounded as PyTorch does."""

from __future__ import annotations

import onnx_graphsurgeon as gs

from surgeon.builders.bench import NARROW, TYPE, Bench
from surgeon.match import Match
from surgeon.rewrite import Draft


def shift_rounded_down(draft: Draft, match: Match) -> gs.Tensor:
    """y = x / 2 ** k of integers, which is cut off, as one that is rounded down.

    The exporter writes so what is `x >> k` (`__rshift_` of torch/onnx/symbolic_opset9.py).
    """
    c = Bench(draft)
    x, by = match.root.inputs
    dtype = c.dtype(x)
    wide = TYPE.INT32 if dtype in NARROW else dtype  # of fewer bits runtimes compare nothing
    number, power = c.cast(x, wide), c.cast(by, wide)
    quotient = c.op("Div", number, power)
    above = c.op("Greater", c.op("Mul", quotient, power), number)
    return c.cast(c.op("Sub", quotient, c.cast(above, wide)), dtype)
