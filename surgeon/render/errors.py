"""Errors as text: what, where, how to mend it."""

from __future__ import annotations

from rich.text import Text

from surgeon.errors import SurgeonError
from surgeon.render.words import clean


def error(problem: SurgeonError) -> Text:
    """Three lines: what went wrong, where, and what to do."""
    text = Text.assemble(("error", "bold red"), ": ", clean(problem.what))
    text.append("\n   at: ", style="dim")
    text.append(clean(problem.where))
    text.append("\n mend: ", style="dim")
    text.append(clean(problem.mend))
    return text
