"""The smallest part of a model that fails, as text: its nodes, its ends, and what was said."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from surgeon.render import words
from surgeon.render.inspection import ends

if TYPE_CHECKING:
    from surgeon.reducing import Reduction
    from surgeon.reducing.command import Outcome

MOST_NODES = 20
MOST_MENDS = 5
_MOST_RECIPES = 3


def reduction(
    found: Reduction,
    whole: Outcome | None = None,
    part: Outcome | None = None,
    *,
    asked_without: bool = False,
) -> RenderableType:
    """What is left, and how a command failed on the whole model and on the part."""
    fail = "fails" if len(found.nodes) == 1 else "fail"
    head = f"{words.count(len(found.nodes), 'node')} of {found.of:,} {fail}"
    parts: list[RenderableType] = [
        Text(head, style="bold").append(
            f"  after {words.count(found.runs, 'run')}", style="not bold"
        )
    ]
    table = Table.grid(padding=(0, 2))
    for _ in range(3):
        table.add_column(overflow="fold")
    for node in found.nodes[:MOST_NODES]:
        recipes = words.listed(node.recipes, _MOST_RECIPES)
        rules = f"rules in {recipes}" if recipes else ""
        table.add_row(words.name(node.operator), words.name(node.name), Text(rules, "dim"))
    parts.append(Padding(table, (0, 0, 0, 2)))
    if len(found.nodes) > MOST_NODES:
        parts.append(Text(f"  {len(found.nodes) - MOST_NODES:,} more", style="dim"))
    weights = len(found.model.overridable)
    parts.append(ends(found.inputs, found.outputs, weights))
    if len(found.nodes) == found.of:
        parts.append(Text("\nNo part of the model that is smaller fails in this way.", "yellow"))
    elif not found.is_smallest:
        parts.append(
            Text("\nThe runs are spent: with more, less may be left (`--most`).", "yellow")
        )
    if found.weights_left_out:
        size = words.size(found.weights_left_out)
        said = f"\nIts weights ({size}) are left out: numbers stand in their place, and what it "
        parts.append(Text(f"{said}computes is something else.", "yellow"))
    elif asked_without:
        said = "Without its weights it does not fail, or it has none that can be left out."
        parts.append(Text(f"\n{said}", "yellow"))
    if found.weights_kept:
        kept = words.listed(found.weights_kept, _MOST_RECIPES)
        parts.append(Text(f"In it are the values of {kept}, of 1 KiB or more each.", "yellow"))
    if found.mends:
        parts.append(Text("\nIt passes behind", style="bold"))
        for mend in found.mends[:MOST_MENDS]:
            allow = "".join(f" --allow {kind}" for kind in mend.allow)
            shape = " --shape INPUT=..." if mend.shaped else ""
            line = f"  surgeon apply {mend.recipe} IN OUT{shape}{allow}"
            parts.append(words.command(line).append(f"  {words.count(mend.nodes, 'node')}", "dim"))
        if len(found.mends) > MOST_MENDS:
            others = words.listed([mend.recipe for mend in found.mends[MOST_MENDS:]])
            parts.append(Text(f"  and behind {others}", "dim"))
    elif found.is_smallest and len(found.outputs) == 1:
        parts.append(Text("\nIt passes behind no recipe tried. A rule of yours begins with"))
        end = shlex.quote(words.name(found.outputs[0].name))
        parts.append(words.command(f"  surgeon recipes new NAME --of OUT --to {end}"))
    both = (("The whole model", whole), ("The part", part))
    parts += [ending(what, outcome) for what, outcome in both if outcome is not None]
    if whole is not None and part is not None and not whole.says_the_same(part):
        text = "\nThe part may fail for another reason than the whole: `--saying TEXT` counts "
        parts.append(Text(text + "only what says TEXT.", "yellow"))
    return Group(*parts)


def ending(what: str, outcome: Outcome) -> Text:
    """How the command ended, and what it said last."""
    said = words.clean(outcome.last_line)
    end = f"its last line:\n  {said}" if said else "it said nothing"
    return Text(f"\n{what}: {outcome.ending}; {end}")
