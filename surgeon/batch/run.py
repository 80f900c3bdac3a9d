"""`batch`: looks at what was asked for, and gives a row for each file, as they come."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from surgeon import capacity, customops
from surgeon.batch.attempt import enter
from surgeon.batch.drive import Drive, Settings
from surgeon.batch.far import FarFolder, is_far, near, open_far
from surgeon.batch.identity import version
from surgeon.batch.publish import Folder, Target, can_write, folds_names, open_target
from surgeon.batch.reports import ROWS, rows_as_text
from surgeon.batch.row import Row
from surgeon.batch.sources import Source, find
from surgeon.batch.state import State
from surgeon.choices import (
    REQUIRED,
    check_by_name,
    check_choice,
    check_integer,
    check_options,
    check_reference,
    check_unasked,
    plain_shapes,
    several,
)
from surgeon.errors import OutputError, RecipeError
from surgeon.opening import fewer
from surgeon.recipe import Recipe
from surgeon.targets import target as runtime
from surgeon.targets.own import is_own, plain_target
from surgeon.workers import Worker

TIMEOUT = 600.0  # seconds for one file
RETRY = ("failed",)


class Run(Iterator[Row]):
    """A batch under way: gives a row for each file, as they come.

    A loop that may be left early stands in `with surgeon.batch(...) as run:`, or ends in `close`:
    else workers and the lock of the state stay until Python collects it.

    Attributes:
        total: How many files there are.
        target: DEST.
        state: The SQLite file that remembers results.
        aside: Folders that are links, and not entered, by name from SOURCE on.
    """

    def __init__(
        self,
        sources: Sequence[Source],
        settings: Settings,
        state: Path,
        executor: Executor | None,
        on_result: Callable[[Row], None] | None,
        aside: Sequence[str] = (),
    ) -> None:
        self.aside = tuple(aside)
        self.total, self.target, self.state = len(sources), settings.target, state
        self._settings, self._executor, self._on_result = settings, executor, on_result
        self._drive = Drive(sources, settings)
        self._rows = self._give()

    @property
    def in_hand(self) -> tuple[str, ...]:
        """The names of the files that are being repaired."""
        return self._drive.in_hand

    def __next__(self) -> Row:
        return next(self._rows)

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop: what is in hand is given up, what is done stays done."""
        close = getattr(self._rows, "close", None)
        if close is not None:
            close()

    def _give(self) -> Iterator[Row]:
        done: list[Row] = []
        with contextlib.ExitStack() as stack:
            staging = self._settings.staging
            self.target.prepare()
            state = State(self.state)
            stack.callback(state.close)
            shutil.rmtree(staging, ignore_errors=True)  # what a killed run left
            with can_write(staging):
                staging.mkdir()
            stack.callback(shutil.rmtree, staging, ignore_errors=True)
            self._drive.folds = isinstance(self.target, Folder) and folds_names(staging)
            executor = self._executor or stack.enter_context(_threads(self._settings.jobs))
            for row in self._drive.rows(executor, state):
                done.append(row)
                if self._on_result is not None:
                    self._on_result(row)
                yield row
            self.target.write(ROWS, rows_as_text(done))


