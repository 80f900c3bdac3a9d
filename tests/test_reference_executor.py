"""The witness runs a model: stretches in onnxruntime, foreign nodes between them, bodies, lists."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from reference_models import normal, parse

import surgeon
from surgeon.errors import ModelError
from surgeon.reference import NoWitness, Reference, Undefined
from surgeon.runtime import RunFailed, Runner, Session


class Counted:
    """Opens sessions and counts them."""

    def __init__(self) -> None:
        self.models: list[onnx.ModelProto] = []

    def __call__(self, model: onnx.ModelProto, **kwargs: Any) -> Runner:
        self.models.append(model)
        return Session(model, **kwargs)


MIXED = """g (float[N,C,H,W] x) => (float[N,C,1,1] y, float[N,C,H,W] r)
    <float[1] half = {0.5}, int64[2] one = {1, 1}> {
    s = Mul(x, half)
    r = Relu(s)
    p = org.pytorch.aten.ATen <operator = "adaptive_avg_pool2d", overload_name = ""> (r, one)
    y = Neg(p)
}"""


def test_stretches_run_in_sessions_that_are_kept() -> None:
    counted = Counted()
    reference = Reference(parse(MIXED), open_session=counted)
    for shape in [(1, 2, 3, 4), (2, 3, 5, 5)]:
        x = normal(*shape)
        found = reference.run({"x": x})
        half = np.maximum(x * np.float32(0.5), 0)
        np.testing.assert_array_equal(found["r"], half)
        np.testing.assert_allclose(found["y"], -half.mean((2, 3), keepdims=True), atol=1e-6)
    assert [[n.op_type for n in model.graph.node] for model in counted.models] == [
        ["Mul", "Relu"],
        ["Neg"],
    ]


def test_any_value_can_be_asked_for_and_the_rest_is_not_computed() -> None:
    counted = Counted()
    reference = Reference(parse(MIXED), open_session=counted)
    found = reference.run({"x": -np.ones((1, 1, 1, 2), np.float32)}, ["s", "half"])
    assert {name: value.tolist() for name, value in found.items()} == {
        "s": [[[[-0.5, -0.5]]]],
        "half": [0.5],
    }
    assert len(counted.models[0].graph.node) == 1
    with pytest.raises(ModelError, match="no value is called `nope`"):
        reference.run({"x": normal(1, 1, 1, 1)}, ["nope"])


def test_inputs_are_checked_as_onnxruntime_does() -> None:
    reference = Reference(parse(MIXED.replace("N,C,H,W] x", "N,2,H,W] x")))
    with pytest.raises(RunFailed, match="`x` is not given"):
        reference.run({})
    with pytest.raises(RunFailed, match=r"`x` has shape \[1, 3, 2, 2\]"):
        reference.run({"x": normal(1, 3, 2, 2)})
    with pytest.raises(RunFailed, match="`x` is given as float64"):
        reference.run({"x": np.zeros((1, 2, 2, 2))})


def test_an_overridable_initializer_can_be_given() -> None:
    model = parse(MIXED)
    model.graph.input.append(helper.make_tensor_value_info("half", TensorProto.FLOAT, [1]))
    reference = Reference(model)
    x = np.ones((1, 1, 1, 1), np.float32)
    assert reference.run({"x": x})["y"].item() == -0.5
    assert reference.run({"x": x, "half": np.array([3], np.float32)})["y"].item() == -3
    assert reference.run({"x": x})["y"].item() == -0.5


def test_unsorted_nodes_and_missing_values() -> None:
    model = parse(MIXED)
    nodes = list(model.graph.node)[::-1]
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    x = np.ones((1, 1, 1, 1), np.float32)
    assert Reference(model).run({"x": x})["y"].item() == -0.5
    model.graph.node[-1].input[0] = "gone"
    with pytest.raises(ModelError, match="`gone` is read but nothing produces it"):
        Reference(model).run({"x": x})


def test_lists_go_between_sessions_and_foreign_nodes() -> None:
    model = parse(
        """g (float[N,M] a, float[N,M] b) => (float[K,M] y, float[N,M] z) {
        s = SequenceConstruct(a, b)
        zero = Constant <value = int64 {0}> ()
        y = org.pytorch.aten.ATen <operator = "cat"> (s, zero)
        l = prim.ListConstruct(b, a)
        u, v = prim.ListUnpack(l)
        z = Sub(u, v)
    }"""
    )
    a, b = normal(2, 3), normal(2, 3)
    found = Reference(model).run({"a": a, "b": b})
    np.testing.assert_array_equal(found["y"], np.concatenate([a, b]))
    np.testing.assert_array_equal(found["z"], b - a)


@pytest.mark.parametrize("foreign", [False, True])
def test_a_loop_that_declares_no_shape_of_its_condition_is_compared(foreign: bool) -> None:
    """So the exporter writes `while`: onnxruntime takes it, and does not run it."""
    first = 'org.pytorch.aten.ATen <operator = "relu">' if foreign else "Relu"
    model = parse(
        f"""g (float[N,2] x) => (float[N,2] z) <int64 three = {{3}}, bool yes = {{1}}> {{
            r = {first} (x)
            y = Loop (three, yes, r) <body = body (int64 i, bool go, float[N,2] h)
                => (bool go_on, float[N,2] next) {{ next = Add(h, r) go_on = Identity(go) }}>
            n = Neg (y)
            z = Neg (n)
        }}"""
    )
    body = next(node for node in model.graph.node if node.op_type == "Loop").attribute[0].g
    for value in body.input[:2]:
        value.type.tensor_type.ClearField("shape")
    before = model.SerializeToString()
    x = normal(3, 2)
    np.testing.assert_allclose(Reference(model).run({"x": x})["z"], 4 * np.maximum(x, 0))
    result = surgeon.apply(model, "aten", "clean")
    assert result.report.status == "equivalent"
    assert model.SerializeToString() == before


def test_a_loop_that_gives_a_list_of_no_type_is_run() -> None:
    """So the exporter writes a list of joins of lists: onnxruntime does not load that."""
    model = parse(
        """g (float[N,2] x) => (float[N,M] y) <int64 three = {3}, bool yes = {1}> {
            s = SequenceEmpty ()
            t = Loop (three, yes, s) <body = body (int64 i, bool go, seq(float[N,2]) h)
                => (bool go_on, seq(float[N,2]) next) {
                next = SequenceInsert(h, x) go_on = Identity(go) }>
            r = org.pytorch.aten.ATen <operator = "relu"> (x)
            u = SequenceInsert (t, r)
            y = ConcatFromSequence <axis = 1> (u)
        }"""
    )
    body = next(node for node in model.graph.node if node.op_type == "Loop").attribute[0].g
    body.output[1].type.sequence_type.elem_type.Clear()
    x = normal(3, 2)
    wanted = np.concatenate([x, x, x, np.maximum(x, 0)], 1)
    np.testing.assert_array_equal(Reference(model).run({"x": x})["y"], wanted)


def test_a_device_may_be_a_text_of_the_standards_own_kind() -> None:
    model = parse(
        """g (float[N,2] x) => (float[N,2] y) <int64 kind = {6}, int64 none = {0}, bool no = {0}> {
            cpu = Constant <value_string = "cpu"> ()
            z = org.pytorch.aten.ATen <operator = "zeros_like"> (x, kind, none, cpu, no, )
            y = Sub (x, z)
        }"""
    )
    x = normal(3, 2)
    np.testing.assert_array_equal(Reference(model).run({"x": x})["y"], x)


@pytest.mark.parametrize(
    ("opset", "text", "wanted"),
    [
        (
            13,
            "g (float[N] x) => (int64[N] y) <int64 axis = {0}> "
            "{ n = Neg (x) a = org.pytorch.aten.relu (n) "
            "t = Cast <to = 9> (a) y = CumSum (t, axis) }",
            lambda x: (x < 0).cumsum(),
        ),
        (
            13,
            "g (float[N] x) => (int64[N] y) <int64 axis = {0}, float much = {60}> "
            "{ a = org.pytorch.aten.relu (x) m = Mul (a, much) "
            "t = Cast <to = 2> (m) y = CumSum (t, axis) }",
            lambda x: (np.maximum(x, 0) * np.float32(60)).astype(np.uint8).cumsum(dtype=np.int64),
        ),
        (
            9,
            "g (float[N] x) => (bool[N] y) <float zero = {0}> "
            "{ a = org.pytorch.aten.relu (x) y = Equal (a, zero) }",
            lambda x: x <= 0,
        ),
        (
            13,
            "g (float[N,1] x) => (float[1,N] y) "
            "{ a = org.pytorch.aten.relu (x) y = Transpose <perm = [-1, 0]> (a) }",
            lambda x: np.maximum(x, 0).T,
        ),
        (
            13,
            """g (float[N] x) => (float[M,K,1] y)
                <int64 rest = {-1}, int64 zero = {0}, int64[1] one = {1}> {
                a = org.pytorch.aten.relu (x)
                s = Shape (a)
                longer = SequenceInsert (s, rest)
                n = SequenceLength (longer)
                first = SequenceAt (longer, zero)
                less = SequenceErase (longer, zero)
                sizes = SequenceInsert (less, first, zero)
                t = Concat <axis = 0> (sizes, one)
                y = Reshape (a, t)
            }""",
            lambda x: np.maximum(x, 0)[:, None, None],
        ),
        (  # an element of a list, as below opset 11, where ONNX has none
            9,
            """g (float[N] x) => (float[N] y) <int64 at = {-2}> {
                a = org.pytorch.aten.relu (x)
                b = Neg (a)
                s = prim.ListConstruct (a, b, x)
                y = Gather <axis = 0> (s, at)
            }""",
            lambda x: -np.maximum(x, 0),
        ),
        (
            13,
            """g (float[N,1] x) => (float[1,N] y) <float zero = {0}> {
                a = org.pytorch.aten.relu (x)
                t = Transpose <perm = [-1, 0]> (a)
                s = ReduceSum <keepdims = 0> (t)
                some = Greater (s, zero)
                y = If (some) <then_branch = g () => (float[1,N] u) { u = Neg (t) },
                               else_branch = h () => (float[1,N] v) { v = Identity (t) }>
            }""",
            lambda x: -np.maximum(x, 0).T,
        ),
        (  # a number alone counts where its class is above all
            13,
            "g (float[N] x) => (float[N] y) <double two = {2}, float zero = {0}> { "
            "a = org.pytorch.aten.relu (x) t = Greater (a, zero) n = Cast <to = 7> (t) "
            "b = Mul (a, n) y = Div (b, two) }",
            lambda x: np.maximum(x, 0) / 2,
        ),
        (
            11,
            "g (float[N] x) => (int64[one] y) <float zero = {0}> { "
            "a = org.pytorch.aten.relu (x) t = Greater (a, zero) "
            "y = ReduceSum <axes = [0], keepdims = 1> (t) }",
            lambda x: (x > 0).sum(keepdims=True),
        ),
        (
            13,
            "g (float[N] x) => (float[N] y) <int64 one = {1}, float zero = {0}> { "
            "a = org.pytorch.aten.relu (x) t = Greater (a, zero) y = Where (t, a, one) }",
            lambda x: np.where(x > 0, x, 1),
        ),
    ],
)
def test_what_onnxruntime_has_of_other_types_alone_is_compared(
    opset: int, text: str, wanted: Callable[[Any], Any]
) -> None:
    """The exporter sums what is true, compares floats before opset 11, and counts from behind."""
    model = parse(text)
    model.opset_import[0].version = opset
    x = normal(7, *(1 for dim in model.graph.input[0].type.tensor_type.shape.dim[1:]))
    np.testing.assert_array_equal(Reference(model).run({"x": x})["y"], wanted(x))
    assert surgeon.apply(model, "aten").report.status == "equivalent"


def test_a_body_with_foreign_nodes_is_interpreted() -> None:
    model = parse(
        """g (float[N,C,L] x, bool c) => (float[N,C,2] y, float[T,N,C,2] all, float[N,C,2] z)
        <int64 three = {3}, float[1] two = {2.0}, int64[1] size = {2}> {
            yes = Constant <value = bool {1}> ()
            start = org.pytorch.aten.ATen <operator = "adaptive_avg_pool1d"> (x, size)
            y, all = Loop (three, yes, start) <body = body (int64 i, bool go, float[N,C,2] h)
                => (bool go_on, float[N,C,2] next, float[N,C,2] kept) {
                    go_on = Identity(go)
                    p = org.pytorch.aten.ATen <operator = "adaptive_avg_pool1d"> (x, size)
                    m = Mul(h, two)
                    next = Add(m, p)
                    kept = Identity(next)
            }>
            z = If (c) <
                then_branch = t () => (float[N,C,2] a) {
                    a = org.pytorch.aten.ATen <operator = "relu"> (start) },
                else_branch = e () => (float[N,C,2] b) { b = Neg(start) }
            >
        }"""
    )
    x = normal(1, 2, 4)
    p = x.reshape(1, 2, 2, 2).mean(-1)
    for choice in (True, False):
        found = Reference(model).run({"x": x, "c": np.asarray(choice)})
        np.testing.assert_allclose(found["y"], 15 * p, rtol=1e-5)
        np.testing.assert_allclose(found["all"], np.stack([3 * p, 7 * p, 15 * p]), rtol=1e-5)
        np.testing.assert_allclose(found["z"], np.maximum(p, 0) if choice else -p, rtol=1e-6)


def test_a_scan_with_foreign_nodes_is_interpreted() -> None:
    model = parse(
        """g (float[N,M] h, float[T,N,M] xs) => (float[N,M] last, float[T,N,M] ys) {
            last, ys = Scan <num_scan_inputs = 1, scan_input_directions = [1],
                body = body (float[N,M] c, float[N,M] x) => (float[N,M] d, float[N,M] e) {
                    r = org.pytorch.aten.relu(x)
                    d = Add(c, r)
                    e = Identity(d)
                }> (h, xs)
        }"""
    )
    h, xs = np.zeros((1, 2), np.float32), normal(3, 1, 2)
    found = Reference(model).run({"h": h, "xs": xs})
    sums = np.cumsum(np.maximum(xs[::-1], 0), axis=0)
    np.testing.assert_allclose(found["ys"], sums, rtol=1e-6)
    np.testing.assert_allclose(found["last"], sums[-1], rtol=1e-6)


def test_model_local_functions_are_inlined() -> None:
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 17, "my": 1, "org.pytorch.aten": 1]>
        g (float[N] x) => (float[N] y) { y = my.Twice(x) }
        <domain: "my", opset_import: ["": 17, "org.pytorch.aten": 1]>
        Twice (a) => (b) { r = org.pytorch.aten.relu(a)  b = Add(r, r) }"""
    )
    assert Reference(model).run({"x": np.array([-1, 2], np.float32)})["y"].tolist() == [0, 4]


