"""`surgeon apply`: recipes on a model."""

from __future__ import annotations

import os
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from surgeon.cli import options, results
from surgeon.cli.console import Desk, UsageError, desk
from surgeon.cli.customs import CustomOps
from surgeon.cli.saving import (
    Carried,
    ExternalAbove,
    ExternalData,
    ExternalName,
    Metadata,
    Rename,
    carrying,
    read_metadata,
    read_renaming,
)
from surgeon.cli.targets import (
    also_read,
    check_log,
    check_order,
    check_report,
    check_target,
    joined,
)
from surgeon.collector import collector_paused
from surgeon.files import backed_up, backup_of

if TYPE_CHECKING:
    from surgeon.surgery import Result

Files = Annotated[
    list[str],
    typer.Argument(
        metavar="RECIPE... IN OUT",
        help="One or more recipes (bundled names or YAML files), the model to mend, and the file "
        "to write.",
        autocompletion=options.recipe_names,
        show_default=False,
    ),
]
ReportFile = Annotated[
    Path | None,
    typer.Option(
        "--report",
        metavar="FILE",
        help="Write the report too: .json, .html or .txt. Also written when the check fails.",
        rich_help_panel="Output",
    ),
]
NoVerify = Annotated[
    bool,
    typer.Option(
        "--no-verify",
        help="Save without comparing the models.",
        rich_help_panel="Checking",
    ),
]
Require = Annotated[
    options.Required,
    typer.Option(
        "--require",
        help="`equivalent` refuses a result that could not be compared.",
        rich_help_panel="Checking",
    ),
]
DryRun = Annotated[
    bool,
    typer.Option(
        "--dry-run",
        help="Do everything but write OUT, and fail where that would.",
        rich_help_panel="Output",
    ),
]
InPlace = Annotated[
    bool,
    typer.Option(
        "--in-place",
        help="Write over the input, which takes no OUT; the old file is kept under its name with "
        "`.bak` appended, where there is none yet.",
        rich_help_panel="Output",
    ),
]
NoBackup = Annotated[
    bool,
    typer.Option("--no-backup", help="Keep no backup with `--in-place`.", rich_help_panel="Output"),
]
Reproducible = Annotated[
    bool,
    typer.Option(
        "--reproducible",
        help="Leave the date out of OUT's log (`surgeon log`): equal runs give equal bytes.",
        rich_help_panel="Output",
    ),
]
PrintJson = Annotated[
    bool,
    typer.Option("--json", help="Print the report as JSON.", rich_help_panel="Output"),
]


