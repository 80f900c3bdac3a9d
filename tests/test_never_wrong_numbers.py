"""What simplifiers get wrong of numbers and sizes: casts, zeros, NaNs, and what wraps."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from never_wrong import F32, INF, NAN, SPECIAL, given, hold, ints, noise, ops
from onnx import TensorProto, helper
from truth import parse


@pytest.mark.parametrize("source", ["float", "double", "int64", "int32", "uint8"])
@pytest.mark.parametrize(
    ("between", "target"), list(itertools.permutations([1, 6, 7, 10, 3, 2, 9], 2))
)
def test_a_cast_that_narrows_is_no_cast_of_nothing(source: str, between: int, target: int) -> None:
    proto = parse(
        f"g ({source}[N] x) => ({name_of(target)}[N] y) "
        f"{{ a = Cast <to = {between}> (x) b = Cast <to = {target}> (a) y = Identity (b) }}"
    )
    values = [0, 1, 3, 100] if source == "uint8" else [0, 1, -1, 3, 100]
    if source in ("float", "double"):
        values += [0.5, 0.1, 1.75]
    kind = np.dtype({"float": "f4", "double": "f8"}.get(source, source))
    if -1 in values and {between, target} & {2}:
        values.remove(-1)  # what is negative has no unsigned number
    hold(proto, {"x": np.array(values, kind)})


def name_of(dtype: int) -> str:
    names = {1: "float", 2: "uint8", 3: "int8", 6: "int32", 7: "int64", 9: "bool", 10: "float16"}
    return names[dtype]


@pytest.mark.parametrize(
    ("start", "end", "axis", "step"),
    [
        (-1, -(2**63), 0, -1),
        (2**63 - 1, -(2**63), 1, -2),
        (3, 0, 0, -1),
        (-2, -5, 1, -1),
        (0, 2**63 - 1, 0, 2),
        (5, 5, 1, 1),
        (2**31 - 1, -(2**31), -1, -3),
        (0, -1, 0, -1),
        (2, 2**63 - 1, 0, -1),  # to the end, whatever the direction, to onnxruntime
        (-1, 2**31 - 1, 1, -2),
    ],
)
@pytest.mark.parametrize("shape", ["N,4", "4,5", "N,M"])
def test_slices_backwards(start: int, end: int, axis: int, step: int, shape: str) -> None:
    proto = given(
        parse(
            f"g (float[{shape}] x) => (float[a,b] y, float[c,d] z, int64[2] s) "
            "{ i = Identity (x) y = Slice (i, p, q, r, t) v = Slice (x, u, w, r) "
            "z = Slice (v, p, q, r, t) s = Shape (y) }"
        ),
        p=ints(start), q=ints(end), r=ints(axis), t=ints(step), u=ints(1), w=ints(4),
    )  # fmt: skip
    sizes = [(4, 5)] if shape == "4,5" else [(5, 4), (2, 4), (1, 4)]
    hold(proto, *({"x": noise(*size)} for size in sizes))


@pytest.mark.parametrize(
    ("shape", "target", "sizes"),
    [
        ("0,3", [3, 0], [(0, 3)]),
        ("0,3", [0, 7], [(0, 3)]),
        ("N,3", [0, 3], [(0, 3)]),
        ("N,3", [0, 0, 5], [(0, 3)]),
    ],
)
def test_a_reshape_that_takes_zero_for_zero(
    shape: str, target: list[int], sizes: list[tuple[int, ...]]
) -> None:
    names = ",".join("abc"[: len(target)])
    proto = given(
        parse(
            f"g (float[{shape}] x) => (float[{names}] y, float[k] z) {{ i = Identity (x) "
            "y = Reshape <allowzero = 1> (i, t) z = Reshape (y, f) }"
        ),
        t=ints(*target),
        f=ints(-1),
    )
    hold(proto, *({"x": noise(*size)} for size in sizes))


def test_a_reshape_that_copies_a_dim_in_a_chain() -> None:
    proto = given(
        parse(
            "g (float[N,2,M] x) => (float[a,b] y, float[c,d,e] z) { i = Reshape (x, s) "
            "y = Reshape (i, t) z = Reshape (y, u) }"
        ),
        s=ints(0, 2, -1), t=ints(0, -1), u=ints(-1, 2, 1),
    )  # fmt: skip
    hold(proto, *({"x": noise(*size)} for size in ((3, 2, 5), (1, 2, 1), (2, 2, 2))))


def test_a_where_with_infinities_is_no_sum() -> None:
    proto = given(
        parse(
            "g (float[N,3] x, bool[N,3] m) => (float[N,3] y, float[N,3] z, float[N,3] w) "
            "{ a = Where (m, x, low) y = Softmax (a) z = Where (m, low, high) "
            "b = Where (t, x, low) w = Add (b, low) }"
        ),
        low=-INF,
        high=INF,
        t=np.array(True),
    )
    masks = np.array([[True, False, True], [False, False, False]])
    hold(proto, {"x": noise(2, 3), "m": masks}, {"x": SPECIAL, "m": masks})


def test_empty_tensors_and_dims_of_0() -> None:
    proto = given(
        parse(
            "g (float[N,3] x, float[0,3] e) "
            "=> (float[a,3] y, float[b,3] z, float[3] s, int64[2] h, float[c] k) { "
            "y = Concat <axis = 0> (x, e) i = Concat <axis = 0> (e, e) "
            "z = Concat <axis = 0> (i, v, e) s = ReduceSum <keepdims = 0> (e, ax) h = Shape (i) "
            "j = ConstantOfShape (n) k = Concat <axis = 0> (j, j) }"
        ),
        v=np.zeros((0, 3), F32),
        ax=ints(0),
        n=ints(0),
    )
    hold(proto, *({"x": noise(n, 3), "e": noise(0, 3)} for n in (0, 1, 4)))


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint8, np.int8])
def test_arithmetic_on_shapes_wraps_where_the_type_does(dtype: Any) -> None:
    limits = np.iinfo(dtype)
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    name = TensorProto.DataType.Name(kind).lower()
    proto = given(
        parse(
            f"g (float[2,N] x) => ({name}[2] p, {name}[2] q, {name}[2] r, {name}[2] d) {{ "
            f"s = Shape (x) c = Cast <to = {kind}> (s) a = Mul (c, big) p = Add (a, big) "
            "k = Add (big, big) q = Add (c, k) m = Mul (big, big) r = Sub (m, c) d = Sub (low, c) }"
        ),
        big=np.array([limits.max, limits.max - 1], dtype),
        low=np.array([limits.min, limits.min + 1], dtype),
    )
    if dtype in (np.uint8, np.int8):  # onnxruntime has no such arithmetic
        hold(proto, {"x": noise(2, 3)}, {"x": noise(2, 1)}, witness=True)
    else:
        hold(proto, {"x": noise(2, 3)}, {"x": noise(2, 1)})


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_comparisons_of_sizes_that_wrap_are_not_decided(dtype: Any) -> None:
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    name = TensorProto.DataType.Name(kind).lower()
    proto = given(
        parse(
            f"g (float[N,T] x) => ({name}[2] y, bool[2] z, {name}[2] w) {{ "
            f"s = Shape (x) c = Cast <to = {kind}> (s) a = Add (c, big) y = Min (a, less) "
            "m = Mul (c, big) z = Less (m, less) k = Sub (less, m) w = Max (k, less) }"
        ),
        big=np.array(np.iinfo(dtype).max, dtype),
        less=np.array(-3, dtype),
    )
    hold(proto, {"x": noise(2, 3)}, {"x": noise(5, 1)})


def test_a_size_that_is_picked_keeps_its_type() -> None:
    proto = given(
        parse(
            "g (float[N,T,4] x, int32 q) => (int32 y) "
            "{ s = Shape (x) c = Cast <to = 6> (s) d = Gather (c, i) y = Mul (d, q) }"
        ),
        i=np.array(2),
    )
    after = hold(proto, {"x": noise(2, 3, 4), "q": np.array(3, np.int32)})
    assert [node.op_type for node in after.graph.node] == ["Mul"]


def test_a_cast_of_a_size_that_does_not_fit_wraps() -> None:
    proto = given(
        parse(
            "g (float[300,N] x) => (uint8[2] y, int64[2] z) "
            "{ s = Shape (x) y = Cast <to = 2> (s) z = Cast <to = 7> (y) }"
        )
    )
    hold(proto, {"x": noise(300, 257)}, {"x": noise(300, 3)})


def test_signed_zeros_and_nans_in_sums_and_factors() -> None:
    proto = given(
        parse(
            "g (float[2,3] x) => (float[2,3] a, float[2,3] b, float[2,3] c, float[2,3] d, "
            "float[2,3] e, float[2,3] f, float[2,3] h, float[2,3] i) { "
            "p = Add (x, zero) a = Reciprocal (p) q = Add (x, minus) b = Reciprocal (q) "
            "r = Sub (x, zero) c = Reciprocal (r) s = Sub (x, minus) d = Reciprocal (s) "
            "e = Mul (x, zero) t = Mul (x, nought) f = Reciprocal (t) "
            "u = Mul (x, one) h = Reciprocal (u) v = Div (x, one) i = Reciprocal (v) }"
        ),
        zero=F32(0), minus=F32(-0.0), nought=F32(-0.0), one=F32(1),
    )  # fmt: skip
    hold(proto, {"x": SPECIAL})


def test_constants_that_differ_in_the_sign_of_a_zero_are_not_merged() -> None:
    proto = given(
        parse(
            "g (float[N] x) => (float[N] p, float[N] q, float[N] r, float[1] s, float[N] t) "
            "{ a = Div (x, k) b = Div (x, l) p = Neg (a) q = Neg (b) c = Div (x, m) r = Neg (c) "
            "d = Div (k, l) s = Neg (d) e = Div (x, n) t = Neg (e) }"
        ),
        k=np.array([0.0], F32),
        l=np.array([-0.0], F32),
        m=np.array([NAN], F32),
        n=np.array([NAN], F32),
    )
    after = hold(proto, {"x": np.array([1, -1, 0], F32)})
    assert ops(after.graph).count("Div") == 3


def test_attributes_that_differ_in_the_sign_of_a_zero_are_not_merged() -> None:
    proto = parse(
        "g (float[N] x) => (float[N] p, float[N] q) "
        "{ a = LeakyRelu <alpha = 0.0> (x) b = LeakyRelu <alpha = -0.0> (x) "
        "p = Reciprocal (a) q = Reciprocal (b) }"
    )
    assert math.copysign(1, proto.graph.node[1].attribute[0].f) == -1
    hold(proto, {"x": np.array([1, -1, 0], F32)})


def test_maxima_and_comparisons_of_nans_are_folded_as_they_run() -> None:
    proto = given(
        parse(
            "g (float[2,3] x) "
            "=> (float[2,3] a, float[2,3] b, bool[2,3] c, float[2,3] d, bool[2,3] e) "
            "{ p = Max (k, z) a = Add (p, x) q = Min (k, z) b = Add (q, x) c = Equal (k, k) "
            "r = Relu (k) d = Add (r, x) e = IsNaN (k) }"
        ),
        k=SPECIAL,
        z=F32(0),
    )
    hold(proto, {"x": noise(2, 3)})


@pytest.mark.parametrize("equation", ["bi,bi->bi", "bi,bi->b", "bi,ji->bj"])
def test_a_letter_of_an_einsum_may_be_of_one_in_an_operand(equation: str) -> None:
    """As numpy has it: of 1 and of many it is many, whichever operand comes first."""
    text = f"""g (float[N,3] a, float[M,3] x) => (int64[r] n) {{
        y = Einsum <equation = "{equation}"> (a, x) n = Shape (y) }}"""
    for sizes in ((1, 4), (4, 1), (1, 1)):
        hold(parse(text), {"a": noise(sizes[0], 3), "x": noise(sizes[1], 3)})
    fixed = text.replace("float[N,3] a", "float[1,3] a")
    hold(parse(fixed), {"a": noise(1, 3), "x": noise(4, 3)})


@pytest.mark.parametrize("equation", ["...ij,...jk->...ik", "...ij,...jk"])
def test_an_axis_of_an_ellipsis_may_be_of_one_in_an_operand(equation: str) -> None:
    text = f"""g (float[N,2,3] a, float[M,3,4] x) => (int64[r] n, float[b,c,d] y) {{
        y = Einsum <equation = "{equation}"> (a, x) n = Shape (y) }}"""
    for sizes in ((1, 4), (4, 1), (1, 1)):
        hold(parse(text), {"a": noise(sizes[0], 2, 3), "x": noise(sizes[1], 3, 4)})
    fixed = text.replace("float[N,2,3] a", "float[1,2,3] a")
    hold(parse(fixed), {"a": noise(1, 2, 3), "x": noise(4, 3, 4)})


@pytest.mark.parametrize("op", ["MaxPool", "AveragePool"])
@pytest.mark.parametrize("length", [2, 5])
def test_a_window_larger_than_the_input_is_left_to_the_runtime(op: str, length: int) -> None:
    """By ONNX's formula there is none, and onnxruntime rounds to 0 and has one."""
    text = f"""g (float[1,1,{length}] x) => (int64[r] n, float[a,b,c] y) {{
        y = {op} <kernel_shape = [6], strides = [6]> (x) n = Shape (y) }}"""
    hold(parse(text), {"x": noise(1, 1, length)})


