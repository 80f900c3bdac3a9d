"""`surgeon explain`: why rules of recipes did or did not fire on a model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from surgeon.cli import options
from surgeon.cli.console import UsageError, desk
from surgeon.cli.customs import CustomOps
from surgeon.cli.targets import RECIPES, check_order
from surgeon.collector import collector_paused

Files = Annotated[
    list[str],
    typer.Argument(
        metavar="RECIPE... MODEL",
        help="One or more recipes (bundled names or YAML files), and the model.",
        autocompletion=options.recipe_names,
        show_default=False,
    ),
]


def explain(
    files: Files,
    node: Annotated[
        str | None,
        typer.Option(
            "--node",
            metavar="NAME",
            help="What was tried at this node, and what became of it. NAME is a node's name in "
            "the file, or the name of one of its outputs, which every node has.",
        ),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Every rule and reason, not only the nearest few.")
    ] = False,
    shape: options.Shape = None,
    assume: options.Assume = None,
    value: options.Value = None,
    keep_overridable: options.KeepOverridable = False,
    allow: options.Allow = None,
    custom_ops: CustomOps = None,
    as_json: options.Json = False,
    verbose: options.Verbose = False,
    log_file: options.LogFile = None,
) -> None:
    """Say why rules did or did not fire, with the recipe's file, line and column.

    surgeon explain aten clean model.onnx
    """
    with desk(verbose=verbose, as_json=as_json, log_file=log_file, custom_ops=custom_ops) as place:
        recipes, model = _split(files)
        shapes = options.read_shapes(shape)
        with place.working("load") as progress:
            with collector_paused():
                from surgeon import explaining, render
                from surgeon.isolation import isolation

            with isolation():
                found = explaining.explain(
                    model,
                    *recipes,
                    node=node,
                    allow=[kind.value for kind in allow or ()],
                    shape=shapes,
                    assume=assume or (),
                    values=options.read_values(value),
                    keep_overridable=keep_overridable,
                    progress=progress,
                )
        if as_json:
            place.data(json.dumps(render.explanation_data(found), indent=2))
        else:
            place.show(render.explanation(found, everything=everything or verbose), wrap=False)


def _split(files: list[str]) -> tuple[list[str], Path]:
    """Recipes and the model.

    Raises:
        UsageError: There are too few, or they stand in another order.
    """
    usage = "Write `surgeon explain RECIPE... MODEL`, as in `surgeon explain aten model.onnx`."
    *recipes, model = files
    if not recipes:
        lacking = "the model" if model.lower().endswith(RECIPES) else "a recipe"
        raise UsageError(f"{lacking} is missing", where="surgeon explain", mend=usage)
    check_order(recipes, {"model": model}, where="surgeon explain", usage=usage)
    return recipes, Path(model)
