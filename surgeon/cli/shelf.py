"""`surgeon recipes` and `surgeon test`: recipes themselves, without a model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from surgeon.cli import options
from surgeon.cli.commands import Command, Group
from surgeon.cli.console import UsageError, desk
from surgeon.cli.customs import CustomOps
from surgeon.collector import collector_paused

if TYPE_CHECKING:
    from surgeon.cases import Outcome
    from surgeon.recipe import Recipe, Rule

recipes = typer.Typer(
    name="recipes",
    cls=Group,
    add_completion=False,
    help="List and show recipes, begin one, and describe their language.",
    invoke_without_command=True,
    rich_markup_mode="markdown",
)


@recipes.callback()
def recipes_alone(
    context: typer.Context,
    schema: Annotated[
        bool, typer.Option("--schema", help="Print the JSON schema of a recipe, for editors.")
    ] = False,
    as_json: options.Json = False,
) -> None:
    """List the bundled recipes; show one; begin one; describe the language."""
    if schema:
        _print_schema()
        raise typer.Exit
    if context.invoked_subcommand is None:
        _list(as_json=as_json)


@recipes.command("list", cls=Command)
def list_recipes(as_json: options.Json = False) -> None:
    """List the bundled recipes."""
    _list(as_json=as_json)


@recipes.command("show", cls=Command)
def show_recipe(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="A bundled name or a YAML file.",
            autocompletion=options.recipe_names,
            show_default=False,
        ),
    ],
    source: Annotated[bool, typer.Option("--source", help="Print the file as it is.")] = False,
) -> None:
    """Show a recipe's rules with their reasons and places."""
    with desk() as place:
        from surgeon import render
        from surgeon.recipe import Recipe

        found = Recipe.load(name)
        if source:
            place.data(Path(found.source).read_text(encoding="utf-8"))
        else:
            place.show(render.recipe(found), wrap=False)


@recipes.command("which", cls=Command)
def which_recipe(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[WORD]...",
            help="An operator, or words of a runtime's message or of what is wanted.",
            show_default=False,
        ),
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Say which recipe is for what is refused or wanted: all complaints, or those with WORDs."""
    with desk(as_json=as_json) as place:
        from surgeon import render
        from surgeon.complaints import complaints

        found = complaints(words or ())
        if as_json:
            place.data(json.dumps([each._asdict() for each in found], indent=2))
        else:
            place.show(render.complaints(found), wrap=True)


@recipes.command("schema", cls=Command)
def print_schema(
    of_cases: Annotated[
        bool, typer.Option("--cases", help="That of a file of cases, `NAME.cases.yaml`.")
    ] = False,
) -> None:
    """Print the JSON schema of a recipe, or of its cases, for editors."""
    _print_schema(of_cases=of_cases)


@recipes.command("functions", cls=Command)
def list_functions(as_json: options.Json = False) -> None:
    """List what expressions of `where` and `let` have: functions, and properties of values."""
    with desk(as_json=as_json) as place:
        from surgeon import language, render

        if as_json:
            found = {"functions": language.functions(), "properties": language.properties()}
            plain = {kind: [word._asdict() for word in each] for kind, each in found.items()}
            place.data(json.dumps(plain, indent=2))
        else:
            place.show(render.words_of(language.properties()), wrap=False)
            place.show(render.words_of(language.functions()), wrap=False)


@recipes.command("builders", cls=Command)
def list_builders(as_json: options.Json = False) -> None:
    """List the builders that `replace: {build: NAME}` may name, with their arguments."""
    with desk(as_json=as_json) as place:
        from surgeon import language, render

        found = language.builders()
        if as_json:
            place.data(json.dumps([word._asdict() for word in found], indent=2))
        else:
            place.show(render.words_of(found), wrap=False)


@recipes.command("new", cls=Command)
def new_recipe(
    name: Annotated[
        str,
        typer.Argument(metavar="NAME", help="Its name, or the path of its file."),
    ],
    model: Annotated[
        Path | None,
        typer.Option(
            "--of",
            metavar="MODEL",
            help="Take the rule out of this model: the nodes between `--from` and `--to` become "
            "one operator, wherever they stand.",
            show_default=False,
        ),
    ] = None,
    begin: Annotated[
        list[str] | None,
        typer.Option(
            "--from",
            metavar="VALUE",
            help="A value at which the nodes begin, once for each; the operator is given it.",
            show_default=False,
        ),
    ] = None,
    end: Annotated[
        list[str] | None,
        typer.Option(
            "--to", metavar="VALUE", help="What the last of them gives.", show_default=False
        ),
    ] = None,
    operator: Annotated[
        str | None,
        typer.Option(
            "--as",
            metavar="OPERATOR",
            help="What becomes of them, with its domain; by default `plugins.` and the name.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Write a recipe of one rule, and its cases, to begin with; never over a file.

    surgeon recipes new fused --of in.onnx --from /norm/out --to /attn/out --as plugins.Attention
    """
    with desk() as place:
        from surgeon.skeleton import files_of, write_skeleton

        if model is None:
            if begin or end or operator:
                raise UsageError(
                    "of which model is not said",
                    where="surgeon recipes new",
                    mend="Add `--of MODEL`.",
                )
            for path in write_skeleton(name):
                place.data(str(path))
            return
        target, _ = files_of(name)
        with place.working("load"):
            with collector_paused():
                from surgeon.isolation import isolation
                from surgeon.render import words
                from surgeon.sketching import sketch

            with isolation():
                found = sketch(
                    model, target.stem, inputs=begin or (), outputs=end or (), operator=operator
                )
        for path in write_skeleton(name, (found.recipe, found.cases)):
            place.data(str(path))
        places = words.count(found.fires, "place")
        place.show(f"fires at {places} of {model}; its cases: surgeon test {target}")


