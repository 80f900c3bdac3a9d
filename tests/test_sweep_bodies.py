"""The walk through bodies: branches, loops and scans, and what they read from around them."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from sweeping import F32, FOLD, SIGNS, ops, same
from truth import parse

import surgeon
from surgeon.runtime import Session

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
    (copy,) = body.node  # onnxruntime refuses a body that gives what stands around it
    assert [v.name for v in body.output] == list(copy.output)
    assert (copy.op_type, list(copy.input)) == ("Identity", ["x"])


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


def test_a_squeeze_of_an_axis_of_one_element_keeps_what_a_loop_carries() -> None:
    """PyTorch writes it in a branch; the other gives the value as it is, with one axis more."""
    proto = parse(
        """
        g (float[n] x, int64 count) => (float[k,l] y) <int64 first = {0}, int64 last = {-1}> {
          z = Loop (count, , x) <body =
            b (int64 i, bool k, float[k0] v) => (bool o, float[k1] u) <int64[1] one = {1}> {
            o = Identity (k)
            a = Unsqueeze <axes = [1]> (v)
            s = Shape (a)
            length = Gather <axis = 0> (s, one)
            c = Equal (length, one)
            q = If (c) <then_branch = p () => (float[k2] r) { r = Squeeze <axes = [1]> (a) },
                        else_branch = e () => (float[k3,k4] t) { t = Identity (a) }>
            u = Sub (q, x)
          }>
          w = Unsqueeze <axes = [1]> (z)
          y = org.pytorch.aten.ATen <operator = "transpose"> (w, first, last)
        }
        """,
        opset=11,
    )
    proto.opset_import.append(onnx.helper.make_opsetid("org.pytorch.aten", 1))
    result = surgeon.apply(proto, "aten")
    assert result.report.verdict.status == "equivalent"
    x = np.arange(3, dtype=F32)
    found = Session(result.model.to_proto()).run({"x": x, "count": np.array(3)})["y"]
    np.testing.assert_array_equal(found, -2 * x[None])


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
