"""Puts results into DEST: whole or not at all, and never outside of it."""

from __future__ import annotations

import contextlib
import filecmp
import os
import shutil
import uuid
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from surgeon.errors import OutputError
from surgeon.files import bring, external_path


def publish(
    result: Path,
    folder: Path,
    locations: Sequence[str],
    *,
    dest: Path,
    name: str,
    staging: Path,
    moved: bool,
) -> None:
    """Put a model at `dest/name` and its data beside it; the data first.

    Args:
        result: The model to put there.
        folder: Where its external data lie.
        locations: Of the external data, as the model states them.
        dest: DEST.
        name: Below DEST, with `/`.
        staging: A folder of the same file system, where files are made before they are renamed.
        moved: Whether `result` may be moved; else it is copied.

    Raises:
        ModelError: A location is outside the model's folder, or the file is missing.
        OutputError: A file cannot be written, or a link would lead out of DEST.
    """
    target = _inside(dest, name)
    try:
        for location in locations:
            data = external_path(location, folder).resolve()
            to = _inside(dest, (PurePosixPath(name).parent / location).as_posix())
            if not _same(data, to):
                beside = staging / uuid.uuid4().hex
                bring(data, beside)
                os.replace(beside, to)
        if not moved:
            copy = staging / uuid.uuid4().hex
            shutil.copyfile(result, copy)
            result = copy
        os.replace(result, target)
    except OSError as error:
        raise OutputError(
            f"cannot be written: {error.strerror or error}",
            where=str(target),
            mend="Check the folder's permissions and the free space, or name another DEST.",
        ) from None


def withdraw(dest: Path, name: str) -> None:
    """Remove what an earlier run put at `dest/name`: it is no longer the file's result."""
    with contextlib.suppress(OSError):
        _inside(dest, name).unlink(missing_ok=True)


def _inside(dest: Path, name: str) -> Path:
    """The path of a name below DEST, with its folders made; no link is followed on the way.

    Raises:
        OutputError: The name leads out of DEST, or a part of the way is a link or a file.
    """
    parts = PurePosixPath(name).parts
    mend = "Name another DEST, or move away what lies in its way."
    if not parts or PurePosixPath(name).is_absolute() or ".." in parts:
        raise OutputError("its name leads out of DEST", where=str(dest), mend=mend)
    at = dest
    for part in parts[:-1]:
        at = at / part
        if at.is_symlink():
            raise OutputError("a link in DEST would be followed", where=str(at), mend=mend)
        try:
            at.mkdir(exist_ok=True)
        except OSError as error:
            raise OutputError(
                f"the folder cannot be made: {error.strerror or error}", where=str(at), mend=mend
            ) from None
    return at / parts[-1]


def _same(data: Path, to: Path) -> bool:
    """Whether the data are there already."""
    if to.is_symlink() or not to.is_file():
        return False
    if os.path.samefile(data, to):  # two names of one file are none that onnx reads
        return data == to.resolve()
    return filecmp.cmp(data, to, shallow=False)
