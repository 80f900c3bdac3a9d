"""Places that fsspec knows: buckets, hubs, archives. fsspec is imported when one is named.

Such files are fetched for the worker that repairs them, in blocks, and never read by the parent.
"""

from __future__ import annotations

import contextlib
import os
import re
import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any

from surgeon.errors import ModelError, OutputError, SurgeonError
from surgeon.reading import external_path, is_inside

Stamp = tuple[int, int | str]  # size, and what changes with the content: a time (ns) or a mark

_BLOCK = 1 << 20
_FAR = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+(://|::)")
_NEAR = re.compile(r"(?:file|local)://")
_MARKS = ("ETag", "etag", "sha256", "checksum", "md5Hash", "md5", "blob_id", "oid", "CRC")
_TIMES = ("mtime", "LastModified", "last_modified", "modified", "updated", "created")
_PACKAGES = {  # what to install where the module that fsspec looks for has another name
    "fsspec_xrootd": "fsspec-xrootd",
    "lakefs_spec": "lakefs-spec",
    "morefs": "morefs[asynclocalfs]",
}
_NEEDED = {  # by protocol, where fsspec has the code and wants another package
    "http": "aiohttp",
    "https": "aiohttp",
    "sftp": "paramiko",
    "ssh": "paramiko",
    "smb": "smbprotocol",
    "github": "requests",
    "git": "pygit2",
    "webhdfs": "requests",
    "hdfs": "pyarrow",
}


def is_far(place: str) -> bool:
    """Whether this names a place that fsspec opens: `s3://...`, `zip://::models.zip`."""
    return bool(_FAR.match(place)) and not _NEAR.match(place)


def near(place: str) -> str:
    """The path that a `file://` address names; any other text as it is."""
    found = _NEAR.match(place)
    return place[found.end() :] if found else place


def open_far(url: str) -> Far:
    """The place of this address; opened once in each process.

    Raises:
        ModelError: fsspec or the package for this kind of place is missing, or it does not open.
    """
    return _opened(url, os.getpid())


@lru_cache(maxsize=16)
def _opened(url: str, _process: int) -> Far:
    return Far(url)


class Far:
    """A place that fsspec knows, with a path in it.

    Attributes:
        fs: fsspec's file system.
        root: The path that the address names.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        try:
            import fsspec
        except ImportError:
            raise ModelError(
                "a place like this is opened by fsspec, which is not installed",
                where=url,
                mend="Run `pip install 'onnx-recipe-surgeon[remote]'`.",
            ) from None
        try:
            self.fs, root = fsspec.core.url_to_fs(url)
        except ImportError as error:
            raise ModelError(
                f"what opens a place like this is not installed: {error}",
                where=url,
                mend=f"Run `pip install {_package(url)}`.",
            ) from None
        except Exception as error:  # each file system has errors of its own
            raise ModelError(
                f"cannot be opened: {said(error)}", where=url, mend="Check the address."
            ) from None
        self.root = str(root).rstrip("/")

    def below(self, name: str) -> str:
        """The path of a name below the root."""
        return f"{self.root}/{name}" if self.root else name

    def stamp(self, path: str) -> Stamp | None:
        """Of a file as it is there now; None where there is none."""
        with contextlib.suppress(Exception):  # an optimisation; not every file system has it
            self.fs.invalidate_cache(path.rpartition("/")[0])
        try:
            info = self.fs.info(path)
        except FileNotFoundError:
            return None
        return stamp_of(info) if info.get("type") != "directory" else None

    def fetch(self, path: str, to: Path, most: int | None = None) -> None:
        """Copy a file here, in blocks.

        Raises:
            ModelError: It cannot be read, or holds more bytes than it may.
        """
        got = 0
        try:
            with self.fs.open(path, "rb") as file, to.open("wb") as here:
                while block := file.read(_BLOCK):
                    got += len(block)
                    if most is not None and got > most:
                        break
                    here.write(block)
        except Exception as error:
            raise _unread(error, path) from None
        if most is not None and got > most:
            raise ModelError(
                f"it holds more than {most:,} bytes",
                where=path,
                mend="Convert it to external data: `onnx.save(..., save_as_external_data=True)`.",
            )

    def fetch_data(
        self, path: str, locations: Sequence[str], folder: Path
    ) -> list[tuple[str, Stamp]]:
        """Copy a model's external data beside it; path and stamp of each.

        A location outside the model's folder is not fetched, nor what is not there.
        """
        found = []
        for location in locations:
            to = folder / location
            if not is_inside(location) or os.path.lexists(to):
                continue
            each = (PurePosixPath(path).parent / location).as_posix()
            stamp = self.stamp(each)
            if stamp is not None:
                to.parent.mkdir(parents=True, exist_ok=True)
                self.fetch(each, to)
                found.append((each, stamp))
        return found


class FarFolder:
    """DEST where fsspec puts it. Each file is put there whole, as far as the place can do that."""

    def __init__(self, url: str) -> None:
        self.address = url
        try:
            self.far = open_far(url)
        except ModelError as error:
            raise OutputError(error.what, where=url, mend=error.mend) from None
        self._stamps: dict[str, Stamp] | None = None

    def prepare(self) -> None:
        """See that files can be put here.

        Raises:
            OutputError: They cannot.
        """
        probe = self.far.below(".surgeon-probe")
        with _written(self.address):
            self.far.fs.makedirs(self.far.root, exist_ok=True)
            self.far.fs.pipe_file(probe, b"surgeon")
            self.far.fs.rm_file(probe)

    def stamp(self, name: str) -> Stamp | None:
        """Of a file as it was when it was first asked for one, or as `note` says."""
        return self._known().get(name)

    def note(self, name: str, stamp: Stamp) -> None:
        """Remember what a worker has put here."""
        self._known()[name] = stamp

    def has(self, name: str) -> bool:
        """Whether there is a file of this name."""
        return name in self._known()

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
        """Put a model and its data here, the data first; see `Folder.publish`."""
        del staging, moved
        place = PurePosixPath(self._inside(name)).parent
        with _written(self.far.below(name)):
            for location in locations:
                data = external_path(location, folder)
                self._put(data, self.far.below((place / location).as_posix()))
            self._put(result, self.far.below(name))
            stamp = self.far.stamp(self.far.below(name))
        if stamp is None:
            raise OutputError("it is not there after it was written", where=name, mend="Try again.")
        return stamp

    def twin(
        self, other: str, folder: Path, locations: Sequence[str], *, name: str, staging: Path
    ) -> Stamp:
        """Put what is at `other` at `name` too."""
        copy = staging / uuid.uuid4().hex
        self.far.fetch(self.far.below(other), copy)
        return self.publish(copy, folder, locations, name=name, staging=staging, moved=True)

    def withdraw(self, name: str) -> None:
        """Remove what an earlier run put here."""
        with contextlib.suppress(Exception):
            self.far.fs.rm_file(self.far.below(self._inside(name)))
        self._known().pop(name, None)

    def write(self, name: str, data: bytes) -> None:
        """Put a report here."""
        with _written(self.far.below(name)):
            self.far.fs.pipe_file(self.far.below(name), data)

    def shown(self, name: str) -> str:
        """The address of a file, for people."""
        return f"{self.address.rstrip('/')}/{name}"

    def _known(self) -> dict[str, Stamp]:
        if self._stamps is None:
            with _written(self.address):
                self.far.fs.invalidate_cache()
                found = self.far.fs.find(self.far.root, detail=True)
            skip = len(self.far.root) + 1 if self.far.root else 0
            self._stamps = {path[skip:]: stamp_of(info) for path, info in found.items()}
        return self._stamps

    def _put(self, file: Path, to: str) -> None:
        self._make(to)
        self.far.fs.put_file(str(file), to)

    def _make(self, path: str) -> None:
        self.far.fs.makedirs(path.rpartition("/")[0], exist_ok=True)

    def _inside(self, name: str) -> str:
        if not is_inside(name):
            raise OutputError(
                "its name leads out of DEST", where=self.address, mend="Rename the model."
            )
        return name


def stamp_of(info: Mapping[str, Any]) -> Stamp:
    """Size and mark of what fsspec says of a file; -1 and an empty mark where it says nothing."""
    size = info.get("size")
    key = next((key for key in (*_MARKS, *_TIMES) if info.get(key)), "")
    mark = info.get(key)
    if isinstance(mark, datetime):  # a list may give seconds where a look gives this
        mark = mark.timestamp()
    return (-1 if size is None else int(size), f"{key}:{mark}" if key else "")


def alike(stamp: Stamp) -> tuple[int, str]:
    """What files of one content have in common: their size, and a mark that is of the content."""
    mark = str(stamp[1])
    return (stamp[0], mark if mark.partition(":")[0] in _MARKS else "")


def same_stamp(one: Stamp, other: Stamp | None) -> bool:
    """Whether two stamps may be of one content; a list and a look may tell different marks."""
    if other is None or (one[0] != other[0] and -1 not in (one[0], other[0])):
        return False
    return one[1] == other[1] or _kind(one[1]) != _kind(other[1])


def _kind(mark: int | str) -> str:
    return mark.partition(":")[0] if isinstance(mark, str) else "time"


def said(error: Exception) -> str:
    """What an error of a file system says, in one line."""
    text = getattr(error, "strerror", None) or " ".join(str(error).split())
    return f"{text[:300]}" if text else type(error).__name__


def _unread(error: Exception, path: str) -> SurgeonError:
    return ModelError(
        f"cannot be fetched: {said(error)}",
        where=path,
        mend="Check the address, and what you are allowed to read.",
    )


@contextlib.contextmanager
def _written(where: str) -> Any:
    try:
        yield
    except SurgeonError:
        raise
    except Exception as error:  # each file system has errors of its own
        raise OutputError(
            f"cannot be written: {said(error)}",
            where=where,
            mend="Check the address and what you are allowed to write, or name another DEST.",
        ) from None


def _package(url: str) -> str:
    """What to install for the file system that is missing; of a chain, the first that is."""
    from fsspec import get_filesystem_class
    from fsspec.registry import known_implementations

    for part in url.split("::"):
        protocol = part.partition("://")[0]
        try:
            get_filesystem_class(protocol)
        except ImportError:
            if protocol in _NEEDED:
                return _NEEDED[protocol]
            module = str(known_implementations[protocol]["class"]).partition(".")[0]
            return _PACKAGES.get(module, module)
        except ValueError:
            continue
    return "fsspec"
