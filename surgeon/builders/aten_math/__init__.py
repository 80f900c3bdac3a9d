"""Builders of the recipe `aten-math`: one builder, and a function for each operator."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from surgeon.builders.aten_math import (
    activations,
    arithmetic,
    bits,
    comparison,
    functions,
    losses,
    ordered,
    reductions,
)
from surgeon.builders.aten_math.work import Work
from surgeon.match import Match
from surgeon.rewrite import Draft

FUNCTIONS: Mapping[str, Callable[[Work], Any]] = {
    **activations.FUNCTIONS,
    **arithmetic.FUNCTIONS,
    **bits.FUNCTIONS,
    **comparison.FUNCTIONS,
    **functions.FUNCTIONS,
    **losses.FUNCTIONS,
    **ordered.FUNCTIONS,
    **reductions.FUNCTIONS,
}


def aten_math(draft: Draft, match: Match) -> Any:
    """Any operator of `FUNCTIONS`; a tuple where the operator has several outputs."""
    return FUNCTIONS[match.root.op](Work(draft, match))


TABLE: Mapping[str, Callable[..., Any]] = {"aten_math": aten_math}
