"""Makes what a recipe changes of what a model computes, before any step.

Such a change is asked for, and is no rewrite: nothing shows that both are the same. Each is made
once at every place that is there, and what is done afterwards is compared with the model changed
so. Nothing else is touched on the way: nothing is folded, merged or mended.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import onnx
import onnx_graphsurgeon as gs

from surgeon.claims import correct_outputs
from surgeon.errors import RecipeError, SurgeonError
from surgeon.extension import type_of
from surgeon.facts import Facts
from surgeon.firing import ALREADY
from surgeon.model import Model, describe
from surgeon.nested import bodies, every_node
from surgeon.recipe import Recipe, Rule
from surgeon.report import Change
from surgeon.steps.correcting import bring_in_line
from surgeon.walk import Walk

_CONTRACT = "changes what the model computes, as its author asks: {why}"
_COMPARED = "the result is compared with the file as the recipe changes it"
MADE_NOWHERE = "is made nowhere in this model"


def changed(model: Model, recipe: Recipe) -> tuple[Model, list[Change]]:
    """The model with every change of a recipe, in order, and what was done.

    Args:
        model: Not changed.
        recipe: Its steps are not looked at.

    Raises:
        RecipeError: A change that is not optional is made nowhere, or one cannot be made at one of
            its places.
    """
    made: list[Change] = []
    for rule in recipe.changes:
        model, found = _made(model, rule, recipe)
        made.extend(found)
    return model, made


def how_far(before: Model, after: Model, recipes: Sequence[Recipe], **given: Any) -> str:
    """How far changes move the outputs, in a sentence: what was asked for is not held to anything.

    Args:
        before: The file as it was.
        after: The same with the changes.
        recipes: Those that the run has.
        given: What `verify` is told of inputs.
    """
    from surgeon.verify import verify

    custom: frozenset[str] = frozenset().union(*(recipe.custom for recipe in recipes))
    try:
        verdict = verify(
            before.proto,
            after.proto,
            folder_original=before.folder,
            folder_result=after.folder,
            custom=custom,
            functions=[text for recipe in recipes for text in recipe.functions],
            **given,
        )
    except SurgeonError as error:
        return f"{_COMPARED}; with the file as it was it could not be: {error.what}"
    compared = verdict.comparisons
    if verdict.status == "equivalent" or (compared and all(each.agrees for each in compared)):
        return f"{_COMPARED}, which on the inputs drawn gives what the file gave"
    largest: dict[str, float] = {}
    for check in (output for each in compared for output in each.outputs):
        if not check.fault:
            largest[check.name] = max(largest.get(check.name, 0.0), check.max_relative)
    if verdict.status != "differs" or not largest:
        return f"{_COMPARED}; with the file as it was it could not be: {verdict.detail}"
    far = ", ".join(f"`{name}` by {error:.2g} of its spread" for name, error in largest.items())
    return f"{_COMPARED}, which moves the file's outputs: {far}"


def _made(model: Model, rule: Rule, recipe: Recipe) -> tuple[Model, list[Change]]:
    work = model.clone()
    facts = Facts(work, same_shape=recipe.same_shape)
    sweep = _Once(work, facts, [rule])
    sweep.once()
    notes = sweep.notes
    for miss in notes.misses:
        if miss.drafted and (reason := miss.reason()) != ALREADY:
            raise RecipeError(
                f"the change `{rule.id}` cannot be made at {describe(miss.root)}: {reason}",
                where=rule.location,
                mend="Mend `replace`, or leave this place out by `where`.",
            )
    if not notes.changes and rule.optional:
        return model, []
    if not notes.changes:
        nearest = max(notes.misses, key=lambda miss: miss.matched, default=None)
        what = f"the change `{rule.id}` {MADE_NOWHERE}"
        if nearest is not None:
            what += f": at {describe(nearest.root)}, the nearest, {nearest.reason()}"
        raise RecipeError(
            what,
            where=rule.location,
            mend="Look at the nodes with `surgeon inspect` or a viewer, and mend `match` or "
            "`where`; or write `optional: true` where a model may have no place for it.",
        )
    work.changed = True
    resized = correct_outputs(work, facts)
    bring_in_line(work, facts, resized, [], stating=None)
    proto = work.to_proto()
    _forget_shapes(proto, _behind(model.proto, sweep.outputs))
    contract = _CONTRACT.format(why=rule.why) + _retyped(model.proto.graph, proto.graph)
    done = [each._replace(contract=contract) for each in notes.changes]
    return model.with_proto(proto), done


class _Once(Walk):
    """A walk that tries the rules once at each node of the file.

    Attributes:
        outputs: The values that they give now.
    """

    def __init__(self, model: Model, facts: Facts, rules: list[Rule]) -> None:
        super().__init__(model, facts, rules)
        self.outputs: set[str] = set()

    def _at(self, node: gs.Node, graph: gs.Graph) -> list[gs.Node] | None:
        if node.__dict__.get("asked"):
            return None
        for prepared in self.rules.at(node, self.facts, every=True):
            outputs = [tensor.name for tensor in node.outputs if tensor.name]
            new = self.firing.at(prepared, node, graph)
            if new is not None:
                for drafted in new:
                    drafted.__dict__["asked"] = True
                self.outputs.update(outputs)
                return new
        return None


def _behind(model: onnx.ModelProto, changed: Collection[str]) -> set[str]:
    """The values of the main graph that depend on others, these included."""
    found = set(changed)
    for node in model.graph.node:
        if not found.isdisjoint(name for each in every_node([node]) for name in each.input):
            found.update(node.output)
    return found


def _forget_shapes(model: onnx.ModelProto, names: Collection[str]) -> None:
    """Leave out what the file says of values that are others now."""
    graph = model.graph
    kept = [value for value in graph.value_info if value.name not in names]
    del graph.value_info[:]
    graph.value_info.extend(kept)
    for node in every_node(graph.node):
        for body in bodies(node):
            del body.value_info[:]
    for function in model.functions:
        del function.value_info[:]


def _retyped(before: onnx.GraphProto, after: onnx.GraphProto) -> str:
    """What is said of outputs that have another type or shape now."""
    pairs = zip(before.output, after.output, strict=True)
    told = [
        f"`{new.name}` is {type_of(new)}, where it was {type_of(old)}"
        for old, new in pairs
        if old.type != new.type
    ]
    return f"; {', '.join(told)}" if told else ""
