"""Words for the reader: text of strangers made harmless, numbers in units that a person reads."""

from __future__ import annotations

import math
import os
import unicodedata
from collections.abc import Mapping, Sequence
from functools import cache

from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text

NAME = 120  # characters of a name before its middle is left out
SENTENCE = 2000  # of a message, which may quote another program's
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def clean(text: object, limit: int = SENTENCE) -> str:
    """Text that may be printed: one line, without escape codes, hidden characters or endless names.

    Names, doc strings and messages come from models and recipes of strangers: a name may hold a
    terminal's escape codes, line ends, or characters that turn the reading direction.
    """
    words = str(text)
    if len(words) > limit:
        half = max(1, (limit - 5) // 2)
        words = f"{words[:half]} ... {words[-half:]}"
    return "".join(map(_visible, words))


def name(text: object) -> str:
    """A name, shortened in its middle when it is very long."""
    return clean(text, NAME)


def _visible(character: str) -> str:
    if " " <= character <= "~" or unicodedata.category(character) not in _HIDDEN:
        return character
    return character.encode("unicode_escape", "backslashreplace").decode("ascii")


def place(location: object) -> str:
    """File, line and column; nothing for what comes with surgeon, which its name says better."""
    text = str(location)
    return "" if text.startswith(_bundled()) else clean(text)


@cache
def _bundled() -> tuple[str, ...]:
    """How the places in bundled recipes begin."""
    from surgeon.recipe import bundled

    return tuple({f"{path.parent}{os.sep}" for path in bundled().values()})


def count(number: int, noun: str, plural: str | None = None) -> str:
    """`1 node`, `2 nodes`, `1,234 nodes`."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def listed(words: Sequence[object], most: int = 8) -> str:
    """`a, b and c`; of a long list the first few and how many more."""
    names = [name(word) for word in words[:most]]
    if len(words) > most:
        return f"{', '.join(names)} and {len(words) - most:,} more"
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def size(count_of_bytes: int) -> str:
    """Bytes in a unit that leaves a readable number."""
    if count_of_bytes < 1024:
        return count(count_of_bytes, "byte")
    power = min(3, int(math.log(count_of_bytes, 1024)))
    number = count_of_bytes / 1024**power
    unit = ("bytes", "KiB", "MiB", "GiB")[power]
    return f"{number:.3g} {unit}" if number < 999.5 else f"{number:,.0f} {unit}"


def seconds(duration: float) -> str:
    """`0.04 s`, `1.3 s`, `75 s`."""
    return f"{duration:.0f} s" if duration >= 10 else f"{duration:.2g} s"


def sizes(dims: Mapping[str, int]) -> str:
    """`batch=2 time=40`."""
    return " ".join(f"{name(dim)}={number}" for dim, number in dims.items())


def shape(dims: Sequence[int | str | None] | None) -> str:
    """`[batch, 1, 32, ?]`; `of unknown rank` where nothing is declared."""
    if dims is None:
        return "of unknown rank"
    return f"[{', '.join('?' if dim is None else name(dim) for dim in dims)}]"


def plain(text: object, style: str = "") -> Text:
    """Text for rich, without markup: what looks like a tag is text too."""
    return Text(clean(text), style=style)


def command(text: str, style: str = "", *, begin: str = "") -> Text:
    """A line with a command to be copied: the terminal alone breaks it, which copies as one.

    Args:
        text: The line, clean.
        style: Of the whole line.
        begin: What stands in front of it: blanks, for a line that stands further in.
    """
    return Text(f"{begin}{text}", style=style, no_wrap=True, overflow="ignore")


def indented(part: RenderableType, by: int = 2) -> RenderableType:
    """A part further in; a command keeps its one line, which padding would cut to the width."""
    if isinstance(part, Text) and part.no_wrap:
        return command(part.plain, str(part.style), begin=" " * by)
    return Padding(part, (0, 0, 0, by))
