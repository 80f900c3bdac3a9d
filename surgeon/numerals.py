"""Numbers in texts that others wrote."""

from __future__ import annotations

NO_LENGTH = 1 << 31  # what no axis reaches
_LONGEST = 19  # digits; 2^63 - 1 has as many


def natural(text: str) -> int | None:
    """The number that these digits write; None where they are none.

    `str.isdigit` is wider than `int`, which takes no `²`, nor more than some thousand digits.
    """
    if not (text.isascii() and text.isdigit()) or len(text.lstrip("0")) > _LONGEST:
        return None
    return int(text.lstrip("0") or "0")
