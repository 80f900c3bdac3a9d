"""One data file of all that tensors hold, and nothing else; its name is of its content, or told."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from onnx import TensorProto

from surgeon.errors import ModelError
from surgeon.files import foresee_by_content, write_by_content
from surgeon.reading import bytes_in, external_path, is_inside, open_inside
from surgeon.stored import bytes_of

_ALIGNMENT = 4096  # bytes: so that a runtime can map the tensors
_PIECE = 1 << 24  # bytes read at once
_UNUSABLE = frozenset('/\\<>:"|?*')  # in names of files, on one system or another
_DEVICES = frozenset(  # names of Windows, with any ending
    {"CON", "PRN", "AUX", "NUL", *(f"{port}{n}" for port in ("COM", "LPT") for n in range(1, 10))}
)
_LONGEST = 255  # bytes of a name


class _Source(NamedTuple):
    """Values that lie in a file."""

    path: Path
    folder: Path
    offset: int
    size: int


def is_portable(name: str) -> bool:
    """Whether a file beside others can be called so, on every system, and is none to be cleared."""
    stem = name.split(".")[0].rstrip(" ").upper()
    return (
        is_inside(name)
        and name.isprintable()
        and not _UNUSABLE.intersection(name)
        and not name.startswith((".", " "))
        and not name.endswith((".", " ", "~"))
        and len(os.fsencode(name)) <= _LONGEST
        and stem not in _DEVICES
        and not name.lower().endswith((".bak", ".tmp"))
    )


def foresee_pack(
    tensors: Sequence[TensorProto], folder: Path | None, path: Path, name: str | None = None
) -> None:
    """See that `pack` would not refuse; nothing is written, and no tensor edited.

    Raises:
        ModelError, OutputError: As there.
    """
    foresee_by_content(path, _pieces(tensors, folder, []), name)


def pack(
    tensors: Sequence[TensorProto], folder: Path | None, path: Path, name: str | None = None
) -> tuple[Path, bool]:
    """Put the values of tensors into one file; what several read of a file stands in it once.

    Args:
        tensors: With external data or raw data; edited.
        folder: Where their data files lie.
        path: The model that they are of: the file is put beside it.
        name: Of the file; without one it is of the model's name and the content.

    Returns:
        The file, and whether it was not there before.

    Raises:
        ModelError: A data file is missing, is outside the folder or too short; or tensors overlap.
        OutputError: The file cannot be written, or there is another one of its name.
    """
    places: list[tuple[int, int]] = []
    to, is_new = write_by_content(path, _pieces(tensors, folder, places), name)
    for tensor, (offset, size) in zip(tensors, places, strict=True):
        tensor.ClearField("raw_data")
        tensor.ClearField("external_data")
        tensor.data_location = TensorProto.EXTERNAL
        for key, value in (("location", to.name), ("offset", offset), ("length", size)):
            tensor.external_data.add(key=key, value=str(value))
    return to, is_new


def _pieces(
    tensors: Sequence[TensorProto], folder: Path | None, places: list[tuple[int, int]]
) -> Iterator[bytes]:
    """What the file holds; `places` takes where in it each tensor begins, and its bytes."""
    end = 0
    begun: dict[_Source, int] = {}
    read: Counter[Path] = Counter()
    for tensor in tensors:
        source = None
        if tensor.data_location == TensorProto.EXTERNAL:
            source = _source_of(tensor, folder or Path())
            if source in begun:
                places.append((begun[source], source.size))
                continue
            read[source.path] += source.size
            length = bytes_in(source.path, source.folder)
            if source.offset + source.size > length:
                raise _unread(source, tensor.name, "the file is too short")
            if read[source.path] > length:  # else a small model makes any size
                raise ModelError(
                    f"tensors overlap in the data file `{source.path.name[:200]}`",
                    where=str(folder),
                    mend="Leave the data in their files: `--external-data keep` or `copy`.",
                )
        yield bytes(gap := -end % _ALIGNMENT)
        end += gap
        size = len(tensor.raw_data) if source is None else source.size
        places.append((end, size))
        end += size
        if source is None:
            yield tensor.raw_data
        else:
            begun[source] = places[-1][0]
            yield from _read(source, tensor.name)


def _source_of(tensor: TensorProto, folder: Path) -> _Source:
    told = {each.key: each.value for each in tensor.external_data}
    path = external_path(told.get("location", ""), folder)
    return _Source(path, folder, int(told.get("offset") or 0), bytes_of(tensor))


def _read(source: _Source, name: str) -> Iterator[bytes]:
    left = source.size
    try:
        with open_inside(source.path, source.folder) as file:
            file.seek(source.offset)
            while left and (piece := file.read(min(left, _PIECE))):
                left -= len(piece)
                yield piece
    except OSError as error:
        raise _unread(source, name, str(error)) from None
    if left:
        raise _unread(source, name, "the file is too short")


def _unread(source: _Source, name: str, why: str) -> ModelError:
    return ModelError(
        f"the values of initializer `{name}` cannot be read: {why}",
        where=str(source.path),
        mend="Put the external data file beside the model, or export the model again.",
    )
