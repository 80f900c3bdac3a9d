"""Why rules did and did not fire, as text: of a whole model, or of the nodes asked for."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from surgeon.render import words
from surgeon.render.report import bullets, every_change, headline, progress, rules, section
from surgeon.spelling import is_foreign

if TYPE_CHECKING:
    from surgeon.explaining import Asked, Explanation, Untried
    from surgeon.report import Change, Missed

MOST_RULES = 6  # the nearest, unless all are asked for
MOST_REASONS = 3  # of one rule
MOST_VALUES = 3  # of one place in reasons that are one but for it
_QUOTED = re.compile(r"'[^']*'")  # names, as reasons quote them


def explanation(found: Explanation, *, everything: bool = False) -> RenderableType:
    """The nearest rules that did not fire and why, or all of them."""
    if found.asked is not None:
        return Group(*(part for each in found.asked for part in _of_node(found, each, everything)))
    report = found.report
    parts: list[RenderableType] = [headline(report)]
    parts.extend(section("Fired", [rules(report) if report.changes else "no rule fired"]))
    parts.extend(section("Left out", [bullets(report.failures)] if report.failures else []))
    parts.extend(section("No rule", [_unknown(found)] if found.unknown else []))
    if report.misses:
        parts.extend(section("Did not fire", _reasons(report.misses, everything=everything)))
    elif not found.unknown:
        nothing = "no rule's last operator occurs in what is left"
        parts.extend(section("Did not fire", [nothing]))
    bare = not (report.changes or report.misses)
    untried = [each for each in found.untried if everything or (bare and each.is_there)]
    if untried:
        parts.extend(section("Tried nowhere", [_untried(each) for each in untried]))
    return Group(*parts)


def explanation_data(found: Explanation) -> dict[str, Any]:
    """What `explanation` says, and all of it, as plain data for JSON."""
    report, asked = found.report, found.asked
    changes, misses = report.changes, report.misses
    gone = dict(report.gone or {})
    if asked is not None:
        changes, misses = _about(found, asked)
        names = {each.name for each in asked}
        gone = {name: what for name, what in gone.items() if name in names}
    return {
        "source": report.source,
        "recipes": list(report.recipes),
        "opset": report.opset,
        "opset_before": report.opset_before,
        "fired": [change._asdict() for change in changes],
        "misses": [each._asdict() for each in misses],
        "inside": [each._asdict() for each in _further(found)],
        "untried": [each._asdict() for each in found.untried],
        "failures": list(report.failures),
        "gone": gone,
        "unknown": {
            name: {"count": count, "recipes": list(recipes)}
            for name, (count, recipes) in found.unknown.items()
        },
    }


def _about(
    found: Explanation, asked: Sequence[Asked]
) -> tuple[tuple[Change, ...], tuple[Missed, ...]]:
    texts = frozenset().union(*(each.texts for each in asked))
    return (
        tuple(change for change in found.report.changes if change.node in texts),
        tuple(each for each in found.report.misses if each.node in texts),
    )


def _further(found: Explanation) -> list[Missed]:
    """The misses further down of every node that was asked for, each once."""
    return list(dict.fromkeys(each for of_one in found.inside.values() for each in of_one))


def _of_node(found: Explanation, asked: Asked, everything: bool) -> list[RenderableType]:
    """One node: what fired there, what became of it, and what was tried."""
    changes, tried = _about(found, [asked])
    gone = (found.report.gone or {}).get(asked.name)
    parts: list[RenderableType] = [Text(words.name(asked.label), style="bold")]
    parts.extend(section("Fired here", [every_change(changes)] if changes else []))
    if changes:
        said = "What it writes is not compared here: `surgeon apply` leaves out what differs."
        parts.append(Text(said, style="dim"))
    if gone and not changes:
        parts.append(Text(f"It {words.clean(gone)}."))
    ranked = sorted(tried, key=_distance)
    shown = ranked if everything else ranked[:MOST_RULES]
    lines: list[RenderableType] = [_tried(each) for each in shown]
    if len(shown) < len(ranked):
        lines.append(_more(len(ranked) - len(shown), "rule"))
    parts.extend(section("Did not fire here", [Group(*lines)] if lines else []))
    later = [each for each in found.untried if asked.operator in each.ends]
    parts.extend(section("Tried nowhere", [_untried(each) for each in later] if later else []))
    if not (changes or tried or gone or later):
        parts.append(Text(_why_nothing(found, asked)))
        parts.extend(_further_down(found.inside.get(asked.label, ()), everything))
    return parts


def _further_down(found: Sequence[Missed], everything: bool) -> Iterator[RenderableType]:
    """The rules that have the node inside, and where they end."""
    shown = found if everything else found[:MOST_RULES]
    lines: list[RenderableType] = []
    for each in shown:
        text = Text(words.name(f"{each.recipe}/{each.rule}"), style="cyan")
        text.append(f"  at {words.name(each.node)}", style="dim")
        lines.append(text.append(f"\n  {progress(each)}{words.clean(each.reason)}", "default"))
    if len(shown) < len(found):
        lines.append(_more(len(found) - len(shown), "rule"))
    title = "Rules with such a node inside end further down, and did not fire there"
    yield from section(title, [Group(*lines)] if lines else [])


def _tried(found: Missed) -> Text:
    text = Text(words.name(f"{found.recipe}/{found.rule}"), style="cyan")
    if place := words.place(found.location):
        text.append(f"  {place}", style="dim")
    return text.append(f"\n  {progress(found)}{words.clean(found.reason)}", style="default")


def _untried(found: Untried) -> Text:
    text = Text(words.name(f"{found.recipe}/{found.rule}"), style="cyan")
    if place := words.place(found.location):
        text.append(f"  {place}", style="dim")
    return text.append(f"\n  {words.clean(found.reason)}", style="default")


def _why_nothing(found: Explanation, asked: Asked) -> str:
    if asked.operator not in found.ends:
        named = words.listed([f"`{name}`" for name in found.report.recipes])
        ends = f"No rule of {named} ends at `{words.name(asked.operator)}`."
        if asked.operator in ("If", "Loop"):
            ends += " It goes where what it asks is proven: tell sizes and inputs with `--shape`, "
            ends += "`--assume` and `--value`."
        known = found.unknown.get(asked.operator)
        return f"{ends} {_advice(known[1])}" if known else ends
    return "Nothing was tried at it: another node has its place now."


def _unknown(found: Explanation) -> Text:
    """Operators that are not ONNX's, and for which the recipes have no rule."""
    named = words.listed([f"`{name}`" for name in found.report.recipes])
    lines = []
    for name, (count, recipes) in found.unknown.items():
        line = Text(words.name(name), style="cyan")
        line.append(f"  {words.count(count, 'node')}: ", style="default")
        line.append(f"no rule of {named} is for it. {_advice(recipes)}", style="default")
        lines.append(line)
    return Text("\n").join(lines)


