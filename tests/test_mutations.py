"""The checker is itself checked: wrong rewrites of many kinds, each of which has to be caught.

Each is a rule whose match is the whole model and whose replacement is wrong, mostly for few inputs
alone. It is caught where the rule does not fire and the reason says that the replacement differs,
or where the whole model's check refuses the result.
"""

import json
import os
import re
from pathlib import Path

import pytest
from truth import model_of

import surgeon
from surgeon.errors import SurgeonError, VerifyError
from surgeon.report import Refusal, Report

SHARES = 8  # tests that the real exports are dealt to
X = "float[b,c,t] x"
IMAGE = "float[b,4,h,w] x"
TWO = "float[b,t] x, float[b,t] z"
INT = "int64[b,t] x"
INTS = "int64[b,t] x, int64[b,t] z"
HALF = "float16[b,t] x"
C = "{0} = Constant <value_{1} = {2}> ()\n"


def number(name: str, value: object) -> str:
    """A constant of the replacement."""
    return C.format(name, "float" if isinstance(value, float) else "int", value)


def numbers(name: str, *values: int) -> str:
    return C.format(name, "ints", list(values))


TWICE = "s = Constant <value_floats = [1.0, 1.0, 2.0, 2.0]> ()\n"

# Name: inputs, match, replacement and, where it is not `y`, the outputs.
PLANTED: dict[str, tuple[str, ...]] = {
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
    # windows
    "window one to the left": (
        IMAGE,
        "y = AveragePool <kernel_shape = [3, 3], pads = [1, 1, 1, 1]> (x)",
        "y = AveragePool <kernel_shape = [3, 3], pads = [1, 2, 1, 0]> (x)",
    ),
    "padding counted": (
        IMAGE,
        "y = AveragePool <kernel_shape = [3, 3], pads = [1, 1, 1, 1]> (x)",
        "y = AveragePool <kernel_shape = [3, 3], pads = [1, 1, 1, 1], count_include_pad = 1> (x)",
    ),
    "wider window": (
        IMAGE,
        "y = MaxPool <kernel_shape = [2, 2]> (x)",
        "y = MaxPool <kernel_shape = [3, 3], pads = [0, 0, 1, 1]> (x)",
    ),
    "mean for maximum": (
        IMAGE,
        "y = GlobalMaxPool (x)",
        "y = GlobalAveragePool (x)",
    ),
    "only at odd sizes: rounded up": (
        IMAGE,
        "y = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (x)",
        "y = MaxPool <kernel_shape = [2, 2], strides = [2, 2], ceil_mode = 1> (x)",
    ),
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
    "only at minus infinity": (X, "y = IsInf (x)", "y = IsInf <detect_negative = 0> (x)"),
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
    # more windows
    "dilation for a wider kernel": (
        IMAGE,
        "y = MaxPool <kernel_shape = [2, 2], dilations = [2, 2]> (x)",
        "y = MaxPool <kernel_shape = [3, 3]> (x)",
    ),
    "dilation along the other axis": (
        IMAGE,
        "y = MaxPool <kernel_shape = [2, 2], dilations = [1, 2], pads = [1, 1, 1, 1]> (x)",
        "y = MaxPool <kernel_shape = [2, 2], dilations = [2, 1], pads = [1, 1, 1, 1]> (x)",
    ),
    "strides swapped": (
        IMAGE,
        "y = MaxPool <kernel_shape = [2, 2], strides = [1, 2]> (x)",
        "y = MaxPool <kernel_shape = [2, 2], strides = [2, 1]> (x)",
    ),
    "only at some sizes: rounded down": (
        IMAGE,
        "y = MaxPool <kernel_shape = [3, 3], strides = [2, 2], ceil_mode = 1> (x)",
        "y = MaxPool <kernel_shape = [3, 3], strides = [2, 2]> (x)",
    ),
    "only at odd sizes: what is beyond the end counted": (
        IMAGE,
        "y = AveragePool <kernel_shape = [2, 2], strides = [2, 2], ceil_mode = 1> (x)",
        "y = AveragePool <kernel_shape = [2, 2], strides = [2, 2], pads = [0, 0, 1, 1], "
        "count_include_pad = 1> (x)",
    ),
    "only at even sizes: one more": (
        IMAGE,
        "y = MaxPool <kernel_shape = [2, 2], strides = [2, 2], ceil_mode = 1> (x)",
        "y = MaxPool <kernel_shape = [2, 2], strides = [2, 2], pads = [1, 1, 0, 0]> (x)",
    ),
    "zeros for nothing around a maximum": (
        IMAGE,
        "y = MaxPool <kernel_shape = [3, 3], pads = [1, 1, 1, 1]> (x)",
        numbers("p", 0, 0, 1, 1, 0, 0, 1, 1)
        + "q = Pad (x, p)\ny = MaxPool <kernel_shape = [3, 3]> (q)",
    ),
    "reflected for repeated": (
        IMAGE,
        numbers("p", 0, 0, 1, 1, 0, 0, 1, 1) + 'y = Pad <mode = "edge"> (x, p)',
        numbers("p", 0, 0, 1, 1, 0, 0, 1, 1) + 'y = Pad <mode = "reflect"> (x, p)',
    ),
    "padded at the other end": (
        X,
        numbers("p", 0, 0, 1, 0, 0, 0) + "y = Pad (x, p)",
        numbers("p", 0, 0, 0, 0, 0, 1) + "y = Pad (x, p)",
    ),
    "corners for halves": (
        IMAGE,
        TWICE + 'y = Resize <mode = "linear"> (x, , s)',
        'y = Resize <mode = "linear", coordinate_transformation_mode = "asymmetric"> (x, , s)',
    ),
    "only at ties: nearest from above": (
        IMAGE,
        "s = Constant <value_floats = [1.0, 1.0, 0.5, 0.5]> ()\n"
        'y = Resize <mode = "nearest"> (x, , s)',
        'y = Resize <mode = "nearest", nearest_mode = "round_prefer_ceil"> (x, , s)',
    ),
    "bias of a Conv lost": (
        "float[b,2,h,w] x, float[4,2,3,3] k, float[4] z",
        "y = Conv (x, k, z)",
        "y = Conv (x, k)",
    ),
    "kernel not turned over": (
        "float[b,2,t] x, float[2,3,3] k",
        "y = ConvTranspose (x, k)",
        "u = Transpose <perm = [1, 0, 2]> (k)\ny = Conv <pads = [2, 2]> (x, u)",
    ),
    "groups in another order": (
        "float[b,4,t] x, float[4,2,3] k",
        "y = Conv <group = 2> (x, k)",
        numbers("i", 2, 3, 0, 1) + "g = Gather <axis = 1> (x, i)\ny = Conv <group = 2> (g, k)",
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
    # more values
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
# Those that promise the same bits.
BITS = {
    "only for denormals: flushed",
    "only for zeros: their sign",
    "only at NaN: kept out",
    "only at infinity: no difference",
}
RULE = """\
surgeon: 1
name: planted
rules:
  - id: planted
    why: It is wrong.
    exact: {exact}
    match: |
      {match}
    replace: |
      {replace}
"""
caught: dict[str, str] = {}


def indented(text: str) -> str:
    return text.strip().replace("\n", "\n      ")


@pytest.mark.parametrize("name", PLANTED)
def test_a_wrong_rewrite_is_caught(name: str, tmp_path: Path) -> None:
    inputs, match, replace, *outputs = PLANTED[name]
    made = set(re.findall(r"\w+(?=[\w, ]* = [A-Z])", replace)) - set(
        " ".join(outputs or "y").split()
    )
    for value in made:  # names of its own
        replace = re.sub(rf"\b{value}\b(?! = [\[\d\"-])", f"{value}_", replace)
    nodes = [line for line in match.splitlines() if " = Constant " not in line]  # they are folded
    path = tmp_path / "planted.yaml"
    text = RULE.format(
        exact="bit" if name in BITS else "rounding",
        match=indented("\n".join(nodes)),
        replace=indented(replace),
    )
    path.write_text(text)
    model = model_of(inputs, match, *(outputs or ["y"]))
    try:
        result = surgeon.apply(model, path)
    except VerifyError:
        caught[name] = "by the whole model"
        return
    reasons = [miss.reason for miss in result.report.misses if miss.rule == "planted"]
    assert result.report.changes == (), "it went through"
    assert any(r.startswith("the replacement differs from what it") for r in reasons), reasons
    caught[name] = "by itself"


def is_alarm(refusal: Refusal, report: Report) -> bool:
    """Whether numbers, sizes or kinds differed; a result that does not run is refused for that."""
    return refusal.drawn != "whole" or report.verdict.status == "differs"


@pytest.mark.skipif(
    "SURGEON_CORPUS" not in os.environ, reason="minutes: asked for with SURGEON_CORPUS alone"
)
@pytest.mark.corpus
@pytest.mark.slow
@pytest.mark.parametrize("share", range(SHARES))
def test_no_right_rewrite_is_refused(
    corpus: Path, share: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """The recipe `aten` on every real export: what it makes of them PyTorch's outputs bear out."""
    text = (corpus / "index.jsonl").read_text()
    rows = [json.loads(line) for line in text.splitlines()]
    files = [row["file"] for row in rows if row.get("file") and row.get("nonstandard")]
    alarms: dict[str, str] = {}
    compared = 0
    for file in files[share::SHARES]:
        try:
            report = surgeon.apply(corpus / file, "aten", allow=["contract", "leftover"]).report
        except VerifyError as error:
            report = error.report
        except SurgeonError:  # a file of no use is no alarm
            continue
        alarms.update(
            {f"{file}: {r.rule}": r.reason for r in report.refusals if is_alarm(r, report)}
        )
        compared += report.pieces.get("compared", 0)
    with capsys.disabled():
        print(f"\n{len(alarms)} false alarms at {compared} rewrites of {len(files[share::SHARES])}")
    assert alarms == {}
    assert compared > 100


def test_how_many(capsys: pytest.CaptureFixture[str]) -> None:
    """Prints the figure; last, and of the whole suite alone."""
    assert len(PLANTED) >= 120
    if len(caught) < 2:
        pytest.skip("the others did not run in this process")
    alone = sum(how == "by itself" for how in caught.values())
    with capsys.disabled():
        print(f"\n{len(caught)} of {len(PLANTED)} wrong rewrites caught, {alone} by themselves")
