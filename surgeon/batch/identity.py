"""What a file is: the hash of its bytes, its external data, and the key of its result."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from surgeon.files import external_path

_CHUNK = 1 << 20
_WORD = b"location"  # what protobuf spells out in every model with external data


@dataclass(frozen=True, slots=True)
class Identity:
    """A file as it was read.

    Attributes:
        sha256: Of its bytes.
        stamp: Its size and mtime (ns).
        locations: Of its external data.
        data: Path, size and mtime (ns) of each. The path too: files unpacked from an archive may
            have one time and size, and other weights.
    """

    sha256: str
    stamp: tuple[int, int]
    locations: tuple[str, ...]
    data: tuple[tuple[str, int, int], ...]

    @property
    def bytes(self) -> int:
        """Of model and data."""
        return self.stamp[0] + sum(size for _, size, _ in self.data)


def identify(path: Path, list_data: Callable[[Path], Sequence[str]]) -> Identity:
    """Hash a file, and look at its external data.

    Args:
        path: The model.
        list_data: The locations that a model states; asked only where there may be some.

    Raises:
        OSError: The file cannot be read.
        ModelError: Its data lie outside its folder, or are missing.
    """
    there = path.stat()
    digest, seen, tail = hashlib.sha256(), False, b""
    with path.open("rb") as file:
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


def key_of(found: Identity, how: Any) -> str:
    """The key of a result: the file, its data, and everything that decides what is done to it."""
    text = json.dumps([found.sha256, found.data, found.locations, how], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()
