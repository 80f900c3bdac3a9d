"""Steps that leave something of the interface to the caller: what each is called, and does."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import onnx

from surgeon.assumptions import Axioms
from surgeon.facts import Facts
from surgeon.model import Model
from surgeon.recipe import AsReadStep, NamesStep
from surgeon.steps import asread, plainnames, unread
from surgeon.steps.asread import Handed

Done = Callable[[onnx.ModelProto], onnx.ModelProto]


def handing_over(
    step: AsReadStep | NamesStep, handed: Handed, axioms: Axioms, model: Model, facts: Facts
) -> tuple[str, str, Done]:
    """The rule that such a step is told as, why, and what makes the model.

    Args:
        step: The step.
        handed: Where it is noted.
        axioms: Say of which inputs the shapes are told.
        model: As the step finds it.
        facts: What is proven of it.
    """
    fixed = tuple(axioms.shapes)
    if isinstance(step, NamesStep) and step.names:
        renamed = partial(plainnames.rename_some, names=dict(step.names), handed=handed)
        return f"rename-{step.names[0][0]}", plainnames.ASKED, partial(renamed, fixed=fixed)
    if isinstance(step, NamesStep):
        done = partial(plainnames.plain_names, handed=handed, fixed=fixed)
        return plainnames.STEP, plainnames.WHY, done
    what, typed = step.what, partial(_element_type, model, facts)
    done = partial(unread.as_read, what=what, handed=handed, fixed=fixed, typed=typed)
    return f"{asread.STEP}-{what}", asread.WHY, done


def _element_type(model: Model, facts: Facts, name: str) -> int:
    """The element type of what a node of the main graph makes; 0 where it is not known."""
    made = (value for node in model.graph.nodes for value in node.outputs if value.name == name)
    return next((facts.of(value).dtype or 0 for value in made), 0)
