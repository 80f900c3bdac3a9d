"""One file, repaired in a worker and put into DEST: what an executor is given to run."""

from __future__ import annotations

import contextlib
import re
import threading
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from surgeon import capacity
from surgeon.batch.far import Stamp, open_far, same_stamp
from surgeon.batch.identity import identify, version
from surgeon.batch.publish import open_target
from surgeon.batch.reports import RESERVED
from surgeon.batch.sources import SUFFIX
from surgeon.errors import ForeignError, MemoryUp, ModelError, SurgeonError, TimeUp
from surgeon.leftovers import Folder
from surgeon.wire import LARGEST
from surgeon.workers import Worker

TASK = "surgeon.batch.task:repair"
LISTING = "surgeon.batch.task:data_files"
_LIFE = 256  # files that one process repairs: what native code leaks is bounded
_ENDED = re.compile(r"crashed \((?:SIGINT|SIGTERM)\)")  # by us or the user, not by the file
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")

_mine = threading.local()  # each thread of an executor has a worker of its own


@dataclass(frozen=True, slots=True)
class Job:
    """What is to be done to one file; plain data, as executors may be other processes.

    Attributes:
        task: `module:function` with the arguments of `surgeon.batch.task.repair`.
        surgeon: The version that is to do it, as `surgeon.batch.identity.version` says it.
        url: Of SOURCE where fsspec opens it; empty for files of this machine.
        path: The model; below `url` as its file system names it.
        name: Its path below DEST.
        stamp: Its size, and its mtime (ns) or mark, when it was looked at.
        sha256: Of its bytes; empty where it is far.
        locations: Of its external data; empty where it is far.
        data: Path, size and mtime (ns) of each; empty where it is far.
        bytes: Of model and data, as far as they are known.
        key: Of its result in the state.
        dest: The address of DEST.
        staging: A folder for files in the making; empty for one of the worker's own.
        keeps: Whether an unchanged model is copied too.
        timeout: Seconds.
        memory: Bytes of address space; None for what the worker's machine has to give.
        looks: Only say what its bytes are, where it has no external data: it may be the same as
            another far file.
    """

    task: str
    surgeon: str
    url: str
    path: str
    name: str
    stamp: Stamp
    sha256: str
    locations: tuple[str, ...]
    data: tuple[tuple[str, int, int | str], ...]
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
    looks: bool = False


@dataclass(frozen=True, slots=True)
class Done:
    """What came of a job; plain data.

    Attributes:
        fields: Of its `Row`.
        sha256: Of the model's bytes; empty where it was not read.
        written: The stamp of the result in DEST; None where there is none.
        data: Path and stamp of each data file that was fetched from afar.
        lasts: Whether another run would find the same: a file that cannot be fetched now may be.
        looked: Whether nothing was done beside reading it.
    """

    fields: dict[str, Any]
    sha256: str = ""
    written: Stamp | None = None
    data: tuple[tuple[str, Stamp], ...] = ()
    lasts: bool = True
    looked: bool = False


@dataclass(frozen=True, slots=True)
class _Model:
    """A model on this machine, with its data beside it."""

    path: Path
    sha256: str
    locations: tuple[str, ...]
    data: tuple[tuple[str, Stamp], ...] = ()


def attempt(job: Job) -> Done:
    """Repair a file and publish the result; whatever happens is the outcome."""
    if job.surgeon != version():
        mend = "Install the same version of surgeon and of what it uses on every machine."
        return Done(_failed("the worker has another surgeon, or other packages", mend))
    sha256 = job.sha256
    with contextlib.ExitStack() as stack:
        try:
            staging = Path(job.staging or stack.enter_context(Folder()))
            staged = staging / f"{uuid.uuid4().hex}.onnx"
            stack.callback(_remove, staged)
            model = _fetched(job, stack) if job.url else _there(job)
            sha256 = model.sha256
            if job.looks and not model.locations:
                return Done({}, sha256, looked=True)
            found = _repair(job, str(model.path), staged)
            if not _is_same(job):
                mend = "Run the batch again."
                return Done(_failed("the file was changed while it was repaired", mend), sha256)
            written = None
            changed = found["outcome"] == "repaired"
            if changed or (found["outcome"] == "unchanged" and job.keeps):
                written = open_target(job.dest).publish(
                    staged if changed else model.path,
                    model.path.parent,
                    model.locations,
                    name=job.name,
                    staging=staging,
                    moved=changed,
                )
        except OSError as error:
            why = f"cannot be read: {error.strerror or error}"
            return Done(_failed(why, "Check its permissions, and the free space."), sha256)
        except ModelError as error:  # from fetching it, or of its data
            fields = {"outcome": "broken", "reason": error.what, "mend": error.mend}
            return Done(fields, sha256, lasts=False)
        except SurgeonError as error:  # from publishing
            return Done(_failed(error.what, error.mend), sha256)
        return Done(found, sha256, written, model.data)


