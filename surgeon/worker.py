"""The inside of a worker: `python -m surgeon.worker` does what it is asked until its stdin ends.

It imports what it is asked to call, and keeps the objects it made.
"""

from __future__ import annotations

import contextlib
import importlib
import itertools
import os
import pickle
import queue
import signal
import sys
import threading
from typing import Any, BinaryIO

from surgeon.messages import receive, send


def _die_with_parent() -> None:
    """On Linux the kernel ends us with our parent, even when native code is busy."""
    if sys.platform == "linux":
        import ctypes

        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # 1 is PR_SET_PDEATHSIG


def _leave_no_core() -> None:
    """Have the system write no image of us where we crash: that is foreseen, and 100 MB each."""
    if sys.platform == "win32":
        return
    import resource

    with contextlib.suppress(ValueError, OSError):
        _, hard = resource.getrlimit(resource.RLIMIT_CORE)
        resource.setrlimit(resource.RLIMIT_CORE, (0, hard))


def _limit(memory: int) -> None:
    if sys.platform == "win32":  # it has no such limit
        return
    import resource

    with contextlib.suppress(ValueError, OSError):
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (min(memory, sys.maxsize), hard))


def _look_up(task: str) -> Any:
    module, _, name = task.partition(":")
    return getattr(importlib.import_module(module), name)


def _answer(message: Any, objects: dict[int, Any], count: itertools.count[int]) -> Any:
    if isinstance(message, Exception):  # the message did not unpickle
        raise message
    kind, target, args, memory, dropped = message
    for handle in dropped:
        objects.pop(handle, None)
    if memory is not None:
        _limit(memory)
    if kind == "call":
        return _look_up(target)(*args)
    if kind == "make":
        handle = next(count)
        objects[handle] = _look_up(target)(*args)
        return handle
    found = getattr(objects[target[0]], target[1])
    return found(*args) if callable(found) else found


def _portable(error: Exception) -> Exception:
    """The exception; one of its text where its kind does not come out of a pickle again."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error


def _read_all(stream: BinaryIO, messages: queue.Queue[Any]) -> None:
    """Read on while the main thread works: the end of the stream is the end of the parent."""
    try:
        while True:
            messages.put(receive(stream))
    except (EOFError, OSError):
        os._exit(0)
    except Exception as error:
        messages.put(error)


def main() -> None:
    """Serve until stdin ends."""
    _die_with_parent()
    _leave_no_core()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to answer: it ends us
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
            # the loader's words where native code of a package finds no room
            memory = isinstance(error, ImportError) and "failed to map segment" in str(error)
            answer = ("memory", None) if memory else ("error", _portable(error))
        try:
            send(outgoing, answer)
        except (pickle.PicklingError, TypeError, AttributeError):
            what = f"a {type(answer[1]).__name__}"
            send(outgoing, ("error", RuntimeError(f"not picklable: {what}")))


if __name__ == "__main__":
    main()
