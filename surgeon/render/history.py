"""What made a model, as text: one part for each run of surgeon."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from surgeon.render import words

if TYPE_CHECKING:
    from surgeon.sealing import Seal

MOST_RULES = 40
MOST_RUNS = 1000


def log(found: Sequence[Mapping[str, Any]]) -> RenderableType:
    """The runs, oldest first. What the file says is anybody's text, and shown as such."""
    if not found:
        return Text("No log: surgeon did not make this model, or changed nothing in it.")
    parts: list[RenderableType] = []
    begin = max(0, len(found) - MOST_RUNS)
    if begin:
        parts.append(Text(f"{begin} runs before these: see --json", style="dim"))
    for index, run in enumerate(found[begin:], begin + 1):
        title = Text(f"{index}. surgeon {words.name(_text(run.get('surgeon')))}", style="bold")
        if "date" in run:
            title.append(f"  {words.name(_text(run['date']))}", style="not bold dim")
        parts.extend([title, _run(run)])
    return Group(*parts)


def seal(found: Seal) -> RenderableType:
    """Whether the file is what its log says, and what that is worth."""
    head = Text("holds", style="bold green") if found.holds else Text("broken", style="bold red")
    parts: list[RenderableType] = [head]
    parts += [Text(f"  {words.clean(fault)}", style="red") for fault in found.faults]
    parts += [Text(f"  {words.clean(note)}", style="dim") for note in found.notes]
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
    for side in ("from", "to", "outputs of"):
        for text in _list(cut.get(side) if isinstance(cut, dict) else None):
            table.add_row(f"  cut {side}", words.name(_text(text)))
    for text in _list(run.get("assumptions")):
        table.add_row("  assumed", words.name(_text(text)))
    for name, text in _audited(run):
        table.add_row(f"  {name}", text)
    return table


def _audited(run: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What an audit asks for; logs of earlier versions lack it."""
    for name, value in _plain(run.get("options")).items():
        yield "option", f"{words.name(_text(name))} {words.name(_text(value))}"
    for kind in _list(run.get("allowed")):
        yield "allowed", words.name(_text(kind))
    out = _plain(run.get("left out"))
    for rule, count in _plain(out.get("rewrites")).items():
        yield "left out", f"{words.name(_text(rule))}  {words.name(_text(count))}x"
    for step in _list(out.get("steps")):
        yield "left out", words.clean(_text(step))
    for contract in _list(run.get("contracts")):
        yield "contract", words.clean(_text(contract))
    if "verdict" in run:
        yield "verdict", words.clean(_text(run["verdict"]))
    for kind in ("data", "reference"):
        for name in _list(run.get(kind)):
            yield kind, words.name(_text(name))
    for kind, label in (("source", "made of"), ("file", "file")):
        digest = _plain(run.get(kind)).get("sha256")
        if digest is not None:
            yield label, f"sha256 {words.name(_text(digest))}"


def _plain(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _text(value: Any) -> str:
    return value if isinstance(value, str) else repr(value)[:100]
