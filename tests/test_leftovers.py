"""What a killed process leaves is removed by the next one; what another uses is not."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from surgeon import leftovers
from surgeon.files import write_whole
from surgeon.leftovers import Folder, unfinished

pytestmark = pytest.mark.skipif(os.name == "nt", reason="the system has no such locks")

KEEPS = """
import sys, time
from pathlib import Path
from surgeon.leftovers import Folder, unfinished
kept = {made}
print(getattr(kept, "name", "made"), flush=True)
time.sleep(60)
"""


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A place for temporary files of its own, in which nobody has looked."""
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    monkeypatch.setattr(leftovers, "_looked", set())
    return place


def keeping(made: str, place: Path) -> subprocess.Popen[str]:
    """A process that has made something, and waits."""
    process = subprocess.Popen(
        [sys.executable, "-c", KEEPS.format(made=made)],
        env={**os.environ, "TMPDIR": str(place)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline()
    return process


def test_a_folder_goes_behind_the_process_that_was_killed_and_not_before(temporary: Path) -> None:
    with keeping("Folder()", temporary) as process:
        try:
            (one,) = temporary.iterdir()
            (one / "weights").write_bytes(b"many")
            Folder().cleanup()
            assert list(temporary.iterdir()) == [one]
        finally:
            process.kill()
    leftovers._looked.clear()
    with Folder() as made:
        assert list(temporary.iterdir()) == [Path(made)]
    assert not list(temporary.iterdir())


def test_a_folder_of_this_process_stays(temporary: Path) -> None:
    with Folder() as one:
        leftovers._looked.clear()
        with Folder() as other:
            assert sorted(temporary.iterdir()) == sorted(map(Path, (one, other)))


@pytest.mark.parametrize("what", ["no lock", "a link", "a file", "a lock that is a link", "afar"])
def test_what_is_none_of_ours_stays(what: str, temporary: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "precious").write_bytes(b"precious")
    lock = mine / ".surgeon-lock"
    lock.write_bytes(leftovers._here() if what != "afar" else b"another machine")
    there = temporary / "surgeon-abcdefgh"
    if what == "a link":
        there.symlink_to(mine)
    elif what == "a file":
        there.write_bytes(b"precious")
    else:
        mine.rename(there)
        if what == "no lock":
            (there / lock.name).unlink()
        elif what == "a lock that is a link":
            (there / lock.name).rename(tmp_path / "lock")
            (there / lock.name).symlink_to(tmp_path / "lock")
    with Folder():
        pass
    assert there.exists()
    assert what == "a file" or (there / "precious").read_bytes() == b"precious"


def test_a_free_lock_is_enough(temporary: Path) -> None:
    there = temporary / "surgeon-abcdefgh"
    there.mkdir()
    (there / ".surgeon-lock").write_bytes(leftovers._here())
    with Folder():
        assert not there.exists()


def test_an_unfinished_file_goes_when_the_file_is_written_again(
    tmp_path: Path, temporary: Path
) -> None:
    out, other = tmp_path / "out.onnx", tmp_path / ".out.onnx.backup00"
    other.write_bytes(b"precious")
    made = f"unfinished(Path({str(out)!r})); kept.__enter__()"
    with keeping(made, temporary) as process:
        try:
            (one,) = tmp_path.glob("*.surgeon")
            os.utime(one, (0, 0))
            write_whole(out, b"new")
            assert one.exists()
        finally:
            process.kill()
    write_whole(out, b"newer")
    assert sorted(tmp_path.iterdir()) == sorted((other, out, temporary))


def test_a_file_that_was_just_made_is_not_held_yet(tmp_path: Path) -> None:
    path = tmp_path / "out.onnx"
    young = tmp_path / ".out.onnx.abcdefgh.surgeon"
    young.write_bytes(b"")
    with unfinished(path):
        assert young.exists()
