"""Files that appear whole or not at all, and the external data that goes with a model."""

from __future__ import annotations

import contextlib
import errno
import filecmp
import hashlib
import os
import shutil
import sys
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from surgeon.errors import OutputError
from surgeon.leftovers import unfinished
from surgeon.reading import is_file, open_file, open_inside


def write_whole(path: Path, *pieces: bytes) -> None:
    """Write beside, then rename: a reader sees the old file or the new one.

    Args:
        path: Where to.
        pieces: What the file holds, one behind the other.

    Raises:
        OutputError: The folder is missing or read-only, or the disk is full.
    """
    with prepared(path, *pieces):
        pass


def foresee(path: Path) -> None:
    """See that a file can be written, as far as that is known before it is.

    Raises:
        OutputError: Its folder is missing or read-only, or it is a stream or a folder.
    """
    if is_stream(path):
        raise streamed(str(path))
    with _said_of(path):
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        _see_folder(path.parent)


def _see_folder(folder: Path) -> None:
    if not folder.exists():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
    if not folder.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))


@contextlib.contextmanager
def prepared(path: Path, *pieces: bytes) -> Iterator[None]:
    """Write beside, and rename once all in here went well: then only the rename can fail.

    Args:
        path: Where to.
        pieces: What the file holds, one behind the other.

    Raises:
        OutputError: The folder is missing or read-only, or the disk is full.
    """
    with _beside(path, pieces) as beside:
        yield
        with _said_of(path):
            os.replace(beside, path)


def write_by_content(
    path: Path, pieces: Iterable[bytes], name: str | None = None
) -> tuple[Path, bool]:
    """Write a file whose name is of what it holds, so that none is ever written over.

    Args:
        path: What it is put beside, and what its name begins with.
        pieces: What the file holds, one behind the other.
        name: What it is called instead: then one that is there is to hold the same.

    Returns:
        The file, and whether it was not there before.

    Raises:
        OutputError: The folder is missing or read-only, or the disk is full; or another file has
            the name.
    """
    digest = hashlib.sha256()

    def told() -> Iterator[bytes]:
        for piece in pieces:
            digest.update(piece)
            yield piece

    with _beside(path, told()) as beside:
        to = path.with_name(name or f"{path.name}.{digest.hexdigest()[:12]}.data")
        with _said_of(to):
            is_new = _take(beside, to)
            if not is_new and name and not (_is_own(to) and filecmp.cmp(to, beside, shallow=False)):
                raise _another(to)
            if not is_new and not to.exists():  # a link to nowhere
                os.replace(beside, to)
                is_new = True
    return to, is_new


def _take(beside: Path, to: Path) -> bool:
    """Give a file a name, unless another has it: of runs at once one is the first."""
    try:
        os.link(beside, to)
    except FileExistsError:
        return False
    except OSError:  # a file system that has no links
        if os.path.lexists(to):
            return False
        os.replace(beside, to)
    return True


def foresee_by_content(path: Path, pieces: Iterable[bytes], name: str | None = None) -> None:
    """See that `write_by_content` would not refuse; the pieces are read, and nothing is written.

    Raises:
        OutputError: As there, but for what nobody knows before: a full disk.
    """
    foresee(path)
    if name is None or not os.path.lexists(to := path.with_name(name)):
        for _ in pieces:
            pass
        return
    is_same = _is_own(to)
    with _said_of(to), to.open("rb") if is_same else contextlib.nullcontext() as there:
        for piece in pieces:
            is_same = is_same and there is not None and there.read(len(piece)) == piece
        if not is_same or (there is not None and there.read(1)):
            raise _another(to)


def _is_own(there: Path) -> bool:
    """Whether a file is there, and no link to one."""
    return is_file(there) and not there.is_symlink()


def _another(to: Path) -> OutputError:
    return OutputError(
        "another file of that name is there, which a model may read",
        where=str(to),
        mend="Remove it, or name the data file otherwise: `--external-name`.",
    )


@contextlib.contextmanager
def _beside(path: Path, pieces: Iterable[bytes]) -> Iterator[Path]:
    """A file in the same folder, for as long as this holds, unless it is given another name."""
    if is_stream(path):
        raise streamed(str(path))
    with contextlib.ExitStack() as stack:
        try:
            file, beside = stack.enter_context(unfinished(path))
        except FileNotFoundError:
            raise OutputError(
                f"the folder `{path.parent}` does not exist", where=str(path), mend="Make it first."
            ) from None
        except OSError as error:
            raise cannot_write(path, error) from None
        with _said_of(path):
            file.writelines(pieces)
            _settle(file)
            _keep_mode(beside, path)
        yield beside


def _settle(file: BinaryIO) -> None:
    """See that what was written is on the disk; Windows renames nothing that is open."""
    file.flush()
    os.fsync(file.fileno())
    if os.name == "nt":
        file.close()


