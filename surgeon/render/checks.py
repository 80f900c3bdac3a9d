"""A verdict as text: the word, what was compared against what, how far apart it was at most."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from surgeon.render import words

if TYPE_CHECKING:
    from surgeon.verify import Comparison, OutputCheck, Verdict

MOST_NODES = 12  # of each model, between the last value that agrees and the first that differs
MOST_OUTPUTS = 60  # with a line of their own
MOST_INPUTS = 6  # whose way of drawing is told
MOST_STEPS = 1e5  # beyond it an error in units of the last place says nothing
STYLES = {
    "equivalent": "bold green",
    "runs": "bold yellow",
    "differs": "bold red",
    "broken": "bold red",
}


def verdict(found: Verdict) -> RenderableType:
    """The verdict, a line for each output, and what was not compared."""
    parts: list[RenderableType] = [headline(found)]
    if found.comparisons:
        parts.append(Padding(_inputs(found), (0, 0, 0, 2)))
        if found.inputs:
            ways = [f"{name}: {way}" for name, way in found.inputs.items()]
            said = f"drawn as {words.listed(ways, MOST_INPUTS)}"
            parts.append(Padding(Text(said, style="dim"), (0, 0, 0, 2)))
        parts.append(Padding(_outputs(found), (0, 0, 0, 2)))
    parts.extend(Padding(line, (0, 0, 0, 2)) for line in _reservations(found))
    if found.mend:
        parts.append(Padding(Text(f"mend: {words.clean(found.mend)}"), (0, 0, 0, 2)))
    return Group(*parts)


def parting(verdict: Verdict) -> RenderableType:
    """The last values that agree, the first that differs, and what lies between."""
    found = verdict.parting
    if found is None and not verdict.comparisons:
        return Text("nothing to bisect: the two were not compared")
    if found is None:
        said = "where both run, all that both hold agrees within what is allowed"
        return Text(f"no value to bisect: {said}")
    name = words.name(found.differs.name)
    called = "" if found.other == found.differs.name else f" (`{words.name(found.other)}` in B)"
    head = Text.assemble("the models part at ", (f"`{name}`", "bold red"), called)
    head.append(f": {words.clean(str(found.differs)).removeprefix(f'`{name}`: ')}")
    agree = ", ".join(f"`{words.name(each)}`" for each in found.agrees[:4]) or "the inputs alone"
    lines = [Text(f"last that agree: {agree}")]
    for side, nodes in (("A", found.before), ("B", found.after)):
        lines.append(Text(f"between them in {side}:"))
        lines.extend(Text(f"  {words.clean(node)}") for node in nodes[-MOST_NODES:])
    if found.unlike:
        lines.append(Text("what differs of them:"))
        for each, before, after in found.unlike[:MOST_NODES]:
            said = f"  {words.name(each)}: {words.clean(before)} -> {words.clean(after)}"
            lines.append(Text(said, style="bold"))
    if found.by_place:
        lines.append(Text("paired by the order of operators: names differ", style="yellow"))
    lines.append(Text(f"{words.count(found.tried, 'value')} compared", style="dim"))
    return Group(head, *(Padding(line, (0, 0, 0, 2)) for line in lines))


def recorded(path: Path, found: Verdict) -> Text:
    """Where a run was written, and which."""
    which = "on the first inputs"
    if found.comparisons:
        first = found.comparisons[0]
        at = f"at {words.sizes(first.sizes)}, " if first.sizes else ""
        which = f"{at}seed {first.seed}" if first.seed >= 0 else f"on {words.name(first.drawn)}"
    said = f"Recorded in {words.name(str(path))}: what A gives {which}"
    return Text(f"{said}; `--reference` and `--data` read it")


def headline(found: Verdict) -> Text:
    """The verdict's word and its reason."""
    style = STYLES.get(found.status, "bold")
    return Text.assemble((found.status, style), ": ", words.clean(found.detail))


