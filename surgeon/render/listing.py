"""Every node of a model as a line of text: what a `match` may begin with."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from surgeon.render import words

if TYPE_CHECKING:
    from surgeon.listing import Written


def listing(found: Sequence[Written]) -> str:
    """A line for each node, those of bodies further in; comments say where they stand."""
    return "\n".join(_lines(found)) or "# no nodes"


def _lines(found: Sequence[Written]) -> Iterator[str]:
    inside = [""]  # the graphs that the last line stands in, outermost first
    for each in found:
        indent = "  " * each.depth
        if inside[each.depth : each.depth + 1] != [each.graph]:
            inside[each.depth :] = [each.graph]
            yield f"{indent}# {words.clean(each.graph)}"
        del inside[each.depth + 1 :]
        yield f"{indent}{words.clean(str(each))}"
