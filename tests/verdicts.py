"""Models whose verdicts are asked for, and the sizes that a verdict tells of."""

from __future__ import annotations

import numpy as np
import onnx

from surgeon.verify import Verdict

HEADER = '<ir_version: 8, opset_import: ["": 17, "org.pytorch.aten": 1, "my": 1]>\n'
F32 = np.float32


def parse(text: str) -> onnx.ModelProto:
    return onnx.parser.parse_model(HEADER + text)


def sizes_of(verdict: Verdict) -> list[tuple[int, ...]]:
    return sorted({tuple(c.sizes.values()) for c in verdict.comparisons})


SCALE = "g (float[batch,3] x) => (float[batch,3] y) <float k = {2.0}> { y = Mul(x, k) }"


def frozen() -> tuple[onnx.ModelProto, onnx.ModelProto]:
    """A convolution whose groups tracing froze at a batch of 2, and one that takes any batch."""
    before = parse(
        """g (float[batch,4,time] x, float[batch,2,4,3] w) => (float[batch,2,t] y)
        <int64[3] rows = {-1, 4, 3}, int64[3] back = {-1, 2, 0}, int64[1] one = {1},
         int64[1] none = {0}, int64 groups = {2}, bool no = {0}, int64[1] lead = {1},
         int64[1] minus = {-1}> {
            s = Shape(x)
            three = Constant <value = int64[1] {2}> ()
            end = Constant <value = int64[1] {3}> ()
            t = Slice(s, three, end)
            to = Concat <axis = 0> (lead, minus, t)
            flat = Reshape(x, to)
            k = Reshape(w, rows)
            c = org.pytorch.aten.ATen <operator = "_convolution", overload_name = "">
                (flat, k, , one, none, one, no, none, groups, no, no, no, no)
            cs = Shape(c)
            ct = Slice(cs, three, end)
            two = Constant <value = int64[1] {2}> ()
            out = Concat <axis = 0> (minus, two, ct)
            y = Reshape(c, out)
        }"""
    )
    # The same by Einsum over the three shifted views: any batch.
    after = parse(
        """g (float[batch,4,time] x, float[batch,2,4,3] w) => (float[batch,2,t] y) {
            i0 = Constant <value = int64[1] {0}> ()
            i1 = Constant <value = int64[1] {1}> ()
            i2 = Constant <value = int64[1] {2}> ()
            m2 = Constant <value = int64[1] {-2}> ()
            m1 = Constant <value = int64[1] {-1}> ()
            big = Constant <value = int64[1] {1000000}> ()
            x0 = Slice(x, i0, m2, i2)
            x1 = Slice(x, i1, m1, i2)
            x2 = Slice(x, i2, big, i2)
            w0, w1, w2 = Split <axis = 3> (w)
            v0 = Squeeze(w0, m1)
            v1 = Squeeze(w1, m1)
            v2 = Squeeze(w2, m1)
            p0 = MatMul(v0, x0)
            p1 = MatMul(v1, x1)
            p2 = MatMul(v2, x2)
            s = Add(p0, p1)
            y = Add(s, p2)
        }"""
    )
    return before, after
