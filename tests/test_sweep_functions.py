"""The walk through functions: what holds for one call is not taken for all."""

from __future__ import annotations

import numpy as np
import pytest
from sweeping import F32, FOLD, SIGNS, ops, same
from truth import parse

import surgeon
from surgeon.runtime import Session


def test_rules_apply_in_functions() -> None:
    proto = parse(
        """
        g (float[n] x) => (float[n] y, float[n] z) { y = my.f (x) a = Abs (x) z = my.f (a) }
        <domain: "my", opset_import: ["": 17]>
        f (v) => (o) { a = Neg (v) b = Neg (a) o = Relu (b) }
        """,
        domains=', "my": 1',
    )
    result = surgeon.apply(proto, SIGNS)
    assert result.report.fired.total() == 1
    out = same(proto, result)
    assert ops(out.functions[0]) == ["Relu"]
    assert ops(out.graph) == ["f", "Abs", "f"]


def test_what_holds_for_one_call_is_not_taken_for_all() -> None:
    """The Reshape's target is provable in each call, and differs."""
    proto = parse(
        """
        g (float[2,3] x, float[4,5] z) => (float[a] y, float[b] q) { y = my.f (x) q = my.f (z) }
        <domain: "my", opset_import: ["": 17]>
        f (v) => (o) {
          s = Shape (v)
          i = Constant <value = int64[1] {0}> ()
          k = Gather (s, i)
          j = Constant <value = int64[1] {1}> ()
          m = Gather (s, j)
          t = Mul (k, m)
          o = Reshape (v, t)
        }
        """,
        domains=', "my": 1',
    )
    result = surgeon.apply(proto, "shape-chains", FOLD, verify=False)
    feeds = {"x": np.ones((2, 3), F32), "z": np.ones((4, 5), F32)}
    found = Session(result.model.to_proto()).run(feeds)
    assert (found["y"].shape, found["q"].shape) == ((6,), (20,))


@pytest.mark.parametrize("opset", [17, 16], ids=["of its opset", "of another one"])
def test_a_function_that_others_call_is_not_taken_for_what_the_main_graph_gives_it(
    opset: int,
) -> None:
    """`inner` stands first in the file; what `outer` gives it has another shape."""
    proto = parse(
        f"""
        g (float[2,3] x) => (float[a] y, float[b] q) {{ y = my.inner (x) q = my.outer (x) }}
        <domain: "my", opset_import: ["": 17, "my": 1]>
        inner (v) => (o) {{ s = Shape (v) t = ReduceProd (s) o = Reshape (v, t) }}
        <domain: "my", opset_import: ["": {opset}, "my": 1]>
        outer (v) => (o) {{ c = Concat <axis = 0> (v, v) o = my.inner (c) }}
        """,
        domains=', "my": 1',
    )
    result = surgeon.apply(proto, "shape-chains", FOLD, verify=False)
    found = Session(result.model.to_proto()).run({"x": np.ones((2, 3), F32)})
    assert (found["y"].shape, found["q"].shape) == ((6,), (12,))


def test_a_scan_whose_attributes_the_caller_gives() -> None:
    body = "t (float s, float[c] r) => (float n, float[c] w) { n = Identity (s) w = Neg (r) }"
    said = "num_scan_inputs: int = @count, scan_input_axes: ints = @axes"
    proto = parse(
        f"""
        g (float s, float[2,3] x) => (float y, float[a,b] z, float v, float[c,d] w) {{
          y, z = my.f <count = 1, axes = [0]> (s, x)
          v, w = my.f <count = 1, axes = [1]> (s, x)
        }}
        <domain: "my", opset_import: ["": 17]>
        f <count, axes> (s, x) => (y, z) {{ y, z = Scan <{said}, body = {body}> (s, x) }}
        """,
        domains=', "my": 1',
    )
    result = surgeon.apply(proto, "unroll", FOLD, verify=False)
    feeds = {"s": np.array(1, F32), "x": np.arange(6, dtype=F32).reshape(2, 3)}
    found = Session(result.model.to_proto()).run(feeds)
    assert np.array_equal(found["z"], -feeds["x"])
    assert np.array_equal(found["w"], -feeds["x"].T)


