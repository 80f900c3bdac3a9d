"""The files of a batch: a folder, a pattern or a list, and the names they keep in DEST."""

from __future__ import annotations

import glob
import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar

from surgeon.batch.far import Far, Stamp, is_far, near, open_far, said, stamp_of
from surgeon.errors import ModelError, SurgeonError, few
from surgeon.reading import is_inside, open_file

SUFFIX = ".onnx"
LONGEST = 1 << 26  # bytes of a list of models
LISTS = (".txt", ".lst", ".list")  # of models, where no look tells a file from a folder

AnyPath = TypeVar("AnyPath", Path, PurePosixPath)


@dataclass(frozen=True, slots=True)
class Source:
    """A file to repair.

    Attributes:
        path: Where it lies; below `url` as its file system names it.
        name: Its path below the root, with `/`; where its result goes below DEST.
        fault: Why it is not read at all; empty where it is.
        url: What fsspec opens; empty for a file of this machine.
        stamp: Of a file that is far: its size and mark.
    """

    path: str
    name: str
    fault: str = ""
    url: str = ""
    stamp: Stamp = (0, "")


def find(
    source: str | os.PathLike[str],
    *,
    leave_out: str | Path | None = None,
    aside: list[str] | None = None,
) -> list[Source]:
    """The files that SOURCE names, by name.

    Args:
        source: A folder (every `.onnx` file below it), a pattern (`**` for any depth), one model,
            or a text file with one path a line, relative to its own folder; `#` begins a comment.
            On this machine, or an address that fsspec knows.
        leave_out: A folder that is not searched: DEST may lie inside SOURCE.
        aside: Takes the folders that are links, which are not entered, by name from SOURCE on.

    Raises:
        ModelError: There is no such place, no model in it, or the package is missing that opens it.
    """
    text = near(os.fspath(source))
    aside = [] if aside is None else aside
    if is_far(text):
        found = _far(open_far(text), str(leave_out or ""))
    else:
        found = _here(text, leave_out if isinstance(leave_out, Path) else None, aside)
    kept = {each.name: each for each in found}
    if not kept:
        raise ModelError(
            "there is no model here",
            where=text,
            mend=f"Folders that are links are not entered; name what {few(aside)} leads to."
            if aside
            else f"Name a folder with {SUFFIX} files, a pattern, or a file that lists them.",
        )
    return [kept[name] for name in sorted(kept)]


def _here(text: str, leave_out: Path | None, aside: list[str]) -> Iterator[Source]:
    """The files of this machine."""
    path = Path(text)
    found: Iterator[Path]
    closed: list[OSError] = []
    if path.is_dir():
        root, found = path, _walk(path, leave_out, aside, closed)
    elif glob.has_magic(text) and not path.exists():
        root = _fixed_part(path)
        found = (Path(each) for each in glob.iglob(text, recursive=True) if not os.path.isdir(each))
    elif path.suffix.lower() == SUFFIX:
        root, found = path.parent, iter([path])
    else:
        listed = _listed(path)
        root, found = _common(path.parent, listed), iter(listed)
    inside = root.resolve()
    for item in found:
        if leave_out is None or not item.parent.resolve().is_relative_to(leave_out):
            yield _source(item, root, inside)
    for error in closed:
        why = f"the folder cannot be read: {error.strerror}"
        name = Path(os.path.relpath(error.filename, root)).as_posix()
        if name == ".":
            raise ModelError(why, where=text, mend="Check its permissions.")
        yield Source(str(error.filename), f"{name}/", why)


