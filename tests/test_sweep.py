"""The walk: every graph of a model, in any order, to a fixed point, and nothing else touched."""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import onnx
import onnx_graphsurgeon as gs
import pytest
from truth import draw, model_of, parse

import surgeon
from surgeon.authoring import rule
from surgeon.errors import ModelError, SettleError
from surgeon.match import Match
from surgeon.recipe import Recipe
from surgeon.rewrite import Draft
from surgeon.runtime import Session
from surgeon.surgery import Result

F32 = np.float32
DOUBLE_NEG = """
surgeon: 1
name: signs
rules:
  - id: double-neg
    why: Two changes of sign are none.
    exact: bit
    match: |
      a = Neg (x)
      y = Neg (a)
    replace: y = Identity (x)
"""
SIGNS = Recipe.parse(DOUBLE_NEG)
FOLD = Recipe.parse("surgeon: 1\nname: folding\nsteps:\n  - fold:\n")


def ints(*values: int) -> Any:
    return np.array(values, np.int64)


def same(
    proto: onnx.ModelProto, result: Result, points: Sequence[dict[str, int]] = ({"n": 3}, {"n": 1})
) -> onnx.ModelProto:
    """The result, which must compute the same."""
    out = result.model.to_proto()
    onnx.checker.check_model(out, full_check=True)
    for index, point in enumerate(points):
        feeds = draw(proto, point, seed=index)
        wanted, found = Session(proto).run(feeds), Session(out).run(feeds)
        for name, value in wanted.items():
            np.testing.assert_array_equal(found[name], value)
    assert [v.name for v in out.graph.input] == [v.name for v in proto.graph.input]
    assert [v.name for v in out.graph.output] == [v.name for v in proto.graph.output]
    return out


def ops(graph: Any) -> list[str]:
    return [node.op_type for node in graph.node]


# ------------------------------------------------------------------------------- where outputs are


@pytest.mark.parametrize(
    ("body", "outputs", "left"),
    [
        ("a = Neg (x) y = Neg (a)", "y", ["Identity"]),
        ("a = Neg (x) y = Neg (a)", "y a", ["Neg", "Identity"]),
        ("a = Neg (x) b = Neg (a) y = Relu (b)", "y", ["Relu"]),
        ("a = Neg (x) b = Neg (a) y = Relu (b) z = Neg (b)", "y z", ["Relu", "Neg"]),
        ("a = Neg (x) b = Neg (a) y = Relu (b)", "y b", ["Identity", "Relu"]),
        ("a = Neg (x) b = Neg (a) c = Neg (b) y = Neg (c)", "y", ["Identity"]),
        ("a = Neg (x) b = Neg (a) c = Neg (b) y = Identity (c)", "y", ["Neg"]),
        ("a = Neg (x) y = Neg (a) z = Neg (a)", "y z", ["Identity", "Identity"]),
    ],
)
def test_a_rewrite_keeps_every_output(body: str, outputs: str, left: list[str]) -> None:
    ends = ", ".join(f"float[n] {name}" for name in outputs.split())
    proto = parse(f"g (float[n] x) => ({ends}) {{ {body} }}")
    out = same(proto, surgeon.apply(proto, SIGNS))
    assert sorted(ops(out.graph)) == sorted(left)


def test_a_value_that_is_two_outputs_and_an_output_that_is_an_input() -> None:
    proto = parse(
        "g (float[n] x, float[n] z) => (float[n] y, float[n] q, float[n] z) "
        "{ a = Neg (x) b = Neg (a) y = Identity (b) q = Identity (b) }"
    )
    same(proto, surgeon.apply(proto, SIGNS))


def test_identities_between_nodes_go_and_those_to_outputs_stay() -> None:
    proto = parse(
        "g (float[n] x) => (float[n] y, float[n] q) "
        "{ a = Identity (x) b = Neg (a) c = Identity (b) d = Neg (c) y = Identity (d) q = "
        "Identity (x) }"
    )
    result = surgeon.apply(proto, SIGNS)
    out = same(proto, result)
    assert ops(out.graph) == ["Identity", "Identity"]
    assert result.report.housekeeping["Identity nodes dropped"] == 2


