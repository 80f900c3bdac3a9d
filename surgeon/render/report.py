"""A report as text: before and after, what fired and why, what was kept, what was checked."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from surgeon.recipe import bundled
from surgeon.render import checks, words

if TYPE_CHECKING:
    from surgeon.report import Change, Missed, Refusal, Report

MOST_OPERATORS = 24  # rows of the table before and after, unless everything is asked for
MOST_MISSES = 6
MOST_PLACES = 3  # nodes that are named beside a rule
INDENT = (0, 0, 0, 2)
_GENERAL = frozenset({"clean"})  # of these nobody expects that a rule fires
_NODE = re.compile(r"^node '(.*)' \([^()]*\)$")  # as reports name one


def report(found: Report, *, verbose: bool = False, ended: bool = False) -> RenderableType:
    """The whole report.

    Args:
        found: What `apply` recorded.
        verbose: Every operator, every rewrite and every recorded miss.
        ended: Whether an error ended the run that it is of.
    """
    parts = [headline(found)]
    if found.before != found.after:
        parts.append(Padding(_operators(found, verbose=verbose), (1, 0, 0, 2)))
    if found.changes:
        parts.extend(section("Rewrites", [rules(found)]))
        if verbose:
            parts.extend(section("Every rewrite, in order", [every_change(found.changes)]))
    else:
        idle = _GENERAL.issuperset(found.recipes)
        parts.extend(section("Rewrites", ["nothing to do" if idle else "no rule fired"]))
    parts.extend(section("Refused", _refused(found.refusals) if found.refusals else []))
    parts.extend(section("Housekeeping", [_housekeeping(found)] if found.housekeeping else []))
    parts.extend(section("Contracts", [_contracts(found)] if found.contracts else []))
    parts.extend(section("Assumed", [bullets(found.assumptions)] if found.assumptions else []))
    parts.extend(section("Remarks", [bullets(found.remarks)] if found.remarks else []))
    if found.failures:
        parts.extend(section("Left out", [bullets(found.failures)]))
    wanted = not found.changes and not _GENERAL.issuperset(found.recipes)
    if found.misses and (verbose or wanted):
        most = None if verbose else MOST_MISSES
        parts.extend(section("Nearest misses", [misses(found.misses, most=most)]))
    parts.extend(section("Checked", _checked(found, ended=ended)))
    parts.extend(section("Time", [_times(found)]))
    return Group(*parts)


def headline(found: Report) -> RenderableType:
    """Which recipes, and how many nodes before and after."""
    before, after = sum(found.before.values()), sum(found.after.values())
    text = Text(words.name(found.source), style="bold")
    opset = f"{found.opset}"
    if found.opset_before not in (None, found.opset):
        opset = f"{found.opset_before} -> {found.opset}"
    text.append(f"  opset {opset}", style="not bold dim")
    named = list(dict.fromkeys(found.recipes))  # a target brings some once more
    recipes = words.listed(named) if named else "no recipe"
    text.append(f"\n{recipes}: ", style="not bold")
    text.append(f"{words.count(before, 'node')} -> {after:,}", style="bold")
    return text


def section(title: str, content: Iterable[RenderableType]) -> Iterator[RenderableType]:
    """A title and what stands under it; nothing where nothing does."""
    parts = [Padding(part, INDENT) for part in content]
    if parts:
        yield Text(f"\n{title}", style="bold")
        yield from parts


def _operators(found: Report, *, verbose: bool) -> Table:
    """What went and what came: operators whose count changed, the largest changes first."""
    names = [*found.before, *(name for name in found.after if name not in found.before)]
    rows = [(name, found.before.get(name, 0), found.after.get(name, 0)) for name in names]
    changed = sorted((row for row in rows if row[1] != row[2]), key=_largest_change)
    same = [row for row in rows if row[1] == row[2]]
    shown = [*changed, *same] if verbose else changed[:MOST_OPERATORS]
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="dim")
    table.add_column("operator", overflow="fold")
    table.add_column("before", justify="right")
    table.add_column("after", justify="right")
    table.add_column("")
    for name, before, after in shown:
        note, style = _note(before, after)
        table.add_row(
            Text(words.name(name)),
            f"{before:,}" if before else "-",
            f"{after:,}" if after else "-",
            Text(note, style=style),
        )
    rest = [row for row in rows if row not in shown]
    if rest:
        table.add_row(
            Text(f"{words.count(len(rest), 'other operator')}", style="dim"),
            Text(f"{sum(row[1] for row in rest):,}", style="dim"),
            Text(f"{sum(row[2] for row in rest):,}", style="dim"),
            "",
        )
    return table


def _largest_change(row: tuple[str, int, int]) -> tuple[bool, bool, int, str]:
    """Operators of other domains first, then what went wholly, then by size of the change."""
    name, before, after = row
    return ("." not in name, after != 0, -abs(after - before), name)


def _note(before: int, after: int) -> tuple[str, str]:
    if not after:
        return "gone", "green"
    if not before:
        return "new", "cyan"
    return (f"{after - before:+,}" if before != after else ""), "dim"


def rules(found: Report) -> Table:
    """How often each rule fired, and its reason."""
    first: dict[str, Change] = {}
    places: dict[str, dict[str, None]] = {}
    for change in found.changes:
        rule = f"{change.recipe}/{change.rule}"
        first.setdefault(rule, change)
        places.setdefault(rule, {})[change.node] = None
    table = Table.grid(padding=(0, 2))
    table.add_column(justify="right")
    table.add_column(overflow="fold")
    for rule, times in found.fired.most_common():
        change = first[rule]
        text = Text(words.name(rule), style="cyan")
        text.append(f"  {change.exact}", style="dim")
        text.append(f"\n{words.clean(change.why)}", style="default")
        at = [_NODE.sub(r"\1", place) for place in places[rule]]
        text.append(f"\nat {words.listed(at, MOST_PLACES)}", style="dim")
        table.add_row(Text(f"{times:,} x"), text)
    return table


def every_change(changes: Sequence[Change]) -> Table:
    """Each rewrite: where, what came for what, and by which rule."""
    table = Table.grid(padding=(0, 2))
    for change in changes:
        text = Text(words.name(change.node))
        text.append(f"\n{_operator_list(change.before)} -> {_operator_list(change.after)}", "dim")
        text.append(f"\n{words.name(f'{change.recipe}/{change.rule}')}", style="cyan")
        text.append(f"  {words.place(change.location)}".rstrip(), style="dim")
        table.add_row(text)
    return table


def _operator_list(operators: Sequence[str]) -> str:
    """`Conv, Relu, 2 x Add`, in order of appearance."""
    counts = Counter(operators)
    named = [f"{n} x {words.name(op)}" if n > 1 else words.name(op) for op, n in counts.items()]
    return ", ".join(named) or "nothing"


_OF_ONE = {  # what is said of several, and of one
    "constants ": "constant ",
    "nodes made initializers": "node made an initializer",
    "nodes ": "node ",
    "calls ": "call ",
    "functions ": "function ",
    "results of branches": "result of branches",
    "Loops whose lists became results of their": "Loop whose lists became results of its",
}


def _housekeeping(found: Report) -> Text:
    done = sorted(found.housekeeping.items(), key=lambda item: (-item[1], item[0]))
    return Text(", ".join(_counted(what, number) for what, number in done if number))


def _counted(what: str, number: int) -> str:
    """`2 constants folded`, `1 constant folded`."""
    said = words.clean(what)
    for several, one in _OF_ONE.items() if number == 1 else ():
        if several in said:
            said = said.replace(several, one, 1)
            break
    return f"{number:,} {said}"


def _contracts(found: Report) -> Text:
    """What the rewrites changed in what the model promises, and which rules did."""
    lines = []
    for contract in found.contracts:
        rules = dict.fromkeys(
            f"{c.recipe}/{c.rule}" for c in found.changes if c.contract == contract
        )
        line = Text(f"- {words.clean(contract)}", style="yellow")
        line.append(f" ({words.listed(tuple(rules))})", style="dim")
        lines.append(line)
    return Text("\n").join(lines)


def bullets(sentences: Sequence[str]) -> Text:
    """Sentences, one a line."""
    return Text("\n").join(Text(f"- {words.clean(sentence)}") for sentence in sentences)


def misses(found: Sequence[Missed], *, most: int | None = None) -> RenderableType:
    """Rule, node, reason, place; the attempts that came furthest first."""
    ranked = sorted(found, key=lambda miss: miss.total - miss.matched)
    shown = ranked[:most]
    lines: list[RenderableType] = [miss(each) for each in shown]
    if len(shown) < len(ranked):
        lines.append(Text(f"and {len(ranked) - len(shown):,} more", style="dim"))
    return Group(*lines)


def miss(found: Missed) -> Text:
    """One attempt that failed."""
    text = Text(words.name(found.node))
    text.append(f"\n  {words.name(f'{found.recipe}/{found.rule}')}", style="cyan")
    if place := words.place(found.location):
        text.append(f" at {place}", style="dim")
    text.append(f"\n  {progress(found)}{words.clean(found.reason)}")
    return text


def progress(found: Missed) -> str:
    """`3 of 7 nodes matched; `, where it is not all of them."""
    if found.matched >= found.total:
        return ""
    return f"{found.matched} of {words.count(found.total, 'node')} matched; "


def _checked(found: Report, *, ended: bool) -> Iterator[RenderableType]:
    """The rewrites one by one, then the whole model."""
    if found.pieces:
        yield _pieces(found.pieces)
    if found.verdict is not None:
        yield checks.verdict(found.verdict)
    elif not found.changes and found.before == found.after:
        yield Text("nothing to compare: nothing was changed")
    else:
        why = "an error ended it before" if ended else "that was not asked for"
        yield Text(f"the whole model was not compared: {why}", style="yellow")


def _pieces(counts: Mapping[str, int]) -> Text:
    """How many rewrites were compared by themselves, and why others were not."""
    done = counts.get("compared", 0)
    again = counts.get("compared before", 0)
    text = Text(f"rewrites by themselves: {done:,} compared with what they replace")
    if again and not done:  # in a run that was begun anew without rewrites that differ
        text.append(f", {again:,} compared before")
    elif again:
        text.append(f", {again:,} like one of these")
    for what, number in counts.items():
        if what not in ("compared", "compared before"):
            text.append(f"\n  {number:,} {words.clean(what)}", style="yellow")
    return text


def _refused(found: Sequence[Refusal]) -> list[RenderableType]:
    parts: list[RenderableType] = [_refusals(found)]
    if not {each.recipe for each in found} <= bundled().keys():  # a recipe of the user's own
        hint = (
            "where another result is wanted, it is one of a recipe's `changes` (docs/surgeries.md)"
        )
        parts.append(Text(hint, style="dim"))
    return parts


def _refusals(found: Sequence[Refusal]) -> Table:
    """Rewrites that differ from what they would replace: those of one rule and kind together."""
    groups: dict[tuple[str, str, str], list[Refusal]] = {}
    for each in found:
        groups.setdefault((each.recipe, each.rule, each.reason), []).append(each)
    table = Table.grid(padding=(0, 2))
    table.add_column(justify="right")
    table.add_column(overflow="fold")
    for (recipe, rule, reason), group in groups.items():
        text = Text(words.name(f"{recipe}/{rule}"), style="cyan")
        seed = f", seed {group[0].seed}" if group[0].seed >= 0 else ""
        text.append(f"\n{words.clean(reason)}{seed}", style="yellow")
        text.append(f"\nat {words.listed([each.node for each in group], 3)}", style="dim")
        if group[0].evidence:
            text.append(f"\nevidence: {words.clean(group[0].evidence)}", style="default")
        table.add_row(Text(f"{len(group):,} x"), text)
    return table


def _times(found: Report) -> Text:
    total = sum(found.seconds.values())
    stages = ", ".join(f"{stage} {words.seconds(time)}" for stage, time in found.seconds.items())
    return Text(f"{words.seconds(total)} ({stages})", style="dim")
