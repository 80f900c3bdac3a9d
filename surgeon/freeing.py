"""The steps that change what sizes a model is defined for: its batch, or those of its inputs."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import onnx

from surgeon.assumptions import Axioms, with_dim
from surgeon.recipe import FreeBatchStep, FreeSizesStep
from surgeon.report import Change


class Free(NamedTuple):
    """What a step made.

    Attributes:
        model: Of dynamic sizes.
        axioms: What the user said, of that.
        change: For the report.
        compared: What was, in a sentence.
    """

    model: onnx.ModelProto
    axioms: Axioms
    change: Change
    compared: str


def change_of(step: FreeBatchStep | FreeSizesStep, recipe: str) -> Change:
    """What a step does, before it is known for which sizes."""
    from surgeon import anybatch, anysize

    room = anybatch if isinstance(step, FreeBatchStep) else anysize
    return Change(room.STEP, recipe, room.WHY, room.EXACT, None, "the graph", (), (), "")


def freed(
    proto: onnx.ModelProto,
    step: FreeBatchStep | FreeSizesStep,
    recipe: str,
    axioms: Axioms,
    *,
    check: bool,
    folder: Path | None,
) -> Free:
    """The model that a step makes.

    Args:
        proto: The model.
        step: Says which sizes, and their names.
        recipe: Whose step it is.
        axioms: What the user said.
        check: Whether to run both.
        folder: Where external data lie.

    Raises:
        SurgeonError: It is left as it is.
    """
    from surgeon import anybatch, anysize

    change = change_of(step, recipe)
    if isinstance(step, FreeBatchStep):
        model = anybatch.free_batch(proto, step.dim, check=check, folder=folder)
        change = change._replace(contract=anybatch.CONTRACT)
        return Free(model, with_dim(axioms, model, step.dim), change, anybatch.COMPARED)
    made, tried = anysize.free_sizes(
        proto, step.names, chosen=axioms.freed, check=check, folder=folder
    )
    for size in made.sizes:
        axioms = with_dim(axioms, made.model, size.name)
    change = change._replace(contract=anysize.contract(made))
    return Free(made.model, axioms, change, anysize.compared(tried))
