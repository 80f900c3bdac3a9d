"""What compares the rewrites of a run, from what the run knows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from surgeon.assumptions import Axioms
from surgeon.facts import Facts
from surgeon.meanings import Meanings
from surgeon.model import Model
from surgeon.recipe import Recipe
from surgeon.report import Notes
from surgeon.trial import Trial
from surgeon.trial.activations import Activations
from surgeon.trial.reach import Reach

if TYPE_CHECKING:
    from surgeon.verify.given import Given


def trial_of(
    original: Model,
    model: Model,
    facts: Facts,
    notes: Notes,
    pieces: Counter[str],
    axioms: Axioms,
    given: Given | None,
    recipes: Sequence[Recipe],
    evidence: Path | None,
) -> tuple[Trial, Reach]:
    """The comparison, and how far values are known to reach."""
    real = None
    if given is not None and given.sets:
        real = Activations(original, [each.feeds for each in given.sets])
    reach = Reach(model, original.folder, axioms, given)
    trial = Trial(
        model,
        facts,
        pieces,
        notes.refusals,
        notes.failures,
        evidence=evidence,
        real=real,
        meanings=Meanings([text for recipe in recipes for text in recipe.functions]),
        reach=reach,
    )
    return trial, reach
