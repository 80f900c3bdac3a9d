"""The order of work: what an earlier run did, what is new, what waits for an identical file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Executor, Future, wait
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

from surgeon import capacity
from surgeon.batch import attempt
from surgeon.batch.attempt import Done, Job
from surgeon.batch.far import Stamp, alike, open_far, same_stamp
from surgeon.batch.identity import Identity, identify, identify_far, key_of
from surgeon.batch.publish import Folder, Target
from surgeon.batch.reports import RESERVED
from surgeon.batch.row import Row
from surgeon.batch.sources import Source
from surgeon.batch.state import Known, State
from surgeon.errors import ModelError, SurgeonError
from surgeon.wire import check_size

AGAIN = 2  # how often a file is tried anew that the executor lost


@dataclass(frozen=True, slots=True)
class Settings:
    """What holds for every file of a batch.

    Attributes:
        target: DEST.
        staging: A folder for files in the making, in DEST where that is on this machine.
        recipes: Names or absolute paths.
        digests: Of the recipes.
        options: Keyword arguments of `surgeon.apply`, and libraries of custom operators.
        how: All that decides what is done to a file, for its key.
        surgeon: The version that does it.
        jobs: Files at once.
        elsewhere: Whether the executor is the caller's: its machines may be others.
        timeout: Seconds for a file.
        memory: Bytes of address space for a file; None for what its size suggests.
        keeps: Whether unchanged models are copied.
        force: Forget what earlier runs did.
        retry: Do again what failed in an earlier run.
    """

    target: Target
    staging: Path
    recipes: tuple[str, ...]
    digests: tuple[str, ...]
    options: Mapping[str, Any]
    how: Any
    surgeon: str
    jobs: int
    elsewhere: bool
    timeout: float | None
    memory: int | None
    keeps: bool
    force: bool
    retry: bool


class Drive:
    """Goes through the sources in order, with as many in hand as the machine takes."""

    def __init__(self, sources: Sequence[Source], settings: Settings) -> None:
        self.sources, self.settings = sources, settings
        self.names = frozenset(source.name for source in sources)
        self.folds = False  # whether DEST takes two names for one that differ in case alone
        self._folded = Counter(name.casefold() for name in self.names)
        self.task = attempt.TASK
        self._scout = attempt.new_worker()  # reads which external data a model states
        self._flying: dict[Future[Done], Job] = {}
        self._lost: Counter[str] = Counter()  # how often the executor lost a file, by name
        self._followers: dict[str, list[Job]] = {}
        self._made: set[str] = set()  # keys of this run's own results
        self._alike = Counter(alike(source.stamp) for source in sources if source.url)
        self._first: dict[
            str, Job
        ] = {}  # by the key of a content, the far file that has its result

    @property
    def in_hand(self) -> tuple[str, ...]:
        """The names of the files that are being repaired."""
        return tuple(job.name for job in self._flying.values())

    def rows(self, executor: Executor, state: State) -> Iterator[Row]:
        """A row for each source, as they come."""
        self.state, self.executor = state, executor
        try:
            with self._scout:
                for source in self.sources:
                    yield from self._take(source)
                while self._flying:
                    yield from self._landed()
        finally:
            for future in self._flying:  # given up: whoever has not begun need not
                future.cancel()

    def _take(self, source: Source) -> Iterator[Row]:
        """Begin with a file, after others where there is no room; the rows that come of that."""
        begun = self._begin(source)
        if isinstance(begun, Row):
            yield self._settled(begun)
            return
        if any(job.key == begun.key for job in self._flying.values()):
            self._followers.setdefault(begun.key, []).append(begun)
            return
        while not self._fits(begun):
            yield from self._landed()
        mine = self.settings.target.stamp(begun.name)
        if mine is None or self.state.is_ours(begun.name, mine):
            self.state.begin(begun.name)
        self._submit(begun)

    def _begin(self, source: Source) -> Row | Job:
        """What is known of a file already, or the job to do."""
        if source.fault:
            mend = "Name a SOURCE that holds the file itself."
            return Row(source.name, "refused", source.fault, mend)
        path = Path(source.path)
        try:
            if source.url:
                check_size(source.stamp[0], path)
                found = identify_far(source.url, source.path, source.stamp)
            else:
                found = identify(path, self._locations)
        except OSError as error:
            why = f"cannot be read: {error.strerror or error}"
            return Row(source.name, "broken", why, "Check its permissions.")
        except ModelError as error:
            size = source.stamp[0] if source.url else path.stat().st_size if path.exists() else 0
            return Row(source.name, "broken", error.what, error.mend, size=size)
        if clash := self._clash(source.name, found.locations):
            mend = "Rename the one or the other."
            return Row(source.name, "refused", clash, mend, size=found.stamp[0])
        if self._is_others(source.name):
            why = "DEST holds a file of this name that this batch did not write"
            mend = "Name another DEST, move that file away, or write over it with `--force`."
            return Row(source.name, "failed", why, mend, size=found.stamp[0])
        job = self._job(source, found)
        known = self.state.known(job.key)
        row = self._reused(known.row, job) if known and self._holds(known, job) else None
        if row is None:
            return replace(job, looks=bool(source.url) and self._alike[alike(source.stamp)] > 1)
        if known and source.url and not known.data:
            self._first.setdefault(self._content(job, row.sha256), job)
        return row

    def _content(self, job: Job, sha256: str) -> str:
        """The key of what a file without external data holds, wherever it lies."""
        return key_of(Identity(sha256, job.stamp, (), ()), self.settings.how)

    def _locations(self, path: Path) -> Sequence[str]:
        """The external data a model states; none where it cannot be read: its repair says why."""
        limit = self.settings.memory or capacity.limit(path.stat().st_size, self.settings.jobs)
        try:
            found: Sequence[str] = self._scout.call(
                attempt.LISTING, str(path), timeout=self.settings.timeout, memory=limit
            )
        except SurgeonError:
            return ()
        return found

    def _clash(self, name: str, locations: Sequence[str]) -> str:
        """Why a file and its data cannot both be put into DEST; empty where they can."""
        folder = PurePosixPath(name).parent
        data = {(folder / location).as_posix() for location in locations}
        if name in RESERVED or data & set(RESERVED):
            return "it has the name of the batch's own report"
        if taken := sorted(data & self.names):
            return f"its data file `{taken[0][:200]}` is a model of this batch"
        if self.folds and self._folded[name.casefold()] > 1:
            return "another model's name differs in case alone, which DEST takes for the same"
        staging = self.settings.staging.name
        if any(PurePosixPath(each).parts[:1] == (staging,) for each in (name, *data)):
            return "it has the name of the batch's own folder"
        return ""

    def _is_others(self, name: str) -> bool:
        """Whether what stands in DEST was never written by this batch.

        What was is made anew where it changed. Of a far DEST the state may be lost: it counts as
        the batch's own.
        """
        target, state = self.settings.target, self.state
        if self.settings.force or not isinstance(target, Folder) or state.knows(name):
            return False
        return target.stamp(name) is not None

    def _job(self, source: Source, found: Identity) -> Job:
        the = self.settings
        return Job(
            task=self.task,
            surgeon=the.surgeon,
            url=source.url,
            path=source.path if source.url else str(Path(source.path).absolute()),
            name=source.name,
            stamp=found.stamp,
            sha256=found.sha256,
            locations=found.locations,
            data=() if source.url else found.data,
            bytes=found.bytes,
            key=key_of(found, the.how),
            recipes=the.recipes,
            digests=the.digests,
            options=the.options,
            dest=the.target.address,
            staging=str(the.staging) if isinstance(the.target, Folder) else "",
            keeps=the.keeps,
            timeout=the.timeout,
            memory=the.memory or (None if the.elsewhere else capacity.limit(found.bytes, the.jobs)),
        )

    def _holds(self, known: Known, job: Job) -> bool:
        """Whether an earlier result is not to be made again."""
        if job.key in self._made:
            return True
        if self.settings.force or (self.settings.retry and not known.row.good):
            return False
        if any(not same_stamp(stamp, open_far(job.url).stamp(path)) for path, stamp in known.data):
            return False
        more_time = known.timeout is not None and (
            job.timeout is None or job.timeout > known.timeout
        )
        more_memory = known.memory is not None and (job.memory or 0) > known.memory
        short = {"timeout": more_time, "memory": more_memory}
        return not short.get(known.row.outcome, False)

    def _reused(self, row: Row, job: Job, key: str = "") -> Row | None:
        """The row of a file whose result is there, put into place; None where it is there no more.

        What an earlier run wrote for the same name, or an identical file, is taken.

        Args:
            row: The result.
            job: What would be done.
            key: Of the result, where an identical far file has it.
        """
        target, key = self.settings.target, key or job.key
        copied = row.outcome == "repaired" or (row.outcome == "unchanged" and job.keeps)
        if copied and not self._is_there(job):
            if job.url and key == job.key:  # its data may be gone from here: fetched again with it
                return None
            try:
                stamp = self._put(row, job, key)
            except (SurgeonError, OSError) as error:
                what = error.what if isinstance(error, SurgeonError) else str(error.strerror)
                return Row(job.name, "failed", what, size=job.stamp[0], sha256=job.sha256)
            if stamp is None:
                return None
            target.note(job.name, stamp)
            self.state.wrote(job.name, job.key, stamp)
        fresh = key in self._made
        if row.name == job.name:
            return replace(row, fresh=fresh)
        mine = replace(row, name=job.name, same_as=row.name, seconds=0.0, fresh=fresh)
        if key != job.key:
            self._keep(job, Known(mine, job.timeout, job.memory))
        return mine

    def _keep(self, job: Job, known: Known) -> None:
        self.state.keep(job.key, known)
        self._made.add(job.key)

    def _put(self, row: Row, job: Job, key: str) -> Stamp | None:
        """Put a known result into its place; None where it is nowhere to be had."""
        target, path, staging = self.settings.target, Path(job.path), self.settings.staging
        if row.outcome == "unchanged" and not job.url:
            return target.publish(
                path, path.parent, job.locations, name=job.name, staging=staging, moved=False
            )
        twins = (name for name in self.state.with_key(key) if name != job.name)
        whole = (name for name in twins if self.state.is_ours(name, target.stamp(name), key))
        twin = next(whole, None)
        if twin is None:
            return None
        return target.twin(twin, path.parent, job.locations, name=job.name, staging=staging)

    def _is_there(self, job: Job) -> bool:
        """Whether the model and its data are in DEST as a run left them."""
        target, folder = self.settings.target, PurePosixPath(job.name).parent
        return self.state.is_ours(job.name, target.stamp(job.name), job.key) and all(
            target.has((folder / location).as_posix()) for location in job.locations
        )

    def _fits(self, job: Job) -> bool:
        """Whether the machine takes one more: by number, and by the memory models need."""
        if not self._flying:
            return True
        if len(self._flying) >= self.settings.jobs:
            return False
        if self.settings.elsewhere:
            return True
        needed = sum(capacity.need(each.bytes) for each in (*self._flying.values(), job))
        return needed <= capacity.memory() * 0.8

    def _submit(self, job: Job) -> None:
        try:
            future = self.executor.submit(attempt.attempt, job)
        except Exception as error:  # the executor's own: it is broken, or shut down
            future = Future()
            future.set_exception(error)
        self._flying[future] = job

    def _landed(self) -> Iterator[Row]:
        """The rows of the files that are done; and of those that waited for them."""
        ready, _ = wait(self._flying, return_when=FIRST_COMPLETED)
        for future in sorted(ready, key=lambda each: self._flying[each].name):
            job = self._flying.pop(future)
            try:
                done = future.result()
            except (Exception, CancelledError) as error:  # a machine or a process of it died, say
                self._lost[job.name] += 1
                if self._lost[job.name] <= AGAIN:
                    self._submit(job)
                    continue
                done = Done(_given_up(error))
            if done.looked:
                yield from self._seen(replace(job, looks=False, sha256=done.sha256))
                continue
            row = Row(
                name=job.name,
                size=job.stamp[0],
                sha256=done.sha256 or job.sha256,
                **done.fields,
            )
            self._remember(job, row, done)
            yield self._settled(row)
            for other in self._followers.pop(job.key, ()):
                if other.url and job.key not in self._made:  # that one alone may have been missing
                    self._submit(other)
                    continue
                yield self._settled(self._reused(row, other, job.key) or _orphan(other))

    def _seen(self, job: Job) -> Iterator[Row]:
        """Go on with a far file whose bytes are known now: an identical one has its result."""
        content = self._content(job, job.sha256)
        first = self._first.setdefault(content, job)
        if any(each.key == first.key for each in self._flying.values()):
            self._followers.setdefault(first.key, []).append(job)
            return
        known = self.state.known(first.key) if first is not job else None
        row = self._reused(known.row, job, first.key) if known else None
        if row is None:
            self._first[content] = job
            self._submit(job)
        else:
            yield self._settled(row)

    def _remember(self, job: Job, row: Row, done: Done) -> None:
        """Keep what the file is to blame for, or to thank; another failure is tried again."""
        if row.outcome == "failed" or not done.lasts:
            return
        if done.written is not None:
            self.settings.target.note(job.name, done.written)
            self.state.wrote(job.name, job.key, done.written)
        self._keep(job, Known(row, job.timeout, job.memory, done.data))

    def _settled(self, row: Row) -> Row:
        """See that no result of other bytes than the file has now stays where none is made.

        One of the same bytes stays, as `surgeon apply` leaves what was there when it fails.
        """
        target = self.settings.target
        copied = row.outcome == "repaired" or (row.outcome == "unchanged" and self.settings.keeps)
        if copied:
            return row
        ours = self.state.is_ours(row.name, target.stamp(row.name))
        self.state.end(row.name)
        if not ours:
            return row
        if not row.good and row.sha256 and self.state.source_of(row.name) == row.sha256:
            return replace(row, earlier=True)
        target.withdraw(row.name)
        self.state.forget(row.name)
        return row


def _given_up(error: BaseException) -> dict[str, Any]:
    what = " ".join(f"{type(error).__name__}: {error}".split())[:300]
    return {
        "outcome": "failed",
        "reason": f"the executor lost it {AGAIN + 1} times: {what}",
        "mend": "Run the batch again.",
    }


def _orphan(job: Job) -> Row:
    mend = "Run the batch again."
    said = "the identical file's result is there no more"
    return Row(job.name, "failed", said, mend, size=job.stamp[0], sha256=job.sha256)
