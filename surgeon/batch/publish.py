"""Puts results into DEST: whole or not at all, and never outside of it."""

from __future__ import annotations

import contextlib
import filecmp
import os
import shutil
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

from surgeon.batch.far import FarFolder, Stamp, is_far
from surgeon.errors import OutputError
from surgeon.files import bring, write_whole
from surgeon.reading import external_path


class Folder:
    """DEST on this machine, or where every worker sees it.

    Attributes:
        path: Resolved.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def address(self) -> str:
        """What opens it in another process."""
        return str(self.path)

    def prepare(self) -> None:
        """Make the folder.

        Raises:
            OutputError: It cannot be made.
        """
        with can_write(self.path):
            self.path.mkdir(parents=True, exist_ok=True)

    def stamp(self, name: str) -> Stamp | None:
        """Size and mtime (ns) of what is there, links not followed; None where nothing is."""
        try:
            there = (self.path / name).lstat()
        except OSError:
            return None
        return there.st_size, there.st_mtime_ns

    def note(self, name: str, stamp: Stamp) -> None:
        """A worker has put something here; the folder itself tells."""

    def has(self, name: str) -> bool:
        """Whether there is a file of this name."""
        return (self.path / name).is_file()

    def publish(
        self,
        result: Path,
        folder: Path,
        locations: Sequence[str],
        *,
        name: str,
        staging: Path,
        moved: bool,
    ) -> Stamp:
        """Put a model at `name` and its data beside it; the data first.

        Args:
            result: The model to put there.
            folder: Where its external data lie.
            locations: Of the external data, as the model states them.
            name: Below DEST, with `/`.
            staging: A folder of the same file system, where files are made before they are renamed.
            moved: Whether `result` may be moved; else it is copied.

        Returns:
            The stamp of the model as it is there.

        Raises:
            ModelError: A location is outside the model's folder, or the file is missing.
            OutputError: A file cannot be written, or a link would lead out of DEST.
        """
        target = _inside(self.path, name)
        try:
            for location in locations:
                data = external_path(location, folder).resolve()
                to = _inside(self.path, (PurePosixPath(name).parent / location).as_posix())
                if not _same(data, to):
                    beside = staging / uuid.uuid4().hex
                    bring(data, beside, inside=folder)
                    os.replace(beside, to)
            if not moved:
                copy = staging / uuid.uuid4().hex
                shutil.copyfile(result, copy)
                result = copy
            os.replace(result, target)
            there = target.lstat()
        except OSError as error:
            raise OutputError(
                f"cannot be written: {error.strerror or error}",
                where=str(target),
                mend="Check the folder's permissions and the free space, or name another DEST.",
            ) from None
        return there.st_size, there.st_mtime_ns

    def twin(
        self, other: str, folder: Path, locations: Sequence[str], *, name: str, staging: Path
    ) -> Stamp:
        """Put what is at `other` at `name` too."""
        return self.publish(
            self.path / other, folder, locations, name=name, staging=staging, moved=False
        )

    def withdraw(self, name: str) -> None:
        """Remove what an earlier run put here: it is no longer the file's result."""
        with contextlib.suppress(OSError):
            _inside(self.path, name).unlink(missing_ok=True)

    def write(self, name: str, data: bytes) -> None:
        """Put a report here, whole or not at all."""
        write_whole(self.path / name, data)

    def shown(self, name: str) -> str:
        """The path of a file, for people."""
        return str(self.path / name)


Target = Folder | FarFolder


def open_target(address: str) -> Target:
    """DEST, from its address.

    Raises:
        OutputError: The package that opens such a place is missing.
    """
    return FarFolder(address) if is_far(address) else Folder(Path(address))


@contextlib.contextmanager
def can_write(dest: Path) -> Iterator[None]:
    """Say of an error of the system that DEST cannot be written."""
    try:
        yield
    except (OSError, RuntimeError) as error:
        raise OutputError(
            f"the folder cannot be made or written to: {getattr(error, 'strerror', None) or error}",
            where=str(dest),
            mend="Name another DEST, or check the permissions.",
        ) from None


def folds_names(folder: Path) -> bool:
    """Whether the file system takes names for the same that differ in case alone.

    Args:
        folder: One whose name has letters.
    """
    return folder.with_name(folder.name.swapcase()).exists()


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
