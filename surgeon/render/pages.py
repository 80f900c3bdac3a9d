"""Whole documents: what is rendered for a terminal, as plain text or as a page of its own."""

from __future__ import annotations

import io

from rich.console import Console, RenderableType

WIDTH = 100


def text(content: RenderableType, *, width: int = WIDTH) -> str:
    """Plain text, without colours."""
    console = _console(width)
    with console.capture() as capture:
        console.print(content, highlight=False, crop=False)
    return "\n".join(line.rstrip() for line in capture.get().splitlines()) + "\n"


def html(content: RenderableType, *, width: int = WIDTH) -> str:
    """An HTML page that needs no other file."""
    console = _console(width, record=True)
    console.print(content, highlight=False, crop=False)
    return console.export_html(inline_styles=True)


def _console(width: int, *, record: bool = False) -> Console:
    return Console(
        file=io.StringIO(),
        width=width,
        color_system="truecolor" if record else None,
        record=record,
        markup=False,
        emoji=False,
        legacy_windows=False,
    )
