"""The witness: what it computes, where it is not defined, and how nodes are spelled."""

from __future__ import annotations

import importlib.util
import inspect
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from surgeon.errors import ModelError
from surgeon.reference import NoWitness, Reference, Undefined
from surgeon.reference.arguments import Call, decode, fit
from surgeon.reference.errors import Unsuited
from surgeon.reference.operators import OPERATORS
from surgeon.reference.operators.pooling import bins
from surgeon.reference.schema import Mismatch, parse_schema
from surgeon.reference.witness import NumpyWitness, OldMeanings
from surgeon.runtime import RunFailed, Runner, Session

CORPUS = Path(__file__).resolve().parents[2] / "shared" / "corpus"
needs_corpus = pytest.mark.skipif(not CORPUS.is_dir(), reason="no corpus beside the repository")
needs_torch = pytest.mark.skipif(
    importlib.util.find_spec("torch") is None, reason="torch is not installed"
)
HEADER = '<ir_version: 8, opset_import: ["": 17, "org.pytorch.aten": 1, "prim": 1]>\n'
GENERATOR = np.random.default_rng(0)


def parse(text: str) -> onnx.ModelProto:
    return onnx.parser.parse_model(HEADER + text)


def normal(*shape: int) -> Any:
    return GENERATOR.normal(size=shape).astype(np.float32)


