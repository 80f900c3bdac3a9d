"""Which operators a model has and rules are about, and the attempts that came nearest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress

import onnx.defs

from surgeon.assumptions import Axioms
from surgeon.captured import dtype_name
from surgeon.declared import length_of, tensor_of
from surgeon.errors import few
from surgeon.facts import Facts
from surgeon.model import Model, describe
from surgeon.recipe import Recipe, Rule, RulesStep, Step
from surgeon.report import Change, Missed, MissRecord
from surgeon.spelling import (
    ATEN_DOMAINS,
    LOST_WRITE,
    is_foreign,
    is_plugin,
    named_operator,
    names_operator,
)

# What sizes are computed with: to fold these is no reason to save a file.
_ANYWHERE = frozenset(
    "Add Cast Concat ConstantOfShape Div Equal Expand Gather Mul Reshape Shape Size Slice Squeeze "
    "Sub Transpose Unsqueeze Where".split()
)
_MANY_MORE = 8  # nodes that a result has more than the model
_TYPED = frozenset({"Cast", "Constant"})  # which stand where element types meet
_OF_LEVELS = "; what is quantised stays so, and `qdq-to-floats clean` in front makes floats of it"
_SHOWN = 5  # operators in a remark
_FEW = 8  # operators that a recipe may be about; one that knows more is about something else


def is_rid_of_foreign(before: Mapping[str, int], model: Model) -> bool:
    """Whether a node of PyTorch's own, or a plugin, that was there is no longer."""
    foreign = {n: count for n, count in before.items() if is_foreign(n) or is_plugin(n)}
    now = operators(model) if foreign else {}
    return any(count > now.get(name, 0) for name, count in foreign.items())


def operators_of(rules: Sequence[Rule]) -> set[tuple[str, str]]:
    """The operators that rules are about, each by itself; none where these are many."""
    found = {
        (rule.match.root.domain, name)
        for rule in rules
        if len(rule.match.nodes) == 1
        for name in rule.match.root.operators
        if name not in _ANYWHERE
    }
    return found if len(found) <= _FEW else set()


def is_concerned(model: Model, steps: Sequence[Step]) -> bool:
    """Whether a model has an operator that rules of these steps are about, if they have rules.

    Of PyTorch's own one is as good as another: what they are called is brought to one form later.
    """
    rules = [rule for step in steps if isinstance(step, RulesStep) for rule in step.rules]
    there = operators(model).keys()
    foreign = any(map(is_foreign, there))
    roots = [rule.match.root for rule in rules]
    wanted = {f"{r.domain}.{name}" if r.domain else name for r in roots for name in r.operators}
    return not rules or not there.isdisjoint(wanted) or (foreign and any(map(is_foreign, wanted)))


def has_withdrawn(model: Model, opset: int) -> bool:
    """Whether a model has an operator that ONNX has no more at this opset: Upsample from 10."""
    for name in operators(model):
        with suppress(onnx.defs.SchemaError):  # of another domain, or of none
            if onnx.defs.get_schema(name, opset).deprecated:
                return True
    return False


def unrelated(model: Model, recipes: Sequence[Recipe]) -> tuple[str, ...]:
    """What to say of recipes of rules alone that have none for an operator of the model."""
    return tuple(
        f"`{recipe.name}` has no rule for an operator of this model"
        for recipe in recipes
        if recipe.rules
        and all(isinstance(step, RulesStep) for step in recipe.steps)
        and not is_concerned(model, recipe.steps)
    )


def made_nowhere(recipes: Sequence[Recipe], made: Collection[Change]) -> list[str]:
    """What to say of optional changes of recipes that found no place."""
    found = {(change.recipe, change.rule) for change in made}
    return [
        f"`{rule.recipe}/{rule.id}` found nothing to change"
        for recipe in recipes
        for rule in recipe.changes
        if rule.optional and (rule.recipe, rule.id) not in found
    ]


