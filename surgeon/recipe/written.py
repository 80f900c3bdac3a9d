"""What one recipe file says, before the recipes it uses are put in their places."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from surgeon.errors import Location
from surgeon.recipe.rules import Step


@dataclass(frozen=True, slots=True)
class Use:
    """A step that is other recipes' steps, or one step of all their rules.

    Attributes:
        names: As they were written.
        places: Where each stands.
        together: Whether their rules make one step.
    """

    names: tuple[str, ...]
    places: tuple[Location, ...]
    together: bool


WrittenStep: TypeAlias = Step | Use


@dataclass(frozen=True, slots=True)
class Written:
    """A recipe file; fields as in `Recipe`.

    Attributes:
        steps: The steps.
        places: Where each stands.
    """

    name: str
    about: str
    steps: tuple[WrittenStep, ...]
    places: tuple[Location, ...]
    allow: frozenset[str]
    custom: frozenset[str]
    same_shape: frozenset[str]
    ensure: str | None
