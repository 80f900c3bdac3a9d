"""`surgeon recipes which`: the page on which recipe is for which complaint, searched by words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from surgeon.document import suggest
from surgeon.errors import RecipeError
from surgeon.helpful import recipes_about
from surgeon.recipe import come_along
from surgeon.standard import first_opset, known_operators

PAGE = "which.md"
_LINK = re.compile(r"\[([^]]*)\]\([^)]*\)")
_WORD = re.compile(r"[^\W\d]\w+")
_MEANS = 4  # letters: shorter words of a message say nothing of what is refused
_IN_HELP = 2  # the place of rows that only their help brings


class Complaint(NamedTuple):
    """A row of the page.

    Attributes:
        about: What is refused, or wanted.
        recipes: What helps: recipes, options and commands, in words.
    """

    about: str
    recipes: str


def complaints(words: Sequence[str] = ()) -> list[Complaint]:
    """The rows that hold all of the words, in any case; without words every row.

    What a row is about counts more than what helps: it stands in front. A word that is an operator
    of ONNX's has a row of its own, of the recipes with rules about it. Where no row holds all that
    was given, it is read as a message: rows are about the operators in it, or about most words.

    Raises:
        RecipeError: No row holds them.
    """
    rows = _rows()
    if not words:
        return rows
    wanted = [word.casefold() for word in words]
    found = [each for each in rows if all(word in " ".join(each).casefold() for word in wanted)]
    own = _of_operators(words)
    if not found:
        said = [word for text in words for word in _WORD.findall(text) if len(word) >= _MEANS]
        wanted = list(dict.fromkeys(word.casefold() for word in said))
        found, own = _of_message(rows, said), _of_operators(said)
        if not found and not own:
            what = f"no complaint speaks of `{' '.join(words)}`"
            raise RecipeError(what, where="which", mend=_mend(words[0], said, rows))
    found.sort(key=lambda each: _place(each, wanted))
    about = [each for each in found if _place(each, wanted) < _IN_HELP]
    return [*about, *own, *found[len(about) :]]


def _of_operators(words: Sequence[str]) -> list[Complaint]:
    """For each of ONNX's operators the recipes with rules about it, where there are any."""
    about = {word: recipes_about(word) for word in words if first_opset(word)}
    return [
        Complaint(f"{word}: recipes with rules about it", ", ".join(f"`{name}`" for name in names))
        for word, names in about.items()
        if names
    ]


def _of_message(rows: Sequence[Complaint], said: Sequence[str]) -> list[Complaint]:
    """The rows that are about the operators that a message names, else about most of its words."""
    operators = [word.casefold() for word in said if first_opset(word)]
    if operators:
        return [each for each in rows if _place(each, operators) == 0]
    wanted = {word.casefold() for word in said}
    held = [sum(word in each.about.casefold() for word in wanted) for each in rows]
    most = max(held)
    if most * 2 <= len(wanted):
        return []
    return [each for each, number in zip(rows, held, strict=True) if number == most]


def _place(row: Complaint, wanted: Sequence[str]) -> int:
    """Whether a row is about one of the words (0), about one with that in it (1), or about none."""
    about = row.about.casefold()
    if any(re.search(rf"\b{re.escape(word)}\b", about) for word in wanted):
        return 0
    return 1 if any(word in about for word in wanted) else _IN_HELP


def _mend(first: str, said: Sequence[str], rows: Sequence[Complaint]) -> str:
    """What to ask for instead: of an operator that no row is about, or the nearest known word."""
    for word in said:
        if first_opset(word):
            return (
                f"No recipe has rules about {word}. `surgeon inspect MODEL --target NAME` says "
                "where to cut a model in two at what a runtime lacks."
            )
    known = {word for row in rows for word in _WORD.findall(row.about) if len(word) >= _MEANS}
    other = "Ask with fewer words, or `surgeon inspect MODEL` for a file."
    return suggest(first, known.union(known_operators()), other)


def _rows() -> list[Complaint]:
    text = (come_along("docs") / PAGE).read_text(encoding="utf-8")
    cells = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    plain = [[_LINK.sub(r"\1", cell) for cell in row] for row in cells]
    return [Complaint(*row) for row in plain if len(row) == 2 and row[1] != "recipe"]
