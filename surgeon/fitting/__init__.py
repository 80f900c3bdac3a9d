"""Which rules spell out what a runtime's list lacks, in operators that it has.

A rule is taken for an operator that is not on the list, where some form of what it writes is on the
list, or is spelled out in turn, by rules that do not lead back to it. What a rule writes in other
forms than its cases show is seen to by `apply`, which leaves such rules out.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence, Set
from functools import cache
from pathlib import Path

from surgeon.notation import Pattern
from surgeon.recipe import FOR_TARGET, IN_TURNS, Recipe, Rule, RulesStep, UnrollStep, bundled
from surgeon.targets import Target
from surgeon.targets.own import is_own

__all__ = [
    "SPELLING",
    "TABLE",
    "lacking",
    "recipe_for_target",
    "spelled_out",
    "spelling_recipes",
    "waiting_rules",
]

TABLE = Path(__file__).with_name("written.json")

# Recipes that spell out operators; of two rules for one operator that of the former is tried first.
SPELLING = (
    *("spelled-out", "opset-19-forms", "opset-18-forms", "opset-15-forms", "opset-14-forms"),
    "activations-decompose",
    *("reductions-decompose", "arithmetic-decompose", "indexing-decompose", "bits-decompose"),
    *("nan-forms", "logic-forms", "einsum-to-matmul", "cumsum-to-matmul", "range-forms"),
    *("mask-forms", "scatter-forms", "resize-decompose", "pad-to-concat", "rare-forms"),
    *("grid-forms", "layer-norm-decompose", "instance-norm-decompose", "split-to-slices"),
    *(
        "batch-norm-decompose",
        "plain-conv",
        "recurrent-decompose",
        "fourier-decompose",
        "max-min-decompose",
    ),
    *("deform-conv-decompose", "gather-on-shape", "one-axis-forms", "erf-decompose"),
    *(
        "exp-forms",
        "basics-decompose",
        "roi-align-decompose",
        "sums-to-matmul",
        "qdq-to-floats",
        "qdq",
        "dynamic-quantized",
    ),
)
_NOWHERE = frozenset({"Identity", "Constant"})  # what a rewrite leaves of these is a value
_KINDS = ("approximate", "contract")
_TURNS = 256  # as `unroll` does

Forms = Sequence[frozenset[str]]  # what a rule writes: sets of operators, one of them each time


def recipe_for_target(
    wanted: Target, allow: Sequence[str] = (), without: frozenset[str] = frozenset()
) -> Recipe:
    """A recipe of the rules for what a runtime's list lacks.

    Args:
        wanted: The target.
        allow: Kinds of rules that may fire, as of `apply`.
        without: Rules that are left out, by their ids.
    """
    rules = _chosen(wanted, frozenset(allow).intersection(_KINDS), without)
    apart = lacking(wanted, dict.fromkeys(IN_TURNS, 1))
    turns = [UnrollStep(_TURNS, operators=apart)] if apart else []
    told = "\n".join(f"{rule.recipe}/{rule.id} {rule.match.root.operators}" for rule in rules)
    return Recipe(
        name=f"to {wanted.title if is_own(wanted.name) else wanted.name}",
        about=f"What {wanted.title} lacks, in operators that it has.",
        steps=(*turns, RulesStep(rules)),
        custom=frozenset(),
        source=FOR_TARGET,
        digest=hashlib.sha256(told.encode()).hexdigest(),
    )


def spelled_out(wanted: Target) -> frozenset[str]:
    """The operators that a target lacks and that have exact rules in operators that it has."""
    return _begun_at(wanted, frozenset())


def waiting_rules(
    wanted: Target, operators: Sequence[str], allow: Sequence[str] = ()
) -> Mapping[str, tuple[str, ...]]:
    """Which of these operators further rules are for, by what has to be allowed for them.

    Args:
        wanted: The target.
        operators: Those of a model that it lacks.
        allow: What is allowed already.
    """
    allowed = frozenset(allow).intersection(_KINDS)
    now = _begun_at(wanted, allowed)
    found = {}
    for kind in _KINDS:
        more = _begun_at(wanted, allowed | {kind}) - now
        if names := tuple(operator for operator in operators if operator in more):
            found[kind] = names
    return found


def _begun_at(wanted: Target, allow: frozenset[str]) -> frozenset[str]:
    rules = _chosen(wanted, allow)
    return frozenset(operator for rule in rules for operator in rule.match.root.operators)


def spelling_recipes(wanted: Target) -> Mapping[str, tuple[str, ...]]:
    """By operator that a target lacks: the recipes after whose rules it is gone.

    Where none writes what the target has alone, those that spell the operator out all the same.
    """
    found: dict[str, dict[str, None]] = {}
    others: dict[str, dict[str, None]] = {}
    known = [(rule, found) for rule in _chosen(wanted, frozenset(_KINDS))]
    for rule, recipes in (*known, *((rule, others) for rule, _ in _rules())):
        for operator in rule.match.root.operators:
            recipes.setdefault(operator, {})[rule.recipe] = None
    return {operator: tuple(recipes) for operator, recipes in (others | found).items()}


def lacking(wanted: Target, operators: Mapping[str, int]) -> tuple[str, ...]:
    """The operators of a model that a target lacks, in the order that they are given in."""
    has = wanted.operators | _NOWHERE
    return tuple(operator for operator in operators if operator not in has)


@cache
def _chosen(
    wanted: Target, allow: frozenset[str], without: frozenset[str] = frozenset()
) -> tuple[Rule, ...]:
    """The rules for a target, each for the operators that it lacks alone."""
    has = wanted.operators | _NOWHERE
    known = [
        (rule, operator, written)
        for rule, forms in _rules()
        if not rule.waits(allow) and rule.id not in without
        for operator, written in forms.items()
        if operator not in has
    ]
    needs: dict[str, set[str]] = {}  # by what is spelled out: what is so in turn
    reach: dict[tuple[str, str], set[str]] = {}
    while True:
        left = [each for each in known if not _reaches(*each, has, needs, reach)]
        if len(left) == len(known):
            break
        known = left
    return tuple(
        _for_operators(rule, reach[rule.recipe, rule.id])
        for rule, _ in _rules()
        if (rule.recipe, rule.id) in reach
    )


def _reaches(
    rule: Rule,
    operator: str,
    written: Forms,
    has: Set[str],
    needs: dict[str, set[str]],
    reach: dict[tuple[str, str], set[str]],
) -> bool:
    """Take a rule for an operator, if some form of what it writes is reached, and not by itself."""
    for form in written:
        rest = form - has
        if not rest <= needs.keys() or operator in rest:
            continue
        behind = rest.union(*(needs[other] for other in rest))
        if operator in behind:
            continue
        needs.setdefault(operator, set()).update(behind)
        for others in needs.values():
            if operator in others:
                others |= behind
        reach.setdefault((rule.recipe, rule.id), set()).add(operator)
        return True
    return False


def _for_operators(rule: Rule, operators: Set[str]) -> Rule:
    """A rule that begins at some of its operators alone."""
    *others, root = rule.match.nodes
    kept = tuple(operator for operator in root.operators if operator in operators)
    replace = rule.replace
    if isinstance(replace, Pattern):  # what carries over which it is
        alike = Pattern((root,)).of_operators
        nodes = (n._replace(operators=kept) if alike(n) else n for n in replace.nodes)
        replace = Pattern(tuple(nodes))
    match = Pattern((*others, root._replace(operators=kept)))
    return rule._replace(match=match, replace=replace)


@cache
def _rules() -> tuple[tuple[Rule, Mapping[str, Forms]], ...]:
    """Each rule that spells out standard operators, with what it writes for each of them."""
    table: dict[str, dict[str, list[list[str]]]] = json.loads(TABLE.read_text(encoding="utf-8"))
    found: dict[tuple[str, str], tuple[Rule, Mapping[str, Forms]]] = {}
    for rule in _candidates():
        told = table.get(f"{rule.recipe}/{rule.id}", {})
        forms = {op: [frozenset(form) for form in written] for op, written in told.items()}
        if forms:
            found.setdefault((rule.recipe, rule.id), (rule, forms))
    return tuple(found.values())


def _candidates() -> Iterator[Rule]:
    """The rules of the recipes that spell out, at standard operators."""
    for name in SPELLING:
        for rule in Recipe.load(bundled()[name]).rules:
            if not rule.match.root.domain and not rule.only_refuses:
                yield rule