def test_functions_with_optional_inputs() -> None:
    proto = parse(
        """
        g (float[n] x) => (float[n] y, float[n] z) { y = my.f (x) z = my.f (x, x) }
        <domain: "my", opset_import: ["": 17]>
        f (v, w) => (o) { a = Neg (v) b = Neg (a) o = Clip (b, w) }
        """,
        domains=', "my": 1',
    )
    result = surgeon.apply(proto, SIGNS, verify=False)
    assert result.report.fired.total() == 1
    assert [len(n.input) for n in result.model.to_proto().graph.node] == [1, 2]


def test_a_constant_of_a_function_stays_as_it_is() -> None:
    """A function has no initializers: to say that one was made would change the file each time."""
    proto = parse(
        """
        g (float[n] x) => (float[n] y) { y = my.twice (x) }
        <domain: "my", opset_import: ["": 17]>
        twice (v) => (o) { k = Constant <value = float {2.0}> () o = Mul (v, k) }
        """,
        domains=', "my": 1',
    )
    result = surgeon.apply(proto, SIGNS)
    assert not result.model.changed
    assert not result.report.housekeeping


def test_a_branch_that_is_taken_anyway_gives_the_output_of_a_function() -> None:
    proto = parse(
        """
        g (float[n] x) => (float[n] y) { a = my.f (x) y = my.f (a) }
        <domain: "my", opset_import: ["": 17]>
        f (v) => (o) {
          c = Constant <value = bool {1}> ()
          a = Sin (v) b = Cos (v) d = Mul (a, b)
          o = If (c) <then_branch = t () => (float[n] r) { r = Relu (d) },
                      else_branch = u () => (float[n] s) { s = Neg (d) }>
        }
        """,
        domains=', "my": 1',
    )
    result = surgeon.apply(proto, FOLD)
    out = same(proto, result)
    assert ops(out.functions[0]) == ["Sin", "Cos", "Mul", "Relu"]


def test_what_a_call_gives_for_attributes_says_what_its_outputs_are() -> None:
    proto = parse(
        """
        g (float[n,8] x) => (int64[n,2] y) { v, i = my.most <dim = -1> (x) y = my.half (i) }
        <domain: "my", opset_import: ["": 17]>
        most <dim> (x) => (v, i) {
          k = Constant <value = int64[1] {2}> ()
          v, i = TopK <axis: int = @dim> (x, k)
        }
        <domain: "my", opset_import: ["": 17]>
        half (a) => (o) { two = Constant <value = int64 {2}> () q = Div (a, two) o = Floor (q) }
        """,
        domains=', "my": 1',
    )
    result = surgeon.apply(proto, "operand-types").model.to_proto()
    x = np.random.default_rng(0).normal(size=(5, 8)).astype(F32)
    assert (Session(result).run({"x": x})["y"] == np.argsort(-x)[:, :2] // 2).all()


def test_a_function_that_one_call_gives_what_an_operator_in_it_does_not_take_is_written_out() -> (
    None
):
    proto = parse(
        """
        g (float[n] x, int64[n] i) => (float[n] y, int64[n] z) { y = my.down (x) z = my.down (i) }
        <domain: "my", opset_import: ["": 17]>
        down (a) => (o) { m = Neg (a) f = Floor (m) o = Neg (f) }
        """,
        domains=', "my": 1',
    )
    result = surgeon.apply(proto, "operand-types").model.to_proto()
    assert ops(result.graph).count("Floor") == 1
    found = Session(result).run({"x": F32([0.5, -1.5]), "i": np.int64([3, -4])})
    assert (found["y"].tolist(), found["z"].tolist()) == ([1, -1], [3, -4])


def test_what_a_call_gives_reaches_the_functions_that_its_function_calls() -> None:
    proto = parse(
        """
        g (float[n,8] x) => (int64[n] y) { t = my.outer <dim = -1> (x) y = my.down (t) }
        <domain: "my", opset_import: ["": 17, "my": 1]>
        outer <dim> (x) => (o) { o = my.inner <axis: int = @dim> (x) }
        <domain: "my", opset_import: ["": 17]>
        inner <axis> (x) => (o) { o = ArgMax <axis: int = @axis, keepdims = 0> (x) }
        <domain: "my", opset_import: ["": 17]>
        down (a) => (o) { m = Neg (a) f = Floor (m) o = Neg (f) }
        """,
        domains=', "my": 1',
    )
    result = surgeon.apply(proto, "operand-types")
    assert result.report.fired.total() == 1
    x = np.random.default_rng(0).normal(size=(5, 8)).astype(F32)
    assert (Session(result.model.to_proto()).run({"x": x})["y"] == x.argmax(1)).all()
