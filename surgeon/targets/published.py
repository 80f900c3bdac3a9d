"""Limits that projects publish beside their lists of operators, where a model shows them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

from surgeon.document import Value, parse
from surgeon.meanings import full_name
from surgeon.recipe import Rule

_FILE = Path(__file__).with_name("limits.yaml")
_UP_TO = ".."


def published(
    name: str, names: Sequence[str], operators: frozenset[str]
) -> tuple[tuple[Rule, ...], str]:
    """The limits of a list of the table, as rules that write nothing, and as they are written.

    Args:
        name: The list.
        names: All lists; those of one project behind one another, the oldest first.
        operators: What the list has; limits of others are left out.
    """
    from surgeon.recipe.reading import read_limit  # brings pydantic

    rules: list[Rule] = []
    texts: list[object] = []
    for value in _written_for(name, names):
        match = value.find("match")
        assert match is not None, "a limit has a pattern"
        rule = read_limit(value, name, None)
        root = rule.match.root
        if {full_name(root.domain, operator) for operator in root.operators} & operators:
            rules.append(rule)
            texts.append(value.plain())
    return tuple(rules), json.dumps(texts) if texts else ""


def _written_for(name: str, names: Sequence[str]) -> Iterator[Value]:
    for entry in _entries():
        said, limits = entry.find("targets"), entry.find("limits")
        assert said is not None, "an entry has `targets`"
        assert limits is not None, "and `limits`"
        if name in _meant(str(said.content), names):
            yield from _items(limits)


def _meant(said: str, names: Sequence[str]) -> list[str]:
    """The lists that `tensorrt-8.0..`, `tensorrt-7.0..8.5` or `nnapi` means."""
    first, until, last = said.partition(_UP_TO)
    if not until:
        return [first]
    project, _, _ = first.rpartition("-")
    begin = names.index(first)
    same = [each for each in names[begin:] if each.rpartition("-")[0] == project]
    return same[: same.index(f"{project}-{last}") + 1] if last else same


@cache
def _entries() -> tuple[Value, ...]:
    text = _FILE.read_text(encoding="utf-8")
    return _items(parse(text, file=f"surgeon/targets/{_FILE.name}"))


def _items(value: Value) -> tuple[Value, ...]:
    assert isinstance(value.content, tuple), "it is a list"
    return value.content
