"""A recipe's document held to its models, and their errors in a reader's words."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from surgeon.document import Value, suggest
from surgeon.errors import Location, RecipeError
from surgeon.recipe.models import (
    ChangeModel,
    FoldModel,
    HeaderModel,
    JoinedModel,
    RuleModel,
    StepModel,
)

_PLAIN = re.compile(r"[\w.][\w. =<>+*/()-]*")  # what needs no quotes in a list of YAML
_KINDS = {
    "string_type": "text",
    "list_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "int_type": "an integer",
    "float_type": "a number",
    "bool_type": "true or false",
}


Form = TypeVar("Form", bound=BaseModel)


def validate(root: Value, form: type[Form]) -> Form:
    """The document, or a part of it, as a model.

    Raises:
        RecipeError: The first thing in it that does not have this form.
    """
    try:
        return form.model_validate(root.plain())
    except ValidationError as error:
        found: Sequence[Mapping[str, Any]] = error.errors(include_url=False)
    raise min(
        (_translate(root, group, form) for group in _by_place(root, found)),
        key=lambda error: _position(error.where),
    )


def _position(where: Location | str) -> tuple[int, int]:
    return (where.line, where.column) if isinstance(where, Location) else (0, 0)


def _path(root: Value, steps: Sequence[str | int]) -> tuple[str | int, ...]:
    """What of an error's path stands in the document; pydantic adds names of its own."""
    path: tuple[str | int, ...] = ()
    for step in steps:
        if root.find(*path, step) is not None:
            path = (*path, step)
    return path


def _by_place(root: Value, errors: Sequence[Mapping[str, Any]]) -> list[list[Mapping[str, Any]]]:
    """Errors grouped by what they speak of: each alternative of a value complains by itself."""
    groups: dict[tuple[object, ...], list[Mapping[str, Any]]] = {}
    for error in errors:
        groups.setdefault(_path(root, error["loc"]), []).append(error)
    outer = {path[:length] for path in groups for length in range(len(path))}
    return [  # of text or a mapping it is the mapping that has something wrong inside
        group
        for path, group in groups.items()
        if path not in outer or any(error["type"] not in _KINDS for error in group)
    ]


def _translate(
    root: Value, errors: Sequence[Mapping[str, Any]], form: type[BaseModel]
) -> RecipeError:
    error = next((e for e in errors if e["type"] not in _KINDS), errors[0])
    path = _path(root, error["loc"])
    value = root.find(*path) or root
    kind, name = error["type"], path[-1] if path else "the document"
    if kind == "extra_forbidden":
        parent = root.find(*path[:-1]) or root
        return RecipeError(
            f"unknown key `{name}`",
            where=parent.key_location(str(name)),
            mend=suggest(str(name), _known_keys(path[:-1], form)),
        )
    if kind == "missing":
        key = str(error["loc"][-1])
        if isinstance(value.content, Mapping):
            strange = value.content.keys() - set(_known_keys(path, form))
            for other in sorted(strange):
                if (near := suggest(other, [key])).startswith("Did"):
                    where = value.key_location(other)
                    return RecipeError(f"unknown key `{other}`", where=where, mend=near)
        return RecipeError(
            f"the key `{key}` is missing",
            where=value.location,
            mend=f"Add `{key}: {'1' if key == 'surgeon' else '...'}`.",
        )
    if isinstance(name, int):
        name = f"{path[-2]}[{name}]" if len(path) > 1 else str(name)
    if name == "surgeon" and kind == "literal_error":
        return _version(value)
    if kind == "literal_error":
        known = str(error["ctx"]["expected"]).replace("'", "").replace(" or ", ", ").split(", ")
        return RecipeError(
            f"`{name}` is `{value.content}`",
            where=value.location,
            mend=suggest(str(value.content), known),
        )
    if kind == "string_pattern_mismatch":
        return RecipeError(
            f"`{name}` is `{value.content}`",
            where=value.location,
            mend="Write a name without `/`, and without space around it."
            if path == ("name",)
            else "Use small letters, digits and single hyphens.",
        )
    wanted = list(dict.fromkeys(_KINDS[e["type"]] for e in errors if e["type"] in _KINDS))
    if error["type"] in _KINDS:
        wanted = ["text"] if wanted[:1] == ["text"] and len(wanted) > 2 else wanted
        subject = f"`{name}`" if path else "the document"
        return RecipeError(
            f"{subject} is {_kind(value)}, not {' or '.join(wanted)}",
            where=value.location,
            mend=_mend_form(str(name), value, wanted),
        )
    for limit, words in _LIMITS.items():
        if limit in error.get("ctx", {}):
            wanted_words = words.format(error["ctx"][limit])
            return RecipeError(
                f"`{name}` is {value.content}, and not {wanted_words}",
                where=value.location,
                mend=f"Write a number that is {wanted_words}.",
            )
    return RecipeError(f"`{name}`: {error['msg']}", where=value.location, mend="Change the value.")


_LIMITS = {"ge": "{} or more", "gt": "above {}", "le": "{} or less", "lt": "below {}"}


def _version(value: Value) -> RecipeError:
    """What to say of a version of the format that is not 1."""
    found = value.content
    if str(found) == "1":
        mend = "Write `surgeon: 1`, without quotes."
        return RecipeError("`surgeon` is a text, not a number", where=value.location, mend=mend)
    newer = isinstance(found, int) and found > 1
    return RecipeError(
        f"`{found}` is no version of this format" + (" that this surgeon knows" if newer else ""),
        where=value.location,
        mend="Take a newer surgeon, which the recipe is for." if newer else "Write `surgeon: 1`.",
    )


def _mend_form(name: str, value: Value, wanted: Sequence[str]) -> str:
    """How a value of the wrong kind is written: quoted, without quotes, or as a list of one."""
    if "text" in wanted:
        return "Put quotes around it."
    if name == "steps" and isinstance(value.content, str):
        return f"Write `steps: [use: {value.content}]`."
    if name.startswith("steps[") and isinstance(value.content, str):
        return f"Write `use: {value.content}` for the step."
    if wanted == ["a list"] and isinstance(value.content, Mapping):
        return "Write `- ` in front of each item, the first key of it behind that."
    if wanted == ["a mapping"] and isinstance(value.content, tuple):
        return "Write keys (`key: value`), without `- ` in front."
    if wanted == ["a list"] and isinstance(value.content, str | int | float):
        text = str(value.content)
        word = text if _PLAIN.fullmatch(text) else json.dumps(text, ensure_ascii=False)
        return f"Write `{name}: [{word}]`."
    if wanted == ["an integer"] and str(value.content).isdecimal():
        return f"Write `{name}: {value.content}`, without quotes."
    return "Change its form."


def _kind(value: Value) -> str:
    content = value.content
    if isinstance(content, tuple):
        return "a list"
    if isinstance(content, Mapping):
        return "a mapping"
    return "empty" if content is None else f"`{content}`"


def _known_keys(path: Sequence[str | int], form: type[BaseModel]) -> list[str]:
    models: dict[str, type[BaseModel]] = {
        "rules": RuleModel,
        "changes": ChangeModel,
        "steps": StepModel,
        "in-front": JoinedModel,
        "behind": JoinedModel,
        "fold": FoldModel,
        "header": HeaderModel,
    }
    named = [step for step in path if isinstance(step, str)]
    model = models.get(named[-1], form) if named else form
    return [field.alias or name for name, field in model.model_fields.items()]
