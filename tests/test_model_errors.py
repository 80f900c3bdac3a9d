"""Files that are no model, or cannot be read or written: what is said of each."""

from __future__ import annotations

import os
import stat
from pathlib import Path

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
    mend = (
        "Fetch it with `git lfs pull`." if "LFS" in what else "Export or download the model again."
    )
    assert str(caught.value) == f"{path}: {what}\n  mend: {mend}"
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
