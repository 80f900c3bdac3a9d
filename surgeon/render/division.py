"""A model cut in two, as text: how much a runtime takes, and the commands that cut."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text

from surgeon.render import words

if TYPE_CHECKING:
    from surgeon.dividing import Division


def division(found: Division, path: Path) -> RenderableType:
    """Which part the runtime's list has, and how to cut it off."""
    where = "in front of" if found.taken == "first" else "behind"
    head = Text(
        f"\nIt can be cut in two: {found.nodes:,} of {words.count(found.of, 'node')} stand {where} "
        f"{words.listed(found.refused, 6)}, which no exact rule spells out."
    )
    lines = [
        f"  surgeon extract {words.name(shlex.quote(str(path)))} {name} {_quoted(options)}".rstrip()
        for name, options in (("FRONT.onnx", found.first), ("REST.onnx", found.second))
    ]
    return Group(head, *map(words.command, lines))


def _quoted(options: tuple[str, ...]) -> str:
    return " ".join(shlex.quote(words.name(option)) for option in options)
