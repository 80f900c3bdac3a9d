"""The steps that change what sizes a model is defined for: its batch, or those of its inputs."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
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


def rule_of(step: FreeBatchStep | FreeSizesStep) -> str:
    """What reports call a step."""
    from surgeon import anybatch, anysize

    return anybatch.STEP if isinstance(step, FreeBatchStep) else anysize.STEP


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

    room: ModuleType
    if isinstance(step, FreeBatchStep):
        room, names = anybatch, [step.dim]
        model = anybatch.free_batch(proto, step.dim, check=check, folder=folder)
        contract, compared = anybatch.CONTRACT, anybatch.COMPARED
    else:
        made, tried = anysize.free_sizes(
            proto, step.names, chosen=axioms.freed, check=check, folder=folder
        )
        room, names, model = anysize, [size.name for size in made.sizes], made.model
        contract, compared = anysize.contract(made), anysize.compared(tried)
    for name in names:
        axioms = with_dim(axioms, model, name)
    change = Change(room.STEP, recipe, room.WHY, room.EXACT, contract, "the graph", (), (), "")
    return Free(model, axioms, change, compared)
