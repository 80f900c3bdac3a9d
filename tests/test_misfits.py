"""Nodes that cannot be as they stand, one by one, and those that lead to no output."""

from __future__ import annotations

import json
from pathlib import Path

import onnx
import pytest
from command import run

import surgeon
from surgeon.inspection import with_load

HEAD = '<ir_version: 8, opset_import: ["": 17, "my": 1]>'
WRONG = """
g (float[n, 3] x) => (float[n, 4] y, float[n, 2] z)
<float[5, 4] w = {1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0}> {
  [foo] t = Foo (x)
  u = Relu (t)
  [mm] y = MatMul (x, w)
  q = Relu (x)
  [cc] z = Add (q, w)
}
"""


def misfits(text: str) -> list[tuple[str, ...]]:
    return [tuple(each) for each in surgeon.inspect(onnx.parser.parse_model(HEAD + text)).misfits]


def test_every_fault_is_named_behind_an_unknown_operator_too() -> None:
    found = surgeon.inspect(onnx.parser.parse_model(HEAD + WRONG))
    assert [tuple(each) for each in found.misfits] == [
        ("foo", "Foo", "ONNX has no such operator"),
        ("mm", "MatMul", "Incompatible dimensions for matrix multiplication"),
        ("cc", "Add", "Incompatible dimensions"),
    ]
    assert found.unread == ("foo", "u")
    assert misfits(WRONG.replace("Foo", "other.Foo"))[0][0] == "mm", "whose domain is not imported"


@pytest.mark.parametrize(
    ("node", "what"),
    [
        ("Add (x, i)", "`x` is tensor(float) and `i` tensor(int64), which have to be of one type"),
        (
            "Max (x, x, i)",
            "`x` is tensor(float) and `i` tensor(int64), which have to be of one type",
        ),
        ("Sin (i)", "`i` is tensor(int64), which it does not take there"),
        ("SequenceLength (x)", "`x` is tensor(float), which it does not take there"),
        ("Add (x)", "it reads 1, and takes 2"),
        ("Clip (x, x, x, x)", "it reads 4, and takes 1 to 3"),
        ("Concat <axis = 0> ()", "it reads 0, and takes 1 or more"),
        ("Cast (x)", "its attribute `to` is missing"),
        ("Relu <alpha = 1.0> (x)", "it has no attribute `alpha`"),
        ("Upsample (x, x)", "ONNX has no such operator any more at opset 17"),
        ("Gelu (x)", "ONNX has no such operator at opset 17: it is of 20 and later"),
        ("Softmax <axis = 5> (x)", "'axis' must be in [-2 , 1]. Its actual value is: 5"),
        ("Neg (nobody)", "it reads `nobody`, which nothing gives"),
    ],
)
def test_what_is_wrong_with_a_node(node: str, what: str) -> None:
    text = f"g (float[2, 3] x, int64[2, 3] i) => (float[2, 3] y) {{ [one] y = {node} }}"
    assert misfits(text) == [("one", node.split()[0], what)]


def test_bodies_and_functions_are_looked_into() -> None:
    text = """g (float[2, 3] x, bool c) => (float[m] y, float[m] z) <int64[2] s = {4, 4}> {
      k = Constant <value = int64[2] {5, 5}> ()
      y = If (c) <
        then_branch = a () => (float[m] p) { p = MatMul (x, x)  idle = Neg (x) },
        else_branch = b () => (float[m] q) { q = Add (x, s) }
      >
      z = my.f (x)
      unused = my.f (x)
    }
    <domain: "my", opset_import: ["": 17]>
    f (a) => (b) { b = Transpose <perm = [0, 0]> (a)  d = Neg (a) }"""
    assert [each[:2] for each in misfits(text)] == [
        ("p", "MatMul"),
        ("q", "Add"),
        ("b", "Transpose"),
    ]
    lost = [each[0] for each in misfits(text.replace("Neg (", "Neg (lost"))]
    assert lost == ["idle", "d"], "of what is no model nothing is inferred"
    found = surgeon.inspect(onnx.parser.parse_model(HEAD + text))
    assert found.unread == ("unused", "idle", "d")


@pytest.mark.parametrize(
    "body",
    [
        "a = my.Op (x)  b = Relu (a)  y = Add (b, x)",  # nobody knows its type
        "s = SequenceConstruct (x, x)  y = ConcatFromSequence <axis = 0> (s)",
        "o = Optional (x)  e = OptionalGetElement (o)  y = Neg (e)",
        "c = Constant <value_float = 2.0> ()  y = Pow (x, c)",
        "m = Shape (x)  r = Reshape (x, m)  y = Clip (r, , )",
        "y, _ = Dropout (x)",
    ],
)
def test_what_may_be_is_no_misfit(body: str) -> None:
    assert misfits(f"g (float[2, 3] x) => (float[m, n] y) {{ {body} }}") == []


def test_what_onnxruntime_loads_has_none(tmp_path: Path) -> None:
    path = tmp_path / "a.onnx"
    odd = "g (float[2, 3] x) => (float[2, 3] y) { y = Neg (x)  t = Sin (x) }"
    onnx.save(onnx.parser.parse_model(HEAD + odd), path)
    found = with_load(surgeon.inspect(path))
    assert (found.loads, found.misfits, found.unread) == (True, (), ("t",))
    onnx.save(onnx.parser.parse_model(HEAD + WRONG.replace("[foo] t = Foo", "t = Sin")), path)
    assert [each.node for each in with_load(surgeon.inspect(path)).misfits] == ["mm", "cc"]


def test_numbers_that_no_onnx_knows_are_no_traceback() -> None:
    model = onnx.parser.parse_model(HEAD + WRONG)
    model.graph.input[0].type.tensor_type.elem_type = 77
    model.opset_import[0].version = 2**40
    assert surgeon.inspect(model).unread == ("foo", "u")


@pytest.mark.slow
def test_the_command_lists_them(tmp_path: Path) -> None:
    path = tmp_path / "a.onnx"
    onnx.save(onnx.parser.parse_model(HEAD + WRONG), path)
    said = " ".join(run("inspect", path).output.split())
    assert "mm MatMul Incompatible dimensions for matrix multiplication" in said
    assert "cc Add Incompatible dimensions" in said
    assert "2 nodes lead to no output (foo and u)" in said
    assert "Only standard operators" not in said
    told = json.loads(run("inspect", path, "--json").output)
    assert told["misfits"][1]["node"] == "mm"
    many = "".join(f"[n{at}] v{at} = Sin (i)\n" for at in range(20))
    text = f"g (float[2] x, int64[2] i) => (float[2] y) {{ {many} y = Neg (x) }}"
    onnx.save(onnx.parser.parse_model(HEAD + text), path)
    said = run("inspect", path).output
    assert "n11 " in said
    assert "n12 " not in said
    assert "and 8 more: --verbose" in said
    assert "n19 " in run("inspect", path, "--verbose").output
    plain = "g (float[2] x) => (float[2] y) { y = Neg (x) }"
    onnx.save(onnx.parser.parse_model(HEAD + plain), path)
    said = run("inspect", path).output
    assert "cannot be so" not in said
    assert "no output" not in said
