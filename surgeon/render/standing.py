"""Where nodes stand, as text."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from surgeon.render import words

if TYPE_CHECKING:
    from surgeon.standing import Standing, Wire

MOST_NODES = 5
_MOST_READERS = 4


def standings(found: Sequence[Standing], path: Path, *, verbose: bool = False) -> RenderableType:
    """Nodes with what is around them, and the commands that begin there."""
    most = len(found) if verbose else MOST_NODES
    parts: list[RenderableType] = []
    for each in found[:most]:
        title = Text(words.name(each.name), style="bold")
        parts.append(title.append(f"  {words.name(each.operator)}", style="not bold"))
        parts.extend(map(words.indented, (*_of(each), *_commands(each, path), Text())))
    if len(found) > most:
        others = words.listed([each.name for each in found[most:]])
        parts.append(Text(f"{len(found) - most:,} more of them: {others}", style="dim"))
    return Group(*parts)


def _of(node: Standing) -> Iterator[RenderableType]:
    if node.scope:
        yield Text(f"of {words.clean(node.scope)}", style="dim")
    if node.source:
        yield Text(f"from {words.clean(node.source)}", style="dim")
    if node.inside:
        yield Text("inside a body or a function, where types are not told", style="dim")
    table = Table.grid(padding=(0, 2))
    for _ in range(4):
        table.add_column(overflow="fold")
    for wire in node.inputs:
        table.add_row("reads", *_wire(wire, "of"))
    for name, value in node.attributes.items():
        table.add_row("attribute", words.name(name), words.clean(value), "")
    for wire in node.outputs:
        table.add_row("gives", *_wire(wire, "to"))
    yield table
    if node.pattern:
        yield words.command(f"match: {words.clean(node.pattern)}", "dim")


def _wire(wire: Wire, joint: str) -> tuple[str, str, str]:
    value = wire.value
    kind = f"{value.kind}  {words.shape(value.shape)}" if value.kind else "type unknown"
    others = words.listed(wire.others, _MOST_READERS) or "nobody"
    return words.name(value.name), kind, f"{joint} {others}"


def _commands(node: Standing, path: Path) -> Iterator[RenderableType]:
    model = shlex.quote(words.name(str(path)))
    if node.recipes:
        yield Text(f"Rules for {node.operator}: {words.listed(node.recipes)}")
        name = shlex.quote(words.name(node.name))
        yield words.command(
            f"  whether they fire: surgeon explain RECIPE {model} --node {name}", "dim"
        )
    if node.inside:
        return
    before = _ends("--to", [wire for wire in node.inputs if not wire.given])
    read = [wire for wire in node.outputs if wire.others]
    behind = _ends("--from", read)
    for said, ends in (("what stands before it", before), ("what stands behind it", behind)):
        if ends:
            yield words.command(f"  {said}: surgeon extract {model} OUT.onnx {ends}", "dim")
    given = [wire for wire in node.inputs if not {"weight", "constant"}.intersection(wire.others)]
    if given and read:
        ends = f"{_ends('--from', given)} {_ends('--to', read)}"
        yield words.command(f"  a rule for it: surgeon recipes new NAME --of {model} {ends}", "dim")


def _ends(option: str, wires: Sequence[Wire]) -> str:
    """Values as options of a command, each once."""
    names = dict.fromkeys(words.name(wire.value.name) for wire in wires)
    return " ".join(f"{option} {shlex.quote(name)}" for name in names)
