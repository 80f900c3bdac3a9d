"""Nothing is lost: what a rewrite did not touch comes out as it went in."""

from __future__ import annotations

import os
import shutil
import stat
import sys
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
from truth import model_of, parse

import surgeon
from surgeon.authoring import recipe_of, rule
from surgeon.errors import ModelError, OutputError
from surgeon.match import Match
from surgeon.model import Model, describe
from surgeon.rewrite import Draft
from surgeon.runtime import Session
from surgeon.wire import serialise

F32 = np.float32


@rule("y = Neg (x)", exact="rounding")
def neg_by_sub(draft: Draft, match: Match) -> gs.Tensor:
    """Negation as a difference from zero."""
    x = match.values["x"]
    return draft.op("Sub", draft.constant(np.zeros((), F32), "zero"), x)


def rich(ir: int = 10) -> onnx.ModelProto:
    """A model with everything that graphsurgeon drops, and one Neg that a rule changes."""
    proto = parse(
        """
        g (float[b,4] x, float[b,4] unread, float[4] w) => (float[b,4] y, float[b,4] q)
        <float[4] w = {1, 2, 3, 4}, float[2] spare = {5, 6}, float[b,4] a>
        {
          a = Relu (x)
          m = Mul (a, w)
          y = Neg (m)
          q = my.twice (x)
        }
        <domain: "my", opset_import: ["": 17], doc_string: "doubles">
        twice (v) => (o) { o = Add (v, v) }
        """,
        ir=ir,
        domains=', "my": 1, "spare.domain": 3',
    )
    proto.doc_string, proto.domain, proto.model_version = "model doc", "org.example", 7
    proto.producer_name, proto.producer_version = "maker", "1.2"
    proto.metadata_props.add(key="author", value="someone")
    graph = proto.graph
    graph.doc_string = "graph doc"
    graph.metadata_props.add(key="graph", value="props")
    graph.input[0].doc_string = "input doc"
    graph.output[0].doc_string = "output doc"
    graph.input[0].metadata_props.add(key="input", value="props")
    for node in graph.node:
        node.name = f"n_{node.output[0]}"
        node.doc_string = f"doc of {node.output[0]}"
        node.metadata_props.add(key="namespace", value=f"/{node.output[0]}")
    note = graph.quantization_annotation.add(tensor_name="a")
    note.quant_parameter_tensor_names.add(key="SCALE_TENSOR", value="w")
    for tensor in graph.initializer:
        tensor.doc_string = f"doc of {tensor.name}"
    return proto


def without(proto: onnx.ModelProto, *names: str) -> onnx.ModelProto:
    """The model without the nodes and initializers of these outputs, and what surgeon writes."""
    out = onnx.ModelProto()
    out.CopyFrom(proto)
    for node in [n for n in out.graph.node if set(n.output) & set(names)]:
        out.graph.node.remove(node)
    for tensor in [t for t in out.graph.initializer if t.name.startswith(names)]:
        out.graph.initializer.remove(tensor)
    for entry in [e for e in out.metadata_props if e.key.startswith("surgeon.")]:
        out.metadata_props.remove(entry)
    return out


def changed(proto: onnx.ModelProto, **options: object) -> onnx.ModelProto:
    """The model after `neg_by_sub`, which must have fired."""
    result = surgeon.apply(proto, neg_by_sub, verify=False, **options)
    assert result.report.fired.total() == 1
    return result.model.to_proto()


