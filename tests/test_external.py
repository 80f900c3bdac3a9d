"""External data stay where they are, go with the model, or into it, as is asked for."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from command import run
from command_files import refused
from outside import saved_outside

import surgeon
from surgeon import external, files, fold
from surgeon.errors import ModelError, OutputError
from surgeon.messages import send
from surgeon.model import Model


@pytest.fixture
def net(tmp_path: Path) -> Path:
    return saved_outside(tmp_path / "in", 256)


def loads(path: Path) -> onnx.ModelProto:
    """What onnx itself makes of the model and its data."""
    return onnx.load(path)


def weights(path: Path) -> np.ndarray:
    return onnx.numpy_helper.to_array(loads(path).graph.initializer[0])


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_in_one_folder_the_data_stay_where_they_are(double: Path, net: Path) -> None:
    before = weights(net)
    out = net.with_name("out.onnx")
    assert run("apply", double, net, out).exit_code == 0
    assert names(net.parent) == ["net.data", "net.onnx", "out.onnx"]
    assert (weights(out) == before).all()


@pytest.mark.slow
@pytest.mark.parametrize("way", ["keep", "copy"])
def test_in_another_folder_the_data_go_with_it(
    way: str, double: Path, net: Path, tmp_path: Path
) -> None:
    """As a file of its own: onnx reads no data file that has two names."""
    out = tmp_path / "other" / "out.onnx"
    out.parent.mkdir()
    for _ in range(2):  # a second run finds the data there
        assert run("apply", double, net, out, "--external-data", way).exit_code == 0
    assert names(out.parent) == ["net.data", "out.onnx"]
    assert (out.parent / "net.data").stat().st_nlink == 1
    assert (weights(out) == weights(net)).all()


def test_a_copy_in_one_folder_has_a_name_of_its_own(double: Path, net: Path) -> None:
    out = net.with_name("out.onnx")
    assert run("apply", double, net, out, "--external-data", "copy").exit_code == 0
    assert names(net.parent) == ["net.data", "net.onnx", "out.net.data", "out.onnx"]
    before = weights(net)
    (net.parent / "net.data").unlink()
    assert (weights(out) == before).all()


def test_inline(double: Path, net: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.onnx"
    assert run("apply", double, net, out, "--external-data", "inline").exit_code == 0
    assert next(external.external_tensors(onnx.load(out)), None) is None
    assert (weights(out) == weights(net)).all()
    assert names(tmp_path) == ["double.yaml", "in", "out.onnx"]


def test_inline_of_more_than_protobuf_holds(
    net: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(external, "LARGEST", 1000)
    with pytest.raises(OutputError, match="larger than the 2 GiB that protobuf can write"):
        Model.load(net).save(tmp_path / "out.onnx", external_data="inline")
    assert names(tmp_path) == ["in"]


def test_what_nothing_changed_is_written_as_it_was(double: Path, net: Path, tmp_path: Path) -> None:
    out = tmp_path / "other.onnx"
    Model.load(net).save(out)
    assert out.read_bytes() == net.read_bytes()
    assert (weights(out) == weights(net)).all()


def test_another_file_of_the_datas_name_stays(double: Path, net: Path, tmp_path: Path) -> None:
    taken = tmp_path / "net.data"
    taken.write_bytes(b"mine")
    result = run("apply", double, net, tmp_path / "out.onnx")
    assert result.exit_code == 5
    assert "another file of that name is there" in result.output
    assert taken.read_bytes() == b"mine"
    assert names(tmp_path) == ["double.yaml", "in", "net.data"]


def test_data_that_find_no_room_are_not_begun_with(
    double: Path, net: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file of which the model reads little may be of any size, with holes that take no room."""
    size = net.with_suffix(".data").stat().st_size
    usage = type("Usage", (), {"total": 1 << 40, "free": 10})
    monkeypatch.setattr(files.shutil, "disk_usage", lambda _: usage)
    monkeypatch.setattr(files, "_share_blocks", lambda *_: False)
    monkeypatch.setattr(files.shutil, "copyfileobj", lambda *_: pytest.fail("it was begun with"))
    result = run("apply", double, net, tmp_path / "out.onnx")
    assert result.exit_code == 5
    assert f"there is no room: it takes {size:,} bytes, and 10 are free" in result.output
    assert names(tmp_path) == ["double.yaml", "in"]
    out = tmp_path / "packed.onnx"
    assert run("apply", double, net, out, "--external-data", "pack").exit_code == 0


