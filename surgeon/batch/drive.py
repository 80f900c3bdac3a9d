"""The order of work: what an earlier run did, what is new, what waits for an identical file."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

from surgeon import capacity
from surgeon.batch import attempt
from surgeon.batch.attempt import Job
from surgeon.batch.identity import Identity, identify, key_of
from surgeon.batch.publish import publish, withdraw
from surgeon.batch.reports import RESERVED
from surgeon.batch.row import Row
from surgeon.batch.sources import Source
from surgeon.batch.state import Known, State
from surgeon.errors import ModelError, SurgeonError
from surgeon.worker import Worker

LISTING = "surgeon.batch.task:data_files"


@dataclass(frozen=True, slots=True)
class Settings:
    """What holds for every file of a batch.

    Attributes:
        dest: DEST, resolved.
        staging: A folder in DEST for files in the making.
        recipes: Names or absolute paths.
        digests: Of the recipes.
        options: Keyword arguments of `surgeon.apply`.
        how: All that decides what is done to a file, for its key.
        jobs: Files at once.
        timeout: Seconds for a file.
        memory: Bytes of address space for a file; None for what its size suggests.
        keeps: Whether unchanged models are copied.
        force: Forget what earlier runs did.
        retry: Do again what failed in an earlier run.
    """

    dest: Path
    staging: Path
    recipes: tuple[str, ...]
    digests: tuple[str, ...]
    options: Mapping[str, Any]
    how: Any
    jobs: int
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
        self.task = attempt.TASK
        self._scout = Worker()  # reads which external data a model states
        self._flying: dict[Future[dict[str, Any]], Job] = {}
        self._followers: dict[str, list[Job]] = {}
        self._made: set[str] = set()  # keys of this run's own results

    @property
    def in_hand(self) -> tuple[str, ...]:
        """The names of the files that are being repaired."""
        return tuple(job.name for job in self._flying.values())

    def rows(self, executor: Executor, state: State) -> Iterator[Row]:
        """A row for each source, as they come."""
        self.state = state
        with self._scout:
            for source in self.sources:
                begun = self._begin(source)
                if isinstance(begun, Row):
                    yield self._settled(begun)
                    continue
                leader = next((j for j in self._flying.values() if j.key == begun.key), None)
                if leader is not None:
                    self._followers.setdefault(begun.key, []).append(begun)
                    continue
                while not self._fits(begun):
                    yield from self._landed()
                self._submit(executor, begun)
            while self._flying:
                yield from self._landed()

    def _begin(self, source: Source) -> Row | Job:
        """What is known of a file already, or the job to do."""
        if source.fault:
            mend = "Name a SOURCE that holds the file itself."
            return Row(source.name, "refused", source.fault, mend)
        try:
            found = identify(source.path, self._locations)
        except OSError as error:
            why = f"cannot be read: {error.strerror or error}"
            return Row(source.name, "broken", why, "Check its permissions.")
        except ModelError as error:
            size = source.path.stat().st_size if source.path.exists() else 0
            return Row(source.name, "broken", error.what, error.mend, size=size)
        if clash := self._clash(source.name, found.locations):
            mend = "Rename the one or the other."
            return Row(source.name, "refused", clash, mend, size=found.stamp[0])
        job = self._job(source, found)
        known = self.state.known(job.key)
        if known is None or not self._holds(known, job):
            return job
        return self._reused(known.row, job) or job

    def _locations(self, path: Path) -> Sequence[str]:
        """The external data a model states; none where it cannot be read: its repair says why."""
        limit = self.settings.memory or capacity.limit(path.stat().st_size, self.settings.jobs)
        try:
            found: Sequence[str] = self._scout.call(
                LISTING, str(path), timeout=self.settings.timeout, memory=limit
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
        staging = self.settings.staging.name
        if any(PurePosixPath(each).parts[:1] == (staging,) for each in (name, *data)):
            return "it has the name of the batch's own folder"
        return ""

    def _job(self, source: Source, found: Identity) -> Job:
        the = self.settings
        return Job(
            task=self.task,
            path=str(source.path.absolute()),
            name=source.name,
            stamp=found.stamp,
            sha256=found.sha256,
            locations=found.locations,
            bytes=found.bytes,
            key=key_of(found, the.how),
            recipes=the.recipes,
            digests=the.digests,
            options=the.options,
            dest=str(the.dest),
            staging=str(the.staging),
            keeps=the.keeps,
            timeout=the.timeout,
            memory=the.memory or capacity.limit(found.bytes, the.jobs),
        )

    def _holds(self, known: Known, job: Job) -> bool:
        """Whether an earlier result is not to be made again."""
        if job.key in self._made:
            return True
        if self.settings.force or (self.settings.retry and not known.row.good):
            return False
        more_time = known.timeout is not None and (
            job.timeout is None or job.timeout > known.timeout
        )
        more_memory = known.memory is not None and (job.memory or 0) > known.memory
        short = {"timeout": more_time, "memory": more_memory}
        return not short.get(known.row.outcome, False)

    def _reused(self, row: Row, job: Job) -> Row | None:
        """The row of a file whose result is there, put into place; None where it is there no more.

        What an earlier run wrote for the same name, or an identical file, is taken.
        """
        dest, mine = self.settings.dest, self.settings.dest / job.name
        copied = row.outcome == "repaired" or (row.outcome == "unchanged" and job.keeps)
        if copied and not self._is_there(job, mine):
            result: Path | None = Path(job.path)
            if row.outcome == "repaired":
                twins = (n for n in self.state.with_key(job.key) if n != job.name)
                whole = (n for n in twins if self.state.is_ours(n, dest / n, job.key))
                result = next((dest / n for n in whole), None)
            if result is None:
                return None
            try:
                self._publish(result, job)
            except (SurgeonError, OSError) as error:
                what = error.what if isinstance(error, SurgeonError) else str(error.strerror)
                return Row(job.name, "failed", what, size=job.stamp[0], sha256=job.sha256)
            self.state.wrote(job.name, job.key, mine)
        fresh = job.key in self._made
        if row.name == job.name:
            return replace(row, fresh=fresh)
        return replace(row, name=job.name, same_as=row.name, seconds=0.0, fresh=fresh)

    def _is_there(self, job: Job, mine: Path) -> bool:
        """Whether the model and its data are in DEST as a run left them."""
        folder = mine.parent
        return self.state.is_ours(job.name, mine, job.key) and all(
            (folder / location).is_file() for location in job.locations
        )

    def _publish(self, result: Path, job: Job) -> None:
        publish(
            result,
            Path(job.path).parent,
            job.locations,
            dest=self.settings.dest,
            name=job.name,
            staging=self.settings.staging,
            moved=False,
        )

    def _fits(self, job: Job) -> bool:
        """Whether the machine takes one more: by number, and by the memory models need."""
        if not self._flying:
            return True
        if len(self._flying) >= self.settings.jobs:
            return False
        needed = sum(capacity.need(each.bytes) for each in (*self._flying.values(), job))
        return needed <= capacity.memory() * 0.8

    def _submit(self, executor: Executor, job: Job) -> None:
        mine = self.settings.dest / job.name
        if not os.path.lexists(mine) or self.state.is_ours(job.name, mine):
            self.state.intend(job.name, job.key)
        self._flying[executor.submit(attempt.attempt, job)] = job

    def _landed(self) -> Iterator[Row]:
        """The rows of the files that are done, at least one; and of those that waited for them."""
        done, _ = wait(self._flying, return_when=FIRST_COMPLETED)
        for future in sorted(done, key=lambda each: self._flying[each].name):
            job = self._flying.pop(future)
            row = self._row(job, future)
            self._remember(job, row)
            yield self._settled(row)
            for other in self._followers.pop(job.key, ()):
                yield self._settled(self._reused(row, other) or self._lost(other))

    def _row(self, job: Job, future: Future[dict[str, Any]]) -> Row:
        try:
            fields = future.result()
        except Exception as error:  # the executor's own: a process of it died, say
            fields = {
                "outcome": "failed",
                "reason": f"the executor lost it: {type(error).__name__}: {error}",
                "mend": "Run the batch again.",
            }
        return Row(name=job.name, size=job.stamp[0], sha256=job.sha256, **fields)

    def _remember(self, job: Job, row: Row) -> None:
        """Keep what the file is to blame for, or to thank; another failure is tried again."""
        if row.outcome == "failed":
            return
        if row.outcome == "repaired" or (row.outcome == "unchanged" and job.keeps):
            self.state.wrote(job.name, job.key, self.settings.dest / job.name)
        self.state.keep(job.key, row, job.timeout, job.memory)
        self._made.add(job.key)

    def _lost(self, job: Job) -> Row:
        mend = "Run the batch again."
        said = "the identical file's result is there no more"
        return Row(job.name, "failed", said, mend, size=job.stamp[0], sha256=job.sha256)

    def _settled(self, row: Row) -> Row:
        """See that no result of an earlier state of the file stays where none is now."""
        copied = row.outcome == "repaired" or (row.outcome == "unchanged" and self.settings.keeps)
        if not copied and self.state.is_ours(row.name, self.settings.dest / row.name):
            withdraw(self.settings.dest, row.name)
            self.state.forget(row.name)
        return row
