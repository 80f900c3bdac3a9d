"""Whether files are still what they were when they were read."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from surgeon.errors import ModelError


class Watch:
    """A model's file and its data files, by size and time, as they were at first.

    What was compared and what is saved are of the same files only where nobody else wrote to them.

    Args:
        own: The model's file; None of a model that is no file's.
    """

    def __init__(self, own: Path | None = None) -> None:
        self._own = own
        self._before: dict[Path, tuple[int, int] | None] = {}
        if own is not None:
            self.note([own])

    def note(self, paths: Iterable[Path]) -> None:
        """Look at files."""
        for path in paths:
            self._before.setdefault(path, _stamp(path))

    @property
    def is_own_same(self) -> bool:
        """Whether the model's own file is as it was."""
        return self._own is None or self._before[self._own] == _stamp(self._own)

    def check(self, *, own: bool) -> None:
        """See that the files are as they were.

        Args:
            own: Whether the model's own file is to be, of which all is known.

        Raises:
            ModelError: One is not.
        """
        for path, stamp in self._before.items():
            if (own or path != self._own) and stamp != _stamp(path):
                raise ModelError(
                    "the file was changed while it was worked on",
                    where=str(path),
                    mend="Begin again, when nothing else writes to it.",
                )


def _stamp(path: Path) -> tuple[int, int] | None:
    with suppress(OSError, ValueError):
        there = path.stat()
        return there.st_size, there.st_mtime_ns
    return None
