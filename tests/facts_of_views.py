"""Facts of the same elements in another shape: views, cuts and joins."""

from __future__ import annotations

import numpy as np
from facts_case import ALL, F32, MAX, NEW, X1, Case, ints, multiples

VIEWS: dict[str, Case] = {
    "transpose-default": Case(X1, "y = Transpose (x)", "[t, c, b]", None, ALL),
    "transpose": Case(X1, "y = Transpose <perm = [0, 2, 1]> (x)", "[b, t, c]", None, ALL),
    "reshape-zero-and-rest": Case(
        "float[b,4,t] x", "y = Reshape (x, s)", "[b, 2*t, 2]", None, ALL, {"s": ints(0, -1, 2)}
    ),
    "reshape-rest-of-all": Case(X1, "y = Reshape (x, s)", "[b*c*t]", None, ALL, {"s": ints(-1)}),
    "reshape-allowzero": Case(
        "float[0,c] x",
        "y = Reshape <allowzero = 1> (x, s)",
        "[5, 0]",
        None,
        (14, 17),
        {"s": ints(5, 0)},
    ),
    "reshape-zero-of-nothing": Case(
        "float[0,3] x", "y = Reshape (x, s)", "[0, 3]", None, NEW, {"s": ints(0, 3)}, least=1
    ),
    "reshape-by-shape": Case(
        "float[b,c,t] x, float[b,n] z",
        "s = Shape (z) q = Gather (s, i) m = Concat <axis = 0> (q, r) y = Reshape (x, m)",
        "[b, c*t]",
        None,
        NEW,
        {"i": ints(0), "r": ints(-1)},
    ),
    "reshape-unknown-target": Case(
        "float[6] x, int64[2] s", "y = Reshape (x, s)", None, at=({},), least=0, frozen=False
    ),
    "flatten": Case(X1, "y = Flatten <axis = -1> (x)", "[b*c, t]", None, (11, 13, 21)),
    "flatten-0": Case(X1, "y = Flatten <axis = 0> (x)", "[1, b*c*t]", None, ALL),
    "flatten-all": Case(X1, "y = Flatten <axis = 3> (x)", "[b*c*t, 1]", None, ALL),
    "flatten-scalar": Case("float x", "y = Flatten <axis = 0> (x)", "[1, 1]", None, NEW, least=1),
    "squeeze": Case(
        "float[b,1,t,1] x", "y = Squeeze (x, a)", "[b, t]", None, NEW, {"a": ints(1, -1)}
    ),
    "squeeze-attribute": Case(
        "float[b,1,t,1] x", "y = Squeeze <axes = [1, 3]> (x)", "[b, t]", None, (9, 11)
    ),
    "squeeze-all-dynamic": Case(
        "float[b,1,t] x",
        "y = Squeeze (x)",
        None,
        at=({"b": 1, "t": 3}, {"b": 2, "t": 3}, {"b": 2, "t": 1}),
    ),
    "squeeze-all": Case("float[2,1,3,1] x", "y = Squeeze (x)", "[2, 3]", least=1),
    # none by ONNX, and all that are 1 by onnxruntime
    "squeeze-of-no-axes": Case(
        "float[b,1,t] x", "y = Squeeze (x, a)", None, None, NEW, {"a": ints()}, least=0
    ),
    "squeeze-of-no-axes-and-no-ones": Case(
        "float[2,3] x", "y = Squeeze (x, a)", "[2, 3]", None, NEW, {"a": ints()}, least=1
    ),
    "squeeze-dynamic-axis": Case(
        "float[b,c,t] x",
        "y = Squeeze (x, a)",
        "[b, t]",
        None,
        NEW,
        {"a": ints(1)},
        ({"b": 2, "c": 1, "t": 3}, {"b": 1, "c": 1, "t": 1}, {"b": 3, "c": 1, "t": 5}),
    ),
    "unsqueeze": Case(
        "float[b,t] x", "y = Unsqueeze (x, a)", "[1, b, t, 1]", None, NEW, {"a": ints(-1, 0)}
    ),
    "unsqueeze-attribute": Case(
        "float[b,t] x", "y = Unsqueeze <axes = [0, 3]> (x)", "[1, b, t, 1]", None, (9, 11)
    ),
    "space-to-depth": Case(
        "float[b,c,h,w] x",
        "y = SpaceToDepth <blocksize = 2> (x)",
        "[b, 4*c, h//2, w//2]",
        None,
        (11, 13),
        at=multiples(2, "b", "c", "h", "w"),
    ),
    "depth-to-space": Case(
        "float[b,8,h,w] x",
        "y = DepthToSpace <blocksize = 2> (x)",
        "[b, 2, 2*h, 2*w]",
        None,
        (11, 13),
    ),
    "concat": Case(
        "float[b,c,t] x, float[b,n,t] z",
        "y = Concat <axis = -2> (x, z, x)",
        "[b, 2*c + n, t]",
        None,
        (11, 17),
    ),
    "concat-number-decides": Case(
        "float[b,c] x, float[3,c] z",
        "y = Concat <axis = 1> (x, z)",
        "[3, 2*c]",
        None,
        ALL,
        at=({"b": 3, "c": 2}, {"b": 3, "c": 1}, {"b": 3, "c": 5}),
    ),
    "split-sizes": Case(
        "float[b,7,t] x",
        "a, y = Split <axis = 1> (x, s)",
        "[b, 5, t]",
        None,
        NEW,
        {"s": ints(2, 5)},
    ),
    "split-attribute": Case(
        "float[b,7,t] x", "a, y = Split <axis = 1, split = [2, 5]> (x)", "[b, 5, t]", None, (9, 11)
    ),
    "split-equal": Case(
        "float[b,c,t] x",
        "a, d, y = Split <axis = -1> (x)",
        "[b, c, -2*((t + 2)//3) + t]",
        None,
        (11, 13),
        at=multiples(3, "b", "c", "t"),
    ),
    "split-num-outputs": Case(
        "float[b,7] x", "a, d, y = Split <axis = 1, num_outputs = 3> (x)", "[b, 1]", None, (18, 21)
    ),
    "split-num-outputs-dynamic": Case(
        "float[b,t] x",
        "a, y = Split <axis = 1, num_outputs = 2> (x)",
        None,
        None,
        (18, 21),
        at=tuple({"b": 2, "t": t} for t in (2, 3, 4, 5, 8, 9)),
    ),
    "slice": Case(
        X1,
        "y = Slice (x, s, e, a)",
        "[b, c, max(0, max(0, t - 2) - min(1, t))]",
        None,
        NEW,
        {"s": ints(1), "e": ints(-2), "a": ints(-1)},
    ),
    "slice-attributes": Case(
        X1, "y = Slice <starts = [1, 0], ends = [-1, 2], axes = [2, 0]> (x)", None, None, (9,)
    ),
    "slice-no-axes": Case(
        X1, "y = Slice (x, s, e)", None, None, (10, 13), {"s": ints(0, 1), "e": ints(1, MAX)}
    ),
    "slice-to-the-end": Case(
        X1, "y = Slice (x, s, e, a)", None, None, NEW, {"s": ints(2), "e": ints(MAX), "a": ints(2)}
    ),
    "slice-int32-end": Case(
        X1,
        "y = Slice (x, s, e, a)",
        None,
        None,
        NEW,
        {
            "s": np.array([2], np.int32),
            "e": np.array([2**31 - 1], np.int32),
            "a": np.array([2], np.int32),
        },
    ),
    "slice-last": Case(
        X1, "y = Slice (x, s, e, a)", None, None, NEW, {"s": ints(-3), "e": ints(MAX), "a": ints(2)}
    ),
    "slice-step": Case(
        X1,
        "y = Slice (x, s, e, a, p)",
        None,
        None,
        NEW,
        {"s": ints(1), "e": ints(MAX), "a": ints(2), "p": ints(2)},
    ),
    "slice-steps": Case(
        X1,
        "y = Slice (x, s, e, a, p)",
        None,
        None,
        NEW,
        {"s": ints(1, -5), "e": ints(-1, MAX), "a": ints(2, 0), "p": ints(3, 2)},
    ),
    "slice-backwards": Case(
        X1,
        "y = Slice (x, s, e, a, p)",
        None,
        None,
        NEW,
        {"s": ints(-1), "e": ints(-MAX), "a": ints(2), "p": ints(-1)},
    ),
    "slice-backwards-two": Case(
        X1,
        "y = Slice (x, s, e, a, p)",
        None,
        None,
        NEW,
        {"s": ints(4), "e": ints(0), "a": ints(2), "p": ints(-2)},
    ),
    "slice-empty": Case(
        X1, "y = Slice (x, s, e, a)", None, None, NEW, {"s": ints(3), "e": ints(1), "a": ints(2)}
    ),
    "slice-computed": Case(
        "float[b,t] x, float[n] z",
        "s = Shape (z) y = Slice (x, o, s, a)",
        "[b, min(n, t)]",
        None,
        NEW,
        {"o": ints(0), "a": ints(1)},
    ),
    "slice-computed-half": Case(
        X1,
        "s = Shape (x) q = Slice (s, two, three) h = Div (q, two) y = Slice (x, o, h, two)",
        "[b, c, t//2]",
        None,
        NEW,
        {"o": ints(0), "two": ints(2), "three": ints(3)},
    ),
    "gather": Case(
        "float[b,c,t] x, int64[n,1] i",
        "y = Gather <axis = -2> (x, i)",
        "[b, n, 1, t]",
        None,
        ALL,
        at=(
            {"b": 1, "c": 3, "t": 2, "n": 4},
            {"b": 2, "c": 5, "t": 1, "n": 1},
            {"b": 3, "c": 3, "t": 4, "n": 2},
        ),
    ),
    "gather-number": Case(
        X1, "y = Gather <axis = 1> (x, i)", "[b, t]", None, ALL, {"i": np.int64(0)}
    ),
    "expand": Case(
        "float[b,1,t] x, float[n] z",
        "s = Shape (z) q = Concat <axis = 0> (s, o) y = Expand (x, q)",
        "[b, n, t]",
        None,
        NEW,
        {"o": ints(1)},
    ),
    "expand-number": Case(
        "float[b,1] x", "y = Expand (x, s)", "[2, b, 4]", None, ALL, {"s": ints(2, 1, 4)}
    ),
    "expand-minus-one": Case(
        "float[b,1] x",
        "y = Expand (x, s)",
        None,
        None,
        NEW,
        {"s": ints(-1, 4)},
        least=0,
        frozen=False,
    ),
    "tile": Case("float[b,t] x", "y = Tile (x, r)", "[2*b, 3*t]", None, NEW, {"r": ints(2, 3)}),
    "tile-computed": Case(
        "float[b,t] x", "s = Shape (x) y = Tile (x, s)", "[b**2, t**2]", None, NEW
    ),
    "pad": Case(
        X1, "y = Pad (x, p)", "[b, c + 3, t - 1]", None, NEW, {"p": ints(0, 1, 0, 0, 2, -1)}
    ),
    "pad-attributes": Case(
        X1, "y = Pad <pads = [0, 1, 2, 0, 0, 1], value = 1.5> (x)", "[b, c + 1, t + 3]", None, (9,)
    ),
    "pad-axes": Case(
        X1,
        "y = Pad (x, p, v, a)",
        "[b + 2, c, t + 4]",
        None,
        (18, 21),
        {"p": ints(1, 3, 1, 1), "v": F32(0), "a": ints(0, -1)},
    ),
    "pad-unknown": Case("float[b,t] x, int64[4] p", "y = Pad (x, p)", None, None, NEW),
}
