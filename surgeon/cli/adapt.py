"""`surgeon adapt`: the recipes behind which a command passes, found by asking it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from surgeon.cli import options, results
from surgeon.cli.console import UsageError, desk
from surgeon.cli.customs import CustomOps
from surgeon.cli.reduce import Most, Timeout
from surgeon.cli.repair import DryRun, PrintJson, ReportFile, Reproducible, now
from surgeon.cli.saving import Carried, ExternalAbove, ExternalData, ExternalName, carrying
from surgeon.cli.targets import (
    also_read,
    check_log,
    check_order,
    check_report,
    check_target,
    joined,
)
from surgeon.collector import collector_paused

Files = Annotated[
    list[str],
    typer.Argument(
        metavar="[RECIPE...] IN OUT",
        help="Recipes to begin with, if any, the model that is refused, and the file to write.",
        autocompletion=options.recipe_names,
        show_default=False,
    ),
]
CheckOption = Annotated[
    str,
    typer.Option(
        "--check",
        metavar="COMMAND",
        help="What has to end with exit status 0: `{}` stands for the model's file, and `{data}` "
        "for an .npz file with its inputs and outputs (`in.NAME`, `out.NAME`). No shell reads it.",
        show_default=False,
    ),
]


def adapt(
    files: Files,
    check: CheckOption,
    most: Most = 500,
    shape: options.Shape = None,
    assume: options.Assume = None,
    value: options.Value = None,
    opset: options.Opset = None,
    allow: options.Allow = None,
    inputs: options.Inputs = None,
    data: options.Data = None,
    report: ReportFile = None,
    dry_run: DryRun = False,
    external_data: ExternalData = Carried.KEEP,
    external_name: ExternalName = None,
    external_above: ExternalAbove = None,
    reproducible: Reproducible = False,
    custom_ops: CustomOps = None,
    timeout: Timeout = options.LIMIT,
    memory: options.Memory = None,
    as_json: PrintJson = False,
    verbose: options.Verbose = False,
    quiet: options.Quiet = False,
    log_file: options.LogFile = None,
) -> None:
    """Find the recipes behind which a command of yours passes, apply them, and save the result.

    surgeon adapt in.onnx out.onnx --check 'trtexec --onnx={}'
    """
    with desk(
        quiet=quiet, verbose=verbose, as_json=as_json, log_file=log_file, custom_ops=custom_ops
    ) as place:
        usage = "Write `surgeon adapt IN OUT --check 'COMMAND {}'`."
        if len(files) < 2:
            raise UsageError("the output is missing", where="surgeon adapt", mend=usage)
        *recipes, source, target = [*files[:-2], Path(files[-2]), Path(files[-1])]
        named = {"input": str(source), "output": str(target)}
        check_order(recipes, named, where="surgeon adapt", usage=usage)
        fixed = options.read_values(value)
        read = [source, *also_read(recipes, data, fixed.values())]
        carried = carrying(target, external_data, external_name, external_above)
        check_target(target, inputs=read)
        if target.exists():
            check_target(target, inputs=joined(recipes))
        check_log(log_file, output=target, report=report)
        if report is not None:
            check_report(report, inputs=read, output=target)
        with place.working("load") as progress:
            with collector_paused():
                from surgeon import adapting, render
                from surgeon.errors import SurgeonError, UnfitError
                from surgeon.isolation import isolation
                from surgeon.reducing.command import Check

            command = Check(check, timeout=timeout, doubt=place.doubt)
            check_target(target, inputs=also_read(command.words))
            try:
                with isolation(timeout=timeout, memory=options.read_size(memory)):
                    found = adapting.adapt(
                        source,
                        command.passes,
                        *recipes,
                        failing=command.failing,
                        feeds=(data or ()) if command.wants_data else None,
                        most=most,
                        progress=progress,
                        shape=options.read_shapes(shape),
                        assume=assume or (),
                        values=fixed,
                        opset=opset,
                        allow=[kind.value for kind in allow or ()],
                        inputs=options.read_inputs(inputs),
                        data=data or (),
                        date=None if reproducible else now(),
                    )
            except UnfitError as error:
                if place.is_heard and not as_json:
                    place.show(render.rounds(error.rounds))
                    if command.said is not None:
                        place.show(render.ending("The last run", command.said))
                raise
            except SurgeonError as error:
                results.show_ended(place, error, report, as_json=as_json)
                raise
        result = found.result
        told = results.Told(result.report, None if dry_run else target, more=found.to_dict())
        with results.reported(told, report):
            results.save(result, target, carried, report, dry_run=dry_run)
        if place.is_heard and not as_json:
            place.show(render.adaptation(found))
        results.show(place, told, as_json=as_json)
        results.say_doubts(place, result.report)
        if not as_json:
            results.say_end(place, result, told.saved, None, dry_run=dry_run)