@contextlib.contextmanager
def _said_of(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise cannot_write(path, error) from None


def bring(source: Path, target: Path, *, link: bool = False, inside: Path | None = None) -> bool:
    """Put the content of a file at another place, whole or not at all; whether it was not there.

    The file system shares the blocks where it can, else both names are given the one file where
    that is allowed, else it is copied. Not allowed for data: onnx reads no file of two names.

    Args:
        source: A regular file.
        target: Where to; its folder is made.
        link: Whether both may be one file (a hard link).
        inside: The folder that it is to be in, of a data file.

    Raises:
        ModelError: A data file cannot be read, or is not in its folder any more.
        OutputError: A file of another content is there, or it cannot be written.
    """
    source = source.resolve()
    with _said_of(target), contextlib.ExitStack() as stack:
        target.parent.mkdir(parents=True, exist_ok=True)
        if _is_there(source, target, link=link):
            return False
        beside = target.with_name(f".{target.name[:40]}.{uuid.uuid4().hex}")
        if link and _hard_link(source, beside):
            stack.callback(beside.unlink, missing_ok=True)
        else:
            file, beside = stack.enter_context(unfinished(target))
            with open_file(source) if inside is None else open_inside(source, inside) as old:
                if not _share_blocks(old, file):
                    _see_room(target, os.fstat(old.fileno()).st_size)
                    shutil.copyfileobj(old, file, 1 << 20)
            _settle(file)
            _keep_mode(beside, target)
        if os.path.lexists(target) or not _take(beside, target):
            if _is_there(source, target, link=link):  # since just now
                return False
            os.replace(beside, target)
    return True


def foresee_bring(source: Path, target: Path) -> None:
    """See that `bring` would not refuse; nothing is written.

    Raises:
        OutputError: As there, but for what nobody knows before: a full disk.
    """
    with _said_of(target):
        if not _is_there(source.resolve(), target):
            folder = next(each for each in target.parents if os.path.lexists(each))
            _see_folder(folder)
            if folder.stat().st_dev != source.stat().st_dev:  # else they may share the blocks
                _see_room(folder / target.name, source.stat().st_size)


def _see_room(target: Path, size: int) -> None:
    """See that so many bytes find room: a data file may be larger than what a model reads of it.

    Raises:
        OutputError: They do not.
    """
    try:
        there = shutil.disk_usage(target.parent)
    except OSError:  # writing says what is wrong
        return
    if there.total > 0 and there.free < size:
        raise OutputError(
            f"there is no room: it takes {size:,} bytes, and {there.free:,} are free",
            where=str(target),
            mend="Free some space, or name another output; of a model's data "
            "`--external-data pack` writes what it reads and no more.",
        )


def see_no_link(target: Path, folder: Path) -> None:
    """See that a data file is to lie in a model's folder, and not where a link leads.

    Raises:
        OutputError: A link is on the way: the model would be one that nothing reads.
    """
    with _said_of(target):
        is_own = target.resolve().is_relative_to(folder.resolve())
    if target.is_symlink() or not is_own:
        raise OutputError(
            "a link is there, and no model reads its data through one",
            where=str(target),
            mend="Remove it, or save the model into a folder of its own.",
        )


def _is_there(source: Path, target: Path, *, link: bool = False) -> bool:
    """Whether a file holds what another does, or is it.

    Raises:
        OutputError: It holds something else.
    """
    if not os.path.lexists(target):
        return False
    if os.path.samefile(source, target):
        return link or source == target.resolve()
    if filecmp.cmp(source, target, shallow=False):
        return True
    raise OutputError(
        "another file of that name is there, and the model's data would replace it",
        where=str(target),
        mend="Save the model into a folder of its own.",
    )


def _share_blocks(old: BinaryIO, new: BinaryIO) -> bool:
    """Make a copy that costs nothing, where the file system has them (btrfs, XFS)."""
    if sys.platform != "linux":
        return False
    import fcntl

    with contextlib.suppress(OSError):
        fcntl.ioctl(new.fileno(), 0x40049409, old.fileno())  # FICLONE
        return True
    return False


def _hard_link(source: Path, target: Path) -> bool:
    with contextlib.suppress(OSError):
        os.link(source, target)
        return True
    return False


def backup_of(path: Path) -> Path:
    """Where a backup of a file goes.

    Raises:
        OutputError: There is another one already.
    """
    target = path.with_name(f"{path.name}.bak")
    if os.path.lexists(target) and not (target.exists() and target.samefile(path)):
        raise OutputError(
            "there is a backup already, and it is not written over",
            where=str(target),
            mend="Move it away, or say `--no-backup`.",
        )
    return target


@contextlib.contextmanager
def backed_up(path: Path) -> Iterator[Path]:
    """Keep a file as it is under its name with `.bak` behind; the same file, where that can be.

    Where what is done meanwhile fails and has not replaced the file, the backup goes again.

    Raises:
        OutputError: There is a backup already, or it cannot be written.
    """
    target = backup_of(path)
    with _said_of(path):
        before = path.stat()
    is_new = bring(path, target, link=True)
    try:
        yield target
    except BaseException:
        with contextlib.suppress(OSError):
            if is_new and os.path.samestat(path.stat(), before):
                target.unlink()
        raise


def is_stream(path: Path) -> bool:
    """Whether a name is one of the system's for what a process has open, or for a device.

    A file that is put in its place by renaming would take the name from every program.
    """
    where = Path(os.path.realpath(path.parent))
    return where == Path("/dev") or where.is_relative_to("/proc")


def streamed(where: str, what: str = "output") -> OutputError:
    """What to raise where a stream is named for a file."""
    return OutputError(
        f"the {what} is a stream",
        where=where,
        mend="Name a file: surgeon puts a whole one in its place, or none.",
    )


def _keep_mode(beside: Path, path: Path) -> None:
    """Give the new file the old one's permissions (not to run as its owner), or the umask's."""
    with contextlib.suppress(OSError):
        if path.exists():
            beside.chmod(path.stat().st_mode & 0o777)
        else:
            mask = os.umask(0)
            os.umask(mask)
            beside.chmod(0o666 & ~mask)


def cannot_write(path: Path, error: OSError) -> OutputError:
    """What the system said when an output was written, as an error of ours."""
    return OutputError(
        f"cannot be written: {error.strerror or error}",
        where=str(path),
        mend="Make the folder first."
        if isinstance(error, FileNotFoundError) and not path.parent.exists()
        else "Check the folder's permissions and the free space, or name another output.",
    )