@pytest.mark.parametrize(
    "op", ["Squeeze (x, s)", "Unsqueeze (x, s)", "ReduceSum <keepdims = 0> (x, s)"]
)
def test_an_axis_that_a_size_decides_is_not_taken_for_none(op: str) -> None:
    text = f"""g (float[1,3,1] x, float[N] z) => (int64[p] w)
        {{ s = Shape (z) y = {op} w = Shape (y) }}"""
    hold(parse(text), {"x": noise(1, 3, 1), "z": noise(2)}, {"x": noise(1, 3, 1), "z": noise(0)})


def test_of_one_number_nonzero_has_a_row_or_none() -> None:
    """onnx says none and onnxruntime has one: how many there are is left to the runtime."""
    text = """g (float x) => (int64[a] w, int64[2] s)
        { p = NonZero (x) w = Shape (p) t = Transpose (p) s = Shape (t) }"""
    hold(parse(text), {"x": np.array(0, F32)}, {"x": np.array(3, F32)})


@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
@pytest.mark.parametrize("padding", ["zeros", "border"])
def test_a_grid_that_is_no_number_ends_no_run(mode: str, padding: str) -> None:
    text = f"""g (float[N,1,3,4] x, float[N,2,3,2] grid) => (float[N,1,2,3] y) {{
        y = GridSample <mode = "{mode}", padding_mode = "{padding}"> (x, grid) }}"""
    grid = noise(2, 2, 3, 2)
    grid[:, 0] = [[NAN, 0.1], [INF, 0.2], [-INF, NAN]]
    hold(parse(text), {"x": noise(2, 1, 3, 4), "grid": grid}, rounding=True, recipe="grid-forms")
