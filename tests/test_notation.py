"""The notation of patterns: what a node says, what onnx prints, and operators of any version."""

from __future__ import annotations

import numpy as np
import onnx.parser
import onnx.printer
import pytest
from patterns_read import HERE, only_node

from surgeon.errors import Location
from surgeon.notation import Argument, check_operators, parse_pattern, parse_replacement


def test_a_node_says_everything() -> None:
    node = only_node(
        '[label] y, , z = my.dom.A | B:over <a = 1, b: ints = [1, -2], s = "t\\"x", f: float = 3, '
        'axis = @k, *others> (x?, , _, "a/b:0", v~, *xs)  # a comment'
    )
    assert (node.domain, node.operators, node.overload) == ("my.dom", ("A", "B"), "over")
    assert node.outputs == ("y", "", "z")
    assert dict(node.attributes) == {"a": 1, "b": (1, -2), "s": 't"x', "f": 3.0}
    assert type(node.attributes["f"]) is float
    assert dict(node.captures) == {"axis": "k"}
    assert node.rest == "others"
    assert node.inputs == (
        Argument("x", optional=True),
        Argument(""),
        Argument("_"),
        Argument("a/b:0"),
        Argument("v", through=True),
        Argument("xs", rest=True),
    )
    assert node.location == Location("r.yaml", 10, 13)


def test_the_default_domain_has_two_spellings() -> None:
    assert only_node("y = ai.onnx.Relu (x)") == only_node("y = Relu (x)")
    assert only_node("y = ai.onnx.ml.Scaler (x)").domain == "ai.onnx.ml"
    assert only_node("y = aten.add | sub (x, z)").operators == ("add", "sub")
    assert only_node("y = aten.add | aten.sub (x, z)").domain == "aten"


def test_trailing_omitted_inputs_are_as_if_not_written() -> None:
    assert only_node('y = Clip (x, , "")').inputs == (Argument("x"),)
    assert only_node("y = Clip (x, , top)").inputs == (Argument("x"), Argument(""), Argument("top"))
    assert only_node("y = Constant ()").inputs == ()


def test_tensors() -> None:
    tensor = only_node("y = A <t = int64[2,1] named {1, 2}> (x)").attributes["t"]
    assert isinstance(tensor, np.ndarray)
    assert tensor.dtype == np.int64
    assert tensor.tolist() == [[1], [2]]
    assert not tensor.flags.writeable
    scalar = only_node("y = A <t: tensor = float {1.5}> (x)").attributes["t"]
    assert isinstance(scalar, np.ndarray)
    assert (scalar.shape, scalar.dtype) == ((), np.float32)
    words = only_node('y = A <t = string[1] {"a"}> (x)').attributes["t"]
    assert isinstance(words, np.ndarray)
    assert words.tolist() == ["a"]


def test_equality_sees_types_and_tensors_and_not_places() -> None:
    texts = ["a = 1", "a = 1.0", "a = [1]", "a = float[1] {1}", "a = double[1] {1}", "a = @b", "*a"]
    nodes = [only_node(f"y = A <{text}> (x)") for text in texts]
    assert len(set(nodes)) == len(nodes)
    assert only_node("y = A <t = float[1] {1}> (x)") == only_node("\n y=A<t=float[1]{1.0}>(x)")


def test_a_pattern_knows_its_names() -> None:
    pattern = parse_pattern("a, _ = A (x, _, w?)\nb = B (a, x, *xs) ; c = C (b, a)", HERE)
    assert pattern.root.operators == ("C",)
    assert pattern.inputs == ("x", "w", "xs")
    assert pattern.outputs == ("a", "b", "c")
    assert pattern.producer("b") is pattern.nodes[1]
    assert pattern.producer("x") is pattern.producer("_") is None
    assert parse_replacement("y = A (@k, x)", HERE).inputs == ("x",)


@pytest.mark.parametrize(
    "text",
    [
        "y = Relu (x)",
        "y, z = my.domain.Op:overload <a = 1, b = 2.5> (x, , w)",
        'y = Op <s = "a", t = float[2] {1, 2}, u: floats = [1, 2], v: ints = []> (x)',
        "y, , z = Op (x) <a = -1, f = 1e-05>",
    ],
)
def test_plain_onnx_text_and_what_onnx_prints_is_read(text: str) -> None:
    printed = onnx.printer.to_text(onnx.parser.parse_node(text))
    assert parse_pattern(printed, HERE) == parse_pattern(text, HERE)


@pytest.mark.parametrize(
    "text",
    [
        "y = ReduceMean <axes = [3]> (x)",
        "y = ReduceMean (x, axes)",
        "y = Concat <axis = @axis> (*xs)",
        "y = Clip (x, , top)",
        "y = Add | Mul (a, b)",
        "y = Gelu | Erf (x)",
        "y = ai.onnx.ml.Scaler (x)",
        "y = aten.relu <odd = 1> (x)",
        "y = Unsqueeze <axes = []> (x)",
        "y = my.domain.Op (x)",
        "y = other.Op (x)",
        "y = Plugin (x)",
    ],
)
def test_operators_of_any_version_and_declared_ones_pass(text: str) -> None:
    custom = frozenset({"my.domain.Op", "other", "Plugin"})
    check_operators(parse_pattern(text, HERE), custom=custom)