def _there(job: Job) -> _Model:
    return _Model(Path(job.path), job.sha256, job.locations)


def _fetched(job: Job, stack: contextlib.ExitStack) -> _Model:
    """The model and its data, copied here for as long as the job lasts.

    Raises:
        ModelError: It cannot be fetched, or its data are missing or out of place.
    """
    far, data = open_far(job.url), []
    folder = Path(stack.enter_context(Folder()))
    model = folder / ("model" + SUFFIX)
    far.fetch(job.path, model, LARGEST)

    def bring(path: Path) -> Sequence[str]:
        locations = _locations(job, path)
        for location in locations:
            if location in RESERVED or location.lower().endswith(SUFFIX):
                raise ModelError(
                    f"its data file `{location[:200]}` has the name of a model or of a report",
                    where=job.path,
                    mend="Rename the one or the other.",
                )
        data.extend(far.fetch_data(job.path, locations, folder))
        return locations

    found = identify(model, bring)
    return _Model(model, found.sha256, found.locations, tuple(data))


def _locations(job: Job, path: Path) -> Sequence[str]:
    """The external data a model states; none where it cannot be read: its repair says why."""
    try:
        found: Sequence[str] = _worker().call(
            LISTING, str(path), timeout=job.timeout, memory=_memory(job)
        )
    except SurgeonError:
        return ()
    return found


def _is_same(job: Job) -> bool:
    """Whether a file, and its data, are still what they were when they were looked at."""
    if job.url:
        return same_stamp(job.stamp, open_far(job.url).stamp(job.path))
    return all(
        (there.st_size, there.st_mtime_ns) == (size, time_)
        for path, size, time_ in ((job.path, *job.stamp), *job.data)
        for there in [Path(path).stat()]
    )


def _memory(job: Job) -> int:
    return job.memory or capacity.limit(job.bytes, capacity.cores())


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink(missing_ok=True)


def new_worker() -> Worker:
    """A worker for one file after the other: files at once are what uses the processors."""
    return Worker(dict.fromkeys(_THREADS, "1"))


def enter(crew: list[Worker]) -> None:
    """Give this thread a worker that `crew` knows too: who takes it out ends it for good."""
    _mine.worker, _mine.count, _mine.crew = new_worker(), 0, crew
    crew.append(_mine.worker)


def _worker() -> Worker:
    """This thread's."""
    if not hasattr(_mine, "worker"):
        enter([])
    worker: Worker = _mine.worker
    return worker


def _repair(job: Job, path: str, staged: Path) -> dict[str, Any]:
    """The fields of a row.

    What did not fit beside what others left is tried in a new process; what ended its process,
    with onnxruntime in one of its own, as `surgeon apply` has it: its end may be a finding.
    """
    worker = _worker()
    if _mine.count >= _LIFE:
        worker.close()
        _mine.count = 0
    _mine.count += 1
    found = _tried(job, path, staged)
    if found["outcome"] == "memory" and _mine.count > 1:
        worker.close()
        _mine.count = 1
        found = _tried(job, path, staged)
    if found["outcome"] == "crashed" and worker in _mine.crew:
        _mine.count = 1
        found = _tried(job, path, staged, apart=True)
    return found


def _tried(job: Job, path: str, staged: Path, *, apart: bool = False) -> dict[str, Any]:
    began = time.perf_counter()
    found = _told(job, path, staged, apart)
    return {"seconds": time.perf_counter() - began, **found}


def _told(job: Job, path: str, staged: Path, apart: bool) -> dict[str, Any]:
    memory = _memory(job)
    options = {**job.options, "apart": memory if apart else None}
    arguments = (path, str(staged), job.recipes, job.digests, options)
    try:
        found: dict[str, Any] = _worker().call(
            job.task, *arguments, timeout=job.timeout, memory=memory
        )
    except TimeUp:
        said = f"not done within {job.timeout:g} seconds"
        return {"outcome": "timeout", "reason": said, "mend": "Give it more with `--timeout`."}
    except MemoryUp:
        said = f"not done within {memory / (1 << 30):.3g} GiB of address space"
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
