"""Recipes as text, written to be read or refused."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from surgeon.errors import RecipeError
from surgeon.recipe import Recipe

HEAD = "surgeon: 1\nname: test\n"


def rule(**parts: str) -> str:
    """A recipe of one rule, its parts from line 7 on, a key each; texts in block form."""
    given_parts = {"match": "y = Relu (x)", "replace": "y = Abs (x)", **parts}
    lines = [f"{HEAD}rules:", "  - id: a", "    why: w", "    exact: bit"]
    for key, text in given_parts.items():
        block = "\n" in text and not text.startswith("\n")
        lines.append(f"    {key}:{' |' if block else ''}")
        lines[-1] += "\n" + textwrap.indent(text, " " * 6) if block else f" {text}"
    return "\n".join(lines) + "\n"


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / f"{name}.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def a_recipe(name: str, *rules: tuple[str, str, str]) -> str:
    """A recipe of rules given as id, match and replacement."""
    items = [
        f"  - {{id: {i}, why: w, exact: bit, match: {m}, replace: {r}}}\n" for i, m, r in rules
    ]
    return f"surgeon: 1\nname: {name}\nrules:\n{''.join(items)}"


def error_of(text: str) -> str:
    with pytest.raises(RecipeError) as caught:
        Recipe.parse(text, file="r.yaml")
    return str(caught.value)


FUSE = ("fuse", "'h = Relu (a); b = Abs (h)'", "b = Elu <alpha = 2.0> (a)")
SPLIT = ("split", "y = Elu <alpha = 2.0> (x)", "'r = Relu (x); y = Abs (r)'")
