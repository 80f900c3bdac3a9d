"""Nothing is lost: what a rewrite did not touch comes out as it went in."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnx_graphsurgeon as gs
import pytest
from google.protobuf.message import EncodeError
from onnx import TensorProto, helper, numpy_helper
from rich_models import F32, changed, neg_by_sub, rich, without
from truth import model_of, parse

import surgeon
from surgeon.authoring import recipe_of
from surgeon.errors import ModelError
from surgeon.model import Model, describe
from surgeon.producer import release_of
from surgeon.runtime import Session
from surgeon.wire import serialise


def test_one_changed_node_keeps_all_the_rest() -> None:
    proto = rich()
    out = changed(proto)
    assert without(out, "y") == without(proto, "y")
    new = next(n for n in out.graph.node if "y" in n.output)
    assert new.op_type == "Sub"
    assert {e.key: e.value for e in new.metadata_props} == {
        "surgeon.rule": "rich_models/neg-by-sub",
        "surgeon.from": "n_y",
    }


def test_metadata_of_nodes_needs_ir_10() -> None:
    proto = rich(ir=8)
    for node in proto.graph.node:
        del node.metadata_props[:]
    del proto.graph.metadata_props[:]
    del proto.graph.input[0].metadata_props[:]
    out = changed(proto)
    assert not any(node.metadata_props for node in out.graph.node)
    onnx.checker.check_model(out)


def test_the_argument_is_not_touched() -> None:
    proto = rich()
    before = proto.SerializeToString(deterministic=True)
    model = Model(proto)
    surgeon.apply(model, neg_by_sub, verify=False)
    surgeon.apply(proto, neg_by_sub, verify=False)
    assert proto.SerializeToString(deterministic=True) == before
    assert not model.changed
    assert model.to_proto() == proto


def test_a_graphsurgeon_graph_is_taken_and_not_touched() -> None:
    graph = gs.import_onnx(rich())
    nodes = [(n.op, [t.name for t in n.inputs]) for n in graph.nodes]
    result = surgeon.apply(graph, neg_by_sub, verify=False)
    assert result.report.fired.total() == 1
    assert [(n.op, [t.name for t in n.inputs]) for n in graph.nodes] == nodes


def test_an_unchanged_model_is_saved_byte_for_byte(tmp_path: Path) -> None:
    source, target = tmp_path / "in.onnx", tmp_path / "out.onnx"
    # An order of fields that protobuf itself would not write, and a field that nobody knows.
    graph, rest = onnx.ModelProto(), rich()
    graph.graph.CopyFrom(rest.graph)
    rest.ClearField("graph")
    data = graph.SerializeToString() + b"\xfa\x3f\x03abc" + rest.SerializeToString()
    assert onnx.load_from_string(data).SerializeToString() != data
    source.write_bytes(data)
    surgeon.apply(source, recipe_of()).model.save(target)
    assert target.read_bytes() == data


def test_unread_initializers_stay_and_those_that_became_unread_go() -> None:
    proto = model_of(
        "float[2] x",
        "z = Mul (k, k2) y = Neg (x)",
        "y",
        constants={"k": F32(2), "k2": F32(3), "spare": F32(4)},
    )
    assert [t.name for t in changed(proto).graph.initializer] == ["spare", "y/zero"]


def test_sparse_initializers() -> None:
    proto = model_of("float[3] x", "a = Add (x, s) y = Neg (a)", "y")
    values = numpy_helper.from_array(np.array([5], F32), "s")
    indices = numpy_helper.from_array(np.array([1], np.int64), "s_indices")
    proto.graph.sparse_initializer.append(helper.make_sparse_tensor(values, indices, [3]))
    out = changed(proto)
    assert out.graph.sparse_initializer == proto.graph.sparse_initializer
    found = Session(out).run({"x": np.ones(3, F32)})["y"]
    np.testing.assert_array_equal(found, [-1, -6, -1])


@pytest.mark.parametrize(
    ("dtype", "array"),
    [
        (TensorProto.BFLOAT16, np.array([1.5, -2], ml_dtypes.bfloat16)),
        (TensorProto.FLOAT8E4M3FN, np.array([1.5, -2], ml_dtypes.float8_e4m3fn)),
        (TensorProto.FLOAT8E5M2FNUZ, np.array([1.5, -2], ml_dtypes.float8_e5m2fnuz)),
        (TensorProto.INT4, np.array([1, -2, 3], ml_dtypes.int4)),
        (TensorProto.UINT4, np.array([1, 2, 3], ml_dtypes.uint4)),
        (TensorProto.COMPLEX64, np.array([1 + 2j], np.complex64)),
        (TensorProto.STRING, np.array(["a", "b"], object)),
    ],
)
def test_dtypes_that_numpy_has_not(dtype: int, array: np.ndarray) -> None:
    proto = model_of("float[2] x", "y = Neg (x)", "y z")
    kept = numpy_helper.from_array(array, "k")
    assert kept.data_type == dtype
    proto.graph.initializer.append(kept)
    proto.graph.node.append(helper.make_node("Identity", ["k"], ["z"]))
    proto.graph.node.append(helper.make_node("Constant", [], ["c"], value=kept))
    proto.graph.node.append(helper.make_node("Identity", ["c"], ["d"]))
    proto.graph.output.append(helper.make_tensor_value_info("d", dtype, None))
    out = changed(proto)
    found = next(t for t in out.graph.initializer if t.name == "k")
    assert found == kept
    assert any(t.data_type == dtype for t in out.graph.initializer if t.name != "k") or any(
        n.op_type == "Constant" for n in out.graph.node
    )


def test_string_constants() -> None:
    proto = model_of("float[2] x", "y = Neg (x)", "y q")
    proto.graph.node.append(helper.make_node("Constant", [], ["s"], value_strings=["a", "b"]))
    proto.graph.node.append(helper.make_node("Identity", ["s"], ["q"]))
    proto.graph.output[1].type.tensor_type.elem_type = TensorProto.STRING
    out = changed(proto)
    assert Session(out).run({"x": np.ones(2, F32)})["q"].tolist() == ["a", "b"]


def test_sequences_are_carried() -> None:
    proto = parse(
        "g (seq(float[n]) s, float[2] x) => (seq(float[n]) q, float[2] y) "
        "{ q = SequenceInsert (s, x) y = Neg (x) }"
    )
    out = changed(proto)
    assert without(out, "y") == without(proto, "y")


@pytest.mark.parametrize("kind", ["optional", "map", "sparse"])
def test_types_that_graphsurgeon_has_not_are_left_alone(kind: str, tmp_path: Path) -> None:
    proto = model_of("float[2] x", "y = Relu (x)", "y")
    value = proto.graph.input.add(name="o")
    if kind == "optional":
        value.type.optional_type.elem_type.tensor_type.elem_type = 1
    elif kind == "map":
        value.type.map_type.key_type = TensorProto.STRING
        value.type.map_type.value_type.tensor_type.elem_type = 1
    else:
        value.type.sparse_tensor_type.elem_type = 1
    source, target = tmp_path / "in.onnx", tmp_path / "out.onnx"
    source.write_bytes(proto.SerializeToString())
    model = Model.load(source)
    assert model.opset == 17
    model.save(target)
    assert target.read_bytes() == source.read_bytes()


@pytest.mark.parametrize(
    ("producer", "version", "release"),
    [
        ("pytorch", "1.13.1", (1, 13)),
        ("pytorch", "2.4.1+cu121", (2, 4)),
        ("pytorch", "2", (2, 0)),
        ("pytorch", "1.13a0", None),
        ("pytorch", "\u00b2.1", None),
        ("pytorch", "9" * 5000 + ".1", None),
        ("pytorch", "", None),
        ("maker", "1.1", None),
    ],
)
def test_the_release_that_wrote_a_file(
    producer: str, version: str, release: tuple[int, int] | None
) -> None:
    proto = onnx.ModelProto(producer_name=producer, producer_version=version)
    assert release_of(proto) == release


def test_the_opset_and_how_nodes_are_called() -> None:
    assert Model(parse("g (float x) => (y) { y = Relu (x) }", 13)).opset == 13
    assert describe(gs.Node("Relu", "here")) == "node 'here' (ai.onnx.Relu)"
    unnamed = gs.Node("Relu", outputs=[gs.Variable("y")], domain="my")
    assert describe(unnamed) == "node 'y' (my.Relu)"


@pytest.mark.parametrize("weights", [0, 1, 3])
def test_pieces_make_what_protobuf_writes_of_the_whole(weights: int) -> None:
    """Tensors of 0, 1, 2 and 3 bytes of length."""
    whole = rich()
    sizes = [0, 5, 200, 70_000][: weights + 1] if weights else []
    del whole.graph.initializer[:]
    parts = onnx.ModelProto()
    parts.CopyFrom(whole)
    tensors = [numpy_helper.from_array(np.arange(size, dtype=F32), f"w{size}") for size in sizes]
    whole.graph.initializer.extend(tensors)
    pieces = serialise(parts, tensors, where="out.onnx")
    assert b"".join(pieces) == whole.SerializeToString(deterministic=True)


def test_a_model_larger_than_protobuf_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    """protobuf says nothing but that it failed: too large, or no memory."""

    def fail(**_: object) -> bytes:
        raise EncodeError("Failed to serialize proto")

    tensor = onnx.TensorProto(raw_data=bytes(100))
    graph = onnx.GraphProto(initializer=[tensor])
    large: Any = SimpleNamespace(SerializeToString=fail, graph=graph)
    with pytest.raises(MemoryError):
        serialise(large, where="out.onnx")
    monkeypatch.setattr("surgeon.wire.LARGEST", 100)
    with pytest.raises(ModelError) as caught:
        serialise(large, where="out.onnx")
    told = "the model is larger than the 2 GiB that protobuf can write in one file"
    assert caught.value.what == told
    with pytest.raises(ModelError) as caught:  # each tensor fits, and all of them do not
        serialise(rich(), [tensor, tensor], where="out.onnx")
    assert caught.value.what == told


@pytest.mark.parametrize(
    "word",
    "value operand result label remark attribute weight claim entry inner_value axis".split(),
)
def test_a_text_that_is_not_utf8_is_refused_wherever_it_stands(word: str) -> None:
    model = onnx.parser.parse_model(
        """<ir_version: 10, opset_import: ["": 20]>
        value (float[axis] operand, bool c) => (float[axis] result) <float[2] weight = {1, 2}> {
            claim = Add (operand, weight)
            result = If (c) <
                then_branch = t () => (float[axis] p) {
                    inner_value = Relu (claim) p = Neg (inner_value) },
                else_branch = e () => (float[axis] q) { q = Identity (claim) }>
        }"""
    )
    node = model.graph.node[0]
    node.name, node.doc_string = "label", "remark"
    node.attribute.append(onnx.helper.make_attribute("attribute", 1))
    node.metadata_props.add(key="entry", value="")
    data = model.SerializeToString()
    broken = onnx.ModelProto.FromString(data.replace(word.encode(), b"\xff" * len(word)))
    assert data.count(word.encode())
    with pytest.raises(ModelError, match="is not UTF-8"):
        _ = Model(broken).graph
