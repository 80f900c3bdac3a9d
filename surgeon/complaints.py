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

    A word that is an operator of ONNX's has a row of its own, of the recipes with rules about it.

    Raises:
        RecipeError: No row holds them.
    """
    wanted = [word.casefold() for word in words]
    found = [each for each in _rows() if all(word in " ".join(each).casefold() for word in wanted)]
    for word in words:
        about = recipes_about(word) if first_opset(word) else ()
        if about:
            names = ", ".join(f"`{name}`" for name in about)
            found.append(Complaint(f"{word}: recipes with rules about it", names))
    if words and not found:
        other = "Ask with fewer words, or `surgeon inspect MODEL` for a file."
        mend = suggest(words[0], known_operators(), other)
        raise RecipeError(f"no complaint speaks of `{' '.join(words)}`", where="which", mend=mend)
    return found


def _rows() -> list[Complaint]:
    text = (come_along("docs") / PAGE).read_text(encoding="utf-8")
    cells = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    plain = [[_LINK.sub(r"\1", cell) for cell in row] for row in cells]
    return [Complaint(*row) for row in plain if len(row) == 2 and row[1] != "recipe"]
