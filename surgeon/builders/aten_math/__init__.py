"""Builders of the recipe `aten-math`: one builder, and a function for each operator."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import onnx_graphsurgeon as gs

from surgeon.builders.aten_math import (
    activations,
    agreement,
    alignment,
    arithmetic,
    bits,
    comparison,
    divisors,
    entropy,
    exponents,
    extreme_places,
    fractions,
    functions,
    gradients,
    gradients_of_losses,
    incomplete,
    integrals,
    losses,
    margins,
    neighbours,
    ordered,
    polynomials,
    reductions,
    shrinking,
    special,
    steps,
    tails,
    vectors,
    waves,
)
from surgeon.builders.aten_math.work import BOOL, UINT8, Work
from surgeon.dialect import WRITTEN
from surgeon.match import Match
from surgeon.rewrite import Draft
from surgeon.standard import STANDARD

FUNCTIONS: Mapping[str, Callable[[Work], Any]] = {
    **activations.FUNCTIONS,
    **agreement.FUNCTIONS,
    **alignment.FUNCTIONS,
    **arithmetic.FUNCTIONS,
    **gradients.FUNCTIONS,
    **gradients_of_losses.FUNCTIONS,
    **bits.FUNCTIONS,
    **comparison.FUNCTIONS,
    **divisors.FUNCTIONS,
    **entropy.FUNCTIONS,
    **exponents.FUNCTIONS,
    **extreme_places.FUNCTIONS,
    **functions.FUNCTIONS,
    **incomplete.FUNCTIONS,
    **integrals.FUNCTIONS,
    **losses.FUNCTIONS,
    **margins.FUNCTIONS,
    **neighbours.FUNCTIONS,
    **ordered.FUNCTIONS,
    **polynomials.FUNCTIONS,
    **reductions.FUNCTIONS,
    **shrinking.FUNCTIONS,
    **special.FUNCTIONS,
    **steps.FUNCTIONS,
    **tails.FUNCTIONS,
    **vectors.FUNCTIONS,
    **waves.FUNCTIONS,
}


def aten_math(draft: Draft, match: Match) -> Any:
    """Any operator of `FUNCTIONS`; a tuple where the operator has several outputs."""
    work = Work(draft, match.root)
    made = fractions.of_numbers(work)
    if made is None:
        made = FUNCTIONS[match.root.op](work)
    if isinstance(made, tuple):
        return made
    if WRITTEN in match.root.attrs:
        made = work.cast(made, work.dtype(work.args.tensor("self")))
    if work.facts.of(made).dtype == BOOL and _gives_bytes(work, match.root):
        return work.cast(made, UINT8)
    return made


def _gives_bytes(work: Work, node: gs.Node) -> bool:
    """Whether truths are bytes: torch 1.1 had no booleans, which ONNX's own nodes take alone."""
    value = node.outputs[0]
    if value.dtype == np.uint8:  # as the model promises
        return True
    before = work.facts.model.is_before(1, 2)
    return before and all((reader.domain or "") not in STANDARD for reader in value.outputs)


TABLE: Mapping[str, Callable[..., Any]] = {
    "aten_math": aten_math,
    "fake_quantize_as_pair": steps.fake_quantize_as_pair,
    "observer_as_off": steps.observer_as_off,
}
