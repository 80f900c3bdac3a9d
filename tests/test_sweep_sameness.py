"""Equal nodes however they are spelled: what is merged, and what only looks alike."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import pytest
from never_wrong import NAN, given, hold, noise
from sweeping import F32, FOLD, ints, ops
from truth import model_of, parse

import surgeon

X, Z = noise(2, 3), noise(2, 3)
CUBE = "float[n,t,4] x"


def counts(
    inputs: str, nodes: str, constants: Mapping[str, Any] | None = None, opset: int = 17
) -> dict[str, int]:
    """The operators behind both spellings, p and q, of a value; verified."""
    end = "" if "y = " in nodes else " y = Sub (p, q)"
    proto = model_of(inputs, nodes + end, "y", opset, constants)
    result = surgeon.apply(proto, FOLD)
    verdict = result.report.verdict
    assert verdict is None or verdict.status == "equivalent"
    return dict(result.report.after)


@pytest.mark.parametrize("op", ["Add", "Mul", "Sum"])
def test_operands_in_any_order(op: str) -> None:
    nodes = f"p = {op} (x, z) q = {op} (z, x)"
    assert counts("float[n] x, float[n] z", nodes) == {op: 1, "Sub": 1}
    assert counts("float[n] x", f"p = {op} (x, c) q = {op} (c, x)", {"c": F32(3)})[op] == 1


@pytest.mark.parametrize("op", ["And", "Or", "Xor", "Equal"])
def test_truths_in_any_order(op: str) -> None:
    nodes = f"p = {op} (x, z) q = {op} (z, x) y = Xor (p, q)"
    assert counts("bool[n] x, bool[n] z", nodes)[op] == 1 + (op == "Xor")


@pytest.mark.parametrize("op", ["Max", "Min"])
def test_the_larger_of_integers_in_any_order_but_of_floats_in_one(op: str) -> None:
    nodes = f"p = {op} (x, z) q = {op} (z, x)"
    assert counts("int64[n] x, int64[n] z", nodes)[op] == 1
    assert counts("float[n] x, float[n] z", nodes)[op] == 2


@pytest.mark.parametrize(
    ("inputs", "first", "second"),
    [
        ("float[n] x, float[n] z", "Sub (x, z)", "Sub (z, x)"),
        ("float[n] x, float[n] z", "Div (x, z)", "Div (z, x)"),
        ("float[n] x, float[n] z", "Pow (x, z)", "Pow (z, x)"),
        ("float[3,3] x, float[3,3] z", "MatMul (x, z)", "MatMul (z, x)"),
        ("float[n,3] x, float[n,3] z", "Concat <axis = 1> (x, z)", "Concat <axis = 1> (z, x)"),
        ("float[n,3] x, float[n,3] z", "Mean (x, z, x)", "Mean (x, x, z)"),
        ("float[n,3] x, float[n,3] z", "Sum (x, z, c)", "Sum (c, x, z)"),
        ("float[n,3] x, bool[n,3] z", "Where (z, x, c)", "Where (z, c, x)"),
        ("float[n,3] x", "Clip (x, , c)", "Clip (x, c, )"),
        ("float[n,3] x", "LeakyRelu (x)", "LeakyRelu <alpha = 0.02> (x)"),
        ("float[3,3] x", "Softmax <axis = -2> (x)", "Softmax <axis = 1> (x)"),
        ("float[3,3] x", "Transpose (x)", "Transpose <perm = [0, 1]> (x)"),
        ("float[3,3] x", "ReduceMax (x)", "ReduceMax <keepdims = 0> (x)"),
        ("float[3,3] x", "Gather (x, first)", "Gather <axis = 1> (x, first)"),
        ("float[3,3] x", "Gather (x, last)", "Gather (x, first)"),
        ("float[3,3] x", "Add (x, zero)", "Add (minus, x)"),
    ],
)
def test_what_only_looks_alike_stays(inputs: str, first: str, second: str) -> None:
    nodes = f"p = {first} q = {second}"
    constants = {"c": F32(0.5), "first": ints(0), "last": ints(-1)}
    constants |= {"zero": F32(0), "minus": F32(-0.0)}
    op = first.split()[0]
    assert counts(inputs, nodes, constants)[op] == (3 if op == "Sub" else 2)


def test_operands_of_other_domains_keep_their_order() -> None:
    proto = model_of("float[n] x, float[n] z", "p = my.Add (x, z) q = my.Add (z, x)", "p q")
    proto.opset_import.append(onnx.helper.make_opsetid("my", 1))
    assert surgeon.apply(proto, FOLD, verify=False).report.after == {"my.Add": 2}


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("Softmax (x)", "Softmax <axis = -1> (x)"),
        ("Softmax (x)", "Softmax <axis = 2> (x)"),
        ("LeakyRelu (x)", "LeakyRelu <alpha = 0.01> (x)"),
        ("Elu (x)", "Elu <alpha = 1.0> (x)"),
        ("Transpose (x)", "Transpose <perm = [2, 1, 0]> (x)"),
        ("Concat <axis = 2> (x, x)", "Concat <axis = -1> (x, x)"),
        ("ArgMax <axis = -3> (x)", "ArgMax (x)"),
        ("CumSum (x, end)", "CumSum (x, two)"),
        ("ReduceMax <axes = [1, 2]> (x)", "ReduceMax <axes = [-1, 1]> (x)"),
        ("ReduceMin <axes = [0, 1, 2]> (x)", "ReduceMin <keepdims = 1> (x)"),
        ("ReduceSum (x, ends)", "ReduceSum (x, twos)"),
        ("Unsqueeze (x, ends)", "Unsqueeze (x, threes)"),
        ("Gather <axis = 2> (x, end)", "Gather <axis = -1> (x, three)"),
        ("Slice (x, zeros, ends, twos)", "Slice (x, zeros, threes, ends)"),
        ("Slice (x, zeros, threes, twos)", "Slice (x, zeros, threes, twos, ones)"),
        ("Clip (x, three)", "Clip (x, three, )"),
    ],
)
def test_defaults_and_axes_however_they_are_spelled(first: str, second: str) -> None:
    op, numbers = first.split()[0], {"end": -1, "two": 2, "three": 3}
    constants: dict[str, Any] = {k: np.array(v) for k, v in numbers.items()}
    constants |= {"zeros": ints(0), "ones": ints(1), "twos": ints(2), "threes": ints(3)}
    constants["ends"] = ints(-1)
    if op == "Clip":
        constants["three"] = F32(3)
    inputs = CUBE.replace("n,t", "2,3") if op == "ArgMax" else CUBE
    assert counts(inputs, f"p = {first} q = {second}", constants)[op] == 1


def test_axes_of_an_unknown_rank_stay_as_they_are() -> None:
    nodes = "x = Reshape (v, s) p = Softmax <axis = -1> (x) q = Softmax <axis = 2> (x)"
    assert counts("float[n,t,4] v, int64[k] s", nodes + " y = Mul (p, q)")["Softmax"] == 2


@pytest.mark.parametrize("opset", [11, 12])
def test_defaults_are_those_of_the_opset(opset: int) -> None:
    """Before opset 13 a Softmax without an axis is over all axes from the second on."""
    nodes = "p = Softmax (x) q = Softmax <axis = -1> (x)"
    assert counts(CUBE, nodes, opset=opset)["Softmax"] == 2


def test_a_cut_backwards_begins_elsewhere() -> None:
    """In Python a start before the first element takes nothing, in ONNX the first."""
    constants = {"a": ints(-9), "b": ints(-8), "c": ints(-1), "d": ints(0), "s": ints(-1)}
    nodes = "p = Slice (x, a, b, d, s) q = Slice (x, c, c, d, s)"
    proto = parse(f"g (float[3] x) => (float[i] p, float[j] q) {{ {nodes} }}")
    hold(given(proto, **constants), {"x": noise(3)})


def test_nan_and_zeros_come_out_as_they_did() -> None:
    special = np.array([[0.0, -0.0, NAN], [-0.0, 0.0, 1.0]], F32)
    nodes = "a = Max (x, z) b = Max (z, x) c = Add (x, z) d = Add (z, x) e = Div (a, c)"
    face = "float[2,3] x, float[2,3] z) => (float[2,3] e, float[2,3] f"
    proto = parse(f"g ({face}) {{ {nodes} f = Div (b, d) }}")
    hold(proto, {"x": special, "z": special[::-1].copy()}, {"x": special, "z": Z})


def test_outputs_without_a_name_are_not_taken() -> None:
    nodes = "a, r = MaxPool <kernel_shape = [2]> (x) s, b = MaxPool <kernel_shape = [2]> (x)"
    face = "float[n,2,8] x) => (float[n,2,7] y, int64[n,2,7] z"
    proto = parse(f"g ({face}) {{ {nodes} y = Neg (a) z = Neg (b) }}")
    proto.graph.node[0].output[1] = ""
    assert ops(hold(proto, {"x": noise(1, 2, 8)}).graph).count("MaxPool") == 2


def branches(then: str, other: str) -> str:
    return (
        f"If (c) <then_branch = t () => (float[n,3] a) {{ {then} }}, "
        f"else_branch = u () => (float[n,3] b) {{ {other} }}>"
    )


SIN_COS = branches("a = Sin (x)", "b = Cos (x)")
FACE = "float[n,3] x, float[n,3] z, bool c, bool d, int64 m, int64 k"


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        (SIN_COS, SIN_COS, True),
        (SIN_COS, branches("k = Sin (x) a = Identity (k)", "b = Cos (x)"), True),
        (branches("a = Add (x, z)", "b = Neg (x)"), branches("a = Add (z, x)", "b = Neg (x)"), 1),
        (SIN_COS, branches("a = Sin (x)", "b = Cos (z)"), False),
        (SIN_COS, branches("a = Cos (x)", "b = Sin (x)"), False),
        (SIN_COS, SIN_COS.replace("(c)", "(d)"), False),
        (branches("a = Sub (x, z)", "b = Neg (x)"), branches("a = Sub (z, x)", "b = Neg (x)"), 0),
        (
            branches("r = Sin (x) s = Cos (x) a = Sub (r, s)", "b = Neg (x)"),
            branches("r = Sin (x) s = Cos (x) a = Sub (s, r)", "b = Neg (x)"),
            False,
        ),
        (
            branches(SIN_COS.replace("If", "a = If", 1).replace("(c)", "(d)", 1), "b = Neg (x)"),
            branches(SIN_COS.replace("If", "a = If", 1).replace("(c)", "(d)", 1), "b = Neg (x)"),
            True,
        ),
        (
            branches("a = RandomUniformLike (x)", "b = Neg (x)"),
            branches("a = RandomUniformLike (x)", "b = Neg (x)"),
            False,
        ),
        (
            branches("a = Dropout (x, , c)", "b = Neg (x)"),
            branches("a = Dropout (x, , c)", "b = Neg (x)"),
            False,
        ),
    ],
)
def test_equal_ifs(first: str, second: str, same: bool) -> None:
    text = f"g ({FACE}) => (float[n,3] y) {{ p = {first} q = {second} y = Add (p, q) }}"
    result = surgeon.apply(parse(text), FOLD, verify="Random" not in text and "Drop" not in text)
    assert ops(result.model.to_proto().graph).count("If") == (1 if same else 2)


def loop(body: str, trips: str = "m", start: str = "x", result: str = "r") -> str:
    return (
        f'Loop ({trips}, "", {start}) <body = b (int64 i, bool g, float[n,3] s) => '
        f"(bool h, float[n,3] {result}) {{ h = Identity (g) {body} }}>"
    )


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        (loop("r = Sin (s)"), loop("r = Sin (s)"), True),
        (loop("r = Sin (s)"), loop("o = Sin (s)", result="o"), True),
        (loop("r = Add (s, z)"), loop("r = Add (z, s)"), True),
        (loop("r = Add (s, z)"), loop("r = Add (s, x)"), False),
        (loop("r = Sin (s)"), loop("r = Cos (s)"), False),
        (loop("r = Sin (s)"), loop("r = Sin (s)", "k"), False),
        (loop("r = Sin (s)"), loop("r = Sin (s)", start="z"), False),
        (loop("r = Sin (s)"), loop("r = Sin (x)"), False),
        (loop("t = Bernoulli (s) r = Sin (t)"), loop("t = Bernoulli (s) r = Sin (t)"), False),
    ],
)
def test_equal_loops(first: str, second: str, same: bool) -> None:
    text = f"g ({FACE}) => (float[n,3] y) {{ p = {first} q = {second} y = Add (p, q) }}"
    result = surgeon.apply(parse(text.replace('""', "")), FOLD, verify="Bernoulli" not in text)
    assert ops(result.model.to_proto().graph).count("Loop") == (1 if same else 2)


def test_values_of_one_name_in_two_scopes_are_two() -> None:
    inner = "If (d) <then_branch = v () => (float[n,3] e) { e = Sin (w) }, "
    inner += "else_branch = f () => (float[n,3] h) { h = Cos (w) }>"
    text = (
        f"g ({FACE}) => (float[n,3] y) {{ p = "
        + branches(f"w = Exp (x) a = {inner}", "b = Neg (x)")
        + " q = "
        + branches(f"w = Abs (x) a = {inner}", "b = Neg (x)")
        + " y = Add (p, q) }"
    )
    feeds = {"x": X, "z": Z, "m": np.array(2), "k": np.array(3)}
    after = hold(
        parse(text),
        {**feeds, "c": np.array(True), "d": np.array(True)},
        {**feeds, "c": np.array(True), "d": np.array(False)},
        {**feeds, "c": np.array(False), "d": np.array(False)},
    )
    assert ops(after.graph).count("If") == 2


def test_an_if_that_gives_an_output_is_that_of_an_equal_one() -> None:
    text = (
        f"g ({FACE}) => (float[n,3] y, float[n,3] w) {{ p = {SIN_COS} y = Neg (p) w = {SIN_COS} }}"
    )
    result = surgeon.apply(parse(text), FOLD)
    assert ops(result.model.to_proto().graph).count("If") == 1
    assert result.report.verdict is not None
    assert result.report.verdict.status == "equivalent"


def test_large_bodies_are_not_compared() -> None:
    long = "a0 = Sin (x) " + " ".join(f"a{i} = Sin (a{i - 1})" for i in range(1, 300))
    node = branches(f"{long} a = Sin (a299)", "b = Neg (x)")
    text = f"g ({FACE}) => (float[n,3] y) {{ p = {node} q = {node} y = Add (p, q) }}"
    after = surgeon.apply(parse(text), FOLD).model.to_proto()
    assert ops(after.graph).count("If") == 2


def test_tensors_that_are_attributes_are_compared() -> None:
    nodes = (
        "p = ConstantOfShape <value = float[1] {1}> (s) q = ConstantOfShape <value = float[1] {1}> "
        "(s) r = ConstantOfShape <value = float[1] {2}> (s) o = ConstantOfShape (s) "
        "t = Sum (p, q, r, o) y = Relu (t)"
    )
    assert counts("int64[k] s", nodes)["ConstantOfShape"] == 3


def test_large_weights_are_equal_where_they_are_to_the_last_bit() -> None:
    """A module that is called twice, whose weights its exporter computed each time."""
    w = noise(40, 40)
    last, zero = w.copy(), w.copy()
    last[-1, -1] += 1
    w[3, 3], zero[3, 3] = 0.0, -0.0
    for other, matmuls in ((w.copy(), 1), (last, 2), (zero, 2), (w.astype(np.float64), 1)):
        nodes = "p = MatMul (x, a) c = Cast <to = 1> (b) q = MatMul (x, c)"
        assert counts("float[n,40] x", nodes, {"a": w, "b": other})["MatMul"] == matmuls
