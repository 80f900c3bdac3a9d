"""What a file is: the hash of its bytes, its external data, and the key of its result."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from surgeon.batch.far import Stamp
from surgeon.reading import external_path, open_file
from surgeon.wire import check_size

_CHUNK = 1 << 20
_COMPUTE = ("onnx", "onnxruntime", "onnx-graphsurgeon", "onnxsim", "numpy", "ml-dtypes")
_WORD = b"location"  # what protobuf spells out in every model with external data


@dataclass(frozen=True, slots=True)
class Identity:
    """A file as it was read.

    Attributes:
        sha256: Of its bytes.
        stamp: Its size, and its mtime (ns) or mark.
        locations: Of its external data.
        data: Path, size and mtime (ns) of each. The path too: files unpacked from an archive may
            have one time and size, and other weights.
    """

    sha256: str
    stamp: Stamp
    locations: tuple[str, ...]
    data: tuple[tuple[str, int, int | str], ...]

    @property
    def bytes(self) -> int:
        """Of model and data."""
        return max(0, self.stamp[0]) + sum(size for _, size, _ in self.data)


def identify(path: Path, list_data: Callable[[Path], Sequence[str]]) -> Identity:
    """Hash a file, and look at its external data.

    Args:
        path: The model.
        list_data: The locations that a model states; asked only where there may be some.

    Raises:
        OSError: The file cannot be read.
        ModelError: It is too large for a model, or its data lie outside its folder or are missing.
    """
    there = path.stat()
    check_size(there.st_size, path)
    digest, seen, tail = hashlib.sha256(), False, b""
    with open_file(path) as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
            seen = seen or _WORD in tail + chunk
            tail = chunk[-len(_WORD) :]
    locations = tuple(list_data(path)) if seen else ()
    data = []
    for location in locations:
        each = external_path(location, path.parent).resolve()
        stated = each.stat()
        data.append((str(each), stated.st_size, stated.st_mtime_ns))
    return Identity(digest.hexdigest(), (there.st_size, there.st_mtime_ns), locations, tuple(data))


@cache
def version() -> str:
    """Surgeon and what it computes with: what decides a result beside file, recipes and options.

    Where surgeon is no installed release, its sources count: they change and the number does not.
    """
    said = [f"{name} {_version(name)}" for name in ("onnx-recipe-surgeon", *_COMPUTE)]
    package = Path(__file__).resolve().parents[1]
    if package.parent.name not in ("site-packages", "dist-packages"):
        digest = hashlib.sha256()
        for path in sorted(package.rglob("*.py")):
            digest.update(path.relative_to(package).as_posix().encode() + b"\0")
            digest.update(path.read_bytes() + b"\0")
        said.append(digest.hexdigest())
    return "; ".join(said)


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "unknown"


def identify_far(url: str, path: str, stamp: Stamp) -> Identity:
    """A file that is not read here: its address and its stamp stand for its bytes."""
    size, mark = stamp
    mark = mark or uuid.uuid4().hex  # nothing tells whether it is the same: always another
    return Identity("", stamp, (), ((f"{url} {path}", 0, f"{size} {mark}"),))


def key_of(found: Identity, how: Any) -> str:
    """The key of a result: the file, its data, and everything that decides what is done to it."""
    text = json.dumps([found.sha256, found.data, found.locations, how], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()
