"""Runs `surgeon` once for each command it is told, each in a process of its own with limits.

Started as a script: a line of JSON on stdin is a command (`arguments`, `seconds`, `memory`), a line
on stdout what came of it. The processes are forked from one that has imported everything, so that
hundreds of broken files are a matter of seconds. Linux and macOS only.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import tempfile
import time
from typing import IO, Any


def serve() -> None:
    """Answer until stdin ends."""
    import onnxruntime  # noqa: F401 - imported once for all; no session is made here

    import surgeon.surgery
    import surgeon.trial
    import surgeon.verify
    from surgeon.cli import app

    surgeon.opening.as_recipe("shape-chains")  # the grammars are read once for all
    for line in sys.stdin:
        print(json.dumps(_run(app, json.loads(line))), flush=True)


def _run(app: Any, command: dict[str, Any]) -> dict[str, Any]:
    with tempfile.TemporaryFile() as printed:
        began = time.perf_counter()
        pid = os.fork()
        if not pid:
            _child(app, command, printed)
        status, usage = _wait(pid, began + command["seconds"])
        printed.seek(0)
        return {
            "code": os.waitstatus_to_exitcode(status),
            "output": printed.read().decode(errors="backslashreplace"),
            "seconds": time.perf_counter() - began,
            "peak": usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024),
        }


def _wait(pid: int, until: float) -> tuple[int, Any]:
    while True:
        done, status, usage = os.wait4(pid, os.WNOHANG)
        if done:
            return status, usage
        if time.perf_counter() > until:
            os.kill(pid, signal.SIGKILL)
            _, status, usage = os.wait4(pid, 0)
            return status, usage
        time.sleep(0.002)


def _child(app: Any, command: dict[str, Any], printed: IO[bytes]) -> None:
    code = 99
    try:
        os.dup2(printed.fileno(), 1)
        os.dup2(printed.fileno(), 2)
        sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
        sys.stderr = os.fdopen(2, "w", encoding="utf-8", closefd=False)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if sys.platform == "linux":
            resource.setrlimit(resource.RLIMIT_AS, (command["memory"], command["memory"]))
        app(command["arguments"], prog_name="surgeon")
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    serve()
