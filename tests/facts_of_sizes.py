"""Facts of sizes as values: tensors made of shapes, and the arithmetic on them."""

from __future__ import annotations

import numpy as np
from facts_case import ALL, F32, MAX, NEW, X1, Case, ints

SIZES: dict[str, Case] = {
    "shape": Case(X1, "y = Shape (x)", "[3]", "[b, c, t]"),
    "shape-part": Case(X1, "y = Shape <start = -2, end = 3> (x)", "[2]", "[c, t]", (15, 21)),
    "shape-part-none": Case(X1, "y = Shape <start = 2, end = 1> (x)", "[0]", None, (15, 21)),
    "shape-end": Case(X1, "y = Shape <end = -1> (x)", "[2]", "[b, c]", (15, 21)),
    "size": Case(X1, "y = Size (x)", "[]", "b*c*t"),
    "constant-of-shape": Case(X1, "s = Shape (x) y = ConstantOfShape (s)", "[b, c, t]", None, ALL),
    "constant-of-shape-value": Case(
        X1, "s = Shape (x) y = ConstantOfShape <value = int64[1] {7}> (s)", "[b, c, t]", None, ALL
    ),
    "constant-of-shape-small": Case(
        X1,
        "y = ConstantOfShape <value = int32[1] {7}> (s)",
        "[2]",
        "[7, 7]",
        ALL,
        {"s": ints(2)},
        least=1,
    ),
    "constant-of-nothing": Case(
        X1, "y = ConstantOfShape (s)", "[]", None, ALL, {"s": np.zeros(0, np.int64)}
    ),
    "one-hot-of-sizes": Case(
        X1,
        "s = Shape (x) q = Gather (s, i) v = Concat <axis = 0> (o, q) y = OneHot (p, d, v)",
        "[1, 4]",
        "[[1, 1, t, 1]]",
        (11, 17),
        {"i": ints(2), "o": ints(1), "p": ints(-2), "d": np.int64(4)},
    ),
    "one-hot-along-the-first": Case(
        X1,
        "y = OneHot <axis = 0> (p, d, v)",
        "[3, 2]",
        "[[7, 5], [5, 5], [5, 5]]",
        (11, 17),
        {"p": ints(0, 4), "d": np.int64(3), "v": ints(5, 7)},
        least=1,
    ),
    "range": Case(
        X1,
        "s = Shape (x) q = Gather (s, i) y = Range (o, q, p)",
        "[t]",
        None,
        (11, 17),
        {"i": np.int64(2), "o": np.int64(0), "p": np.int64(1)},
    ),
    "range-steps": Case(
        X1,
        "s = Shape (x) q = Gather (s, i) y = Range (o, q, p)",
        None,
        None,
        (11, 17),
        {"i": np.int64(2), "o": np.int64(3), "p": np.int64(2)},
    ),
    "range-down": Case(
        X1,
        "s = Shape (x) q = Gather (s, i) y = Range (q, o, p)",
        None,
        None,
        (11, 17),
        {"i": np.int64(2), "o": np.int64(2), "p": np.int64(-3)},
    ),
    "range-float": Case(
        "float l",
        "y = Range (o, l, p)",
        None,
        None,
        (11, 17),
        {"o": F32(0), "p": F32(0.5)},
        least=1,
    ),
    "range-of-whole-floats": Case(
        X1, "y = Range (o, l, p)", "[6]", None, (11, 17), {"o": F32(0), "l": F32(6), "p": F32(1)}
    ),
    "range-of-fractions": Case(
        X1,
        "y = Range (o, l, p)",
        "[9]",
        None,
        (11, 17),
        {"o": F32(0.05), "l": F32(0.9), "p": F32(0.1)},
    ),
    "range-that-rounding-ends": Case(
        X1,
        "y = Range (o, l, p)",
        None,
        None,
        (11, 17),
        {"o": F32(0.1), "l": F32(0.4), "p": F32(0.1)},  # 3 in real numbers, 4 in float
    ),
    "range-small": Case(
        X1,
        "y = Range (o, e, p)",
        "[3]",
        "[1, 3, 5]",
        (11, 17),
        {"o": np.int64(1), "e": np.int64(6), "p": np.int64(2)},
        least=1,
    ),
    "arithmetic": Case(
        X1,
        "s = Shape (x) a = Mul (s, two) d = Add (a, three) e = Div (d, two) f = Sub (e, s) q = "
        "Mod (f, three) "
        "m = Max (s, three) n = Min (m, a) o = Neg (n) p = Abs (o) r = Concat <axis = 0> (q, p, e) "
        "u = ReduceProd <keepdims = 0> (s) v = ReduceMax (r) w0 = ReduceMin (r) y = Add (u, v)",
        constants={"two": ints(2), "three": ints(3)},
        opsets=(13, 17),
    ),
    "divide-little-below-zero": Case(
        X1,
        "s = Shape (x) a = Sub (s, four) y = Div (a, five)",
        "[3]",
        "[max(0, b - 4)//5, max(0, c - 4)//5, max(0, t - 4)//5]",
        (13, 17),
        {"four": ints(4), "five": ints(5)},
        at=({"b": 0, "c": 1, "t": 3}, {"b": 4, "c": 8, "t": 9}, {"b": 2, "c": 14, "t": 10}),
    ),
    "divide-towards-zero": Case(
        X1,
        "s = Shape (x) a = Sub (s, four) e = Div (a, three) f = Mod (a, three) q = Mod (a, "
        "minus) y = Div (a, minus)",
        constants={"four": ints(4), "three": ints(3), "minus": ints(-3)},
    ),
    "divide-symbols": Case(
        X1,
        "s = Shape (x) a = Gather (s, i) e = Gather (s, j) f = Mul (a, e) g1 = Div (f, e) q = "
        "Div (a, e) y = Mod (a, e)",
        constants={"i": ints(2), "j": ints(1)},
    ),
    "constants-negative": Case(
        X1,
        "e = Div (a, three) f = Mod (a, three) y = Mod (a, minus)",
        None,
        None,
        NEW,
        {"a": ints(-7, 7, -6, 0, 2), "three": ints(3), "minus": ints(-3)},
        least=1,
    ),
    "guards": Case(
        X1,
        "s = Shape (x) m = Equal (s, minus) n = Less (s, zero) o = GreaterOrEqual (s, zero) q = "
        "Equal (s, s) "
        "a = And (o, q) c0 = Or (m, n) d = Xor (m, q) e = Not (m) y = Where (m, ones, s)",
        value="[b, c, t]",
        constants={"minus": ints(-1), "zero": ints(0), "ones": ints(1, 1, 1)},
    ),
    "expand-guard": Case(
        "float[b,1,t] x",
        "s = ConstantOfShape <value = int64[1] {1}> (three) m = Mul (s, minus) e = Equal (k, m) "
        "q = Where (e, s, k) y = Expand (x, q)",
        "[b, 4, t]",
        constants={"three": ints(3), "minus": ints(-1), "k": ints(1, 4, 1)},
    ),
    "undecided-where": Case(
        X1,
        "s = Shape (x) m = Equal (s, four) y = Where (m, one, s)",
        constants={"four": ints(4), "one": ints(1)},
    ),
    "shape-of-everything": Case(
        X1,
        "s = Shape (x) a = Unsqueeze (s, z) d = Squeeze (a, z) e = Reshape (d, r) f = Transpose "
        "<perm = [1, 0]> (e) "
        "g1 = Flatten <axis = 0> (f) i = Slice (d, two, mm, z, minus) j, k = Split (d, parts) l "
        "= Tile (j, two) "
        "o = Expand (j, three) p = Cast <to = 6> (d) q = Cast <to = 7> (p) u = Cast <to = 1> (q) "
        "y = Concat <axis = 0> (i, j, k, l, o)",
        constants={
            "z": ints(0),
            "r": ints(1, -1),
            "two": ints(2),
            "mm": ints(-MAX),
            "minus": ints(-1),
            "parts": ints(1, 2),
            "three": ints(3),
        },
        opsets=(13, 17),
    ),
    "even-split-of-values": Case(
        "float[b,c,t,n] x", "s = Shape (x) a, y = Split (s)", "[2]", "[t, n]", (13, 17)
    ),
    "gather-values": Case(
        X1,
        "s = Shape (x) y = Gather (s, i)",
        "[2, 2]",
        "[[t, t], [b, c]]",
        constants={"i": np.array([[-1, 2], [0, -2]])},
    ),
    "wrap-around": Case(X1, "y = Mul (a, a)", None, None, NEW, {"a": ints(2**62)}, least=1),
    "unsigned": Case(
        X1,
        "y = Sub (a, e)",
        None,
        None,
        (14, 17),
        {"a": np.array([1], np.uint64), "e": np.array([2], np.uint64)},
        least=1,
    ),
    "count-below-opset-11": Case(
        X1,
        "s = Shape (x) q = ConstantOfShape <value = int64[1] {1}> (s) f = Flatten <axis = 1> (q) "
        "m = Cast <to = 9> (f) p = NonZero (m) y = Transpose <perm = [1, 0]> (p)",
        "[b*c*t, 2]",
        None,
        ALL,
    ),
    "zeros-are-not-counted": Case(
        X1, "s = Shape (x) q = ConstantOfShape (s) y = NonZero (q)", "[3, q.held]", None, ALL
    ),
    "rounded-numbers-are-not-counted": Case(
        X1,
        "s = Shape (x) q = ConstantOfShape <value = float[1] {0.5}> (s) "
        "r = Cast <to = 7> (q) y = NonZero (r)",
        "[3, r.held]",
        None,
        ALL,
    ),
    "one-hot-of-a-size": Case(
        X1,
        "s = Shape (x) q = ReduceProd <keepdims = 0> (s) a = ConstantOfShape <value = int64[1] {1}>"
        " (s) y = OneHot <axis = 1> (a, q, z)",
        "[b, b*c*t, c, t]",
        None,
        ALL,
        {"z": ints(0, 1)},
    ),
    "narrowing-cast": Case(
        X1, "y = Cast <to = 3> (a)", "[2]", None, NEW, {"a": ints(300, -1)}, least=1
    ),
    "bool-casts": Case(
        X1,
        "a = Cast <to = 9> (k) y = Cast <to = 7> (a)",
        "[3]",
        "[0, 1, 1]",
        NEW,
        {"k": ints(0, 5, -1)},
        least=1,
    ),
    "float-to-int": Case(
        X1, "y = Cast <to = 7> (k)", "[2]", None, NEW, {"k": np.array([1.7, -1.7], F32)}, least=1
    ),
    "view-of-floats": Case(
        X1,
        "a = Slice (k, o, t0) y = Concat <axis = 0> (a, k)",
        "[5]",
        "[1.5, 2.5, 1.5, 2.5, 3.5]",
        NEW,
        {"k": np.array([1.5, 2.5, 3.5], F32), "o": ints(0), "t0": ints(2)},
        least=1,
    ),
}
