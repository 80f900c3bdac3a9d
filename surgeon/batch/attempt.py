"""One file, repaired in a worker and put into DEST: what an executor is given to run."""

from __future__ import annotations

import contextlib
import re
import threading
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from surgeon.batch.publish import publish
from surgeon.errors import ForeignError, MemoryUp, SurgeonError, TimeUp
from surgeon.worker import Worker

TASK = "surgeon.batch.task:repair"
_LIFE = 256  # files that one process repairs: what native code leaks is bounded
_ENDED = re.compile(r"crashed \((?:SIGINT|SIGTERM)\)")  # by us or the user, not by the file

_mine = threading.local()  # each thread of an executor has a worker of its own


@dataclass(frozen=True, slots=True)
class Job:
    """What is to be done to one file; plain data, as executors may be other processes.

    Attributes:
        task: `module:function` with the arguments of `surgeon.batch.task.repair`.
        path: The model.
        name: Its path below DEST.
        stamp: Its size and mtime (ns) when it was hashed.
        sha256: Of its bytes.
        locations: Of its external data.
        bytes: Of model and data.
        key: Of its result in the state.
        keeps: Whether an unchanged model is copied too.
        timeout: Seconds.
        memory: Bytes of address space.
    """

    task: str
    path: str
    name: str
    stamp: tuple[int, int]
    sha256: str
    locations: tuple[str, ...]
    bytes: int
    key: str
    recipes: tuple[str, ...]
    digests: tuple[str, ...]
    options: Mapping[str, Any]
    dest: str
    staging: str
    keeps: bool
    timeout: float | None
    memory: int | None


def attempt(job: Job) -> dict[str, Any]:
    """Repair a file and publish the result; whatever happens is the outcome. Fields of a `Row`."""
    staged = Path(job.staging) / f"{uuid.uuid4().hex}.onnx"
    try:
        found = _repair(job, staged)
        there = Path(job.path).stat()
        if (there.st_size, there.st_mtime_ns) != job.stamp:
            return _failed("the file was changed while it was repaired", "Run the batch again.")
        changed = found["outcome"] == "repaired"
        if changed or (found["outcome"] == "unchanged" and job.keeps):
            publish(
                staged if changed else Path(job.path),
                Path(job.path).parent,
                job.locations,
                dest=Path(job.dest),
                name=job.name,
                staging=Path(job.staging),
                moved=changed,
            )
    except OSError as error:
        return _failed(f"cannot be read: {error.strerror or error}", "Check its permissions.")
    except SurgeonError as error:  # from publishing
        return _failed(error.what, error.mend)
    finally:
        with contextlib.suppress(OSError):
            staged.unlink(missing_ok=True)
    return found


def enter(crew: list[Worker]) -> None:
    """Give this thread a worker that `crew` knows too, to end it when the run is interrupted."""
    _mine.worker, _mine.count = Worker(), 0
    crew.append(_mine.worker)


def _repair(job: Job, staged: Path) -> dict[str, Any]:
    if not hasattr(_mine, "worker"):
        enter([])
    if _mine.count >= _LIFE:
        _mine.worker.close()
        _mine.count = 0
    _mine.count += 1
    arguments = (job.path, str(staged), job.recipes, job.digests, dict(job.options))
    try:
        found: dict[str, Any] = _mine.worker.call(
            job.task, *arguments, timeout=job.timeout, memory=job.memory
        )
    except TimeUp:
        said = f"not done within {job.timeout:g} seconds"
        return {"outcome": "timeout", "reason": said, "mend": "Give it more with `--timeout`."}
    except MemoryUp:
        said = f"not done within {(job.memory or 0) / (1 << 30):.3g} GiB of address space"
        return {"outcome": "memory", "reason": said, "mend": "Give it more with `--memory`."}
    except ForeignError as error:
        if _ENDED.search(error.what):
            return _failed("interrupted", "Run the batch again.")
        crashed = error.what.replace(f"`{job.task}` crashed", "its worker crashed")
        mend = "Report it to the project whose code crashed, or leave the file out."
        return {"outcome": "crashed", "reason": crashed, "mend": mend}
    return found


def _failed(reason: str, mend: str) -> dict[str, Any]:
    return {"outcome": "failed", "reason": reason, "mend": mend}
