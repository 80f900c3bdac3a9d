"""Recipes, and the state of the installation, as text."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from surgeon.recipe.rules import (
    AsReadStep,
    FreeBatchStep,
    FreeSizesStep,
    HeaderStep,
    IrVersionStep,
    LowerOpsetStep,
    NamesStep,
    PlainAttributesStep,
    PlainMetadataStep,
    Rule,
    RulesStep,
    ShareWeightsStep,
    StateShapesStep,
)
from surgeon.render import words

if TYPE_CHECKING:
    from surgeon.cases import Outcomes
    from surgeon.complaints import Complaint
    from surgeon.doctor import Examination
    from surgeon.language import Word
    from surgeon.recipe import Recipe

_FILES = 5  # that one line names
SEVERITIES = {"broken": "bold red", "limited": "yellow", "absent": "dim"}


def recipes(found: Sequence[Recipe]) -> RenderableType:
    """Names, how many rules or steps, what they are for."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="cyan")
    table.add_column(justify="right", style="dim")
    table.add_column(overflow="fold")
    for recipe in found:
        table.add_row(words.name(recipe.name), _contents(recipe), words.plain(recipe.about))
    return table


def _contents(found: Recipe) -> str:
    """How many rules; of a recipe that does its work without any, how many steps."""
    others = [step for step in found.steps if not isinstance(step, RulesStep)]
    if found.rules or not (others or found.extensions or found.changes):
        return words.count(len(found.rules), "rule")
    return words.count(len(others) + len(found.extensions) + len(found.changes), "step")


def recipe(found: Recipe) -> RenderableType:
    """A recipe: what it is for, what it allows, and every rule with its reason."""
    parts: list[RenderableType] = [
        Text.assemble((words.name(found.name), "bold"), f"  {words.clean(found.source)}"),
        words.plain(found.about),
    ]
    if found.allow:
        parts.append(Text(f"allows {words.listed(sorted(found.allow))}", style="yellow"))
    if found.custom:
        parts.append(Text(f"custom operators: {words.listed(sorted(found.custom), 20)}"))
    if found.changes:
        parts.append(Text("\nChanges, before any step", style="bold"))
        parts.append(_rules(found.changes))
    for extension in found.extensions:
        parts.append(Text(f"\n{extension.place.replace('-', ' ').capitalize()}", style="bold"))
        lines = map(words.clean, extension.shown.splitlines())
        parts.append(Padding(Text("\n".join(lines)), (0, 0, 0, 2)))
    for index, step in enumerate(found.steps, 1):
        rules = getattr(step, "rules", None)
        said = _step(step) if rules is None else words.count(len(rules), "rule")
        if kept := getattr(step, "keep", ()):
            said += f", keeping {words.listed(kept, 20)}"
        parts.append(Text(f"\nStep {index}: {said}", style="bold"))
        if rules is not None:
            parts.append(_rules(rules))
    return Group(*parts)


def _rules(rules: Sequence[Rule]) -> RenderableType:
    table = Table.grid(padding=(0, 2))
    for rule in rules:
        text = Text(words.name(rule.id), style="cyan")
        place = rule.location._replace(file=Path(rule.location.file).name)
        text.append(f"  {rule.exact}  {words.clean(place)}", style="dim")
        text.append(f"\n{words.clean(rule.why)}", style="default")
        if rule.contract:
            text.append(f"\ncontract: {words.clean(rule.contract)}", style="yellow")
        table.add_row(text)
    return Padding(table, (0, 0, 0, 2))


_AT_ENDS = {
    "types": "leave casts of inputs to the caller",
    "output-types": "leave casts of outputs to the caller",
    "halves": "give and take halves as float32",
    "order": "leave Transposes of inputs and outputs to the caller",
    "unread": "leave out inputs that nothing reads",
    "defaults": "make constants of inputs that have a value in the file",
}


