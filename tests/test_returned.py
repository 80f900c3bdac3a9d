"""A run that ends where it began, in which rules take apart what others put together, is none."""

from __future__ import annotations

import onnx
import pytest
from truth import parse

import surgeon
from surgeon.returned import BACK, is_back

GRAPH = """g (float[n, 4] x, bool c) => (float[n, 4] y) <float two = {2}, float three = {3}> {
  m = Mul (x, two)  a = Add (m, three)
  y = If (c) <then_branch = t () => (float[n, 4] p) { q = Sub (a, two)  p = Relu (q) },
    else_branch = e () => (float[n, 4] r) { r = Identity (m) }>
}"""
SAME = """g (float[n, 4] x, bool c) => (float[n, 4] y) <float drei = {3}, float zwei = {2}> {
  k = Mul (x, zwei)  b = Add (k, drei)
  y = If (c) <then_branch = t () => (float[n, 4] u) { v = Sub (b, zwei)  u = Relu (v) },
    else_branch = e () => (float[n, 4] w) { w = Identity (k) }>
}"""
OTHERS = {
    "a constant": ("drei = {3}", "drei = {4}"),
    "the order of operands": ("Mul (x, zwei)", "Mul (zwei, x)"),
    "an operator": ("Add (k", "Sub (k"),
    "what a body reads": ("Sub (b, zwei)", "Sub (k, zwei)"),
    "an operator of a body": ("u = Relu (v)", "u = Abs (v)"),
    "what a body gives": ("w = Identity (k)", "w = Identity (b)"),
    "the type of a constant": ("float drei = {3}", "float[1] drei = {3}"),
    "a size of an input": ("(float[n, 4] x", "(float[m, 4] x"),
}
# Recipes that write anew what others in front of them take away.
LISTS = {
    "pads": (
        ["clean", "pads-apart"],
        "g (float[1, 2, n] x) => (float[1, 2, m] y) <float[2, 2, 3] w = "
        "{1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3}> { y = Conv <pads = [2, 0]> (x, w) }",
    ),
    "GELU": (["for-opencv-4"], "g (float[n, 4] x) => (float[n, 4] y) { y = Gelu (x) }"),
    "reductions": (
        ["clean", "reductions-apart"],
        "g (float[n, 2, 3, 4] x) => (float[n] y) <int64[3] a = {1, 2, 3}> "
        "{ y = ReduceMax <keepdims = 0> (x, a) }",
    ),
    "products": (
        ["for-qnn"],
        "g (float[n, 2, 3, 2, 4] x, float[4, 4] w) => (float[n, 2, 3, 2, 4] y) "
        "{ y = MatMul (x, w) }",
    ),
}


def test_names_and_the_order_of_constants_say_nothing() -> None:
    assert is_back(parse(SAME), parse(GRAPH))


@pytest.mark.parametrize("what", OTHERS)
def test_what_computes_something_else_is_another_graph(what: str) -> None:
    text, other = OTHERS[what]
    assert SAME.count(text) == 1
    assert not is_back(parse(SAME.replace(text, other)), parse(GRAPH))


def test_a_constant_more_that_is_equal_is_none_and_one_less_is_a_change() -> None:
    shared, apart = parse(GRAPH), parse(GRAPH)
    copied = apart.graph.initializer.add()
    copied.CopyFrom(apart.graph.initializer[0])
    copied.name = apart.graph.node[0].input[1] = "own"
    assert is_back(apart, shared)
    assert not is_back(shared, apart)


def test_data_outside_is_told_apart_by_where_it_lies() -> None:
    models = [parse(GRAPH) for _ in range(3)]
    for model, place in zip(models, ("a.bin", "a.bin", "b.bin"), strict=True):
        tensor = model.graph.initializer[0]
        tensor.ClearField("raw_data")
        tensor.ClearField("float_data")
        tensor.data_location = onnx.TensorProto.EXTERNAL
        tensor.external_data.add(key="location", value=place)
    assert is_back(models[1], models[0])
    assert not is_back(models[2], models[0])


@pytest.mark.parametrize("what", LISTS)
def test_a_second_run_gives_the_bytes_that_it_was_given(what: str) -> None:
    recipes, text = LISTS[what]
    first = surgeon.apply(parse(text, 20, 9), *recipes, allow=["contract"])
    assert first.report.changes
    assert first.report.status == "equivalent"
    made = first.model.to_proto()
    second = surgeon.apply(made, *recipes, allow=["contract"])
    assert second.report.status == "unchanged"
    assert not second.report.changes
    assert set(second.report.remarks) <= {BACK}
    assert second.model.to_proto().SerializeToString() == made.SerializeToString()
