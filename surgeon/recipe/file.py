"""One recipe file read from its text, with every check that needs no other file."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from pathlib import Path

from surgeon.document import Value, parse
from surgeon.errors import Location, RecipeError
from surgeon.extension import BEHIND, IN_FRONT, Extension, parse_extension
from surgeon.meanings import name_of, parse_function
from surgeon.nested import every_node
from surgeon.notation.operators import check_operator
from surgeon.reading import is_file, is_inside
from surgeon.recipe.calls import Declared, check_calls, declared
from surgeon.recipe.models import JoinedModel, RecipeModel, RuleModel
from surgeon.recipe.reading import Known
from surgeon.recipe.rules import ASKED, Rule, RulesStep
from surgeon.recipe.steps import empty, read_rules, read_step
from surgeon.recipe.validating import validate
from surgeon.recipe.written import Written, WrittenStep


def read_file(text: str, file: str, known: Known) -> Written:
    """Read a recipe's text.

    Args:
        text: The YAML.
        file: Its name, for places.
        known: Functions and builders it may name; operators of its own come to these.

    Raises:
        RecipeError: Something in it is wrong; names the place.
    """
    root = parse(text, file=file)
    model = validate(root, RecipeModel)
    told = _functions(model, root)
    custom = frozenset({*model.custom, *told})
    _check_same_shape(model, root, custom)
    steps, places = _steps(model, root, replace(known, custom=custom))
    changes = _changes(model, root, replace(known, custom=custom))
    written = (rule for step in steps if isinstance(step, RulesStep) for rule in step.rules)
    check_calls((*written, *changes), told)
    return Written(
        name=model.name,
        about=model.about,
        steps=tuple(steps),
        places=places,
        allow=frozenset(model.allow),
        custom=custom,
        same_shape=frozenset(model.same_shape),
        functions=tuple(model.functions),
        extensions=tuple(_extensions(model, root, custom)),
        changes=changes,
        ensure=model.ensure,
        away_from=model.away_from,
    )


def _steps(
    model: RecipeModel, root: Value, known: Known
) -> tuple[list[WrittenStep], tuple[Location, ...]]:
    extends = any(each is not None for each in (model.in_front, model.behind, model.changes))
    if model.rules is None and model.steps is None and extends:
        return [], ()
    if (model.rules is None) == (model.steps is None):
        both = model.rules is not None
        raise RecipeError(
            "it has both `rules` and `steps`" if both else "it has no rules",
            where=root.key_location("steps"),
            mend="Make the rules a step: `- rules: [...]`." if both else "Add `rules: ...`.",
        )
    if model.steps is not None and not model.steps:
        raise empty("steps", root)
    if model.rules is not None:
        rules = read_rules(model.rules, root.find("rules"), model.name, known)
        return [RulesStep(rules, model.tidy)], (root.location,)
    values = [root.find("steps", index) or root for index in range(len(model.steps or ()))]
    steps = [
        read_step(item, value, known, model.name)
        for item, value in zip(model.steps or (), values, strict=True)
    ]
    return steps, tuple(value.location for value in values)


def _changes(model: RecipeModel, root: Value, known: Known) -> tuple[Rule, ...]:
    """What is asked for, as rules that promise nothing."""
    told = model.changes or ()
    asked = [
        RuleModel(**{key: said for key, said in change if key != "optional"}, exact="bit")
        for change in told
    ]
    rules = read_rules(asked, root.find("changes"), model.name, known)
    return tuple(
        rule._replace(exact=ASKED, optional=change.optional)
        for rule, change in zip(rules, told, strict=True)
    )


def _functions(model: RecipeModel, root: Value) -> dict[str, list[Declared]]:
    """The operators whose meaning is told, and what their functions take."""
    found: dict[str, list[Declared]] = {}
    for index, text in enumerate(model.functions):
        place = (root.find("functions", index) or root).location
        function = parse_function(text, place)
        found.setdefault(name_of(function), []).append(declared(function, text))
    return found


def _extensions(model: RecipeModel, root: Value, custom: frozenset[str]) -> Iterator[Extension]:
    """What is put in front, and what behind."""
    for place, said in ((IN_FRONT, model.in_front), (BEHIND, model.behind)):
        if said is None:
            continue
        value = root.find(place) or root
        if isinstance(said, str):
            extension = Extension(place, said, value.location)
        else:
            extension = _joined(said, place, value)
        if extension.file:
            yield extension
            continue
        for node in every_node(parse_extension(extension).graph.node):
            check_operator(node, custom, extension.where(node.op_type))
        yield extension


def _joined(said: JoinedModel, place: str, value: Value) -> Extension:
    if (said.file is None) == (said.text is None):
        both = said.file is not None
        raise RecipeError(
            f"`{place}` has both `file` and `text`" if both else f"`{place}` has no `file`",
            where=value.location,
            mend="Leave one of them out." if both else "Name an ONNX file, or give a `text`.",
        )
    held = value.find("file") or value.find("text") or value
    extension = Extension(
        place,
        said.text or "",
        held.location,
        said.file or "",
        tuple(said.meets.items()),
        tuple(said.brings),
    )
    if extension.file:
        _see_beside(extension)
    return extension


def _see_beside(extension: Extension) -> None:
    """See that a file is there, and lies where the recipe does: it becomes a part of the result.

    Raises:
        RecipeError: It is not, or lies elsewhere.
    """
    folder = Path(extension.location.file).parent
    is_beside = is_inside(extension.file)
    if is_beside and not is_file(extension.path):
        raise RecipeError(
            f"there is no file `{extension.path}`",
            where=extension.location,
            mend="Its path is from the folder of the recipe.",
        )
    if not is_beside or not extension.path.resolve().is_relative_to(folder.resolve()):
        raise RecipeError(
            f"`{extension.file[:200]}` lies outside the folder of the recipe",
            where=extension.location,
            mend="Put it beside the recipe, and name it by its path from there: no recipe reads "
            "other files than its own.",
        )


def _check_same_shape(model: RecipeModel, root: Value, custom: Collection[str]) -> None:
    for index, name in enumerate(model.same_shape):
        if name not in custom:
            raise RecipeError(
                f"`{name}` is not declared",
                where=(root.find("same_shape", index) or root).location,
                mend=f"Declare it: `custom: [{name}]`.",
            )
