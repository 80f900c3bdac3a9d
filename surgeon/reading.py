"""Files that are read: regular ones alone, and data files only inside their model's folder."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import BinaryIO

from surgeon.errors import ModelError

_BESIDE = "Put the data file into the model's folder, and name it by its path from there."
# A pipe that nobody writes to is opened at once, and found to be one; a regular file is as ever.
_AT_ONCE = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
# A folder that may be gone through need not be one that may be listed.
_FOLDER = getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_PATH", os.O_RDONLY)
_BELOW = bool(_NO_LINK) and os.open in os.supports_dir_fd


def is_file(path: Path) -> bool:
    """Whether a regular file is there; none is under a name that no file can have."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def open_file(path: str | os.PathLike[str], most: int | None = None) -> BinaryIO:
    """Open a regular file to read it: a device may have no end, and a pipe no beginning.

    Args:
        path: The file.
        most: Bytes that it may hold.

    Raises:
        OSError: It is none, holds more, or cannot be opened.
        ValueError: No file can have this name.
    """
    mode = os.stat(path).st_mode
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
    if not stat.S_ISREG(mode) or _is_systems(path):
        raise _irregular(path)
    file = _regular(os.open(path, os.O_RDONLY | _AT_ONCE), path)
    if most is not None and os.fstat(file.fileno()).st_size > most:
        file.close()
        raise OSError(errno.EFBIG, f"it holds more than {most:,} bytes", os.fspath(path))
    return file


def _regular(handle: int, path: str | os.PathLike[str]) -> BinaryIO:
    """A file that is open already, unless it is a device or a pipe since it was looked at."""
    file = os.fdopen(handle, "rb")
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        file.close()
        raise _irregular(path)
    return file


def _is_systems(path: str | os.PathLike[str]) -> bool:
    """Whether it is one of Linux's own, which calls itself regular, and may have no end."""
    return Path(os.path.realpath(path)).is_relative_to("/proc")


def _irregular(path: str | os.PathLike[str]) -> OSError:
    return OSError(errno.EINVAL, "it is no regular file", os.fspath(path))


def is_inside(name: str) -> bool:
    """Whether a relative name stays in its folder, on every system."""
    pure = (PurePosixPath(name), PureWindowsPath(name))
    return bool(name) and not any(p.is_absolute() or ".." in p.parts or p.drive for p in pure)


def external_path(location: str, folder: Path) -> Path:
    """Where a data file lies; whoever reads it opens it by `open_inside`.

    Raises:
        ModelError: It is not a regular file inside the folder.
    """
    where = os.path.abspath(folder)
    if not is_inside(location):
        raise ModelError(
            f"external data `{location[:200]}` lies outside the model's folder",
            where=where,
            mend=_BESIDE,
        )
    path = folder / location
    if not is_file(path) or location.endswith("/"):  # which `Path` does not see
        raise ModelError(
            f"external data file `{location[:200]}` is missing",
            where=where,
            mend=f"Put `{location[:200]}` there: it holds weights of the model.",
        )
    with _said_of(path, folder):  # what was a link may be none by now
        is_inside_it = path.resolve().is_relative_to(folder.resolve())
    if not is_inside_it:
        raise _link_out(location, where)
    return path


def bytes_in(path: Path, folder: Path) -> int:
    """Bytes of a data file.

    Raises:
        ModelError: It is not there any more.
    """
    with _said_of(path, folder):
        return path.stat().st_size


def open_inside(path: Path, folder: Path) -> BinaryIO:
    """Open a data file that `external_path` found, and no other that took its place since.

    Its folders are opened one after the other, and none of them through a link; where the system
    cannot do that, what was opened is compared with what lies there.

    Raises:
        ModelError: It cannot be opened, or is no regular file inside the folder any more.
    """
    with _said_of(path, folder):
        inside, real = folder.resolve(), path.resolve()
        if not real.is_relative_to(inside):
            raise _link_out(path.name, os.path.abspath(folder))
        if _BELOW:
            return _regular(_open_below(inside, real.relative_to(inside).parts), path)
        file = open_file(real)
        if not os.path.samestat(os.fstat(file.fileno()), real.lstat()):
            file.close()
            raise OSError(errno.EAGAIN, "the file was changed while it was worked on")
        return file


def _open_below(folder: Path, parts: tuple[str, ...]) -> int:
    way = _FOLDER | _AT_ONCE
    at = os.open(folder, way)
    for place, part in enumerate(parts, 1):
        how = way if place < len(parts) else os.O_RDONLY | _AT_ONCE
        try:
            below = os.open(part, how | _NO_LINK, dir_fd=at)
        finally:
            os.close(at)
        at = below
    return at


@contextlib.contextmanager
def _said_of(path: Path, folder: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, RuntimeError) as error:  # the latter of links that go round
        raise ModelError(
            f"external data `{path.name[:200]}` cannot be read: "
            f"{getattr(error, 'strerror', None) or error}",
            where=os.path.abspath(folder),
            mend="Begin again, when nothing else writes to it; put it there if it is missing.",
        ) from None


def _link_out(location: str, where: str) -> ModelError:
    return ModelError(
        f"external data `{location[:200]}` is a link out of the model's folder",
        where=where,
        mend=_BESIDE,
    )
