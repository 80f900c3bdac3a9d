"""How much is run of what could go on for long: a part each time, all with `SURGEON_EVERY=1`."""

import os
from typing import TypeVar

T = TypeVar("T")
_ASKED = os.environ.get("SURGEON_EVERY")


def every(usual: int) -> int:
    """Of how many one is run."""
    return int(_ASKED or usual)


def some(usual: T, *, of: T) -> T:
    """What is taken in a usual run, of what is taken where all is."""
    return of if _ASKED == "1" else usual
