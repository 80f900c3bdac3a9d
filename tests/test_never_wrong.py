"""What simplifiers get wrong: a small model for each, which `clean` leaves as right as it was.

The result computes the same to the bit, or within rounding where a rule may round, and declares the
inputs and outputs of the original, or it is the original.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from truth import parse

import surgeon
from surgeon.fold import DEFAULT_LIMIT
from surgeon.runtime import Session

F32, I64 = np.float32, np.int64
NAN, INF = F32("nan"), F32("inf")
RNG = np.random.default_rng(5)
Feeds = Mapping[str, Any]
SPECIAL = np.array([[-0.0, 0.0, NAN], [INF, -INF, -1.5]], F32)
EVERY = ("clean", "aten")


def noise(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape).astype(F32)


def ints(*values: int) -> np.ndarray:
    return np.array(values, I64)


def given(proto: onnx.ModelProto, **tensors: Any) -> onnx.ModelProto:
    """The model with these initializers."""
    for name, value in tensors.items():
        array = value if isinstance(value, np.ndarray) else np.asarray(value)
        proto.graph.initializer.append(numpy_helper.from_array(array, name))
    return proto


def one(value: Any) -> np.ndarray:
    """A result as bits: -0.0 is not 0.0, and a NaN is as any other."""
    array = np.asarray(value)
    if array.dtype.kind not in "fc":
        return array
    return np.where(np.isnan(array), array.dtype.type(7), array)


def assert_same(wanted: Any, found: Any, rounding: bool) -> None:
    if isinstance(wanted, (list, dict)) or wanted is None:
        assert type(wanted) is type(found)
        pairs = wanted.items() if isinstance(wanted, dict) else enumerate(wanted or ())
        for key, value in pairs:
            assert_same(value, found[key], rounding)
        return
    wanted, found = np.asarray(wanted), np.asarray(found)
    assert (wanted.dtype, wanted.shape) == (found.dtype, found.shape)
    if rounding:
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)
    elif wanted.dtype == object:
        assert wanted.tolist() == found.tolist()
    else:
        np.testing.assert_array_equal(np.isnan(wanted), np.isnan(found)) if (
            wanted.dtype.kind in "fc"
        ) else None
        assert one(wanted).tobytes() == one(found).tobytes()


def run(proto: onnx.ModelProto, feeds: Feeds, witness: bool) -> list[Any]:
    if witness:
        return ReferenceEvaluator(proto).run(None, dict(feeds))
    return list(Session(proto).run(feeds).values())


def hold(
    proto: onnx.ModelProto,
    *runs: Feeds,
    rounding: bool = False,
    witness: bool = False,
    recipe: str = "clean",
) -> onnx.ModelProto:
    """What a recipe makes of a model, which computes the same and has the same face."""
    before = proto.SerializeToString(deterministic=True)
    after = surgeon.apply(proto, recipe, verify=False).model.to_proto()
    assert proto.SerializeToString(deterministic=True) == before
    # before IR version 4 the inputs list the initializers, constants that may go
    constants = {t.name for t in proto.graph.initializer} if proto.ir_version < 4 else set()
    faces = [[v for v in m.graph.input if v.name not in constants] for m in (proto, after)]
    assert faces[0] == faces[1]
    assert list(after.graph.output) == list(proto.graph.output)
    assert runs
    for feeds in runs:
        wanted, found = run(proto, feeds, witness), run(after, feeds, witness)
        assert_same(wanted, found, rounding)
    return after


def ops(graph: Any) -> list[str]:
    return [node.op_type for node in graph.node]


# ----------------------------------------------------------------------------- rules that look easy


@pytest.mark.parametrize("recipe", EVERY)
@pytest.mark.parametrize("opset", [10, 13, 19])
@pytest.mark.parametrize(
    "window",
    [
        "AveragePool <kernel_shape = [2, 2], pads = [1, 1, 1, 1]>",
        "AveragePool <kernel_shape = [2, 2], count_include_pad = 1>",
        "AveragePool <kernel_shape = [2, 2]>",
        "AveragePool <kernel_shape = [3, 3], ceil_mode = 1, strides = [2, 2]>",
        'AveragePool <kernel_shape = [2, 2], auto_pad = "SAME_UPPER">',
        "MaxPool <kernel_shape = [2, 2]>",
        "MaxPool <kernel_shape = [3, 3], pads = [1, 0, 1, 0]>",
        "LpPool <kernel_shape = [2, 2]>",
    ],
)
def test_a_pad_in_front_of_a_pool(window: str, opset: int, recipe: str) -> None:
    """Padded zeros count in the mean, and are larger than what is negative."""
    pad = "Pad <pads = [0, 0, 1, 1, 0, 0, 1, 1]> (x)" if opset == 10 else "Pad (x, p)"
    proto = parse(
        f"g (float[N,2,5,5] x) => (float[N,2,h,w] y) {{ a = {pad} y = {window} (a) }}", opset
    )
    if opset > 10:
        given(proto, p=ints(0, 0, 1, 1, 0, 0, 1, 1))
    hold(proto, {"x": -np.abs(noise(2, 2, 5, 5))}, rounding=True, recipe=recipe)


@pytest.mark.parametrize(
    "cut", ["start = 0", "start = 1", "start = 1, end = 2", "end = -1", "start = -9"]
)
def test_a_shape_has_a_start_and_an_end(cut: str) -> None:
    proto = parse(f"g (float[2,3,N] x) => (int64[k] y) {{ y = Shape <{cut}> (x) }}")
    hold(proto, {"x": noise(2, 3, 4)}, {"x": noise(2, 3, 1)})
    text = (
        f"g (float[2,3,4] x) => (int64[k] y) {{ a = Shape <{cut}> (x) b = Shape (x) "
        "y = Concat <axis = 0> (a, b) }"
    )
    after = hold(parse(text), {"x": noise(2, 3, 4)})
    assert ops(after.graph) == ["Constant"]


def test_the_bounds_of_a_clip_are_told_apart() -> None:
    proto = given(
        parse(
            "g (float[N] x) => (float[N] p, float[N] q, float[N] r) "
            "{ a = Clip (x, , c) b = Clip (x, c) d = Clip (x, c, c) "
            "p = Neg (a) q = Neg (b) r = Neg (d) }"
        ),
        c=F32(0.5),
    )
    after = hold(proto, {"x": np.array([-1, 0.25, 2], F32)})
    assert ops(after.graph).count("Clip") == 3


@pytest.mark.parametrize("opset", [7, 10, 12, 17])
def test_the_mask_of_a_dropout_is_no_copy_of_its_input(opset: int) -> None:
    mask = "float" if opset < 10 else "bool"
    proto = parse(
        f"g (float[N] x) => (float[N] y, {mask}[N] m) {{ y, m = Dropout (x) }}", opset, ir=7
    )
    after = hold(proto, {"x": noise(5)})
    assert ops(after.graph) == ["Dropout"]
    proto = parse(
        "g (float[N] x) => (float[N] y) "
        "{ a, m = Dropout (x) k = Cast <to = 1> (m) y = Sub (a, k) }",
        max(opset, 10),
        ir=7,
    )
    hold(proto, {"x": noise(5)})


@pytest.mark.parametrize("inner", ["Log", "Exp", "Sqrt", "Sigmoid", "Relu", "Floor"])
@pytest.mark.parametrize("outer", ["ArgMax", "ArgMin"])
def test_the_place_of_the_largest_is_not_taken_from_before(inner: str, outer: str) -> None:
    """The logarithm of what is negative is NaN, an exponential may be infinite, both may round."""
    proto = parse(
        f"g (float[N,5] x) => (int64[N,1] y) {{ a = {inner} (x) y = {outer} <axis = 1> (a) }}"
    )
    rows = np.array([[1, -1, 3, 0, 2], [200, 300, 1, 2, 3], [1, 1 + 2**-23, 1, 1, 1]], F32)
    after = hold(proto, {"x": rows})
    assert ops(after.graph) == [inner, outer]


def test_a_constant_keeps_the_dtype_of_its_attribute() -> None:
    proto = parse(
        """g (float[N] x) => (float[N] y, int64[2] i, float f, float[2] fs) {
          a = Constant <value_float = 0.1> ()
          f = Constant <value_float = 0.1> ()
          i = Constant <value_ints = [1, 2]> ()
          fs = Constant <value_floats = [0.1, 2.0]> ()
          b = Constant <value_int = 3> ()
          c = Cast <to = 1> (b)
          d = Mul (x, a)
          y = Add (d, c)
        }"""
    )
    after = hold(proto, {"x": noise(4)})
    kept = [numpy_helper.to_array(t) for t in after.graph.initializer]
    assert {array.dtype for array in kept} == {np.dtype(F32)}


def test_attributes_of_other_domains_keep_their_types() -> None:
    """An ai.onnx.ml node lists floats that are whole, and an empty list."""
    node = helper.make_node("Scaler", ["b"], ["y"], domain="ai.onnx.ml")
    node.attribute.append(helper.make_attribute("offset", [0.0, 1.0]))
    node.attribute.append(helper.make_attribute("scale", [1.0, 2.0]))
    other = helper.make_node("Mine", ["b"], ["z"], domain="my")
    empty = onnx.AttributeProto(name="none", type=onnx.AttributeProto.INTS)
    other.attribute.extend([empty, helper.make_attribute("texts", ["", "a"])])
    proto = parse(
        "g (float[N,2] x) => (float[N,2] y) { a = Neg (x) c = Identity (a) b = Neg (c) }",
        domains=', "ai.onnx.ml": 3, "my": 1',
    )
    proto.graph.node.append(node)
    after = hold(proto, {"x": noise(3, 2)})
    assert after.graph.node[-1].attribute == node.attribute
    proto.graph.node.append(other)
    proto.graph.output.append(helper.make_tensor_value_info("z", 1, None))
    after = surgeon.apply(proto, "clean", verify=False).model.to_proto()
    assert next(n for n in after.graph.node if n.domain == "my").attribute == other.attribute


# ------------------------------------------------------------------------------- files of all kinds


@pytest.mark.parametrize("ir", [3, 4, 8])
def test_initializers_that_are_inputs_and_that_are_none(ir: int) -> None:
    body = "{ a = Identity (x) b = Mul (a, w) c = Mul (k, k) y = Add (b, c) }"
    proto = given(
        parse(f"g (float[N] x, float[1] w, float[1] k) => (float[N] y) {body}", 9, ir=ir),
        w=np.array([2], F32),
        k=np.array([3], F32),
    )
    runs: list[Feeds] = [{"x": noise(3)}]
    if ir > 3:  # onnxruntime takes the initializers of older files for constants
        runs.append({"x": noise(3), "w": np.array([-1], F32), "k": np.array([0], F32)})
    after = hold(proto, *runs)
    onnx.checker.check_model(after)
    assert {t.name for t in after.graph.initializer} == ({"w", "k"} if ir > 3 else {"w"})
    assert {"x", "w"} <= {value.name for value in after.graph.input}


def test_an_old_file_gets_no_initializer_beside_its_inputs() -> None:
    proto = parse(
        "g (float[2,3] x) => (float[3,2] y, float[2,3] z) "
        "{ a = Shape (x) b = Constant <value = int64[1] {0}> () c = Gather (a, b) "
        "d = Constant <value = int64[1] {-1}> () e = Concat <axis = 0> (d, c) y = Reshape (x, e) "
        "f = Constant <value = float[1] {2}> () h = Mul (f, f) z = Mul (x, h) }",
        9,
        ir=3,
    )
    after = hold(proto, {"x": noise(2, 3)})
    onnx.checker.check_model(after)
    assert not after.graph.initializer


def test_external_data_is_found_from_the_new_folder(tmp_path: Path) -> None:
    proto = given(
        parse("g (float[N,64] x) => (float[N,64] y) { a = Identity (x) y = MatMul (a, w) }"),
        w=noise(64, 64),
    )
    old, new = tmp_path / "old", tmp_path / "new"
    old.mkdir()
    new.mkdir()
    moved = onnx.ModelProto.FromString(proto.SerializeToString())
    onnx.save(moved, old / "m.onnx", save_as_external_data=True, location="w.bin", size_threshold=0)
    surgeon.apply(old / "m.onnx", "clean").model.save(new / "m.onnx")
    (old / "w.bin").rename(old / "gone.bin")
    feeds = {"x": noise(3, 64)}
    found = Session(new / "m.onnx").run(feeds)["y"]
    np.testing.assert_array_equal(found, Session(proto).run(feeds)["y"])


def aged(opset: int | None, ir: int) -> onnx.ModelProto:
    """Operators with the attributes of old: where to broadcast, and to train."""
    nodes = [
        helper.make_node("Identity", ["x"], ["a"]),
        helper.make_node("Mul", ["a", "k"], ["b"], broadcast=1, axis=0),
        helper.make_node("Add", ["b", "zero"], ["c"], broadcast=1, axis=0),
        helper.make_node("Dropout", ["c"], ["d"], ratio=0.5, is_test=0),
        helper.make_node("Dropout", ["d"], ["e"], ratio=0.5),
        helper.make_node("Dropout", ["e"], ["f"], ratio=0.5, is_test=1),
        helper.make_node("Mul", ["f", "k"], ["h"], broadcast=1),
        helper.make_node("Tile", ["h", "two", "one"], ["i"]),
        helper.make_node("Neg", ["i"], ["y"]),
    ]
    constants = {"k": [2, 3], "zero": [0, 0], "two": 2, "one": 1}
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", 1, [2, 2])],
        [helper.make_tensor_value_info("y", 1, [2, 4])],
        [numpy_helper.from_array(np.array(v, F32), k) for k, v in constants.items()],
    )
    imports = [helper.make_opsetid("", opset or 1)]
    proto = helper.make_model(graph, opset_imports=imports, ir_version=ir)
    if opset is None:
        del proto.opset_import[:]
    return proto


@pytest.mark.parametrize(("opset", "ir"), [(1, 3), (4, 3), (5, 3), (None, 2)])
def test_nodes_of_old_mean_what_they_meant(opset: int | None, ir: int) -> None:
    """No runtime loads them, so what stays is read: all but what a test drops or nothing does."""
    proto = aged(opset, ir)
    after = surgeon.apply(proto, "clean", verify=False).model.to_proto()
    left = [node for node in after.graph.node if node.op_type != "Constant"]
    kept = [proto.graph.node[i] for i in (1, 2, 3, 4, 6, 7, 8)]
    assert [n.op_type for n in left] == [n.op_type for n in kept]
    assert [list(n.attribute) for n in left] == [list(n.attribute) for n in kept]
    assert left[0].input[0] == "x"
    assert left[4].input[0] == left[3].output[0]
    assert list(after.opset_import) == list(proto.opset_import)


@pytest.mark.parametrize("domains", [[], ["my"]])
def test_nodes_of_no_version_have_no_meaning(domains: list[str]) -> None:
    proto = aged(None, 8)
    proto.opset_import.extend(helper.make_opsetid(domain, 1) for domain in domains)
    with pytest.raises(surgeon.SurgeonError, match="imports no version of ONNX's own operator set"):
        surgeon.apply(proto, "clean")


def test_nodes_in_no_order_and_outputs_without_a_shape() -> None:
    proto = parse(
        "g (float[2,3] x) => (float[3,2] y, float[2,3] z, int64[k] s) { y = Reshape (b, c) "
        "z = Relu (b) b = Neg (a) a = Identity (x) c = Concat <axis = 0> (e, d) "
        "d = Slice (s, i, j) s = Shape (b) e = Slice (s, j, h) }"
    )
    given(proto, i=ints(0), j=ints(1), h=ints(2))
    for value in proto.graph.output[:2]:
        value.type.tensor_type.ClearField("shape")
    after = hold(proto, {"x": noise(2, 3)})
    assert not after.graph.output[0].type.tensor_type.HasField("shape")


def test_what_an_output_says_of_itself_stays() -> None:
    """Names, sizes that nothing proves, documentation, and a type without anything."""
    proto = parse(
        "g (float[N,3] x) => (float[batch,3] y, float[?] z, float[N,3] w) "
        "{ a = Neg (x) b = Neg (a) y = Relu (a) f = Constant <value_ints = [-1]> () "
        "z = Reshape (b, f) w = Identity (b) }"
    )
    proto.graph.output[0].doc_string = "The result."
    proto.graph.output[2].ClearField("type")
    proto.graph.output[2].type.tensor_type.elem_type = 1
    hold(proto, {"x": noise(2, 3)}, {"x": noise(5, 3)})


def test_inputs_that_nothing_reads_stay() -> None:
    proto = parse(
        "g (float[N] x, float[M] unread, float[N] half) => (float[N] y) "
        "{ a = Neg (half) b = Identity (a) y = Relu (x) }"
    )
    feeds = {"x": noise(3), "unread": noise(4), "half": noise(3)}
    after = hold(proto, feeds)
    assert ops(after.graph) == ["Relu"]


def test_an_output_that_is_an_input() -> None:
    proto = parse(
        "g (float[N] x, float[N] z) => (float[N] y, float[N] z, float[N] c) "
        "{ a = Identity (x) y = Add (a, z) c = Identity (x) }"
    )
    hold(proto, {"x": noise(3), "z": noise(3)})
    proto = parse("g (float[N] x) => (float[N] x, float[N] y) { y = Identity (x) }")
    hold(proto, {"x": noise(3)})


def test_an_output_that_is_an_initializer() -> None:
    proto = given(
        parse(
            "g (float[N] x) => (float[2] w, float[N] y) "
            "{ a = Mul (w, w) y = Add (x, s) s = ReduceSum <keepdims = 0> (a) }"
        ),
        w=np.array([1, 2], F32),
    )
    hold(proto, {"x": noise(3)})


def test_names_that_bodies_read_from_outside() -> None:
    """A merged twin, a dropped Identity, a folded constant, a fused node: each read in a body."""
    proto = given(
        parse(
            """g (bool p, float[N,3] x) => (float[N,3] y, float[N,3] z) {
              i = Identity (x)
              a = Neg (i)
              b = Neg (x)
              f = Mul (k, k)
              m = MatMul (x, w)
              s = Add (m, k)
              y = If (p) <
                then_branch = t () => (float[N,3] r) {
                  c = Add (b, f) d = Mul (c, s) h = Add (d, i) r = Sub (h, m) },
                else_branch = e () => (float[N,3] q) {
                  c = Abs (i) j = If (p) <
                    then_branch = t2 () => (float[N,3] r2) { d = Exp (b) r2 = Add (d, c) },
                    else_branch = e2 () => (float[N,3] q2) { q2 = Sub (b, f) }
                  > q = Add (j, a) }
              >
              z = Add (a, b)
            }"""
        ),
        k=np.array([1, 2, 3], F32),
        w=noise(3, 3),
    )
    x = noise(2, 3)
    hold(proto, *({"p": np.array(p), "x": x} for p in (True, False)), rounding=True)


def test_the_dims_of_inputs_keep_their_names_and_are_not_frozen() -> None:
    proto = parse(
        "g (float[batch,3,h,h] x, float[batch,other] w) => (float[batch,3,hh,h] y, int64[4] s) "
        "{ s = Shape (x) y = Reshape (x, s) }"
    )
    inputs = [{"x": noise(n, 3, m, m), "w": noise(n, k)} for n, m, k in ((1, 1, 1), (2, 5, 3))]
    hold(proto, *inputs)


@pytest.mark.parametrize("read", ["Add (a, s)", "Mul (s, s)"])
def test_sparse_initializers_are_not_lost(read: str) -> None:
    proto = parse(f"g (float[3] x) => (float[3] y) {{ a = Identity (x) b = {read} y = Neg (b) }}")
    values = numpy_helper.from_array(np.array([5], F32), "s")
    indices = numpy_helper.from_array(np.array([1], I64), "s_indices")
    proto.graph.sparse_initializer.append(helper.make_sparse_tensor(values, indices, [3]))
    hold(proto, {"x": noise(3)})


# -------------------------------------------------------------------------------------------- types

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


# -------------------------------------------------------------------------------- numbers and sizes


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


# ------------------------------------------------------------------------- names, functions, chance


def test_nodes_of_one_name_are_named_apart() -> None:
    """onnxruntime refuses a file with two nodes of one name, so the copy has two names."""
    proto = parse(
        "g (float[N] x) => (float[N] y) { a = Neg (x) b = Exp (a) c = Identity (b) y = Relu (c) }"
    )
    for node in proto.graph.node:
        node.name = "same"
    after = surgeon.apply(proto, "clean", verify=False).model.to_proto()
    names = [node.name for node in after.graph.node]
    assert len(set(names)) == len(names) == 3
    x = noise(3)
    found = Session(after).run({"x": x})["y"]
    np.testing.assert_allclose(found, np.maximum(np.exp(-x), 0), rtol=1e-6)


def test_functions_called_from_functions_and_from_bodies() -> None:
    proto = parse(
        """
        g (bool p, float[N,3] x) => (float[N,3] y, float[N,3] z) {
          i = Identity (x) a = my.outer <slope = 0.5> (i)
          y = If (p) <then_branch = t () => (float[N,3] r) { r = my.inner (a) },
                      else_branch = e () => (float[N,3] q) { q = my.outer <slope = 2.0> (a) }>
          z = my.inner (i)
        }
        <domain: "my", opset_import: ["": 17]>
        inner (v) => (o) { s = Shape (v) r = Reshape (v, s) k = Identity (r) o = Neg (k) }
        <domain: "my", opset_import: ["": 17, "my": 1]>
        outer <slope> (v) => (o) {
          a = my.inner (v) b = LeakyRelu <alpha: float = @slope> (a) o = my.inner (b) }
        """,
        domains=', "my": 1',
    )
    x = noise(2, 3)
    after = hold(proto, *({"p": np.array(p), "x": x} for p in (True, False)))
    assert [f.name for f in after.functions] == ["inner", "outer"]


def test_random_operators_are_neither_merged_nor_folded() -> None:
    proto = given(
        parse(
            """g (float[2,3] x) => (float[2,3] y, float[2,3] z, int64[1,9] w) {
              a = RandomNormal <shape = [2, 3], seed = 1.0> ()
              b = RandomNormal <shape = [2, 3], seed = 1.0> ()
              c = RandomUniformLike (k)
              d = RandomUniformLike (k)
              e = Bernoulli (k)
              f = Bernoulli (k)
              h = Dropout (k, half, yes)
              i = Dropout (k, half, yes)
              l = Multinomial <sample_size = 9, dtype = 7> (n)
              m = Multinomial <sample_size = 9, dtype = 7> (n)
              w = Sub (l, m)
              y = Sum (a, b, c, d, x)
              z = Sum (e, f, h, i, x)
            }"""
        ),
        k=np.full((2, 3), 0.5, F32),
        n=np.zeros((1, 4), F32),
        half=F32(0.5),
        yes=np.array(True),
    )
    found = surgeon.apply(proto, "clean", verify=False).report.after
    for op in ("RandomNormal", "RandomUniformLike", "Bernoulli", "Dropout", "Multinomial"):
        assert found[op] == 2


# -------------------------------------------------------------------------------------------- bombs


def doubling(of: str) -> str:
    steps = [f"d{i + 1} = Concat <axis = 0> (d{i}, d{i})" for i in range(40)]
    return f"d0 = Concat <axis = 0> ({of}, {of}) {' '.join(steps)} b = Identity (d40)"


BOMBS: dict[str, tuple[str, dict[str, Any]]] = {
    "ConstantOfShape": ("b = ConstantOfShape (s)", {"s": ints(100_000, 100_000)}),
    "Tile": ("b = Tile (o, s)", {"o": np.ones((1, 1), F32), "s": ints(10_000, 10_000)}),
    "Expand": ("b = Expand (o, s)", {"o": np.ones((1, 1), F32), "s": ints(10_000, 10_000)}),
    "Range": ("b = Range (n, m, d)", {"n": I64(0), "m": I64(10**10), "d": I64(1)}),
    "doubled constant": (doubling("o"), {"o": np.ones(1, F32)}),
    "doubled input": (doubling("x"), {}),
    "Loop": (
        "t, b = Loop (n, yes, o) <body = "
        "l (int64 i, bool c, float v) => (bool k, float u, float s) "
        "{ k = Identity (c) u = Add (v, v) s = Neg (v) }>",
        {"n": I64(10**12), "yes": np.array(True), "o": F32(1)},
    ),
    "Loop of a Loop": (
        "t, b = Loop (n, yes, o) <body = "
        "l (int64 i, bool c, float v) => (bool k, float u, float s) "
        "{ k = Identity (c) u, s = Loop (n, yes, v) <body = "
        "l2 (int64 i2, bool c2, float v2) => (bool k2, float u2, float s2) "
        "{ k2 = Identity (c2) u2 = Add (v2, v2) s2 = Neg (v2) }> }>",
        {"n": I64(16), "yes": np.array(True), "o": F32(1)},
    ),
}


@pytest.mark.parametrize("recipe", EVERY)
@pytest.mark.parametrize("kind", BOMBS)
def test_a_bomb_stays_as_small_as_it_is(kind: str, recipe: str) -> None:
    body, constants = BOMBS[kind]
    proto = given(
        parse(
            f"g (float[n] x) => (float[n] y, int64[k] q) {{ {body} q = Shape (b) y = Relu (x) }}"
        ),
        **constants,
    )
    start = time.process_time()
    after = surgeon.apply(proto, recipe, verify=False).model.to_proto()
    assert time.process_time() - start < 5
    assert after.ByteSize() < proto.ByteSize() + 64_000
    assert "Relu" in ops(after.graph)
    proto.graph.output[1].CopyFrom(onnx.ValueInfoProto(name="b"))
    after = surgeon.apply(proto, recipe, verify=False).model.to_proto()
    assert after.ByteSize() < proto.ByteSize() + DEFAULT_LIMIT + 64_000