@recipes.command("pages", cls=Command)
def write_pages(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Where the pages go.")],
) -> None:
    """Write what the bundled recipes and their rules do as pages of Markdown."""
    with desk() as place:
        from surgeon import files, handbook

        for name, text in handbook.pages().items():
            files.write_whole(folder / name, text.encode("utf-8"))
            place.data(str(folder / name))


def _print_schema(*, of_cases: bool = False) -> None:
    with desk() as place:
        if of_cases:
            from surgeon.cases.models import schema
        else:
            from surgeon.recipe import schema

        place.data(json.dumps(schema(), indent=2))


def _list(*, as_json: bool) -> None:
    with desk(as_json=as_json) as place:
        from surgeon import render
        from surgeon.recipe import Recipe, bundled

        found = [Recipe.load(path) for path in bundled().values()]
        if as_json:
            place.data(json.dumps([_plain(recipe) for recipe in found], indent=2))
        else:
            place.show(render.recipes(found))


def _plain(recipe: Recipe) -> dict[str, Any]:
    return {
        "name": recipe.name,
        "about": recipe.about,
        "file": recipe.source,
        "allow": sorted(recipe.allow),
        "rules": [_plain_rule(rule) for rule in recipe.rules],
        "changes": [_plain_rule(rule) for rule in recipe.changes],
    }


def _plain_rule(rule: Rule) -> dict[str, Any]:
    return {
        "id": rule.id,
        "recipe": rule.recipe,
        "why": rule.why,
        "exact": rule.exact,
        "contract": rule.contract,
        "location": str(rule.location),
    }


def run_cases(
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="RECIPES...",
            help="Recipes by file or bundled name, files of cases, or folders.",
            autocompletion=options.recipe_names,
            show_default=False,
        ),
    ],
    custom_ops: CustomOps = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
    log_file: options.LogFile = None,
) -> None:
    """Run the cases beside recipes; exit with 1 when one fails."""
    with desk(
        quiet=quiet, verbose=verbose, as_json=as_json, log_file=log_file, custom_ops=custom_ops
    ) as place:
        with place.working("load") as progress:
            with collector_paused():
                from surgeon import cases, render
                from surgeon.isolation import isolation

            with isolation():
                found = cases.run(paths, progress=lambda outcome: progress(outcome.case))
        if as_json:
            place.data(json.dumps([_outcome(each) for each in found], indent=2))
            if not found.outcomes:
                place.warn(str(found))
        else:
            place.show(render.outcomes(found, verbose=verbose))
        raise typer.Exit(0 if found.ok else 1)


def _outcome(found: Outcome) -> dict[str, Any]:
    return {
        "recipe": found.recipe,
        "case": found.case,
        "location": str(found.location),
        "problems": list(found.problems),
        "seconds": found.seconds,
    }