@pytest.mark.skipif(os.name == "nt", reason="links want rights there")
@pytest.mark.parametrize("dry", [(), ("--dry-run",)])
def test_a_link_of_the_datas_name_is_no_data_of_a_model(
    dry: tuple[str, ...], double: Path, net: Path, tmp_path: Path
) -> None:
    """Not one to the same content either: nothing reads a model's data through it."""
    (tmp_path / "copy").write_bytes(net.with_suffix(".data").read_bytes())
    (tmp_path / "out").mkdir()
    link = tmp_path / "out/net.data"
    for to in ("../copy", "../in/net.data"):
        link.unlink(missing_ok=True)
        link.symlink_to(to)
        result = run("apply", double, net, tmp_path / "out/out.onnx", *dry)
        assert result.exit_code == 5
        assert "a link is there, and no model reads its data through one" in result.output
        assert names(link.parent) == ["net.data"]


@pytest.mark.parametrize("folder", ["in", "."])
def test_the_output_is_not_the_data_file(
    folder: str, double: Path, net: Path, tmp_path: Path
) -> None:
    data = (net.parent / "net.data").read_bytes()
    result = run("apply", double, net, tmp_path / folder / "net.data")
    assert result.exit_code == 5
    assert "the output is the model's data file `net.data`" in result.output
    assert (net.parent / "net.data").read_bytes() == data


@pytest.mark.slow
def test_no_hidden_file_is_put_into_a_folder_of_the_user(
    double: Path, net: Path, tmp_path: Path
) -> None:
    """Saved into the home folder, data called `.bashrc` would be run."""
    model = onnx.load(net, load_external_data=False)
    for each in model.graph.initializer[0].external_data:
        each.value = ".bashrc" if each.key == "location" else each.value
    net.write_bytes(model.SerializeToString())
    (net.parent / "net.data").rename(net.parent / ".bashrc")
    result = run("apply", double, net, tmp_path / "out.onnx")
    assert result.exit_code == 5
    assert "the data file `.bashrc` is a hidden one" in result.output
    assert run("apply", double, net, net.parent / "out.onnx").exit_code == 0


def test_new_weights_of_a_model_with_data_get_a_file_of_their_own(tmp_path: Path) -> None:
    """A factor goes into the weights: 4 MB are computed anew, and do not swell the protobuf."""
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 17]> g (float[n,1024] x) => (float[n,1024] y)'
        "{ a = Gemm(x, w, c) y = Mul(a, k) }"
    )
    rng = np.random.default_rng(1)
    for name, shape in {"w": (1024, 1024), "c": (1024,), "k": (1024,)}.items():
        array = rng.normal(size=shape).astype(np.float32)
        model.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    path, out = tmp_path / "net.onnx", tmp_path / "out.onnx"
    onnx.save(model, path, save_as_external_data=True, location="net.data", size_threshold=0)
    for _ in range(2):
        result = surgeon.apply(path, "clean")
        assert [node.op_type for node in result.model.to_proto().graph.node] == ["Gemm"]
        result.model.save(out)
    assert out.stat().st_size < 100_000
    (new,) = [name for name in names(tmp_path) if name.startswith("out.onnx.")]
    loads(out)
    x = rng.normal(size=(2, 1024)).astype(np.float32)
    w, c, k = (onnx.numpy_helper.to_array(t) for t in onnx.load(path).graph.initializer)
    from surgeon.runtime import Session

    got = Session(out).run({"x": x})["y"]
    assert np.allclose(got, (x @ w + c) * k, rtol=1e-3, atol=1e-3)
    assert (tmp_path / new).stat().st_size >= 4 << 20


