"""`explain`: runs recipes for the sake of what is said of rules and nodes; compares nothing."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from surgeon.document import suggest
from surgeon.errors import RecipeError
from surgeon.helpful import recipes_for
from surgeon.inspection import nodes_of
from surgeon.model import Model, describe
from surgeon.opening import as_recipe
from surgeon.recipe import Recipe
from surgeon.report import Report
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


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why rules did and did not fire.

    Attributes:
        report: With every miss, and what became of nodes that went.
        asked: The nodes that were asked for; None for the whole model.
        ends: The operators at which the recipes' rules end, as recipes write them.
        unknown: Operators left that are not ONNX's, and at which none ends: how many nodes, and
            which bundled recipes have rules for each.
    """

    report: Report
    asked: tuple[Asked, ...] | None
    ends: frozenset[str]
    unknown: Mapping[str, tuple[int, tuple[str, ...]]] = field(default_factory=dict)


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
    return Explanation(result.report, asked, ends, unknown)


def _ends(recipes: Sequence[Recipe]) -> frozenset[str]:
    roots = [rule.match.root for recipe in recipes for rule in recipe.rules]
    return frozenset(
        f"{root.domain}.{operator}" if root.domain else operator
        for root in roots
        for operator in root.operators
    )


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
