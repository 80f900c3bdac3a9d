"""What was found on the way to a model that passes, as text: each place, and what helped there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text

from surgeon.render import words

if TYPE_CHECKING:
    from surgeon.adapting import Adaptation, Round

_FEW = 4  # nodes of a part, and recipes that wait


def adaptation(found: Adaptation) -> RenderableType:
    """The rounds, and the recipes that are needed in the end."""
    runs = words.count(found.runs, "run")
    if not found.recipes:
        return Text(f"It passes as it came, after {runs}\n", style="bold")
    end = Text(f"\nIt passes behind {' '.join(found.recipes)}", style="bold")
    end.append(f"  after {runs}\n", "not bold")
    return Group(rounds(found.rounds), end) if found.rounds else end


def rounds(found: Sequence[Round]) -> RenderableType:
    """Where it failed, one place after the other."""
    lines: list[RenderableType] = [Text("It fails at", style="bold")] if found else []
    for each in found:
        named = [f"{words.name(node.operator)} {words.name(node.name)}" for node in each.nodes]
        text = Text(f"  {words.listed(named, _FEW)}")
        text.append(f"  {words.count(len(each.nodes), 'node')} of {each.of:,}", "dim")
        lines.append(text)
        if each.recipe:
            lines.append(Text(f"    passes behind {each.recipe}", "green"))
        for mend in each.waiting[:_FEW]:
            given = [f"--allow {kind}" for kind in mend.allow]
            given += ["--shape INPUT=..."] if mend.shaped else []
            lines.append(Text(f"    would pass behind {mend.recipe} with {' '.join(given)}"))
        if not each.recipe and not each.waiting:
            lines.append(Text("    passes behind no bundled recipe", "yellow"))
    return Group(*lines)
