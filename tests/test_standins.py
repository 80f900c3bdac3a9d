"""Operators that nobody knows: what stands around them is compared all the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from truth import parse

import surgeon
from surgeon.verify import bisect, verify
from surgeon.verify.standins import with_stand_ins
from surgeon.verify.verdict import Verdict

MY = ', "my": 1'


def model(body: str, head: str = "float[B,3] x) => (float[B,3] y", opset: int = 17) -> bytes:
    proto: onnx.ModelProto = parse(f"g ({head}) {{ {body} }}", opset, domains=MY)
    return proto.SerializeToString()


def compared(before: str, after: str, head: str = "float[B,3] x) => (float[B,3] y") -> Verdict:
    first, second = (onnx.load_from_string(model(body, head)) for body in (before, after))
    return verify(first, second)


AROUND = "a = Exp (x) f = my.Foo <alpha = 0.5> (a, x) y = Abs (f)"


def test_what_stands_around_it_is_compared() -> None:
    found = compared(AROUND, AROUND)
    assert (found.status, found.custom_operators) == ("runs", ("my.Foo",))
    assert found.detail == (
        "onnxruntime has no `my.Foo`; with something else in its place, "
        "its output agrees at 6 inputs, to the last bit"
    )
    assert {each.by for each in found.comparisons} == {"onnxruntime"}


@pytest.mark.parametrize(
    "wrong",
    [
        AROUND.replace("Exp", "Sin"),
        AROUND.replace("(a, x)", "(x, a)"),
        AROUND.replace("(a, x)", "(a, a)"),
        AROUND.replace("Abs", "Neg"),
        "a = Exp (x) p = Constant <value_ints = [0, 2, 1]> () o = Gather <axis = 1> (a, p) "
        "f = my.Foo <alpha = 0.5> (o, x) y = Abs (f)",
    ],
)
def test_a_difference_in_front_of_it_or_behind_it_is_found(wrong: str) -> None:
    found = compared(AROUND, wrong)
    assert found.status == "differs"
    assert found.detail.startswith("`y`")


@pytest.mark.parametrize("wrong", [AROUND.replace("0.5", "0.25"), AROUND.replace("f ", "g ", 1)])
def test_another_one_is_not_compared(wrong: str) -> None:
    wrong = wrong.replace("(f)", "(g)") if "g =" in wrong else wrong
    found = compared(AROUND, wrong)
    assert (found.status, found.comparisons) == ("runs", ())
    assert [each.why for each in found.not_compared][-1] == (
        "`my.Foo`, which gives `f`, is not the same in both"
    )


DECLARED = "float[B,3,H,W] x) => (float[B,n] y"


@pytest.mark.parametrize(
    ("declared", "body"),
    [
        ("float[B,100,4] b", "b = my.Boxes (x) y = ReduceSum <keepdims = 0> (b, axis)"),
        ("float[B,8,H,W] b", "b = my.Conv (x) y = GlobalMaxPool (b)"),
        ("float[B,8,2,m] b", "b = my.Conv (x) y = ReduceSum <keepdims = 0> (b, axis)"),
        ("int64[B,4] b", "b = my.Labels (x) t = Gather (table, b) y = Neg (t)"),
        ("bool[B,3,H,W] b", "b = my.Mask (x) y = Where (b, x, zero)"),
        ("float16[B,4] b", "b = my.Half (x) y = Cast <to = 1> (b)"),
        ("double[2,4] b", "b = my.Anchors () y = Cast <to = 1> (b)"),
    ],
)
@pytest.mark.parametrize("opset", [13, 17])
def test_shapes_and_types_are_those_that_the_file_declares(
    declared: str, body: str, opset: int
) -> None:
    text = f"g (float[B,3,H,W] x) => (float y) <{declared}> {{ {body} }}"
    proto = parse(text, opset, domains=MY)
    del proto.graph.output[0].type.tensor_type.shape.dim[:]
    proto.graph.output[0].type.tensor_type.ClearField("shape")
    for name, value in (("axis", [1]), ("table", [3.0, 5.0]), ("zero", 0.0)):
        array = np.asarray(value, np.int64 if name == "axis" else np.float32)
        proto.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    found = verify(proto, proto)
    assert "with something else in its place" in found.detail, found.not_compared
    assert found.comparisons


@pytest.mark.parametrize("opset", [9, 14, 15, 20])
def test_what_nothing_is_declared_of_is_as_what_it_reads(opset: int) -> None:
    """At opset 14 and below the dtype is the one that onnx infers."""
    head = "float16[B,3] x) => (float16[B,3] y"
    body = "a = Exp (x) b = my.Foo (a) c = my.Bar (b) y = Abs (c)"
    proto = onnx.load_from_string(model(body, head, opset))
    found = verify(proto, proto)
    assert found.comparisons
    assert found.custom_operators == ("my.Foo", "my.Bar")


def test_where_the_shape_is_another_one_nothing_is_compared() -> None:
    body = "b = my.Flat (x) s = Constant <value_ints = [7]> () y = Reshape (b, s)"
    found = compared(body, body)
    assert (found.status, found.comparisons) == ("runs", ())
    assert found.detail == "onnxruntime has no `my.Flat`; it was not compared"


def test_bodies_have_them_too_and_functions() -> None:
    inside = (
        "c = ReduceMax <keepdims = 0> (x) z = Cast <to = 9> (c) y = If (z) <"
        "then_branch = t () => (float[B,3] p) { p = my.Foo (x) }, "
        "else_branch = e () => (float[B,3] q) { q = OP (x) }>"
    )
    found = compared(inside.replace("OP", "Exp"), inside.replace("OP", "Exp"))
    assert found.comparisons
    called = parse(
        "g (float[B,3] x) => (float[B,3] y) { y = f.Twice (x) }\n"
        '<domain: "f", opset_import: ["": 17, "my": 1]> Twice (x) => (y) { y = my.Foo (x) }',
        domains=MY + ', "f": 1',
    )
    found = verify(called, called)
    assert found.comparisons


@pytest.mark.parametrize(
    ("head", "body", "opset", "why"),
    [
        (
            *("float[B,3] x) => (float[B,3] y", "y = my.Foo (x)", 8),
            "nothing stands in for an operator below opset 9",
        ),
        (
            *("string[B] x) => (float[B] y", "t = my.Foo (x) y = my.Bar (t)", 17),
            "`my.Foo` gives `t`, which is no tensor of numbers",
        ),
        (
            *("float[B] x) => (float[B] y", "t = my.Foo () y = Add (t, x)", 17),
            "`my.Foo` reads nothing, and the shape of `t` is not declared",
        ),
    ],
)
def test_where_nothing_can_stand_in(head: str, body: str, opset: int, why: str) -> None:
    proto = onnx.load_from_string(model(body, head, opset))
    assert with_stand_ins(proto, proto) == why


def test_what_was_recorded_is_no_stand_ins(tmp_path: Path) -> None:
    """The operator itself gave it."""
    proto = onnx.load_from_string(model(AROUND))
    x = np.ones((2, 3), np.float32)
    np.savez(tmp_path / "run.npz", x=x, y=x * 7)
    found = verify(proto, proto, reference=str(tmp_path / "run.npz"))
    assert (found.status, found.comparisons) == ("runs", ())


def test_known_ones_need_none() -> None:
    proto = parse(
        'g (float[B,3] x) => (float[B,3] y) { y = pkg.ATen <operator = "neg"> (x) }'.replace(
            "pkg", "org.pytorch.aten"
        ),
        domains=', "org.pytorch.aten": 1',
    )
    assert with_stand_ins(proto, proto) is None


def test_a_wrong_rewrite_behind_one_is_not_saved() -> None:
    """Nothing tells the shape of what it gives, so the rewrite alone is compared with nothing."""
    rule = """
surgeon: 1
name: wrong
about: A rule that is wrong.
custom: [my.Foo]
rules:
  - id: wrong
    why: It is not.
    exact: bit
    match: |
      y = Relu (x)
    replace: |
      y = Abs (x)
"""
    proto = onnx.load_from_string(model("f = my.Foo (x) y = Relu (f)"))
    with pytest.raises(surgeon.VerifyError, match=r"it is so with `wrong/wrong`"):
        surgeon.apply(proto, surgeon.Recipe.parse(rule))


def test_where_two_part_is_found_with_it() -> None:
    first, second = (
        onnx.load_from_string(model(AROUND.replace("Abs", op) + " ", opset=17))
        for op in ("Abs", "Neg")
    )
    found = bisect(first, second, verify(first, second))
    assert found is not None
    assert found.differs.name == "y"
    assert "f" in found.agrees