def test_a_late_rule_leaves_alone_what_other_rules_make_needless() -> None:
    chain = (
        "<int64 first = {0}, int64[1] axis = {0}, int64[1] rest = {-1}> { s = Shape (x) "
        "m = Gather <axis = 0> (s, first) u = Unsqueeze (m, axis) "
        "t = Concat <axis = 0> (u, rest) y = Reshape (x, t)"
    )
    gone = parse(f"g (float[n,4] x) => (float[n,4] y) {chain} }}")
    result = surgeon.apply(gone, "clean")
    assert "no-ops/gather-and-axis" not in result.report.fired
    assert ops(same(gone, result).graph) == ["Identity"]
    kept = parse(f"g (float[n,4] x) => (float[n,4] y, int64[2] t) {chain} }}")
    result = surgeon.apply(kept, "clean")
    assert result.report.fired["no-ops/gather-and-axis"] == 1
    same(kept, result)


def test_a_second_run_changes_nothing() -> None:
    proto = parse("g (float[n] x) => (float[n] y) { a = Neg (x) b = Neg (a) y = Relu (b) }")
    out = surgeon.apply(proto, SIGNS).model.to_proto()
    again = surgeon.apply(out, SIGNS)
    assert again.report.changes == ()
    assert again.model.to_proto() == out
    assert again.report.verdict is None


def test_unsorted_nodes_are_sorted_and_the_order_of_sorted_ones_kept() -> None:
    text = "g (float[n] x) => (float[n] y) { y = Relu (c) c = Neg (b) b = Neg (a) a = Abs (x) }"
    proto = parse(text)
    out = surgeon.apply(proto, SIGNS, verify=False).model.to_proto()
    assert ops(out.graph) == ["Abs", "Relu"]
    proto = parse(
        "g (float[n] x) => (float[n] y) { s = Abs (x) a = Neg (x) r = Relu (s) b = Neg (a) "
        "t = Sin (x) u = Add (r, b) y = Add (u, t) }"
    )
    out = surgeon.apply(proto, SIGNS, verify=False).model.to_proto()
    assert ops(out.graph) == ["Abs", "Relu", "Sin", "Add", "Add"]


def test_bodies_before_what_they_read() -> None:
    """onnxruntime takes nodes in any order, bodies included."""
    inner = (
        "d = If (k) <then_branch = p1 () => (float[n] r1) { r1 = Relu (f) }, "
        "else_branch = q1 () => (float[n] s1) { s1 = Neg (f) }>"
    )
    proto = parse(
        f"""
        g (bool k, float[n] x) => (float[n] y) {{
          y = If (k) <
            then_branch = p () => (float[n] r) {{ f = Exp (a) {inner} r = Add (d, a) }},
            else_branch = q () => (float[n] s) {{ s = Abs (a) }}>
          a = Neg (b)
          b = Neg (c)
          c = Sin (x)
        }}
        """
    )
    result = surgeon.apply(proto, SIGNS)
    assert result.report.fired.total() == 1
    out = result.model.to_proto()
    onnx.checker.check_model(out)
    for k in (True, False):
        feeds = {"k": np.array(k), "x": np.array([1, -2], F32)}
        wanted, found = Session(proto).run(feeds), Session(out).run(feeds)
        np.testing.assert_array_equal(found["y"], wanted["y"])


def test_a_long_chain_in_the_wrong_order_needs_no_deep_stack() -> None:
    count = 20_000
    names = ["x", *(f"v{i}" for i in range(count - 1)), "y"]
    nodes = [onnx.helper.make_node("Relu", [a], [b]) for a, b in pairwise(names)]
    ends = [onnx.helper.make_tensor_value_info(n, 1, [2]) for n in "xy"]
    graph = onnx.helper.make_graph(nodes[::-1], "g", ends[:1], ends[1:])
    proto = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)])
    result = surgeon.apply(proto, SIGNS, FOLD, verify=False)
    assert len(result.model.graph.nodes) == count