def test_one_changed_node_keeps_all_the_rest() -> None:
    proto = rich()
    out = changed(proto)
    assert without(out, "y") == without(proto, "y")
    new = next(n for n in out.graph.node if "y" in n.output)
    assert new.op_type == "Sub"
    assert {e.key: e.value for e in new.metadata_props} == {
        "surgeon.rule": f"{__name__}/neg-by-sub",
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


# -------------------------------------------------------------------------- initializers as inputs


def test_overridable_initializers_stay_inputs() -> None:
    proto = rich()
    out = changed(proto)
    assert [v.name for v in out.graph.input] == ["x", "unread", "w"]
    assert "w" in [t.name for t in out.graph.initializer]


def test_initializers_of_the_pytorch_exporter_leave_the_inputs() -> None:
    proto = rich()
    proto.producer_name = "pytorch"
    result = surgeon.apply(proto, neg_by_sub, verify=False)
    assert [v.name for v in result.model.to_proto().graph.input] == ["x", "unread"]
    assert result.report.remarks == (
        "1 initializers that the exporter lists as inputs are constants, and leave the inputs "
        "(`--keep-overridable` keeps them)",
    )
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


# ---------------------------------------------------------------------------------- external data


def external(folder: Path, location: str = "data.bin") -> Path:
    proto = model_of(
        "float[4] x", "a = Add (x, w) y = Neg (a)", "y", constants={"w": np.arange(4, dtype=F32)}
    )
    folder.mkdir(exist_ok=True)
    tensor = proto.graph.initializer[0]
    onnx.external_data_helper.set_external_data(tensor, location, offset=0, length=16)
    data = tensor.raw_data
    tensor.ClearField("raw_data")
    target = folder / location
    if ".." not in location and not location.startswith("/"):
        target.parent.mkdir(exist_ok=True, parents=True)
        target.write_bytes(data)
    path = folder / "model.onnx"
    path.write_bytes(proto.SerializeToString())
    return path


def run_file(path: Path) -> list[float]:
    found = Session(path).run({"x": np.ones(4, F32)})
    values: list[float] = found["y"].tolist()
    return values


def test_external_data_in_the_same_folder_is_not_written_again(tmp_path: Path) -> None:
    source = external(tmp_path)
    before = (tmp_path / "data.bin").stat().st_mtime_ns
    surgeon.apply(source, neg_by_sub).model.save(tmp_path / "out.onnx")
    assert (tmp_path / "data.bin").stat().st_mtime_ns == before
    assert run_file(tmp_path / "out.onnx") == [-1, -2, -3, -4]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["data.bin", "model.onnx", "out.onnx"]


@pytest.mark.parametrize("location", ["data.bin", "sub/data.bin"])
def test_external_data_goes_with_the_model_to_another_folder(tmp_path: Path, location: str) -> None:
    source = external(tmp_path / "a", location)
    target = tmp_path / "b"
    target.mkdir()
    surgeon.apply(source, neg_by_sub).model.save(target / "out.onnx")
    shutil.rmtree(tmp_path / "a")
    assert run_file(target / "out.onnx") == [-1, -2, -3, -4]


def test_an_unchanged_model_takes_its_data_along_too(tmp_path: Path) -> None:
    source = external(tmp_path / "a")
    (tmp_path / "b").mkdir()
    Model.load(source).save(tmp_path / "b" / "out.onnx")
    assert (tmp_path / "b" / "out.onnx").read_bytes() == source.read_bytes()
    assert run_file(tmp_path / "b" / "out.onnx") == [-1, -2, -3, -4]


def test_external_data_is_not_read_unless_a_rule_needs_it(tmp_path: Path) -> None:
    source = external(tmp_path)
    (tmp_path / "data.bin").unlink()
    result = surgeon.apply(source, neg_by_sub, verify=False)
    assert result.report.fired.total() == 1


@pytest.mark.parametrize(
    ("location", "what"),
    [
        ("../data.bin", "external data `../data.bin` lies outside the model's folder"),
        ("/etc/passwd", "external data `/etc/passwd` lies outside the model's folder"),
        ("a/../../data.bin", "external data `a/../../data.bin` lies outside the model's folder"),
        ("C:\\data.bin", "external data `C:\\data.bin` lies outside the model's folder"),
        ("..\\data.bin", "external data `..\\data.bin` lies outside the model's folder"),
        ("gone.bin", "external data file `gone.bin` is missing"),
    ],
)
def test_external_data_that_cannot_go_along(tmp_path: Path, location: str, what: str) -> None:
    source = external(tmp_path / "a", "data.bin")
    proto = onnx.load(source, load_external_data=False)
    proto.graph.initializer[0].external_data[0].value = location
    source.write_bytes(proto.SerializeToString())
    (tmp_path / "b").mkdir()
    with pytest.raises(ModelError) as caught:
        Model.load(source).save(tmp_path / "b" / "out.onnx")
    assert caught.value.what == what
    assert list((tmp_path / "b").iterdir()) == []


@pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege there")
def test_external_data_behind_a_link_out_of_the_folder(tmp_path: Path) -> None:
    source = external(tmp_path / "a")
    secret = tmp_path / "secret.bin"
    secret.write_bytes((tmp_path / "a" / "data.bin").read_bytes())
    (tmp_path / "a" / "data.bin").unlink()
    (tmp_path / "a" / "data.bin").symlink_to(secret)
    with pytest.raises(ModelError) as caught:
        Model.load(source).save(tmp_path / "out.onnx")
    assert caught.value.what == "external data `data.bin` is a link out of the model's folder"


def test_values_are_named_when_their_data_is_missing(tmp_path: Path) -> None:
    source = external(tmp_path)
    (tmp_path / "data.bin").unlink()
    model = Model.load(source)
    constant = next(t for n in model.graph.nodes for t in n.inputs if isinstance(t, gs.Constant))
    with pytest.raises(ModelError, match="the values of initializer `w` cannot be read"):
        model.array(constant)


# ----------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (b"", "the file is empty"),
        (b"<!DOCTYPE html><html>", "this is an HTML page, not an ONNX model"),
        (b"\n <html lang='en'>", "this is an HTML page, not an ONNX model"),
        (b"PK\x03\x04rest", "this is a zip archive (PyTorch checkpoints are), not an ONNX model"),
        (b"\x1f\x8b\x08", "this is a gzip archive, not an ONNX model"),
        (b'{"a": 1}', "this is a JSON file, not an ONNX model"),
        (b"\x89HDF\r\n", "this is an HDF5 file, not an ONNX model"),
        (
            b"version https://git-lfs.github.com/spec/v1",
            "this is a Git LFS pointer, the file itself was not fetched, not an ONNX model",
        ),
        (b"\xff" * 40, "this is no ONNX model, or a truncated one: protobuf cannot read it"),
        (b"\x08\x08", "the model holds no graph"),
    ],
)
def test_files_that_are_no_model(tmp_path: Path, data: bytes, what: str) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(data)
    with pytest.raises(ModelError) as caught:
        Model.load(path)
    assert str(caught.value) == f"{path}: {what}\n  mend: Export or download the model again."
    assert caught.value.exit_code == 4