def one_node(
    operator: str, operands: list[Any], *, outputs: int = 1, spelling: str = "A+"
) -> onnx.ModelProto:
    """A model of one ATen node; arrays are its inputs, everything else is a Constant."""
    inputs, nodes, names = [], [], []
    for index, operand in enumerate(operands):
        name = f"v{index}"
        if operand is None:
            names.append("")
            continue
        names.append(name)
        if isinstance(operand, np.ndarray):
            kind = helper.np_dtype_to_tensor_dtype(operand.dtype)
            inputs.append(helper.make_tensor_value_info(name, kind, [None] * operand.ndim))
        elif isinstance(operand, str):
            nodes.append(helper.make_node("Constant", [], [name], value=operand))
        else:
            dtype = np.float64 if isinstance(operand, float) else None
            tensor = onnx.numpy_helper.from_array(np.asarray(operand, dtype))
            nodes.append(helper.make_node("Constant", [], [name], value=tensor))
    made = [f"y{index}" for index in range(outputs)]
    attributes = {"A+": {"operator": operator, "overload_name": ""}, "A": {"operator": operator}}
    kind = operator if spelling == "N" else "ATen"
    nodes.append(
        helper.make_node(
            kind, names, made, domain="org.pytorch.aten", **attributes.get(spelling, {})
        )
    )
    values = [onnx.ValueInfoProto(name=name) for name in made]
    graph = helper.make_graph(nodes, "g", inputs, values)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("org.pytorch.aten", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def run(operator: str, operands: list[Any], **kwargs: Any) -> list[Any]:
    model = one_node(operator, operands, **kwargs)
    feeds = {f"v{i}": v for i, v in enumerate(operands) if isinstance(v, np.ndarray)}
    return list(Reference(model).run(feeds).values())


def by_onnxruntime(op: str, operands: list[Any], **attributes: Any) -> Any:
    """A standard operator's result: an independent word on the same numbers."""
    names = [f"v{i}" for i in range(len(operands))]
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, list(x.shape))
        for name, x in zip(names, operands, strict=True)
    ]
    node = helper.make_node(op, names, ["y"], **attributes)
    graph = helper.make_graph([node], "g", inputs, [onnx.ValueInfoProto(name="y")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return Session(model).run(dict(zip(names, operands, strict=True)))["y"]


# -------------------------------------------------------------------------------- the schemas


def test_a_schema_is_read() -> None:
    schema = parse_schema(
        "aten::f.over(Tensor(a!) self, SymInt[2] size, int[]? dim=None, *, float eps=1e-05, "
        'str mode="mean", Scalar alpha=1, ScalarType? dtype=None, Tensor?[] indices=[]) -> Tensor'
    )
    assert (schema.name, schema.overload) == ("f", "over")
    rows = [(p.name, p.type, p.is_list, p.count, p.optional) for p in schema.parameters]
    assert rows == [
        ("self", "Tensor", False, 0, False),
        ("size", "int", True, 2, False),
        ("dim", "int", True, 0, True),
        ("eps", "float", False, 0, False),
        ("mode", "str", False, 0, False),
        ("alpha", "Scalar", False, 0, False),
        ("dtype", "ScalarType", False, 0, True),
        ("indices", "Tensor", True, 0, False),
    ]
    assert [p.default for p in schema.parameters][3:6] == [1e-05, "mean", 1]


def test_every_schema_of_the_table_fits_its_function() -> None:
    for rows in OPERATORS.values():
        for text, function in rows:
            names = [p.name for p in parse_schema(text).parameters]
            code = function.__code__
            if code.co_flags & inspect.CO_VARKEYWORDS:  # it takes the rest and looks at none
                assert set(code.co_varnames[: code.co_argcount]) <= set(names), text
                continue
            taken = code.co_varnames[: code.co_argcount]
            required = taken[: len(taken) - len(function.__defaults__ or ())]
            assert set(required) <= set(names) <= set(taken), text


def node(op_type: str, domain: str, **attributes: Any) -> onnx.NodeProto:
    return helper.make_node(op_type, ["x"], ["y"], domain=domain, **attributes)


@pytest.mark.parametrize(
    ("spelled", "operator", "overload"),
    [
        (
            node("ATen", "org.pytorch.aten", operator="mul", overload_name="Tensor"),
            "mul",
            "Tensor",
        ),
        (node("ATen", "org.pytorch.aten", operator="celu"), "celu", ""),
        (node("ATen", "", operator="group_norm", eps=1.0), "group_norm", ""),
        (node("adaptive_avg_pool2d", "org.pytorch.aten"), "adaptive_avg_pool2d", ""),
        (node("ATen", "org.pytorch.aten", operator="__and_", overload_name=""), "__and__", ""),
        (node("__and__", "org.pytorch.aten"), "__and__", ""),
        (node("ATen", "com.microsoft", operator="aten::gelu", overload_name=""), "gelu", ""),
    ],
)
def test_every_spelling_names_its_operator(
    spelled: onnx.NodeProto, operator: str, overload: str
) -> None:
    call = decode(spelled)
    assert (call.operator, call.overload) == (operator, overload)
    assert set(call.attributes) == ({"eps"} if operator == "group_norm" else set())


def test_arguments_become_what_the_schema_says() -> None:
    text = "f(Tensor x, int n, float p, bool b, int[2] k, ScalarType? dtype, Scalar s, str? m) -> T"
    number = np.asarray
    values = [number(1.5), number(3), number(0.5), number(1), number(2), number(6), number(2.5), ""]
    call = decode(node("f", "org.pytorch.aten"))
    _, bound = fit([text], call, values)
    assert bound == {
        "x": 1.5,
        "n": 3,
        "p": 0.5,
        "b": True,
        "k": [2, 2],
        "dtype": np.float32,
        "s": 2.5,
        "m": "",
    }
    with pytest.raises(Mismatch, match=r"`n` is 0.5, no integer"):
        fit([text], call, [number(1.5), number(0.5), *values[2:]])
    with pytest.raises(Mismatch, match="9 arguments are given, it takes 8"):
        fit([text], call, [*values, number(1)])


def test_a_flattened_list_is_gathered() -> None:
    text = "index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> T"
    call = decode(node("index_put", "org.pytorch.aten"))
    x = np.zeros(3)
    _, bound = fit([text], call, [x, x, x, x, np.asarray(1)])
    assert len(bound["indices"]) == 2
    assert bound["accumulate"] is True
    _, bound = fit([text], call, [x, [x, None], x, np.asarray(0)])
    assert bound["indices"][1] is None
    text = "einsum(str equation, Tensor[] tensors, *, int[]? path=None) -> T"
    for more in ([], [None]):
        _, bound = fit([text], call, ["ij,jk->ik", np.eye(2), np.eye(2), *more])
        assert (len(bound["tensors"]), bound["path"]) == (2, None)


# ------------------------------------------------------------------------------- the operators


def test_bins_are_those_of_the_definition() -> None:
    assert bins(7, 3) == [(0, 3), (2, 5), (4, 7)]
    assert bins(2, 5) == [(0, 1), (0, 1), (0, 2), (1, 2), (1, 2)]


@pytest.mark.parametrize("spelling", ["A+", "A", "N"])
def test_adaptive_pools_over_equal_windows_are_plain_pools(spelling: str) -> None:
    x = normal(2, 3, 8, 6)
    (mean,) = run("adaptive_avg_pool2d", [x, [4, 2]], spelling=spelling)
    want = by_onnxruntime("AveragePool", [x], kernel_shape=[2, 3], strides=[2, 3])
    np.testing.assert_allclose(mean, want, atol=1e-6)
    best, _ = run("adaptive_max_pool2d", [x, [4, 2]], outputs=2, spelling=spelling)
    want = by_onnxruntime("MaxPool", [x], kernel_shape=[2, 3], strides=[2, 3])
    np.testing.assert_array_equal(best, want)


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_adaptive_pools_over_unequal_windows(axes: int) -> None:
    x = normal(2, 3, *(7, 5, 4)[:axes])
    size = [3, 2, 3][:axes]
    (mean,) = run(f"adaptive_avg_pool{axes}d", [x, size])
    best, place = run(f"adaptive_max_pool{axes}d", [x, size], outputs=2)
    for at in np.ndindex(*size):
        box = tuple(
            slice(i * n // count, -(-(i + 1) * n // count))
            for i, n, count in zip(at, x.shape[2:], size, strict=True)
        )
        window = x[(..., *box)].reshape(2, 3, -1)
        np.testing.assert_allclose(mean[(..., *at)], window.mean(-1), atol=1e-6)
        np.testing.assert_array_equal(best[(..., *at)], window.max(-1))
    flat = x.reshape(2, 3, -1)
    picked = np.take_along_axis(flat, place.reshape(2, 3, -1), -1)
    np.testing.assert_array_equal(picked.reshape(best.shape), best)
    assert place.dtype == np.int64


def test_a_nan_wins_a_maximum() -> None:
    x = np.array([[[1, np.nan, 3, 2]]], np.float32)
    best, place = run("adaptive_max_pool1d", [x, [2]], outputs=2)
    assert np.isnan(best[0, 0, 0])
    assert place.tolist() == [[[1, 2]]]


@pytest.mark.parametrize("groups", [1, 2, 4])
@pytest.mark.parametrize(("stride", "padding", "dilation"), [(1, 0, 1), (2, 1, 1), (3, 2, 2)])
def test_convolutions_agree_with_conv(
    groups: int, stride: int, padding: int, dilation: int
) -> None:
    x, bias = normal(2, 4, 9, 8), normal(8)
    weight = normal(8, 4 // groups, 3, 2)
    tail = [False, [0, 0], groups, False, False, True, True]
    geometry = [[stride, stride], [padding, padding], [dilation, dilation]]
    (y,) = run("_convolution", [x, weight, bias, *geometry, *tail])
    want = by_onnxruntime(
        "Conv",
        [x, weight, bias],
        strides=[stride] * 2,
        pads=[padding] * 4,
        dilations=[dilation] * 2,
        group=groups,
    )
    np.testing.assert_allclose(y, want, atol=1e-5)
    (old,) = run("_convolution", [x, weight, bias, *geometry, *tail[:-1]])
    np.testing.assert_array_equal(old, y)
    (plain,) = run("conv2d", [x, weight, None, *geometry, groups])
    np.testing.assert_allclose(plain + bias[:, None, None], want, atol=1e-5)
    (single,) = run("conv2d", [x[0], weight, bias, *geometry, groups])
    np.testing.assert_array_equal(single, y[0])


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize(
    ("stride", "padding", "extra", "dilation"), [(1, 0, 0, 1), (2, 1, 1, 1), (3, 1, 2, 2)]
)
def test_transposed_convolutions_agree_with_conv_transpose(
    groups: int, stride: int, padding: int, extra: int, dilation: int
) -> None:
    x, weight = normal(2, 4, 5, 6), normal(4, 3, 3, 2)
    bias = normal(3 * groups)
    square = [[stride, stride], [padding, padding]]
    want = by_onnxruntime(
        "ConvTranspose",
        [x, weight, bias],
        strides=[stride] * 2,
        pads=[padding] * 4,
        dilations=[dilation] * 2,
        output_padding=[extra] * 2,
        group=groups,
    )
    rest = [[dilation] * 2, True, [extra] * 2, groups]
    (y,) = run("convolution", [x, weight, bias, *square, *rest])
    np.testing.assert_allclose(y, want, atol=1e-5)
    (y,) = run("conv_transpose2d", [x, weight, bias, *square, [extra] * 2, groups, [dilation] * 2])
    np.testing.assert_allclose(y, want, atol=1e-5)


def test_padding_by_word() -> None:
    x, weight = normal(1, 2, 7), normal(3, 2, 4)
    (y,) = run("conv1d", [x, weight, None, [1], "same", [1], 1])
    want = by_onnxruntime("Conv", [x, weight], pads=[1, 2])
    np.testing.assert_allclose(y, want, atol=1e-5)


def test_groups_that_do_not_fit_are_undefined() -> None:
    x, weight = normal(1, 6, 5, 5), normal(6, 1, 3, 3)
    tail = [[1, 1], [1, 1], [1, 1], False, [0, 0], 2, False, False, True, True]
    with pytest.raises(Undefined) as caught:
        run("_convolution", [x, weight, None, *tail])
    assert caught.value.operator == "_convolution"
    assert "node 'y0' (org.pytorch.aten.ATen)" in str(caught.value)
    assert "need an input of 2 channels; it has 6" in caught.value.reason


@pytest.mark.parametrize(
    ("operator", "arguments", "because"),
    [
        ("put", [normal(4), np.array([0, 1]), normal(3), False], "3 values for 2 places"),
        ("pixel_shuffle", [normal(1, 3, 2, 2), 2], "3 channels are no multiple of 4"),
        ("pixel_unshuffle", [normal(1, 3, 2, 3), 2], "2 by 3 is no multiple of 2"),
        ("histogram", [normal(4), np.zeros(3, np.float32), None, False], "borders do not rise"),
        ("__rshift__", [np.array([5]), np.array([64])], "more or fewer bits"),
        (
            "grid_sampler",
            [normal(1, 2, 4, 4), normal(2, 3, 3, 2), 0, 0, True],
            "grids of 2 samples",
        ),
        ("fill_diagonal", [normal(4), 1, False], "a diagonal of shape"),
        ("_lfilter", [normal(1, 3, 9), normal(2, 2), normal(2, 2)], "2 filters for 3 channels"),
    ],
)
def test_what_no_shape_or_number_fits_is_undefined(
    operator: str, arguments: list[Any], because: str
) -> None:
    with pytest.raises(Undefined, match=because):
        run(operator, arguments)


def test_a_nearest_point_is_rounded_as_its_own_dtype_does() -> None:
    x, point = normal(1, 1, 1, 8), np.array([[[[0.49999997, 0]]]], np.float32)
    (y,) = run("grid_sampler", [x, point, 1, 0, False])
    assert y.item() == x[0, 0, 0, 6], "5.5 in single precision, which rounds to even"


def test_a_text_beyond_all_chances() -> None:
    logs = np.array([[[1000, 0]], [[0, -2000]]], np.float32)
    one, lengths = np.array([[0]]), np.array([1])
    (y,) = run("ctc_loss", [logs, one, np.array([2]), lengths, 1, 0, False])
    assert y.tolist() == [-1000]
    with pytest.raises(Undefined, match="too small"):
        run("ctc_loss", [-logs[1:], one, np.array([1]), lengths, 1, 0, False])


def test_quotients_of_floats_were_cut_before_1_13() -> None:
    a, b = np.array([-7.5, 7.5], np.float32), np.array([2, -2], np.float32)
    model = one_node("floor_divide", [a, b])
    model.producer_name = "pytorch"
    for version, wanted in (("1.12", [-3, -3]), ("1.13", [-4, -4])):
        model.producer_version = version
        assert Reference(model).run({"v0": a, "v1": b})["y0"].tolist() == wanted


def test_shapes_move_data() -> None:
    x = normal(2, 3, 4)
    assert run("flatten", [x, 1, -1])[0].shape == (2, 12)
    assert run("view", [x, [4, -1]])[0].shape == (4, 6)
    assert run("size", [x, 1])[0].tolist() == 3
    assert run("size", [x])[0].tolist() == [2, 3, 4]
    assert run("unsqueeze", [x, -1])[0].shape == (2, 3, 4, 1)
    np.testing.assert_array_equal(run("transpose", [x, 0, -1])[0], x.transpose(2, 1, 0))
    np.testing.assert_array_equal(run("relu", [x])[0], np.maximum(x, 0))
    with pytest.raises(Undefined, match="shape \\[5, -1\\]"):
        run("view", [x, [5, -1]])


def test_batch_norm_and_group_norm() -> None:
    x, scale, shift, mean = normal(2, 4, 5), normal(4), normal(4), normal(4)
    variance = np.abs(normal(4)) + 1
    (y,) = run("batch_norm", [x, scale, shift, mean, variance, False, 0.1, 1e-5, True])
    want = by_onnxruntime("BatchNormalization", [x, scale, shift, mean, variance], epsilon=1e-5)
    np.testing.assert_allclose(y, want, atol=1e-5)
    model = parse(
        """g (float[N,C,T] x, float[C] w, float[C] b) => (float[N,C,T] y) {
        y = ATen <cudnn_enabled = 1, eps = 1e-5, num_groups = 2, operator = "group_norm"> (x, w, b)
        }"""
    )
    grouped = x.reshape(2, 2, -1)
    centred = grouped - grouped.mean(-1, keepdims=True)
    want = (centred / np.sqrt(grouped.var(-1, keepdims=True) + 1e-5)).reshape(x.shape)
    y = Reference(model).run({"x": x, "w": scale, "b": shift})["y"]
    np.testing.assert_allclose(y, want * scale[:, None] + shift[:, None], atol=1e-5)


def test_an_operator_nobody_knows_is_named() -> None:
    with pytest.raises(NoWitness, match="`no_such_thing` has no witness"):
        run("no_such_thing", [normal(2)])
    with pytest.raises(NoWitness, match="3 arguments are given, it takes 2"):
        run("adaptive_avg_pool2d", [normal(1, 2, 3, 3), [1, 1], 1])


# -------------------------------------------------------------------------------- the executor


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


# ------------------------------------------------------------------- real files, and real torch


def recorded(path: Path) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    sets = []
    for file in sorted(
        [*path.parent.glob(path.stem + ".npz"), *path.parent.glob(path.stem + ".[0-9].npz")]
    ):
        with np.load(file) as arrays:
            feeds = {k[3:]: arrays[k] for k in arrays.files if k.startswith("in.")}
            sets.append((feeds, {k[4:]: arrays[k] for k in arrays.files if k.startswith("out.")}))
    return sets


@needs_corpus
@pytest.mark.corpus
@pytest.mark.parametrize(
    "name",
    [
        "models/dymn01_dynT__t2.13.0__fallback",
        "ops/adaptive_avg_pool2d_1_none_dynhw__t1.12.1__fallback",
        "ops/adaptive_max_pool2d_indices__t1.12.1__fallback",
        "ops/dyconv_dynt__t2.4.1__fallback",
        "ops/group_norm_plain__t1.4.0__fallback",
    ],
)
def test_the_witness_reproduces_pytorch(name: str) -> None:
    path = CORPUS / f"{name}.onnx"
    if not path.exists():
        pytest.skip(f"{name} is not in the corpus")
    reference = Reference(path)
    for feeds, outputs in recorded(path):
        found = reference.run(feeds)
        for key, want in outputs.items():
            assert found[key].shape == want.shape
            assert np.abs(found[key] - want).max() <= 2e-5 * max(1, np.abs(want).max())


@needs_corpus
@pytest.mark.corpus
def test_a_batch_that_tracing_froze_is_undefined() -> None:
    path = CORPUS / "models/dymn01_dynB__t2.4.1__fallback.onnx"
    reference = Reference(path)
    traced, larger, *_ = recorded(path)
    assert np.allclose(reference.run(traced[0])["output0"], traced[1]["output0"], atol=1e-4)
    with pytest.raises(Undefined, match="groups=16"):
        reference.run(larger[0])


def test_steps_of_nothing_are_undefined() -> None:
    """A size of the input may be the step of its windows, and is 0 where there is no element."""
    x = normal(1, 1, 4, 4)
    model = one_node("avg_pool2d", [x, [2, 2], [0, 2], [0, 0], False, True, None])
    with pytest.raises(Undefined, match="avg_pool2d"):
        Reference(model).run({"v0": x})


@needs_torch
def test_torch_says_the_same() -> None:
    from surgeon.reference.torch_witness import TorchWitness

    x = normal(2, 3, 7, 5)
    model = one_node("adaptive_max_pool2d", [x, [3, 2]], outputs=2)
    ours = Reference(model).run({"v0": x})
    theirs = Reference(model, witness=TorchWitness()).run({"v0": x})
    for name, value in ours.items():
        np.testing.assert_array_equal(value, theirs[name])
    with pytest.raises(NoWitness, match="torch has no such operator"):
        Reference(one_node("no_such", [x]), witness=TorchWitness()).run({"v0": x})
    with pytest.raises(Undefined):
        Reference(one_node("view", [x, [4, 4]]), witness=TorchWitness()).run({"v0": x})


@pytest.mark.parametrize(
    ("operator", "shapes"),
    [
        ("bilinear", [(2, 1), (2, 4), (5, 3, 4)]),
        ("bilinear", [(1, 3), (2, 4), (5, 3, 4)]),
        ("gru_cell", [(2, 1), (2, 4), (12, 3), (12, 4)]),
        ("lstm_cell", [(2, 3), [(2, 1), (2, 4)], (16, 3), (16, 4)]),
        ("scaled_dot_product_attention", [(1, 2, 5, 1), (1, 2, 6, 4), (1, 2, 6, 4)]),
        ("scaled_dot_product_attention", [(1, 2, 5, 4), (1, 2, 6, 4), (1, 2, 1, 4)]),
    ],
)
def test_sizes_of_1_are_no_other_sizes_in_sums_of_products(operator: str, shapes: Any) -> None:
    """PyTorch raises there, where numpy's einsum would take the one element many times."""
    values = [
        [np.ones(each, np.float32) for each in shape]
        if isinstance(shape, list)
        else np.ones(shape, np.float32)
        for shape in shapes
    ]
    with pytest.raises(Unsuited):
        NumpyWitness()(Call(operator, "", {}), values, where="")


@pytest.mark.parametrize(
    ("operator", "values"),
    [
        ("col2im", [np.ones((1, 6, 3), np.float32), [0, 1], [6, 1], [1, 1], [6, 0], [3, 1]]),
        ("scatter_add", [np.zeros(3), 0, np.zeros(4, np.int64), np.ones(1)]),
    ],
)
def test_sizes_that_pytorch_refuses_are_refused(operator: str, values: Any) -> None:
    with pytest.raises(Unsuited):
        NumpyWitness()(Call(operator, "", {}), values, where="")


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


def test_lists_of_different_shapes_reach_operators_of_one_argument() -> None:
    witness = OldMeanings(NumpyWitness(), (1, 12))
    arrays = [np.arange(2), np.arange(3)]
    found = witness(Call("cartesian_prod", "", {}), [arrays], where="")
    assert found.tolist() == [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2]]
