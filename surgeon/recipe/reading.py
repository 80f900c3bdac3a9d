"""The reading of one rule, with every static check."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from surgeon.document import Value, suggest
from surgeon.errors import Location, RecipeError
from surgeon.expressions import DTYPES, Expression
from surgeon.expressions.conditions import check_conditions
from surgeon.functions import FUNCTIONS
from surgeon.functions.values import ELSEWHERE, dtype_meant
from surgeon.meanings import full_name
from surgeon.notation import (
    Pattern,
    check_named,
    check_operators,
    labels_of,
    parse_pattern,
    parse_replacement,
)
from surgeon.recipe.lets import check_lets, check_numbers
from surgeon.recipe.models import LimitModel, RuleModel
from surgeon.recipe.replacing import check_replacement, names_bound
from surgeon.recipe.rules import BuilderCall, Rule
from surgeon.recipe.validating import validate
from surgeon.standard import newest_opset


@dataclass(frozen=True, slots=True)
class Known:
    """What a recipe may name beyond what it defines."""

    custom: frozenset[str] = frozenset()
    functions: frozenset[str] = frozenset()
    builders: Mapping[str, Any] = field(default_factory=dict)


def read_rule(model: RuleModel, value: Value, recipe: str, known: Known) -> Rule:
    """Make a rule of its validated form.

    Args:
        model: The rule's content.
        value: The same in the document, for places.
        recipe: The name of the recipe.
        known: Operators, functions and builders it may name.

    Raises:
        RecipeError: Something in the rule is wrong; names the place.
    """
    match, let, where = _read_match(model, value, known)
    names = names_bound(match) | {name for name, _ in let}
    if isinstance(model.replace, str):
        written = parse_replacement(*_text(value, "replace"))
        check_operators(written, custom=known.custom, complete=True)
        for _, label, place in labels_of(*_text(value, "replace")):
            raise RecipeError(
                f"`[{label}]` in a replacement names no node",
                where=place,
                mend="Leave it out: nodes are called after the values they give.",
            )
        check_replacement(match, written, frozenset(name for name, _ in let))
        check_numbers(written, dict(let))
        replace: Pattern | BuilderCall = written
    else:
        replace = _read_builder(model.replace.build, value, names, known)
    check_lets(value, replace, let, where)
    return Rule(
        id=model.id,
        why=model.why,
        exact=model.exact,
        contract=model.contract,
        match=match,
        where=where,
        let=let,
        replace=replace,
        recipe=recipe,
        location=value.location,
        relative_to=model.relative_to,
        since_opset=_since(model, value),
        bound=_bound_of(model, value),
        late=model.late,
        whole=_whole_of(model, value),
    )


def read_limit(value: Value, recipe: str, operators: Collection[str] | None) -> Rule:
    """Make a rule of a limit in a target's list: of what it says of a node, nothing is written.

    Args:
        value: The limit.
        recipe: What the list is called.
        operators: Those that the list has, of domains of its own too; None where whoever asks
            looks at that.

    Raises:
        RecipeError: Something in it is wrong; names the place.
    """
    model = validate(value, LimitModel)
    custom = frozenset(name for name in operators or () if "." in name)
    match, let, where = _read_match(model, value, Known(custom=custom))
    root = match.root
    ends = {full_name(root.domain, operator) for operator in root.operators}
    if operators is not None and not ends & {*operators}:
        raise RecipeError(
            f"the list does not have `{full_name(root.domain, root.operators[0])}`",
            where=root.location,
            mend="Add it to `operators` or `limited`, or leave the limit out.",
        )
    why = model.why or " and ".join(each.text for each in where) or _text(value, "match")[0]
    nothing = BuilderCall("", {}, value.location)
    return Rule("limit", why, "bit", None, match, where, let, nothing, recipe, value.location)


def _read_match(
    model: RuleModel | LimitModel, value: Value, known: Known
) -> tuple[Pattern, tuple[tuple[str, Expression], ...], tuple[Expression, ...]]:
    """What is looked for, the values that are computed, and the conditions."""
    match = parse_pattern(*_text(value, "match"))
    check_operators(match, custom=known.custom)
    let = _read_let(model, value, match, known)
    names = names_bound(match) | {name for name, _ in let}
    labels = (
        Expression.parse(f"{output}.node == {label!r}", place)
        for output, label, place in labels_of(*_text(value, "match"))
    )
    asked = (
        _expression(value.find("where", index), names, known) for index in range(len(model.where))
    )
    where = (*labels, *asked)
    check_conditions(where)
    return match, let, where


def _bound_of(model: RuleModel, value: Value) -> float | None:
    if model.bound is not None and model.exact != "approximate":
        raise RecipeError(
            f"`bound` is for approximate rules, and this one is `{model.exact}`",
            where=value.key_location("bound"),
            mend="Leave `bound` out, or say `exact: approximate`.",
        )
    return model.bound


_TO_COME = 10  # opsets beyond the newest here that another onnx may know


def _since(model: RuleModel, value: Value) -> int | None:
    newest = newest_opset()
    if model.since_opset is not None and model.since_opset > newest + _TO_COME:
        found = value.find("since_opset")
        raise RecipeError(
            f"there is no opset {model.since_opset}: the newest is {newest}",
            where=found.location if found else value.location,
            mend=f"Write one up to {newest}.",
        )
    return model.since_opset


def _whole_of(model: RuleModel, value: Value) -> float | None:
    if model.whole is not None and (model.bound is None or model.whole < model.bound):
        raise RecipeError(
            "`whole` is for rules with a `bound`, and no less than that",
            where=value.key_location("whole"),
            mend="Leave `whole` out, or say `bound` too.",
        )
    return model.whole


def _text(value: Value, key: str) -> tuple[str, Location]:
    found = value.find(key) or value
    return found.source, found.location


def _parse(value: Value | None, known: Known) -> Expression:
    assert value is not None, "the models hold what the document holds"
    text = value.source if isinstance(value.content, str) else repr(value.content)
    expression = Expression.parse(text, value.location, functions=known.functions)
    for name, where in expression.makers:
        check_named(name, known.custom, where)
    return expression


def _expression(value: Value | None, names: Collection[str], known: Known) -> Expression:
    expression = _parse(value, known)
    check_names(expression, names)
    return expression


def check_names(expression: Expression, names: Collection[str]) -> None:
    """See that an expression names nothing else.

    Raises:
        RecipeError: It does.
    """
    for name in sorted(expression.names, key=lambda name: str(expression.place(name))):
        if name not in names:
            raise RecipeError(
                f"unknown name `{name}`",
                where=expression.place(name),
                mend=_meant(name, names),
            )


def _meant(name: str, names: Collection[str]) -> str:
    """What an unknown name may be meant for: one of the rule's, or an element type."""
    near = difflib.get_close_matches(name, DTYPES)
    return dtype_meant(name) if name in ELSEWHERE else suggest(name, {*names, *near})


