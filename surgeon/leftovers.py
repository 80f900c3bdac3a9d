"""Temporary files and folders: what a killed process leaves is removed by a later one.

Whoever makes one holds a lock on it for as long as it is in use; the system lets go of it however
the process ends. What nobody holds is left over. Where a system has no such locks nothing is
removed but what one made oneself.
"""

from __future__ import annotations

import contextlib
import os
import platform
import re
import stat
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory
from typing import BinaryIO

PREFIX = "surgeon-"
_LOCK = ".surgeon-lock"
_ENDING = ".surgeon"
_AGE = 60  # seconds since a file was last written to: it is there before its lock is
_user = getattr(os, "getuid", int)  # of Windows none is asked for
_looked: set[str] = set()  # folders in which what is left over was looked for


class Folder(TemporaryDirectory[str]):
    """A temporary folder; those that killed processes left beside it go once.

    Args:
        prefix: How its name begins.
        at: Where it is made, if not where temporary files are.
    """

    def __init__(self, prefix: str = PREFIX, at: Path | None = None) -> None:
        where = tempfile.gettempdir() if at is None else str(at)
        if where not in _looked:
            _looked.add(where)
            _remove_folders(where, prefix)
        super().__init__(prefix=prefix, dir=at, ignore_cleanup_errors=True)
        self._lock = _locked(Path(self.name))

    def cleanup(self) -> None:
        """Remove it."""
        super().cleanup()
        if self._lock is not None:
            self._lock.close()
            self._lock = None


def _locked(folder: Path) -> BinaryIO | None:
    """The lock of a folder; it has its name once it is held, so that nobody finds it free."""
    beside = folder / f"{_LOCK}.new"
    try:
        file = beside.open("xb", 0)
    except OSError:
        return None
    try:
        file.write(_here())
        if hold(file):
            beside.rename(folder / _LOCK)
            return file
    except OSError:
        pass
    file.close()  # before it goes, for Windows
    with contextlib.suppress(OSError):
        beside.unlink()
    return None


def _here() -> bytes:
    """This machine: locks of others may be unknown here, in a folder of the network."""
    return platform.node().encode()


def hold(file: BinaryIO) -> bool:
    """Hold an open file; whether nobody else does. The lock goes when the file is closed."""
    if sys.platform == "win32":
        return False
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # another process holds it, or the file system has no locks
        return False
    return True


def _remove_folders(where: str, prefix: str) -> None:
    """Remove the folders of a user's killed processes."""
    if sys.platform == "win32":
        return
    with contextlib.suppress(OSError), os.scandir(where) as entries:
        found = [each for each in entries if each.name.startswith(prefix)]
        for entry in found:
            with contextlib.suppress(OSError):
                if entry.is_dir(follow_symlinks=False):
                    _remove_folder(Path(entry.path))


def _remove_folder(folder: Path) -> None:
    if folder.lstat().st_uid != _user():
        return
    with _own(folder / _LOCK) as lock:
        if lock is not None and lock.read() == _here() and hold(lock):
            rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _own(path: Path) -> Iterator[BinaryIO | None]:
    """A regular file of this user, and no link to one; None where it is none."""
    how = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    with os.fdopen(os.open(path, how), "rb") as file:
        there = os.fstat(file.fileno())
        yield file if stat.S_ISREG(there.st_mode) and there.st_uid == _user() else None


@contextlib.contextmanager
def unfinished(path: Path) -> Iterator[tuple[BinaryIO, Path]]:
    """A new file beside another that takes its place once it is whole; it goes behind this.

    Those of the same that killed processes left go too.

    Raises:
        OSError: It cannot be made.
    """
    begin = f".{path.name[:40]}."
    _remove_files(path.parent, begin)
    handle, name = tempfile.mkstemp(prefix=begin, suffix=_ENDING, dir=path.parent)
    beside = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            hold(file)
            yield file, beside
    finally:
        beside.unlink(missing_ok=True)


def _remove_files(folder: Path, begin: str) -> None:
    if sys.platform == "win32":
        return
    is_one = re.compile(rf"{re.escape(begin)}[a-z0-9_]{{8}}{re.escape(_ENDING)}").fullmatch
    with contextlib.suppress(OSError):
        for name in filter(is_one, os.listdir(folder)):
            with contextlib.suppress(OSError), _own(folder / name) as file:
                if file is None or time.time() - os.fstat(file.fileno()).st_mtime < _AGE:
                    continue
                if hold(file):
                    (folder / name).unlink()
