"""Writes `written.json`: what the rules that spell out operators write, by their cases.

Run: python -m surgeon.fitting.make
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import onnx

from surgeon.document import read
from surgeon.fitting import SPELLING, TABLE
from surgeon.notation import Pattern
from surgeon.recipe import Recipe, Rule, bundled

_NOWHERE = {"Identity", "Constant"}


def written() -> str:
    """The text of the file: by rule and operator, the sets of operators that take its place."""
    table: dict[str, dict[str, list[list[str]]]] = {}
    seen: dict[str, Rule] = {}
    for name in SPELLING:
        for rule in Recipe.load(bundled()[name]).rules:
            if not rule.match.root.domain and not rule.only_refuses:
                seen.setdefault(f"{rule.recipe}/{rule.id}", rule)
    for recipe in sorted({rule.recipe for rule in seen.values()}):
        told = _told(bundled()[recipe].with_name(f"{recipe}.cases.yaml"))
        for key, rule in seen.items():
            if rule.recipe == recipe and (forms := _forms(rule, told.get(rule.id, []))):
                table[key] = forms
    return json.dumps(table, indent=1, sort_keys=True) + "\n"


def _told(path: Path) -> dict[str, list[tuple[Counter[str], Counter[str]]]]:
    """By rule, what is in each case where it fires alone, before and after."""
    found: dict[str, list[tuple[Counter[str], Counter[str]]]] = {}
    for case in read(path).plain()["cases"]:
        fires: Any = case.get("fires")
        rules = list(fires) if isinstance(fires, dict) else [fires]
        if "after" in case and len(rules) == 1 and isinstance(rules[0], str):
            pair = _operators(case["before"]), _operators(case["after"])
            found.setdefault(rules[0], []).append(pair)
    return found


def _operators(text: str) -> Counter[str]:
    """How many nodes of each operator a text holds."""
    counted: Counter[str] = Counter()
    graphs = [onnx.parser.parse_model(text).graph]
    while graphs:
        for node in graphs.pop().node:
            counted[f"{node.domain}.{node.op_type}" if node.domain else node.op_type] += 1
            graphs.extend(a.g for a in node.attribute if a.HasField("g"))
    return counted


def _forms(rule: Rule, told: list[tuple[Counter[str], Counter[str]]]) -> dict[str, list[list[str]]]:
    """What takes the place of each operator that a rule begins at."""
    found: dict[str, set[tuple[str, ...]]] = {}
    if isinstance(rule.replace, Pattern):
        made = {
            f"{node.domain}.{operator}" if node.domain else operator
            for node in rule.replace.nodes
            for operator in node.operators
        }
        for operator in rule.match.root.operators:
            found[operator] = {tuple(sorted(made - _NOWHERE))}
    else:
        for before, after in told:
            gone, made = before - after, set(after - before) - _NOWHERE
            for operator in set(rule.match.root.operators) & gone.keys():
                found.setdefault(operator, set()).add(tuple(sorted(made)))
        roots = set(rule.match.root.operators)
        forms = {form for forms in found.values() for form in forms if roots.isdisjoint(form)}
        for operator in roots - found.keys():  # no case of its own: written as the others are
            found[operator] = set(forms)
    return {
        operator: sorted(list(form) for form in forms if operator not in form)
        for operator, forms in sorted(found.items())
        if any(operator not in form for form in forms)
    }


if __name__ == "__main__":
    TABLE.write_text(written(), encoding="utf-8", newline="\n")
