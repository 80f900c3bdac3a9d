"""The walk: every graph of a model, in any order, to a fixed point, and nothing else touched."""

from __future__ import annotations

import time
from itertools import pairwise

import numpy as np
import onnx
import onnx_graphsurgeon as gs
import pytest
from sweeping import F32, FOLD, SIGNS, ops, same
from truth import model_of, parse

import surgeon
from surgeon.authoring import rule
from surgeon.errors import ModelError, SettleError
from surgeon.match import Match
from surgeon.recipe import Recipe
from surgeon.rewrite import Draft
from surgeon.runtime import Session


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
    assert "no-ops/size-and-axis" not in result.report.fired
    assert ops(same(gone, result).graph) == ["Identity"]
    kept = parse(f"g (float[n,4] x) => (float[n,4] y, int64[2] t) {chain} }}")
    result = surgeon.apply(kept, "clean")
    assert result.report.fired["no-ops/size-and-axis"] == 1
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


@pytest.mark.slow
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
    assert caught.value.what.endswith("what it made of node 'y' (ai.onnx.Neg)")
    assert caught.value.exit_code == 6
    assert str(caught.value.where).rpartition(":")[0].rpartition(":")[0].endswith("test_sweep.py")
    assert time.perf_counter() - start < 20


def test_a_form_of_old_is_read_in_a_later_step_where_its_dtype_is_known_by_then() -> None:
    """What the first step does not know the dtype of, the second one's rules make constant."""
    model = onnx.parser.parse_model(
        """
        <ir_version: 4, opset_import: ["": 9, "org.pytorch.aten": 1]>
        g (float[1,1,1,4] x) => (float[1,1,1,4] y) {
          size = Constant <value = int64[2] {1, 4}> ()
          kernel = Constant <value = int64[2] {1, 2}> ()
          one = Constant <value = int64[2] {1, 1}> ()
          none = Constant <value = int64[2] {0, 0}> ()
          step = Constant <value = int64[2] {1, 2}> ()
          ones = Constant <value = float[1,2,2] {1.0, 1.0, 1.0, 1.0}> ()
          f = org.pytorch.aten.ATen <operator = "thnn_col2im"> (ones, size, kernel, one, none, step)
          c = Clip <min = 0.5> (f)
          y = Div (x, c)
        }
        """
    )
    text = "surgeon: 1\nname: two\nsteps:\n  - use: pads-fold\n  - use: aten\n"
    out = surgeon.apply(model, Recipe.parse(text)).model.to_proto()
    assert [node.op_type for node in out.graph.node] == ["Div"]


@pytest.mark.parametrize("operands", ["c, x", "x, c"])
def test_conditions_choose_among_the_orders_of_operands(operands: str) -> None:
    recipe = Recipe.parse(
        """
surgeon: 1
name: doubled
rules:
  - id: doubled
    why: Twice a value is the value added to itself.
    exact: bit
    match: y = Mul (v, k)
    where: [k.value == 2]
    replace: y = Add (v, v)
"""
    )
    proto = model_of("float[n] x", f"y = Mul ({operands})", "y", constants={"c": F32(2)})
    result = surgeon.apply(proto, recipe)
    assert result.report.status == "equivalent"
    assert [node.op_type for node in result.model.to_proto().graph.node] == ["Add"]
