"""Where a pattern is found, what it binds, and why it is not found, word by word."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from matching import F32, attempt, attempt_in, ints, names, reason
from truth import infer, model_of, parse

from surgeon.captured import CapturedValue
from surgeon.expressions import Unknown
from surgeon.facts import Facts
from surgeon.match import Match, Miss, attribute_of, look_through

# --------------------------------------------------------------------------------------- structure


def test_names_are_bound_to_values() -> None:
    found = attempt("a = Neg (v)\ny = Sub (w, a)", "q = Neg (x) y = Sub (z, q)")
    assert names(found) == {"a": "q", "v": "x", "w": "z", "y": "y"}
    assert isinstance(found, Match)
    assert [n.op for n in found.nodes] == ["Sub", "Neg"]


@pytest.mark.parametrize("op", ["Add", "Mul", "Min", "Max"])
@pytest.mark.parametrize("operands", ["a, z", "z, a"])
def test_commutative_operands_match_in_either_order(op: str, operands: str) -> None:
    found = attempt(f"a = Neg (x)\ny = {op} (a, w)", f"a = Neg (x) y = {op} ({operands})")
    assert names(found) == {"a": "a", "x": "x", "w": "z", "y": "y"}


@pytest.mark.parametrize(("op", "inner"), [("Equal", "int64"), ("And", "bool"), ("Xor", "bool")])
def test_commutative_comparisons(op: str, inner: str) -> None:
    inputs = f"{inner}[b] x, {inner}[b] z"
    found = attempt(f"a = Identity (x)\ny = {op} (a, w)", f"y = {op} (z, x)", inputs=inputs)
    assert isinstance(found, Miss)  # no Identity there
    make = "Not" if inner == "bool" else "Neg"
    body = f"a = {make} (x) y = {op} (z, a)"
    found = attempt(f"a = {make} (x)\ny = {op} (a, w)", body, inputs=inputs)
    assert names(found)["w"] == "z"


@pytest.mark.parametrize("op", ["Sub", "Div", "Pow"])
def test_others_match_in_their_own_order(op: str) -> None:
    found = attempt(f"a = Neg (x)\ny = {op} (a, w)", f"a = Neg (x) y = {op} (z, a)")
    assert reason(found) == "`a` ('z') is not computed by a node"


def test_both_orders_of_two_levels() -> None:
    pattern = "a = Neg (x)\nb = Mul (a, v)\ny = Add (b, w)"
    found = attempt(pattern, "k = Exp (x) a = Neg (x) b = Mul (z, a) y = Add (k, b)")
    assert names(found) == {"a": "a", "x": "x", "b": "b", "v": "z", "w": "k", "y": "y"}


def test_the_same_name_twice_is_the_same_value() -> None:
    assert names(attempt("y = Mul (v, v)", "y = Mul (x, x)"))["v"] == "x"
    assert reason(attempt("y = Mul (v, v)", "y = Mul (x, z)")) == "`v` would be both 'z' and 'x'"
    pattern = "a = Sigmoid (v)\ny = Mul (v, a)"
    assert names(attempt(pattern, "s = Sigmoid (x) y = Mul (s, x)"))["v"] == "x"
    found = attempt(pattern, "s = Sigmoid (x) y = Mul (s, z)")
    assert "would be both" in reason(found)


def test_an_attribute_that_is_captured_twice_is_the_same() -> None:
    nodes = "a = MaxPool <kernel_shape = {}> (x)\nb = AveragePool <kernel_shape = {}> (x)"
    pattern = nodes.format("@k", "@k") + "\ny = Add (a, b)"
    body = nodes.format("[3, 3]", "[{k}, 3]") + "y = Add (a, b)"
    inputs = "float[n,c,h,w] x"
    found = attempt(pattern, body.format(k=3), inputs=inputs)
    assert isinstance(found, Match)
    assert found.attributes["k"] == [3, 3]
    found = attempt(pattern, body.format(k=1), inputs=inputs)
    assert reason(found) == "`k` would be both [3, 3] and [1, 3]"


def test_the_other_attributes_of_two_nodes_under_one_name_are_the_same() -> None:
    pattern = "a = MaxPool <*r> (x)\nb = MaxPool <*r> (z)\ny = Add (a, b)"
    body = "a = MaxPool <kernel_shape = [3, 3]> (x) b = MaxPool <kernel_shape = {k}> (z)"
    body += "y = Add (a, b)"
    inputs = "float[n,c,h,w] x, float[n,c,h,w] z"
    assert isinstance(attempt(pattern, body.format(k=[3, 3]), inputs=inputs), Match)
    assert "`*r` would be both" in reason(attempt(pattern, body.format(k=[1, 1]), inputs=inputs))


@pytest.mark.parametrize(("first", "second"), [(", c", ""), ("", ", c")])
def test_an_operand_that_one_of_two_nodes_lacks_is_not_the_same(first: str, second: str) -> None:
    pattern = "a = Conv (x, w, b?)\nd = Conv (z, w, b?)\ny = Mul (a, d)"
    body = f"a = Conv (x, w{first}) d = Conv (z, w{second}) y = Mul (a, d)"
    inputs = "float[n,2,h,w] x, float[n,2,h,w] z, float[2,2,1,1] w, float[2] c"
    assert "`b` would be both" in reason(attempt(pattern, body, inputs=inputs))


def test_an_axis_is_another_where_there_are_fewer_axes() -> None:
    found = attempt("y = Softmax <axis = 3> (x)", "y = Softmax <axis = 1> (x)")
    assert reason(found) == "attribute `axis` of node 'y' (ai.onnx.Softmax) is 1, not 3"


def test_one_node_does_not_stand_for_two() -> None:
    found = attempt("a = Neg (v)\nb = Neg (w)\ny = Add (a, b)", "a = Neg (x) y = Add (a, a)")
    assert reason(found) == "node 'a' (ai.onnx.Neg) would be matched twice"


def test_either_operator() -> None:
    pattern = "y = Relu | Sigmoid (x)"
    assert isinstance(attempt(pattern, "y = Sigmoid (x)"), Match)
    found = attempt(pattern, "y = Tanh (x)")
    assert reason(found) == "node 'y' (ai.onnx.Tanh) is not ai.onnx.Relu | Sigmoid"


def test_anything_and_the_rest() -> None:
    assert names(attempt("y = Sub (_, v)", "y = Sub (x, z)")) == {"v": "z", "y": "y"}
    found = attempt("y = Concat <axis = 1> (v, *others)", "y = Concat <axis = 1> (x, z, x)")
    assert isinstance(found, Match)
    assert [t.name for t in found.rests["others"]] == ["z", "x"]
    found = attempt("y = Concat <axis = 1> (v, *others)", "y = Concat <axis = 1> (x)")
    assert isinstance(found, Match)
    assert found.rests["others"] == ()


def test_optional_inputs() -> None:
    constants = {"k": np.zeros((2, 1, 1), F32), "c": np.zeros(2, F32)}
    inputs = "float[b,1,t] x"
    pattern = "y = Conv (x, w, bias?)"
    with_bias = attempt(pattern, "y = Conv (x, k, c)", inputs=inputs, constants=constants)
    assert names(with_bias)["bias"] == "c"
    without = attempt(pattern, "y = Conv (x, k)", inputs=inputs, constants=constants)
    assert names(without)["bias"] is None
    must = attempt("y = Conv (x, w, bias)", "y = Conv (x, k)", inputs=inputs, constants=constants)
    assert reason(must) == "node 'y' (ai.onnx.Conv) has no input 2 (`bias`)"
    none = attempt("y = Conv (x, w)", "y = Conv (x, k, c)", inputs=inputs, constants=constants)
    assert reason(none) == "node 'y' (ai.onnx.Conv) has 3 inputs, not 2"


def test_inputs_left_out_in_the_middle() -> None:
    constants = {"hi": F32(6)}
    found = attempt("y = Clip (x, , high)", "y = Clip (x, , hi)", constants=constants)
    assert names(found)["high"] == "hi"
    found = attempt("y = Clip (x, , high)", "y = Clip (x, hi, hi)", constants=constants)
    assert reason(found) == "node 'y' (ai.onnx.Clip) has an input 1, the pattern has none"


def test_an_inner_value_with_other_readers_matches_still() -> None:
    found = attempt(
        "a = Neg (v)\ny = Relu (a)", "a = Neg (x) y = Relu (a) q = Abs (a)", outputs="y q"
    )
    assert isinstance(found, Match)


def test_outputs_of_the_root_that_the_pattern_does_not_name() -> None:
    body = "y, q = Split <axis = 1> (x, s)"
    kwargs: dict[str, Any] = {"inputs": "float[b,4] x", "constants": {"s": ints(1, 3)}}
    assert isinstance(attempt("y = Split (x, s)", body, **kwargs), Match)
    read = attempt("y = Split (x, s)", body, outputs="y q", **kwargs)
    assert reason(read) == "output 1 of node 'y' (ai.onnx.Split) is read"
    assert isinstance(attempt("y, q = Split (x, s)", body, outputs="y q", **kwargs), Match)


def test_which_output_of_an_inner_node() -> None:
    kwargs: dict[str, Any] = {"inputs": "float[b,4] x", "constants": {"s": ints(2, 2)}}
    pattern = "p, q = Split (x, s)\ny = Relu (q)"
    found = attempt(pattern, "p, q = Split <axis = 1> (x, s) y = Relu (q)", **kwargs)
    assert isinstance(found, Match)
    found = attempt(pattern, "p, q = Split <axis = 1> (x, s) y = Relu (p)", **kwargs)
    assert reason(found) == "`q` is another output of node 'p' (ai.onnx.Split)"


def test_domains() -> None:
    assert isinstance(attempt("y = my.Op (x)", "y = my.Op (x)"), Match)
    found = attempt("y = Relu (x)", "y = my.Relu (x)")
    assert reason(found) == "node 'y' (my.Relu) is not ai.onnx.Relu"
    found = attempt("y = my.Relu (x)", "y = Relu (x)")
    assert reason(found) == "node 'y' (ai.onnx.Relu) is not my.Relu"


def test_how_far_a_miss_came() -> None:
    found = attempt(
        "a = Exp (x)\nb = Neg (a)\nc = Relu (b)\ny = Abs (c)",
        "a = Sin (x) b = Neg (a) c = Relu (b) y = Abs (c)",
    )
    assert isinstance(found, Miss)
    assert (found.matched, found.total) == (3, 4)
    assert found.reason() == "node 'a' (ai.onnx.Sin) is not ai.onnx.Exp"


# -------------------------------------------------------------------------------------- attributes


def test_attributes_and_their_defaults() -> None:
    pattern = "y = Gemm <alpha = 1.0, transB = 1> (a, b)"
    kwargs: dict[str, Any] = {"inputs": "float[n,4] x, float[n,4] z"}
    assert isinstance(attempt(pattern, "y = Gemm <transB = 1> (x, z)", **kwargs), Match)
    found = attempt(pattern, "y = Gemm <transB = 1, alpha = 0.5> (x, z)", **kwargs)
    assert reason(found) == "attribute `alpha` of node 'y' (ai.onnx.Gemm) is 0.5, not 1.0"
    found = attempt(pattern, "y = Gemm <transA = 1> (x, z)", **kwargs)
    assert reason(found) == "attribute `transB` of node 'y' (ai.onnx.Gemm) is 0, not 1"


def test_attributes_that_a_pattern_does_not_name_may_be_anything() -> None:
    assert isinstance(attempt("y = Softmax (x)", "y = Softmax <axis = 0> (x)"), Match)


def test_captured_attributes() -> None:
    pattern = "y = LeakyRelu <alpha = @slope> (x)"
    found = attempt(pattern, "y = LeakyRelu <alpha = 0.2> (x)")
    assert isinstance(found, Match)
    assert found.attributes["slope"] == F32(0.2)
    found = attempt(pattern, "y = LeakyRelu (x)")
    assert isinstance(found, Match)
    assert found.attributes["slope"] == F32(0.01)
    found = attempt("y = LpPool <kernel_shape = @size> (x)", "y = LpPool (x)", inputs="float x")
    assert reason(found) == "node 'y' (ai.onnx.LpPool) has no attribute `kernel_shape`"


def test_floats_are_compared_as_the_file_has_them() -> None:
    found = attempt("y = LeakyRelu <alpha = 0.1> (x)", "y = LeakyRelu <alpha = 0.1> (x)")
    assert isinstance(found, Match)


def test_texts_and_lists() -> None:
    constants = {"k": np.zeros((2, 1, 3), F32)}
    kwargs: dict[str, Any] = {"inputs": "float[b,1,t] x", "constants": constants}
    pattern = 'y = Conv <auto_pad = "NOTSET", pads = [1, 1]> (x, w)'
    assert isinstance(attempt(pattern, "y = Conv <pads = [1, 1]> (x, k)", **kwargs), Match)
    found = attempt(pattern, "y = Conv <pads = [1, 0]> (x, k)", **kwargs)
    assert reason(found) == "attribute `pads` of node 'y' (ai.onnx.Conv) is [1, 0], not [1, 1]"
    found = attempt(pattern, 'y = Conv <auto_pad = "VALID"> (x, k)', **kwargs)
    assert (
        reason(found) == "attribute `auto_pad` of node 'y' (ai.onnx.Conv) is 'VALID', not 'NOTSET'"
    )


def test_the_rest_of_the_attributes() -> None:
    constants = {"k": np.zeros((2, 1, 3), F32)}
    body = "y = Conv <pads = [1, 1], strides = [2], dilations = [1]> (x, k)"
    found = attempt(
        "y = Conv <pads = [1, 1], strides = @s, *others> (x, w)",
        body,
        inputs="float[b,1,t] x",
        constants=constants,
    )
    assert isinstance(found, Match)
    assert found.attributes["*others"] == {"dilations": [1]}
    assert found.attributes["s"] == [2]


@pytest.mark.parametrize(("wanted", "there"), [(-1, 1), (1, -1), (0, -2), (-2, 0), (1, 1)])
def test_an_axis_counts_from_either_end(wanted: int, there: int) -> None:
    found = attempt(f"y = Softmax <axis = {wanted}> (x)", f"y = Softmax <axis = {there}> (x)")
    assert isinstance(found, Match)


def test_another_axis() -> None:
    found = attempt("y = Softmax <axis = -1> (x)", "y = Softmax <axis = 0> (x)")
    assert reason(found) == "attribute `axis` of node 'y' (ai.onnx.Softmax) is 0, not -1"


# ---------------------------------------------------------------------------------- through views

VIEWS = "a = Neg (x) v = Reshape (a, k) w = Unsqueeze (v, m) y = Relu (w)"
VIEW_CONSTANTS = {"k": ints(0, -1, 1), "m": ints(0)}


def test_looking_through_views() -> None:
    found = attempt("a = Neg (x)\ny = Relu (a~)", VIEWS, constants=VIEW_CONSTANTS)
    assert names(found) == {"a": "a", "x": "x", "y": "y"}
    assert isinstance(found, Match)
    assert [n.op for n in found.views["a"]] == ["Unsqueeze", "Reshape"]
    plain = attempt("a = Neg (x)\ny = Relu (a)", VIEWS, constants=VIEW_CONSTANTS)
    assert reason(plain) == "node 'w' (ai.onnx.Unsqueeze) is not ai.onnx.Neg"


def test_looking_through_no_view_at_all() -> None:
    found = attempt("a = Neg (x)\ny = Relu (a~)", "a = Neg (x) y = Relu (a)")
    assert isinstance(found, Match)
    assert found.views["a"] == ()


def test_looking_stops_at_the_view_that_is_asked_for() -> None:
    pattern = "r = Reshape (x, s)\ny = Relu (r~)"
    found = attempt(pattern, VIEWS, constants=VIEW_CONSTANTS)
    assert isinstance(found, Match)
    assert [n.op for n in found.views["r"]] == ["Unsqueeze"]


def test_an_operand_behind_views() -> None:
    found = attempt("y = Relu (v~)", VIEWS, constants=VIEW_CONSTANTS)
    assert names(found)["v"] == "a"
    facts, tensors = infer(model_of("float[b,t] x", VIEWS, "y", constants=VIEW_CONSTANTS))
    behind, chain = look_through(tensors["w"])
    assert (behind.name, len(chain)) == ("a", 2)
    value = CapturedValue(behind, facts, lambda t: False, tuple(chain))
    assert str(value.attribute("views")) == "[[b, t, 1], [b, t]]"


# ------------------------------------------------------------------------------- ATen, expressions


def test_aten_operators_in_every_spelling() -> None:
    header = ', "org.pytorch.aten": 1'
    texts = [
        'g (float[b,t] x) => (y) { y = org.pytorch.aten.ATen <operator = "relu"> (x) }',
        'g (float[b,t] x) => (y) { y = org.pytorch.aten.ATen <operator = "relu", overload_name = '
        '""> (x) }',
        "g (float[b,t] x) => (y) { y = org.pytorch.aten.relu (x) }",
        'g (float[b,t] x) => (y) { y = ATen <operator = "relu"> (x) }',
    ]
    for text in texts:
        found = attempt_in("y = aten.relu (x)", parse(text, domains=header))
        assert isinstance(found, Match), found.reason()
    other = attempt_in("y = aten.relu6 (x)", parse(texts[0], domains=header))
    assert reason(other) == "node 'y' (aten.relu) is not aten.relu6"


def test_overloads() -> None:
    attributes = 'operator = "add", overload_name = "Scalar"'
    text = f"g (float[b,t] x) => (y) {{ y = org.pytorch.aten.ATen <{attributes}> (x) }}"
    proto = parse(text, domains=', "org.pytorch.aten": 1')
    assert isinstance(attempt_in("y = aten.add:Scalar (x)", proto), Match)
    assert isinstance(attempt_in("y = aten.add (x)", proto), Match)
    found = attempt_in("y = aten.add:Tensor (x)", proto)
    assert reason(found) == "node 'y' (aten.add) has overload 'Scalar'"


def test_what_expressions_see_of_a_value() -> None:
    proto = model_of(
        "float[b,3] x",
        "s = Shape (x) y = Reshape (x, k) q = Relu (y)",
        "y q s",
        constants={"k": ints(-1)},
    )
    facts, tensors = infer(proto)
    y = CapturedValue(tensors["y"], facts, lambda t: t.name == "y")
    asked = ("rank", "dtype", "consumers", "is_constant", "maker", "name", "attributes")
    seen = {n: y.attribute(n) for n in asked}
    assert seen == {
        "rank": 1,
        "dtype": "float32",
        "consumers": 2,
        "is_constant": False,
        "maker": "Reshape",
        "name": "y",
        "attributes": [],
    }
    assert str(y.attribute("shape")) == "[3*b]"
    assert y.attribute("value") == Unknown("it is computed at run time")
    assert str(CapturedValue(tensors["s"], facts, lambda t: False).attribute("value")) == "[b 3]"


def test_defaults_come_from_the_schema() -> None:
    facts: Facts
    facts, tensors = infer(model_of("float[b,t] x", "y = Softmax (x)", "y"))
    assert facts.opset == 17
    assert attribute_of(tensors["y"].inputs[0], "axis") == -1
    assert attribute_of(tensors["y"].inputs[0], "nothing") is None