def test_a_cycle_is_named() -> None:
    proto = parse("g (float[n] x) => (float[n] y) { a = Add (x, b) b = Relu (a) y = Neg (b) }")
    proto.graph.node[0].name = "first"
    with pytest.raises(ModelError, match="the graph has a cycle through node `"):
        surgeon.apply(proto, SIGNS)


def test_a_rule_that_does_not_settle_is_named() -> None:
    @rule("y = Neg (x)", exact="bit")
    def again_and_again(draft: Draft, match: Match) -> gs.Tensor:
        x = match.values["x"]
        return draft.op("Neg", draft.op("Neg", draft.op("Neg", x)))

    proto = parse("g (float[n] x) => (float[n] y) { y = Neg (x) }")
    start = time.perf_counter()
    with pytest.raises(SettleError) as caught:
        surgeon.apply(proto, again_and_again, verify=False)
    assert "`again-and-again`" in caught.value.what
    assert caught.value.exit_code == 6
    assert time.perf_counter() - start < 20


# ------------------------------------------------------------------------------------------ bodies


BRANCHES = """
g (bool k, float[n] x) => (float[n] y) {{
  o = Neg (x)
  y = If (k) <
    then_branch = p () => (float[n] r) {{ {0} }},
    else_branch = n0 () => (float[n] s) {{ {1} }}
  >
}}
"""


@pytest.mark.parametrize(
    ("then", "other", "fired"),
    [
        ("a = Neg (x) b = Neg (a) r = Abs (b)", "s = Relu (x)", 1),
        ("a = Neg (x) r = Neg (a)", "s = Relu (x)", 1),
        ("r = Neg (o)", "s = Relu (o)", 1),  # the first Neg is outside
        ("a = Neg (o) b = Neg (a) r = Neg (b)", "a = Neg (o) s = Abs (a)", 3),
        ("r = Identity (o)", "s = Identity (x)", 0),
    ],
)
def test_rules_apply_in_branches(then: str, other: str, fired: int) -> None:
    proto = parse(BRANCHES.format(then, other))
    result = surgeon.apply(proto, SIGNS)
    assert result.report.fired.total() == fired
    same(proto, result, [{"n": 3}, {"n": 2}, {"n": 4}, {"n": 1}])


def test_a_body_reads_what_a_rewrite_outside_gives() -> None:
    proto = parse(
        """
        g (bool k, float[n] x) => (float[n] y) {
          a = Neg (x) b = Neg (a) c = Abs (b)
          y = If (k) <then_branch = p () => (float[n] r) { r = Add (b, c) },
                      else_branch = q () => (float[n] s) { s = Identity (b) }>
        }
        """
    )
    result = surgeon.apply(proto, SIGNS)
    assert result.report.fired.total() == 1
    same(proto, result, [{"n": 3}, {"n": 2}, {"n": 4}])


def test_a_branch_may_give_an_outer_value() -> None:
    proto = parse(
        """
        g (bool k, float[n] x) => (float[n] y) {
          a = Neg (x)
          b = Neg (a)
          y = If (k) <then_branch = p () => (float[n] b) { },
                      else_branch = q () => (float[n] s) { s = Relu (x) }>
        }
        """
    )
    result = surgeon.apply(proto, SIGNS, verify=False)
    body = result.model.to_proto().graph.node[-1].attribute[0].g
    assert [v.name for v in body.output] == ["b"]
    made = {name for node in result.model.to_proto().graph.node for name in node.output}
    assert "b" in made


def test_equal_nodes_of_sibling_branches_are_not_merged() -> None:
    proto = parse(
        """
        g (bool k, float[n] x) => (float[n] y, float[n] z) {
          y = If (k) <then_branch = p () => (float[n] r) { a = Abs (x) c = Exp (a) r = Add (c, c) },
                      else_branch = q () => (float[n] s) { b = Abs (x) d = Exp (b) s = Mul (d, d) }>
          e = Abs (x)
          z = Exp (e)
        }
        """
    )
    out = same(proto, surgeon.apply(proto, FOLD), [{"n": 3}, {"n": 2}, {"n": 4}])
    bodies = [a.g for a in out.graph.node[0].attribute]
    assert [ops(body) for body in bodies] == [["Abs", "Exp", "Add"], ["Abs", "Exp", "Mul"]]