def test_a_standard_operator_onnxruntime_lacks_has_no_witness() -> None:
    model = parse(
        """g (float[N] x) => (float[N] y) {
        r = org.pytorch.aten.relu(x)  y = Mystery(r) }"""
    )
    with pytest.raises(NoWitness, match=r"`ai.onnx.Mystery` has no witness"):
        Reference(model).run({"x": normal(2)})


def test_external_data_are_read_from_the_folder(tmp_path: Path) -> None:
    model = parse(
        """g (float[N,2,3] x) => (float[N,2,1] y)
        <float[2,1,3] w = {1, 2, 3, 4, 5, 6}, int64 g = {2}, int64[1] one = {1},
         int64[1] none = {0}> {
            r = Add(x, w2)
            y = org.pytorch.aten.conv1d (r, w, , one, none, one, g) }"""
    )
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.ones((2, 3), np.float32), "w2"))
    path = tmp_path / "model.onnx"
    onnx.save(model, path, save_as_external_data=True, location="w.bin", size_threshold=0)
    y = Reference(path).run({"x": np.zeros((1, 2, 3), np.float32)})["y"]
    assert y.tolist() == [[[6], [15]]]


def test_sizes_that_are_fed_to_a_stretch_have_a_number() -> None:
    """onnxruntime would join a line of an unknown number of sizes to others as if it were empty."""
    model = parse(
        "g (float[b,1,h,w] x, int64[n] two) => (y) "
        "<int64[2] three = {3, 3}, int64[1] zero = {0}, int64[1] count = {2}> { "
        "u = org.pytorch.aten.adaptive_avg_pool2d (x, three) all = Shape (u) "
        "kept = Slice (all, zero, count, zero) sizes = Concat <axis = 0> (kept, two) "
        'y = Resize <mode = "nearest"> (u, , , sizes) }'
    )
    feeds = {"x": normal(2, 1, 6, 6), "two": np.array([6, 9])}
    assert Reference(model).run(feeds)["y"].shape == (2, 1, 6, 9)


