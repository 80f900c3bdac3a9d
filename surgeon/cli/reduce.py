"""`surgeon reduce`: the smallest part of a model at which a command fails."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from surgeon.cli import options, results
from surgeon.cli.console import UsageError, desk
from surgeon.cli.customs import CustomOps
from surgeon.cli.repair import DryRun, Reproducible, now
from surgeon.cli.saving import Carried, ExternalAbove, ExternalData, ExternalName, carrying
from surgeon.cli.targets import also_read, check_log, check_order, check_target
from surgeon.collector import collector_paused

Source = Annotated[
    Path, typer.Argument(metavar="IN", help="The model that is refused.", show_default=False)
]
Target = Annotated[
    Path, typer.Argument(metavar="OUT", help="The file for the part.", show_default=False)
]
CheckOption = Annotated[
    str,
    typer.Option(
        "--check",
        metavar="COMMAND",
        help="What fails, by its exit status: `{}` stands for the model's file, and `{data}` for "
        "an .npz file with its inputs and outputs (`in.NAME`, `out.NAME`). No shell reads it.",
        show_default=False,
    ),
]
Saying = Annotated[
    str,
    typer.Option(
        "--saying",
        metavar="TEXT",
        help="Only a failure that says this counts; else each with the exit status of the whole "
        "model's.",
        show_default=False,
    ),
]
RealInputs = Annotated[
    Path | None,
    typer.Option(
        "--data",
        metavar="FILE",
        help="Real inputs of the model for `{data}`, an .npz file by input name; without it they "
        "are drawn.",
        show_default=False,
    ),
]
Most = Annotated[
    int,
    typer.Option(
        "--most",
        min=2,
        metavar="N",
        help="How often the command may run; once more where the last run was of another part.",
    ),
]
WithoutWeights = Annotated[
    bool,
    typer.Option(
        "--without-weights",
        help="Put a number in the place of each weight, where the part still fails so: a small "
        "file to send, which shows nothing else and computes something else.",
    ),
]
Timeout = Annotated[
    float,
    typer.Option("--timeout", min=0.1, metavar="SECONDS", help="Limit for one run of the command."),
]


def reduce(
    source: Source,
    target: Target,
    check: CheckOption,
    saying: Saying = "",
    data: RealInputs = None,
    most: Most = 200,
    without_weights: WithoutWeights = False,
    custom_ops: CustomOps = None,
    timeout: Timeout = options.LIMIT,
    dry_run: DryRun = False,
    external_data: ExternalData = Carried.KEEP,
    external_name: ExternalName = None,
    external_above: ExternalAbove = None,
    reproducible: Reproducible = False,
    as_json: options.Json = False,
    verbose: options.Verbose = False,
    quiet: options.Quiet = False,
    log_file: options.LogFile = None,
) -> None:
    """Find the smallest part of a model at which a command of yours still fails, and save it.

    surgeon reduce in.onnx part.onnx --check 'trtexec --onnx={}'
    """
    with desk(
        quiet=quiet, verbose=verbose, as_json=as_json, log_file=log_file, custom_ops=custom_ops
    ) as place:
        usage = "Write `surgeon reduce IN OUT --check 'COMMAND {}'`."
        named = {"input": str(source), "output": str(target)}
        check_order((), named, where="surgeon reduce", usage=usage)
        carried = carrying(target, external_data, external_name, external_above)
        check_target(target, inputs=[source, *also_read([data] if data else None)])
        check_log(log_file, output=target)
        with place.working("load") as progress:
            with collector_paused():
                from surgeon import reducing, render
                from surgeon.isolation import isolation
                from surgeon.reducing.command import Check

            command = Check(check, saying=saying, timeout=timeout, doubt=place.doubt)
            check_target(target, inputs=also_read(command.words))
            wanted = [data] if data else []
            if data and not command.wants_data:
                raise UsageError(
                    "the command is given no inputs",
                    where="--data",
                    mend="Write `{data}` where it takes their file, or leave it out.",
                )
            with isolation(timeout=timeout):
                found = reducing.reduce(
                    source,
                    command.fails,
                    passes=command.passes,
                    data=wanted if command.wants_data else None,
                    most=most,
                    without_weights=without_weights,
                    progress=progress,
                    date=None if reproducible else now(),
                )
        found.model.save(target, dry_run=dry_run, **carried)
        first, last = command.first, command.last
        assert first is not None  # what it said of the whole model
        assert last is not None
        if as_json:
            told = {
                side: {"status": outcome.status, "last_line": outcome.last_line}
                for side, outcome in (("whole", first), ("part", last))
            }
            place.data(json.dumps({**found.to_dict(), **told}, indent=2))
        elif place.is_heard:
            place.show(render.reduction(found, first, last, asked_without=without_weights))
            results.say_saved(place, target, dry_run=dry_run)