def _far(far: Far, leave_out: str) -> Iterator[Source]:
    """The files of a place that fsspec opens; those at or below the path `leave_out` not."""
    try:
        root, found = _look(far)
    except SurgeonError:
        raise
    except Exception as error:  # each file system has errors of its own
        raise ModelError(
            f"cannot be listed: {said(error)}",
            where=far.url,
            mend="Check the address, and what you are allowed to read.",
        ) from None
    skip = len(root) + 1 if root else 0
    for path, info in found.items():
        if root and not path.startswith(f"{root}/"):
            continue
        if leave_out and path.startswith(f"{leave_out}/"):
            continue
        name = path[skip:]
        if not is_inside(name) or "\\" in name:
            yield Source(path, name, "its name leads out of SOURCE", far.url)
            continue
        stamp = stamp_of(info)
        if stamp[0] < 0 or not stamp[1]:  # a list may say less than a look
            stamp = far.stamp(path) or stamp
        yield Source(path, name, "", far.url, stamp)


def _look(far: Far) -> tuple[str, dict[str, Any]]:
    """The root, and what the file system says of each model, by path."""
    fs, path = far.fs, far.root
    if glob.has_magic(path):
        root = _fixed_part(PurePosixPath(path)).as_posix()
        root = "" if root == "." else root.rstrip("/")
        found = fs.glob(path, detail=True)
    elif path.lower().endswith(SUFFIX) and not fs.isdir(path):
        root, found = path.rpartition("/")[0], {path: fs.info(path)}
    elif path.lower().endswith(LISTS) and not fs.isdir(path):
        root = path.rpartition("/")[0]
        lines = fs.cat_file(path).decode("utf-8", "surrogateescape").splitlines()
        listed = [
            each if each.startswith(f"{root}/") else f"{root}/{each}" for each in _names(lines)
        ]
        found = {each: fs.info(each) for each in listed}
        return root, found
    else:
        found = fs.find(path, detail=True)
        root = path
        found = {each: info for each, info in found.items() if each.lower().endswith(SUFFIX)}
    return root, {each: info for each, info in found.items() if info.get("type") != "directory"}


def _walk(
    folder: Path, leave_out: Path | None, aside: list[str], closed: list[OSError]
) -> Iterator[Path]:
    """Every `.onnx` entry below a folder.

    Args:
        folder: Where.
        leave_out: A folder that is not searched; resolved.
        aside: Takes linked folders, which are not entered.
        closed: Takes what was said of folders that could not be.
    """
    inside = folder.resolve()
    for at, folders, files in os.walk(folder, onerror=closed.append):
        here = Path(at)
        real = inside / here.relative_to(folder)  # no link is entered
        folders[:] = [each for each in folders if real / each != leave_out]
        linked = (here / each for each in folders if (here / each).is_symlink())
        aside += [each.relative_to(folder).as_posix() for each in linked]
        yield from (here / name for name in files if name.lower().endswith(SUFFIX))


def _fixed_part(pattern: AnyPath) -> AnyPath:
    """The folder before the first part with a wildcard."""
    fixed: list[str] = []
    for part in pattern.parts[:-1]:
        if glob.has_magic(part):
            break
        fixed.append(part)
    return type(pattern)(*fixed)


def _listed(path: Path) -> list[Path]:
    try:
        with open_file(path, LONGEST) as file:
            lines = file.read().decode("utf-8", "surrogateescape").splitlines()
    except OSError as error:
        raise ModelError(
            f"cannot be read: {error.strerror or error}",
            where=str(path),
            mend="Name a folder, a pattern, or a text file that lists models.",
        ) from None
    return [path.parent / name for name in _names(lines)]


def _names(lines: Sequence[str]) -> list[str]:
    names = [line.strip() for line in lines if "\0" not in line]
    return [name for name in names if name and not name.startswith("#")]


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
            return Source(str(path), name, "it is a link out of SOURCE, which is not followed")
        if not stat.S_ISREG(path.stat().st_mode):
            return Source(str(path), name, "it is no regular file")
    except (OSError, RuntimeError) as error:
        why = getattr(error, "strerror", None) or "its links go round in a circle"
        return Source(str(path), name, f"it cannot be read: {why}")
    return Source(str(path), name)
