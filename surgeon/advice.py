"""What a runtime's own list lacks of a model, and the command line that helps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path

import onnx

from surgeon.authoring import opset_within
from surgeon.chance import RANDOM
from surgeon.declared import length_of
from surgeon.fitting import spelled_out, spelling_recipes, waiting_rules
from surgeon.helpful import recipes_for
from surgeon.limits import beyond
from surgeon.model import Model
from surgeon.nested import bodies
from surgeon.provenance import last_target
from surgeon.recipe import bundled
from surgeon.spelling import is_foreign, operator_name
from surgeon.standard import STANDARD, opset_of
from surgeon.targets import Fit, Refused, Target, measured

_MEASURES = frozenset({"Shape", "Size"})
# What is not spelled out, but goes as a whole with what reads it.
_SHORTENING = {"Shape": ("shape-chains",)}


def by_count(operators: Mapping[str, int]) -> list[tuple[str, int]]:
    """Operators with how many nodes of each there are, the most first."""
    return sorted(operators.items(), key=lambda item: (-item[1], item[0]))


def fit_of(
    model: Model,
    operators: Mapping[str, int],
    wanted: Target | None,
    path: Path,
    done: Collection[str],
    *,
    sound: bool,
) -> Fit | None:
    """Beside a target's list; the model's own functions are as good as what they hold.

    Args:
        model: The model.
        operators: How many nodes of each.
        wanted: The target; nothing is to be said without one.
        path: Of the file, for the command line.
        done: The recipes that made it.
        sound: Whether it is a model throughout; limits are not looked at of another.
    """
    if wanted is None:
        return None
    proto = model.proto
    own = {f"{function.domain}.{function.name}" for function in proto.functions}
    refused = operators.keys() - wanted.operators - own
    opset = opset_of(proto) or 1
    # What a run for this target left, its rules write in what the target lacks too.
    tried = last_target(proto.metadata_props) == wanted.name
    spelled = frozenset[str]() if tried else refused & spelled_out(wanted)
    others = spelling_recipes(wanted)

    def spelling(operator: str) -> tuple[str, ...]:
        return others.get(operator) or recipes_for(operator, foreign=True)

    told = [operator for operator, _ in by_count(operators)]
    folded = _folded(proto, operators) if refused else frozenset()
    waiting = waiting_rules(wanted, [each for each in told if each in refused - folded])
    return Fit(
        target=wanted.name,
        title=wanted.title,
        source=wanted.source,
        opset=None if wanted.reads(opset) else opset,
        opsets=wanted.opsets,
        refused=tuple(
            Refused(operator, count, _SHORTENING.get(operator, ()) or spelling(operator))
            for operator, count in by_count(operators)
            if operator in refused
        ),
        partly=tuple(operator for operator in told if operator in wanted.untold),
        spelled=tuple(operator for operator in told if operator in spelled),
        folded=tuple(operator for operator in told if operator in refused & folded),
        waiting=waiting,
        beyond=tuple(
            replace(each, recipes=spelling(each.operator)) if each.location else each
            for each in (beyond(model, wanted) if sound else ())
        ),
        limits=wanted.count if sound else 0,
        command=_command(operators, wanted, opset, path, done, spells=bool(spelled)),
        nearest=opset_within(wanted.opsets, opset),
    )


def _folded(proto: onnx.ModelProto, operators: Mapping[str, int]) -> frozenset[str]:
    """Operators of which any recipe leaves none: of constants and fixed sizes, and Identity.

    Only what the file states is known here: what a body or a function holds counts as left.
    """
    known = {tensor.name for tensor in proto.graph.initializer}
    known |= {tensor.values.name for tensor in proto.graph.sparse_initializer} | {""}
    values = (*proto.graph.input, *proto.graph.value_info)
    fixed = {value.name for value in values if _is_fixed(value.type)}
    gone: dict[str, int] = {}
    for node in proto.graph.node:
        read = known | fixed if node.op_type in _MEASURES else known
        may_fold = node.domain in STANDARD and node.op_type not in RANDOM
        if may_fold and read.issuperset(node.input) and not any(bodies(node)):
            known.update(node.output)
            name = operator_name(node)
            gone[name] = gone.get(name, 0) + 1
    return frozenset(name for name in gone if gone[name] == operators.get(name)) | {"Identity"}


def _is_fixed(kind: onnx.TypeProto) -> bool:
    tensor = kind.tensor_type
    return tensor.HasField("shape") and all(length_of(d) is not None for d in tensor.shape.dim)


def _command(
    operators: Mapping[str, int],
    wanted: Target,
    opset: int,
    path: Path,
    done: Collection[str],
    *,
    spells: bool,
) -> tuple[str, ...]:
    """The command line that brings a model to a target, as far as that was not done already."""
    made = f"for-{'tflite' if wanted.name == 'onnx2tf' else wanted.name.split('-')[0]}"
    helps = measured(wanted.name)
    recipes = _of_other_tools(operators, wanted, done)
    recipes += ["aten"] if any(map(is_foreign, operators)) else []
    recipes.append(helps or (made if made in bundled() else "clean"))
    moves = opset_within(wanted.opsets, opset) != opset
    options = ["--target", wanted.name] if spells or moves else []
    # `clean` alone is no help in getting onto a list, but where it was measured to be.
    if not options and {*recipes} <= {*done, *(() if helps else ("clean",))}:
        return ()
    return ("surgeon", "apply", *recipes, str(path), "OUT.onnx", *options)


def _of_other_tools(
    operators: Mapping[str, int], wanted: Target, done: Collection[str]
) -> list[str]:
    """The recipes for what the target lacks of other tools' operators, that for most first."""
    left = {
        name: count
        for name, count in operators.items()
        if "." in name and not is_foreign(name) and name not in wanted.operators
    }
    chosen: list[str] = []
    while left:
        scores: Counter[str] = Counter()
        for name, count in left.items():
            scores.update(dict.fromkeys(set(recipes_for(name, foreign=True)) - {*done}, count))
        if not scores:
            break
        best = max(scores, key=lambda recipe: (scores[recipe], recipe == "contrib", recipe))
        chosen.append(best)
        left = {name: n for name, n in left.items() if best not in recipes_for(name, foreign=True)}
    return chosen
