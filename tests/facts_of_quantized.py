"""Operators on quantized numbers, whose sizes are those of the ones in floats."""

from __future__ import annotations

import numpy as np
from facts_case import F32, NEW, X2, Case

BYTES = {
    "s": F32(0.1),
    "z": np.uint8(3),
    "w": np.arange(36, dtype=np.uint8).reshape(4, 3, 3, 1),
    "m": np.arange(12, dtype=np.uint8).reshape(3, 4),
}
QUANTIZED: dict[str, Case] = {
    "quantized and back": Case(
        X2,
        "q = QuantizeLinear (x, s, z) y = DequantizeLinear (q, s, z)",
        shape="[b, c, h, w]",
        opsets=NEW,
        constants=BYTES,
    ),
    "quantized without a zero point": Case(
        X2, "y = QuantizeLinear (x, s)", opsets=NEW, constants=BYTES
    ),
    "a quantized window": Case(
        "float[b,3,h,w] x",
        "q = QuantizeLinear (x, s, z) "
        "y = QLinearConv <pads = [1, 0, 1, 0], strides = [2, 1]> (q, s, z, w, s, z, s, z)",
        shape="[b, 4, (h + 1)//2, w]",
        opsets=NEW,
        constants=BYTES,
    ),
    "a window of integers": Case(
        "float[b,3,h,w] x",
        "q = QuantizeLinear (x, s, z) y = ConvInteger <pads = [1, 0, 1, 0]> (q, w, z)",
        shape="[b, 4, h, w]",
        opsets=NEW,
        constants=BYTES,
    ),
    "a quantized product": Case(
        "float[b,t,3] x",
        "q = QuantizeLinear (x, s, z) y = QLinearMatMul (q, s, z, m, s, z, s, z)",
        shape="[b, t, 4]",
        opsets=NEW,
        constants=BYTES,
    ),
    "a product of integers": Case(
        "float[b,t,3] x",
        "q = QuantizeLinear (x, s, z) y = MatMulInteger (q, m, z)",
        shape="[b, t, 4]",
        opsets=NEW,
        constants=BYTES,
    ),
}