def _step(step: object) -> str:
    if isinstance(step, FreeBatchStep):
        return f"make the batch dynamic, as `{step.dim}`"
    if isinstance(step, FreeSizesStep):
        return f"make sizes dynamic, as {', '.join(f'`{name}`' for name in step.names)}"
    if isinstance(step, AsReadStep):
        return _AT_ENDS[step.what]
    if isinstance(step, NamesStep) and step.names:
        return "call " + ", ".join(f"`{old}` `{new}`" for old, new in step.names)
    if isinstance(step, NamesStep):
        return "call values, nodes and sizes by identifiers"
    if isinstance(step, ShareWeightsStep):
        return "keep one of weights that stand in the file twice"
    if isinstance(step, PlainAttributesStep):
        return "leave out attributes that say what their operator did before"
    if isinstance(step, PlainMetadataStep):
        more = ", but for the model's own" if step.inside else ""
        return f"leave out doc strings and metadata{more}"
    if isinstance(step, HeaderStep):
        told = [name for name, _ in (*step.metadata, *step.fields)]
        return f"state of the file {words.listed(told)}"
    if isinstance(step, IrVersionStep):
        return f"write the file in IR version {step.version}"
    if isinstance(step, StateShapesStep):
        more = "" if step.formulas else ", sizes that have names alone"
        return f"state what is proven of types and shapes{more}"
    if (opset := getattr(step, "opset", None)) is not None:
        way = "lower" if isinstance(step, LowerOpsetStep) else "raise"
        return f"{way} the opset to {opset}"
    if (tool := getattr(step, "tool", None)) is not None:
        return f"simplify with {words.name(tool)}"
    if (turns := getattr(step, "turns", None)) is not None:
        return f"write out up to {turns} turns of Loops and Scans"
    return "fold constants"


def words_of(found: Sequence[Word]) -> RenderableType:
    """What the language has: each with its meaning and an example."""
    parts = []
    for word in found:
        text = Text(words.clean(word.name), style="cyan")
        text.append(f"\n  {words.clean(word.about)}", style="default")
        if word.example is not None:
            gives = f" gives {word.gives}" if word.gives is not None else ""
            text.append(f"\n  as in {word.example}{gives}", style="dim")
        parts.append(text)
    return Group(*parts)


def complaints(found: Sequence[Complaint]) -> RenderableType:
    """What is refused or wanted, each with what helps under it."""
    parts: list[RenderableType] = []
    for each in found:
        parts.append(Text(words.clean(each.about)))
        parts.append(Padding(Text(words.clean(each.recipes), style="cyan"), (0, 0, 0, 4)))
    return Group(*parts)


def examination(found: Examination) -> RenderableType:
    """What surgeon stands on, and what is wrong with it."""
    table = Table.grid(padding=(0, 2))
    for part in found.parts:
        version = Text(part.version or "-", style="" if part.version else "dim")
        need = f"for {part.feature}" if part.feature else f"needs {part.needed}".rstrip()
        need = "" if need == "needs" else need
        table.add_row(Text(words.name(part.name)), version, Text(words.clean(need), style="dim"))
    parts: list[RenderableType] = [table]
    for finding in found.findings:
        severity = finding.severity.value
        text = Text.assemble((f"\n{severity}", SEVERITIES[severity]), f": {finding.what}")
        text.append(f"\n  {finding.mend}")
        parts.append(text)
    said = "surgeon can be expected to work" if found.sound else "surgeon cannot work like this"
    parts.append(Text(f"\n{said}", style="bold green" if found.sound else "bold red"))
    return Group(*parts)


def outcomes(found: Outcomes, *, verbose: bool = False) -> RenderableType:
    """Cases: those that fail with what is wrong, and how many hold of each recipe."""
    parts: list[RenderableType] = []
    for each in found if verbose else found.failed:
        text = Text.assemble(("holds", "green") if each.ok else ("fails", "bold red"))
        text.append(f"  {words.name(each.recipe)}: {words.clean(each.case)}")
        if verbose:
            text.append(f"  {words.seconds(each.seconds)}", style="dim")
        text.append(f"\n       {words.clean(each.location)}", style="dim")
        for problem in each.problems:
            for line in problem.splitlines():
                text.append(f"\n       {words.clean(line)}")
        parts.append(text)
    table = Table.grid(padding=(0, 2))
    counts: dict[str, list[bool]] = {}
    for each in found:
        counts.setdefault(each.recipe, []).append(each.ok)
    for name, results in counts.items():
        table.add_row(Text(words.name(name), style="cyan"), _tally(results))
    if found.passed:
        parts.append(Text(f"passed over, as no recipe: {_files(found.passed)}", style="dim"))
    if not counts:
        return Group(*parts, Text(str(found), style="bold red"))
    return Group(*parts, table, _tally([each.ok for each in found]))


def _files(paths: Sequence[Path]) -> str:
    """The first files of a list, and how many there are more."""
    named = ", ".join(words.clean(path) for path in paths[:_FILES])
    return f"{named} and {len(paths) - _FILES:,} more" if len(paths) > _FILES else named


def _tally(results: Sequence[bool]) -> Text:
    bad = results.count(False)
    good = len(results) - bad
    text = Text(f"{good:,} {'case holds' if good == 1 else 'cases hold'}", style="green")
    if bad:
        text.append(f", {bad:,} {'fails' if bad == 1 else 'fail'}", style="bold red")
    return text