def test_a_body_takes_an_equal_node_from_outside() -> None:
    proto = parse(
        """
        g (bool k, float[n] x) => (float[n] y) {
          e = Abs (x)
          f = Neg (e)
          t = If (k) <then_branch = p () => (float[n] r) { a = Abs (x) r = Add (a, x) },
                      else_branch = q () => (float[n] s) { s = Relu (x) }>
          y = Add (t, f)
        }
        """
    )
    out = same(proto, surgeon.apply(proto, FOLD), [{"n": 3}, {"n": 2}, {"n": 4}])
    assert ops(out.graph.node[2].attribute[0].g) == ["Add"]


def test_rules_apply_in_loops_and_scans() -> None:
    proto = parse(
        """
        g (float[n] x, int64 count) => (float[n] y, float[m,n] z) {
          c = Abs (x)
          y, z = Loop (count, , c) <body =
            b (int64 i, bool k, float[n] v) => (bool o, float[n] u, float[n] s) {
            o = Identity (k)
            a = Neg (v) d = Neg (a)
            u = Add (d, x)
            e = Neg (d) s = Neg (e)
          }>
        }
        """
    )
    result = surgeon.apply(proto, SIGNS)
    assert result.report.fired.total() == 2
    same(proto, result)
    proto = parse(
        """
        g (float[2,n] x, float[n] h) => (float[n] y, float[2,n] z) {
          y, z = Scan <num_scan_inputs = 1, body =
            b (float[n] v, float[n] r) => (float[n] u, float[n] s) {
            a = Neg (r) d = Neg (a) u = Add (v, d) s = Abs (u)
          }> (h, x)
        }
        """
    )
    result = surgeon.apply(proto, SIGNS)
    assert result.report.fired.total() == 1
    same(proto, result)


def test_a_scan_keeps_the_shape_of_its_state_and_takes_an_axis_off_what_it_scans() -> None:
    proto = parse(
        """
        g (float[2,n,3] x, float[2,3] h) => (float[p,q] y, float[r,s] z, int64 six)
          <int64[2] turned = {3, 2}, int64[2] back = {2, 3}, int64 first = {0}>
        {
          y, z = Scan <num_scan_inputs = 1, scan_input_axes = [1], scan_output_axes = [1], body =
            b (float[i,j] v, float[k,l] r) => (float[a,c] u, float[e] o) {
            one = Reshape (r, turned)
            two = Reshape (one, back)
            u = Add (v, two)
            sized = Shape (v)
            last = ReduceProd <keepdims = 1> (sized)
            o = Reshape (u, last)
          }> (h, x)
          size = Shape (z)
          six = Gather <axis = 0> (size, first)
        }
        """
    )
    result = surgeon.apply(proto, "clean")
    out = same(proto, result, [{"n": 3}, {"n": 1}])
    body = next(a.g for a in out.graph.node[0].attribute if a.name == "body")
    assert ops(body) == ["Add", "Reshape"]
    assert ops(out.graph) == ["Scan", "Constant"]


def test_values_carried_by_a_loop_are_not_folded_from_their_first_turn() -> None:
    """The shape of a carried value changes from turn to turn."""
    proto = parse(
        """
        g (float[2] x, int64 count) => (float[k] y, int64[c] z) {
          y, z = Loop (count, , x) <body =
            b (int64 i, bool k, float[k0] v) => (bool o, float[k1] u, int64 s) {
            o = Identity (k)
            u = Concat <axis = 0> (v, v)
            t = Shape (v)
            s = Size (v)
          }>
        }
        """
    )
    result = surgeon.apply(proto, "shape-chains", FOLD, verify=False)
    found = Session(result.model.to_proto()).run({"x": np.ones(2, F32), "count": np.array(3)})
    assert found["y"].shape == (16,)
    assert found["z"].tolist() == [2, 4, 8]


