"""What makes a result another one than a case wants: its structure, and never its names."""

import numpy as np
import onnx
import onnx.parser
import pytest

from surgeon.cases.renaming import in_other_words
from surgeon.cases.structure import difference


def model(graph: str, opset: int = 13) -> onnx.ModelProto:
    return onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": {opset}]>\n{graph}')


BASE = """g (float[N,4] x, float[4] c) => (float[N,4] y, float[N,4] z)
 <float[4] k = {1.0, 2.0, 3.0, 4.0}> {
  a = Mul (x, k)
  b = Sub (a, c)
  y = Softmax <axis = -1> (b)
  z = Add (a, b)
}"""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("a = Mul (x, k)", "a = Mul (k, x)"),  # commutes
        ("z = Add (a, b)", "z = Add (b, a)"),
        ("axis = -1", "axis = 1"),
        (" <axis = -1>", ""),
        ("  y = Softmax <axis = -1> (b)\n  z = Add (a, b)", "  z = Add (a, b)\n  y = Softmax (b)"),
        ("4.0}>", "4.0000001}>"),
        ("a", "renamed"),
    ],
)
def test_what_makes_no_difference(old: str, new: str) -> None:
    other = BASE
    if old == "a":
        other = (
            BASE.replace("a = Mul", "q = Mul")
            .replace("(a, c)", "(q, c)")
            .replace("(a, b)", "(q, b)")
        )
    else:
        assert old in BASE
        other = BASE.replace(old, new)
    assert difference(model(BASE), model(other)) is None


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("Sub (a, c)", "Sub (c, a)", "`a` is read where `after` reads `c`"),
        ("z = Add", "z = Max", "Add stands where `after` has Max"),
        ("axis = -1", "axis = 0", "`axis` of Softmax is 1, not 0"),
        ("4.0}", "5.0}", "the constant `k` is [1., 2., 3., 4.], not [1., 2., 3., 5.]"),
        ("z = Add (a, b)", "d = Mul (x, k) z = Add (d, b)", "is no longer one value"),
        ("z = Add (a, b)", "d = Neg (a) z = Add (a, b)", "it has 4 nodes, `after` has 5"),
        ("float[4] k = {1.0, 2.0, 3.0, 4.0}", "float k = {1.0}", "float32[4], not float32[]"),
        ("float[N,4] z)", "float[N,4] a)", "its outputs are y, z, not y, a"),
        ("float[4] c)", "float[4] d)", "its inputs are"),
    ],
)
def test_what_makes_a_difference(old: str, new: str, what: str) -> None:
    assert old in BASE
    other = BASE.replace(old, new)
    if "d)" in new:
        other = other.replace("(a, c)", "(a, d)")
    found = difference(model(BASE), model(other))
    assert found is not None
    assert what in found


def test_an_input_that_the_result_lacks_stands_for_any_constant() -> None:
    free = BASE.replace("float[4] c)", "float[4] c, float[4] k)").replace(
        "<float[4] k = {1.0, 2.0, 3.0, 4.0}>", ""
    )
    assert difference(model(BASE), model(free)) is None
    other = free.replace("float[4] k)", "float[1,4] k)")
    assert "the constant `k` is float32[4], not float32[1, 4]" in str(
        difference(model(BASE), model(other))
    )


def test_attributes_that_became_inputs_are_one_thing() -> None:
    old = model(
        "g (float[N,4] x) => (float[N] y) { y = ReduceMean <axes = [1], keepdims = 0> (x) }"
    )
    new = model(
        "g (float[N,4] x) => (float[N] y) <int64[1] a = {1}>"
        "{ y = ReduceMean <keepdims = 0> (x, a) }",
        18,
    )
    assert difference(old, new) is None
    kept = model("g (float[N,4] x) => (float[N,1] y) { y = ReduceMean <axes = [1]> (x) }")
    assert difference(kept, new) == "at output `y`: `keepdims` of ReduceMean is None, not 0"


def test_bodies_are_compared_too() -> None:
    text = """g (float[N] x, bool c) => (float[N] y) {
      y = If (c) <then_branch = a () => (float[N] p) { p = Neg (x) },
                  else_branch = b () => (float[N] q) { q = Abs (x) }>
    }"""
    assert difference(model(text), model(text)) is None
    found = difference(model(text), model(text.replace("p = Neg", "p = Exp")))
    assert found == "at output `y`: in `then_branch` of If: Neg stands where `after` has Exp"


def test_other_words_mean_the_same() -> None:
    text = """g (float[N,4] x, bool c) => (float[N,4] y) <float[4] k = {1.0, 2.0, 3.0, 4.0}> {
      a = Mul (x, k)
      b = Exp (x)
      d = If (c) <then_branch = t () => (float[N,4] p) { p = Neg (a) },
                  else_branch = e () => (float[N,4] q) { q = Mul (b, k) }>
      y = Sub (a, d)
    }"""
    before = model(text)
    renamed, names = in_other_words(before, 3)
    assert before == model(text), "the given model was touched"
    onnx.checker.check_model(renamed, full_check=True)
    assert len(set(names.values())) == len(names)
    assert not {"a", "b", "d", "k", "x", "y"} & {
        n for node in renamed.graph.node for n in node.output
    }
    back = onnx.ModelProto()
    back.CopyFrom(renamed)
    for value, name in (
        (back.graph.input[0], "x"),
        (back.graph.input[1], "c"),
        (back.graph.output[0], "y"),
    ):
        assert value.name == names[name]
    from surgeon.runtime import Session

    x = np.arange(8, dtype=np.float32).reshape(2, 4)
    for flag in (True, False):
        one = Session(before).run({"x": x, "c": np.array(flag)})["y"]
        two = Session(renamed).run({names["x"]: x, names["c"]: np.array(flag)})[names["y"]]
        assert np.array_equal(one, two)


def test_seed_0_turns_the_order_around() -> None:
    text = "g (float[N] x) => (float[N] y) { a = Neg (x) b = Exp (x) y = Add (a, b) }"
    renamed, _ = in_other_words(model(text), 0)
    assert [node.op_type for node in renamed.graph.node] == ["Exp", "Neg", "Add"]
