"""What became of many files: a table of outcomes, and reasons grouped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from surgeon.batch import OUTCOMES, Row, grouped, remarks
from surgeon.render import words

STYLES = {"repaired": "green", "unchanged": "dim"}
CHECKS = {
    "left": "changed, and the result was checked; what was asked for was not all done: see Remarks",
    "runs": "changed; the result was not compared with the original, or not all of it",
    "unchecked": "changed; nothing was checked (`--no-verify`)",
}
MOST_GROUPS = 20
MOST_REMARKS = 5
MOST_FILES = 3  # of a group, as examples


def batch(rows: Sequence[Row]) -> RenderableType:
    """The end of a batch: how many files of each outcome, then why files failed."""
    parts: list[RenderableType] = [_outcomes(rows)]
    if not all(row.good for row in rows):
        parts.extend([Text("\nReasons", style="bold"), failures(rows)])
    if said := remarks([row for row in rows if row.good]):
        parts.extend([Text("\nRemarks", style="bold"), _remarks(said[:MOST_REMARKS])])
        if len(said) > MOST_REMARKS:
            parts.append(Text(f"and {len(said) - MOST_REMARKS:,} more", style="dim"))
    return Group(*parts)


def failures(rows: Sequence[Row]) -> RenderableType:
    """Why files failed, the same reasons together."""
    groups = grouped(rows)
    parts: list[RenderableType] = [_reasons(groups[:MOST_GROUPS])]
    if len(groups) > MOST_GROUPS:
        parts.append(Text(f"and {len(groups) - MOST_GROUPS:,} more", style="dim"))
    if kept := sum(row.earlier for row in rows):
        said = f"of {words.count(kept, 'file')} the result of an earlier run stays in DEST"
        parts.append(Text(said, style="yellow"))
    return Group(*parts)


def batch_line(row: Row, done: int, total: int) -> str:
    """One file as a plain line, and how many are done."""
    return f"[{done}/{total}] {row_line(row)}"


def row_line(row: Row) -> str:
    """One file as a plain line."""
    line = f"{row.outcome:9}  {words.name(row.name)}"
    if row.same_as is not None:
        line += f"  (the same as {words.name(row.same_as)})"
    elif not row.fresh:
        line += "  (from an earlier run)"
    else:
        line += f"  {words.seconds(row.seconds)}"
    return f"{line}: {words.clean(row.reason)}" if row.reason else line


def _outcomes(rows: Sequence[Row]) -> Table:
    counts = Counter(_kind(row) for row in rows)
    table = Table.grid(padding=(0, 2))
    table.add_column(justify="right")
    table.add_column()
    table.add_column(overflow="fold")
    for outcome, meaning in OUTCOMES.items():
        style = STYLES.get(outcome, "yellow")
        for kind in (outcome, *CHECKS) if outcome == "repaired" else (outcome,):
            if counts[kind]:
                said = Text(CHECKS.get(kind, meaning), style="dim" if kind == outcome else "yellow")
                table.add_row(f"{counts[kind]:,}", Text(outcome, style=style), said)
    return table


def _kind(row: Row) -> str:
    """The outcome; of repaired files that are not all that was asked for, a key of `CHECKS`."""
    if row.outcome != "repaired":
        return row.outcome
    if row.verdict and row.verdict[0] == "equivalent":
        return "left" if row.left_out else row.outcome
    return "runs" if row.verdict else "unchecked"


def _remarks(groups: Sequence[tuple[str, Sequence[Row]]]) -> Table:
    return _counted((Text(words.clean(said)), same) for said, same in groups)


def _reasons(groups: Sequence[tuple[str, str, Sequence[Row]]]) -> Table:
    texts = []
    for outcome, reason, same in groups:
        text = Text(f"{outcome}: ", style="yellow")
        text.append(words.clean(reason), style="default")
        if same[0].mend:
            text.append(f"\n{words.clean(same[0].mend)}", style="cyan")
        texts.append((text, same))
    return _counted(texts)


def _counted(groups: Iterable[tuple[Text, Sequence[Row]]]) -> Table:
    """What is said of how many files, with the names of some."""
    table = Table.grid(padding=(0, 2))
    table.add_column(justify="right")
    table.add_column(overflow="fold")
    for text, same in groups:
        text.append(f"\n{words.listed([row.name for row in same], MOST_FILES)}", style="dim")
        table.add_row(words.count(len(same), "file"), text)
    return table
