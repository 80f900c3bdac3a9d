"""Initializers that are inputs, and constants of bodies and functions: each stays what it was."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import helper
from rich_models import F32, changed, neg_by_sub, rich
from truth import model_of, parse

import surgeon
from surgeon.authoring import recipe_of
from surgeon.runtime import Session


def test_overridable_initializers_stay_inputs() -> None:
    proto = rich()
    out = changed(proto)
    assert [v.name for v in out.graph.input] == ["x", "unread", "w"]
    assert "w" in [t.name for t in out.graph.initializer]


def test_initializers_of_the_pytorch_exporter_leave_the_inputs() -> None:
    proto = rich()
    proto.producer_name = "pytorch"
    listed = {value.name for value in proto.graph.input}
    alone = [tensor for tensor in proto.graph.initializer if tensor.name not in listed]
    assert changed(proto).graph.input[2].name == "w", "which alone is meant to be given"
    for tensor in alone:
        proto.graph.initializer.remove(tensor)
        as_node = helper.make_node("Constant", [], [tensor.name], value=tensor)
        proto.graph.node.insert(0, as_node)
    result = surgeon.apply(proto, neg_by_sub, verify=False)
    assert [v.name for v in result.model.to_proto().graph.input] == ["x", "unread"]
    assert result.report.remarks == (
        "1 initializers that the exporter lists as inputs are constants, and leave the inputs "
        "(`--keep-overridable` keeps them)",
    )
    same = surgeon.apply(proto, verify=False)
    assert [v.name for v in same.model.to_proto().graph.input] == ["x", "unread", "w"]
    assert same.report.remarks == (), "what nothing changed is given back as it came"
    kept = changed(proto, keep_overridable=True)
    assert [v.name for v in kept.graph.input] == ["x", "unread", "w"]


def test_ir_3_has_no_initializer_beside_the_inputs() -> None:
    body = "a = Mul (x, w) y = Neg (a)"
    proto = model_of("float[2] x, float[2] w", body, "y", 8, {"w": np.ones(2, F32)})
    proto.ir_version = 3
    proto.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", 1, [2]))
    onnx.checker.check_model(proto)
    out = changed(proto)
    onnx.checker.check_model(out)
    assert [t.name for t in out.graph.initializer] == ["w"]
    assert [v.name for v in out.graph.input] == ["x", "w"]
    assert [n.op_type for n in out.graph.node] == ["Constant", "Mul", "Sub"]
    np.testing.assert_array_equal(Session(out).run({"x": np.ones(2, F32)})["y"], [-1, -1])


def test_an_initializer_of_ir_3_is_a_constant_and_listed_as_long_as_it_is_read() -> None:
    body = "v = Neg (w) a = Mul (x, v) b = Mul (a, u) y = Relu (b)"
    constants = {"w": np.ones(2, F32), "u": np.full(2, 3, F32)}
    proto = model_of("float[2] x, float[2] w, float[2] u", body, "y", 8, constants)
    proto.ir_version = 3
    proto.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", 1, [2]))
    result = surgeon.apply(proto, "clean")
    out = result.model.to_proto()
    onnx.checker.check_model(out)
    assert result.report.verdict.status == "equivalent"
    assert not any(node.op_type == "Neg" for node in out.graph.node)
    assert "w" not in [v.name for v in out.graph.input]
    assert [v.name for v in out.graph.input][1:] == [t.name for t in out.graph.initializer]


def test_constants_of_functions_and_bodies_stay_where_they_are() -> None:
    proto = parse(
        """
        g (bool k, float[2] x) => (float[2] y, float[2] q) {
          y = If (k) <
            then_branch = p () => (float[2] r) <float[2] w = {1, 2}> { e = Add (x, w) r = Neg (e) },
            else_branch = n () => (float[2] s) { s = Relu (x) }>
          q = my.f (x)
        }
        <domain: "my", opset_import: ["": 17]>
        f (v) => (o) { c = Constant <value = float[2] {3, 4}> () a = Add (v, c) o = Neg (a) }
        """,
        domains=', "my": 1',
    )
    result = surgeon.apply(proto, neg_by_sub)
    assert result.report.fired.total() == 2
    out = result.model.to_proto()
    onnx.checker.check_model(out)
    body = out.graph.node[0].attribute[0].g
    assert sorted(t.name for t in body.initializer) == ["r/zero", "w"]
    assert not out.graph.initializer
    assert [n.op_type for n in out.functions[0].node] == ["Constant", "Constant", "Add", "Sub"]
    for k in (True, False):
        feeds = {"k": np.array(k), "x": np.ones(2, F32)}
        for name, value in Session(proto).run(feeds).items():
            np.testing.assert_array_equal(Session(out).run(feeds)[name], value)


def test_attribute_references_of_functions_survive() -> None:
    proto = parse(
        """
        g (float[2,3] x) => (y) { y = my.f <axis = 0> (x) }
        <domain: "my", opset_import: ["": 17]>
        f <axis> (v) => (o) { a = Softmax <axis: int = @axis> (v) o = Neg (a) }
        """,
        domains=', "my": 1',
    )
    out = changed(proto)
    softmax = next(n for n in out.functions[0].node if n.op_type == "Softmax")
    assert softmax.attribute[0].ref_attr_name == "axis"
    x = np.arange(6, dtype=F32).reshape(2, 3)
    found, wanted = Session(out).run({"x": x})["y"], Session(proto).run({"x": x})["y"]
    np.testing.assert_array_equal(found, wanted)


def test_a_constant_that_two_bodies_read_stays_where_both_see_it() -> None:
    body = (
        "(int64 i, bool c, float[b] s) => (bool d, float[b] t) { d = Identity (c) t = OP (s, two) }"
    )
    proto = model_of(
        "float[b] x, int64 n",
        f"m = Neg (x) p = Loop (n, go, m) <body = first {body.replace('OP', 'Add')}> "
        f"y = Loop (n, go, p) <body = second {body.replace('OP', 'Mul')}>",
        "y",
        constants={"go": np.array(True), "two": np.array(2, F32)},
    )
    found = surgeon.apply(proto, recipe_of(neg_by_sub)).model.to_proto()
    assert {"go", "two"} <= {t.name for t in found.graph.initializer}
    feeds = {"x": np.array([1.5, -2], F32), "n": np.array(3)}
    np.testing.assert_array_equal(Session(found).run(feeds)["y"], Session(proto).run(feeds)["y"])


def test_operator_sets_that_nobody_uses_stay_but_for_the_fallback() -> None:
    proto = rich()
    proto.opset_import.append(helper.make_opsetid("org.pytorch.aten", 1))
    domains = [e.domain for e in changed(proto).opset_import]
    assert domains == ["", "my", "spare.domain"]
