"""The worker: a subprocess that runs foreign native code, so that its crash is not ours.

Messages are pickles with a length in front, over the worker's stdin and stdout. The worker
imports what it is asked to call, keeps the objects it made, and ends when its parent does.
"""

from __future__ import annotations

import contextlib
import importlib
import itertools
import os
import pickle
import queue
import signal
import struct
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

from surgeon.errors import ForeignError, MemoryUp, TimeUp

LENGTH = struct.Struct("<Q")


class Worker:
    """A subprocess of `python -m surgeon.worker`, started at need and used again and again.

    A task is named `module:function` (or `module:Class`); its arguments and result travel as
    pickles. What the task raises is raised here. A crash, a timeout or an exhausted memory is a
    `ForeignError`; the next call starts a new process. Not for use from two threads at once.
    """

    def __init__(self) -> None:
        self.generation = 0  # counts the processes: an object made in an earlier one is gone
        self._process: subprocess.Popen[bytes] | None = None
        self._noise: Any = None  # what the process printed, for the error's text

    def call(
        self, task: str, *args: Any, timeout: float | None = None, memory: int | None = None
    ) -> Any:
        """The result of `task(*args)`, computed in the worker.

        Args:
            task: `module:function`.
            args: What the function is given; must be picklable.
            timeout: Seconds.
            memory: Bytes of address space the process may use from now on, where the system has
                such limits.

        Raises:
            ForeignError: The process crashed, hung or ran out of memory.
        """
        return self._ask(("call", task, args, memory), task, timeout)

    def make(self, task: str, *args: Any) -> Remote:
        """An object that lives in the worker: `task(*args)` is called there, at its first use."""
        return Remote(self, task, args)

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
        if self._process is None or self._process.poll() is not None:
            self.close()
            self._noise = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `close`
            # -P: never import from the user's folder what merely has the name of a module.
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "surgeon.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._noise,
                env=_environment(),
            )
            self.generation += 1
        return self._process

    def _ask(self, message: tuple[Any, ...], task: str, timeout: float | None) -> Any:
        process = self._start()
        assert process.stdin is not None
        assert process.stdout is not None
        expired = threading.Event()

        def expire() -> None:
            expired.set()
            process.kill()

        timer = threading.Timer(timeout, expire) if timeout is not None else None
        if timer is not None:
            timer.daemon = True
            timer.start()
        try:
            _send(process.stdin, message)
            answer = _receive(process.stdout)
        except (OSError, EOFError, pickle.UnpicklingError):
            answer = None
        finally:
            if timer is not None:
                timer.cancel()
        if answer is None:
            raise self._failure(process, task, timeout if expired.is_set() else None)
        kind, value = answer
        if kind == "value":
            return value
        if kind == "error":
            raise _unpack(value)
        self.close()  # memory: what is left in the process is in no known state
        raise MemoryUp(
            f"`{task}` ran out of memory", where="the worker", mend="Give it more memory."
        )

    def _failure(
        self, process: subprocess.Popen[bytes], task: str, timeout: float | None
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
                f"`{task}` did not end within {timeout:g} seconds",
                where="the worker",
                mend="Give it more time, or leave the step out.",
            )
        how = _signal_name(-code) if code < 0 else f"exit code {code}"
        return ForeignError(
            f"`{task}` crashed ({how}){last}",
            where="the worker",
            mend="Leave the step out, or report the crash to the project whose code it runs.",
        )


class Remote:
    """An object in the worker; made again after the worker was restarted."""

    def __init__(self, worker: Worker, task: str, args: tuple[Any, ...]) -> None:
        self._worker, self._task, self._args = worker, task, args
        self._generation = 0
        self._handle = -1

    def call(self, method: str, *args: Any, timeout: float | None = None) -> Any:
        """The result of the object's `method(*args)`; its attribute where that is no method."""
        process = self._worker._start()
        assert process.stdin is not None
        if self._generation != self._worker.generation:
            make = ("make", self._task, self._args, None)
            self._handle = self._worker._ask(make, self._task, timeout)
            self._generation = self._worker.generation
        message = ("method", (self._handle, method), args, None)
        return self._worker._ask(message, f"{self._task}.{method}", timeout)

    def close(self) -> None:
        """Let the worker forget the object."""
        if self._handle >= 0 and self._generation == self._worker.generation:
            self._worker._ask(("forget", self._handle, (), None), self._task, None)
            self._handle, self._generation = -1, 0