def _advice(recipes: Sequence[str]) -> str:
    if not recipes:
        return "No bundled recipe has one: write it (`surgeon recipes new NAME`)."
    have = "has one" if len(recipes) == 1 else "have one"
    return f"{words.listed([f'`{name}`' for name in recipes], 4)} {have}."


def _more(number: int, what: str) -> Text:
    return Text(f"and {words.count(number, what)} more: `--all` shows them", style="dim")


def _reasons(found: Sequence[Missed], *, everything: bool) -> list[RenderableType]:
    """The nearest reasons, with their rules and how often, nodes as examples.

    Reasons that differ only in the names they quote are one. What is left of PyTorch's own
    operators has to go, and comes first; then what came furthest.
    """
    groups: dict[tuple[str, ...], list[Missed]] = {}
    for each in found:
        form = _QUOTED.sub("'...'", each.reason)
        key = (f"{each.recipe}/{each.rule}", each.location, progress(each), form)
        groups.setdefault(key, []).append(each)
    ranked = sorted(groups.items(), key=lambda item: (*_rank(item[1]), item[0]))
    rules = list(dict.fromkeys(rule for (rule, *_), _ in ranked))
    nearest = rules if everything else rules[:MOST_RULES]
    table = Table.grid(padding=(0, 2))
    table.add_column(justify="right")
    table.add_column(overflow="fold")
    shown: Counter[str] = Counter()
    for (rule, location, said, _), group in ranked:
        if rule in nearest and (everything or shown[rule] < MOST_REASONS):
            shown[rule] += 1
            table.add_row(Text(f"{len(group):,} x"), _reason(rule, location, said, group))
    parts: list[RenderableType] = [table]
    if left := len(ranked) - shown.total():
        parts.append(_more(left, "reason"))
    return parts


def _reason(rule: str, location: str, said: str, group: Sequence[Missed]) -> Text:
    """Why a rule did not fire at some nodes."""
    text = Text(words.name(rule), style="cyan")
    text.append(f"  {words.place(location)}".rstrip(), style="dim")
    reason = _together([each.reason for each in group])
    text.append(f"\n{said}{words.clean(reason)}", style="default")
    return text.append(f"\nat {words.listed([each.node for each in group], 2)}", style="dim")


def _together(reasons: Sequence[str]) -> str:
    """Reasons that differ in what they quote, as one that names what they do."""
    quoted = map(_QUOTED.findall, reasons)
    values = [list(dict.fromkeys(each)) for each in zip(*quoted, strict=True)]
    places = iter(values)

    def named(_: re.Match[str]) -> str:
        different = next(places)
        rest = len(different) - MOST_VALUES
        more = [f"{rest:,} more"] if rest > 0 else []
        return " or ".join([*different[:MOST_VALUES], *more])

    return _QUOTED.sub(named, reasons[0])


def _rank(group: Sequence[Missed]) -> tuple[bool, int, int, int]:
    foreign = any(is_foreign(each.node.rpartition("(")[2]) for each in group)
    return not foreign, *min(map(_distance, group)), -len(group)


def _distance(found: Missed) -> tuple[int, int]:
    """How many nodes were not found; of attempts that found all, long patterns are nearer."""
    return found.total - found.matched, -found.matched
