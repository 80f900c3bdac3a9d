"""The steps of a recipe, read: one key each, and what stands beside it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from surgeon.choices import check_metadata
from surgeon.document import Value
from surgeon.errors import RecipeError
from surgeon.recipe.models import HeaderModel, RuleModel, StepModel
from surgeon.recipe.reading import Known, read_rule
from surgeon.recipe.rules import (
    AsReadStep,
    FoldStep,
    FreeBatchStep,
    FreeSizesStep,
    HeaderStep,
    IrVersionStep,
    LowerOpsetStep,
    NamesStep,
    PlainAttributesStep,
    PlainMetadataStep,
    RaiseOpsetStep,
    Rule,
    RulesStep,
    ShareWeightsStep,
    SimplifyStep,
    StateShapesStep,
    UnrollStep,
)
from surgeon.recipe.written import Use, WrittenStep

_CHOOSING = {"without", "only"}  # keys beside `use`
_KEEPING = frozenset({"use", "rules", "fold", "unroll"})  # what `keep` may stand beside

_PLAIN: dict[
    str, Callable[[Any], WrittenStep]
] = {  # steps whose value is all that there is to them
    "simplify": SimplifyStep,
    "raise_opset": RaiseOpsetStep,
    "lower_opset": LowerOpsetStep,
    "free_batch": FreeBatchStep,
    "free_sizes": lambda names: FreeSizesStep(tuple(names)),
    "ir_version": IrVersionStep,
    "as_read": AsReadStep,
    "plain_names": lambda _: NamesStep(),
    "rename": lambda names: NamesStep(tuple(names.items())),
    "plain_attributes": lambda _: PlainAttributesStep(),
    "plain_metadata": lambda said: PlainMetadataStep(inside=said == "inside"),
    "share_weights": lambda _: ShareWeightsStep(),
    "state_shapes": lambda said: StateShapesStep(formulas=said is True),
}


def read_step(item: StepModel, value: Value, known: Known, recipe: str) -> WrittenStep:
    """Read a step.

    Args:
        item: What it says.
        value: The same with the place of every word.
        known: As of `read_rule`.
        recipe: The recipe it is of.

    Raises:
        RecipeError: It has no key, or several, or one that says nothing; names the place.
    """
    key = _key(item, value)
    content = value.find(key.replace("_", "-")) or value
    said, keep = getattr(item, key), tuple(item.keep or ())
    if key == "fold":  # `fold:` with nothing behind it is one of usual sizes
        return FoldStep(said.max_bytes if said else None, keep)
    if said is None:
        raise RecipeError(
            f"`{key.replace('_', '-')}` is empty",
            where=content.location,
            mend="Give it a value, or take the step out.",
        )
    if key == "use":
        return _use(item, value, content)
    if key == "rules":
        if not said:
            raise empty("rules", value)
        return RulesStep(read_rules(said, content, recipe, known), keep=keep)
    if key == "unroll":
        return UnrollStep(said, keep)
    if key == "header":
        return _header(said, content)
    return _PLAIN[key](said)


def _key(item: StepModel, value: Value) -> str:
    """The one key that says what the step does.

    Raises:
        RecipeError: There is none, or there are several, or another stands where it says nothing.
    """
    keys = item.model_fields_set - (_CHOOSING if item.use is not None else set())
    if keys != {"keep"}:
        keys -= {"keep"}
    if len(keys) != 1:
        raise RecipeError(
            f"a step has one key, not {len(keys)}",
            where=value.location,
            mend="Make each a step of its own, with its own `-`.",
        )
    (key,) = keys
    if key in _CHOOSING:
        raise RecipeError(
            f"`{key}` chooses among the rules of nothing",
            where=value.location,
            mend="Write it beside `use`.",
        )
    if item.keep is not None and key not in _KEEPING:
        raise RecipeError(
            "`keep` keeps nodes from no rule",
            where=value.key_location("keep"),
            mend="Write it beside `use`, `rules`, `fold` or `unroll`.",
        )
    return key


def _use(item: StepModel, value: Value, content: Value) -> Use:
    """A step that is other recipes."""
    lists = [(value.find("without"), item.without or ()), (value.find("only"), item.only or ())]
    chosen_at = tuple(
        ((under and under.find(index)) or value).location
        for under, names in lists
        for index in range(len(names))
    )
    chosen = tuple(item.without or ()), tuple(item.keep or ()), tuple(item.only or ()), chosen_at
    if isinstance(item.use, str):
        return Use((item.use,), (content.location,), False, *chosen)
    if not item.use:
        raise RecipeError("`use` is empty", where=content.location, mend="Name a recipe.")
    places = [(content.find(index) or content).location for index in range(len(item.use))]
    return Use(tuple(item.use), tuple(places), True, *chosen)


def _header(item: HeaderModel, value: Value) -> HeaderStep:
    said = item.model_dump(by_alias=True, exclude={"metadata"}, exclude_none=True)
    if not said and not item.metadata:
        raise RecipeError(
            "`header` says nothing",
            where=value.location,
            mend="Write what the file is to say: `header: {metadata: {author: me}}`.",
        )
    check_metadata(item.metadata, where=(value.find("metadata") or value).location)
    return HeaderStep(tuple(item.metadata.items()), tuple(said.items()))


def read_rules(
    models: Sequence[RuleModel], value: Value | None, recipe: str, known: Known
) -> tuple[Rule, ...]:
    """Read rules; `value` is their list, with the place of every word.

    Raises:
        RecipeError: One of them is wrong; names the place.
    """
    found = []
    for index, model in enumerate(models):
        item = value.find(index) if value is not None else None
        assert item is not None, "the models hold what the document holds"
        found.append(read_rule(model, item, recipe, known))
    return tuple(found)


def empty(key: str, value: Value) -> RecipeError:
    """What is said of a list of nothing."""
    where = value.key_location(key)
    return RecipeError(f"`{key}` is empty", where=where, mend="Write one, or take the key out.")
