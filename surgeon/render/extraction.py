"""A part that was cut out of a model, as text: what it takes and gives, and how it compares."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text

from surgeon.render import checks, words
from surgeon.render.inspection import ends

if TYPE_CHECKING:
    from surgeon.extraction import Extraction


def extraction(found: Extraction) -> RenderableType:
    """The part's interface and the verdict."""
    head = f"{words.count(found.nodes, 'node')} of {found.of:,}"
    parts: list[RenderableType] = [Text(head, style="bold")]
    weights = len(found.model.overridable)
    parts.append(ends(found.inputs, found.outputs, weights))
    if found.without:
        said = f"without the model's output {words.listed(found.without, 3)}: `--to` keeps it too"
        parts.append(Text(said, style="yellow"))
    if found.not_given:
        said = f"{words.listed(found.not_given, 3)}: not given, since none is known to be a tensor"
        parts.append(Text(said, style="yellow"))
    if found.verdict is not None:
        parts.append(checks.verdict(found.verdict))
    return Group(*parts)