def operators(model: Model) -> dict[str, int]:
    """How many nodes of each operator a model has, bodies and functions included."""
    counts: Counter[str] = Counter()
    for graph in model.graphs():
        for node in graph.nodes:
            domain = node.domain or ""
            name = node.op if domain in ("", "ai.onnx", "ai.onnx.legacy") else f"{domain}.{node.op}"
            if key := names_operator(domain, node.op):
                name = f"aten.{named_operator(str(node.attrs.get(key, '?')))}"
            elif domain in ATEN_DOMAINS or name == LOST_WRITE:
                name = f"aten.{node.op}"
            if name != "Constant":
                counts[name] += 1
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def nearest(records: Sequence[MissRecord]) -> list[Missed]:
    """The attempts that failed at nodes which stay, in words: for each node and rule the latest."""
    latest: dict[tuple[int, str, str], MissRecord] = {}
    for record in records:
        root = record.root
        if not root.__dict__.get("gone"):
            latest[id(root), record.recipe, record.rule] = record
    return [
        Missed(
            rule=r.rule,
            recipe=r.recipe,
            node=describe(r.root),
            matched=r.matched,
            total=r.total,
            reason=r.reason(),
            location=str(r.location),
            waits=r.waits,
        )
        for r in latest.values()
    ]


def staying(model: Model, facts: Facts, recipes: Sequence[Recipe]) -> list[str]:
    """What still gives an element type that a recipe replaces: a remark for each such recipe."""
    found = []
    for recipe in recipes:
        if dtype := recipe.away_from:
            left = Counter(
                node.op
                for graph in model.graphs()
                for node in graph.nodes
                if node.op not in _TYPED
                and any(dtype_name(facts.of(tensor).dtype) == dtype for tensor in node.outputs)
            )
            if total := left.total():
                shown = left.most_common(_SHOWN)
                names = ", ".join(f"{count} {name}" for name, count in shown)
                rest = total - sum(count for _, count in shown)
                found.append(
                    f"`{recipe.name}` leaves {total} node{'s' * (total > 1)} that "
                    f"give{'s' * (total == 1)} {dtype}: {names}{f' and {rest} more' * (rest > 0)}; "
                    "`surgeon explain` says why" + _OF_LEVELS * ("DequantizeLinear" in left)
                )
    return found


def waiting(misses: Sequence[Missed], recipes: Collection[str]) -> list[str]:
    """What rules of these recipes would do if it were allowed: a remark for each kind."""
    found: dict[str, Counter[str]] = {}
    for miss in misses:
        if miss.waits and miss.recipe in recipes:
            found.setdefault(miss.waits, Counter())[f"{miss.recipe}/{miss.rule}"] += 1
    return [
        f"{rules.total()} rewrite{'s' * (rules.total() > 1)} would be tried with "
        f"`--allow {kind}`: {few(list(rules))}"
        for kind, rules in found.items()
    ]


def cost_of_sizes(
    model: Model, before: Mapping[str, int], after: Mapping[str, int], axioms: Axioms
) -> str | None:
    """What to add where sizes that are not known cost nodes; nothing where that is not seen.

    Args:
        model: As it came.
        before: How many nodes of each operator it has.
        after: How many the result has.
        axioms: What was said of them.
    """
    more = sum(after.values()) - sum(before.values())
    if more < _MANY_MORE:
        return None
    weights = {tensor.name for tensor in model.proto.graph.initializer}
    for value in model.proto.graph.input:
        declared = tensor_of(value.type)
        if (
            value.name in weights
            or value.name in axioms.shapes
            or declared is None
            or not declared.HasField("shape")
        ):
            continue
        dims = declared.shape.dim
        lengths = [axioms.fixed.get(dim.dim_param, length_of(dim)) for dim in dims]
        if None in lengths[1:]:  # more than the batch
            said = ",".join(
                f"<{dim.dim_param or at}>" if length is None else str(length)
                for at, (dim, length) in enumerate(zip(dims, lengths, strict=True))
            )
            return (
                f"the result has {more:,} nodes more than the model, some to compute sizes: "
                f"give numbers for those that you know, `--shape {value.name}={said}`"
            )
    return None