def _inputs(found: Verdict) -> Table:
    """Which inputs both ran on, and what stood for the original."""
    table = Table.grid(padding=(0, 2))
    grouped: dict[str, list[Comparison]] = {}
    for comparison in found.comparisons:
        grouped.setdefault(comparison.by, []).append(comparison)
    for by, comparisons in grouped.items():
        places = list(dict.fromkeys(words.sizes(c.sizes) for c in comparisons if c.sizes))
        at = f"at {'; '.join(places[:8])}" if places else ""
        if len(places) > 8:
            at += f"; and {len(places) - 8} more"
        seeds = sorted({c.seed for c in comparisons if c.seed >= 0})
        drawn = f"seeds {', '.join(map(str, seeds[:6]))}" if seeds else ""
        files = list(dict.fromkeys(c.drawn for c in comparisons if c.seed < 0 and c.drawn))
        given = f"data {words.listed(files, 3)}" if files else ""
        detail = ", ".join(filter(None, (at, drawn, given)))
        table.add_row(
            Text(words.count(len(comparisons), "input")),
            Text(f"against {words.clean(by)}"),
            Text(detail, style="dim"),
        )
    return table


def _outputs(found: Verdict) -> Table:
    """The largest error of each output over all inputs, beside what is allowed."""
    table = Table.grid(padding=(0, 2))
    by_name: dict[str, list[OutputCheck]] = {}
    for comparison in found.comparisons:
        for output in comparison.outputs:
            by_name.setdefault(output.name, []).append(output)
    shown = list(by_name.items())
    if len(shown) > MOST_OUTPUTS:  # those that differ in front of the others
        shown.sort(key=lambda each: all(check.agrees for check in each[1]))
    for output_name, checks in shown[:MOST_OUTPUTS]:
        faults = [check for check in checks if not check.agrees]
        largest = max(faults or checks, key=lambda c: (c.fault is not None, c.max_relative))
        if largest.fault:
            said = words.clean(largest.fault)
        elif largest.max_absolute == 0:
            said = "no error"
        else:
            beyond = largest.doubted and largest.max_relative > largest.tolerance
            more = ", and rounding alone moves the original's as far" if beyond else ""
            said = (
                f"largest error {largest.max_relative:.2g} of its spread "
                f"(allowed {largest.tolerance:.2g}{more}), {largest.max_absolute:.2g} absolute"
            )
            steps = max(check.ulp for check in checks)
            said += f", {steps:,.0f} ulp" if 0 < steps < MOST_STEPS else ""
        mark, style = ("differs", "red") if faults else ("agrees", "green")
        table.add_row(Text(words.name(output_name)), Text(mark, style=style), Text(said))
    if rest := shown[MOST_OUTPUTS:]:
        differ = sum(not all(check.agrees for check in checks) for _, checks in rest)
        mark = f"{differ:,} differ" if differ else "all agree"
        table.add_row(Text(f"and {len(rest):,} more", "dim"), Text(mark, "dim"), Text())
    return table


def _reservations(found: Verdict) -> Iterator[Text]:
    """What the verdict does not cover, said as loudly as the verdict."""
    for remark in found.remarks:
        yield Text(words.clean(remark), style="yellow")
    for gap in found.not_compared:
        if not found.comparisons and f"not compared: {gap.why}" in found.detail:
            continue  # the verdict's own line says it
        yield Text(f"not compared: {words.clean(gap.what)}: {words.clean(gap.why)}", style="yellow")
    weak: dict[tuple[str, str], int] = {}
    for comparison in found.comparisons:
        for output in comparison.outputs:
            if output.weak:
                key = (output.name, output.weak)
                weak[key] = weak.get(key, 0) + 1
    for (output_name, why), times in list(weak.items())[:MOST_OUTPUTS]:
        yield Text(
            f"weak on {words.count(times, 'input')}: output `{words.name(output_name)}`: "
            f"{words.clean(why)}",
            style="yellow",
        )
    if len(weak) > MOST_OUTPUTS:
        yield Text(f"weak at {len(weak) - MOST_OUTPUTS:,} more outputs", style="yellow")
    if weak:
        yield Text(
            "where it is weak, real inputs (`--data FILE`) or a way to draw them "
            "(`--input NAME=SPEC`) show more",
            style="dim",
        )
    if found.custom_operators and found.status != "broken":
        yield Text(f"onnxruntime lacks: {words.listed(found.custom_operators, 20)}", style="yellow")
