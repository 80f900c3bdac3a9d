"""What a log says for an audit: of which file, how it was compared, what was allowed."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from surgeon.model import Model
from surgeon.provenance import KEY
from surgeon.report import Report
from surgeon.sealing import sha256_of

if TYPE_CHECKING:
    from surgeon.verify import Verdict

Paths: TypeAlias = str | Path | Sequence[str | Path]
NOT_COMPARED = "not compared: it was asked not to be"
_LONGEST = 300  # characters of a sentence


class Asked(NamedTuple):
    """What a run was asked for, beside shapes and assumptions.

    Attributes:
        source: The file that was read; None of a model in memory.
        recipes: How many of the run's recipes were named; the others stand for options.
        options: The target and the opset, where they were asked for.
        allow: What was allowed beside what the recipes allow.
        data: Files and folders of real inputs.
        reference: What stood for the original, where that was said.
        date: When, in UTC; None where equal runs have to give equal bytes.
    """

    source: Path | None
    recipes: int
    options: dict[str, str | int]
    allow: Sequence[str]
    data: Paths
    reference: Paths | None
    date: str | None


def record(model: Model, report: Report, asked: Asked) -> None:
    """Complete the last run of a model's log, where this run wrote one.

    Without a date the verdict is told without the errors: their last digits may be other ones.

    Args:
        model: The result.
        report: What was done and found.
        asked: What for.
    """
    if KEY not in model.stamps:
        return
    runs = json.loads(model.stamps[KEY])
    last: dict[str, Any] = runs[-1]
    begin = {"surgeon": last.pop("surgeon")} | ({} if asked.date is None else {"date": asked.date})
    last.pop("date", None)
    recipes, rules = last.pop("recipes")[: asked.recipes], last.pop("rules")
    told: dict[str, Any] = {
        "options": asked.options,
        "allowed": sorted(set(asked.allow)),
        "rules": rules,
        "left out": _left_out(report),
        **last,
        "contracts": list(report.contracts),
        "verdict": verdict_said(report.verdict, asked.date),
        **compared_with(asked.data, asked.reference),
    }
    kept = {key: value for key, value in told.items() if value or key == "rules"}
    runs[-1] = {**begin, **source_said(asked.source), "recipes": recipes, **kept}
    model.stamps[KEY] = json.dumps(runs, ensure_ascii=False)


def source_said(path: Path | None) -> dict[str, Any]:
    """What tells the file that was read from others; nothing of a model in memory."""
    return {} if path is None else {"source": {"sha256": sha256_of(path)}}


def verdict_said(verdict: Verdict | None, date: str | None) -> str:
    """The verdict in a line; without a date without its errors."""
    if verdict is None:
        return NOT_COMPARED
    if date is not None:
        return f"{verdict.status}: {verdict.detail}"[:_LONGEST]
    count = len(verdict.comparisons)
    return f"{verdict.status}: compared at {count} input{'s' * (count != 1)}"


def compared_with(data: Paths, reference: Paths | None) -> dict[str, Any]:
    """Names of files and folders, without where they are, and of what stood for the original."""
    told = {"data": _names(data), "reference": _names(reference or ())}
    return {key: names for key, names in told.items() if names}


def _left_out(report: Report) -> dict[str, Any]:
    """Rewrites by rule, and steps."""
    rewrites = Counter(f"{each.recipe}/{each.rule}" for each in report.refusals)
    steps = [failure[:_LONGEST] for failure in report.failures]
    found = {"rewrites": dict(sorted(rewrites.items())), "steps": steps}
    return {key: value for key, value in found.items() if value}


def _names(paths: Paths) -> list[str]:
    listed = [paths] if isinstance(paths, (str, Path)) else paths
    return [Path(path).name for path in listed]
