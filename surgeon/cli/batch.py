"""`surgeon batch`: recipes on folders of models."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from surgeon.cli import options
from surgeon.cli.cluster import connected
from surgeon.cli.console import Desk, UsageError, desk
from surgeon.cli.customs import CustomOps
from surgeon.cli.shares import percent_of
from surgeon.cli.targets import check_order
from surgeon.errors import RecipeError, few

if TYPE_CHECKING:
    from surgeon.batch import Row
    from surgeon.batch.publish import Target
    from surgeon.batch.run import Run

SHORT = 1  # exit code where too many files failed

Places = Annotated[
    list[str],
    typer.Argument(
        metavar="RECIPE... SOURCE DEST",
        help="One or more recipes (bundled names or YAML files); a folder, a pattern in quotes or "
        "a text file that lists models (folders that are links are not entered); and the folder "
        "for the results. Both may be addresses that fsspec knows, such as `s3://bucket/zoo`.",
        autocompletion=options.recipe_names,
        show_default=False,
    ),
]


class Again(StrEnum):
    """What is done again although an earlier run did it."""

    FAILED = "failed"


class Way(StrEnum):
    """What each result is compared with."""

    ONNXRUNTIME = "onnxruntime"
    WITNESS = "witness"
    TORCH = "torch"


def _option(*names: str, panel: str = "Running", **rest: Any) -> Any:
    return typer.Option(*names, rich_help_panel=panel, **rest)


Jobs = Annotated[
    int | None,
    _option(
        "-j", "--jobs", min=1, help="How many files at once; by default one for each processor."
    ),
]
Timeout = Annotated[float, _option("--timeout", min=0.1, metavar="SECONDS", help="For one file.")]
Memory = Annotated[
    str | None,
    _option(
        "--memory",
        metavar="SIZE",
        help="Address space for one file, such as `8G`; by default its share of the machine's "
        "memory.",
    ),
]
Cluster = Annotated[
    str | None,
    _option(
        "--cluster",
        metavar="ADDRESS",
        help="A running Dask cluster, such as `tcp://10.0.0.1:8786`, that sees SOURCE and DEST.",
    ),
]
StateFile = Annotated[
    Path | None,
    _option(
        "--state",
        metavar="FILE",
        help="The file that remembers results; by default beside DEST, or in this folder where "
        "DEST is remote.",
    ),
]
Force = Annotated[
    bool, _option("--force", help="Do every file again, and write over what others put into DEST.")
]
Retry = Annotated[
    Again | None,
    _option(
        "--retry",
        help="`failed`: redo every file that an earlier run neither repaired nor found unchanged.",
    ),
]
OnlyChanged = Annotated[
    bool,
    _option("--only-changed", panel="Output", help="Do not copy models that need no repair."),
]
FailUnder = Annotated[
    str,
    _option(
        "--fail-under",
        panel="Output",
        metavar="PERCENT",
        help="Exit with 0 if at least this share of the files, such as `95%`, is repaired or "
        "needed nothing.",
    ),
]
AsJson = Annotated[
    bool,
    _option(
        "--json",
        panel="Output",
        help="Print the rows of DEST/report.jsonl, a line of JSON for each file.",
    ),
]
NoVerify = Annotated[
    bool, _option("--no-verify", panel="Checking", help="Save without comparing the models.")
]
Require = Annotated[
    options.Required,
    _option(
        "--require",
        panel="Checking",
        help="`equivalent` refuses results that could not be compared.",
    ),
]
Reference = Annotated[
    Way | None,
    _option("--reference", panel="Checking", help="What each result is compared with."),
]


def batch(
    places: Places,
    jobs: Jobs = None,
    custom_ops: CustomOps = None,
    timeout: Timeout = 600.0,
    memory: Memory = None,
    cluster: Cluster = None,
    state: StateFile = None,
    force: Force = False,
    retry: Retry = None,
    only_changed: OnlyChanged = False,
    fail_under: FailUnder = "100%",
    shape: options.Shape = None,
    assume: options.Assume = None,
    value: options.Value = None,
    keep_overridable: options.KeepOverridable = False,
    opset: options.Opset = None,
    fitted: options.Fitted = None,
    allow: options.Allow = None,
    without: options.Without = None,
    keep: options.Keep = None,
    reference: Reference = None,
    require: Require = options.Required.RUNS,
    strict: options.Strict = False,
    no_verify: NoVerify = False,
    as_json: AsJson = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
    log_file: options.LogFile = None,
) -> None:
    """Mend many models, each in a process of its own, and report on all of them in DEST.

    surgeon batch aten zoo/ mended/
    """
    with desk(
        quiet=quiet, verbose=verbose, as_json=as_json, log_file=log_file, custom_ops=custom_ops
    ) as place:
        recipes, source, dest = _split(places)
        wanted = percent_of(fail_under)
        arguments: dict[str, Any] = {
            "jobs": jobs,
            "timeout": timeout,
            "memory": options.read_size(memory),
            "state": state,
            "force": force,
            "retry": retry.value if retry is not None else None,
            "only_changed": only_changed,
            "shape": options.read_shapes(shape),
            "assume": assume or (),
            "values": options.read_values(value),
            "allow": [kind.value for kind in allow or ()],
            "without": without or (),
            "keep": keep or (),
            "verify": not no_verify,
            "reference": reference.value if reference is not None else None,
            "require": require.value,
            "keep_overridable": keep_overridable,
            "strict": strict,
            "opset": opset,
            "target": fitted,
        }
        rows, target = _run(place, recipes, source, dest, cluster, arguments)
        _report(place, rows, target, f"{', '.join(recipes)} on {source}")
        good = sum(row.good for row in rows)
        if 100 * good < wanted * len(rows):
            raise typer.Exit(SHORT)
        _see_kept(rows)


def _see_kept(rows: Sequence[Row]) -> None:
    """See that of what was to be kept each is in a file: a misspelt name keeps nothing.

    Raises:
        RecipeError: One is in none of those that were mended.
    """
    mended = [row for row in rows if row.good]
    for name in mended[0].absent if mended else ():
        if all(name in row.absent for row in mended):
            raise RecipeError(
                f"no file has a node that is `{name[:200]}`, is called so, or gives a value of this"
                " name: what is in DEST was mended without it",
                where="--keep",
                mend="Mend the name and run it again: files are then mended anew.",
            )


def _split(places: list[str]) -> tuple[list[str], str, str]:
    usage = "Write `surgeon batch RECIPE... SOURCE DEST`, as in `surgeon batch aten zoo/ mended/`."
    if len(places) < 3:
        raise UsageError(
            "a recipe, a source and a destination are needed", where="surgeon batch", mend=usage
        )
    *recipes, source, dest = places
    if any(name.lower().endswith(".onnx") for name in recipes):
        raise UsageError(
            "there are several models in the place of the one SOURCE",
            where="surgeon batch",
            mend="Name a folder, or put a pattern in quotes, as in `surgeon batch aten "
            "'zoo/*.onnx' mended/`, so that the shell does not replace it.",
        )
    if "-" in (source, dest):
        raise UsageError("`-` is a stream, and no folder", where="surgeon batch", mend=usage)
    named = {"source": source, "destination": dest}
    check_order(recipes, named, where="surgeon batch", usage=usage)
    return recipes, source, dest


def _run(
    place: Desk,
    recipes: list[str],
    source: str,
    dest: str,
    cluster: str | None,
    arguments: dict[str, Any],
) -> tuple[list[Row], Target]:
    from surgeon.batch import batch as repair_all
    from surgeon.render.batch import batch_line

    rows: list[Row] = []
    with contextlib.ExitStack() as stack:
        if cluster is not None:
            executor, places = stack.enter_context(connected(cluster))
            arguments["executor"] = executor
            arguments["jobs"] = arguments["jobs"] or 2 * places  # one waits for each at work
        run = stack.enter_context(
            contextlib.closing(repair_all(source, dest, *recipes, **arguments))
        )
        if run.aside:
            number = len(run.aside)
            place.doubt(
                f"{number} folder{'s' * (number > 1)} not entered, being a link: {few(run.aside)}; "
                "name what a link leads to as SOURCE"
            )
        tell = stack.enter_context(_told(place, run))
        try:
            for row in run:
                rows.append(row)
                place.note(batch_line(row, len(rows), run.total))
                tell(row)
        except KeyboardInterrupt:
            place.warn(f"{len(rows)} of {run.total} files are done; the same command goes on.")
            raise
    return rows, run.target


@contextlib.contextmanager
def _told(place: Desk, run: Run) -> Iterator[Callable[[Row], None]]:
    """What each row is given to: a live bar on a terminal, else a line on stderr."""
    from rich.console import Console

    from surgeon import render
    from surgeon.render.batch import batch_line

    console = Console(stderr=True, markup=False, emoji=False)
    counts: Counter[str] = Counter()

    def line(row: Row) -> None:
        counts[row.outcome] += 1
        place.line(batch_line(row, counts.total(), run.total))

    if place.quiet or not console.is_terminal:
        yield line
        return
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    said = TextColumn("{task.fields[said]}", markup=False)
    columns = (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), said)
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=run.total, said="")

        def step(row: Row) -> None:
            counts[row.outcome] += 1
            rate = bar.tasks[0].speed
            parts = [f"{rate:.1f}/s"] if rate else []
            parts += [f"{number} {outcome}" for outcome, number in counts.most_common()]
            parts += [render.name(name) for name in run.in_hand[:1]]
            bar.update(task, advance=1, said="  ".join(parts))

        yield step


def _report(place: Desk, rows: list[Row], target: Target, title: str) -> None:
    """Write the page, and say what came of the files: to a script as JSON."""
    from rich.text import Text

    from surgeon import render
    from surgeon.batch.reports import PAGE, ROWS, rows_as_text
    from surgeon.render.batch import batch as outcomes
    from surgeon.render.batch import failures
    from surgeon.render.batch_page import batch_page

    page = batch_page(rows, title=title)
    target.write(PAGE, page.encode("utf-8", "backslashreplace"))
    if place.as_json:
        place.data(rows_as_text(rows).decode())
        return
    if place.quiet and not all(row.good for row in rows):
        place.warn(failures(rows))
    place.show(outcomes(rows))
    shown = [render.clean(target.shown(name)) for name in (PAGE, ROWS)]
    place.show(Text(f"\nThe whole report: {shown[0]}, and for scripts {shown[1]}", style="bold"))
