"""`surgeon extract`: the part of a model between values."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from surgeon.cli import options, results
from surgeon.cli.console import desk
from surgeon.cli.customs import CustomOps
from surgeon.cli.repair import (
    DryRun,
    NoVerify,
    Reproducible,
    Require,
    now,
)
from surgeon.cli.saving import Carried, ExternalAbove, ExternalData, ExternalName, carrying
from surgeon.cli.targets import also_read, check_log, check_order, check_target
from surgeon.collector import collector_paused

Source = Annotated[Path, typer.Argument(metavar="IN", help="The model to cut.", show_default=False)]
Target = Annotated[
    Path, typer.Argument(metavar="OUT", help="The file to write.", show_default=False)
]
From = Annotated[
    list[str] | None,
    typer.Option(
        "--from",
        metavar="VALUE",
        help="A value that the part is given; `NAME=VALUE` calls it NAME. Once for each, in the "
        "order of its inputs; with none, the model's inputs that it reads.",
        show_default=False,
    ),
]
To = Annotated[
    list[str] | None,
    typer.Option(
        "--to",
        metavar="VALUE",
        help="A value that the part gives; `NAME=VALUE` calls it NAME. Once for each, in the order "
        "of its outputs; with none, the model's outputs.",
        show_default=False,
    ),
]
OutputsOf = Annotated[
    list[str] | None,
    typer.Option(
        "--outputs-of",
        metavar="OPERATOR",
        help="An operator whose every value the part gives too, `Conv` say; '*' stands for any "
        "text, and alone for all operators. Of the part, or with no `--from` and `--to` of the "
        "whole main graph; of what is known to be a tensor.",
        show_default=False,
    ),
]
WeightsAsInputs = Annotated[
    list[str] | None,
    typer.Option(
        "--weights-as-inputs",
        metavar="NAME",
        help="Weights that the part is given, and no longer has: adapters that are exchanged, say. "
        "`*` stands for any text, as in `*lora*`.",
        show_default=False,
    ),
]
Types = Annotated[
    list[str] | None,
    typer.Option(
        "--type",
        metavar="VALUE=TYPE",
        help="The type of a value that `--from` or `--to` names, `ids=int64[n,t]`, where none is "
        "known: of what an operator gives that nobody knows, a tokenizer say.",
        show_default=False,
    ),
]


def extract(
    source: Source,
    target: Target,
    begin: From = None,
    end: To = None,
    outputs_of: OutputsOf = None,
    weights_as_inputs: WeightsAsInputs = None,
    types: Types = None,
    no_verify: NoVerify = False,
    require: Require = options.Required.RUNS,
    reference: options.References = None,
    inputs: options.Inputs = None,
    data: options.Data = None,
    dry_run: DryRun = False,
    external_data: ExternalData = Carried.KEEP,
    external_name: ExternalName = None,
    external_above: ExternalAbove = None,
    reproducible: Reproducible = False,
    custom_ops: CustomOps = None,
    timeout: options.Timeout = options.LIMIT,
    memory: options.Memory = None,
    as_json: options.Json = False,
    verbose: options.Verbose = False,
    quiet: options.Quiet = False,
    log_file: options.LogFile = None,
) -> None:
    """Cut the part between values out of a model, and compare it with the whole.

    surgeon extract in.onnx head.onnx --from features=/neck/Concat_output_0 --to boxes

    surgeon extract in.onnx all.onnx --outputs-of '*'
    """
    with desk(
        quiet=quiet, verbose=verbose, as_json=as_json, log_file=log_file, custom_ops=custom_ops
    ) as place:
        usage = "Write `surgeon extract IN OUT --from VALUE --to VALUE`."
        named = {"input": str(source), "output": str(target)}
        check_order((), named, where="surgeon extract", usage=usage)
        references, space = options.read_references(reference), options.read_size(memory)
        carried = carrying(target, external_data, external_name, external_above)
        recorded = references if isinstance(references, list) else ()
        check_target(target, inputs=[source, *also_read(data, recorded)])
        check_log(log_file, output=target)
        with place.working("load") as progress:
            with collector_paused():
                from surgeon import extraction, render
                from surgeon.isolation import isolation

            with isolation(timeout=timeout, memory=space):
                found = extraction.extract(
                    source,
                    inputs=begin or (),
                    outputs=end or (),
                    outputs_of=outputs_of or (),
                    weights_as_inputs=weights_as_inputs or (),
                    types=_read_types(types),
                    verify=not no_verify,
                    require=require.value,
                    reference=references,
                    drawn=options.read_inputs(inputs),
                    data=data or (),
                    progress=progress,
                    date=None if reproducible else now(),
                )
        found.model.save(target, dry_run=dry_run, **carried)
        if as_json:
            place.data(json.dumps(found.to_dict(), indent=2))
        elif place.is_heard:
            place.show(render.extraction(found))
            results.say_saved(place, target, dry_run=dry_run)
        results.say_unshown(place, found.verdict)


def _read_types(texts: list[str] | None) -> dict[str, str]:
    """`ids=int64[n,t]` as a value's name and its type.

    Raises:
        UsageError: As for `options.read_pairs`.
    """
    return options.read_pairs(
        texts,
        where="--type",
        what="says no type of a value",
        mend="Write it as `ids=int64[n,t]`: the value's name, then its type.",
        twice="value {} is given two types",
    )
