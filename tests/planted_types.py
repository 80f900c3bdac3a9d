"""Wrong rewrites of whole numbers, dtypes, masks and several outputs, and those that do not run."""

from planting import HALF, INT, INTS, Planted, X, number, numbers

TYPES: dict[str, Planted] = {
    # whole numbers
    "only for negative input: divided": (
        INT,
        number("k", 2) + "y = Mod (x, k)",
        number("k", 2) + "y = Mod <fmod = 1> (x, k)",
    ),
    "only for negative integers: absolute": (INT, "y = Abs (x)", "y = Identity (x)"),
    "only for negative integers: clipped": (
        INT,
        "t = Neg (x)\ny = Neg (t)",
        "y = Relu (x)",
    ),
    "only beyond 2^24: through float32": (
        INTS,
        "y = Add (x, z)",
        "f = Cast <to = 1> (x)\ng = Cast <to = 1> (z)\nh = Add (f, g)\ny = Cast <to = 7> (h)",
    ),
    "only beyond 2^31: through int32": (
        INTS,
        "y = Sub (x, z)",
        "f = Cast <to = 6> (x)\ng = Cast <to = 6> (z)\nh = Sub (f, g)\ny = Cast <to = 7> (h)",
    ),
    "only beyond 2^53: through float64": (
        INT,
        "y = Neg (x)",
        "f = Cast <to = 11> (x)\ng = Neg (f)\ny = Cast <to = 7> (g)",
    ),
    "only beyond 255: through uint8": (
        INT,
        "y = Neg (x)",
        "f = Cast <to = 2> (x)\ng = Cast <to = 7> (f)\ny = Neg (g)",
    ),
    "only where equal, of integers": (INTS, "y = Greater (x, z)", "y = GreaterOrEqual (x, z)"),
    # dtypes
    "another dtype": (X, "y = Cast <to = 6> (x)", "y = Cast <to = 7> (x)"),
    "from float16": (
        X,
        "y = Exp (x)",
        "h = Cast <to = 10> (x)\ne = Cast <to = 1> (h)\ny = Exp (e)",
    ),
    "in bfloat16": (
        X,
        "y = Neg (x)",
        "h = Cast <to = 16> (x)\ne = Cast <to = 1> (h)\ny = Neg (e)",
    ),
    "rounded for cut off": (X, "y = Cast <to = 7> (x)", "r = Round (x)\ny = Cast <to = 7> (r)"),
    "float16 overflows": (
        HALF,
        number("k", 2.0) + "f = Cast <to = 1> (x)\ny = Mul (f, k)",
        number("k", 2.0) + "f = Cast <to = 1> (x)\ny = Div (f, k)",
    ),
    # only one of two outputs
    "only the second output: of a split": (
        "float[b,4] x",
        "y, q = Split <axis = 1> (x)",
        "y, p = Split <axis = 1> (x)\nq = Neg (p)",
        "y q",
    ),
    "only the second output: the indices": (
        X,
        numbers("k", 1) + "y, q = TopK (x, k)",
        numbers("k", 1) + "y, p = TopK (x, k)\nn = Neg (p)\nq = Add (p, n)",
        "y q",
    ),
    "outputs swapped": (
        "float[b,4] x",
        "y, q = Split <axis = 1> (x)",
        "q, y = Split <axis = -1> (x)",
        "y q",
    ),
    # more whole numbers
    "only for negative integers: rounded down": (
        INT,
        number("k", 2) + "y = Div (x, k)",
        number("k", 2) + "m = Mod (x, k)\nd = Sub (x, m)\ny = Div (d, k)",
    ),
    "only for negative places: clipped": (
        "float[b,4] x, int64[n] i",
        "y = Gather <axis = 1> (x, i)",
        number("l", 0) + "c = Max (i, l)\ny = Gather <axis = 1> (x, c)",
    ),
    "only where bytes overflow: saturated": (
        "uint8[b,t] x, uint8[b,t] z",
        "f = Cast <to = 6> (x)\ng = Cast <to = 6> (z)\nh = Add (f, g)\ny = Cast <to = 2> (h)",
        number("m", 255)
        + "f = Cast <to = 7> (x)\ng = Cast <to = 7> (z)\nh = Add (f, g)\nc = Min (h, m)\n"
        "y = Cast <to = 2> (c)",
    ),
    "only beyond 2^24: sum through float32": (
        "int32[b,t] x",
        numbers("a", 1) + "y = ReduceSum (x, a)",
        numbers("a", 1) + "f = Cast <to = 1> (x)\ns = ReduceSum (f, a)\ny = Cast <to = 6> (s)",
    ),
    "only beyond 2^24: cumulated through float32": (
        INT,
        number("k", 1) + "y = CumSum (x, k)",
        number("k", 1) + "f = Cast <to = 1> (x)\ns = CumSum (f, k)\ny = Cast <to = 7> (s)",
    ),
    "only beyond 2^31: places through int32": (
        INT,
        numbers("s", 0) + numbers("e", 2) + numbers("a", 1) + "y = Slice (x, s, e, a)",
        numbers("s", 0)
        + numbers("e", 2)
        + numbers("a", 1)
        + "f = Cast <to = 6> (x)\ng = Slice (f, s, e, a)\ny = Cast <to = 7> (g)",
    ),
    "only at one threshold, of integers": (
        INT,
        number("k", 100) + "g = Greater (x, k)\ny = Cast <to = 1> (g)",
        number("k", 100) + "g = GreaterOrEqual (x, k)\ny = Cast <to = 1> (g)",
    ),
    # more dtypes, outputs and masks
    "double as single": (
        "double[b,t] x",
        "y = Exp (x)",
        "f = Cast <to = 1> (x)\ne = Exp (f)\ny = Cast <to = 11> (e)",
    ),
    "cut off for rounded, of halves": (
        X,
        "h = Cast <to = 10> (x)\ny = Cast <to = 1> (h)",
        number("k", 1024.0) + "m = Mul (x, k)\nf = Floor (m)\ny = Div (f, k)",
    ),
    "only where a mask is false everywhere": (
        "bool[b,t] x, float[b,t] z",
        number("l", -1e9) + "w = Where (x, z, l)\ny = Softmax <axis = 1> (w)",
        number("k", 0.0)
        + numbers("a", 1)
        + "e = Exp (z)\nw = Where (x, e, k)\ns = ReduceSum (w, a)\ny = Div (w, s)",
    ),
    "only the second of two outputs: at odd sizes": (
        "float[b,4] x",
        "y, q = Split <axis = 1> (x)",
        "y, p = Split <axis = 1> (x)\nh = Shape (x)\n"
        + number("i", 0)
        + number("k", 2)
        + number("o", 1)
        + "c = Gather (h, i)\nr = Mod (c, k)\nv = Equal (r, o)\nn = Neg (p)\n"
        "q = Where (v, n, p)",
        "y q",
    ),
    "it does not run": (
        X,
        "y = Exp (x)",
        numbers("s", 7, 7) + "e = Exp (x)\ny = Reshape (e, s)",
    ),
    "it does not run at odd sizes": (
        X,
        "t = Neg (x)\ny = Neg (t)",
        numbers("s", 0, 0, 2, -1) + "r = Reshape (x, s)\nh = Shape (x)\ny = Reshape (r, h)",
    ),
}
