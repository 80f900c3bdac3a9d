"""Wrong rewrites of axes, orders, matrices and shapes, some of them right at some sizes."""

from planting import TWO, Planted, X, number, numbers

AXES: dict[str, Planted] = {
    # axes, orders and shapes
    "softmax over another axis": (X, "y = Softmax <axis = 1> (x)", "y = Softmax <axis = 2> (x)"),
    "softmax over all": (
        X,
        "y = Softmax <axis = 2> (x)",
        "f = Flatten (x)\ns = Softmax (f)\nh = Shape (x)\ny = Reshape (s, h)",
    ),
    "mean over another axis": (
        X,
        "y = ReduceMean <axes = [1]> (x)",
        "y = ReduceMean <axes = [2]> (x)",
    ),
    "sum for a mean": (
        X,
        "y = ReduceMean <axes = [2]> (x)",
        numbers("a", 2) + "y = ReduceSum (x, a)",
    ),
    "axis not kept": (
        X,
        "y = ReduceMax <axes = [1]> (x)",
        "y = ReduceMax <axes = [1], keepdims = 0> (x)",
    ),
    "transposed another way": (
        X,
        "y = Transpose <perm = [1, 2, 0]> (x)",
        "y = Transpose <perm = [2, 0, 1]> (x)",
    ),
    "reshaped for transposed": (
        X,
        "y = Transpose <perm = [0, 2, 1]> (x)",
        "t = Transpose <perm = [0, 2, 1]> (x)\ns = Shape (t)\ny = Reshape (x, s)",
    ),
    "concatenated in another order": (
        TWO,
        "y = Concat <axis = 1> (x, z)",
        "y = Concat <axis = -1> (z, x)",
    ),
    "concatenated along another axis": (
        TWO,
        "y = Concat <axis = 1> (x, z)",
        "y = Concat <axis = 0> (x, z)",
    ),
    "cumulated the other way": (
        X,
        number("k", 2) + "y = CumSum (x, k)",
        number("k", 2) + "y = CumSum <reverse = 1> (x, k)",
    ),
    "cumulated without itself": (
        X,
        number("k", 2) + "y = CumSum (x, k)",
        number("k", 2) + "y = CumSum <exclusive = 1> (x, k)",
    ),
    "depth to space the other way": (
        "float[b,8,h,w] x",
        'y = DepthToSpace <blocksize = 2, mode = "DCR"> (x)',
        'y = DepthToSpace <blocksize = 2, mode = "CRD"> (x)',
    ),
    "flattened from another axis": (X, "y = Flatten <axis = 1> (x)", "y = Flatten <axis = 2> (x)"),
    "first for last": (
        X,
        number("k", -1) + "y = Gather <axis = 2> (x, k)",
        number("k", 0) + "y = Gather <axis = 2> (x, k)",
    ),
    "one too few": (
        X,
        numbers("s", 1) + numbers("e", 4) + numbers("a", 2) + "y = Slice (x, s, e, a)",
        numbers("s", 1) + numbers("e", 3) + numbers("a", 2) + "y = Slice (x, s, e, a)",
    ),
    # only at some sizes
    "only for a batch above 1: first sample": (
        X,
        "t = Neg (x)\ny = Neg (t)",
        numbers("s", 0)
        + numbers("e", 1)
        + numbers("a", 0)
        + "f = Slice (x, s, e, a)\nh = Shape (x)\ny = Expand (f, h)",
    ),
    "only for a batch above 1: mean over it": (
        X,
        "y = ReduceMean <axes = [1, 2], keepdims = 0> (x)",
        "m = ReduceMean <axes = [0, 1, 2], keepdims = 0> (x)\n"
        "r = ReduceMean <axes = [1, 2], keepdims = 0> (x)\nh = Shape (r)\ny = Expand (m, h)",
    ),
    "only beyond 8 of a size": (
        X,
        numbers("s", 0) + numbers("e", 1000000) + numbers("a", 2) + "y = Slice (x, s, e, a)",
        numbers("s", 0) + numbers("e", 8) + numbers("a", 2) + "y = Slice (x, s, e, a)",
    ),
    # broadcasting
    "broadcast along another axis": (
        "float[4,4] x, float[4] z",
        "y = Add (x, z)",
        numbers("a", 1) + "u = Unsqueeze (z, a)\ny = Add (x, u)",
    ),
    "broadcast the other way": (
        "float[b,4,4] x, float[4,1] z",
        "y = Mul (x, z)",
        "u = Transpose (z)\ny = Mul (x, u)",
    ),
    # matrices
    "transposed matrix": (
        "float[4,4] x, float[4,4] z",
        "y = MatMul (x, z)",
        "u = Transpose (z)\ny = MatMul (x, u)",
    ),
    "matrices swapped": ("float[4,4] x, float[4,4] z", "y = MatMul (x, z)", "y = Gemm (z, x)"),
    "bias lost": (
        "float[b,4] x, float[4,3] z, float[3] k",
        "y = Gemm (x, z, k)",
        "y = MatMul (x, z)",
    ),
    "alpha lost": (
        "float[b,4] x, float[4,3] z",
        "y = Gemm <alpha = 0.5> (x, z)",
        "y = Gemm (x, z)",
    ),
    "variance of a sample": (
        X,
        "m = ReduceMean <axes = [2]> (x)\nd = Sub (x, m)\nq = Mul (d, d)\n"
        "y = ReduceMean <axes = [2]> (q)",
        "q = Mul (x, x)\ny = ReduceMean <axes = [2]> (q)",
    ),
    # more axes
    "only for a batch above 1: cumulated over it": (
        X,
        numbers("a", 0, 2) + "y = ReduceSum (x, a)",
        numbers("a", 2) + "y = ReduceSum (x, a)",
    ),
    "only in the last element": (
        X,
        "t = Neg (x)\ny = Neg (t)",
        numbers("s", 0)
        + numbers("e", -1)
        + numbers("m", 9223372036854775807)
        + numbers("a", 2)
        + "f = Slice (x, s, e, a)\nl = Slice (x, e, m, a)\nn = Neg (l)\n"
        "y = Concat <axis = 2> (f, n)",
    ),
    "only in the first element of the last sample": (
        "float[b,4] x",
        "t = Neg (x)\ny = Neg (t)",
        numbers("s", 0)
        + numbers("e", -1)
        + numbers("m", 9223372036854775807)
        + numbers("a", 0)
        + "f = Slice (x, s, e, a)\nl = Slice (x, e, m, a)\nn = Abs (l)\n"
        "y = Concat <axis = 0> (f, n)",
    ),
    "only for this rank": (
        "float[a,b,c,d] x",
        "y = Transpose (x)",
        "y = Transpose <perm = [3, 1, 2, 0]> (x)",
    ),
    "kept though not asked for": (
        X,
        "y = ReduceMax <axes = [1], keepdims = 0> (x)",
        "y = ReduceMax <axes = [1]> (x)",
    ),
    "only at size 1: squeezed": (
        "float[b,c,1] x",
        numbers("a", 2) + "y = Squeeze (x, a)",
        "y = Squeeze (x)",
    ),
    "only at size 1: spread": (
        X,
        "y = Softmax <axis = 1> (x)",
        number("o", 1)
        + "h = Shape (x)\n"
        + number("i", 1)
        + "c = Gather (h, i)\nq = Equal (c, o)\ns = Softmax <axis = 1> (x)\n"
        "n = Neg (s)\ny = Where (q, n, s)",
    ),
    "only where two sizes are equal": (
        X,
        "t = Neg (x)\ny = Neg (t)",
        "h = Shape (x)\n"
        + number("i", 1)
        + number("j", 2)
        + "c = Gather (h, i)\nd = Gather (h, j)\nq = Equal (c, d)\nn = Neg (x)\n"
        "y = Where (q, n, x)",
    ),
    "only at odd sizes: the middle": (
        X,
        "t = Neg (x)\ny = Neg (t)",
        "h = Shape (x)\n"
        + number("i", 2)
        + number("k", 2)
        + number("o", 1)
        + "c = Gather (h, i)\nr = Mod (c, k)\nq = Equal (r, o)\nn = Neg (x)\n"
        "y = Where (q, n, x)",
    ),
    "only for an empty tensor: a sum of one": (
        X,
        numbers("a", 2) + "y = ReduceSum (x, a)",
        numbers("a", 2)
        + number("z", 0)
        + number("o", 1.0)
        + "n = Size (x)\nq = Equal (n, z)\ns = ReduceSum (x, a)\ny = Where (q, o, s)",
    ),
    "only beyond 300 of a size": (
        X,
        numbers("s", 0) + numbers("e", 1000000) + numbers("a", 2) + "y = Slice (x, s, e, a)",
        numbers("s", 0) + numbers("e", 300) + numbers("a", 2) + "y = Slice (x, s, e, a)",
    ),
}
