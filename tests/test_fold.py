"""What is folded is what onnxruntime computes; what is large, random or overridable is not."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from truth import Array, model_of, parse

import surgeon
from surgeon.chance import RANDOM
from surgeon.dialect import normalise
from surgeon.facts import Facts
from surgeon.fold import Folder
from surgeon.model import Model
from surgeon.runtime import Session

F32 = np.float32


def ints(*values: int) -> Any:
    return np.array(values, np.int64)


def folded(
    body: str,
    limit: int | None = 1 << 20,
    opset: int = 17,
    inputs: str = "float[1] x",
    **constants: Any,
) -> list[Array] | None:
    """The outputs of the first node, folded."""
    model = Model(model_of(inputs, body, "y", opset, constants))
    facts = Facts(model)
    facts.enter(model.graph)
    node = model.graph.nodes[0]
    normalise(node, opset, facts, lambda tensor: False)
    facts.infer(node)
    found = Folder(facts, limit, []).fold(node)
    return None if found is None else list(found)


@pytest.mark.parametrize(
    ("body", "constants"),
    [
        ("y = Slice (k, a, b, c, d)", {"a": ints(-1), "b": ints(-9), "c": ints(0), "d": ints(-2)}),
        ("y = Gather <axis = 1> (k, a)", {"a": ints(-1, 0)}),
        ("y = Transpose (k)", {}),
        ("y = Concat <axis = -1> (k, k)", {}),
        ("y = Reshape (k, a)", {"a": ints(0, -1, 1)}),
        ("y = Expand (k, a)", {"a": ints(2, 1, 1)}),
        ("y = Tile (k, a)", {"a": ints(2, 3)}),
        ("y = Pad (k, a)", {"a": ints(0, 1, 2, 0)}),
        ("y = ReduceMean <axes = [1]> (k)", {}),
        ("y = Erf (k)", {}),
        ("y = Clip <min = 0.0> (k)", {}),
        ("y = Squeeze <axes = [0]> (e)", {"e": np.ones((1, 3), F32)}),
        ("y = Softmax <axis = 0> (k)", {}),
        ("y = Where (m, k, k)", {"m": np.array([True])}),
        ("y = NonZero (m)", {"m": np.array([[True, False], [False, True]])}),
        ("y = Cast <to = 10> (k)", {}),
        ("y = Cast <to = 7> (k)", {}),
        ("y = Flatten <axis = 0> (k)", {}),
        ("y = Unsqueeze <axes = [0, 2]> (k)", {}),
        ("y = ConstantOfShape <value = float[1] {2.5}> (a)", {"a": ints(2, 3)}),
    ],
)
def test_folding_gives_what_onnxruntime_computes(body: str, constants: dict[str, Any]) -> None:
    old = "axes = " in body or "min = " in body
    opset = 9 if "min" in body or ("axes" in body and "Reduce" not in body) else 13 if old else 17
    k = np.array([[1.5, -2, 3], [4, 5.25, -6]], F32)
    constants = {"k": k, **constants}
    found = folded(body, opset=opset, **constants)
    assert found is not None
    (want,) = (
        Session(model_of("float[1] x", body, "y", opset, constants))
        .run({"x": np.ones(1, F32)})
        .values()
    )
    assert found[0].dtype == want.dtype
    np.testing.assert_array_equal(found[0], want)


def test_limits() -> None:
    k, shape = np.ones((1, 1), F32), ints(60, 60)
    assert folded("y = Expand (k, s)", k=k, s=shape) is not None
    assert folded("y = Expand (k, s)", limit=1000, k=k, s=shape) is None
    assert folded("y = Neg (k)", limit=10, k=np.ones(5000, F32)) is not None, (
        "no larger than before"
    )
    assert folded("y = NonZero (k)", limit=16, k=np.ones(5000, F32)) is None
    assert folded("y = Neg (k)", limit=None, k=np.ones(5000, F32)) is None
    assert folded("y = Add (k, k)", limit=None, k=ints(1)) is not None, "shape arithmetic"


def test_large_products_are_folded_up_to_the_size_of_the_file() -> None:
    row = np.ones((1, 40), F32)
    assert folded("y = MatMul (a, b)", limit=10, a=row.T, b=row, c=np.ones(2000, F32)) is not None
    assert folded("y = MatMul (a, b)", limit=10, a=row.T, b=row) is None, "6,400 bytes of 320"


def test_what_grows_beyond_the_limit_is_folded_where_it_grows_little_in_all() -> None:
    wide = np.ones((1, 700), F32)
    assert folded("y = Add (a, b)", a=wide.reshape(700, 1), b=wide) is not None, "1.9 MiB"
    wide = np.ones((1, 2100), F32)
    assert folded("y = Add (a, b)", a=wide.reshape(-1, 1), b=wide) is None, "16.8 MiB"
    one = np.ones((1, 1), F32)
    assert folded("y = Expand (o, s)", o=one, s=ints(700, 700)) is None, "it says no more"
    wide = np.ones((1, 700), F32)
    assert folded("y = Add (a, b)", limit=1000, a=wide.reshape(-1, 1), b=wide) is None, "as told"


def test_the_steps_to_a_kernel_count_once() -> None:
    """Each is 1.9 MiB, and takes the place of the one before: nine would be too many."""
    steps = " ".join(f"s{i + 1} = Sin (s{i})" for i in range(9))
    body = f"s0 = Add (a, b) {steps} y = Add (s9, x)"
    wide = np.linspace(0, 1, 700, dtype=F32).reshape(1, 700)
    proto = model_of("float[1] x", body, "y", 17, {"a": wide.reshape(-1, 1), "b": wide})
    result = surgeon.apply(proto, "clean").model.to_proto()
    assert [node.op_type for node in result.graph.node] == ["Add"]


def test_quantized_weights_stay_as_they_are() -> None:
    """Widened they are four times as large, and no runtime finds its integer kernels."""
    body = """r = QuantizeLinear (x, s, z) d = DequantizeLinear (r, s, z)
        k = DequantizeLinear (w, s, z) v = DequantizeLinear (u, s, z)
        m = MatMul (d, k) n = MatMul (d, v) y = Concat <axis = 1> (m, n)"""
    eight = np.arange(12, dtype=np.int8).reshape(3, 4)
    constants = {"w": eight, "u": eight + 1, "s": F32(0.1), "z": np.int8(1)}
    proto = model_of("float[a,3] x", body, "y", 17, constants)
    result = surgeon.apply(proto, "clean")
    assert not result.report.changes
    assert [n.op_type for n in result.model.to_proto().graph.node].count("DequantizeLinear") == 3
    float_weight = model_of(
        "float[a,3] x",
        "q = QuantizeLinear (w, s, z) k = DequantizeLinear (q, s, z) y = MatMul (x, k)",
        "y",
        17,
        {"w": np.ones((3, 4), F32), "s": F32(0.1), "z": np.int8(1)},
    )
    assert not surgeon.apply(float_weight, "clean").report.housekeeping


def test_the_bounds_of_levels_in_few_bits_stay() -> None:
    """Brevitas writes four bits as Clip(-7, 7) in eight, which nothing else in the file says."""
    body = """r = QuantizeLinear (x, s, z) p = Clip (r, l, h) d = DequantizeLinear (p, s, z)
        a = Clip (w, l, h) k = DequantizeLinear (a, s, z)
        e = Clip (w, l, h) f = Cast <to = 6> (e) v = DequantizeLinear (f, s)
        t = Clip (u, l, h) g = Cast <to = 1> (t)
        m = MatMul (d, k) n = MatMul (d, v) o = MatMul (d, g) y = Concat <axis = 1> (m, n, o)"""
    constants = {
        "w": (np.arange(12, dtype=np.int8) % 16 - 8).reshape(3, 4),
        "u": np.full((3, 4), 9, np.int8),
        "s": F32(0.1),
        "z": np.int8(0),
        "l": np.int8(-7),
        "h": np.int8(7),
    }
    result = surgeon.apply(model_of("float[a,3] x", body, "y", 17, constants), "clean")
    made = [node.op_type for node in result.model.to_proto().graph.node]
    assert [made.count(each) for each in ("Clip", "Cast", "DequantizeLinear")] == [2, 1, 3]
    assert not surgeon.apply(result.model, "clean").report.changes


def test_weights_in_eight_bits_that_a_cast_widens_stay_as_they_are() -> None:
    body = """f = Cast <to = 1> (w) k = Mul (f, s) m = MatMul (x, k) b = Cast <to = 1> (o)
        y = Add (m, b)"""
    eight = (np.arange(64 * 32) % 200 - 100).astype(np.int8).reshape(64, 32)
    constants = {"w": eight, "s": np.ones((1, 32), F32), "o": eight[0]}
    result = surgeon.apply(model_of("float[a,64] x", body, "y", 17, constants), "clean")
    kept = [node.op_type for node in result.model.to_proto().graph.node]
    assert kept.count("Cast") == 1  # a bias is short
    assert result.report.verdict is not None
    assert result.report.verdict.status == "equivalent"


def test_what_repeats_a_number_adds_no_more_than_a_file() -> None:
    """Networks without their weights make each by such a node: together they are hundreds of MB."""
    many = range(12)
    body = " ".join(
        f"w{i} = ConstantOfShape <value: tensor = float[1] {{{i + 1}}}> (s) m{i} = MatMul (x, w{i})"
        for i in many
    )
    sums = f"y = Sum ({', '.join(f'm{i}' for i in many)})"
    model = model_of("float[9,400] x", f"{body} {sums}", "y", 17, {"s": np.array([400, 500])})
    result = surgeon.apply(model, "clean")
    assert result.report.after["ConstantOfShape"] == 11
    assert result.model.to_proto().ByteSize() < 2 << 20


def test_as_many_elements_as_the_data_say() -> None:
    found = folded("y = NonZero (k)", k=ints(0, 3, 0, 5))
    assert found is not None
    np.testing.assert_array_equal(found[0], [[1, 3]])
    assert folded("y = NonZero (k)", limit=10, k=np.ones(1, F32)) is not None
    assert folded("y = NonZero (k)", limit=10, k=np.ones(2, F32)) is None, "two int64 of float32"
    found = folded("y = Compress (k, c)", k=ints(4, 5, 6), c=np.array([True, False, True]))
    assert found is not None
    np.testing.assert_array_equal(found[0], [4, 6])


@pytest.mark.parametrize(
    "op", ["RandomUniformLike", "RandomNormalLike", "Bernoulli", "Multinomial"]
)
def test_random_nodes_are_not_folded(op: str) -> None:
    assert op in RANDOM
    assert folded(f"y = {op} (k)", k=np.ones((2, 2), F32)) is None


def test_inputs_and_overridable_initializers_are_no_constants() -> None:
    assert folded("y = Neg (x)") is None
    assert folded("y = Neg (k)", inputs="float[1] x, float[2] k", k=np.ones(2, F32)) is None


def test_unsafe_nodes_are_left_alone() -> None:
    assert folded("y = my.Op (k)", k=np.ones(2, F32)) is None
    assert folded("y = Reshape (k, s)", k=np.ones(2, F32), s=ints(3)) is None
    assert folded("y = Gather (k, s)", k=np.ones(2, F32), s=ints(7)) is None


def test_narrow_dtypes() -> None:
    k = np.array([[1.5, -2]], ml_dtypes.bfloat16)
    found = folded("y = Transpose (k)", k=k)
    assert found is not None
    assert found[0].dtype == k.dtype
    np.testing.assert_array_equal(found[0], k.T)


def test_strings_are_left_alone_or_moved_whole() -> None:
    found = folded("y = Concat <axis = 0> (k, k)", k=np.array(["a", "bc"], object))
    assert found is None or found[0].tolist() == ["a", "bc", "a", "bc"]


def test_outputs_that_nobody_names() -> None:
    model = Model(
        model_of(
            "float[1] x",
            "y = MaxPool <kernel_shape = [2]> (k)",
            "y",
            17,
            {"k": np.ones((1, 1, 4), F32)},
        )
    )
    facts = Facts(model)
    node = model.graph.nodes[0]
    facts.infer(node)
    found = Folder(facts, 1 << 20, []).fold(node)
    assert found is not None
    assert found[0].shape == (1, 1, 3)


def test_an_output_that_is_known_is_a_constant_to_what_reads_it() -> None:
    proto = parse(
        """g (float[3] x) => (float[3] o, float[3] y) <int64[1] n = {3}> {
          o = ConstantOfShape (n) m = Exp (o) y = Add (x, m) }"""
    )
    assert surgeon.apply(proto, "clean").report.after == {"Add": 1}


def test_what_provably_has_no_element_is_known_without_its_operands() -> None:
    """onnxruntime's optimisations lose an Expand to nothing."""
    found = folded("y = Cast <to = 6> (x)", None, inputs="float[2,0] x")
    assert found is not None
    assert (found[0].dtype, found[0].shape) == (np.int32, (2, 0))
    assert folded("y = Expand (x, k)", inputs="float[2,1] x", k=ints(2, 0)) is not None
    assert folded("y = Expand (x, k)", inputs="float[2,1] x", k=ints(2, 3)) is None
    assert folded("y = Cast <to = 6> (x)", inputs="float[n,0] x") is None
    assert folded("y = Cast <to = 8> (x)", inputs="float[2,0] x") is None
    beyond = ints(0, 1 << 40, 1 << 40)
    assert folded("y = Expand (x, k)", inputs="float[0,1,1] x", k=beyond) is None
