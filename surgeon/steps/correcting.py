"""What a changed file says of its values, brought in line with what is proven of them."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from surgeon.claims import (
    correct_claims,
    correct_types,
    declare_numbers,
    declare_tables,
    declare_types,
    state_cuts,
)
from surgeon.errors import few
from surgeon.facts import Facts
from surgeon.model import Model
from surgeon.recipe import StateShapesStep
from surgeon.steps.stating import state_shapes


def bring_in_line(
    model: Model,
    facts: Facts,
    resized: Sequence[str],
    carried: Sequence[str],
    before: Collection[str] = (),
    *,
    stating: StateShapesStep | None,
) -> tuple[frozenset[str], list[str]]:
    """Declare and correct types and shapes.

    Args:
        model: Is changed.
        facts: What is proven.
        resized: Outputs whose declared shapes were corrected before.
        carried: Values of bodies of which that is so.
        before: Outputs whose declared element type was corrected before.
        stating: The step that writes all that is proven into the file, if any.

    Returns:
        The outputs whose declared element type was false, and what to say of all.
    """
    for say in (declare_numbers, declare_types, state_cuts):
        say(model, facts)
    retyped = list(dict.fromkeys((*sorted(before), *correct_types(model, facts))))
    tables = declare_tables(model, facts)
    told = (
        ("types and shapes that the file states", correct_claims(model, facts)),
        ("shapes that outputs declare", resized),
        ("shapes that bodies declare", carried),
        ("element types that outputs declare", retyped),
    )
    if stating:
        state_shapes(model, facts, stating)
    remarks = [f"{what} were false: {few(corrected)}" for what, corrected in told if corrected]
    return frozenset((*retyped, *tables)), remarks
