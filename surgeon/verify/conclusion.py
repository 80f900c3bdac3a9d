"""The verdict on what was compared: what agrees, what was never soundly compared, what differs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from surgeon.spelling import lacked
from surgeon.verify.compare import worst
from surgeon.verify.summary import agreement
from surgeon.verify.verdict import Comparison, NotCompared, OutputCheck, Verdict

DATA = "data"  # what was not compared begins so where it is the user's own

Digests = Mapping[str, Mapping[tuple[Any, ...], Sequence[bytes]]]


def conclude(
    names: Sequence[str],
    comparisons: Sequence[Comparison],
    not_compared: Sequence[NotCompared],
    digests: Digests,
    fault: str | None,
    lacking: tuple[str, ...],
    *,
    way: str = "",
) -> Verdict:
    """The verdict.

    Args:
        names: The outputs.
        comparisons: Every input on which both ran.
        not_compared: What could not be compared.
        digests: By output and sizes, short names of the reference's arrays, one a seed.
        fault: Why the result is broken; None where it is not.
        lacking: The result's custom operators.
        way: How they were computed, in words; "" where they were not.
    """
    weak = {name: reason for name in names if (reason := _unmoved(digests.get(name, {})))}
    marked = tuple(
        replace(
            each,
            outputs=tuple(replace(o, weak=o.weak or weak.get(o.name)) for o in each.outputs),
        )
        for each in comparisons
    )
    skipped = [*not_compared, *_never(names, marked, not_compared)]
    made = partial(
        Verdict,
        comparisons=marked,
        not_compared=tuple(skipped),
        custom_operators=lacking,
    )
    if fault:
        return made("broken", fault)
    bad = [(c, o) for c in marked for o in c.outputs if not o.agrees]
    if bad:
        chosen = worst([o for _, o in bad])
        where = next(c for c, o in bad if replace(o, weak=None) == replace(chosen, weak=None))
        place = where.describe()
        return made("differs", f"{chosen}, {f'at {place}, ' if place else ''}by {where.by}")
    if lacking:
        how = f"{way}, " if way and marked else ""
        return made("runs", f"onnxruntime has no {lacked(lacking)}; {how}{agreement(marked)}")
    if not marked:
        why = skipped[0].why if skipped else "the model has no outputs"
        return made("runs", f"it loads, and was not compared: {why}")
    own = next((each for each in skipped if each.what.startswith(DATA)), None)
    if own is not None:
        return made("runs", f"{own.what}, which was given, was not compared: {own.why}")
    sound = {o.name for c in marked for o in c.outputs if not o.doubted}
    for name in names:
        if name not in sound:
            why = next(s.why for s in skipped if s.what == f"output `{name}`")
            return made("runs", f"output `{name}` was not compared: {why}; {agreement(marked)}")
    return made("equivalent", agreement(marked))


def _never(
    names: Sequence[str], comparisons: Sequence[Comparison], not_compared: Sequence[NotCompared]
) -> list[NotCompared]:
    """Outputs that no comparison speaks of, or none that could have failed."""
    if not comparisons:
        return []
    told = {each.what for each in not_compared}
    by_name: dict[str, list[OutputCheck]] = {}
    for output in (output for each in comparisons for output in each.outputs):
        by_name.setdefault(output.name, []).append(output)
    found = []
    for name in names:
        checks = by_name.get(name, [])
        if f"output `{name}`" not in told and all(check.doubted for check in checks):
            why = checks[0].weak if checks and checks[0].weak else "the reference does not hold it"
            found.append(NotCompared(f"output `{name}`", why))
    return found


def _unmoved(found: Mapping[tuple[Any, ...], Sequence[bytes]]) -> str | None:
    """Why agreement of an output says little: no input moved it."""
    every = [digest for digests in found.values() for digest in digests]
    if len(every) > 1 and len(set(every)) == 1:
        return "no input moves it"
    repeated = any(len(digests) > 1 for digests in found.values())
    if repeated and all(len(set(digests)) == 1 for digests in found.values()):
        return "only the inputs' sizes move it"
    return None
