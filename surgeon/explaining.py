"""`explain`: runs recipes for the sake of what is said of rules and nodes; compares nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from surgeon.document import suggest
from surgeon.errors import RecipeError
from surgeon.helpful import recipes_for
from surgeon.inspection import nodes_of
from surgeon.model import Model, describe
from surgeon.notation import NodePattern
from surgeon.opening import as_recipe
from surgeon.recipe import Recipe, Rule
from surgeon.report import Missed, Report
from surgeon.spelling import operator_name, spelling
from surgeon.surgery import apply

_NUMBER = re.compile(r"[_:]?\d+$")
_FEW = 4  # nodes that an error names


class Asked(NamedTuple):
    """A node that was asked for.

    Attributes:
        label: As it is called, once: `node 'y' (aten.frobnicate)`.
        name: Its name, or its first output's.
        operator: As recipes write it.
        texts: All the ways in which reports may call it.
    """

    label: str
    name: str
    operator: str
    texts: frozenset[str]


class Untried(NamedTuple):
    """A rule that was tried at no node.

    Attributes:
        rule: Its id.
        recipe: The name of its recipe.
        location: Where it begins.
        ends: The operators at which it ends, as recipes write them.
        reason: Why it was not tried, in words.
        is_there: Whether the file has a node at which it could begin.
    """

    rule: str
    recipe: str
    location: str
    ends: tuple[str, ...]
    reason: str
    is_there: bool


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why rules did and did not fire.

    Attributes:
        report: With every miss, and what became of nodes that went.
        asked: The nodes that were asked for; None for the whole model.
        ends: The operators at which the recipes' rules end, as recipes write them.
        unknown: Operators left that are not ONNX's, and at which none ends: how many nodes, and
            which bundled recipes have rules for each.
        inside: For a node that was asked for and at whose operator no rule ends, by its label: the
            misses further down of rules that have its operator inside, each rule's nearest one.
        untried: The rules that were tried at no node that is left, and fired nowhere.
    """

    report: Report
    asked: tuple[Asked, ...] | None
    ends: frozenset[str]
    unknown: Mapping[str, tuple[int, tuple[str, ...]]] = field(default_factory=dict)
    inside: Mapping[str, tuple[Missed, ...]] = field(default_factory=dict)
    untried: tuple[Untried, ...] = ()


def explain(
    model: Any, *recipes: Any, node: str | None = None, allow: Sequence[str] = (), **settings: Any
) -> Explanation:
    """Apply recipes without comparing, and tell everything that was tried.

    What a recipe ensures of its result is not asked: nothing is saved.

    Args:
        model: As `apply` takes it.
        recipes: The same, in order.
        node: A node's name, an output's name, or the whole of what a report calls a node.
        allow: As `apply` takes it.
        settings: `shape`, `assume`, `values`, `keep_overridable` and `progress`, as `apply` takes
            them.

    Raises:
        ModelError: The model cannot be read or carried.
        RecipeError: A recipe, a shape or an assumption is wrong, or there is no such node.
        SettleError: A rule keeps firing.
    """
    plans = [as_recipe(recipe) for recipe in recipes]
    allowed = (*allow, "leftover", "unread")
    result = apply(model, *plans, allow=allowed, verify=False, every_miss=True, **settings)
    asked = None if node is None else find(result.model, node)
    ends = _ends(plans)
    custom = frozenset().union(*(plan.custom for plan in plans))
    unknown = {
        name: (count, recipes_for(name))
        for name, count in result.report.after.items()
        if "." in name and not _is_known(name, ends | custom)
    }
    rules = [rule for plan in plans for rule in plan.rules]
    inside = {
        each.label: _inside(each, rules, result.model, result.report.misses)
        for each in asked or ()
        if each.operator not in ends
    }
    untried = tuple(_untried(rules, result.model, result.report))
    return Explanation(result.report, asked, ends, unknown, inside, untried)


def _untried(rules: Sequence[Rule], model: Model, report: Report) -> Iterator[Untried]:
    """The rules of which neither a firing nor a miss tells, and why."""
    told = {(change.recipe, change.rule) for change in report.changes}
    told |= {(miss.recipe, miss.rule) for miss in report.misses}
    fired: dict[str, dict[str, None]] = {}  # the rules that did at each operator
    for change in report.changes:
        for op in change.before[:1]:
            fired.setdefault(op, {})[f"`{change.rule}`"] = None
    nodes: dict[str, list[bool]] = {}  # of the file, by operator; whether a caller says attributes
    for proto in nodes_of(model.proto):
        asks = any(attribute.ref_attr_name for attribute in proto.attribute)
        nodes.setdefault(operator_name(proto), []).append(asks)
    for rule in rules:
        if (rule.recipe, rule.id) in told:
            continue
        ends = _names(rule.match.root)
        there = [asks for name in ends for asks in nodes.get(name, ())]
        first = dict.fromkeys(
            name for op in rule.match.root.operators for name in fired.get(op, ())
        )
        if first:
            reason = f"{', '.join(first)} fired first where it could begin"
        elif there and all(there):
            reason = "its operator stands in a function, whose callers say its attributes"
        elif there:
            reason = "the nodes at which it could begin went before it was their turn"
        else:
            reason = f"the model has no {' and no '.join(f'`{name}`' for name in ends)}"
        yield Untried(rule.id, rule.recipe, str(rule.location), ends, reason, bool(there))


