"""Facts of what is computed: products, elementwise operators, reductions."""

from __future__ import annotations

import numpy as np
from facts_case import ALL, F32, NEW, X1, Case, ints, weights

ARITHMETIC: dict[str, Case] = {
    # ------------------------------------------------------------------------------ products
    "matmul": Case("float[b,n,4] x, float[4,m] z", "y = MatMul (x, z)", "[b, n, m]", None, ALL),
    "matmul-batches": Case(
        "float[b,1,n,4] x, float[c,4,m] z", "y = MatMul (x, z)", "[b, c, n, m]", None, ALL
    ),
    "matmul-vector-left": Case("float[4] x, float[b,4,m] z", "y = MatMul (x, z)", "[b, m]"),
    "matmul-vector-right": Case("float[b,n,4] x, float[4] z", "y = MatMul (x, z)", "[b, n]"),
    "matmul-vectors": Case("float[n] x, float[n] z", "y = MatMul (x, z)", "[]"),
    "matmul-unknown-batches": Case(
        "float[b,n,4] x, float[c,4,m] z",
        "y = MatMul (x, z)",
        None,
        at=(
            {"b": 1, "c": 3, "n": 2, "m": 5},
            {"b": 4, "c": 1, "n": 2, "m": 5},
            {"b": 2, "c": 2, "n": 1, "m": 1},
        ),
    ),
    "gemm": Case(
        "float[4,n] x, float[m,4] z",
        "y = Gemm <transA = 1, transB = 1> (x, z, c)",
        "[n, m]",
        None,
        ALL,
        {"c": F32(1.5)},
    ),
    # --------------------------------------------------------------------------- elementwise
    "add-symbol-and-one": Case("float[b,c,t] x, float[c,1] z", "y = Add (x, z)", "[b, c, t]"),
    "add-symbol-and-number": Case(
        "float[b,c] x, float[5] z",
        "y = Mul (x, z)",
        "[b, 5]",
        at=({"b": 2, "c": 1}, {"b": 3, "c": 5}, {"b": 1, "c": 5}),
    ),
    "add-two-symbols": Case(
        "float[b,c] x, float[n] z",
        "y = Sub (x, z)",
        None,
        at=({"b": 2, "c": 1, "n": 4}, {"b": 3, "c": 5, "n": 5}, {"b": 1, "c": 5, "n": 1}),
    ),
    "add-nothing": Case("float[0,t] x, float[1,t] z", "y = Add (x, z)", "[0, t]"),
    "sum-of-three": Case("float[b,1] x, float[1,c] z, float[1] q", "y = Sum (x, z, q)", "[b, c]"),
    "min-max-mean": Case(
        X1, "a = Max (x, k) d = Min (a, x) y = Mean (d, x, a)", "[b, c, t]", constants={"k": F32(0)}
    ),
    "where": Case("bool[b,1] k, float[1,t] x, float[b,t] z", "y = Where (k, x, z)", "[b, t]"),
    "prelu": Case(
        "float[b,3,t] x", "y = PRelu (x, s)", "[b, 3, t]", constants={"s": weights(3, 1)}
    ),
    "compare": Case(
        "float[b,t] x, float[t] z", "a = Less (x, z) q = Not (a) y = Or (q, a)", "[b, t]"
    ),
    "clip": Case(X1, "y = Clip (x, lo, hi)", "[b, c, t]", constants={"lo": F32(0), "hi": F32(1)}),
    "clip-attributes": Case(X1, "y = Clip <min = 0.0, max = 6.0> (x)", "[b, c, t]", None, (9,)),
    "pow": Case("float[b,t] x, int64[t] z", "y = Pow (x, z)", "[b, t]", None, (13, 17)),
    "cast-like": Case("float[b] x, int32[1] z", "y = CastLike (x, z)", "[b]", None, (15, 21)),
    "batch-norm": Case(
        "float[b,2,t] x",
        "y = BatchNormalization (x, s, s, s, s)",
        "[b, 2, t]",
        None,
        (9, 15),
        {"s": np.ones(2, F32)},
    ),
    "layer-norm-statistics": Case(
        "float16[b,4] x",
        "a, m, y = LayerNormalization (x, s)",
        None,
        None,
        (17,),
        {"s": np.ones(4, np.float16)},
    ),
    "dropout-mask": Case(X1, "z, y = Dropout (x)", None, None, (7, 9, 10, 12, 13)),
    "signs": Case(
        X1,
        "a = Relu (x) e = Sigmoid (x) f = Transpose (a) g1 = Concat <axis = 0> (a, e) "
        "i = Sqrt (e) j = MaxPool <kernel_shape = [2], pads = [1, 1]> (a) k = Abs (x) "
        "l = Add (k, x) m = Mul (e, x) n = Sub (e, k) o = Concat <axis = 1> (e, x) p = Max (e, x) "
        "q = Min (e, x) r = ReduceSum (x) s = HardSigmoid (x) y = Add (x, k)",
    ),
    "softmax-last": Case(
        X1, "a = Softmax (x) y = Transpose <perm = [2, 0, 1]> (a)", "[t, b, c]", None, (13, 17)
    ),
    "softmax-views": Case(
        "float[b,4] x",
        "a = Softmax <axis = 1> (x) r = Reshape (a, s) q = Unsqueeze (r, k) y = Squeeze (q, k)",
        "[b, 2, 2]",
        constants={"s": ints(-1, 2, 2), "k": ints(0)},
    ),
    "softmax-kept": Case(
        "float[b,4,c] x",
        "a = Softmax <axis = 1> (x) r = Reshape (a, s) y = Unsqueeze (r, k)",
        "[1, b, 4, 1, c]",
        constants={"s": ints(0, 4, 1, -1), "k": ints(0)},
    ),
    "softmax-old-axis": Case(
        "float[b,c,t] x", "y = Softmax <axis = 1> (x)", "[b, c, t]", None, (9, 11)
    ),
    "softmax-old-last": Case(
        "float[b,c,t] x", "y = Softmax <axis = 2> (x)", "[b, c, t]", None, (9, 11)
    ),
    # --------------------------------------------------------------------------------- reduce
    "reduce-sum": Case(X1, "y = ReduceSum (x, a)", "[b, 1, t]", None, NEW, {"a": ints(-2)}),
    "reduce-sum-drop": Case(
        X1, "y = ReduceSum <keepdims = 0> (x, a)", "[c]", None, NEW, {"a": ints(0, -1)}
    ),
    "reduce-sum-noop": Case(
        X1, "y = ReduceSum <noop_with_empty_axes = 1> (x)", "[b, c, t]", None, NEW
    ),
    "reduce-sum-all": Case(X1, "y = ReduceSum <keepdims = 0> (x)", "[]", None, NEW),
    "reduce-sum-empty-axes": Case(
        X1, "y = ReduceSum <keepdims = 0> (x, a)", "[]", None, NEW, {"a": np.zeros(0, np.int64)}
    ),
    "reduce-sum-old": Case(
        X1, "y = ReduceSum <axes = [1], keepdims = 0> (x)", "[b, t]", None, (9, 11)
    ),
    "reduce-mean-old": Case(
        X1, "y = ReduceMean <axes = [-1]> (x)", "[b, c, 1]", None, (11, 13, 17)
    ),
    "reduce-mean": Case(X1, "y = ReduceMean (x, a)", "[b, c, 1]", None, (18, 21), {"a": ints(2)}),
    "reduce-max-nothing": Case(X1, "y = ReduceMax (x)", "[1, 1, 1]", None, ALL),
    "argmax": Case(X1, "y = ArgMax <axis = -1, keepdims = 0> (x)", "[b, c]", None, (11, 13)),
    "argmin": Case(X1, "y = ArgMin <axis = 1> (x)", "[b, 1, t]", None, (11, 13)),
    "top-k": Case("float[b,9] x", "y, i = TopK (x, k)", None, None, (11, 13), {"k": ints(3)}),
    "top-k-of-unknown": Case(
        "float[b,t] x",
        "y, i = TopK (x, k)",
        "[b, 3]",
        None,
        (11, 13),
        {"k": ints(3)},
        at=tuple({"b": b, "t": t} for b in (1, 2) for t in (3, 5)),
    ),
    "top-k-at-most": Case(
        "float[b,t] x",
        "s = Shape (x) n = Gather <axis = 0> (s, l) k = Min (n, three) y, i = TopK (x, k)",
        None,
        None,
        (12, 13),
        {"l": ints(1), "three": ints(3)},
        at=tuple({"b": b, "t": t} for b in (1, 2) for t in (1, 2, 3, 5)),
    ),
    "top-k-attribute": Case("float[b,9] x", "y, i = TopK <k = 3> (x)", None, None, (9,)),
    "compress": Case(
        "float[b,4,t] x, bool[3] c", "y = Compress <axis = -2> (x, c)", None, None, (9, *NEW)
    ),
    "compress-of-all": Case(
        "float[b,t] x, bool[2] c", "y = Compress (x, c)", None, None, (9, *NEW)
    ),
    "one-mask": Case(
        "float[b,4,t] x, float[3] z, bool[3] c",
        "a = Compress <axis = 1> (x, c) p = Compress <axis = 0> (z, c) "
        "q = Unsqueeze (p, last) y = Add (a, q) n = NonZero (c)",
        None,
        None,
        NEW,
        {"last": ints(1)},
    ),
    "non-zero": Case("float[b,t] x", "y = NonZero (x)", None, None, NEW),
    "cumsum-and-trilu": Case(
        "float[b,t] x", "a = CumSum (x, k) y = Trilu (a)", "[b, t]", None, (14,), {"k": np.int64(1)}
    ),
}
