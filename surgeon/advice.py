"""What a runtime's own list lacks of a model, and the command line that helps."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

import onnx

from surgeon.authoring import opset_within
from surgeon.fitting import spelled_out, spelling_recipes
from surgeon.helpful import recipes_for
from surgeon.importer import opset_of
from surgeon.recipe import bundled
from surgeon.spelling import is_foreign
from surgeon.targets import Fit, Refused, Target


def by_count(operators: Mapping[str, int]) -> list[tuple[str, int]]:
    """Operators with how many nodes of each there are, the most first."""
    return sorted(operators.items(), key=lambda item: (-item[1], item[0]))


def fit_of(
    proto: onnx.ModelProto,
    operators: Mapping[str, int],
    wanted: Target,
    path: Path,
    done: Collection[str],
) -> Fit:
    """Beside a target's list; the model's own functions are as good as what they hold.

    Args:
        proto: The model.
        operators: How many nodes of each.
        wanted: The target.
        path: Of the file, for the command line.
        done: The recipes that made it.
    """
    own = {f"{function.domain}.{function.name}" for function in proto.functions}
    refused = operators.keys() - wanted.taken - wanted.partly - own
    opset = opset_of(proto) or 1
    spelled, others = refused & spelled_out(wanted), spelling_recipes(wanted)
    return Fit(
        target=wanted.name,
        title=wanted.title,
        source=wanted.source,
        opset=None if wanted.reads(opset) else opset,
        opsets=wanted.opsets,
        refused=tuple(
            Refused(operator, count, others.get(operator) or recipes_for(operator, foreign=True))
            for operator, count in by_count(operators)
            if operator in refused
        ),
        partly=tuple(operator for operator, _ in by_count(operators) if operator in wanted.partly),
        spelled=tuple(operator for operator, _ in by_count(operators) if operator in spelled),
        command=_command(operators, wanted, opset, path, done, spells=bool(spelled)),
        nearest=opset_within(wanted.opsets, opset),
    )


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
    recipes = ["aten"] if any(map(is_foreign, operators)) else []
    recipes.append(made if made in bundled() else "clean")
    moves = opset_within(wanted.opsets, opset) != opset
    options = ["--target", wanted.name] if spells or moves else []
    if not options and {*recipes} <= {*done, "clean"}:
        return ()
    return ("surgeon", "apply", *recipes, str(path), "OUT.onnx", *options)
