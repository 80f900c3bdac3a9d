"""What a saved model says of its making: one entry for each run of surgeon, oldest first.

The entries are a JSON list under `surgeon.log` in the model's metadata_props, where any viewer
shows them. Nodes that a rule made say so themselves (`surgeon.rule`, `surgeon.from`) from IR 10 on,
the first with metadata on nodes; below it the entry names them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

OWN = "surgeon."  # how the keys begin by which it is noted in a file what was done
KEY = "surgeon.log"
WEIGHTLESS = "surgeon.weights"  # says of a part that its weights were left out
UNREAD = "surgeon.log.unread"  # where a log goes that is none of ours
_LARGEST = 1 << 24  # characters of a log that is read
_LONGEST = 200  # characters of a name


@cache
def version() -> str:
    """surgeon's version, or `unknown` where it runs without being installed."""
    from importlib import metadata

    try:
        return metadata.version("onnx-recipe-surgeon")
    except metadata.PackageNotFoundError:
        return "unknown"


def begun(date: str | None) -> dict[str, Any]:
    """How the entry of any run begins.

    Args:
        date: When, in UTC; None where equal runs have to give equal bytes.
    """
    return {"surgeon": version()} | ({} if date is None else {"date": date})


def entry(
    recipes: Sequence[tuple[str, str]],
    rules: Mapping[str, int],
    assumptions: Sequence[str],
    nodes: Mapping[str, Iterable[str]] | None,
    date: str | None,
) -> dict[str, Any]:
    """What one run did, as plain data.

    Args:
        recipes: Names, and the SHA-256 of what was read.
        rules: How often each fired, by `recipe/rule`.
        assumptions: What the user added of shapes and sizes, as given.
        nodes: Which nodes each rule replaced, where nodes cannot say it themselves.
        date: When, in UTC; None where equal runs have to give equal bytes.
    """
    made = begun(date)
    made["recipes"] = [{"name": name, "sha256": digest} for name, digest in recipes]
    made["rules"] = dict(sorted(rules.items()))
    if assumptions:
        made["assumptions"] = list(assumptions)
    if nodes:
        made["replaced"] = {
            rule: [name[:_LONGEST] for name in names] for rule, names in sorted(nodes.items())
        }
    return made


def stamps(properties: Any, added: Mapping[str, Any]) -> dict[str, str]:
    """The metadata_props that say what a model's already do, and one run more.

    Args:
        properties: The metadata_props of the model that was read.
        added: As `entry` gives it.
    """
    earlier = history(properties)
    told = {KEY: json.dumps([*(earlier or []), added], ensure_ascii=False)}
    if earlier is None:
        told[UNREAD] = next(each.value for each in properties if each.key == KEY)
    return told


def history(properties: Any) -> list[dict[str, Any]] | None:
    """The runs that made a model, oldest first; None where its log cannot be read."""
    text = next((each.value for each in properties if each.key == KEY), None)
    return [] if text is None else read(text)


def read(text: str) -> list[dict[str, Any]] | None:
    """The runs in the text of a log, oldest first; None where it cannot be read."""
    try:
        found = json.loads(text) if len(text) <= _LARGEST else None
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        return None
    return found


def recipes_of(properties: Any) -> tuple[str, ...]:
    """The names of the recipes that made a model, as its log has them."""
    return named_in(history(properties) or ())


def last_target(properties: Any) -> str | None:
    """The target that the last run was given, as its log has it."""
    options = ((history(properties) or [{}])[-1]).get("options")
    target = options.get("target") if isinstance(options, dict) else None
    return target if isinstance(target, str) else None


def named_in(runs: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """The names of the recipes of some runs."""
    told = (run.get("recipes") for run in runs)
    listed = (each for recipes in told if isinstance(recipes, list) for each in recipes)
    names = (each["name"] for each in listed if isinstance(each, dict) and "name" in each)
    return tuple(dict.fromkeys(map(str, names)))
