"""Calls that widen: pads of every mode."""

from __future__ import annotations

import numpy as np
from aten_shape_values import KINDS, Calls, f

PADS = Calls()
add = PADS.add

for kind in KINDS:
    add("constant_pad_nd", f(2, 3, dtype=kind), [1, 2, 0, 1], 1)
add("constant_pad_nd", f(2, 5, dtype=np.int8), [1, -2], 3)
add("constant_pad_nd", f(2, 3), [-1, 2, 0, -1], 2.5)
add("constant_pad_nd", f(2, 0), [1, 2], 0)
add("constant_pad_nd", f(2, 3), [0, 0], 0)
for mode in ("reflect", "replicate", "circular"):
    for kind in (np.float32, np.int32):
        dynamic_too = kind == np.float32 or mode == "circular"
        add("pad", f(2, 4, 5, dtype=kind), [1, 2], mode, None, still=not dynamic_too)
    add("pad", f(2, 3, 4, 5), [2, -1, 1, 1], mode, None)
    add("pad", f(2, 3, 4, 5), [-1, 3, 0, -1], mode, None)
add("pad", f(2, 3), [1, 0], "constant", 1.5)
add("reflection_pad1d", f(2, 3, 4), [1, 3])
add("reflection_pad2d", f(2, 3, 4, 5), [1, 3, 2, 0])
add("replication_pad1d", f(3, 4), [1, 6])
add("replication_pad2d", f(2, 3, 4, 5), [1, 3, 2, 0])
add("replication_pad3d", f(1, 2, 3, 4, 5), [1, 3, 2, 0, 1, 1])
