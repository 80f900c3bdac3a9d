"""Facts of what bodies give: If, Loop and Scan."""

from __future__ import annotations

import numpy as np
from facts_case import F32, Case

BODIES: dict[str, Case] = {
    "if-agrees": Case(
        "bool k, float[b,t] x",
        "y = If (k) <then_branch = p () => (q) { q = Relu (x) }, else_branch = n () => (r) { r = "
        "Neg (x) }>",
        "[b, t]",
    ),
    "if-differs": Case(
        "bool k, float[b,t] x",
        "y = If (k) <then_branch = p () => (q) { q = Relu (x) }, else_branch = n () => (r) { r = "
        "Transpose (x) }>",
    ),
    "if-unknown-sizes": Case(
        "bool k, float[b,t] x, float[b,t] z",
        "y = If (k) <then_branch = p () => (q) { q = NonZero (x) }, else_branch = n () => (r) { "
        "r = NonZero (z) }> "
        "a = If (k) <then_branch = p () => (q) { q = NonZero (z) }, else_branch = n () => (r) { "
        "r = NonZero (x) }>",
    ),
    "loop": Case(
        "float[b,t] x",
        "y, z = Loop (n, , x) <body = p (int64 i, bool k, float[1] v) => (o, u, s) "
        "{ o = Identity (k) u = Concat <axis = 0> (v, v) s = Size (v) }>",
        constants={"n": np.int64(2)},
    ),
    "scan": Case(
        "float[b,t] x",
        "y, z = Scan <num_scan_inputs = 1, body = p (float[t] v, float[t] r) => (u, s) "
        "{ u = Add (v, r) s = Concat <axis = 0> (r, r) }> (o, x)",
        constants={"o": np.zeros(1, F32)},
        at=tuple({"b": b, "t": 1} for b in (1, 2, 5)),
    ),
}