def test_numbers_that_the_graph_computes_are_tensors_and_constants_are_pythons() -> None:
    text = """g (double x, int64 n) => (double a, float b)
    <int64 three = {3}, double half = {0.5}> {
        a = org.pytorch.aten.mul (x, three)
        b = org.pytorch.aten.mul (n, half)
    }"""
    found = Reference(parse(text)).run({"x": np.asarray(2.5), "n": np.asarray(5)})
    assert {name: (v.dtype.name, float(v)) for name, v in found.items()} == {
        "a": ("float64", 7.5),
        "b": ("float32", 2.5),
    }


def test_more_parts_than_a_file_has_outputs_for_are_undefined() -> None:
    text = """g (float[t] x) => (float[p] a, float[q] b) <int64 size = {2}, int64 axis = {0}> {
        a, b = org.pytorch.aten.ATen <operator = "split", _outputs = 2> (x, size, axis)
    }"""
    reference = Reference(parse(text))
    assert reference.run({"x": np.arange(3, dtype=np.float32)})["b"].tolist() == [2]
    with pytest.raises(Undefined, match="3 parts for 2 outputs"):
        reference.run({"x": np.arange(5, dtype=np.float32)})


def test_a_type_that_onnxruntime_lacks_is_computed_by_onnx() -> None:
    model = parse(
        """g (float[N] x) => (int64[1,m] places, int32[k] kinds, int64[N] which)
        <float[1] zero = {0}> {
        r = org.pytorch.aten.relu(x)
        d = Cast <to = 11> (r)
        places = NonZero (d)
        whole = Cast <to = 6> (r)
        kinds, first, which, counts = Unique (whole)
        }"""
    )
    found = Reference(model).run({"x": np.array([3, -1, 0, 1, 3], np.float32)})
    assert found["places"].tolist() == [[0, 3, 4]]
    assert found["kinds"].dtype == np.int32
    assert found["kinds"].tolist() == [0, 1, 3]
    assert found["which"].tolist() == [2, 0, 0, 1, 2]


