"""What changed between two models, as text."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from surgeon.provenance import KEY, named_in, read
from surgeon.render import words

if TYPE_CHECKING:
    from surgeon.difference import Change, Difference

MOST = 20  # lines of one kind before the rest is counted only
_FEW = 5  # recipes in words
LONGEST = 200  # characters of one value: metadata can hold whole documents, surgeon's log too


def difference(found: Difference, *, verbose: bool = False) -> RenderableType:
    """Header, interface, operators, nodes and constants, as far as they changed."""
    title = f"{words.name(found.before)} -> {words.name(found.after)}"
    parts: list[RenderableType] = [Text(title, style="bold")]
    if found.same:
        what = "No difference that counts" if found.aside else "No difference"
        same = Text(f"{what}: {words.count(found.kept, 'node')} the same.")
        return Group(*parts, same, *_aside(found))
    for head, changes in (
        ("Header", found.header),
        ("Inputs and outputs", found.interface),
        ("Bodies, functions and annotations", found.declared),
        ("Values given by another operator", found.replaced),
        ("Nodes with other attributes or operands", found.changed),
        ("Nodes whose outputs have other names", found.renamed),
        ("Nodes that went", found.gone),
        ("Nodes that came", found.new),
        ("Constants", found.initializers),
    ):
        parts += _section(head, changes, verbose)
        if head == "Inputs and outputs" and found.operators:
            parts += [Text("\nOperators", style="bold"), Padding(_operators(found), (0, 0, 0, 2))]
    parts.append(Text(f"\n{words.count(found.kept, 'node')} the same."))
    if found.by_order:
        said = (
            f"{words.count(found.by_order, 'node')} paired by the order of operators: names differ."
        )
        parts.append(Text(said, style="yellow"))
    if min(len(found.gone), len(found.new)) > found.kept + len(found.changed) + len(found.renamed):
        said = (
            "Few nodes of one are in the other. What both compute is compared, value by value, by:"
        )
        verify = shlex.join(["surgeon", "verify", found.before, found.after, "--bisect"])
        parts += [Text(said, style="yellow"), words.command(words.clean(verify))]
    return Group(*parts, *_aside(found))


def _aside(found: Difference) -> Iterator[RenderableType]:
    if found.aside:
        yield Text(f"Different and not counted: {'; '.join(found.aside)}.", style="dim")


def _section(head: str, changes: Sequence[Change], verbose: bool) -> Iterator[RenderableType]:
    if not changes:
        return
    yield Text(f"\n{head}: {len(changes):,}", style="bold")
    table = Table.grid(padding=(0, 2))
    table.add_column(overflow="fold")
    table.add_column(overflow="fold")
    most = len(changes) if verbose else MOST
    for change in changes[:most]:
        table.add_row(Text(words.name(change.name)), _change(change, verbose))
    yield Padding(table, (0, 0, 0, 2))
    if len(changes) > most:
        yield Text(f"  and {len(changes) - most:,} more (`--verbose` shows all)", style="dim")


def _change(change: Change, verbose: bool) -> Text:
    before, after = _values(change, verbose)
    if not before:
        return Text(f"+ {after}", style="green")
    if not after:
        return Text(f"- {before}", style="red")
    return Text(f"{before} -> {after}")


def _values(change: Change, verbose: bool) -> tuple[str, str]:
    texts = (change.before, change.after)
    if change.name == f"metadata {KEY}" and not verbose:
        runs = _runs(texts[0]), _runs(texts[1])
        return runs if runs[0] != runs[1] else (runs[0], "as many, told otherwise")
    if verbose or max(map(len, texts)) <= LONGEST:
        return words.clean(texts[0]), words.clean(texts[1])
    from surgeon.difference.texts import apart

    before, after = (
        words.clean(cut)
        if cut == text
        else f"{words.clean(cut)} ({len(text):,} characters; `--verbose` shows more)"
        for text, cut in zip(texts, apart(*texts, LONGEST), strict=True)
    )
    return before, after


def _runs(text: str) -> str:
    """The log of a model's making in a few words."""
    runs = read(text) if text else []
    if not runs:
        return words.clean(text[:LONGEST])
    names = words.listed(named_in(runs), _FEW)
    return f"{words.count(len(runs), 'run')} of surgeon: {names} (`surgeon log` shows more)"


def _operators(found: Difference) -> Table:
    table = Table.grid(padding=(0, 3))
    table.add_column(overflow="fold")
    table.add_column(justify="right")
    table.add_column(justify="right")
    for operator, (before, after) in found.operators.items():
        table.add_row(Text(words.name(operator)), f"{before or '-'}", f"{after or '-'}")
    return table
