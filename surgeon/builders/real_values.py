"""Builders of real values, which say so where they meet complex ones."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from surgeon.builders.aten_nn.complexes import is_complex
from surgeon.builders.unknown import NotKnown
from surgeon.match import Match
from surgeon.rewrite import Draft, Refused


def of_real_values(builder: Callable[..., Any]) -> Callable[..., Any]:
    """The builder, which calls a value complex where it would say that its dtype is not known."""

    @wraps(builder)
    def run(draft: Draft, match: Match, **arguments: Any) -> Any:
        try:
            return builder(draft, match, **arguments)
        except NotKnown as reason:
            if draft.facts.of(reason.value).dtype or not is_complex(draft, reason.value):
                raise
            raise Refused(f"{reason.called} is complex, and this is of real values") from None

    return run
