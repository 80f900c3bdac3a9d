"""The strongest test of facts: each, evaluated, against what onnxruntime computes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
import pytest
from chains import chains
from hypothesis import HealthCheck, given, reject, settings
from truth import fact_of, hold, infer, model_of, parse, points, symbols_of

from surgeon import dims
from surgeon.dims import symbol
from surgeon.runtime import NotRunnable

F32 = np.float32
MAX = 2**63 - 1


def weights(*shape: int) -> Any:
    return np.linspace(-1, 1, int(np.prod(shape)), dtype=F32).reshape(shape)


def ints(*values: int) -> Any:
    return np.array(values, np.int64)


@dataclass(frozen=True)
class Case:
    """A model whose facts are held against its runs.

    Attributes:
        inputs: As text; names for dynamic dimensions.
        body: The nodes, which end in `y`.
        shape: What the shape of `y` prints as, where a test wants to see it.
        value: The same of its value.
        opsets: At which it is valid.
        constants: Initializers by name.
        at: Sizes; default a list of them.
        least: At how many sizes onnxruntime must have taken it.
        frozen: Whether it also runs with every dimension fixed.
    """

    inputs: str
    body: str
    shape: str | None = None
    value: str | None = None
    opsets: tuple[int, ...] = (13, 17, 21)
    constants: Mapping[str, Any] = field(default_factory=dict)
    at: tuple[Mapping[str, int], ...] = ()
    least: int = 3
    frozen: bool = True

    def proto(self, opset: int) -> onnx.ModelProto:
        return model_of(self.inputs, self.body, "y", opset, self.constants)


X1 = "float[b,c,t] x"
X2 = "float[b,c,h,w] x"
ALL = (9, 11, 13, 18, 21)
NEW = (13, 18, 21)
# A window larger than its padded input has no value in ONNX; onnxruntime computes something there.
ROOMY = tuple({"b": 2, "c": 3, "t": t, "h": t, "w": t + 2} for t in (5, 6, 7, 8, 9, 10))
W1, W2 = weights(4, 3, 3), weights(4, 3, 3, 2)


def multiples(step: int, *names: str) -> tuple[Mapping[str, int], ...]:
    """Sizes of which every one is a multiple of `step`."""
    return tuple({n: step * (1 + (i + j) % 4) for j, n in enumerate(names)} for i in range(4))


CASES: dict[str, Case] = {
    # ------------------------------------------------------------------------- convolutions
    "conv-plain": Case("float[b,3,t] x", "y = Conv (x, w)", "[b, 4, t - 2]", None, ALL, {"w": W1}),
    "conv-pads-strides": Case(
        "float[b,3,t] x",
        "y = Conv <pads = [1, 2], strides = [2]> (x, w)",
        "[b, 4, t//2 + 1]",
        None,
        ALL,
        {"w": W1},
    ),
    "conv-dilations": Case(
        "float[b,3,h,w0] x",
        "y = Conv <dilations = [2, 3], strides = [2, 3], pads = [2, 1, 2, 3]> (x, w)",
        None,
        None,
        ALL,
        {"w": W2},
    ),
    "conv-same-upper": Case(
        "float[b,3,h,w0] x",
        'y = Conv <auto_pad = "SAME_UPPER", strides = [2, 3]> (x, w)',
        "[b, 4, (h + 1)//2, (w0 + 2)//3]",
        None,
        ALL,
        {"w": W2},
    ),
    "conv-same-lower": Case(
        "float[b,3,h,w0] x",
        'y = Conv <auto_pad = "SAME_LOWER", strides = [1, 2]> (x, w)',
        None,
        None,
        ALL,
        {"w": W2},
    ),
    "conv-valid": Case(
        "float[b,3,h,w0] x",
        'y = Conv <auto_pad = "VALID", strides = [2, 2]> (x, w)',
        None,
        None,
        ALL,
        {"w": W2},
    ),
    "conv-groups": Case(
        "float[b,6,t] x",
        "y = Conv <group = 2, kernel_shape = [3]> (x, w)",
        "[b, 4, t - 2]",
        None,
        ALL,
        {"w": W1},
    ),
    "conv-nested-strides": Case(
        "float[b,3,t] x",
        "a = Conv <strides = [2], pads = [1, 1]> (x, w) b1 = Conv <strides = [2], pads = [1, 1]> "
        "(a, v) "
        "y = Conv <strides = [2], pads = [1, 1]> (b1, v)",
        "[b, 4, (t + 7)//8]",
        None,
        (11, 17),
        {"w": W1, "v": weights(4, 4, 3)},
    ),
    "conv-computed-weight": Case(
        "float[1,3,t] x, float[n,3,3] w", "y = Conv (x, w)", "[1, n, t - 2]", None, (11, 17)
    ),
    "conv-transpose": Case(
        "float[b,4,t] x",
        "y = ConvTranspose <strides = [2], pads = [1, 0], output_padding = [1], dilations = [2]> "
        "(x, w)",
        "[b, 3, 2*t + 3]",
        None,
        (11, 17),
        {"w": W1},
    ),
    "conv-transpose-groups": Case(
        "float[b,4,h,w0] x",
        "y = ConvTranspose <strides = [2, 3], group = 2> (x, w)",
        "[b, 6, 2*h + 1, 3*w0 - 1]",
        None,
        ALL,
        {"w": W2},
    ),
    "conv-transpose-same": Case(
        "float[b,4,t] x",
        'y = ConvTranspose <strides = [2], auto_pad = "SAME_UPPER"> (x, w)',
        "[b, 3, 2*t]",
        None,
        (11, 17),
        {"w": W1},
    ),
    "conv-transpose-valid": Case(
        "float[b,4,t] x",
        'y = ConvTranspose <strides = [3], auto_pad = "VALID"> (x, w)',
        None,
        None,
        (11, 17),
        {"w": W1},
    ),
    "conv-transpose-output-shape": Case(
        "float[b,4,5] x",
        "y = ConvTranspose <strides = [2], output_shape = [10]> (x, w)",
        "[b, 3, 10]",
        None,
        (11, 17),
        {"w": W1},
    ),
    # -------------------------------------------------------------------------------- pools
    "max-pool": Case(
        X2,
        "y = MaxPool <kernel_shape = [3, 2], strides = [2, 2], pads = [1, 0, 1, 0]> (x)",
        "[b, c, (h + 1)//2, w//2]",
        None,
        ALL,
        at=ROOMY,
    ),
    "max-pool-indices": Case(
        X1, "z, y = MaxPool <kernel_shape = [2]> (x)", "[b, c, t - 1]", None, ALL, at=ROOMY
    ),
    "max-pool-ceil": Case(
        X1,
        "y = MaxPool <kernel_shape = [3], strides = [2], ceil_mode = 1> (x)",
        None,
        None,
        (11, 17),
        at=ROOMY,
    ),
    "max-pool-ceil-padded": Case(
        X1,
        "y = MaxPool <kernel_shape = [2], strides = [2], pads = [1, 1], ceil_mode = 1> (x)",
        None,
        None,
        (11, 17),
    ),
    "max-pool-ceil-long-stride": Case(
        X1,
        "y = MaxPool <kernel_shape = [2], strides = [5], pads = [0, 1], ceil_mode = 1> (x)",
        None,
        None,
        (11, 17),
    ),
    "max-pool-dilated": Case(
        X1,
        "y = MaxPool <kernel_shape = [3], dilations = [2], strides = [2]> (x)",
        None,
        None,
        (11, 17, 22),
        at=ROOMY,
    ),
    "average-pool-ceil": Case(
        X2,
        "y = AveragePool <kernel_shape = [3, 3], strides = [2, 3], pads = [1, 1, 1, 1], "
        "ceil_mode = 1> (x)",
        None,
        None,
        (11, 17, 19, 22),
    ),
    "average-pool-dilated": Case(
        X1,
        "y = AveragePool <kernel_shape = [2], dilations = [2]> (x)",
        None,
        None,
        (19, 22),
        at=ROOMY,
    ),
    "average-pool-same": Case(
        X1,
        'y = AveragePool <kernel_shape = [3], strides = [2], auto_pad = "SAME_UPPER"> (x)',
        "[b, c, (t + 1)//2]",
        None,
        ALL,
    ),
    "max-pool-valid-ceil": Case(
        X1,
        'y = MaxPool <kernel_shape = [3], strides = [2], auto_pad = "VALID", ceil_mode = 1> (x)',
        None,
        None,
        (11, 17),
        at=ROOMY,
    ),
    "max-pool-same-ceil": Case(
        X1,
        'y = MaxPool <kernel_shape = [3], strides = [2], auto_pad = "SAME_LOWER", ceil_mode = 1> '
        "(x)",
        None,
        None,
        (11, 17),
    ),
    "lp-pool": Case(
        X1, "y = LpPool <kernel_shape = [3], strides = [3]> (x)", None, None, (11, 18), at=ROOMY
    ),
    "lp-pool-ceil": Case(
        X1,
        "y = LpPool <kernel_shape = [3], strides = [3], ceil_mode = 1> (x)",
        None,
        None,
        (18,),
        at=ROOMY,
    ),
    "global-average": Case(X2, "y = GlobalAveragePool (x)", "[b, c, 1, 1]", None, ALL),
    "global-max": Case(X1, "y = GlobalMaxPool (x)", "[b, c, 1]", None, ALL),
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
    # --------------------------------------------------------------------------------- views
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
    # ------------------------------------------------------------------------- cut and join
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
    # -------------------------------------------------------------------------------- resize
    "resize-scales": Case(
        X2,
        "y = Resize (x, r, s)",
        "[b, c, 2*h, w//2]",
        None,
        (11, 13, 18),
        {"r": np.zeros(0, F32), "s": np.array([1, 1, 2, 0.5], F32)},
    ),
    "resize-scales-odd": Case(
        X2,
        'y = Resize <mode = "linear"> (x, r, s)',
        None,
        None,
        (11, 13),
        {"r": np.zeros(0, F32), "s": np.array([1, 1, 1.7, 0.3], F32)},
        at=tuple({"b": 1, "c": 1, "h": h, "w": w} for h, w in ((5, 7), (8, 10), (3, 20), (10, 9))),
    ),
    "resize-10": Case(
        X2, "y = Resize (x, s)", "[b, c, 2*h, 3*w]", None, (10,), {"s": np.array([1, 1, 2, 3], F32)}
    ),
    "resize-sizes": Case(
        "float[1,2,h,w] x",
        "y = Resize (x, , , s)",
        "[1, 2, 7, 9]",
        None,
        (13, 18),
        {"s": ints(1, 2, 7, 9)},
    ),
    "resize-computed-sizes": Case(
        "float[b,2,h,w] x, float[b,2,n,m] z",
        "s = Shape (z) y = Resize (x, , , s)",
        "[b, 2, n, m]",
        None,
        (13, 18),
    ),
    "resize-axes": Case(
        X2,
        "y = Resize <axes = [3, 2]> (x, , s)",
        "[b, c, 3*h, 2*w]",
        None,
        (18, 19),
        {"s": np.array([2, 3], F32)},
    ),
    "resize-keep-aspect": Case(
        "float[1,1,h,w] x",
        'y = Resize <keep_aspect_ratio_policy = "not_larger", axes = [2, 3]> (x, , , s)',
        None,
        None,
        (18, 19),
        {"s": ints(8, 6)},
    ),
    "resize-crop": Case(
        "float[1,1,h,w] x",
        'y = Resize <coordinate_transformation_mode = "tf_crop_and_resize"> (x, r, s)',
        None,
        None,
        (11, 13),
        {"r": np.array([0, 0, 0, 0, 1, 1, 0.5, 0.5], F32), "s": np.array([1, 1, 2, 2], F32)},
    ),
    "upsample": Case(
        X2,
        "y = Upsample (x, s)",
        "[b, c, 2*h, 3*w]",
        None,
        (9,),
        {"s": np.array([1, 1, 2, 3], F32)},
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
    # --------------------------------------------------------------------- make and arithmetic
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
    # -------------------------------------------------------------------------------- bodies
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
        "{ o = Identity (k) u = Concat <axis = 0> (v, v) s = Shape (v) }>",
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


def variants() -> list[Any]:
    return [
        pytest.param(case, opset, id=f"{name}-{opset}")
        for name, case in CASES.items()
        for opset in case.opsets
    ]


@pytest.mark.parametrize(("case", "opset"), variants())
def test_every_fact_is_what_onnxruntime_computes(case: Case, opset: int) -> None:
    proto = case.proto(opset)
    sizes = list(case.at or points(symbols_of(proto)))
    held = hold(proto, sizes)
    assert held.wrong == []
    assert held.ran >= min(case.least, len(sizes))
    fact = fact_of(proto, "y")
    if case.shape is not None:
        assert fact.shape is not None
        assert str(list(fact.shape)) == case.shape
    if case.value is not None:
        assert fact.value is not None
        assert str(fact.value.tolist()) == case.value
    if case.frozen:
        for point in sizes[:3]:
            held = hold(fixed(proto, point), [{}])
            assert held.wrong == []


def fixed(proto: onnx.ModelProto, point: Mapping[str, int]) -> onnx.ModelProto:
    """The model with numbers for its dynamic dimensions."""
    out = onnx.ModelProto()
    out.CopyFrom(proto)
    for value in out.graph.input:
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_param:
                dim.dim_value = point[dim.dim_param]
    return out


# ------------------------------------------------------------------------------ functions, scopes

CALLED_TWICE = """
g (float[b,t] x, float[t,3] z) => (y, q) {
  y = my.twice (x)
  q = my.twice (z)
}
<domain: "my", opset_import: ["": 17]>
twice (v) => (o) { s = Shape (v) w = Transpose (v) o = Concat <axis = 0> (w, w) }
"""


def test_a_function_is_analysed_for_each_call() -> None:
    proto = parse(CALLED_TWICE, domains=', "my": 1')
    assert hold(proto, points(["b", "t"])).wrong == []
    assert str(fact_of(proto, "y").shape) == "(2*t, b)"
    assert str(fact_of(proto, "q").shape) == "(6, t)"


@pytest.mark.parametrize("first", ["x", "z"])
def test_new_dimensions_of_two_calls_are_not_equal(first: str) -> None:
    """NonZero inside a function: how many there are differs from call to call."""
    other = "z" if first == "x" else "x"
    proto = parse(
        f"""
        g (float[b] x, float[n] z) => (y, q) {{ y = my.f ({first}) q = my.f ({other}) }}
        <domain: "my", opset_import: ["": 17]>
        f (v) => (o) {{ o = NonZero (v) }}
        """,
        domains=', "my": 1',
    )
    facts, tensors = infer(proto)
    y, q = (facts.of(tensors[n]).shape for n in "yq")
    assert y is not None
    assert q is not None
    assert y[0] == q[0] == 1
    assert y[1] != q[1]
    feeds = {"x": np.array([1, 0, 2], F32), "z": np.array([1, 3, 1, 1, 0], F32)}
    assert hold(proto, [feeds]).wrong == []


def test_calls_of_which_nothing_is_known_have_dimensions_of_their_own() -> None:
    proto = parse(
        """
        g (float[b] x) => (y, q) {
          u = other.Op (x)
          w = other.Op (u)
          y = my.f (u)
          q = my.f (w)
        }
        <domain: "my", opset_import: ["": 17]>
        f (v) => (o) { k = Constant <value = int64[2] {-1, 2}> () o = Reshape (v, k) }
        """,
        domains=', "my": 1, "other": 1',
    )
    facts, tensors = infer(proto)
    y, q = (facts.of(tensors[n]).shape for n in "yq")
    assert y is not None
    assert q is not None
    assert y[1] == q[1] == 2
    assert y[0] != q[0]


@pytest.mark.parametrize(
    ("body", "name"),
    [
        ("y = Cast <to = 7> (u)", "INT64"),
        ("y = Less (u, u)", "BOOL"),
        ("y = Not (u)", "BOOL"),
        ("y = MatMul (u, x)", "FLOAT"),
        ("y = Where (u, u, x)", "FLOAT"),
        ("v, y = TopK (u, n)", "INT64"),
        ("y = NonZero (u)", "INT64"),
        ("y = Gather (u, n)", "UNDEFINED"),
        ("y = Relu (u)", "UNDEFINED"),
    ],
)
def test_an_element_type_follows_although_an_operand_has_none(body: str, name: str) -> None:
    text = f"g (float[b,3] x, int64[1] n) => (y) {{ u = my.own (x) {body} }}"
    found = fact_of(parse(text, domains=', "my": 1'), "y")
    assert onnx.TensorProto.DataType.Name(found.dtype) == name
    assert found.shape is None


def test_what_one_mask_selects_is_equally_long() -> None:
    proto = parse(
        "g (float[4,t] x, float[4] z, bool[4] c, bool[4] d) => (y, a, n, b) { "
        "y = Compress <axis = 0> (x, c) "
        "a = Compress <axis = 0> (z, c) n = NonZero (c) b = Compress <axis = 0> (z, d) }"
    )
    lengths = {name: fact_of(proto, name).shape for name in "yanb"}
    assert {name: str(shape) for name, shape in lengths.items()} == {
        "y": "(c.held, t)",
        "a": "(c.held,)",
        "n": "(1, c.held)",
        "b": "(d.held,)",
    }


def test_a_window_that_begins_in_the_padding_is_no_window_and_onnx_counts_it() -> None:
    pool = "y = MaxPool <kernel_shape = [2], strides = [2], pads = [1, 1], ceil_mode = 1> (x)"
    found = fact_of(parse(f"g (float[b,3,1] x) => (y) {{ {pool} }}"), "y")
    assert str(found.shape) == "(b, 3, y.2)"  # 1, but no runtime would load what rests on it
    assert str(fact_of(parse(f"g (float[b,3,4] x) => (y) {{ {pool} }}"), "y").shape) == "(b, 3, 3)"


def test_a_concat_has_the_rank_and_the_other_dimensions_of_any_operand() -> None:
    text = "g (float[b,3] x) => (y) { u = my.own (x) y = Concat <axis = 0> (u, x) }"
    found = fact_of(parse(text, domains=', "my": 1'), "y")
    assert found.dtype == onnx.TensorProto.FLOAT
    assert found.shape is not None
    assert (found.rank, found.shape[1]) == (2, 3)
    assert str(found.shape[0]) == "y.0"


def test_a_call_without_facts_knows_nothing_of_the_one_before() -> None:
    proto = parse(
        """
        g (float[2,3] x, float[6] s, int64[k] n) => (y, q) {
          u = Reshape (s, n)
          y = my.f (x)
          q = my.f (u)
        }
        <domain: "my", opset_import: ["": 17]>
        f (v) => (o) { a = Relu (v) o = Shape (a) }
        """,
        domains=', "my": 1',
    )
    feeds = {"x": np.ones((2, 3), F32), "s": np.ones(6, F32), "n": ints(3, 1, 2)}
    assert hold(proto, [feeds]).wrong == []


def test_functions_that_call_functions() -> None:
    """`inner` stands first in the file, and is called from `outer` with other shapes."""
    proto = parse(
        """
        g (float[b,t] x) => (y, q) { y = my.inner (x) q = my.outer (x) }
        <domain: "my", opset_import: ["": 17, "my": 1]>
        inner (v) => (o) { s = Shape (v) o = Identity (s) }
        <domain: "my", opset_import: ["": 17, "my": 1]>
        outer (v) => (o) { a = Transpose (v) c = Concat <axis = 0> (a, a) o = my.inner (c) }
        """,
        domains=', "my": 1',
    )
    assert hold(proto, points(["b", "t"])).wrong == []


def test_attributes_that_a_function_hands_down_are_not_guessed() -> None:
    proto = parse(
        """
        g (float[b,t] x) => (y, q, u) {
          y = my.f <keep: int = 0, to = 7, axis = 1> (x)
          q = my.f <keep: int = 1, to = 1, axis = 0> (x)
          u = my.h <axes = [0]> (x)
        }
        <domain: "my", opset_import: ["": 17]>
        f <keep, to, axis> (v) => (o) {
          c = Cast <to: int = @to> (v)
          s = Softmax <axis: int = @axis> (v)
          m = ReduceMax <keepdims: int = @keep, axes = [1]> (v)
          n = Concat <axis: int = @axis> (v, v)
          o = Shape (m)
        }
        <domain: "my", opset_import: ["": 17]>
        h <axes> (v) => (o) { o = ReduceMean <axes: ints = @axes> (v) }
        """,
        domains=', "my": 1',
    )
    assert hold(proto, points(["b", "t"])).wrong == []


def test_two_bodies_may_use_the_same_names() -> None:
    body = (
        "<then_branch = p () => (q) {{ q = NonZero ({0}) }}, "
        "else_branch = n () => (q) {{ q = NonZero ({0}) }}>"
    )
    proto = parse(
        "g (bool k, float[b] x, float[n] z) => (y, a) { y = If (k) "
        + body.format("x")
        + " a = If (k) "
        + body.format("z")
        + "}"
    )
    facts, tensors = infer(proto)
    y, a = facts.of(tensors["y"]).shape, facts.of(tensors["a"]).shape
    assert y is not None
    assert a is not None
    assert len(y) == len(a) == 2
    assert y[1] != a[1]


def test_a_declared_dimension_may_have_the_name_of_a_new_one() -> None:
    proto = model_of('float["y.1"] x, float[b] z', "y = NonZero (z)", "y")
    assert hold(proto, [{"x": np.ones(9, F32), "z": np.array([1, 0, 1], F32)}]).wrong == []


# ----------------------------------------------------------------------- what is an axiom, what not


def test_claims_of_the_file_are_not_believed() -> None:
    """value_info and output shapes that exporters left stale."""
    proto = model_of("float[b,c,t] x", "a = Relu (x) y = Transpose (a)", "y")
    proto.graph.value_info.append(onnx.helper.make_tensor_value_info("a", 1, [1, 2, 3]))
    del proto.graph.output[:]
    proto.graph.output.append(onnx.helper.make_tensor_value_info("y", 1, [3, 2, 1]))
    assert str(fact_of(proto, "a").shape) == "(b, c, t)"
    assert str(fact_of(proto, "y").shape) == "(t, c, b)"


def test_an_overridable_initializer_has_no_known_value() -> None:
    proto = model_of(
        "float[6] x, int64[2] s", "y = Reshape (x, s)", "y", constants={"s": ints(2, 3)}
    )
    fact = fact_of(proto, "y")
    assert fact.rank == 2
    assert all(not isinstance(d, int) for d in fact.shape or ())
    proto.producer_name = "pytorch"
    assert fact_of(proto, "y").shape == (2, 3)


def test_an_input_without_a_shape() -> None:
    proto = parse("g (float x0, float[] x1) => (y) { y = Relu (x1) }")
    proto.graph.input[1].type.tensor_type.ClearField("shape")
    assert fact_of(proto, "y").shape is None
    assert fact_of(proto, "y").dtype == 1


def test_dimensions_without_a_name_are_symbols_of_their_own() -> None:
    proto = model_of("float[?,?] x, float[?,3] z", "y = Add (x, z) q = Relu (x)", "y q")
    assert str(fact_of(proto, "q").shape) == "(x.0, x.1)"
    assert str(fact_of(proto, "y").shape) == "(y.0, 3)"


def test_shapes_and_assumptions_of_the_user() -> None:
    proto = model_of(
        "float[b,t] x",
        "y = MaxPool <kernel_shape = [2], strides = [2]> (q) q = Unsqueeze (x, k)",
        "y",
        constants={"k": ints(0)},
    )
    fixed_shape = fact_of(proto, "y", fixed={"x": (3, "t")})
    assert str(fixed_shape.shape) == "(1, 3, t//2)"
    options = {"assumptions": {"t": symbol("t/2") * 2}}
    assert str(fact_of(proto, "y", **options).shape) == "(1, b, t/2)"
    assert hold(proto, [{"b": 2, "t": 4}, {"b": 3, "t": 8}], **options).wrong == []


@pytest.mark.parametrize(
    ("work", "shape"),
    [
        ("u = Relu (v)", "(b, t)"),
        ("n = Identity (v) u = Add (n, x)", "(b, t)"),
        ("u = Concat <axis = 0> (v, v)", "(y.0, y.1)"),
        ("u = Transpose (v)", "(y.0, y.1)"),
        ("a = Constant <value = int64[1] {0}> () u = Unsqueeze (v, a)", "None"),
    ],
)
def test_a_loop_carries_on_what_its_body_is_shown_to_keep(work: str, shape: str) -> None:
    proto = parse(
        "g (float[b,t] x, int64 count) => (float[p,q] y) { y = Loop (count, , x) <body = "
        "l (int64 i, bool k, float[c,d] v) => (bool o, float[e,f] u) "
        f"{{ o = Identity (k) {work} }}> }}"
    )
    facts, tensors = infer(proto)
    assert str(facts.of(tensors["y"]).shape) == shape
    assert facts.of(tensors["y"]).dtype == 1


def test_what_two_carried_values_keep_is_shown_of_both_at_once() -> None:
    """Each turn they change places, and the second is of another size."""
    for second, shape in (("x", "(b, t)"), ("z", "(p.0, p.1)")):
        proto = parse(
            "g (float[b,t] x, float[b,s] z, int64 count) => (float[k,l] p, float[m,n] q) "
            f"{{ p, q = Loop (count, , x, {second}) <body = "
            "l (int64 i, bool k, float[c,d] v, float[e,f] w) "
            "=> (bool o, float[r,s] u, float[t,s] a) "
            "{ o = Identity (k) u = Relu (w) a = Neg (v) }> }"
        )
        facts, tensors = infer(proto)
        assert str(facts.of(tensors["p"]).shape) == shape


def test_a_body_reads_facts_of_outer_values() -> None:
    proto = parse(
        "g (bool k, float[b,t] x) => (y) { a = Transpose (x) "
        "y = If (k) <then_branch = p () => (q) { q = Relu (a) }, else_branch = n () => (r) { r = "
        "Neg (a) }> }"
    )
    assert str(fact_of(proto, "y").shape) == "(t, b)"


def test_long_values_are_no_shape_arithmetic() -> None:
    for body, constants in (
        ("y = ConstantOfShape (s)", {"s": ints(100_000, 100_000)}),
        ("y = Range (o, e, p)", {"o": np.int64(0), "e": np.int64(10**9), "p": np.int64(1)}),
        ("y = Tile (o, s)", {"o": np.zeros((1, 1), np.int64), "s": ints(100_000, 100_000)}),
        ("y = Expand (o, s)", {"o": np.zeros((1, 1), np.int64), "s": ints(100_000, 100_000)}),
    ):
        fact = fact_of(model_of("float x", body, "y", constants=constants), "y")
        assert fact.value is None
        assert dims.product(fact.shape or ()) in (10**10, 10**9)


# -------------------------------------------------------------------------- onnx's own inference


@pytest.mark.parametrize(("case", "opset"), variants())
def test_onnx_says_nothing_else(case: Case, opset: int) -> None:
    if case is CASES["slice-no-axes"] and opset == 10:
        pytest.skip("onnx takes a Slice of opset 10 without axes for the whole operand")
    proto = case.proto(opset)
    inferred = onnx.shape_inference.infer_shapes(proto, data_prop=True)
    facts, tensors = infer(proto)
    for value in (*inferred.graph.value_info, *inferred.graph.output):
        fact, tensor = facts.of(tensors[value.name]), value.type.tensor_type
        if fact.dtype and tensor.elem_type:
            assert fact.dtype == tensor.elem_type
        if fact.shape is None or not tensor.HasField("shape"):
            continue
        assert len(fact.shape) == len(tensor.shape.dim), value.name
        for dim, theirs in zip(fact.shape, tensor.shape.dim, strict=True):
            if theirs.HasField("dim_value"):
                assert dims.equal(dim, theirs.dim_value) is not False, value.name
            elif theirs.dim_param in symbols_of(proto) and dims.symbols(dim) <= set(
                symbols_of(proto)
            ):
                assert str(dim) == theirs.dim_param, value.name


# ------------------------------------------------------------------------------- drawn at random

CHAIN_POINTS = tuple(
    dict(zip("bct", sizes, strict=True)) for sizes in ((5, 2, 3), (2, 4, 8), (3, 3, 7), (1, 6, 1))
)


def _hold_chain(proto: onnx.ModelProto) -> None:
    try:
        held = hold(proto, CHAIN_POINTS)
    except NotRunnable:
        reject()
    assert held.wrong == []


@settings(max_examples=120, suppress_health_check=[HealthCheck.filter_too_much])
@given(chains())
def test_facts_of_graphs_drawn_at_random(proto: onnx.ModelProto) -> None:
    _hold_chain(proto)


@pytest.mark.slow
@settings(max_examples=2000, suppress_health_check=[HealthCheck.filter_too_much])
@given(chains(most=14))
def test_facts_of_many_graphs_drawn_at_random(proto: onnx.ModelProto) -> None:
    _hold_chain(proto)