def _read_let(
    model: RuleModel | LimitModel, value: Value, match: Pattern, known: Known
) -> tuple[tuple[str, Expression], ...]:
    entries = value.find("let") or value
    names, read = names_bound(match), []
    for name in model.let:
        where = entries.key_location(name)
        if not name.isidentifier():
            raise RecipeError(
                f"`{name}` is no name", where=where, mend="Use letters, digits and `_`."
            )
        if name in names:
            raise RecipeError(
                f"`{name}` is already a name of the match", where=where, mend="Use another name."
            )
        if name in DTYPES or name in FUNCTIONS or name in known.functions:
            kind = "a dtype" if name in DTYPES else "a function"
            raise RecipeError(f"`{name}` is {kind}", where=where, mend="Use another name.")
        expression = _let_expression(entries.find(name), name, names, model, known)
        names.add(name)
        read.append((name, expression))
    return tuple(read)


def _let_expression(
    value: Value | None, name: str, names: set[str], model: RuleModel | LimitModel, known: Known
) -> Expression:
    expression = _parse(value, known)
    later = (expression.names & model.let.keys()) - names
    if later:
        other = min(later)
        raise RecipeError(
            f"`{other}` is used before it is computed",
            where=expression.place(other),
            mend="A name cannot use itself." if other == name else f"Write `{other}` above.",
        )
    return _expression(value, names, known)


def _read_builder(name: str, value: Value, names: Collection[str], known: Known) -> BuilderCall:
    mapping = value.find("replace") or value
    named = mapping.find("build") or mapping
    if name not in known.builders:
        raise RecipeError(
            f"unknown builder `{name}`",
            where=named.location,
            mend=suggest(
                name,
                known.builders,
                "`surgeon recipes builders` lists them; a function of your own makes a rule in "
                "Python (`surgeon.rule`).",
            ),
        )
    content = mapping.content
    keys = [key for key in content if key != "build"] if isinstance(content, Mapping) else []
    builder = known.builders[name]
    if callable(builder):
        _check_arguments(builder, name, keys, mapping)
    arguments = {key: _argument(mapping.find(key), names, known) for key in keys}
    return BuilderCall(name, MappingProxyType(arguments), named.location)


def _argument(value: Value | None, names: Collection[str], known: Known) -> Expression:
    word = value.content if value is not None else None
    if isinstance(word, str) and word.isidentifier() and word not in {*names, *DTYPES, "None"}:
        raise RecipeError(
            f"unknown name `{word}`",
            where=value.location if value is not None else "",
            mend=f"Write \"'{word}'\" for the text, or one of the rule's names.",
        )
    return _expression(value, names, known)


def _check_arguments(
    builder: Callable[..., Any], name: str, keys: list[str], mapping: Value
) -> None:
    """A builder takes the draft and the match, and by keyword what a recipe gives it."""
    parameters = list(inspect.signature(builder).parameters.values())[2:]
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return
    known = [parameter.name for parameter in parameters]
    for key in keys:
        if key not in known:
            raise RecipeError(
                f"the builder `{name}` has no argument `{key}`",
                where=mapping.key_location(key),
                mend=suggest(key, known),
            )
    for parameter in parameters:
        if parameter.default is parameter.empty and parameter.name not in keys:
            raise RecipeError(
                f"the builder `{name}` needs `{parameter.name}`",
                where=mapping.location,
                mend=f"Add `{parameter.name}: ...`.",
            )
