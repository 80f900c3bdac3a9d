"""`surgeon verify`, `diff`, `inspect` and `doctor`: they look, and change nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from surgeon.cli import options
from surgeon.cli.console import UsageError, desk
from surgeon.cli.customs import CustomOps
from surgeon.cli.shares import share_of
from surgeon.cli.targets import check_log, check_target
from surgeon.collector import collector_paused

GOOD = ("equivalent", "runs")
DIFFERS = 3


def verify(
    before: options.Before,
    after: options.After,
    shape: options.Shape = None,
    assume: options.Assume = None,
    value: options.Value = None,
    reference: options.References = None,
    require: Annotated[
        options.Required,
        typer.Option(
            "--require",
            help="`equivalent`: exit with 3 too when they could not be compared.",
            rich_help_panel="Checking",
        ),
    ] = options.Required.RUNS,
    inputs: options.Inputs = None,
    data: options.Data = None,
    tolerance: Annotated[
        str | None,
        typer.Option(
            "--tolerance",
            metavar="SHARE",
            help="The error allowed, as a share of an output's spread (`0.01` or `1%`), where it "
            "is more than the dtype's own (0.0001 for float32).",
            rich_help_panel="Checking",
        ),
    ] = None,
    custom: Annotated[
        list[str] | None,
        typer.Option(
            "--custom",
            metavar="DOMAIN.OP",
            help="An operator that B may hold although onnxruntime lacks it; the verdict is then "
            "*runs* at best.",
            rich_help_panel="Checking",
        ),
    ] = None,
    recipe: Annotated[
        list[str] | None,
        typer.Option(
            "--recipe",
            metavar="RECIPE",
            help="A recipe whose `custom` operators B may hold; its `functions` say what they "
            "compute, and what it puts in front of a model or behind it is put on A.",
            autocompletion=options.recipe_names,
            rich_help_panel="Checking",
        ),
    ] = None,
    record: Annotated[
        Path | None,
        typer.Option(
            "--record",
            metavar="FILE.npz",
            help="Write the first inputs that are compared, and what A gives on them, for "
            "`--reference` and `--data`, or to compare with another runtime.",
            rich_help_panel="Checking",
        ),
    ] = None,
    where: Annotated[
        bool,
        typer.Option(
            "--bisect",
            help="If the models differ, find the first value at which they part.",
            rich_help_panel="Checking",
        ),
    ] = False,
    custom_ops: CustomOps = None,
    timeout: options.Timeout = options.LIMIT,
    memory: options.Memory = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
    log_file: options.LogFile = None,
) -> None:
    """Compare model B with model A on inputs of several sizes; exit with 3 when it differs."""
    with desk(
        quiet=quiet, verbose=verbose, as_json=as_json, log_file=log_file, custom_ops=custom_ops
    ) as place:
        shapes, references = options.read_shapes(shape), options.read_references(reference)
        space, allowed = options.read_size(memory), share_of(tolerance)
        if record is not None:
            read = [before, after, *map(Path, data or ())]
            check_target(record, inputs=read, what="record", ending=".npz")
            check_log(log_file, record=record)
        with place.working("load") as progress:
            with collector_paused():
                from surgeon import render
                from surgeon.isolation import isolation
                from surgeon.pairwise import verify as compare

            with isolation(timeout=timeout, memory=space):
                verdict = compare(
                    *(before, after),
                    *(recipe or ()),
                    shape=shapes,
                    assume=assume or (),
                    values=options.read_values(value),
                    custom=custom or (),
                    reference=references,
                    inputs=options.read_inputs(inputs),
                    data=data or (),
                    allow_approximate=allowed,
                    record=record,
                    bisect=where,
                    progress=progress,
                )
        if as_json:
            plain = verdict.to_dict()
            if record is not None:
                plain["recorded"] = str(record)
            place.data(json.dumps(plain, indent=2))
        else:
            place.show(render.verdict(verdict))
            if place.quiet and verdict.status not in GOOD:
                place.warn(f"{verdict.status}: {render.clean(verdict.detail)}")
                if verdict.mend:
                    place.warn(f"mend: {render.clean(verdict.mend)}")
            if where:
                place.show(render.parting(verdict))
            if record is not None:
                place.show(render.recorded(record, verdict))
        enough = GOOD if require is options.Required.RUNS else GOOD[:1]
        raise typer.Exit(0 if verdict.status in enough else DIFFERS)


def diff(
    before: options.Before,
    after: options.After,
    exit_code: Annotated[
        bool, typer.Option("--exit-code", help="Exit with 3 when there is a difference.")
    ] = False,
    as_json: options.Json = False,
    verbose: options.Verbose = False,
    log_file: options.LogFile = None,
) -> None:
    """Show what changed between two models, by structure and names; runs nothing."""
    with desk(verbose=verbose, as_json=as_json, log_file=log_file) as place:
        with collector_paused():
            from surgeon import render
            from surgeon.difference import difference

        found = difference(before, after)
        if as_json:
            place.data(json.dumps(found.to_dict(), indent=2, ensure_ascii=False))
        else:
            place.show(render.difference(found, verbose=verbose))
        raise typer.Exit(DIFFERS if exit_code and not found.same else 0)


def inspect(
    model: options.Model,
    target: options.TargetName = None,
    node: Annotated[
        str | None,
        typer.Option(
            "--node",
            metavar="NAME",
            help="Show where a node stands in place of the model: what it reads and gives, and who "
            "makes and reads that. NAME is a node's, a value's, or an operator's.",
        ),
    ] = None,
    nodes: Annotated[
        bool,
        typer.Option(
            "--nodes",
            help="Show every node in place of the model, in the order of the file, those of bodies "
            "and functions too: a line for each, as the `match` of a rule says it.",
        ),
    ] = False,
    exit_code: Annotated[
        bool,
        typer.Option(
            "--exit-code",
            help="Exit with 3 when the list of `--target` does not take the model as it is: an "
            "operator is not on it, a node is beyond a limit, or the opset is not read.",
        ),
    ] = False,
    custom_ops: CustomOps = None,
    as_json: options.Json = False,
    verbose: options.Verbose = False,
    log_file: options.LogFile = None,
) -> None:
    """Show what is in a model, what no runtime knows, and which recipes have rules for it."""
    with desk(verbose=verbose, as_json=as_json, log_file=log_file, custom_ops=custom_ops) as place:
        with collector_paused():
            from surgeon import inspection, render

        if nodes and node is not None:
            what, mend = "one node is asked for, and every node", "Leave one of them out."
            raise UsageError(what, where="--nodes", mend=mend)
        if nodes or node is not None:
            _check_no_target(target, nodes=nodes)
        if exit_code and target is None:
            what, mend = "there is no list that the model could fit", "Give `--target NAME` too."
            raise UsageError(what, where="--exit-code", mend=mend)
        if nodes:
            from surgeon import listing

            lines = listing.nodes(model)
            if as_json:
                place.data(json.dumps([each.to_dict() for each in lines], indent=2))
            else:
                place.data(render.listing(lines))
            return
        if node is not None:
            from surgeon.model import Model
            from surgeon.standing import standings

            there = standings(Model.load(model), node)
            if as_json:
                place.data(json.dumps([each.to_dict() for each in there], indent=2))
            else:
                place.show(render.standings(there, model, verbose=verbose))
            return
        from surgeon.isolation import isolation

        with isolation(timeout=inspection.TIMEOUT):  # onnx and libraries are asked too
            found = inspection.with_load(inspection.inspect(model, target=target))
        division = None
        if found.fit is not None and (refused := found.fit.lasting):
            from surgeon.dividing import divide
            from surgeon.model import Model

            division = divide(Model.load(model), refused)
        if as_json:
            cut = {"division": division.to_dict()} if division else {}
            place.data(json.dumps(found.to_dict() | cut, indent=2))
        else:
            place.show(render.inspection(found, verbose=verbose))
            if division:
                place.show(render.division(division, model))
        raise typer.Exit(DIFFERS if exit_code and found.fit and not found.fit.fits else 0)


def _check_no_target(target: str | None, *, nodes: bool) -> None:
    """See that no target is named where nodes are asked for.

    Raises:
        UsageError: One is.
    """
    if target is not None:
        asked = "which nodes there are" if nodes else "where a node stands"
        raise UsageError(
            f"{asked} has nothing to do with a target",
            where="--nodes" if nodes else "--node",
            mend="Leave `--target` out, or ask twice.",
        )


def show_log(
    model: options.Model,
    check: Annotated[
        bool,
        typer.Option(
            "--check",
            help="See whether the file is still the one that surgeon wrote; exit with 3 when it is "
            "not, and with 1 when no log can tell.",
        ),
    ] = False,
    source: Annotated[
        Path | None,
        typer.Option(
            "--source",
            metavar="FILE",
            help="See with `--check` whether the file was made of this one.",
        ),
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Show which versions, recipes, rules and assumptions of surgeon made a model, oldest first."""
    with desk(as_json=as_json) as place:
        from surgeon import provenance, render
        from surgeon.errors import ModelError
        from surgeon.model import Model

        if source is not None and not check:
            raise UsageError(
                "nothing is checked", where="--source", mend="Say `--check --source FILE`."
            )
        loaded = Model.load(model)
        found = provenance.history(loaded.proto.metadata_props)
        if found is None:
            raise ModelError(
                f"its `{provenance.KEY}` is no log of surgeon",
                where=str(model),
                mend="Remove it from the model's metadata_props: another program wrote it.",
            )
        if check:
            from surgeon.sealing import checked

            seal = checked(loaded.proto, model, source)
            if as_json:
                place.data(json.dumps(seal.to_dict(), indent=2))
            else:
                place.show(render.seal(seal))
            raise typer.Exit(0 if seal.holds else DIFFERS)
        if as_json:
            place.data(json.dumps(found, indent=2))
        else:
            place.show(render.log(found))
            said = (e.value for e in loaded.proto.metadata_props if e.key == provenance.WEIGHTLESS)
            for text in said:
                place.warn(f"its weights are none of the model's: {render.clean(text)}")


def doctor(as_json: options.Json = False) -> None:
    """Show the versions that surgeon depends on, and which clash; exit with 1 if it cannot work."""
    with desk(as_json=as_json) as place:
        from surgeon import render
        from surgeon.doctor import examine

        found = examine()
        if as_json:
            parts = [
                {"name": p.name, "version": p.version, "needed": p.needed, "feature": p.feature}
                for p in found.parts
            ]
            findings = [
                {"severity": f.severity.value, "what": f.what, "mend": f.mend}
                for f in found.findings
            ]
            plain = {"sound": found.sound, "parts": parts, "findings": findings}
            place.data(json.dumps(plain, indent=2))
        else:
            place.show(render.examination(found))
        raise typer.Exit(0 if found.sound else 1)
