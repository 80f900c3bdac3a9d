"""Two models beside one another, as somebody asks for it: with recipes, values and assumptions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import onnx

from surgeon.assumptions import parse_assumptions
from surgeon.choices import (
    Data,
    Reference,
    check_by_name,
    check_reference,
    plain_shapes,
    several,
)
from surgeon.comparing import Comparison
from surgeon.extending import extended
from surgeon.meanings import Meanings
from surgeon.mending import with_mend
from surgeon.model import Model, ModelLike
from surgeon.opening import RecipeLike, as_recipe
from surgeon.values import with_values
from surgeon.verify import Verdict
from surgeon.verify import bisect as parting_of
from surgeon.verify import verify as compare


def verify(
    original: ModelLike,
    result: ModelLike,
    *recipes: RecipeLike,
    shape: Mapping[str, Sequence[int | str]] | None = None,
    assume: str | Sequence[str] = (),
    values: Mapping[str, Any] | None = None,
    custom: Collection[str] = (),
    functions: str | Sequence[str] = (),
    reference: Reference = None,
    seeds: Sequence[int] = (0, 1),
    inputs: Mapping[str, str] | None = None,
    data: Data = (),
    allow_approximate: float | None = None,
    record: str | Path | None = None,
    bisect: bool = False,
    progress: Callable[[str], None] | None = None,
) -> Verdict:
    """Compare two models on inputs of several sizes.

    onnxruntime runs in this process, except inside `with surgeon.isolation():`.

    Args:
        original: The model as it came: a path, a `Model`, an `onnx.ModelProto` or a graphsurgeon
            `Graph`.
        result: What is compared with it, given as that is.
        recipes: Those whose `custom` operators the result may hold; their `functions` say what
            these compute, and what they change, or join to a model, is done to the original.
        shape: Shapes to compare at, by input name: numbers, or names for dimensions that stay
            dynamic.
        assume: What else holds of sizes, as `t % 32 == 0`, `t >= 64` or `h == w`.
        values: Inputs that always have one value, by name; the result may have them no more, or
            alone: weights that it is given where the original has them.
        custom: Operators that the result may hold although onnxruntime lacks them: `domain.Op`.
        functions: What such operators compute, beside what recipes say: functions in ONNX's text.
        reference: What the result is compared with: `onnxruntime`, `witness`, `torch`, or .npz
            files with recorded inputs and outputs (a path, a folder, a pattern, or several).
        seeds: What inputs are drawn from.
        inputs: By input name, how it is drawn, as `uniform(0,1)` or `tokens(30522)`.
        data: Files with real inputs, compared beside drawn ones: .npz by input name, or folders of
            them or of ONNX's own `test_data_set_*`.
        allow_approximate: Error relative to an output's spread that is allowed, where it is more
            than the table's tolerance.
        record: An .npz file to write: the first inputs that are compared, and what the original
            gives on them, as `data` and `reference` read them.
        bisect: Look for the first value at which models that differ part: `Verdict.parting`.
        progress: Told what is being compared.

    Raises:
        ModelError: A model cannot be read, or a data file is missing or outside its folder.
        RecipeError: The reference or the data cannot be read, there is no such reference, input or
            dimension, or what is said of one makes no sense; or a recipe cannot be read, or what it
            does to a model not be done to this one.
        VerifyError: A run was to be recorded, and there was none.
        OutputError: The record cannot be written.
        TimeUp, MemoryUp: The result does not load within what a worker is given.
    """
    check_by_name(values=values, inputs=inputs)
    check_reference(reference)
    custom = several(custom)
    plans = [as_recipe(recipe) for recipe in recipes]
    functions = [*several(functions), *(text for plan in plans for text in plan.functions)]
    one, other = Model.of(original), Model.of(result)
    read = (one, original), (other, result)
    one = extended(one, plans, ("contract",)).model
    shape, values = plain_shapes(shape), values or {}
    asked, there = ({v.name for v in each.proto.graph.input} for each in (one, other))
    known = {name: value for name, value in values.items() if name in asked or name not in there}
    still = {name: value for name, value in values.items() if name in there}
    one, _ = with_values(one, known, shape)
    other, _ = with_values(other, still, shape)
    if alone := still.keys() - asked:
        other = _without_inputs(other, alone)
    shape = {name: dims for name, dims in shape.items() if name not in values}
    axioms = parse_assumptions(one, shape, several(assume))
    told: dict[str, Any] = {"inputs": inputs, "data": data}
    if axioms.assumed:
        Comparison(one, axioms, reference=reference, **told).see_sizes()
    told |= {
        "reference": reference,
        "shape": axioms.shapes or None,
        "sizes": axioms.sizes or None,
        "folder_original": one.folder,
        "folder_result": other.folder,
        "allow_approximate": allow_approximate,
        "progress": progress,
    }
    verdict = compare(
        *(one.proto, other.proto),
        custom=frozenset(custom).union(*(plan.custom for plan in plans)),
        functions=functions,
        record=record,
        seeds=seeds,
        **told,
    )
    for model, given in read:
        model.see_unchanged(given)
    verdict = with_mend(verdict, (one.proto, other.proto), plans, searched=bisect)
    if not bisect:
        return verdict
    meanings = Meanings(functions)
    both = meanings.told(one.proto), meanings.told(other.proto)
    return replace(verdict, parting=parting_of(*both, verdict, **told))


def _without_inputs(model: Model, names: Collection[str]) -> Model:
    """A model whose inputs of these names, which have values, are constants of its own."""
    proto = onnx.ModelProto()
    proto.CopyFrom(model.proto)
    kept = [value for value in proto.graph.input if value.name not in names]
    del proto.graph.input[:]
    proto.graph.input.extend(kept)
    return model.with_proto(proto)
