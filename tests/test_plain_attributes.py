"""Attributes that say what their operator did before there was one."""

from __future__ import annotations

import onnx
import pytest

import surgeon
from surgeon.errors import SurgeonError
from surgeon.steps.plainattributes import has_such, plain_attributes

SCATTERED = onnx.parser.parse_model("""
    <ir_version: 8, opset_import: ["": 18]>
    g (float[n,4] x, int64[k,1] i, float[k,4] u, bool c) => (float[m,2] y, float[n,4] z)
    <int64[2] s = {-1, 2}> {
        p = ScatterND <reduction = "none"> (x, i, u)
        q = ScatterND <reduction = "add"> (p, i, u)
        y = Reshape <allowzero = 0> (q, s)
        z = If (c) <
            then_branch = t () => (float[n,4] a) { a = ScatterND <reduction = "none"> (x, i, u) },
            else_branch = e () => (float[n,4] b) { b = Softmax <axis = -1> (x) }
        >
    }
""")
RESIZED = onnx.parser.parse_model("""
    <ir_version: 8, opset_import: ["": 18]>
    g (float[1,1,h,w] x) => (float[1,1,p,q] y) <float[4] s = {1, 1, 2, 2}> {
        y = Resize <coordinate_transformation_mode = "half_pixel", mode = "linear", antialias = 0>
            (x, , s)
    }
""")


def said(proto: onnx.ModelProto) -> list[tuple[str, list[str]]]:
    nodes = [*proto.graph.node]
    nodes += [n for node in nodes for a in node.attribute if a.HasField("g") for n in a.g.node]
    return [(n.op_type, [a.name for a in n.attribute]) for n in nodes if n.op_type != "If"]


def test_attributes_that_say_nothing_new_leave() -> None:
    result = surgeon.apply(SCATTERED, "plain-attributes")
    assert result.report.status == "equivalent"
    found = said(result.model.to_proto())
    assert sorted(found) == [
        ("Reshape", []),
        ("ScatterND", []),
        ("ScatterND", []),
        ("ScatterND", ["reduction"]),
        ("Softmax", ["axis"]),
    ]
    assert not surgeon.apply(result.model.to_proto(), "plain-attributes").model.changed


def test_for_tensorrt_leaves_no_reduction_either() -> None:
    result = surgeon.apply(SCATTERED, "for-tensorrt")
    assert result.report.status == "equivalent"
    assert "combined-lines" in {change.rule for change in result.report.changes}
    found = [each for each in said(result.model.to_proto()) if each[0] == "ScatterND"]
    assert found == [("ScatterND", []), ("ScatterND", [])]
    assert not surgeon.apply(result.model.to_proto(), "for-tensorrt").model.changed


def test_what_meant_something_else_before_stays() -> None:
    (node,) = plain_attributes(RESIZED).graph.node
    assert [a.name for a in node.attribute] == ["coordinate_transformation_mode", "mode"]


def test_a_file_without_such_stays_as_it_is() -> None:
    plain = plain_attributes(RESIZED)
    assert not has_such(plain)
    with pytest.raises(SurgeonError, match="no attribute says"):
        plain_attributes(plain)
    assert not surgeon.apply(plain, "plain-attributes").model.changed


LEFT_OUT = """
    <ir_version: 8, opset_import: ["": 17]>
    g (float[n,4] x, bool c) => (float[n,4] y, float[3,n,4] z)
    <float low = {-1.0}, int64 turns = {3}> {
        a = Clip (x, low, "")
        b = Clip (a, "", low)
        y = If (c) <
            then_branch = t () => (float[n,4] d) { d = Clip (b, "", "") },
            else_branch = e () => (float[n,4] f) { f = Identity (b) }
        >
        z = Loop (turns, "") <
            body = l (int64 i, bool g) => (bool h, float[n,4] r) { h = Identity (g)  r = Neg (x) }
        >
    }
"""


def test_operands_that_are_left_out_at_the_end_leave() -> None:
    model = onnx.parser.parse_model(LEFT_OUT)
    result = surgeon.apply(model, "plain-attributes")
    assert result.report.status == "equivalent"
    nodes = list(result.model.to_proto().graph.node)
    assert [list(node.input) for node in nodes[:2]] == [["x", "low"], ["a", "", "low"]]
    branches = {a.name: a.g for a in nodes[2].attribute}
    assert list(branches["then_branch"].node[0].input) == ["b"]
    assert list(nodes[3].input) == ["turns", ""], "both are needed, by what ONNX says"
    assert not surgeon.apply(result.model, "plain-attributes").model.changed


def test_an_output_that_says_how_many_parts_there_are_stays() -> None:
    model = onnx.parser.parse_model("""
        <ir_version: 8, opset_import: ["": 13]>
        g (float[2,4] x) => (float[2,2] y) { a, b = Split <axis = 1> (x)  y = Exp (a) }
    """)
    model.graph.node[0].output[1] = ""
    assert not has_such(model)
    result = surgeon.apply(model, "plain-attributes", verify=False)
    assert list(result.model.to_proto().graph.node[0].output) == ["a", ""]
