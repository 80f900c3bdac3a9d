"""surgeon's import of a protobuf beside graphsurgeon's own, and where it is meant to differ."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_graphsurgeon as gs
import pytest
from onnx import TensorProto, helper
from onnx_cases import cases
from onnx_graphsurgeon.util.misc import SynchronizedList
from rich_models import rich
from shares import every
from truth import parse

import surgeon
from surgeon.model import Model
from surgeon.objects import make_constant, make_node, make_variable

SAMPLES = sorted((Path(__file__).parent.parent / "samples").rglob("*.onnx"))


def graphs(model: Model, proto: onnx.ModelProto) -> Iterator[tuple[gs.Graph, gs.Graph]]:
    """The graphs of both imports: the main one, functions and bodies."""
    theirs = gs.import_onnx(proto)
    stack = [(model.graph, theirs)]
    stack += zip(model.graph.functions, theirs.functions, strict=True)
    while stack:
        pair = stack.pop()
        yield pair
        for one, other in zip(pair[0].nodes, pair[1].nodes, strict=True):
            bodies = [
                [value for value in node.attrs.values() if isinstance(value, gs.Graph)]
                for node in (one, other)
            ]
            stack += zip(*bodies, strict=True)


def said_of_tensor(tensor: gs.Tensor) -> tuple[Any, ...]:
    if not isinstance(tensor, gs.Constant):
        return type(tensor).__name__, tensor.name, tensor.type
    values = tensor._values
    return type(tensor).__name__, tensor.name, tensor.data_location, type(values), values.tensor


def said_of_attribute(value: Any) -> Any:
    if isinstance(value, gs.Tensor):
        return said_of_tensor(value)
    return gs.Graph if isinstance(value, gs.Graph) else value


def said_of_node(node: gs.Node) -> tuple[Any, ...]:
    attributes = [(name, said_of_attribute(value)) for name, value in node.attrs.items()]
    neighbours = [[said_of_tensor(t) for t in side] for side in (node.inputs, node.outputs)]
    return node.op, node.name, node.domain, attributes, neighbours


def assert_linked(graph: gs.Graph) -> None:
    """Every neighbour knows the node as often as the node knows it."""
    for node in graph.nodes:
        for tensor in node.inputs:
            readers = sum(reader is node for reader in tensor.outputs)
            assert readers == sum(t is tensor for t in node.inputs)
        for tensor in node.outputs:
            assert [maker is node for maker in tensor.inputs] == [True]


def assert_same(proto: onnx.ModelProto) -> None:
    for ours, theirs in graphs(Model(proto), proto):
        assert [said_of_node(n) for n in ours.nodes] == [said_of_node(n) for n in theirs.nodes]
        for field in ("inputs", "outputs"):
            one, other = getattr(ours, field), getattr(theirs, field)
            assert [said_of_tensor(t) for t in one] == [said_of_tensor(t) for t in other]
        for field in ("name", "doc_string", "opset", "ir_version"):
            if field != "ir_version" or ours.ir_version is not None:
                assert getattr(ours, field) == getattr(theirs, field), field
        assert_linked(ours)


def test_an_attribute_that_is_no_text_stays_the_bytes_it_is() -> None:
    proto = parse(
        "g (float[3] x) => (float[3] y) { a = my.Run (x) b = Identity (a) y = my.Run (b) }",
        domains=', "my": 1',
    )
    for node, plan in ((proto.graph.node[0], b"\x80\x82"), (proto.graph.node[2], b"\x80\x83")):
        node.attribute.append(helper.make_attribute("plan", plan))
        node.attribute.append(helper.make_attribute("plans", [plan, b"text"]))
    result = surgeon.apply(proto, "clean").model.proto
    runs = [node for node in result.graph.node if node.op_type == "Run"]
    found = [{a.name: a for a in node.attribute} for node in runs]
    assert [node["plan"].s for node in found] == [b"\x80\x82", b"\x80\x83"]
    assert [list(node["plans"].strings) for node in found] == [
        [b"\x80\x82", b"text"],
        [b"\x80\x83", b"text"],
    ]


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_samples_are_linked_as_graphsurgeon_links_them(path: Path) -> None:
    assert_same(onnx.load(path))


def test_what_a_model_can_hold_is_linked_as_graphsurgeon_links_it() -> None:
    assert_same(rich())


@pytest.mark.slow
def test_onnx_s_own_models_are_linked_as_graphsurgeon_links_them() -> None:
    step = 3 * every(6)
    seen = 0
    for case in cases()[::step]:
        assert_same(case.model)
        seen += 1
    assert seen > 900 // step


def test_a_sparse_initializer_and_a_function_s_attribute_are_linked() -> None:
    proto = parse(
        """
        g (float[3] x) => (float[3] y) { y = my.scaled <by = 2.0> (x) }
        <domain: "my", opset_import: ["": 17]>
        scaled <by> (v) => (o) { c = Constant <value_float: float = @by> () o = Mul (v, c) }
        """,
        domains=', "my": 1',
    )
    values = helper.make_tensor("w", TensorProto.FLOAT, [1], [2.0])
    indices = helper.make_tensor("at", TensorProto.INT64, [1], [1])
    proto.graph.sparse_initializer.append(helper.make_sparse_tensor(values, indices, [3]))
    proto.graph.node.append(helper.make_node("Add", ["x", "w"], ["unread"], name="reads"))
    assert_same(proto)


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_graphsurgeon_s_own_tools_work_on_it(path: Path) -> None:
    exported = []
    for graph in (Model.load(path).graph, gs.import_onnx(onnx.load(path))):
        tidied = graph.copy().cleanup().toposort()
        proto = gs.export_onnx(tidied, do_type_check=False)
        proto.graph.ClearField("value_info")  # facts say what is known, not tensors
        exported.append(proto)
    assert exported[0] == exported[1]


def nested(inner: str) -> onnx.ModelProto:
    """An If whose branches are of text, in a graph where `c` is [1] and `late` comes last."""
    text = f"""
        g (bool p, float[1] x) => (float[1] y)
        <float[1] c = {{1}}>
        {{
          y = If (p) <then_branch = t () => (float[1] o) {inner},
                      else_branch = e () => (float[1] o) {{ o = Neg (late) }}>
          late = Relu (x)
        }}
        """
    return parse(text)


def test_a_body_reads_what_a_later_node_gives() -> None:
    graph = Model(nested("{ o = Abs (late) }")).graph
    given = graph.nodes[1].outputs[0]
    for name in ("then_branch", "else_branch"):
        body = graph.nodes[0].attrs[name]
        assert body.nodes[0].inputs[0] is given


def test_an_initializer_of_a_body_is_its_own() -> None:
    graph = Model(nested("<float[1] c = {2}> { o = Add (c, c) }")).graph
    body = graph.nodes[0].attrs["then_branch"]
    constant = body.nodes[0].inputs[0]
    assert constant.home is body
    assert np.array_equal(constant.values, [2.0])
    assert "c" in body.reads
    assert "c" not in graph.reads


def test_what_a_body_reads_of_its_surroundings_counts_as_read_there() -> None:
    graph = Model(nested("{ o = Mul (c, x) }")).graph
    assert "c" in graph.reads
    assert graph.nodes[0].attrs["then_branch"].nodes[0].inputs[0].home is graph


def test_objects_have_the_fields_that_graphsurgeon_s_constructors_set() -> None:
    graph, array = gs.Graph(), np.zeros(2, np.float32)
    x, y = gs.Variable("x"), gs.Variable("y")
    theirs = [gs.Node("Op", "n", {"a": 1}, [x], [y], "d"), y, gs.Constant("c", array, 0)]
    v, w = make_variable("x"), make_variable("y")
    ours = [
        make_node("Op", "n", {"a": 1}, [v], [w], "d", None, graph),
        w,
        make_constant("c", array, graph, 0),
    ]
    for one, other in zip(ours, theirs, strict=True):
        assert type(one) is type(other)
        for field, value in vars(other).items():
            found = vars(one)[field]
            if isinstance(value, SynchronizedList):
                assert isinstance(found, SynchronizedList)
                assert [each.name for each in found] == [each.name for each in value]
                assert found.field_name == value.field_name
                assert found.parent_obj is one
            else:
                assert found is value or found == value, field


def test_lists_of_neighbours_keep_both_ends_in_step() -> None:
    graph, v, w, y = gs.Graph(), make_variable("v"), make_variable("w"), make_variable("y")
    node = make_node("Op", "n", {}, [v], [y], None, None, graph)
    node.inputs = [w, v]
    assert (list(v.outputs), list(w.outputs)) == ([node], [node])
    node.inputs.remove(v)
    assert not v.outputs
    v.outputs.append(node)
    assert [tensor.name for tensor in node.inputs] == ["w", "v"]


def test_a_list_of_graphs_is_no_body_as_for_graphsurgeon() -> None:
    inner = helper.make_graph([helper.make_node("Abs", ["x"], ["d"])], "inner", [], [])
    node = helper.make_node("Switch", ["x"], ["y"], domain="my", cases=[inner, inner], mode="all")
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in "xy"]
    graph = helper.make_graph([node], "g", ends[:1], ends[1:])
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("my", 1)]
    proto = helper.make_model(graph, opset_imports=imports)
    assert list(Model(proto).graph.nodes[0].attrs) == ["mode"]
    assert_same(proto)


def test_short_lists_are_written_as_numbers_and_not_as_bytes() -> None:
    graph = parse(
        "g (float[n,6] x) => (float[n,2] a, float[n,4] b) "
        "<int64[1] zero = {0}, int64[1] one = {1}, int64[1] two = {2}, int64[1] six = {6}> "
        "{ a = Slice (x, zero, two, one) b = Slice (x, two, six, one) }"
    )
    written = surgeon.apply(graph, "clean").model.to_proto().graph
    assert [node.op_type for node in written.node] == ["Split"]
    (sizes,) = written.initializer
    assert list(sizes.int64_data) == [2, 4]
    assert not sizes.raw_data