def test_a_truncated_model(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    data = rich().SerializeToString()
    path.write_bytes(data[: len(data) // 2])
    with pytest.raises(ModelError) as caught:
        Model.load(path)
    assert caught.value.what == "this is no ONNX model, or a truncated one: protobuf cannot read it"


def test_a_path_that_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(ModelError) as caught:
        Model.load(tmp_path / "gone.onnx")
    assert str(caught.value) == f"{tmp_path / 'gone.onnx'}: no such file\n  mend: Check the path."
    with pytest.raises(ModelError) as caught:
        Model.load(tmp_path)
    assert caught.value.what in ("this is a folder", "cannot be read: Permission denied")


@pytest.mark.skipif(os.name == "nt" or not hasattr(os, "geteuid"), reason="permissions of POSIX")
def test_a_file_that_may_not_be_read(tmp_path: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may read everything")
    path = tmp_path / "m.onnx"
    path.write_bytes(rich().SerializeToString())
    path.chmod(0)
    with pytest.raises(ModelError) as caught:
        Model.load(path)
    assert caught.value.what == "cannot be read: Permission denied"
    path.chmod(stat.S_IRUSR | stat.S_IWUSR)


def test_saving_where_nothing_can_be_written(tmp_path: Path) -> None:
    model = Model(rich())
    with pytest.raises(OutputError) as caught:
        model.save(tmp_path / "gone" / "out.onnx")
    assert caught.value.what == f"the folder `{tmp_path / 'gone'}` does not exist"
    (tmp_path / "folder").mkdir()
    with pytest.raises(OutputError):
        model.save(tmp_path / "folder")
    assert [p.name for p in tmp_path.iterdir()] == ["folder"]


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
