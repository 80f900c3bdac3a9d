"""What simplifiers get wrong of types: those that numpy lacks, and those that no rule reads."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import onnx
import pytest
from never_wrong import F32, given, hold, ints, noise
from onnx import TensorProto, helper, numpy_helper
from truth import parse

import surgeon

ODD = {
    "int4": (TensorProto.INT4, np.array([1, -2, 7], ml_dtypes.int4)),
    "uint4": (TensorProto.UINT4, np.array([1, 2, 15], ml_dtypes.uint4)),
    "float4": (TensorProto.FLOAT4E2M1, np.array([1.5, -2, 6], ml_dtypes.float4_e2m1fn)),
    "float8e4m3": (TensorProto.FLOAT8E4M3FN, np.array([1.5, -2, 448], ml_dtypes.float8_e4m3fn)),
    "float8e5m2": (TensorProto.FLOAT8E5M2, np.array([1.5, -2, 5], ml_dtypes.float8_e5m2)),
    "bfloat16": (TensorProto.BFLOAT16, np.array([1.5, -2, 3], ml_dtypes.bfloat16)),
    "complex64": (TensorProto.COMPLEX64, np.array([1 + 2j, -1j, 0], np.complex64)),
    "string": (TensorProto.STRING, np.array(["a", "", "ö"], object)),
}


@pytest.mark.parametrize("kind", ODD)
def test_types_that_numpy_has_not(kind: str) -> None:
    """Equal constants, moves of constants, casts to and fro: the values stay what they are."""
    dtype, array = ODD[kind]
    nodes = [
        helper.make_node("Identity", ["x"], ["i"]),
        helper.make_node("Reshape", ["i", "one"], ["a"]),
        helper.make_node("Reshape", ["a", "flat"], ["b"]),
        helper.make_node("Concat", ["b", "k"], ["c"], axis=0),
        helper.make_node("Transpose", ["k"], ["t"], perm=[0]),
        helper.make_node("Concat", ["c", "t"], ["y"], axis=0),
        helper.make_node("Identity", ["k"], ["z"]),
    ]
    constants = [
        numpy_helper.from_array(array, "k"),
        numpy_helper.from_array(ints(1, -1), "one"),
        numpy_helper.from_array(ints(-1), "flat"),
    ]
    assert constants[0].data_type == dtype
    values = [
        helper.make_tensor_value_info(n, dtype, [s]) for n, s in (("x", 3), ("y", 9), ("z", 3))
    ]
    graph = helper.make_graph(nodes, "g", values[:1], values[1:], constants)
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=11)
    onnx.checker.check_model(proto)
    after = hold(proto, {"x": array[::-1].copy()}, witness=True)
    onnx.checker.check_model(after)
    assert constants[0] in list(after.graph.initializer)


@pytest.mark.parametrize("kind", ODD)
def test_casts_of_types_that_numpy_has_not(kind: str) -> None:
    if kind in ("string", "complex64"):
        pytest.skip("a Cast of strings is text, and complex numbers have none")
    dtype, _ = ODD[kind]
    proto = given(
        parse(
            f"g (float[3] x) => (float[3] y, float[3] z) {{ a = Cast <to = {dtype}> (x) "
            f"b = Cast <to = 1> (a) y = Identity (b) c = Cast <to = {dtype}> (k) "
            "d = Cast <to = 1> (c) z = Add (d, b) }",
            23,
            ir=11,
        ),
        k=np.array([0.3, -1.7, 2.26], F32),
    )
    hold(proto, {"x": np.array([1.3, -0.7, 5.1], F32)}, witness=True)


def test_sequences_optionals_and_maps_go_round_untouched() -> None:
    proto = parse(
        "g (float[N] x) => (seq(float[N]) q, float[N] y, int64 n) "
        "{ i = Identity (x) a = Neg (i) e = SequenceEmpty <dtype = 1> () "
        "p = SequenceInsert (e, a) q = SequenceInsert (p, i) z = Constant <value_int = 0> () "
        "y = SequenceAt (q, z) n = SequenceLength (q) }"
    )
    hold(proto, {"x": noise(3)})
    proto = parse(
        "g (float[N] x) => (float[N] y, bool h) "
        "{ i = Identity (x) o = Optional (i) h = OptionalHasElement (o) "
        "y = OptionalGetElement (o) }",
        18,
    )
    hold(proto, {"x": noise(3)})


@pytest.mark.parametrize("kind", ["optional", "map", "sparse", "seq of optional"])
def test_values_that_no_rule_reads_keep_their_types(kind: str) -> None:
    proto = parse("g (float[N] x) => (float[N] y) { a = Identity (x) b = Neg (a) y = Neg (b) }")
    value = proto.graph.input.add(name="o")
    if kind == "optional":
        value.type.optional_type.elem_type.sequence_type.elem_type.tensor_type.elem_type = 1
    elif kind == "map":
        value.type.map_type.key_type = TensorProto.STRING
        value.type.map_type.value_type.tensor_type.elem_type = 1
    elif kind == "sparse":
        value.type.sparse_tensor_type.elem_type = 1
    else:
        value.type.sequence_type.elem_type.optional_type.elem_type.tensor_type.elem_type = 1
    after = surgeon.apply(proto, "clean", verify=False).model.to_proto()
    assert list(after.graph.input) == list(proto.graph.input)
    assert list(after.graph.output) == list(proto.graph.output)


@pytest.mark.parametrize("opset", [13, 17])
def test_an_encoding_has_the_type_of_its_values(opset: int) -> None:
    """The indices of OneHot are integers, and say nothing of what it makes."""
    text = """g (int64[n] x) => (int64[n,3] y, float[m,3] z)
        <int64 three = {3}, float[2] v = {0.3, 1.7}, int64[0] none = {}> {
        a = OneHot (x, three, v) y = Cast <to = 7> (a)
        z = OneHot (none, three, v) }"""
    hold(parse(text, opset), {"x": np.array([2, 0, 1, 2])})


@pytest.mark.parametrize(
    ("norm", "opset"),
    [("RMSNormalization", 23), ("SimplifiedLayerNormalization", 17), ("LayerNormalization", 13)],
)
def test_a_norm_has_the_type_of_its_scale(norm: str, opset: int) -> None:
    """Of ONNX's own RMSNormalization, and of those that onnxruntime has below the opset of each."""
    text = f"""g (float[n,4] x, float16[4] s) => (float[n,4] y) {{
        a = {norm} (x, s) y = Cast <to = 1> (a) }}"""
    after = surgeon.apply(parse(text, opset, 10), "clean", verify=False, check=False)
    assert [node.op for node in after.model.graph.nodes][-1] == "Cast"
