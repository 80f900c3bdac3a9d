"""Makes what recipes change, and joins what they put in front and behind, before any step.

What is done afterwards is compared with the model that is remade so: it has the interface of the
result.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

import onnx

from surgeon.changing import changed
from surgeon.errors import Location, RecipeError
from surgeon.extension import BEHIND, IN_FRONT, Extension
from surgeon.joining import Joining
from surgeon.model import Model
from surgeon.recipe import Recipe
from surgeon.report import Change
from surgeon.steps.asread import CONTRACT

_WHY = {
    IN_FRONT: "The recipe puts a graph in front of the model.",
    BEHIND: "The recipe puts a graph behind the model.",
}


class Extended(NamedTuple):
    """A model with what recipes change before any step.

    Attributes:
        model: The model; the argument itself where no recipe changes or extends it.
        changes: What was done.
        steps: The model before and behind the changes of each recipe that made some.
    """

    model: Model
    changes: list[Change]
    steps: list[tuple[Model, Model]]


def extended(
    model: Model,
    recipes: Sequence[Recipe],
    allow: Collection[str],
) -> Extended:
    """The model with every change and extension of the recipes, and what was done.

    Args:
        model: Not changed.
        recipes: In order; of several in front, the first is nearest to the model.
        allow: What the user allows, beside what each recipe does.

    Raises:
        RecipeError: An extension does not fit the model, a change finds no place in it, or they are
            not allowed.
    """
    changes: list[Change] = []
    steps: list[tuple[Model, Model]] = []
    if not any(recipe.remakes for recipe in recipes):
        return Extended(model, changes, steps)
    proto = onnx.ModelProto()
    proto.CopyFrom(model.proto)
    for recipe in recipes:
        allowed = "contract" in {*allow, *recipe.allow}
        for rule in recipe.changes if not allowed else ():
            raise _forbidden(f"`{rule.id}` changes what the model computes", rule.location)
        if recipe.changes:
            before = model.with_proto(proto)
            after, made = changed(before, recipe)
            proto = onnx.ModelProto()
            proto.CopyFrom(after.proto)
            if made:
                steps.append((before, after))
            changes.extend(made)
        for extension in recipe.extensions:
            if not allowed:
                what = f"`{extension.place}` changes the interface of the model"
                raise _forbidden(what, extension.location)
            changes.append(_joined(proto, extension, recipe))
    return Extended(model.with_proto(proto), changes, steps)


def _joined(proto: onnx.ModelProto, extension: Extension, recipe: Recipe) -> Change:
    """Join an extension to a model, which is changed; what was done.

    Raises:
        RecipeError: They do not fit.
    """
    joining = Joining(proto, extension)
    contract = CONTRACT.format(what=joining.join())
    if extension.file:
        contract += f", by the file `{extension.file}` beside the recipe"
    operators = tuple(node.op_type for node in joining.own.node)
    place, where = extension.place, str(extension.location)
    return Change(
        place, recipe.name, _WHY[place], "bit", contract, "the graph", (), operators, where
    )


def _forbidden(what: str, where: Location) -> RecipeError:
    return RecipeError(
        f"{what}, which is not allowed",
        where=where,
        mend="Write `allow: [contract]` into the recipe, or give `--allow contract`.",
    )
