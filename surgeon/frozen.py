"""What a file says for one batch or one size alone, and how a step that frees it refuses."""

from __future__ import annotations

from surgeon.errors import SurgeonError


class Frozen(Exception):
    """What cannot be said for another batch or size, and why."""


def refusal(step: str, what: str, mend: str) -> SurgeonError:
    """Why a step leaves a model as it is."""
    return SurgeonError(what, where=step, mend=mend)