def test_a_convolution_of_doubles_is_computed_by_onnx() -> None:
    """onnxruntime has none."""
    model = parse("g (double[N,1,3] x, double[1,1,2] w) => (double[N,1,2] y) { y = Conv (x, w) }")
    x, w = np.array([[[1, 2, 4]]], np.float64), np.array([[[0.5, 1]]], np.float64)
    assert Reference(model).run({"x": x, "w": w})["y"].tolist() == [[[2.5, 5.0]]]


@pytest.mark.parametrize(
    ("operator", "function"),
    [
        ("Acos", np.arccos),
        ("Asin", np.arcsin),
        ("Atanh", np.arctanh),
        ("Cosh", np.cosh),
        ("Sinh", np.sinh),
        ("Tan", np.tan),
        ("Acosh", np.arccosh),
        ("Softplus", lambda x: np.logaddexp(x, 0)),
        ("LeakyRelu", lambda x: np.where(x < 0, np.float32(0.01) * x, x)),
        ("Mean", lambda x: x),
        ("Det", lambda x: x),
    ],
)
def test_what_onnxruntime_has_of_floats_alone_is_computed_of_doubles(
    operator: str, function: Callable[[np.ndarray], np.ndarray]
) -> None:
    model = parse(f"g (double[N,1,1] x) => (double[] y) {{ z = {operator} (x) y = Squeeze (z) }}")
    for number in (-0.5, 0.25, 1.5):
        x = np.full((1, 1, 1), number)
        with np.errstate(invalid="ignore"):
            want = function(x).item()
        found = Reference(model).run({"x": x})["y"]
        assert found.dtype == np.float64
        np.testing.assert_allclose(found, want, rtol=1e-15)


def test_sizes_that_a_loop_puts_into_a_list_are_one_tensor() -> None:
    """As PyTorch's exporter hands a list of a script on, with which no runtime loads the file."""
    model = parse(
        """g (float[N,3] x) => (float[a,b] y) <int64 two = {2}> {
            yes = Constant <value = bool {1}> ()
            none = SequenceEmpty <dtype = 7> ()
            s = Loop (two, yes, none) <body = body (int64 i, bool go, seq(int64) before)
              => (bool on, seq(int64) after) {
                shape = Shape (x)
                size = Gather (shape, i)
                after = SequenceInsert (before, size)
                on = Identity (go)
            }>
            m = ReduceMean <keepdims = 0> (x)
            y = Expand (m, s)
        }"""
    )
    result = surgeon.apply(model, "aten")
    assert result.report.status == "equivalent", result.report.verdict
    x = normal(2, 3)
    found = Session(result.model.to_proto()).run({"x": x})["y"]
    np.testing.assert_allclose(found, np.full((2, 3), x.mean()), rtol=1e-6, atol=1e-6)