def _inside(
    asked: Asked, rules: Sequence[Rule], model: Model, misses: Sequence[Missed]
) -> tuple[Missed, ...]:
    """What became of rules with a node's operator inside, where they end below it."""
    sizes = {
        (rule.recipe, rule.id): len(rule.match.nodes)
        for rule in rules
        if any(asked.operator in _names(node) for node in rule.match.nodes[:-1])
    }
    below = _below(asked, model, max(sizes.values(), default=0))
    found: dict[tuple[str, str], tuple[tuple[int, int, int], Missed]] = {}
    for miss in misses:
        rule, steps = (miss.recipe, miss.rule), below.get(miss.node)
        if steps is None or steps >= sizes.get(rule, 0):
            continue
        distance = (miss.total - miss.matched, -miss.matched, steps)
        if rule not in found or distance < found[rule][0]:
            found[rule] = (distance, miss)
    return tuple(miss for _, miss in sorted(found.values(), key=lambda pair: pair[0]))


def _below(asked: Asked, model: Model, most: int) -> dict[str, int]:
    """The nodes that read of a node, by their labels, and how many steps it is to each."""
    told: dict[str, int] = {}
    nodes = [node for graph in model.graphs() for node in graph.nodes]
    nodes = [node for node in nodes if describe(node) in asked.texts]
    seen = {id(node) for node in nodes}
    for steps in range(1, most):
        readers = [reader for node in nodes for t in node.outputs for reader in t.outputs]
        nodes = list({id(node): node for node in readers if id(node) not in seen}.values())
        seen |= {id(node) for node in nodes}
        told |= {describe(node): steps for node in nodes}
    return told


def _ends(recipes: Sequence[Recipe]) -> frozenset[str]:
    roots = [rule.match.root for recipe in recipes for rule in recipe.rules]
    return frozenset(name for root in roots for name in _names(root))


def _names(node: NodePattern) -> tuple[str, ...]:
    """The operators that a node of a pattern may be, as recipes write them."""
    domain = f"{node.domain}." if node.domain else ""
    return tuple(f"{domain}{operator}" for operator in node.operators)


def _is_known(name: str, known: frozenset[str]) -> bool:
    return name in known or name.rpartition(".")[0] in known


def find(model: Model, name: str) -> tuple[Asked, ...]:
    """The nodes of this name, or those that give a value of this name.

    Args:
        model: The result of a run: nodes of the file and nodes that rules made are looked at.
        name: A node's name, an output's name, or the whole label.

    Raises:
        RecipeError: There is no such node; suggests one of the file.
    """
    found: dict[str, Asked] = {}
    told: dict[str, dict[str, None]] = {}  # of the file, by operator
    names: dict[str, None] = {}
    for proto in nodes_of(model.proto):
        label, operator = proto.name or next(filter(None, proto.output), ""), operator_name(proto)
        shown = operator if "." in operator else f"ai.onnx.{operator}"
        texts = frozenset(f"node {label!r} ({each})" for each in (shown, spelling(proto)))
        own = [proto.name, *proto.output]
        names.update(dict.fromkeys(filter(None, own)))
        told.setdefault(proto.op_type, {})[label] = None
        if name in own or name in texts:
            asked = Asked(f"node {label!r} ({shown})", label, operator, texts)
            found.setdefault(asked.label, asked)
    known = {text for asked in found.values() for text in asked.texts}
    for node in (node for graph in model.graphs() for node in graph.nodes):
        label = describe(node)
        if name in (label, node.name, *(t.name for t in node.outputs)) and label not in known:
            operator = label.rpartition("(")[2].rstrip(")").removeprefix("ai.onnx.")
            asked = Asked(label, node.name or node.outputs[0].name, operator, frozenset({label}))
            found.setdefault(label, asked)
    if not name or not found:
        mend = _mend(name, list(names), told)
        raise RecipeError(f"the model has no node `{name}`", where="--node", mend=mend)
    return tuple(found.values())


def _mend(name: str, names: Sequence[str], told: Mapping[str, Mapping[str, None]]) -> str:
    labels = list(told.get(name) or told.get(_NUMBER.sub("", name)) or ())
    if not labels:
        return suggest(name, names)
    operator = name if name in told else _NUMBER.sub("", name)
    shown = ", ".join(f"`{label}`" for label in labels[:_FEW])
    more = f" and {len(labels) - _FEW} more" if len(labels) > _FEW else ""
    return (
        f"Say `--node {labels[0]}`: a node is asked for by its name in the file, or that of an "
        f"output; the nodes of {operator} are {shown}{more}."
    )