@pytest.mark.parametrize("way", ["keep", "pack"])
def test_what_was_brought_goes_again_when_the_model_cannot_be_written(
    way: str, net: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OutputError("cannot be written", where="o", mend="m")

    monkeypatch.setattr(sys.modules["surgeon.model"], "write_whole", fail)
    with pytest.raises(OutputError):
        Model.load(net).save(tmp_path / "out.onnx", external_data=way)
    assert names(tmp_path) == ["in"]


def test_weights_of_a_large_model_are_not_folded_into_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is made of them would stand in the protobuf, which ends at 2 GiB."""
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 17]> g (float[n,600] x) => (float[n,600] y)'
        "{ t = Transpose <perm = [1, 0]> (w)  y = MatMul (x, t) }"
    )
    model.graph.initializer.append(
        onnx.numpy_helper.from_array(np.ones((600, 600), np.float32), "w")
    )
    onnx.save(model, tmp_path / "net.onnx", save_as_external_data=True, size_threshold=0)
    for largest, operators in ((1 << 30, ["MatMul"]), (1 << 20, ["Transpose", "MatMul"])):
        monkeypatch.setattr(fold, "_STAYS_OUTSIDE", largest)
        repaired = surgeon.apply(tmp_path / "net.onnx", "clean", verify=False).model.to_proto()
        assert [node.op_type for node in repaired.graph.node] == operators, largest


@pytest.mark.slow  # of 2 GB
def test_a_model_that_protobuf_cannot_write_is_no_bug() -> None:
    model = onnx.ModelProto()
    for _ in range(2):
        model.graph.initializer.add(raw_data=bytes(1100 << 20))
    with pytest.raises(ModelError, match="larger than the 2 GiB that protobuf can write"):
        send(io.BytesIO(), model)


OPSET_18 = """
<ir_version: 8, opset_import: ["": 18]>
g (float[n,2,3] x, bool c) => (float[n,100] y)
<int64[1] axes = {1}> {
  m = ReduceMax <keepdims = 0> (x, axes)
  y = If (c) <
    then_branch = t () => (float[n,100] a) { a = MatMul (m, v) },
    else_branch = e () => (float[n,100] b) { b = MatMul (m, w) }
  >
}
"""


def _outside(tmp_path: Path, *, axis: int) -> Path:
    """A model of a folder of its own, whose every tensor lies in a file beside it."""
    proto = onnx.parser.parse_model(OPSET_18)
    folder = tmp_path / f"axis{axis}"
    folder.mkdir()
    body = proto.graph.node[1].attribute[0].g
    for graph, name in ((proto.graph, "w"), (body, "v")):
        graph.initializer.add(name=name, data_type=onnx.TensorProto.FLOAT, dims=[3, 100])
    tensors = [*proto.graph.initializer, *body.initializer]
    with (folder / "w.data").open("wb") as file:
        for seed, tensor in enumerate(tensors):
            values = np.random.default_rng(seed).normal(size=tensor.dims).astype("float32")
            raw = np.array([axis]).tobytes() if tensor.name == "axes" else values.tobytes()
            name = tensor.name
            told = {"location": "w.data", "offset": file.tell(), "length": file.write(raw)}
            kind, dims = tensor.data_type, tensor.dims
            tensor.CopyFrom(
                onnx.TensorProto(name=name, data_type=kind, dims=dims, data_location="EXTERNAL")
            )
            for key, value in told.items():
                tensor.external_data.add(key=key, value=str(value))
    onnx.save(proto, folder / "m.onnx")
    return folder / "m.onnx"


def test_axes_outside_are_compared_although_onnxruntime_wants_them_inside(tmp_path: Path) -> None:
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 17]> g (float[n,1,4] x) => (float[n,6] y)'
        "{ a = HardSwish (x) b = Squeeze (a, axes) y = Pad (b, pads) }"
    )
    for name, values in {"axes": [1], "pads": [0, 0, 0, 2]}.items():
        model.graph.initializer.append(onnx.numpy_helper.from_array(np.array(values), name))
    path = tmp_path / "in.onnx"
    onnx.save(model, path, save_as_external_data=True, location="in.data", size_threshold=0)
    with pytest.raises(Exception, match="external"):
        onnxruntime.InferenceSession(path)
    result = surgeon.apply(path, "activations-decompose")
    assert result.report.status == "equivalent"
    assert result.model.changed


@pytest.mark.parametrize("opset", [17, 21])
def test_an_opset_is_reached_with_weights_outside_of_the_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, opset: int
) -> None:
    model = _outside(tmp_path, axis=1)
    monkeypatch.chdir(_outside(tmp_path, axis=2).parent)  # a file of that name is here, too
    result = surgeon.apply(model, opset=opset, strict=True)
    assert result.model.opset == opset
    whole = onnx.load(model)  # onnxruntime does not load the file: its axes lie outside
    assert surgeon.verify(whole, result.model).status == "equivalent"


def test_a_data_file_that_is_cut_off_is_no_model_that_loads(net: Path, tmp_path: Path) -> None:
    """`verify` said of it that it loads and was not compared, and ended with 0."""
    whole = tmp_path / "whole.onnx"
    onnx.save(loads(net), whole)
    data = net.with_name("net.data")
    data.write_bytes(data.read_bytes()[:100])
    said = "tensor `w` lies beyond the end of `net.data`: 262144 bytes from 0 on"
    for both in ((net, whole), (whole, net)):
        refused(run("verify", *both), 4, said)
        with pytest.raises(ModelError, match="beyond the end"):
            surgeon.verify(*both)
    told = run("inspect", net).output
    assert "net.data: 100 bytes, and weights reach to 256 KiB: it is cut off, 1 tensor" in told
