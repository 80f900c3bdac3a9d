"""Files that appear whole or not at all, and the external data that goes with a model."""

from __future__ import annotations

import contextlib
import filecmp
import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

from surgeon.errors import ModelError, OutputError


def write_whole(path: Path, data: bytes) -> None:
    """Write beside, then rename: a reader sees the old file or the new one.

    Raises:
        OutputError: The folder is missing or read-only, or the disk is full.
    """
    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.name[:40]}.", dir=path.parent)
    except FileNotFoundError:
        raise OutputError(
            f"the folder `{path.parent}` does not exist", where=str(path), mend="Make it first."
        ) from None
    except OSError as error:
        raise _cannot_write(path, error) from None
    beside = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        _keep_mode(beside, path)
        os.replace(beside, path)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise _cannot_write(path, error) from None
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def carry_external_data(tensors: Sequence[Any], source: Path, target: Path) -> None:
    """Put the data files that the tensors refer to beside the saved model.

    Hard links where the file system can, else copies; nothing to do in the same folder.

    Args:
        tensors: TensorProtos with external data.
        source: The folder of the model they came from.
        target: The folder of the saved model.

    Raises:
        ModelError: A location is outside the model's folder, or the file is missing.
        OutputError: The data cannot be written.
    """
    locations = {
        entry.value
        for tensor in tensors
        for entry in tensor.external_data
        if entry.key == "location"
    }
    same = source.resolve() == target.resolve()
    for location in sorted(locations):
        inside = external_path(location, source)
        if same:
            continue
        to = target / location
        try:
            to.parent.mkdir(parents=True, exist_ok=True)
            if to.exists():
                if os.path.samefile(inside, to) or filecmp.cmp(inside, to, shallow=False):
                    continue
                raise OutputError(
                    "another file of that name is there, and the model's data would replace it",
                    where=str(to),
                    mend="Save the model into a folder of its own.",
                )
            beside = to.with_name(f".{to.name[:40]}.{os.getpid()}")
            try:
                os.link(inside, beside)
            except OSError:
                shutil.copyfile(inside, beside)
            os.replace(beside, to)
        except OSError as error:
            raise _cannot_write(to, error) from None


def external_path(location: str, folder: Path) -> Path:
    """Where a data file lies.

    Raises:
        ModelError: It is not a regular file inside the folder.
    """
    mend = "Put the data file beside the model and name it without a folder."
    pure = (PurePosixPath(location), PureWindowsPath(location))
    if not location or any(p.is_absolute() or ".." in p.parts or p.drive for p in pure):
        raise ModelError(
            f"external data `{location[:200]}` lies outside the model's folder",
            where=str(folder),
            mend=mend,
        )
    path = folder / location
    try:
        regular = path.is_file()
    except (OSError, ValueError):  # a name that no file can have
        regular = False
    if not regular:
        raise ModelError(
            f"external data file `{location[:200]}` is missing", where=str(folder), mend=mend
        )
    if not path.resolve().is_relative_to(folder.resolve()):
        raise ModelError(
            f"external data `{location[:200]}` is a link out of the model's folder",
            where=str(folder),
            mend=mend,
        )
    return path


def _keep_mode(beside: Path, path: Path) -> None:
    """Give the new file the old one's permissions, or what the umask allows."""
    with contextlib.suppress(OSError):
        if path.exists():
            shutil.copymode(path, beside)
        else:
            mask = os.umask(0)
            os.umask(mask)
            beside.chmod(0o666 & ~mask)


def _cannot_write(path: Path, error: OSError) -> OutputError:
    return OutputError(
        f"cannot be written: {error.strerror or error}",
        where=str(path),
        mend="Check the folder's permissions and the free space, or name another output.",
    )
