"""The files of a batch: a folder, a pattern or a list, and the names they keep in DEST."""

from __future__ import annotations

import glob
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from surgeon.errors import ModelError

SUFFIX = ".onnx"


@dataclass(frozen=True, slots=True)
class Source:
    """A file to repair.

    Attributes:
        path: Where it lies.
        name: Its path below the root, with `/`; where its result goes below DEST.
        fault: Why it is not read at all; empty where it is.
    """

    path: Path
    name: str
    fault: str = ""


def find(source: str | os.PathLike[str], *, leave_out: Path | None = None) -> list[Source]:
    """The files that SOURCE names, by name.

    Args:
        source: A folder (every `.onnx` file below it), a pattern (`**` for any depth), one model,
            or a text file with one path a line, relative to its own folder; `#` begins a comment.
        leave_out: A folder that is not searched: DEST may lie inside SOURCE.

    Raises:
        ModelError: There is no such place, or no model in it.
    """
    text = os.fspath(source)
    path = Path(text)
    if path.is_dir():
        root, found = path, _walk(path, leave_out)
    elif glob.has_magic(text) and not path.exists():
        root = _fixed_part(path)
        found = (Path(each) for each in glob.iglob(text, recursive=True) if not os.path.isdir(each))
    elif path.suffix.lower() == SUFFIX:
        root, found = path.parent, iter([path])
    else:
        listed = _listed(path)
        root, found = _common(path.parent, listed), iter(listed)
    inside = root.resolve()
    kept = {
        each.name: each
        for each in (_source(item, root, inside) for item in found)
        if leave_out is None or not each.path.absolute().is_relative_to(leave_out)
    }
    if not kept:
        raise ModelError(
            "there is no model here",
            where=text,
            mend=f"Name a folder with {SUFFIX} files, a pattern, or a file that lists them.",
        )
    return [kept[name] for name in sorted(kept)]


def _walk(folder: Path, leave_out: Path | None) -> Iterator[Path]:
    """Every `.onnx` entry below a folder; linked folders are not entered."""
    for at, folders, files in os.walk(folder):
        here = Path(at)
        folders[:] = [each for each in folders if (here / each).absolute() != leave_out]
        yield from (here / name for name in files if name.lower().endswith(SUFFIX))


def _fixed_part(pattern: Path) -> Path:
    """The folder before the first part with a wildcard."""
    fixed: list[str] = []
    for part in pattern.parts[:-1]:
        if glob.has_magic(part):
            break
        fixed.append(part)
    return Path(*fixed)


def _listed(path: Path) -> list[Path]:
    try:
        lines = path.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError as error:
        raise ModelError(
            f"cannot be read: {error.strerror or error}",
            where=str(path),
            mend="Name a folder, a pattern, or a text file that lists models.",
        ) from None
    names = [line.strip() for line in lines if "\0" not in line]
    return [path.parent / name for name in names if name and not name.startswith("#")]


def _common(folder: Path, paths: list[Path]) -> Path:
    """The list's own folder where all lie below it, else the innermost that holds them all."""
    whole = [Path(os.path.abspath(path)) for path in paths]
    if all(path.is_relative_to(folder.absolute()) for path in whole):
        return folder
    return Path(os.path.commonpath([path.parent for path in whole]))


def _source(path: Path, root: Path, inside: Path) -> Source:
    """A file and its name; what is linked from outside, or no file, with its fault."""
    below = os.path.relpath(os.path.abspath(path), os.path.abspath(root))
    name = Path(below).as_posix()
    try:
        if not path.resolve().is_relative_to(inside):
            return Source(path, name, "it is a link out of SOURCE, which is not followed")
        if not stat.S_ISREG(path.stat().st_mode):
            return Source(path, name, "it is no regular file")
    except (OSError, RuntimeError) as error:
        why = getattr(error, "strerror", None) or "its links go round in a circle"
        return Source(path, name, f"it cannot be read: {why}")
    return Source(path, name)
