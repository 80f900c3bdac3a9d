"""What one recipe file says, before the recipes it uses are put in their places."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from surgeon.errors import Location
from surgeon.extension import Extension
from surgeon.recipe.rules import Rule, Step


class Use(NamedTuple):
    """A step that is other recipes' steps, or one step of all their rules.

    Attributes:
        names: As they were written.
        places: Where each stands.
        together: Whether their rules make one step.
        without: Rules of theirs that are left out, by id or `recipe/id`.
        keep: What their steps are to leave as it is.
        only: Rules of theirs that alone are taken; none named are all.
        chosen_at: Where each of `without` stands, then each of `only`.
    """

    names: tuple[str, ...]
    places: tuple[Location, ...]
    together: bool
    without: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()
    only: tuple[str, ...] = ()
    chosen_at: tuple[Location, ...] = ()


WrittenStep: TypeAlias = Step | Use


class Written(NamedTuple):
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
    functions: tuple[str, ...]
    extensions: tuple[Extension, ...]
    changes: tuple[Rule, ...]
    ensure: str | None
    away_from: str | None
