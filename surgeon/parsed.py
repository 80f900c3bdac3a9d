"""What ONNX's own parser of text says of a text that it refuses."""

from __future__ import annotations

import re

_POSITION = re.compile(r"\[ParseError at position \(line: (\d+) column: (\d+)\)\]")


def of_parser(error: Exception) -> tuple[str, tuple[int, int] | None]:
    """What it says, in one line, and the line and column of which it speaks."""
    said = str(error.args[0].decode() if error.args and isinstance(error.args[0], bytes) else error)
    said = said.removeprefix("b'").removesuffix("'").replace("\\n", "\n")
    place = _POSITION.search(said)
    lines = [line.strip() for line in said.splitlines() if line and not _POSITION.search(line)]
    return "; ".join(lines), (int(place[1]), int(place[2])) if place else None
