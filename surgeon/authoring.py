"""Rules written in Python: a pattern as in a recipe, and a function that builds the replacement."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import onnx

from surgeon.choices import check_metadata, several
from surgeon.document import nearest
from surgeon.errors import Location, RecipeError
from surgeon.expressions import Expression
from surgeon.match import Match
from surgeon.notation import check_operators, labels_of, parse_pattern
from surgeon.recipe import HeaderStep, NamesStep, Recipe, Rule, RulesStep
from surgeon.rewrite import Draft
from surgeon.standard import newest_opset
from surgeon.steps.irversion import ir_version_of

Builder = Callable[[Draft, Match], Any]
EARLIEST, OLDEST = 9, 11  # what `raise-opset` and `lower-opset` go to at the least
PYTHON = "<python>"  # the source of a recipe of rules that are functions
EXACTNESS = ("bit", "rounding", "approximate")


def rule(
    match: str,
    *,
    where: Sequence[str] = (),
    why: str = "",
    exact: str = "rounding",
    contract: str | None = None,
    id: str | None = None,
    custom: Sequence[str] = (),
    bound: float | None = None,
) -> Callable[[Builder], Rule]:
    """Make a rule of a function that builds the replacement.

    The function gets the draft to add nodes to (`op`, `constant`) and the match (`values` by the
    pattern's names), and gives the tensor that takes the place of the root's output, or a tuple of
    them. It raises `surgeon.Refused` with the reason where it cannot.

    Args:
        match: The pattern, as after `match:` in a recipe.
        where: Conditions, as in a recipe.
        why: The reason, for reports; default the first line of the function's docstring.
        exact: `bit`, `rounding` or `approximate`.
        contract: What it changes in what the model promises, or None.
        id: The rule's id; default the function's name with hyphens.
        custom: Operators or domains of the pattern that no schema knows.
        bound: For `approximate`: the error it may make, relative to the spread of what it replaces.

    Raises:
        RecipeError: The pattern, a condition or an option is wrong; names the place in the source
            file.
    """
    if not isinstance(match, str):
        raise RecipeError(
            f"`match` is a `{type(match).__name__}`, and no text",
            where="rule",
            mend='Write `@surgeon.rule(match="y = Relu (x)")` above the function.',
        )
    if exact not in EXACTNESS:
        raise RecipeError(
            f"`exact` is one of {', '.join(EXACTNESS)}, not `{exact}`",
            where="rule",
            mend="Say how exact the replacement is.",
        )
    if bound is not None and not (exact == "approximate" and bound > 0):
        raise RecipeError(
            f"`bound` is {bound} of a rule that is `{exact}`",
            where="rule",
            mend='Give a number above 0, of `exact="approximate"`.',
        )
    conditions = several(where)
    from surgeon.recipe.reading import check_names  # brings pydantic
    from surgeon.recipe.replacing import names_bound

    def decorate(function: Builder) -> Rule:
        location, called = _place_of(function)
        pattern = parse_pattern(match, location)
        check_operators(pattern, custom=frozenset({*custom, *_own(pattern)}))
        named = [f"{y}.node == {label!r}" for y, label, _ in labels_of(match, location)]
        asked = [Expression.parse(text, location) for text in (*named, *conditions)]
        for expression in asked:
            check_names(expression, names_bound(pattern))
        doc = inspect.getdoc(function) or ""
        return Rule(
            id=id or called.replace("_", "-"),
            why=why or doc.partition("\n")[0],
            exact=exact,
            contract=contract,
            match=pattern,
            where=tuple(asked),
            let=(),
            replace=function,
            recipe=getattr(function, "__module__", None) or "python",
            location=location,
            bound=bound,
        )

    return decorate


def _place_of(function: Builder) -> tuple[Location, str]:
    """Where a function is written, and what it is called; of an object that is called, its class.

    Raises:
        RecipeError: It is none.
    """
    if not callable(function):
        raise RecipeError(
            f"`{type(function).__name__}` is no function",
            where="rule",
            mend="Put `@surgeon.rule(...)` above the function that builds the replacement.",
        )
    plain: Any = inspect.unwrap(function)
    plain = getattr(plain, "func", plain)  # of `functools.partial`
    if not hasattr(plain, "__code__"):
        plain = plain if hasattr(plain, "__name__") else type(plain)
    code = getattr(plain, "__code__", None) or getattr(plain.__call__, "__code__", None)
    called = str(plain.__name__)
    return (Location(code.co_filename, code.co_firstlineno) if code else Location(called)), called


def recipe_of(*rules: Rule) -> Recipe:
    """A recipe of one step that holds these rules."""
    names = ", ".join(f"{one.recipe}/{one.id}" for one in rules)
    return Recipe(
        name=names,
        about="Rules written in Python.",
        steps=(RulesStep(rules),),
        custom=frozenset().union(*(_own(one.match) for one in rules)),
        source=PYTHON,
        digest=hashlib.sha256(names.encode()).hexdigest(),
    )


def recipe_for_metadata(metadata: Mapping[str, str | None]) -> Recipe:
    """A recipe of the step that sets metadata of the file.

    Args:
        metadata: Texts by their keys; None for an entry that leaves.

    Raises:
        RecipeError: A file cannot have such entries.
    """
    check_metadata(metadata, where="--metadata")
    said = tuple(metadata.items())
    digest = hashlib.sha256(repr(said).encode()).hexdigest()
    return Recipe("metadata", steps=(HeaderStep(said),), source="<metadata>", digest=digest)


def recipe_for_names(names: Mapping[str, str]) -> Recipe:
    """A recipe of the step that gives values, nodes or sizes other names.

    Args:
        names: The new ones by the old ones.
    """
    said = tuple(names.items())
    digest = hashlib.sha256(repr(said).encode()).hexdigest()
    return Recipe(
        "rename",
        steps=(NamesStep(said),),
        allow=frozenset({"contract"}),
        source="<rename>",
        digest=digest,
    )


# Recipes that spell out operators, and the opset from which those are there.
_SPELLED_OUT = {
    "opset-12-forms": 12,
    "opset-13-forms": 13,
    "opset-14-forms": 14,
    "opset-15-forms": 15,
    "grid-forms": 16,
    "opset-16-forms": 16,
    "layer-norm-decompose": 17,
    "fourier-decompose": 17,
    "opset-18-forms": 18,
    "opset-19-forms": 19,
    "affine-grid-decompose": 20,
    "gelu-decompose": 20,
    "group-norm-decompose": 21,
    "attention-decompose": 23,
    "rms-norm-decompose": 23,
    "swish-decompose": 24,
    "opset-24-forms": 28,
}


def recipe_for_ir_version(opset: int) -> Recipe:
    """A recipe of the step that writes a model of an opset in the format that came with it."""
    version = ir_version_of(opset)
    return _of_steps(f"in IR version {version} at most", [f"ir-version: {version}"])


def recipe_for_opset(before: int, opset: int) -> Recipe:
    """A recipe of the step that takes a model of opset `before` to another.

    Raises:
        RecipeError: No step goes there.
    """
    least = OLDEST if opset < before else EARLIEST
    if opset < least:
        raise RecipeError(
            f"a model of opset {before} cannot be taken to {opset}",
            where="opset",
            mend=f"Ask for {least} at the least; export the model anew for an older one.",
        )
    if opset > newest_opset():
        raise RecipeError(
            f"opset {opset} is newer than all that are known",
            where="opset",
            mend=f"Ask for {newest_opset()} at the most, the newest of onnx {onnx.__version__}.",
        )
    if opset > before:
        return _of_steps(f"to opset {opset}", [f"raise-opset: {opset}"])
    newer = [name for name, since in _SPELLED_OUT.items() if opset < since]
    steps = [_use(newer)] if newer else []
    return _of_steps(f"to opset {opset}", [*steps, f"lower-opset: {opset}"])


def opset_within(bounds: tuple[int, int] | None, opset: int) -> int:
    """The opset nearest to a model's that a runtime reads, as far as steps lead there.

    Args:
        bounds: The oldest and the newest that it reads; None where that is not known.
        opset: The model's.
    """
    if bounds is None or bounds[0] <= opset <= bounds[1]:
        return opset
    oldest, newest = bounds
    return min(opset, max(newest, OLDEST)) if opset > newest else max(oldest, EARLIEST)


def spelling_out(operator: str, opset: int) -> list[str]:
    """The recipes for an opset that have a rule for this operator."""
    return [
        name
        for name, since in _SPELLED_OUT.items()
        if opset < since
        and any(operator in rule.match.nodes[-1].operators for rule in Recipe.load(name).rules)
    ]


def _use(names: Sequence[str]) -> str:
    return f"use: [{', '.join(names)}]"


def _of_steps(name: str, steps: Sequence[str]) -> Recipe:
    listed = "".join(f"  - {step}\n" for step in steps)
    return Recipe.parse(f"surgeon: 1\nname: {name}\nsteps:\n{listed}", file="<opset>")


def _own(pattern: Any) -> frozenset[str]:
    """The domains of the pattern that are nobody's but the author's, and no known one mistyped."""
    from surgeon.notation.operators import FREE_DOMAINS

    foreign = {node.domain for node in pattern.nodes} - FREE_DOMAINS - {""}
    return frozenset(name for name in foreign if "." in name or not nearest(name, FREE_DOMAINS))
