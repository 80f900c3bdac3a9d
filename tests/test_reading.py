"""What is read is a regular file of a size that fits, and data only inside their folder."""

from __future__ import annotations

import errno
import io
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from command import run
from command_files import net

import surgeon
from surgeon import reading
from surgeon.batch.identity import identify
from surgeon.batch.sources import find
from surgeon.cli import console
from surgeon.errors import ModelError, OutputError, RecipeError
from surgeon.model import Model
from surgeon.reading import external_path, open_file, open_inside

__all__ = ["net"]

needs_pipes = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no such pipes")


@contextmanager
def pipe(path: Path) -> Iterator[Path]:
    """A pipe that nobody writes to; what waits for a writer gets one in the end, and fails."""
    os.mkfifo(path)
    late = threading.Timer(20, lambda: os.close(os.open(path, os.O_RDWR)))
    late.start()
    yield path
    waited = not late.is_alive()
    late.cancel()
    assert not waited


@needs_pipes
def test_pipes_are_no_files(tmp_path: Path) -> None:
    with pipe(tmp_path / "a.onnx") as path:
        with pytest.raises(OSError, match="no regular file"):
            open_file(path)
        with pytest.raises(ModelError, match="no regular file"):
            Model.load(path)
        with pytest.raises(OSError, match="no regular file"):
            identify(path, lambda _: ())


@needs_pipes
@pytest.mark.parametrize("name", ["x.npy", "run.npz", "set/input_0.pb"])
def test_pipes_are_no_values(net: Path, name: str) -> None:
    (net.parent / "set").mkdir()
    with pipe(net.parent / name) as path:
        given: dict[str, Any] = {
            ".npy": {"values": {"x": str(path)}},
            ".npz": {"reference": [path]},
            ".pb": {"data": [path.parent]},
        }[path.suffix]
        with pytest.raises(RecipeError, match="no regular file"):
            surgeon.apply(net, "clean", **given)


@needs_pipes
def test_a_log_goes_to_no_pipe_that_nobody_reads(tmp_path: Path) -> None:
    log = tmp_path / "log"
    os.mkfifo(log)
    with pytest.raises(OutputError, match="the log cannot be written"), console._open_log(log):
        pass
    reader = os.open(log, os.O_RDONLY | os.O_NONBLOCK)
    with console._open_log(log):
        assert os.read(reader, 8) == b"surgeon "
    os.close(reader)


def test_inputs_lie_in_their_own_files(net: Path) -> None:
    """onnx would look for another where the process stands."""
    (net.parent / "set").mkdir()
    tensor = onnx.TensorProto(name="x", data_type=1, dims=[1, 4], data_location="EXTERNAL")
    tensor.external_data.add(key="location", value="w.data")
    (net.parent / "set/input_0.pb").write_bytes(tensor.SerializeToString())
    with pytest.raises(RecipeError, match="its values lie in another file"):
        surgeon.apply(net, "clean", data=[net.parent / "set"])


class Full(io.StringIO):
    """A log on a disk that is full."""

    def write(self, _text: str) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")


def test_a_log_that_cannot_be_written_any_more_ends_and_nothing_else(
    capsys: pytest.CaptureFixture[str],
) -> None:
    place = console.Desk(log=Full())
    for _ in range(2):
        place.note("a line")
    place.show("the result")
    said = capsys.readouterr()
    assert said.out == "the result\n"
    assert said.err == (
        "warning: the log ends here, and cannot be written: No space left on device\n"
    )


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no /dev/full")
def test_a_log_that_cannot_be_begun_is_an_error_of_the_output() -> None:
    result = run("inspect", "a.onnx", "--log-file", "/dev/full")
    assert result.exit_code == 5
    assert "error: the log cannot be written: No space left on device" in result.output


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="the system has no /dev/zero")
def test_a_device_is_no_list_of_models() -> None:
    with pytest.raises(ModelError, match="cannot be read: it is no regular file"):
        find("/dev/zero")


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="the system has no /proc")
def test_what_the_system_makes_up_is_no_file() -> None:
    with pytest.raises(OSError, match="no regular file"):
        open_file("/proc/self/maps")


def test_a_list_of_models_has_an_end(tmp_path: Path) -> None:
    path = tmp_path / "list.txt"
    with path.open("wb") as file:
        file.truncate(1 << 33)
    with pytest.raises(ModelError, match="it holds more than 67,108,864 bytes"):
        find(path)


def test_a_value_is_no_larger_than_a_model(net: Path) -> None:
    path = net.with_name("x.npy")
    np.save(path, np.zeros(4, np.float32))
    os.truncate(path, 1 << 33)
    with pytest.raises(RecipeError, match="it cannot be read: it holds more than 2,147,483,648"):
        surgeon.apply(net, "clean", values={"x": str(path)})
    path.write_bytes(b"")
    with pytest.raises(RecipeError, match="it cannot be read"):
        surgeon.apply(net, "clean", values={"x": str(path)})


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError):
        open_file(tmp_path)


@pytest.mark.parametrize("below", [True, False])
def test_what_took_the_place_of_data_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, below: bool
) -> None:
    """A link that is there once it is seen where the data lie, and once before."""
    if below and not reading._BELOW:
        pytest.skip("the system opens no file below an open folder")
    monkeypatch.setattr(reading, "_BELOW", below)
    folder = tmp_path / "models"
    (folder / "deep").mkdir(parents=True)
    (tmp_path / "secret").write_bytes(b"secret")
    data = folder / "deep" / "w.data"
    data.write_bytes(b"weight")
    path = external_path("deep/w.data", folder)
    with open_inside(path, folder) as file:
        assert file.read() == b"weight"
    resolve = Path.resolve

    def late(self: Path, strict: bool = False) -> Path:
        found = resolve(self, strict)
        if self == path:
            data.unlink()
            data.symlink_to("../../secret")
        return found

    monkeypatch.setattr(Path, "resolve", late)
    with pytest.raises(ModelError, match=r"`w\.data` cannot be read"):
        open_inside(path, folder)
    monkeypatch.setattr(Path, "resolve", resolve)
    with pytest.raises(ModelError, match="a link out of the model's folder"):
        open_inside(path, folder)
    data.unlink()
    with pytest.raises(ModelError, match=r"`w\.data` cannot be read: No such file"):
        open_inside(path, folder)


def test_data_that_change_while_their_place_is_looked_for_are_no_bug(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `readlink` says of a name that was a link just now."""
    (tmp_path / "w.data").write_bytes(b"weight")

    def late(self: Path, strict: bool = False) -> Path:
        raise OSError(errno.EINVAL, "Invalid argument", str(self))

    monkeypatch.setattr(Path, "resolve", late)
    with pytest.raises(ModelError, match=r"`w\.data` cannot be read: Invalid argument"):
        external_path("w.data", tmp_path)
