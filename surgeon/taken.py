"""What `apply` takes as a model, and as a recipe."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import onnx
import onnx_graphsurgeon as gs

from surgeon.authoring import recipe_of
from surgeon.errors import RecipeError
from surgeon.model import Model
from surgeon.recipe import Recipe, Rule

ModelLike = Any  # Model, onnx.ModelProto, gs.Graph, or a path
RecipeLike = Any  # Recipe, Rule, the name of a bundled recipe, or a path


def as_model(model: ModelLike) -> Model:
    """The argument as a `Model` of its own."""
    if isinstance(model, Model):
        return model
    if isinstance(model, onnx.ModelProto):
        return Model(model)
    if isinstance(model, gs.Graph):
        return Model.from_graph(model)
    if isinstance(model, (str, os.PathLike)):
        return Model.load(Path(model))
    raise RecipeError(
        f"`{type(model).__name__}` is no model",
        where="apply",
        mend="Give a path, a `Model`, an `onnx.ModelProto` or a graphsurgeon `Graph`.",
    )


def as_recipe(recipe: RecipeLike) -> Recipe:
    """The argument as a `Recipe`: loaded by name or path, or made of one rule."""
    if isinstance(recipe, Recipe):
        return recipe
    if isinstance(recipe, Rule):
        return recipe_of(recipe)
    if isinstance(recipe, (str, os.PathLike)):
        return Recipe.load(os.fspath(recipe))
    raise RecipeError(
        f"`{type(recipe).__name__}` is no recipe",
        where="apply",
        mend="Give bundled names, paths, `Recipe`s or rules, each as an argument of its own.",
    )