def apply(
    files: Files,
    shape: options.Shape = None,
    assume: options.Assume = None,
    value: options.Value = None,
    keep_overridable: options.KeepOverridable = False,
    opset: options.Opset = None,
    fitted: options.Fitted = None,
    allow: options.Allow = None,
    without: options.Without = None,
    keep: options.Keep = None,
    reference: options.References = None,
    require: Require = options.Required.RUNS,
    no_verify: NoVerify = False,
    inputs: options.Inputs = None,
    data: options.Data = None,
    save_partial: options.Partial = False,
    strict: options.Strict = False,
    keep_evidence: options.Evidence = None,
    report: ReportFile = None,
    dry_run: DryRun = False,
    in_place: InPlace = False,
    no_backup: NoBackup = False,
    external_data: ExternalData = Carried.KEEP,
    external_name: ExternalName = None,
    external_above: ExternalAbove = None,
    metadata: Metadata = None,
    rename: Rename = None,
    reproducible: Reproducible = False,
    custom_ops: CustomOps = None,
    timeout: options.Timeout = options.LIMIT,
    memory: options.Memory = None,
    as_json: PrintJson = False,
    verbose: options.Verbose = False,
    quiet: options.Quiet = False,
    log_file: options.LogFile = None,
) -> None:
    """Mend a model with recipes, compare the result with the original, and save it.

    surgeon apply dymn in.onnx out.onnx
    """
    with desk(
        quiet=quiet, verbose=verbose, as_json=as_json, log_file=log_file, custom_ops=custom_ops
    ) as place:
        recipes, source, target = split(files, in_place=in_place)
        if no_backup and not in_place:
            raise UsageError(
                "there is no backup without `--in-place`",
                where="--no-backup",
                mend="Leave it out, or add `--in-place`.",
            )
        shapes, references = options.read_shapes(shape), options.read_references(reference)
        recorded = [references] if isinstance(references, str) else references or []
        values = options.read_values(value)
        read = [source, *also_read(recipes, recorded, data, values.values())]
        carried = carrying(target, external_data, external_name, external_above)
        check_target(target, inputs=read[1:] if in_place else read, in_place=True)
        if target.exists():
            check_target(target, inputs=joined(recipes))
        check_log(log_file, output=target, report=report)
        if in_place and not no_backup:
            backup_of(target)
        if report is not None:
            check_report(report, inputs=read, output=target)
        result = _run(
            place,
            source,
            recipes,
            report_to=report,
            as_json=as_json,
            limits={"timeout": timeout, "memory": options.read_size(memory)},
            shape=shapes,
            assume=assume or (),
            values=values,
            allow=[kind.value for kind in allow or ()],
            without=without or (),
            keep=keep or (),
            verify=not no_verify,
            reference=references,
            require=require.value,
            save_partial=save_partial,
            strict=strict,
            opset=opset,
            target=fitted,
            metadata=read_metadata(metadata),
            rename=read_renaming(rename),
            keep_evidence=keep_evidence,
            inputs=options.read_inputs(inputs),
            data=data or (),
            keep_overridable=keep_overridable,
            every_miss=verbose,
            date=None if reproducible else now(),
        )
        backup = None
        moved = external_data is not Carried.KEEP
        wanted = result.model.changed or moved or not in_place
        told = results.Told(result.report, target if wanted and not dry_run else None)
        with results.reported(told, report):
            if wanted:
                kept = in_place and not no_backup and not dry_run
                with backed_up(target) if kept else nullcontext() as backup:
                    results.save(result, target, carried, report, dry_run=dry_run)
        results.show(place, told, as_json=as_json)
        results.say_doubts(place, result.report)
        if not as_json:
            results.say_end(place, result, told.saved, backup, dry_run=dry_run)


def now() -> str:
    """The date and time in UTC, as the log of a model has it."""
    return f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"


def split(files: list[str], *, in_place: bool = False) -> tuple[list[str], Path, Path]:
    """Recipes, input and output; with `in_place` the input is the output too, links followed.

    Raises:
        UsageError: There are too few, or they stand in another order.
    """
    usage = "Write `surgeon apply RECIPE... IN OUT`, as in `surgeon apply dymn in.onnx out.onnx`."
    if in_place:
        usage = "Write `surgeon apply RECIPE... MODEL --in-place`."
        last = files[-1]
        files = [*files, os.path.realpath(last) if os.path.islink(last) else last]
        if len(files) < 3:
            raise UsageError("a recipe is missing", where="surgeon apply", mend=usage)
    if len(files) < 3:
        if [name.lower().endswith(".onnx") for name in files] == [True, True]:
            lacking = "a recipe is missing"
        else:
            lacking = "the output is missing" if len(files) == 2 else "input and output are missing"
        raise UsageError(lacking, where="surgeon apply", mend=usage)
    *recipes, source, target = files
    named = {"input": source, "output": target}
    check_order(recipes, named, where="surgeon apply", usage=usage)
    return recipes, Path(source), Path(target)


def _run(
    place: Desk,
    source: Path,
    recipes: list[str],
    *,
    report_to: Path | None,
    as_json: bool,
    limits: dict[str, Any],
    **arguments: Any,
) -> Result:
    from surgeon.errors import SurgeonError

    with place.working("load") as progress:
        with collector_paused():
            from surgeon import surgery
            from surgeon.isolation import isolation

        try:
            with isolation(**limits):
                return surgery.apply(source, *recipes, progress=progress, **arguments)
        except SurgeonError as error:
            results.show_ended(place, error, report_to, as_json=as_json)
            raise