def test_what_a_loop_carries_keeps_its_shape_where_the_body_shows_it() -> None:
    proto = parse(
        """
        g (float[n,4] x, int64 count) => (float[n,4] y) <int64[2] two = {-1, 4}> {
          y = Loop (count, , x) <body =
            b (int64 i, bool k, float[k0,k1] v) => (bool o, float[k2,k3] u) {
            o = Identity (k)
            s = Shape (v)
            a = Tanh (v)
            r = Reshape (a, s)
            q = Reshape (r, two)
            u = Add (q, x)
          }>
        }
        """
    )
    result = surgeon.apply(proto, "clean")
    out = same(proto, result)
    assert ops(out.graph.node[-1].attribute[0].g) == ["Identity", "Tanh", "Add"]


def aten_loop(work: str) -> onnx.ModelProto:
    """A Loop of two turns or more that does something to a value, with PyTorch's own nodes."""
    proto = parse(
        """
        g (float[n,4] x, int64 count) => (float[k,l] y) <int64 first = {0}> {
          y = Loop (count, , x) <body =
            b (int64 i, bool k, float[k0,k1] v) => (bool o, float[k2,k3] u) {
              o = Identity (k) WORK
            }>
        }
        """.replace("WORK", work),
        opset=11,
    )
    proto.opset_import.append(onnx.helper.make_opsetid("org.pytorch.aten", 1))
    return proto


def test_what_pytorchs_nodes_in_a_loop_keep_is_shown_by_what_replaced_them() -> None:
    proto = aten_loop(
        't = org.pytorch.aten.ATen <operator = "log_softmax"> (v, first) u = Transpose (t)'
    )
    result = surgeon.apply(proto, "aten")
    assert result.report.verdict.status == "equivalent"
    x = np.arange(12, dtype=F32).reshape(3, 4) / 7
    found = Session(result.model.to_proto()).run({"x": x, "count": np.array(1)})["y"]
    wanted = x - np.log(np.exp(x).sum(0, keepdims=True))
    np.testing.assert_allclose(found, wanted.T, rtol=1e-5)


def test_what_was_taken_for_granted_of_a_loop_and_not_shown_is_undone() -> None:
    """Each turn has one axis more than the last."""
    proto = aten_loop(
        't = org.pytorch.aten.ATen <operator = "log_softmax"> (v, first) '
        "u = Unsqueeze <axes = [0]> (t)"
    )
    with pytest.raises(surgeon.SurgeonError, match=r"log_softmax.*left.*rank of .* is not known"):
        surgeon.apply(proto, "aten")
    result = surgeon.apply(proto, "aten", allow=["leftover"])
    assert not result.report.changes
    assert result.model.to_proto() == proto


@pytest.mark.parametrize(
    ("then", "orelse", "kinds"),
    [
        ("a = Greater (x, z)", "b = Cast <to = 7> (x)", ["Greater", "Cast"]),
        ("a = Cast <to = 11> (x)", "b = Neg (x)", ["Neg", "Cast"]),
    ],
)
def test_branches_of_two_element_types_come_to_one(
    then: str, orelse: str, kinds: list[str]
) -> None:
    """No runtime loads such a file; the type that holds every value of the other stands."""
    proto = parse(
        f"""
        g (bool c, float[n] x, float[n] z) => (float[n] y) {{
          t = If (c) <then_branch = p () => (a) {{ {then} }},
                      else_branch = q () => (b) {{ {orelse} }}>
          y = Cast <to = 1> (t)
        }}
        """
    )
    result = surgeon.apply(proto, "clean")
    assert result.report.verdict.status == "runs"
    out = result.model.to_proto()
    onnx.checker.check_model(out, full_check=True)
    bodies = [a.g for node in out.graph.node for a in node.attribute if a.type == a.GRAPH]
    assert kinds in [ops(body) for body in bodies]
    x, z = np.array([1.5, -2, 3], F32), np.zeros(3, F32)
    for c in (True, False):
        found = Session(out).run({"c": np.array(c), "x": x, "z": z})["y"]
        named = {"Greater": x > z, "Cast": x.astype(np.int64) if "7" in orelse else x, "Neg": -x}
        wanted = named[(then if c else orelse).split()[2]]
        np.testing.assert_array_equal(found, wanted.astype(F32))


