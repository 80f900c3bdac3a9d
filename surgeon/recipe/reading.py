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
from surgeon.notation import (
    Argument,
    NodePattern,
    Pattern,
    check_named,
    check_operators,
    labels_of,
    parse_pattern,
    parse_replacement,
)
from surgeon.recipe.lets import check_lets, check_numbers
from surgeon.recipe.models import RuleModel
from surgeon.recipe.rules import BuilderCall, Rule
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
    if isinstance(model.replace, str):
        written = parse_replacement(*_text(value, "replace"))
        check_operators(written, custom=known.custom, complete=True)
        for _, label, place in labels_of(*_text(value, "replace")):
            raise RecipeError(
                f"`[{label}]` in a replacement names no node",
                where=place,
                mend="Leave it out: nodes are called after the values they give.",
            )
        _check_replacement(match, written, frozenset(name for name, _ in let))
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


def _rests(pattern: Pattern) -> set[str]:
    return {a.name for node in pattern.nodes for a in node.inputs if a.rest}


def _captures(pattern: Pattern) -> set[str]:
    return {name for node in pattern.nodes for name in node.captures.values()}


def names_bound(match: Pattern) -> set[str]:
    """The names that expressions may use of a match."""
    return {*match.inputs, *match.outputs, *_captures(match)} - {"_"}


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
    model: RuleModel, value: Value, match: Pattern, known: Known
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
    value: Value | None, name: str, names: set[str], model: RuleModel, known: Known
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


def _check_replacement(match: Pattern, replace: Pattern, lets: frozenset[str]) -> None:
    outputs = [name for name in match.root.outputs if name not in ("", "_")]
    if not outputs:
        raise RecipeError(
            "no output of the last node has a name",
            where=match.root.location,
            mend="Name it, so that `replace` can produce it.",
        )
    produced = set(replace.outputs)
    for name in outputs:
        if name not in produced:
            raise RecipeError(
                f"`{name}` is not produced here",
                where=replace.root.location,
                mend=f"Write `{name} = ...`: it takes the place of the match's output.",
            )
    for node in replace.nodes:
        for name in node.outputs:
            if name and name not in outputs and (name in names_bound(match) or name in lets):
                raise RecipeError(
                    f"`{name}` already has a meaning in this rule",
                    where=node.location,
                    mend="Give the new value another name.",
                )
        for argument in node.inputs:
            _check_input(argument, node, match, produced, lets)
        _check_captures(node, match, lets)
    _check_all_used(replace, outputs)


def _check_input(
    argument: Argument, node: NodePattern, match: Pattern, produced: set[str], lets: frozenset[str]
) -> None:
    name, rests, captures = argument.name, _rests(match), _captures(match)
    values = {*match.inputs, *match.outputs} - rests - {*match.root.outputs}
    if not name or (not argument.computed and not argument.rest and name in produced):
        return

    def error(what: str, mend: str) -> RecipeError:
        return RecipeError(what, where=node.location, mend=mend)

    if argument.computed:
        if name not in lets and name not in captures:
            if name in values:
                raise error(f"`{name}` is a value, not computed", f"Write `{name}`.")
            raise error(f"unknown name `@{name}`", _declare(name, lets | captures))
    elif argument.rest:
        if name not in rests:
            mend = f"Write `{name}`." if name in values else suggest(name, rests)
            raise error(f"`*{name}` is no rest of the match's inputs", mend)
    elif name in rests:
        raise error(f"`{name}` is the rest of the inputs", f"Write `*{name}`.")
    elif name not in values:
        if name in lets or name in captures:
            raise error(f"`{name}` is computed, not a value", f"Write `@{name}`.")
        raise error(f"unknown name `{name}`", suggest(name, values))


def _declare(name: str, known: Collection[str]) -> str:
    """A mend for a computed name that nothing computes."""
    near = suggest(name, known)
    return near if near.startswith("Did") else f"Declare it: `let: {{{name}: ...}}`."


def _check_captures(node: NodePattern, match: Pattern, lets: frozenset[str]) -> None:
    known = lets | _captures(match)
    for attribute, name in node.captures.items():
        if name not in known:
            raise RecipeError(
                f"unknown name `@{name}` for the attribute `{attribute}`",
                where=node.place(attribute),
                mend=_declare(name, known),
            )
    rests = {other.rest for other in match.nodes if other.rest is not None}
    if node.rest is not None and node.rest not in rests:
        raise RecipeError(
            f"`*{node.rest}` is no rest of the match's attributes",
            where=node.location,
            mend=suggest(node.rest, rests),
        )


def _check_all_used(replace: Pattern, outputs: Collection[str]) -> None:
    needed = set(outputs)
    for node in reversed(replace.nodes):
        if not needed.intersection(name for name in node.outputs if name):
            named = next((name for name in node.outputs if name), node.operators[0])
            raise RecipeError(
                f"`{named}` is produced and used by nothing",
                where=node.location,
                mend="Use it in a later node, or take it out.",
            )
        needed.update(argument.name for argument in node.inputs)
