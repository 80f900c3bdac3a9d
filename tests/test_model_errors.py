"""Files that are no model, or cannot be read or written: what is said of each."""

from __future__ import annotations

import io
import os
import stat
import subprocess
import sys
import zipfile
from pathlib import Path

import onnx
import onnx.parser
import pytest
from rich_models import rich

from surgeon.errors import ModelError, OutputError
from surgeon.model import Model


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
    mends = {"LFS": "Fetch it with `git lfs pull`.", "gzip": "Unpack it: `gunzip FILE`."}
    found = (mend for word, mend in mends.items() if word in what)
    mend = next(found, "Export or download the model again.")
    if "HDF5" not in what:
        assert str(caught.value) == f"{path}: {what}\n  mend: {mend}"
    assert caught.value.what == what
    assert caught.value.exit_code == 4


def zipped(*names: str) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name in names:
            archive.writestr(name, "")
    return file.getvalue()


@pytest.mark.parametrize(
    ("data", "what", "mend"),
    [
        (b"\x1c\0\0\0TFL3\0\0", "a TensorFlow Lite model", "--tflite"),
        (b"\x1c\0\0\0ORTM\0\0", "a model in onnxruntime's own format", "was made of"),
        (b"ftrt\0\0\1\0", "a TensorRT engine", "was made of"),
        (b"7767517\n3 3\n", "a network of ncnn", "was made of"),
        (b"RKNN\0\0\0\0", "a network of RKNN", "was made of"),
        (b"\x93NUMPY\x01\0", "an array of NumPy", "again"),
        (b'\x02\0\0\0\0\0\0\0{"a":0}', "a file of weights (safetensors)", "torch.onnx.export"),
        (b"\x80\x02}q\0.", "a pickle (older PyTorch checkpoints are)", "torch.onnx.export"),
        (zipped("net/data.pkl", "net/data/0"), "a PyTorch checkpoint", "torch.onnx.export"),
        (zipped("net/data.pkl", "net/constants.pkl"), "a TorchScript program", "torch.jit.load"),
        (zipped("config.json", "model.weights.h5"), "a Keras model", "model.export"),
        (zipped("a/net.onnx"), "a zip archive", "Unpack `a/net.onnx`"),
        (zipped("a/net.txt"), "a zip archive", "again"),
        (b"\x08\x01\x12\x0a\x0a\x08\x0a\x00\x22\x05serve", "SavedModel", "--saved-model"),
        (b"\x08\x04\x12\x06\x0a\x04\x0a\x02xy", "perhaps a Core ML model", "converted from"),
        (b"\x0a\x10\x0a\x01x\x12\x0bPlaceholder", "a frozen graph", "--graphdef"),
    ],
)
def test_models_of_other_formats_are_named(
    tmp_path: Path, data: bytes, what: str, mend: str
) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(data)
    with pytest.raises(ModelError) as caught:
        Model.load(path)
    assert what in caught.value.what
    assert mend in caught.value.mend


def test_folders_of_other_formats_are_named(tmp_path: Path) -> None:
    (tmp_path / "saved_model.pb").write_bytes(b"")
    with pytest.raises(ModelError, match="a TensorFlow SavedModel, not an ONNX model"):
        Model.load(tmp_path)
    package = tmp_path / "net.mlpackage"
    (package / "Data").mkdir(parents=True)
    (package / "Manifest.json").write_text("{}")
    with pytest.raises(ModelError, match="a Core ML package, not an ONNX model"):
        Model.load(package)


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


def test_a_producer_may_be_called_as_another_format(tmp_path: Path) -> None:
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 17], producer_name: "ORTModule"> '
        "g (float[n] x) => (float[n] y) { y = Neg (x) }"
    )
    onnx.save(model, tmp_path / "m.onnx")
    assert (tmp_path / "m.onnx").read_bytes()[4:8] == b"ORTM"
    assert Model.load(tmp_path / "m.onnx").opset == 17


def test_a_name_that_is_no_text_is_told_by_every_protobuf(tmp_path: Path) -> None:
    """That of Python alone raises where it reads, and others where the name is asked for."""
    head = '<ir_version: 8, opset_import: ["": 17]>'
    model = onnx.parser.parse_model(
        f"{head} g (float[2] nnnn) => (float[2] y) {{ y = Neg (nnnn) }}"
    )
    path = tmp_path / "in.onnx"
    path.write_bytes(model.SerializeToString().replace(b"nnnn", b"nn\xef\xef"))
    command = [sys.executable, "-m", "surgeon", "apply", "clean", path, tmp_path / "out.onnx"]
    for kind in ("python", "upb"):
        environment = os.environ | {"PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION": kind}
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
        assert done.returncode == 4, done.stderr
        assert "surgeon has a bug" not in done.stderr