def test_what_a_loop_carries_gets_the_element_type_that_it_began_with() -> None:
    """TorchScript's floats are doubles, and the exporter computes with float32."""
    proto = parse(
        """
        g (float[n] x, int64 count) => (float[n] y) <double begin = {1.5}> {
          e = Loop (count, , begin) <body =
            b (int64 i, bool k, double v) => (bool o, double u) {
            o = Identity (k) f = Cast <to = 1> (v) u = Add (f, f)
          }>
          s = Cast <to = 1> (e)
          y = Mul (x, s)
        }
        """
    )
    result = surgeon.apply(proto, "clean")
    assert result.report.verdict.status == "runs"
    out = result.model.to_proto()
    onnx.checker.check_model(out, full_check=True)
    found = Session(out).run({"x": np.ones(2, F32), "count": np.array(3)})["y"]
    assert found.tolist() == [12.0, 12.0]


# --------------------------------------------------------------------------------------- functions


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


def test_a_function_that_others_call_is_not_taken_for_what_the_main_graph_gives_it() -> None:
    """`inner` stands first in the file; what `outer` gives it has another shape."""
    proto = parse(
        """
        g (float[2,3] x) => (float[a] y, float[b] q) { y = my.inner (x) q = my.outer (x) }
        <domain: "my", opset_import: ["": 17, "my": 1]>
        inner (v) => (o) { s = Shape (v) t = ReduceProd (s) o = Reshape (v, t) }
        <domain: "my", opset_import: ["": 17, "my": 1]>
        outer (v) => (o) { c = Concat <axis = 0> (v, v) o = my.inner (c) }
        """,
        domains=', "my": 1',
    )
    result = surgeon.apply(proto, "shape-chains", FOLD, verify=False)
    found = Session(result.model.to_proto()).run({"x": np.ones((2, 3), F32)})
    assert (found["y"].shape, found["q"].shape) == ((6,), (12,))


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


# ----------------------------------------------------------------------------- merging and folding


def test_random_nodes_are_neither_merged_nor_folded() -> None:
    proto = parse(
        """
        g (float[2,3] x) => (float[2,3] y) {
          a = RandomNormal <shape = [2, 3]> ()
          b = RandomNormal <shape = [2, 3]> ()
          c = RandomUniformLike (x)
          d = RandomUniformLike (x)
          e = Sub (a, b)
          f = Sub (c, d)
          h = Bernoulli (x)
          i = Bernoulli (x)
          j = Sub (h, i)
          k = Sum (e, f, j)
          l = Relu (x)
          m = Relu (x)
          o = Sub (l, m)
          y = Add (k, o)
        }
        """
    )
    result = surgeon.apply(proto, FOLD, verify=False)
    counts = result.report.after
    assert counts["RandomNormal"] == counts["RandomUniformLike"] == counts["Bernoulli"] == 2
    assert counts["Relu"] == 1


def test_equal_nodes_merge_by_attributes_inputs_and_constants() -> None:
    proto = model_of(
        "float[n,4] x",
        "a = Softmax <axis = 0> (x) b = Softmax <axis = 1> (x) c = Softmax <axis = 0> (x) "
        "d = Add (x, k) e = Add (x, l) f = Add (x, m) y = Sum (a, b, c, d, e, f)",
        "y",
        constants={"k": F32(1), "l": F32(1), "m": F32(2)},
    )
    result = surgeon.apply(proto, FOLD)
    assert result.report.after == {"Softmax": 2, "Add": 2, "Sum": 1}
    assert result.report.housekeeping["equal nodes merged"] == 2