def batch(
    source: str | os.PathLike[str],
    dest: str | os.PathLike[str],
    *recipes: str | os.PathLike[str],
    executor: Executor | None = None,
    on_result: Callable[[Row], None] | None = None,
    jobs: int | None = None,
    timeout: float | None = TIMEOUT,
    memory: int | None = None,
    state: str | os.PathLike[str] | None = None,
    force: bool = False,
    retry: str | None = None,
    only_changed: bool = False,
    shape: Mapping[str, Sequence[int | str]] | None = None,
    assume: str | Sequence[str] = (),
    values: Mapping[str, Any] | None = None,
    allow: str | Sequence[str] = (),
    without: str | Sequence[str] = (),
    keep: str | Sequence[str] = (),
    verify: bool = True,
    reference: str | None = None,
    require: str = "runs",
    keep_overridable: bool = False,
    strict: bool = False,
    opset: int | None = None,
    target: str | os.PathLike[str] | None = None,
) -> Run:
    """Repair many files, each in a worker process of its own time and memory.

    A second run does only what is new or changed, also after one that was killed. Identical files
    are repaired once. At the end, `report.jsonl` is written into `dest`.

    Args:
        source: A folder, a pattern, a model, or a text file that lists models; on this machine, or
            an address that fsspec knows (`s3://bucket/zoo`). Folders that are links are not
            entered.
        dest: The folder for the results, with the tree and the names of `source`; made at need.
        recipes: Bundled names or paths of YAML files, in order.
        executor: What runs the jobs; by default threads, each with a worker. It is not shut down.
            Where its processes are on other machines, they read and write the same paths and
            addresses. A file that it loses is given to it again, at most twice.
        on_result: Called with each row too.
        jobs: Files at once; by default as many as there are processors here. Large models wait for
            one another, so that what they need together fits into the memory (not on an executor).
        timeout: Seconds for one file; None for no limit.
        memory: Bytes of address space for one file; by default its share of the machine's memory.
        state: The SQLite file that remembers what was done; by default beside `dest`, or in the
            working folder where that is an address.
        force: Do every file again, and write over what others put into `dest`.
        retry: `failed` does again what failed in an earlier run.
        only_changed: Do not copy what needs no repair.
        shape: As in `surgeon.apply`; an input of this name is wanted in every file.
        assume: As in `surgeon.apply`.
        values: As in `surgeon.apply`, without arrays; every file wants these inputs.
        allow: As in `surgeon.apply`.
        without: As in `surgeon.apply`.
        keep: As in `surgeon.apply`; what a file does not have, its row names as `absent`.
        verify: As in `surgeon.apply`.
        reference: As in `surgeon.apply`, without recorded outputs: they belong to one model.
        require: As in `surgeon.apply`.
        keep_overridable: As in `surgeon.apply`.
        strict: As in `surgeon.apply`.
        opset: As in `surgeon.apply`.
        target: As in `surgeon.apply`: a runtime.

    Libraries of `with surgeon.custom_ops():` are loaded for every file, by their paths.

    Returns:
        An iterator of rows, which does the work while it is iterated.

    Raises:
        ModelError: There is no file to repair.
        RecipeError: A recipe or an option is wrong.
        OutputError: `dest` or the state cannot be written.
    """
    place = _target(near(os.fspath(source)), near(os.fspath(dest)))
    plans = [Recipe.load(os.fspath(name)) for name in _names(recipes)]
    assume, allow, without, keep = map(several, (assume, allow, without, keep))
    fewer(plans, without)
    if retry is not None:
        check_choice("retry", retry, RETRY)
    check_options(require, allow)
    check_integer("memory", memory)
    check_integer("jobs", jobs)
    check_integer("opset", opset)
    check_by_name(values=values)
    check_reference(reference)
    if not verify:
        check_unasked(require == REQUIRED[1], reference)
    target = plain_target(target)
    wanted = None if target is None else runtime(target)
    if target is not None and is_own(target):
        target = os.path.abspath(target)
    options = {
        "shape": {name: list(dims) for name, dims in plain_shapes(shape).items()},
        "assume": list(assume),
        "values": dict(values or {}),
        "allow": sorted(allow),
        "without": list(without),
        "keep": list(keep),
        "verify": verify,
        "reference": reference,
        "require": require,
        "keep_overridable": keep_overridable,
        "strict": strict,
        "opset": opset,
        "target": target,
        **({"custom_ops": libraries} if (libraries := list(customops.libraries())) else {}),
    }
    digests = tuple(plan.digest for plan in plans)
    remembered = _state(state, place)
    mark = hashlib.sha256(str(remembered).encode("utf-8", "surrogateescape")).hexdigest()[:8]
    settings = Settings(
        target=place,
        staging=(place.path if isinstance(place, Folder) else Path(tempfile.gettempdir()))
        / f".surgeon-{mark}",
        recipes=tuple(_absolute(name) for name in _names(recipes)),
        digests=digests,
        options=options,
        how=[digests, options, version(), *([] if wanted is None else wanted.told())],
        surgeon=version(),
        elsewhere=executor is not None,
        jobs=max(1, jobs or capacity.cores()),
        timeout=timeout,
        memory=memory,
        keeps=not only_changed,
        force=force,
        retry=retry == "failed",
    )
    leave_out = place.path if isinstance(place, Folder) else place.far.root
    aside: list[str] = []
    sources = find(source, leave_out=leave_out, aside=aside)
    return Run(sources, settings, remembered, executor, on_result, aside)


def _names(recipes: Sequence[str | os.PathLike[str]]) -> list[str]:
    wrong = next((r for r in recipes if not isinstance(r, (str, os.PathLike))), None)
    if wrong is not None or not recipes:
        what = "there is no recipe" if wrong is None else f"`{type(wrong).__name__}` is no name"
        raise RecipeError(
            what,
            where="batch",
            mend="Give bundled names or paths of YAML files: workers read them themselves.",
        )
    return [os.fspath(recipe) for recipe in recipes]


def _absolute(name: str) -> str:
    """A path that holds in every worker; a bundled name as it is."""
    return str(Path(name).absolute()) if Path(name).is_file() else name


def _target(source: str, dest: str) -> Target:
    """DEST.

    Raises:
        OutputError: It is a file, or results would be put among the sources.
    """
    if is_far(dest):
        target: Target = open_target(dest)
        assert isinstance(target, FarFolder)
        far = open_far(source) if is_far(source) else None
        root = f"{target.far.root}/"
        above = far is not None and far.fs == target.far.fs and f"{far.root}/".startswith(root)
    else:
        with can_write(Path(dest)):
            folder = Path(dest).resolve()
            if folder.exists() and not folder.is_dir():
                raise NotADirectoryError(errno.ENOTDIR, "it is a file")
        here = Path(source)
        above = not is_far(source) and here.exists() and here.resolve().is_relative_to(folder)
        target = Folder(folder)
    if above:
        raise OutputError(
            "DEST is SOURCE or holds it, and results would be put over the files that are read",
            where=dest,
            mend="Name another folder.",
        )
    return target


def _state(state: str | os.PathLike[str] | None, target: Target) -> Path:
    if state is not None:
        return Path(state).absolute()
    if isinstance(target, Folder):
        return target.path.with_name(f"{target.path.name}.surgeon.sqlite")
    last = re.sub(r"[^\w.-]", "_", target.address.rstrip("/").rpartition("/")[2])
    mark = hashlib.sha256(target.address.encode()).hexdigest()[:8]
    return Path.cwd() / f"{last}-{mark}.surgeon.sqlite"


@contextlib.contextmanager
def _threads(jobs: int) -> Iterator[Executor]:
    """Threads that each own a worker; when the run ends early, the workers end at once."""
    crew: list[Worker] = []
    pool = ThreadPoolExecutor(jobs, "surgeon-batch", initializer=enter, initargs=(crew,))
    try:
        yield pool
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        while crew:
            crew.pop().close()
        pool.shutdown(wait=True)
