"""Which bundled recipes have rules for the operators of a model, and which operators have none."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cache

import onnx.defs

from surgeon import blocks
from surgeon.errors import few
from surgeon.facts import Facts
from surgeon.meanings import full_name
from surgeon.model import Model
from surgeon.recipe import (
    LowerOpsetStep,
    PlainAttributesStep,
    Recipe,
    StateShapesStep,
    bundled,
)
from surgeon.spelling import PRIM_DOMAINS, is_foreign

_FEW = 8  # operators that a rule may be about; one for more is about something else
_END_OF_BLOCKS = f"{blocks.DOMAIN}.ReorderOutput"  # where rules take a whole stretch of them
_OF_ANY = (LowerOpsetStep, StateShapesStep, PlainAttributesStep)


@cache
def _roots() -> Mapping[str, Sequence[frozenset[str]]]:
    """At which operators the rules of each bundled recipe begin; of those that only refuse none."""
    return {
        name: [
            frozenset(
                f"{rule.match.root.domain}.{operator}" if rule.match.root.domain else operator
                for operator in rule.match.root.operators
            )
            for rule in Recipe.load(path).rules
            if not rule.only_refuses
        ]
        for name, path in bundled().items()
    }


def recipes_for(operator: str, *, foreign: bool = False) -> tuple[str, ...]:
    """The bundled recipes that have a rule for an operator, as recipes write it.

    Args:
        operator: Which.
        foreign: Whether none are named for an operator of ONNX's own.
    """
    if foreign and "." not in operator:
        return ()
    at = _where_taken(operator)
    return tuple(name for name, roots in _roots().items() if any(at in root for root in roots))


def _where_taken(operator: str) -> str:
    return _END_OF_BLOCKS if operator.startswith(f"{blocks.DOMAIN}.") else operator


@cache
def recipes_about(operator: str) -> tuple[str, ...]:
    """The bundled recipes with rules of their own that are about an operator, and few others.

    Those for one runtime are named where there are no others.
    """
    domain, _, name = _where_taken(operator).rpartition(".")
    found = {
        rule.recipe: None
        for path in bundled().values()
        for rule in Recipe.load(path).rules
        if (rule.match.root.domain or "") == domain
        and name in rule.match.root.operators
        and len(rule.match.root.operators) <= _FEW
        and not rule.only_refuses
    }
    general = [each for each in found if not each.startswith("for-")]
    return tuple(sorted(general or found))


@cache
def roots() -> frozenset[str]:
    """The operators at which rules of bundled recipes begin, with their domains."""
    return frozenset(name for each in _roots().values() for root in each for name in root)


def helpful(operators: Mapping[str, int]) -> dict[str, int]:
    """How many rules of each recipe end at an operator that occurs."""
    found = {
        name: sum(1 for root in roots if not root.isdisjoint(operators))
        for name, roots in _roots().items()
    }
    return {name: number for name, number in found.items() if number}


@cache
def of_any_model() -> tuple[str, ...]:
    """The bundled recipes with a step that may help whatever the operators are, shortest first."""
    found = [
        name
        for name, path in bundled().items()
        if any(isinstance(step, _OF_ANY) for step in Recipe.load(path).steps)
    ]
    return tuple(sorted(found, key=breadth))


@cache
def within(recipe: str) -> frozenset[str]:
    """The recipes whose rules one has, itself included; of one that is not bundled itself alone."""
    path = bundled().get(recipe)
    used = () if path is None else (rule.recipe for rule in Recipe.load(path).rules)
    return frozenset((recipe, *used))


def breadth(recipe: str) -> int:
    """How many rules a bundled recipe has, those of others that it uses included."""
    return len(_roots()[recipe])


def unheard(model: Model, facts: Facts, there: Collection[str], used: Collection[str]) -> list[str]:
    """That nothing is known behind operators that nobody knows, and what would help.

    Args:
        model: As it is.
        facts: What is proven.
        there: Its operators, as `operators` names them.
        used: The recipes that were applied, which are not named again.
    """
    own = {full_name(function.domain, function.name) for function in model.graph.functions}
    strange = {
        name
        for name in there
        if not (_is_heard_of(name) or facts.meanings.tells_of(name) or name in facts.same_shape)
    } - own
    if not strange:
        return []
    names = dict.fromkeys(
        name
        for graph in model.graphs()
        for node in graph.nodes
        if (name := full_name(node.domain or "", node.op)) in strange
        and any(tensor.outputs and facts.of(tensor).shape is None for tensor in node.outputs)
    )
    if not names:
        return []
    named = {name: found for name in names if (found := set(recipes_for(name)).difference(used))}
    said = [f"`{name}`: rules in `{min(found)}`, in front" for name, found in named.items()]
    rest = [name for name in names if name not in named]
    if rest:
        said.append(
            f"no shape is known behind {few(rest)}: a recipe that says what an operator "
            "computes (`functions`), or that it keeps shapes (`same_shape`), lets rules see them"
        )
    return said


def _is_heard_of(name: str) -> bool:
    domain, _, operator = name.rpartition(".")
    known = is_foreign(name) or domain in PRIM_DOMAINS or domain == "com.microsoft"
    return known or onnx.defs.has(operator, domain)