def test_an_output_that_an_earlier_node_computes_too_is_made_by_that_node() -> None:
    proto = model_of("float[n,4] x", "a = Relu (x) b = Neg (a) y = Relu (x) z = Exp (y)", "b y z")
    result = surgeon.apply(proto, FOLD)
    assert result.report.after == {"Relu": 1, "Neg": 1, "Exp": 1}
    assert [o.name for o in result.model.to_proto().graph.output] == ["b", "y", "z"]


def test_two_outputs_of_one_value_stay_two() -> None:
    proto = model_of("float[n,4] x", "y = Relu (x) z = Relu (x)", "y z")
    result = surgeon.apply(proto, FOLD, verify=False)
    assert result.report.after == {"Relu": 2}


def test_constants_of_other_dtypes_or_shapes_are_not_equal() -> None:
    proto = model_of(
        "float[n] x",
        "a = Cast <to = 7> (x) b = Cast <to = 6> (x) c = Add (a, k) d = Add (b, l) e = Add (x, f) "
        "h = Add (x, i) o = Cast <to = 1> (c) p = Cast <to = 1> (d) y = Sum (o, p, e, h)",
        "y",
        constants={
            "k": np.int64(0),
            "l": np.int32(0),
            "f": F32(0),
            "i": F32(-0.0),
        },
    )
    result = surgeon.apply(proto, FOLD)
    assert result.report.after["Add"] == 4


def test_constants_of_equal_bytes_and_other_dtypes_are_not_equal() -> None:
    proto = model_of(
        "float[n] x",
        "a = CastLike (x, k) b = CastLike (x, l) c = Cast <to = 1> (b) y = Add (a, c)",
        "y",
        constants={"k": F32(0), "l": np.int32(0)},
    )
    assert surgeon.apply(proto, FOLD).report.after["CastLike"] == 2


def test_nodes_of_foreign_domains_are_not_merged() -> None:
    proto = parse(
        "g (float[n] x) => (float[n] y) { a = my.Draw (x) b = my.Draw (x) y = Add (a, b) }",
        domains=', "my": 1',
    )
    result = surgeon.apply(proto, FOLD, verify=False)
    assert result.report.after["my.Draw"] == 2


@pytest.mark.parametrize(
    ("body", "constants"),
    [
        ("y = ConstantOfShape (s)", {"s": ints(100_000, 100_000)}),
        ("y = Range (o, e, p)", {"o": np.int64(0), "e": np.int64(10**9), "p": np.int64(1)}),
        ("y = Tile (o, s)", {"o": np.ones((1, 1), F32), "s": ints(100_000, 100_000)}),
        ("y = Expand (o, s)", {"o": np.ones((1, 1), F32), "s": ints(100_000, 100_000)}),
        ("y = Pad (o, s)", {"o": np.ones((1, 1), F32), "s": ints(0, 0, 100_000, 100_000)}),
        (
            "y = Resize (o, , s)",
            {"o": np.ones((1, 1, 1, 1), F32), "s": np.array([1, 1, 1e5, 1e5], F32)},
        ),
        ("y = MatMul (o, e)", {"o": np.ones((60_000, 1), F32), "e": np.ones((1, 60_000), F32)}),
        ("y = Add (o, e)", {"o": np.ones((60_000, 1), F32), "e": np.ones((1, 60_000), F32)}),
        ("y = OneHot (i, e, o)", {"i": ints(1, 2), "e": np.int64(10**10), "o": np.ones(2, F32)}),
        (
            "a = Expand (o, s) b = Shape (a) y = ConstantOfShape (b)",
            {"o": np.ones((1, 1), F32), "s": ints(10**5, 10**5)},
        ),
        (
            "a = Tile (o, s) b = Tile (a, s) c = Tile (b, s) y = Tile (c, s)",
            {"o": np.ones((1, 1), F32), "s": ints(200, 200)},
        ),
    ],
)
def test_folding_does_not_bloat_a_file(body: str, constants: dict[str, Any]) -> None:
    proto = model_of("float[1] x", f"{body} q = Relu (x)", "y q", constants=constants)
    start = time.perf_counter()
    result = surgeon.apply(proto, FOLD, verify=False)
    assert time.perf_counter() - start < 2
    assert result.model.to_proto().ByteSize() < proto.ByteSize() + 4 * (1 << 20)
    assert any("y" in node.output for node in result.model.to_proto().graph.node)


