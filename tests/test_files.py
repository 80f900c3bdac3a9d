"""Files appear whole or not at all."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from surgeon import files
from surgeon.errors import ModelError, OutputError
from surgeon.files import write_whole
from surgeon.reading import external_path

POSIX = os.name != "nt"


def test_a_file_is_written_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "out.onnx"
    write_whole(path, b"first")
    write_whole(path, b"second")
    assert path.read_bytes() == b"second"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_what_was_there_stays_when_writing_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    path = tmp_path / "out.onnx"
    path.write_bytes(b"good")

    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(files.os, "replace", fail)
    with pytest.raises((OutputError, KeyboardInterrupt)) as caught:
        write_whole(path, b"new")
    if isinstance(error, OSError):
        assert str(caught.value) == (
            f"{path}: cannot be written: No space left on device\n  mend: Check the folder's "
            "permissions and the free space, or name another output."
        )
    assert path.read_bytes() == b"good"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(not POSIX, reason="permissions of POSIX")
def test_permissions(tmp_path: Path) -> None:
    path = tmp_path / "out.onnx"
    write_whole(path, b"new")
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~mask
    path.chmod(0o640)
    write_whole(path, b"again")
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


@pytest.mark.skipif(not POSIX, reason="links need a privilege elsewhere")
def test_a_link_out_of_the_folder_is_refused(tmp_path: Path) -> None:
    inside = tmp_path / "in"
    inside.mkdir()
    (tmp_path / "secret").write_bytes(b"s")
    (inside / "link").symlink_to(tmp_path / "secret")
    (inside / "good").write_bytes(b"g")
    (inside / "inner").symlink_to(inside / "good")
    with pytest.raises(ModelError) as caught:
        external_path("link", inside)
    assert caught.value.what == "external data `link` is a link out of the model's folder"
    assert external_path("inner", inside) == inside / "inner"


@pytest.mark.parametrize(
    "location", ["", "..", "../x", "/x", "a/../../x", "C:/x", "\\\\host\\x", "a\\..\\..\\x"]
)
def test_locations_outside_the_folder(tmp_path: Path, location: str) -> None:
    with pytest.raises(ModelError) as caught:
        external_path(location, tmp_path)
    assert caught.value.what == f"external data `{location}` lies outside the model's folder"


def test_a_folder_is_no_data_file(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    with pytest.raises(ModelError) as caught:
        external_path("sub", tmp_path)
    assert caught.value.what == "external data file `sub` is missing"


def test_of_two_runs_at_once_the_second_finds_the_file_of_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It looked before the other wrote, and put its own in the place of the other's weights."""
    source, target = tmp_path / "in.data", tmp_path / "out" / "w.data"
    source.write_bytes(b"mine")
    look = os.path.lexists

    def late(path: object) -> bool:
        """The other run writes right behind the look."""
        found = look(path)  # type: ignore[arg-type]
        if not found and Path(str(path)) == target:
            target.write_bytes(b"another's")
        return found

    monkeypatch.setattr(os.path, "lexists", late)
    target.parent.mkdir()
    with pytest.raises(OutputError, match="another file of that name is there"):
        files.bring(source, target)
    assert target.read_bytes() == b"another's"
    target.unlink()

    def pieces() -> Iterator[bytes]:
        yield b"mine"
        target.write_bytes(b"another's")

    with pytest.raises(OutputError, match="another file of that name is there"):
        files.write_by_content(target.with_name("m.onnx"), pieces(), "w.data")
    assert target.read_bytes() == b"another's"
    assert [each.name for each in target.parent.iterdir()] == ["w.data"]


def test_a_slash_behind_the_name_of_data_is_no_file(tmp_path: Path) -> None:
    (tmp_path / "w.data").write_bytes(b"w")
    with pytest.raises(ModelError, match=r"external data file `w\.data/` is missing"):
        external_path("w.data/", tmp_path)
