"""The worker: a subprocess that runs foreign native code, so that its crash is not ours.

Here is the parent's side; they talk over the worker's stdin and stdout (see `surgeon.worker`).
"""

from __future__ import annotations

import contextlib
import math
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

from surgeon import customops
from surgeon.errors import ForeignError, MemoryUp, TimeUp
from surgeon.leftovers import Folder
from surgeon.messages import receive, send

_TEMPORARY = ("TMPDIR", "TEMP", "TMP")  # variables that say where temporary files go
_GLANCE = 0.2  # seconds between two looks at the clock


class Worker:
    """A subprocess of `python -m surgeon.worker`, started at need and used again and again.

    A task is named `module:function` (or `module:Class`); its arguments and result travel as
    pickles. What the task raises is raised here. A crash, a timeout or an exhausted memory is a
    `ForeignError`; the next call starts a new process. Not for use from two threads at once.

    Args:
        environment: What the process finds in its environment beside ours.
    """

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        self._environment = dict(environment or {})
        self.generation = 0  # counts the processes: an object made in an earlier one is gone
        self.dropped: list[int] = []  # handles of objects that nobody here holds any more
        self._process: subprocess.Popen[bytes] | None = None
        self._libraries: tuple[str, ...] = ()  # of custom operators, that the process has
        self._watch: _Watch | None = None
        self._noise: Any = None  # what the process printed, for the error's text
        self._folder: Folder | None = None  # for its temporary files

    def call(
        self,
        task: str,
        *args: Any,
        timeout: float | None = None,
        memory: int | None = None,
        called: str | None = None,
    ) -> Any:
        """The result of `task(*args)`, computed in the worker.

        Args:
            task: `module:function`.
            args: What the function is given; must be picklable.
            timeout: Seconds.
            memory: Bytes of address space the process may use from now on, where the system has
                such limits.
            called: How errors call it, in place of `task`.

        Raises:
            ForeignError: The process crashed, hung or ran out of memory.
        """
        return self._ask("call", task, args, _Terms(timeout, memory, called or task))

    def make(
        self,
        task: str,
        *args: Any,
        timeout: float | None = None,
        memory: int | None = None,
        called: str | None = None,
    ) -> Remote:
        """An object that lives in the worker: `task(*args)` is called there, at its first use.

        Args:
            task: `module:function`.
            args: What the function is given; must be picklable.
            timeout: Seconds, for the making and for each call of a method.
            memory: As in `call`.
            called: How errors call it, in place of `task`.
        """
        return Remote(self, task, args, _Terms(timeout, memory, called or task))

    def close(self) -> None:
        """End the process. The worker can be used again: the next call starts another."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    with contextlib.suppress(OSError):
                        stream.close()
        if self._noise is not None:
            self._noise.close()
            self._noise = None
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    def __enter__(self) -> Worker:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.close()

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            self.close()

    def _start(self) -> subprocess.Popen[bytes]:
        libraries = customops.libraries()
        known = self._process
        if known is not None and known.poll() is None and self._libraries == libraries:
            return known
        self.close()
        self._noise = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `close`
        # a process that is ended tidies nothing up
        self._folder = Folder()
        named = dict.fromkeys(_TEMPORARY, self._folder.name)
        named[customops.VARIABLE] = os.pathsep.join(libraries)
        process = subprocess.Popen(
            [sys.executable, *_arguments()],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._noise,
            env=_environment() | named | self._environment,
        )
        self._process, self._libraries = process, libraries
        self._watch = _Watch(process)
        self.generation += 1
        self.dropped = []
        return process

    def _ask(self, kind: str, target: Any, args: tuple[Any, ...], terms: _Terms) -> Any:
        process = self._start()
        dropped, self.dropped = self.dropped, []
        message = (kind, target, args, terms.memory, dropped)
        timeout = terms.timeout
        assert process.stdin is not None
        assert process.stdout is not None
        assert self._watch is not None
        self._watch.due = math.inf if timeout is None else time.monotonic() + timeout
        try:
            send(process.stdin, message)
            answer = receive(process.stdout)
        except (OSError, EOFError):
            answer = None
        finally:
            self._watch.due = math.inf
        if answer is None:
            raise self._failure(process, terms.called, timeout if self._watch.expired else None)
        kind, value = answer
        if kind == "value":
            return value
        if kind == "error":
            raise value
        self.close()  # memory: what is left in the process is in no known state
        raise MemoryUp(
            f"{_quoted(terms.called)} ran out of memory",
            where="the worker",
            mend="Give it more memory.",
        )

    def _failure(
        self, process: subprocess.Popen[bytes], called: str, timeout: float | None
    ) -> ForeignError:
        process.kill()
        code = process.wait()
        noise = ""
        if self._noise is not None:
            self._noise.seek(max(0, self._noise.seek(0, os.SEEK_END) - 2000))
            noise = self._noise.read().decode(errors="replace").strip()
        self.close()
        last = f": {noise.splitlines()[-1]}" if noise else ""
        if timeout is not None:
            return TimeUp(
                f"{_quoted(called)} did not end within {timeout:g} seconds",
                where="the worker",
                mend="Give it more time, or leave the step out.",
            )
        how = _signal_name(-code) if code < 0 else f"exit code {code}"
        return ForeignError(
            f"{_quoted(called)} crashed ({how}){last}",
            where="the worker",
            mend="Leave the step out, or report the crash to the project whose code it runs.",
        )


class _Terms(NamedTuple):
    """On what terms a task is done: seconds, bytes, and how errors call it."""

    timeout: float | None
    memory: int | None
    called: str


class _Watch:
    """Ends a process that is not done in time. One thread, as one for each task would cost more.

    Attributes:
        due: When the process has to be done, by `time.monotonic`.
        expired: Whether it was ended.
    """

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.due, self.expired = math.inf, False
        self._process = process
        threading.Thread(target=self._look, daemon=True).start()

    def _look(self) -> None:
        while self._process.returncode is None:
            left = self.due - time.monotonic()
            if left <= 0:
                self.expired = True
                self._process.kill()
                return
            time.sleep(min(left, _GLANCE))


class Remote:
    """An object in the worker; made again after the worker was restarted, forgotten when let go."""

    def __init__(self, worker: Worker, task: str, args: tuple[Any, ...], terms: _Terms) -> None:
        self._worker, self._task, self._args, self._terms = worker, task, args, terms
        self._generation = 0
        self._handle = -1

    def ensure(self) -> None:
        """Make the object now, unless it is there."""
        self._worker._start()
        if self._generation != self._worker.generation:
            self._handle = self._worker._ask("make", self._task, self._args, self._terms)
            self._generation = self._worker.generation

    def call(self, method: str, *args: Any) -> Any:
        """The result of the object's `method(*args)`; its attribute where that is no method."""
        self.ensure()
        return self._worker._ask("method", (self._handle, method), args, self._terms)

    def __del__(self) -> None:
        if self._handle >= 0 and self._generation == self._worker.generation:
            self._worker.dropped.append(self._handle)  # told with the next message


def _quoted(called: str) -> str:
    """A task in backticks, words as they are."""
    return f"`{called}`" if ":" in called else called


def _arguments() -> list[str]:
    """What Python is told: as much by itself as we are (`-I`, `-E`, `-s`).

    Never to import from the user's folder what merely has the name of a module (`-P`).
    """
    told = ["-P", *["-s"] * bool(sys.flags.no_user_site)]
    if not sys.flags.ignore_environment:
        return [*told, "-m", "surgeon.worker"]
    begin = f"import sys; sys.path.insert(0, {_root()!r}); " if _root() else ""
    told.append("-I" if sys.flags.isolated else "-E")
    return [*told, "-c", f"{begin}from surgeon.worker import main; main()"]


def _root() -> str:
    """The package's own folder where it is not installed, and a new process has to be told."""
    root = Path(__file__).resolve().parent.parent
    return "" if root.name in ("site-packages", "dist-packages") else str(root)


def _environment() -> dict[str, str]:
    """Our environment; the package's own folder is added where it is not installed."""
    environment = dict(os.environ)
    if root := _root():
        known = environment.get("PYTHONPATH")
        environment["PYTHONPATH"] = os.pathsep.join([root, *([known] if known else [])])
    return environment


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
