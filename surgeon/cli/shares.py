"""Shares of a whole, as people write them: `95%`, and as a number alone."""

from __future__ import annotations

import re

from surgeon.cli.console import UsageError

_WRITTEN = re.compile(r"(\d*\.?\d+)(%?)")
_HUNDRED = 100.0


def percent_of(text: str) -> float:
    """`95%`, `95` and `0.95` as 95.0.

    Raises:
        UsageError: The text is no share of a whole; or `1`, which may be a hundredth and the whole.
    """
    found = _WRITTEN.fullmatch(text.strip())
    number = float(found[1]) if found is not None else -1.0
    if found is not None and not found[2] and number <= 1 and "." in found[1]:
        number *= _HUNDRED
    if found is None or number > _HUNDRED or (number == 1 and not found[2]):
        raise UsageError(
            f"`{text}` is not a share of the files", where="--fail-under", mend="Write it as `95%`."
        )
    return number


def share_of(text: str | None) -> float | None:
    """`0.05` and `5%` as 0.05.

    Raises:
        UsageError: The text is no number that is 0 or more; or a share of more than the whole.
    """
    if text is None:
        return None
    digits = text.strip()
    try:
        number = float(digits.removesuffix("%"))
    except ValueError:
        number = -1.0
    if not number >= 0:
        raise UsageError(
            f"`{text}` is not a share of an output's spread",
            where="--tolerance",
            mend="Write it as `0.01` or `1%`.",
        )
    share = number / (_HUNDRED if digits.endswith("%") else 1)
    if 1 < share < float("inf"):
        raise UsageError(
            f"`{text}` is more than the whole of an output's spread",
            where="--tolerance",
            mend=f"Write `{number / _HUNDRED:g}` or `{number:g}%` for {number:g} in a hundred."
            if number <= _HUNDRED
            else "Write it as `0.01` or `1%`.",
        )
    return share
