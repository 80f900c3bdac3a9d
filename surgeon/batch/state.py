"""What earlier runs did: a SQLite file of results by key, and of the files that were written.

Every row is committed by itself, after its file is in place: a run that is killed loses at most
what it had in hand. The file is locked as long as a run lasts.
"""

from __future__ import annotations

import json
import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from surgeon.batch.far import Stamp, same_stamp
from surgeon.batch.row import Row
from surgeon.errors import OutputError, SurgeonError

_TABLES = """
CREATE TABLE IF NOT EXISTS results (key TEXT PRIMARY KEY, row TEXT NOT NULL, limits TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS written (
    name TEXT PRIMARY KEY, key TEXT NOT NULL, size INTEGER NOT NULL, mtime INTEGER NOT NULL
);
CREATE INDEX IF NOT EXISTS by_key ON written (key);
CREATE TABLE IF NOT EXISTS begun (name TEXT PRIMARY KEY);
"""
_FORM = 2  # of the tables; another number is a file of another surgeon


@dataclass(frozen=True, slots=True)
class Known:
    """The result of an earlier run, and what it depends on beside its key.

    Attributes:
        row: The result.
        timeout: Seconds that it had; None for no limit.
        memory: Bytes that it had; None for no limit.
        data: Path and stamp of each data file that was fetched for it from afar.
    """

    row: Row
    timeout: float | None
    memory: int | None
    data: tuple[tuple[str, Stamp], ...] = ()


class State:
    """Results and written files of a batch.

    Args:
        path: The SQLite file; made where there is none.

    Raises:
        OutputError: It cannot be written, is no such file, or another run uses it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._db = sqlite3.connect(
                path, timeout=0, isolation_level=None, check_same_thread=False
            )
            self._db.execute("PRAGMA locking_mode=EXCLUSIVE")
            # A write-ahead log need not reach the disk for each row: a killed process loses none.
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=NORMAL")
            self._db.execute("BEGIN EXCLUSIVE")
            (form,) = self._db.execute("PRAGMA user_version").fetchone()
            if form not in (0, _FORM):
                raise sqlite3.DatabaseError(f"its form is {form}, not {_FORM}")
            self._db.execute("COMMIT")
            self._db.executescript(_TABLES)
            self._db.execute(f"PRAGMA user_version={_FORM}")
        except sqlite3.Error as error:
            raise self._refusal(error) from None

    def known(self, key: str) -> Known | None:
        """The result of this key, if an earlier run has one."""
        found = self._ask("SELECT row, limits FROM results WHERE key=?", (key,))
        if not found:
            return None
        try:
            row = Row.from_dict(json.loads(found[0][0]))
            timeout, memory, data = json.loads(found[0][1])
            stamps = tuple((path, (size, mark)) for path, size, mark in data)
        except (ValueError, TypeError, KeyError):  # somebody else wrote it: not known
            return None
        return Known(row, timeout, memory, stamps)

    def keep(self, key: str, known: Known) -> None:
        """Remember a result."""
        data = [[path, *stamp] for path, stamp in known.data]
        limits = json.dumps([known.timeout, known.memory, data])
        values = (key, json.dumps(known.row.to_dict()), limits)
        self._write("INSERT OR REPLACE INTO results VALUES (?, ?, ?)", values)

    def wrote(self, name: str, key: str, stamp: Stamp) -> None:
        """Remember that a file of DEST is the result of a key."""
        values = (_text(name), key, *stamp)
        self._write("INSERT OR REPLACE INTO written VALUES (?, ?, ?, ?)", values)
        self.end(name)

    def begin(self, name: str) -> None:
        """Remember that a file of DEST is about to be written where none of others' is."""
        self._write("INSERT OR IGNORE INTO begun VALUES (?)", (_text(name),))

    def end(self, name: str) -> None:
        """It is no more about to be written."""
        self._write("DELETE FROM begun WHERE name=?", (_text(name),))

    def is_ours(self, name: str, stamp: Stamp | None, key: str | None = None) -> bool:
        """Whether a file of DEST is still as a run left it (and the result of this key).

        Without a key, also what a run that was killed may have written just before.

        Args:
            name: Of the file.
            stamp: Of what is there now; None for nothing.
            key: Of the result it is to be.
        """
        if stamp is None:
            return False
        values = (_text(name),)
        if key is None and self._ask("SELECT 1 FROM begun WHERE name=?", values):
            return True
        for written, size, mtime in self._ask(
            "SELECT key, size, mtime FROM written WHERE name=?", values
        ):
            return key in (None, written) and same_stamp((size, mtime), stamp)
        return False

    def knows(self, name: str) -> bool:
        """Whether a run wrote a file of DEST, or was about to when it was killed."""
        asked = "SELECT 1 FROM written WHERE name=?1 UNION SELECT 1 FROM begun WHERE name=?1"
        return bool(self._ask(asked, (_text(name),)))

    def source_of(self, name: str) -> str:
        """The sha256 of the model that a file of DEST was made of; empty where it is not known."""
        asked = "SELECT key FROM written WHERE name=?"
        known = [self.known(key) for (key,) in self._ask(asked, (_text(name),))]
        return known[0].row.sha256 if known and known[0] else ""

    def with_key(self, key: str) -> list[str]:
        """The names in DEST that were written as results of a key."""
        found = self._ask("SELECT name FROM written WHERE key=? ORDER BY name", (key,))
        return [json.loads(name) for (name,) in found]

    def forget(self, name: str) -> None:
        """A file of DEST is there no more."""
        self._write("DELETE FROM written WHERE name=?", (_text(name),))

    def close(self) -> None:
        """Give the file free for others."""
        self._db.close()

    def _write(self, statement: str, values: tuple[Any, ...]) -> None:
        self._ask(statement, values)

    def _ask(self, statement: str, values: tuple[Any, ...]) -> list[Any]:
        try:
            return self._db.execute(statement, values).fetchall()
        except sqlite3.Error as error:
            raise self._refusal(error) from None

    def _refusal(self, error: sqlite3.Error) -> SurgeonError:
        if "locked" in str(error):
            return OutputError(
                "another run of `surgeon batch` uses this state",
                where=str(self.path),
                mend="Wait until it ends, or name another file with `--state`.",
            )
        return OutputError(
            f"the state cannot be kept here: {error}",
            where=str(self.path),
            mend="Name another file with `--state`, or remove this one to begin anew.",
        )


def _text(name: str) -> str:
    """A file's name as SQLite can hold it: names of files need not be Unicode."""
    return json.dumps(name)
