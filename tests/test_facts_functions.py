"""Facts of functions: inferred for each call, and nothing carried from one to the next."""

from __future__ import annotations

import numpy as np
import pytest
from facts_case import F32, ints
from truth import fact_of, hold, infer, parse, points

CALLED_TWICE = """
g (float[b,t] x, float[t,3] z) => (y, q) {
  y = my.twice (x)
  q = my.twice (z)
}
<domain: "my", opset_import: ["": 17]>
twice (v) => (o) { s = Shape (v) w = Transpose (v) o = Concat <axis = 0> (w, w) }
"""


def test_a_function_is_analysed_for_each_call() -> None:
    proto = parse(CALLED_TWICE, domains=', "my": 1')
    assert hold(proto, points(["b", "t"])).wrong == []
    assert str(fact_of(proto, "y").shape) == "(2*t, b)"
    assert str(fact_of(proto, "q").shape) == "(6, t)"


@pytest.mark.parametrize("first", ["x", "z"])
def test_new_dimensions_of_two_calls_are_not_equal(first: str) -> None:
    """NonZero inside a function: how many there are differs from call to call."""
    other = "z" if first == "x" else "x"
    proto = parse(
        f"""
        g (float[b] x, float[n] z) => (y, q) {{ y = my.f ({first}) q = my.f ({other}) }}
        <domain: "my", opset_import: ["": 17]>
        f (v) => (o) {{ o = NonZero (v) }}
        """,
        domains=', "my": 1',
    )
    facts, tensors = infer(proto)
    y, q = (facts.of(tensors[n]).shape for n in "yq")
    assert y is not None
    assert q is not None
    assert y[0] == q[0] == 1
    assert y[1] != q[1]
    feeds = {"x": np.array([1, 0, 2], F32), "z": np.array([1, 3, 1, 1, 0], F32)}
    assert hold(proto, [feeds]).wrong == []


def test_calls_of_which_nothing_is_known_have_dimensions_of_their_own() -> None:
    proto = parse(
        """
        g (float[b] x) => (y, q) {
          u = other.Op (x)
          w = other.Op (u)
          y = my.f (u)
          q = my.f (w)
        }
        <domain: "my", opset_import: ["": 17]>
        f (v) => (o) { k = Constant <value = int64[2] {-1, 2}> () o = Reshape (v, k) }
        """,
        domains=', "my": 1, "other": 1',
    )
    facts, tensors = infer(proto)
    y, q = (facts.of(tensors[n]).shape for n in "yq")
    assert y is not None
    assert q is not None
    assert y[1] == q[1] == 2
    assert y[0] != q[0]


def test_a_call_without_facts_knows_nothing_of_the_one_before() -> None:
    proto = parse(
        """
        g (float[2,3] x, float[6] s, int64[k] n) => (y, q) {
          u = Reshape (s, n)
          y = my.f (x)
          q = my.f (u)
        }
        <domain: "my", opset_import: ["": 17]>
        f (v) => (o) { a = Relu (v) o = Shape (a) }
        """,
        domains=', "my": 1',
    )
    feeds = {"x": np.ones((2, 3), F32), "s": np.ones(6, F32), "n": ints(3, 1, 2)}
    assert hold(proto, [feeds]).wrong == []


def test_functions_that_call_functions() -> None:
    """`inner` stands first in the file, and is called from `outer` with other shapes."""
    proto = parse(
        """
        g (float[b,t] x) => (y, q) { y = my.inner (x) q = my.outer (x) }
        <domain: "my", opset_import: ["": 17, "my": 1]>
        inner (v) => (o) { s = Shape (v) o = Identity (s) }
        <domain: "my", opset_import: ["": 17, "my": 1]>
        outer (v) => (o) { a = Transpose (v) c = Concat <axis = 0> (a, a) o = my.inner (c) }
        """,
        domains=', "my": 1',
    )
    assert hold(proto, points(["b", "t"])).wrong == []


def test_attributes_that_a_function_hands_down_are_not_guessed() -> None:
    proto = parse(
        """
        g (float[b,t] x) => (y, q, u) {
          y = my.f <keep: int = 0, to = 7, axis = 1> (x)
          q = my.f <keep: int = 1, to = 1, axis = 0> (x)
          u = my.h <axes = [0]> (x)
        }
        <domain: "my", opset_import: ["": 17]>
        f <keep, to, axis> (v) => (o) {
          c = Cast <to: int = @to> (v)
          s = Softmax <axis: int = @axis> (v)
          m = ReduceMax <keepdims: int = @keep, axes = [1]> (v)
          n = Concat <axis: int = @axis> (v, v)
          o = Shape (m)
        }
        <domain: "my", opset_import: ["": 17]>
        h <axes> (v) => (o) { o = ReduceMean <axes: ints = @axes> (v) }
        """,
        domains=', "my": 1',
    )
    assert hold(proto, points(["b", "t"])).wrong == []
