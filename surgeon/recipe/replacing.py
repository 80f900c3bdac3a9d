"""What a replacement may name, and what it has to give."""

from __future__ import annotations

from collections.abc import Collection

from surgeon.document import suggest
from surgeon.errors import RecipeError
from surgeon.notation import Argument, NodePattern, Pattern


def _rests(pattern: Pattern) -> set[str]:
    return {a.name for node in pattern.nodes for a in node.inputs if a.rest}


def _captures(pattern: Pattern) -> set[str]:
    return {name for node in pattern.nodes for name in node.captures.values()}


def names_bound(match: Pattern) -> set[str]:
    """The names that expressions may use of a match."""
    return {*match.inputs, *match.outputs, *_captures(match)} - {"_"}


def check_replacement(match: Pattern, replace: Pattern, lets: frozenset[str]) -> None:
    """See that a replacement gives what the match gave, of what there is, and uses what it makes.

    Args:
        match: What is replaced.
        replace: What is written.
        lets: The names of what the rule computes.

    Raises:
        RecipeError: It does not.
    """
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
        _check_alternatives(node, match)
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


def _check_alternatives(node: NodePattern, match: Pattern) -> None:
    if len(node.operators) == 1:
        return
    alike = match.of_operators(node)
    if len(alike) != 1:
        written = " | ".join(node.operators)
        many = "no node" if not alike else "more than one node"
        raise RecipeError(
            f"`{written}` are the operators of {many} of the match",
            where=node.location,
            mend="Write what one node of `match` may be, to carry over what it is; else two rules.",
        )
    if not any(name not in ("", "_") for name in alike[0].outputs):
        raise RecipeError(
            "no output of the node of these operators has a name",
            where=alike[0].location,
            mend="Name one, so that the node can be asked what it is.",
        )


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
