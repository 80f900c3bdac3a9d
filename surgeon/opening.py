"""What a run is given, as it is worked on: models, recipes, and what is joined before any step."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from surgeon import standard
from surgeon.authoring import recipe_of
from surgeon.document import suggest
from surgeon.errors import ModelError, RecipeError, SurgeonError, few
from surgeon.external import external_tensors, locations
from surgeon.model import Model
from surgeon.nested import every_node
from surgeon.reading import external_path
from surgeon.recipe import FreeBatchStep, FreeSizesStep, Recipe, Rule
from surgeon.recipe.fewer import left_out, names_of
from surgeon.soundness.apart import (
    with_names_of_their_own,
    with_nodes_once,
    with_outputs_of_their_own,
)
from surgeon.sparing import DEFAULT
from surgeon.steps.plainnames import found_names

RecipeLike = Any  # Recipe, Rule, the name of a bundled recipe, or a path


def as_recipe(recipe: RecipeLike) -> Recipe:
    """The argument as a `Recipe`: loaded by name or path, or made of one rule."""
    if isinstance(recipe, Recipe):
        return recipe
    if isinstance(recipe, Rule):
        return recipe_of(recipe)
    if isinstance(recipe, str) and "\n" in recipe:
        raise RecipeError(
            "this is the text of a recipe, and no name or path of one",
            where="apply",
            mend="Read it first: `surgeon.Recipe.parse(text)` gives the recipe.",
        )
    if isinstance(recipe, (str, os.PathLike)):
        return Recipe.load(os.fspath(recipe))
    raise RecipeError(
        f"`{type(recipe).__name__}` is no recipe",
        where="apply",
        mend="Give bundled names, paths, `Recipe`s or rules, each as an argument of its own.",
    )


def fewer(recipes: Sequence[Recipe], names: Collection[str]) -> list[Recipe]:
    """Recipes but for some of their rules.

    Args:
        recipes: Any.
        names: The rules' ids, alone or as `recipe/id`.

    Raises:
        RecipeError: None of the recipes has such a rule.
    """
    if not names:
        return [*recipes]
    known = {name for recipe in recipes for rule in recipe.rules for name in names_of(rule)}
    for name in names:
        if name not in known:
            raise RecipeError(
                f"no recipe that is named has a rule `{name}`",
                where="--without",
                mend=suggest(name, known, "`surgeon recipes show RECIPE` names them."),
            )
    return [recipe._replace(steps=tuple(left_out(recipe.steps, names))) for recipe in recipes]


def not_there(model: Model, keep: Collection[str]) -> list[str]:
    """What is to be kept and is neither in the file nor an operator that rules may write."""
    if not keep:
        return []
    known = {*standard.known_operators(), *_names(model)}
    return [name for name in keep if name.removeprefix(f"{DEFAULT}.") not in known]


def see_named(model: Model, names: Mapping[str, str], recipes: Sequence[Recipe]) -> None:
    """See that what is to be called otherwise is in the file, and gets a name of its own.

    A size that a recipe makes dynamic has its name only then, so the step that renames sees to it.

    Raises:
        RecipeError: It is not, or has none.
    """
    for old, new in names.items():
        if not isinstance(old, str) or not isinstance(new, str) or not new:
            what = f"`{old}` is to be called {new!r}, which is no name"
            raise RecipeError(what, where="--rename", mend="Give names.")
    made = {
        name
        for recipe in recipes
        for step in recipe.steps
        if isinstance(step, FreeBatchStep | FreeSizesStep)
        for name in ((step.dim,) if isinstance(step, FreeBatchStep) else step.names)
    }
    if names := {old: new for old, new in names.items() if old not in made}:
        try:
            found_names(model.proto.graph, names)
        except SurgeonError as error:
            raise RecipeError(error.what, where="--rename", mend=error.mend) from None


def see_kept(model: Model, keep: Collection[str]) -> None:
    """See that what is to be kept says which nodes.

    Raises:
        RecipeError: A name is in the file nowhere, or is that of several nodes of one graph, which
            are going to be told apart.
    """
    for name in not_there(model, keep):
        raise RecipeError(
            f"no node is `{name[:200]}`, is called so, or gives a value of this name",
            where="--keep",
            mend=suggest(
                name,
                {*_names(model), *standard.known_operators()},
                "`surgeon inspect MODEL` lists operators; `surgeon inspect MODEL --node NAME` "
                "shows nodes.",
            ),
        )
    for name in keep:
        if name in model.sound.shared:
            raise RecipeError(
                f"several nodes are called `{name[:200]}`",
                where="--keep",
                mend="Name the values that they give.",
            )


def _names(model: Model) -> Iterator[str]:
    """All that nodes may be known by: operators, their own names, the values that they give."""
    for graph in (model.proto.graph, *model.proto.functions):
        for node in every_node(graph.node):
            yield from (node.op_type, node.name, *node.output)
            if node.domain:
                yield f"{node.domain}.{node.op_type}"


def told_apart(model: Model) -> tuple[Model, list[str]]:
    """The model with whatever its graphs have twice told apart or once, and what was, in words."""
    shared, again, twice = model.sound.shared, model.sound.again, model.sound.twice
    said = []
    if twice:
        model = model.with_proto(with_nodes_once(model.proto))
        said.append(f"nodes stood there twice, equal in all, and stand once now: {few(twice)}")
    if shared:
        model = model.with_proto(with_names_of_their_own(model.proto))
        said.append(f"several nodes had one name, and got names of their own: {few(shared)}")
    if again:
        model = model.with_proto(with_outputs_of_their_own(model.proto))
        said.append(
            "a body gave one value as several of its outputs, or one of the graph around it, which "
            f"onnxruntime mixes up or refuses, and gives copies now: {few(again)}"
        )
    return model, said


def see_data(model: Model) -> None:
    """Whether the files are there that the model refers to: without them nothing can be shown.

    Raises:
        ModelError: One is missing, or outside the model's folder; or that is not known.
    """
    if not model.sound.outside:
        return
    for location in sorted(locations(external_tensors(model.proto))):
        if model.folder is not None:
            external_path(location, model.folder)
        elif not Path(location).is_file():  # onnx and onnxruntime look where the process stands
            raise ModelError(
                f"its weights lie in `{location[:200]}`, and a model in memory does not say where",
                where="model",
                mend="Give its path; or load them with it: `onnx.load(path)`.",
            )
