"""`batch`: looks at what was asked for, and gives a row for each file, as they come."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from pathlib import Path

from surgeon import capacity
from surgeon.batch.attempt import enter
from surgeon.batch.drive import Drive, Settings
from surgeon.batch.reports import write_rows
from surgeon.batch.row import Row
from surgeon.batch.sources import Source, find
from surgeon.batch.state import State
from surgeon.errors import OutputError, RecipeError
from surgeon.provenance import version
from surgeon.recipe import Recipe
from surgeon.worker import Worker

TIMEOUT = 600.0  # seconds for one file
RETRY = ("failed",)


class Run(Iterator[Row]):
    """A batch under way: gives a row for each file, as they come.

    Attributes:
        total: How many files there are.
        dest: DEST, resolved.
        state: The SQLite file that remembers results.
    """

    def __init__(
        self,
        sources: Sequence[Source],
        settings: Settings,
        state: Path,
        executor: Executor | None,
        on_result: Callable[[Row], None] | None,
    ) -> None:
        self.total, self.dest, self.state = len(sources), settings.dest, state
        self._settings, self._executor, self._on_result = settings, executor, on_result
        self._drive = Drive(sources, settings)
        self._rows = self._give()

    @property
    def in_hand(self) -> tuple[str, ...]:
        """The names of the files that are being repaired."""
        return self._drive.in_hand

    def __next__(self) -> Row:
        return next(self._rows)

    def close(self) -> None:
        """Stop: what is in hand is given up, what is done stays done."""
        close = getattr(self._rows, "close", None)
        if close is not None:
            close()

    def _give(self) -> Iterator[Row]:
        done: list[Row] = []
        with contextlib.ExitStack() as stack:
            staging = self._settings.staging
            with _writable(self.dest):
                self.dest.mkdir(parents=True, exist_ok=True)
            state = State(self.state)
            stack.callback(state.close)
            shutil.rmtree(staging, ignore_errors=True)  # what a killed run left
            with _writable(self.dest):
                staging.mkdir()
            stack.callback(shutil.rmtree, staging, ignore_errors=True)
            executor = self._executor or stack.enter_context(_threads(self._settings.jobs))
            for row in self._drive.rows(executor, state):
                done.append(row)
                if self._on_result is not None:
                    self._on_result(row)
                yield row
        write_rows(done, self.dest)


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
    assume: Sequence[str] = (),
    allow: Sequence[str] = (),
    verify: bool = True,
    reference: str | None = None,
    require: str = "runs",
    keep_overridable: bool = False,
) -> Run:
    """Repair many files, each in a worker process of its own time and memory.

    A second run does only what is new or changed, also after one that was killed. Identical files
    are repaired once. At the end, `report.jsonl` is written into `dest`.

    Args:
        source: A folder, a pattern, a model, or a text file that lists models.
        dest: The folder for the results, with the tree and the names of `source`; made at need.
        recipes: Bundled names or paths of YAML files, in order.
        executor: What runs the jobs; by default threads, each with a worker. It is not shut down.
        on_result: Called with each row too.
        jobs: Files at once; by default as many as there are processors. Large models wait for
            one another, so that what they need together fits into the memory.
        timeout: Seconds for one file; None for no limit.
        memory: Bytes of address space for one file; by default its share of the machine's memory.
        state: The SQLite file that remembers what was done; by default beside `dest`.
        force: Do every file again.
        retry: `failed` does again what failed in an earlier run.
        only_changed: Do not copy what needs no repair.
        shape: As in `surgeon.apply`; an input of this name is wanted in every file.
        assume: As in `surgeon.apply`.
        allow: As in `surgeon.apply`.
        verify: As in `surgeon.apply`.
        reference: As in `surgeon.apply`, without recorded outputs: they belong to one model.
        require: As in `surgeon.apply`.
        keep_overridable: As in `surgeon.apply`.

    Returns:
        An iterator of rows, which does the work while it is iterated.

    Raises:
        ModelError: There is no file to repair.
        RecipeError: A recipe or an option is wrong.
        OutputError: `dest` or the state cannot be written.
    """
    target = _target(Path(source), Path(dest))
    plans = [Recipe.load(os.fspath(name)) for name in _names(recipes)]
    if retry is not None and retry not in RETRY:
        raise RecipeError(f"`{retry}` cannot be retried", where="retry", mend="Write `failed`.")
    options = {
        "shape": {name: list(dims) for name, dims in (shape or {}).items()},
        "assume": list(assume),
        "allow": sorted(allow),
        "verify": verify,
        "reference": reference,
        "require": require,
        "keep_overridable": keep_overridable,
    }
    digests = tuple(plan.digest for plan in plans)
    remembered = _state(state, target)
    mark = hashlib.sha256(str(remembered).encode("utf-8", "surrogateescape")).hexdigest()[:8]
    settings = Settings(
        dest=target,
        staging=target / f".surgeon-{mark}",
        recipes=tuple(_absolute(name) for name in _names(recipes)),
        digests=digests,
        options=options,
        how=[digests, options, version()],
        jobs=max(1, jobs or capacity.cores()),
        timeout=timeout,
        memory=memory,
        keeps=not only_changed,
        force=force,
        retry=retry == "failed",
    )
    return Run(find(source, leave_out=target), settings, remembered, executor, on_result)


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


def _target(source: Path, dest: Path) -> Path:
    """DEST, resolved.

    Raises:
        OutputError: It is a file, or results would be put among the sources.
    """
    with _writable(dest):
        target = dest.resolve()
        if target.exists() and not target.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, "it is a file")
    if source.exists() and source.resolve().is_relative_to(target):
        raise OutputError(
            "DEST is SOURCE or holds it, and results would be put over the files that are read",
            where=str(dest),
            mend="Name another folder.",
        )
    return target


@contextlib.contextmanager
def _writable(dest: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, RuntimeError) as error:
        raise OutputError(
            f"the folder cannot be made or written to: {getattr(error, 'strerror', None) or error}",
            where=str(dest),
            mend="Name another DEST, or check the permissions.",
        ) from None


def _state(state: str | os.PathLike[str] | None, target: Path) -> Path:
    if state is not None:
        return Path(state).absolute()
    return target.with_name(f"{target.name}.surgeon.sqlite")


@contextlib.contextmanager
def _threads(jobs: int) -> Iterator[Executor]:
    """Threads that each own a worker; when the run ends early, the workers end at once."""
    crew: list[Worker] = []
    pool = ThreadPoolExecutor(jobs, "surgeon-batch", initializer=enter, initargs=(crew,))
    try:
        yield pool
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        for worker in crew:
            worker.close()
        pool.shutdown(wait=True)
