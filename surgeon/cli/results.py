"""What came of a repair: its report, as text, page or JSON, and where the result is."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from surgeon.cli.console import Desk
from surgeon.errors import few

if TYPE_CHECKING:
    from rich.console import RenderableType

    from surgeon.errors import SurgeonError
    from surgeon.report import Report
    from surgeon.surgery import Result
    from surgeon.verify import Verdict

_MUCH = 1 << 20  # bytes that a result may take beyond its model, and nothing is said


class Told(NamedTuple):
    """A report, and what came of it.

    Attributes:
        report: What was done to the model.
        saved: The file that was written; None where none was.
        error: What ended the command, if anything.
        more: What the command found beside it.
    """

    report: Report
    saved: Path | None = None
    error: SurgeonError | None = None
    more: Mapping[str, Any] = MappingProxyType({})

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        saved = self.saved and str(self.saved)
        found = {**self.report.to_dict(), **self.more, "saved": saved}
        return found | ({"error": self.error.to_dict()} if self.error is not None else {})


def save(
    result: Result,
    target: Path,
    carried: Mapping[str, Any],
    report_to: Path | None,
    *,
    dry_run: bool,
) -> None:
    """Save a result, its data as `carrying` says; where that fails its report is written anyway.

    Raises:
        SurgeonError: As of `Model.save`, also where nothing is to be written.
        OutputError: The report has the name of a data file of the result.
    """
    from surgeon.errors import SurgeonError

    if report_to is not None:
        _see_apart(report_to, result, target, carried["external_name"])
    try:
        result.model.save(target, dry_run=dry_run, **carried)
    except SurgeonError as error:
        write_report(Told(result.report, error=error), report_to)
        raise


def _see_apart(report_to: Path, result: Result, target: Path, name: str | None) -> None:
    """See that a report does not take the place of weights.

    Raises:
        OutputError: It would.
    """
    from surgeon.errors import OutputError
    from surgeon.external import external_tensors, locations

    names = {name or "", *locations(external_tensors(result.model.proto))} - {""}
    own = {os.path.normpath(target.stem + "." + each) for each in names}  # as `copy` calls them
    for each in sorted(names | own):
        if os.path.realpath(target.parent / each) == os.path.realpath(report_to):
            raise OutputError(
                f"the report has the name of the data file `{each[:200]}`",
                where=str(report_to),
                mend="Name two different files.",
            )


@contextlib.contextmanager
def reported(told: Told, target: Path | None) -> Iterator[None]:
    """Write a report once all in here went well, but see before that it can be written.

    Where it cannot, nothing in here is done: an output that was there stays as it was.
    """
    from surgeon.files import prepared

    with contextlib.ExitStack() as stack:
        if target is not None:
            stack.enter_context(prepared(target, _written(told, target)))
        yield


def show_ended(place: Desk, error: SurgeonError, report_to: Path | None, *, as_json: bool) -> None:
    """Show and write the report of a run that an error ended, where it has one."""
    from surgeon.report import Report

    if isinstance(error.report, Report):
        told = Told(error.report, error=error)
        write_report(told, report_to)
        show(place, told, as_json=as_json)


def show(place: Desk, told: Told, *, as_json: bool) -> None:
    """Show a report, or print it as JSON."""
    if as_json:
        place.data(json.dumps(told.to_dict(), indent=2, default=str))
    elif place.is_heard:
        place.show(_rendered(told, verbose=place.verbose))


def _rendered(told: Told, *, verbose: bool) -> RenderableType:
    from rich.console import Group

    from surgeon import render

    ended = told.error is not None
    end = ["\nNothing was saved"] if ended else []
    return Group(render.report(told.report, verbose=verbose, ended=ended), *end)


def write_report(told: Told, target: Path | None) -> None:
    """Write a report, as the ending of the file's name says; nothing where none is wanted."""
    if target is not None:
        from surgeon.files import write_whole

        write_whole(target, _written(told, target))


def _written(told: Told, target: Path) -> bytes:
    """A report in the form that the ending of the file's name says."""
    from surgeon import render

    form = target.suffix.lower()
    if form == ".json":
        text = json.dumps(told.to_dict(), indent=2, default=str)
    else:
        write = render.html if form == ".html" else render.text
        text = write(_rendered(told, verbose=True))
    return text.encode("utf-8", "backslashreplace")


def say_doubts(place: Desk, report: Report) -> None:
    """What failed on the way, was refused, or stays open: said even to who wants quiet."""
    doubts = list(report.failures)
    if refused := list(dict.fromkeys(f"{each.recipe}/{each.rule}" for each in report.refusals)):
        number = len(report.refusals)
        doubts.append(
            f"{number} rewrite{'s' * (number > 1)} refused, with which the result would differ: "
            f"{few(refused)}"
        )
    for doubt in doubts:
        place.doubt(doubt)
    say_unshown(place, report.verdict)


def say_unshown(place: Desk, verdict: Verdict | None) -> None:
    """That what is saved was not compared, or not wholly."""
    if verdict is not None and verdict.status == "runs":
        place.doubt(f"not shown to be equivalent: {verdict.detail}")


def _growth(result: Result, files: Sequence[Path]) -> int:
    """How many bytes the files of a result take beyond what the model did."""
    from surgeon.external import bytes_outside

    before = result.model.proto
    after = sum(each.stat().st_size for each in files)
    size: int = before.ByteSize() + bytes_outside(before)
    return after - size


def _beside(result: Result, saved: Path) -> list[Path]:
    """The data files that a saved model refers to."""
    if not result.model.sound.outside:
        return []
    from surgeon.external import external_tensors, locations
    from surgeon.model import Model

    there = sorted(locations(external_tensors(Model.load(saved).proto)))
    return [saved.parent / name for name in there]


def say_saved(place: Desk, target: Path, *, dry_run: bool) -> None:
    """Where a part of a model is, or that it is nowhere."""
    from surgeon import render

    if dry_run:
        place.show("\nNothing was written: --dry-run")
    else:
        size = render.size(target.stat().st_size)
        place.show(f"\nSaved {render.clean(target)}, {size}")


def say_end(
    place: Desk, result: Result, saved: Path | None, backup: Path | None, *, dry_run: bool
) -> None:
    """Where the result is, if anywhere."""
    if not place.is_heard:
        return
    from rich.text import Text

    from surgeon import render

    if saved is not None:
        said = f"Saved {render.clean(saved)}, {render.size(saved.stat().st_size)}"
        said += "" if result.model.changed else ": the graph as it was"
        data = _beside(result, saved)
        for each in data:
            name = render.clean(os.path.relpath(each, saved.parent))
            said += f"\nIt needs {name} ({render.size(each.stat().st_size)}) beside it"
        if (more := _growth(result, [saved, *data])) > _MUCH:
            said += (
                f"\nIt takes {render.size(more)} more than the model: of weights that stand twice, "
                "or turned, `share-weights` keeps one"
            )
    else:
        said = "Nothing was written: " + ("--dry-run" if dry_run else "nothing was changed")
    if backup is not None:
        said += f"\nThe input as it was: {render.clean(backup)}"
    if not result.model.changed:
        said += "\nWhy each rule did not fire: surgeon explain RECIPE MODEL"
    place.show(Text(f"\n{said}", style="bold"))
