"""What made a model, as text: one part for each run of surgeon."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from surgeon.render import words

MOST_RULES = 40


def log(found: Sequence[Mapping[str, Any]]) -> RenderableType:
    """The runs, oldest first. What the file says is anybody's text, and shown as such."""
    if not found:
        return Text("No log: surgeon did not make this model, or changed nothing in it.")
    parts: list[RenderableType] = []
    for index, run in enumerate(found, 1):
        title = Text(f"{index}. surgeon {words.name(_text(run.get('surgeon')))}", style="bold")
        if "date" in run:
            title.append(f"  {words.name(_text(run['date']))}", style="not bold dim")
        parts.extend([title, _run(run)])
    return Group(*parts)


def _run(run: Mapping[str, Any]) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim")
    table.add_column(overflow="fold")
    for recipe in _list(run.get("recipes")):
        plain = recipe if isinstance(recipe, dict) else {}
        name, digest = (words.name(_text(plain.get(key))) for key in ("name", "sha256"))
        table.add_row("  recipe", f"{name}  sha256 {digest}")
    rules = run.get("rules")
    fired = list(rules.items()) if isinstance(rules, dict) else []
    for name, count in fired[:MOST_RULES]:
        table.add_row("  rule", f"{words.name(name)}  {words.name(_text(count))}x")
    if len(fired) > MOST_RULES:
        table.add_row("  rule", f"and {len(fired) - MOST_RULES} more: see --json")
    cut = run.get("extracted")
    for side in ("from", "to"):
        for text in _list(cut.get(side) if isinstance(cut, dict) else None):
            table.add_row(f"  cut {side}", words.name(_text(text)))
    for text in _list(run.get("assumptions")):
        table.add_row("  assumed", words.name(_text(text)))
    return table


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _text(value: Any) -> str:
    return value if isinstance(value, str) else repr(value)[:100]
