"""Wrong rewrites that give other values: everywhere, or of some floats alone."""

from planting import TWO, Planted, X, number, numbers

VALUES: dict[str, Planted] = {
    # another value everywhere
    "operands swapped": (TWO, "y = Sub (x, z)", "n = Neg (x)\ny = Add (z, n)"),
    "quotient turned over": (TWO, "y = Div (x, z)", "r = Reciprocal (x)\ny = Mul (z, r)"),
    "base and exponent swapped": (
        TWO,
        "e = Exp (x)\ny = Pow (e, z)",
        "e = Exp (x)\ny = Pow (z, e)",
    ),
    "another operator": (TWO, "y = Mul (x, z)", "y = Add (x, z)"),
    "sign lost": (TWO, "n = Neg (x)\ny = Mul (n, z)", "y = Mul (x, z)"),
    "term lost": (TWO, "a = Mul (x, z)\ny = Add (a, z)", "y = Mul (x, z)"),
    "factor lost": (TWO, "a = Add (x, z)\ny = Mul (a, z)", "y = Add (x, z)"),
    "branches of Where swapped": (TWO, "m = Less (x, z)\ny = Where (m, x, z)", "y = Max (x, z)"),
    "a little too much": (X, "y = Sin (x)", number("k", 1.001) + "s = Sin (x)\ny = Mul (s, k)"),
    "a little beside": (X, "y = Cos (x)", number("k", 0.001) + "s = Cos (x)\ny = Add (s, k)"),
    "another activation": (X, "y = Tanh (x)", "y = Softsign (x)"),
    "swish for hard swish": (
        X,
        "y = HardSwish (x)",
        "s = Sigmoid (x)\ny = Mul (x, s)",
    ),
    "sigmoid by a line": (X, "y = Sigmoid (x)", "y = HardSigmoid (x)"),
    # only for some values
    "only for negative input: kept": (X, "y = Relu (x)", "y = Identity (x)"),
    "only for negative input: leaking": (X, "y = Relu (x)", "y = LeakyRelu <alpha = 0.001> (x)"),
    "only for negative input: root of a square": (
        X,
        "m = Mul (x, x)\nr = Sqrt (m)\ny = Sub (r, x)",
        "y = Sub (x, x)",
    ),
    "only above 6": (X, "y = Relu (x)", number("l", 0.0) + number("h", 6.0) + "y = Clip (x, l, h)"),
    "only above 10": (
        X,
        "y = Relu (x)",
        number("l", 0.0) + number("h", 10.0) + "y = Clip (x, l, h)",
    ),
    "only below -10": (
        X,
        "t = Neg (x)\ny = Neg (t)",
        number("l", -10.0) + "y = Clip (x, l)",
    ),
    "only at zero: sign": (
        X,
        "y = Sign (x)",
        number("o", 1.0)
        + number("z", 0.0)
        + number("m", -1.0)
        + "l = Less (x, z)\ny = Where (l, m, o)",
    ),
    "only at zero: compared strictly": (
        X,
        number("z", 0.0) + "g = GreaterOrEqual (x, z)\ny = Cast <to = 1> (g)",
        number("z", 0.0) + "g = Greater (x, z)\ny = Cast <to = 1> (g)",
    ),
    "only where both are equal": (TWO, "y = LessOrEqual (x, z)", "y = Less (x, z)"),
    "only at ties: floor of x + 0.5": (
        X,
        "y = Round (x)",
        number("h", 0.5) + "a = Add (x, h)\ny = Floor (a)",
    ),
    "only at ties: away from zero": (
        X,
        "y = Round (x)",
        number("h", 0.5) + "a = Abs (x)\nq = Add (a, h)\nf = Floor (q)\ns = Sign (x)\n"
        "y = Mul (f, s)",
    ),
    "only at whole numbers: ceil": (
        X,
        "y = Ceil (x)",
        number("o", 1.0) + "f = Floor (x)\ny = Add (f, o)",
    ),
    "only for negative input: towards zero": (
        X,
        "y = Floor (x)",
        "i = Cast <to = 7> (x)\ny = Cast <to = 1> (i)",
    ),
    "only for equal numbers: last maximum": (
        X,
        "y = ArgMax <axis = 2> (x)",
        "y = ArgMax <axis = 2, select_last_index = 1> (x)",
    ),
    "only near zero: rectified": (
        X,
        "y = Softplus (x)",
        "y = Relu (x)",
    ),
    "only at NaN": (
        X,
        "y = IsNaN (x)",
        "y = Less (x, x)",
    ),
    "only at infinity": (X, "y = IsInf (x)", "y = Less (x, x)"),
    "only for the greatest numbers: infinite too soon": (
        X,
        "y = IsInf (x)",
        number("m", 3.4e37) + "a = Abs (x)\ny = Greater (a, m)",
    ),
    "only at minus infinity": (X, "y = IsInf (x)", "y = IsInf <detect_negative = 0> (x)"),
    # more values
    "only where a power is infinite, among few elements": (
        "float[2,3] x",
        "y = LogSoftmax <axis = -1> (x)",
        "e = Exp (x)\ns = ReduceSum <axes = [-1], keepdims = 1> (e)\nl = Log (s)\ny = Sub (x, l)",
    ),
    "only where all powers are zero, among few elements": (
        "float[2,3] x",
        "y = Softmax <axis = -1> (x)",
        number("z", 0.0)
        + "m = ReduceMax <axes = [-1], keepdims = 1> (x)\nc = Max (m, z)\nd = Sub (x, c)\n"
        "e = Exp (d)\ns = ReduceSum <axes = [-1], keepdims = 1> (e)\ny = Div (e, s)",
    ),
    "only where a pivot is zero: eliminated without an exchange of rows": (
        "float[2,2] x",
        "y = Det (x)",
        numbers("l", 1, 1, 1, 1)
        + "f = Flatten <axis = 0> (x)\np, q, r, s = Split <axis = 1> (f, l)\nu = Div (r, p)\n"
        "v = Mul (u, q)\nw = Sub (s, v)\nd = Mul (p, w)\ny = Squeeze (d)",
    ),
    "only above 37.5": (
        X,
        "y = Relu (x)",
        number("l", 0.0) + number("h", 37.5) + "y = Clip (x, l, h)",
    ),
    "only at the threshold": (
        X,
        number("k", 4.25) + "g = Greater (x, k)\ny = Cast <to = 1> (g)",
        number("k", 4.25) + "g = GreaterOrEqual (x, k)\ny = Cast <to = 1> (g)",
    ),
    "only for large values: exponential overflows": (
        X,
        "y = Softmax <axis = 2> (x)",
        numbers("a", 2) + "e = Exp (x)\ns = ReduceSum (e, a)\ny = Div (e, s)",
    ),
    "only for large values: softplus overflows": (
        X,
        "y = Softplus (x)",
        number("o", 1.0) + "e = Exp (x)\np = Add (e, o)\ny = Log (p)",
    ),
    "only for small values: squares vanish": (
        X,
        "y = Sign (x)",
        "m = Mul (x, x)\nr = Sign (m)\ns = Sign (x)\nq = Mul (r, s)\ny = Identity (q)",
    ),
    "only for denormals: no sign": (
        X,
        "y = Sign (x)",
        number("k", 1e30)
        + number("l", -1.0)
        + number("h", 1.0)
        + "m = Mul (x, k)\ny = Clip (m, l, h)",
    ),
    "only for denormals: flushed": (
        X,
        "t = Neg (x)\ny = Neg (t)",
        number("k", 1.2e-38)
        + number("z", 0.0)
        + "m = Abs (x)\nq = Less (m, k)\ny = Where (q, z, x)",
    ),
    "only for zeros: their sign": (
        X,
        "y = Neg (x)",
        number("z", 0.0) + "y = Sub (z, x)",
    ),
    "only for zeros: infinity of another sign": (
        X,
        "n = Neg (x)\ny = Reciprocal (n)",
        number("z", 0.0) + "n = Sub (z, x)\ny = Reciprocal (n)",
    ),
    "only at NaN: kept out": (
        X,
        number("z", 0.0) + "q = Less (x, z)\ny = Where (q, z, x)",
        number("z", 0.0) + "q = GreaterOrEqual (x, z)\ny = Where (q, x, z)",
    ),
    "only at infinity: no difference": (
        X,
        "y = Sub (x, x)",
        number("z", 0.0) + "q = IsNaN (x)\ny = Where (q, x, z)",
    ),
    "only for constant rows: no epsilon": (
        X,
        number("i", 1e-5) + "m = ReduceMean <axes = [2]> (x)\nd = Sub (x, m)\nq = Mul (d, d)\n"
        "v = ReduceMean <axes = [2]> (q)\np = Add (v, i)\nr = Sqrt (p)\ny = Div (d, r)",
        "m = ReduceMean <axes = [2]> (x)\nd = Sub (x, m)\nq = Mul (d, d)\n"
        "v = ReduceMean <axes = [2]> (q)\nr = Sqrt (v)\ny = Div (d, r)",
    ),
    "only for ties: the last of equals": (
        X,
        number("k", 2) + "y = Hardmax <axis = 2> (x)",
        "r = ArgMax <axis = 2, select_last_index = 1> (x)\nh = Shape (x)\n"
        + numbers("v", 0, 1)
        + number("i", 2)
        + "c = Gather (h, i)\no = OneHot <axis = -1> (r, c, v)\n"
        + numbers("a", 2)
        + "s = Squeeze (o, a)\ny = Cast <to = 1> (s)",
    ),
    "only for negative input: remainder's sign": (
        TWO,
        "y = Mod <fmod = 1> (x, z)",
        "q = Div (x, z)\nf = Floor (q)\np = Mul (f, z)\ny = Sub (x, p)",
    ),
}