def test_folding_with_a_limit_of_its_own() -> None:
    body = "a = Expand (o, s) y = Add (x, a)"
    proto = model_of("float[2048] x", body, "y", constants={"o": np.ones(1, F32), "s": ints(2048)})
    small = Recipe.parse("surgeon: 1\nname: f\nsteps:\n  - fold: {max_bytes: 4096}\n")
    assert surgeon.apply(proto, FOLD).report.after == {"Add": 1}
    assert surgeon.apply(proto, small).report.after == {"Expand": 1, "Add": 1}


def test_constants_are_folded_by_onnxruntime_where_numpy_has_no_such_operator() -> None:
    proto = model_of(
        "float[2,2] x",
        "a = Gemm (k, k) b = Softmax (a) c = Erf (b) d = Cast <to = 10> (c) e = Cast <to = 1> "
        "(d) y = Add (x, e)",
        "y",
        constants={"k": np.ones((2, 2), F32)},
    )
    result = surgeon.apply(proto, FOLD)
    assert result.report.after == {"Add": 1}
    feeds = {"x": np.ones((2, 2), F32)}
    found = Session(result.model.to_proto()).run(feeds)["y"]
    np.testing.assert_array_equal(found, Session(proto).run(feeds)["y"])


def test_an_output_that_is_constant_is_a_constant_node() -> None:
    proto = model_of("float[n] x", "y = Neg (k) q = Relu (x)", "y q", constants={"k": F32(2)})
    result = surgeon.apply(proto, FOLD)
    assert sorted(ops(result.model.to_proto().graph)) == ["Constant", "Relu"]
    found = Session(result.model.to_proto()).run({"x": F32([1, -1])})
    np.testing.assert_array_equal(found["y"], F32(-2))


def test_constants_inside_functions_have_their_values() -> None:
    proto = parse(
        """
        g (float[2,3] x) => (float[6] y) { y = my.f (x) }
        <domain: "my", opset_import: ["": 17]>
        f (v) => (o) {
          k = Constant <value = int64[1] {-1}> () s = Neg (k) t = Neg (s) o = Reshape (v, t)
        }
        """,
        domains=', "my": 1',
    )
    result = surgeon.apply(proto, FOLD)
    assert result.report.after == {"my.f": 1, "Reshape": 1}


def test_what_cannot_be_computed_stays() -> None:
    proto = model_of(
        "float[2] x",
        "a = my.Secret (k) b = Reshape (k, s) y = Add (x, a)",
        "y b",
        constants={"k": np.ones(2, F32), "s": ints(3)},
    )
    proto.opset_import.append(onnx.helper.make_opsetid("my", 1))
    result = surgeon.apply(proto, FOLD, verify=False)
    assert result.report.after == {"Add": 1, "my.Secret": 1, "Reshape": 1}


def test_equal_chains_that_rules_made_are_merged_in_one_walk() -> None:
    nodes = (
        'a = org.pytorch.aten.ATen <operator = "inverse"> (x) '
        'b = org.pytorch.aten.ATen <operator = "linalg_inv"> (x) y = Add (a, b)'
    )
    proto = model_of("float[n,9,9] x", nodes, "y")
    proto.opset_import.append(onnx.helper.make_opsetid("org.pytorch.aten", 1))
    whole = surgeon.apply(proto, "aten-linalg", verify=False).report.after
    single = surgeon.apply(
        model_of("float[n,9,9] x", nodes.partition(" b = ")[0].replace("a =", "y ="), "y"),
        "aten-linalg",
        verify=False,
    ).report.after
    assert whole == {**single, "Add": single.get("Add", 0) + 1}
