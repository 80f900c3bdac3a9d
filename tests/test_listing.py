"""`inspect --nodes`: every node of a model as the text that a `match` may begin with."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from command import run

import surgeon
from surgeon import render
from surgeon.errors import Location
from surgeon.notation import parse_pattern
from surgeon.notation.operators import check_operators

NET = """
<ir_version: 8, opset_import: ["": 17, "my": 1, "org.pytorch.aten": 1]>
g (float[n, 4] x, bool c, float[2] u) => (float[n, 2] y, float[n, 2] z)
<float[4, 2] w = {1, 2, 3, 4, 5, 6, 7, 8.1}, int64[1] axes = {1},
 float[3, 3] big = {1, 2, 3, 4, 5, 6, 7, 8, 9}> {
  k = Constant <value = float[2] {0.1, 2}> ()
  s = Constant <value_strings = ["a", "b"]> ()
  m = MatMul (x, w)
  y = LeakyRelu <alpha = 0.1> (m)
  q = Clip (m, , k)
  t = my.Op <says = "a\\"b", long = [1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1, 2, 3, 4, 5, 6, 7]> (m, axes)
  ua, , ub = my.outer <mode = "x", none: ints = []> (u, big)
  at = org.pytorch.aten.ATen <operator = "add", overload_name = "Scalar"> (u, k)
  z = If (c) <
    then_branch = one () => (float[n, 2] a) {
      a = If (c) <
        then_branch = deep () => (float[n, 2] d) { d = Neg (m) },
        else_branch = other () => (float[n, 2] e) { e = Mul (m, k) }
      >
      f = Neg (a)
    },
    else_branch = two () => (float[n, 2] b) { b = Identity (y) }
  >
  last = Exp (z)
}
<domain: "my", opset_import: ["": 17]>
outer <mode, axis> (a, b) => (p, q, r) {
  p = Softmax <axis: int = @axis> (a)
  q = Neg (b)
  r = Neg (b)
}
"""
SHOWN = """\
# k = float[2] {0.1, 2.0}
# s = string[2] {"a", "b"}
m = MatMul (x, w)  # /fc/MatMul; w: float[4,2] {1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.1}
y = LeakyRelu <alpha = 0.1> (m)
q = Clip (m, , k)  # k: float[2] {0.1, 2.0}
t = my.Op <says = "a\\"b"> (m, axes)  # long: 17 values; axes: int64[1] {1}
ua, _, ub = my.outer <mode = "x", none = []> (u, big)  # big: float[3,3]
at = aten.add:Scalar (u, k)  # k: float[2] {0.1, 2.0}
z = If (c)  # then_branch: a body; else_branch: a body
  # then_branch of If z
  a = If (c)  # then_branch: a body; else_branch: a body
    # then_branch of If a
    d = Neg (m)
    # else_branch of If a
    e = Mul (m, k)  # k: float[2] {0.1, 2.0}
  f = Neg (a)
  # else_branch of If z
  b = Identity (y)
last = Exp (z)
# function my.outer (a, b) => (p, q, r)
p = Softmax <axis = @axis> (a)
q = Neg (b)
r = Neg (b)"""


@pytest.fixture
def net() -> onnx.ModelProto:
    model = onnx.parser.parse_model(NET)
    model.graph.node[2].name = "/fc/MatMul"
    return model


def test_every_node_is_shown_in_the_order_of_the_file(net: onnx.ModelProto) -> None:
    assert render.listing(surgeon.nodes(net)) == SHOWN


def test_each_line_is_a_pattern(net: onnx.ModelProto) -> None:
    where = Location("text", 1, 1)
    for each in surgeon.nodes(net):
        if each.pattern:
            pattern = parse_pattern(str(each), where)
            assert pattern == parse_pattern(each.pattern, where)
            assert each.operator.endswith(pattern.root.operators[0])
            check_operators(pattern, custom=frozenset({"my"}))


def test_what_is_copied_finds_the_node(tmp_path: Path) -> None:
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 12]> g (float[n, 4] x) => (float[m] y)'
        "{ h = LeakyRelu <alpha = 0.3> (x)  y = Squeeze <axes = [0]> (h) }"
    )
    model.graph.node[0].output[0] = model.graph.node[1].input[0] = "/fc/h"
    text = "\n".join(map(str, surgeon.nodes(model)))
    assert text.splitlines() == [
        '"/fc/h" = LeakyRelu <alpha = 0.3> (x)',
        'y = Squeeze <axes = [0]> ("/fc/h")',
    ]
    rule = surgeon.rule(text, why="A test.", exact="approximate")

    @rule
    def found(build: object, match: object) -> None:
        seen.append(match)

    seen: list[object] = []
    surgeon.apply(model, found, allow=["approximate"], verify=False)
    assert len(seen) == 1


def test_what_has_no_text_is_told(tmp_path: Path) -> None:
    node = onnx.helper.make_node
    odd = node("Op", ["x"], ["", ""], domain="my-own", name="two\nlines", deep=np.ones(19))
    held = node("Constant", [], ["c"], value=onnx.TensorProto(data_type=77, dims=[3]))
    graph = onnx.helper.make_graph([odd, held, node("Neg", ["c"], ["y"])], "g", [], [])
    cut = onnx.TensorProto(name="short", data_type=1, dims=[2], raw_data=b"")
    graph.initializer.append(cut)
    graph.node.append(node("Neg", ["short"], ["z"]))
    found = surgeon.nodes(onnx.helper.make_model(graph))
    assert [str(each) for each in found] == [
        "_ = my-own.Op (x)  # two\\nlines; deep: 19 values; no pattern names this operator",
        "# c = dtype 77[3]",
        "y = Neg (c)  # c: dtype 77[3]",
        "z = Neg (short)  # short: float[2]",
    ]
    assert len(render.listing(found).splitlines()) == 4


def test_the_command(net: onnx.ModelProto, tmp_path: Path) -> None:
    model = tmp_path / "net.onnx"
    onnx.save(net, model)
    assert run("inspect", model, "--nodes").output == f"{SHOWN}\n"
    told = json.loads(run("inspect", model, "--nodes", "--json").output)
    assert told[2] == {
        "pattern": "m = MatMul (x, w)",
        "note": "/fc/MatMul; w: float[4,2] {1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.1}",
        "name": "/fc/MatMul",
        "operator": "MatMul",
        "graph": "",
        "depth": 0,
    }
    assert told[-1]["graph"] == "function my.outer (a, b) => (p, q, r)"
    assert "match: y = LeakyRelu <alpha = 0.1> (m)" in run("inspect", model, "--node", "y").output
    assert run("inspect", model, "--nodes", "--node", "y").exit_code == 2
    assert run("inspect", model, "--nodes", "--target", "webgl").exit_code == 2
