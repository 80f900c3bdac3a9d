"""The text of an expression: reads it by Python's grammar, and knows where each part stands."""

from __future__ import annotations

import ast
import re
import warnings
from typing import NoReturn

from surgeon.errors import Location, RecipeError

MEND = "Use literals, names, arithmetic, comparisons and the listed functions, or a builder."


class Source:
    """An expression as it was written, at its place in a recipe."""

    def __init__(self, text: str, location: Location) -> None:
        self._text, self._location = text, location
        flat = _without_comments(text)
        self._source = flat.lstrip(" ")
        self._offset = len(flat) - len(self._source)
        self._bytes = self._source.encode("utf-8", "replace")

    @property
    def plain(self) -> str:
        """The text without comments, white space made plain."""
        return " ".join(self._source.split())

    def refuse(self, what: str, mend: str) -> NoReturn:
        """Refuse the whole expression."""
        self._refuse(0, what, mend)

    def place_of(self, node: ast.expr) -> Location:
        """Where a name or a text stands."""
        return self._place(self._index(node.col_offset))

    def parse(self) -> ast.expr:
        """The tree.

        Raises:
            RecipeError: It is no expression.
        """
        if not self._source:
            self._refuse(0, "the expression is empty", "Write one, or take the entry out.")
        if "\\" in self._source:
            self._refuse(self._source.index("\\"), "a backslash cannot be used here", MEND)
        try:
            with warnings.catch_warnings(action="ignore"):  # `1if x` is odd and no more
                return ast.parse(self._source, mode="eval").body
        except SyntaxError as error:
            end = len(self._source.rstrip())
            index = min(error.offset - 1, end) if error.offset else end
            single = re.search(r"(?<![=!<>:])=(?!=)", self._source)
            mend = "Compare with `==`." if single and "(" not in self._source else MEND
            self._refuse(index, f"it is no expression: {error.msg}", mend)
        except (MemoryError, RecursionError):
            self._refuse(0, "the expression is nested too deeply", "Split it by `let`.")
        except ValueError as error:  # a NUL character
            self._refuse(0, f"it is no expression: {error}", MEND)

    def _refuse(self, index: int, what: str, mend: str) -> NoReturn:
        raise RecipeError(what, where=self._place(index), mend=mend)

    def _place(self, index: int) -> Location:
        before = self._text[: index + self._offset]
        line = before.count("\n") + 1
        return self._location.shifted(line, len(before) - (before.rfind("\n") + 1) + 1)

    def _index(self, column: int) -> int:
        return len(self._bytes[:column].decode("utf-8", "replace"))

    def refuse_at(self, node: ast.AST, what: str, mend: str = MEND) -> NoReturn:
        """Refuse one part."""
        self._refuse(self._index(getattr(node, "col_offset", 0)), what, mend)

    def refuse_use(self, node: ast.expr, word: str | None = None) -> NoReturn:
        """Refuse one part as what no expression may hold."""
        named = word or f"`{self.segment(node)}`"
        self.refuse_at(node, f"{named} cannot be used in an expression")

    def segment(self, node: ast.expr) -> str:
        """The node's own text."""
        part = self._bytes[node.col_offset : node.end_col_offset]
        return " ".join(part.decode("utf-8", "replace").split())


def _without_comments(text: str) -> str:
    """The text on one line, every character in its place, comments as spaces."""
    parts = re.compile(r"'[^'\n]*'|\"[^\"\n]*\"|#[^\n]*")
    blanked = parts.sub(lambda m: " " * len(m[0]) if m[0][0] == "#" else m[0], text)
    return re.sub(r"[\n\r\t\f]", " ", blanked)
