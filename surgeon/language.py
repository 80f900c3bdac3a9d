"""What the language of recipes has, as data: keys, properties, functions and builders.

It is read off the code that reads recipes; pages and the command line show it.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from surgeon.builders import BUILDERS
from surgeon.cases.models import CaseModel, FileModel, FillingModel, RefusalModel
from surgeon.expressions.properties import PROPERTIES
from surgeon.functions import FUNCTIONS
from surgeon.functions.examples import EXAMPLES
from surgeon.recipe.models import (
    BuilderModel,
    ChangeModel,
    FoldModel,
    HeaderModel,
    JoinedModel,
    LimitModel,
    RecipeModel,
    RuleModel,
    StepModel,
)


class Word(NamedTuple):
    """A key, a property, a function or a builder.

    Attributes:
        name: As recipes write it; with the arguments of a function or a builder.
        about: What it means, in a sentence.
        example: How it is written, or None.
        gives: What the example comes to, or None.
    """

    name: str
    about: str
    example: str | None = None
    gives: str | None = None


def functions() -> list[Word]:
    """The functions that expressions may call."""
    return [
        Word(f"{name}({_arguments(function)})", _first_line(function), *EXAMPLES[name])
        for name, function in sorted(FUNCTIONS.items())
    ]


def properties() -> list[Word]:
    """What expressions may ask of a value."""
    return [Word(f".{name}", about, example) for name, (about, example) in PROPERTIES.items()]


def builders() -> list[Word]:
    """What computes replacements; with the arguments that a recipe gives beside `build`."""
    return [
        Word(f"{name}({_arguments(BUILDERS[name], 2)})", _first_line(BUILDERS[name]))
        for name in sorted(BUILDERS)
    ]


def keys() -> dict[str, list[Word]]:
    """The keys of recipes and of files of cases, by what holds them."""
    models: Mapping[str, Any] = {
        "A recipe": RecipeModel,
        "A step: one of these keys": StepModel,
        "A rule": RuleModel,
        "A change": ChangeModel,
        "`replace`, where a builder computes it": BuilderModel,
        "`fold`": FoldModel,
        "`in-front`, `behind`": JoinedModel,
        "`header`": HeaderModel,
        "A limit, in a list of what a runtime takes": LimitModel,
        "A file of cases": FileModel,
        "A case": CaseModel,
        "`refuses`": RefusalModel,
        "An entry of `values`": FillingModel,
    }
    return {title: list(_keys(model)) for title, model in models.items()}


def _keys(model: Any) -> Iterator[Word]:
    for name, field in model.model_fields.items():
        needed = " Needed." if field.is_required() else ""
        yield Word(field.alias or name, f"{field.description}{needed}")


def _arguments(function: Any, skipped: int = 0) -> str:
    """The parameters of a function: names and defaults."""
    shown = []
    for parameter in list(inspect.signature(function).parameters.values())[skipped:]:
        if parameter.kind is parameter.VAR_KEYWORD:
            continue
        star = "*" if parameter.kind is parameter.VAR_POSITIONAL else ""
        default = parameter.default
        end = "" if default is parameter.empty else f"={default!r}"
        shown.append(f"{star}{parameter.name}{end}")
    return ", ".join(shown)


def _first_line(function: Any) -> str:
    text = inspect.getdoc(function) or ""
    return " ".join(text.partition("\n\n")[0].split())