def _environment() -> dict[str, str]:
    """Our environment; the package's own folder is added where it is not installed."""
    environment = dict(os.environ)
    root = str(Path(__file__).resolve().parent.parent)
    if Path(root).name not in ("site-packages", "dist-packages"):
        known = environment.get("PYTHONPATH")
        environment["PYTHONPATH"] = os.pathsep.join([root, *([known] if known else [])])
    return environment


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _send(stream: BinaryIO | Any, message: Any) -> None:
    data = pickle.dumps(message, protocol=5)
    stream.write(LENGTH.pack(len(data)))
    stream.write(data)
    stream.flush()


def _receive(stream: BinaryIO | Any) -> Any:
    header = stream.read(LENGTH.size)
    if len(header) < LENGTH.size:
        raise EOFError
    (length,) = LENGTH.unpack(header)
    data = stream.read(length)
    if len(data) < length:
        raise EOFError
    return pickle.loads(data)


def _pack(error: BaseException) -> tuple[Any, ...]:
    """An exception as data: its own pickle would call its `__init__`, whose arguments are gone."""
    return (type(error), error.args, dict(vars(error)), str(error))


def _unpack(packed: tuple[Any, ...]) -> BaseException:
    kind, args, state, _ = packed
    error: BaseException = kind.__new__(kind, *args)
    error.args = args
    error.__dict__.update(state)
    return error


# ------------------------------------------------------------------------- inside the worker


def _die_with_parent() -> None:
    """On Linux the kernel ends us with our parent, even when native code is busy."""
    if sys.platform == "linux":
        import ctypes

        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # 1 is PR_SET_PDEATHSIG


def _limit(memory: int) -> None:
    try:
        import resource
    except ImportError:  # not on Windows
        return
    with contextlib.suppress(ValueError, OSError):
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (memory, hard))


def _look_up(task: str) -> Any:
    module, _, name = task.partition(":")
    return getattr(importlib.import_module(module), name)


def _answer(message: Any, objects: dict[int, Any], count: itertools.count[int]) -> Any:
    if isinstance(message, Exception):  # the message did not unpickle
        raise message
    kind, target, args, memory = message
    if memory is not None:
        _limit(memory)
    if kind == "call":
        return _look_up(target)(*args)
    if kind == "make":
        handle = next(count)
        objects[handle] = _look_up(target)(*args)
        return handle
    if kind == "method":
        found = getattr(objects[target[0]], target[1])
        return found(*args) if callable(found) else found
    objects.pop(target, None)
    return None


def _read_all(stream: BinaryIO, messages: queue.Queue[Any]) -> None:
    """Read on while the main thread works: the end of the stream is the end of the parent."""
    try:
        while True:
            messages.put(_receive(stream))
    except (EOFError, OSError):
        os._exit(0)
    except Exception as error:
        messages.put(error)


def main() -> None:
    """Serve until stdin ends."""
    _die_with_parent()
    incoming = sys.stdin.buffer
    outgoing = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what native code prints must not run into the answers
    messages: queue.Queue[Any] = queue.Queue()
    threading.Thread(target=_read_all, args=(incoming, messages), daemon=True).start()
    objects: dict[int, Any] = {}
    count = itertools.count()
    while True:
        message = messages.get()
        try:
            answer: tuple[str, Any] = ("value", _answer(message, objects, count))
        except MemoryError:
            answer = ("memory", None)
        except Exception as error:
            answer = ("error", _pack(error))
        try:
            _send(outgoing, answer)
        except (pickle.PicklingError, TypeError, AttributeError):
            text = answer[1][3] if answer[0] == "error" else f"a {type(answer[1]).__name__}"
            _send(outgoing, ("error", _pack(RuntimeError(f"not picklable: {text}"))))


if __name__ == "__main__":
    main()
