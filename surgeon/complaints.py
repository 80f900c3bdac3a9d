"""`surgeon recipes which`: the page on which recipe is for which complaint, searched by words."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from functools import cache
from math import log
from typing import NamedTuple

from surgeon.document import suggest
from surgeon.errors import RecipeError
from surgeon.helpful import recipes_about, roots
from surgeon.recipe import come_along
from surgeon.standard import first_opset, known_operators

PAGE = "which.md"
_LINK = re.compile(r"\[([^]]*)\]\([^)]*\)")
_WORD = re.compile(r"[^\W\d]\w+")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]*")
_CALLED = re.compile(  # in front of what is named, and behind it
    r"(?:::|[=_('`\"]|(?i:ops?|operators?|op_?types?|layers?)\s?:)\s?$"
)
_REFUSED = re.compile(r"(?i:unsupported|unknown|operator|layer|op)\s$")  # in front of no word
_CALLS = re.compile(r"\s?\(\d+\)|[_'`\"]")
_LACKED = re.compile(  # behind an operator that is the subject of a sentence
    r"(?i)\s(?:(?:op|operator|layer|node)s?\s)?(?:(?:is|are|does|do)\s)?(?:not |un)support"
)
_FALLBACK = ("aten.", "prim.", "torchvision.", "caffe2.")  # names as functions have, and words
_NEAR = 20  # characters in front of a name in which what calls it stands
_QUOTED = re.compile(r"\"([^\"]+)\"")
_MEANS = 4  # letters: shorter names in small letters are words of something else
_LEAST, _NEARLY, _MOST = 2.0, 0.7, 4  # what a row is worth at least, of the best one; rows
_SAID_ANYWHERE = frozenset(
    "the and not for with that this are was were has have had but from into can cannot only found "
    "failed fail error errors unsupported supported support supports unknown invalid expected got "
    "could does if is no in of to on by its your been node nodes model models file line parser "
    "onnx tensor type input output op operator operators operation layer name value should must "
    "than then which while when all any implementation version following currently please use "
    "using used want wants wanted now nothing".split()
)
_ENGLISH = frozenset(  # operators that a message may speak of as words
    "And Cast Constant Equal Expand Floor Identity If Less Loop Max Mean Min Mod Not Optional Or "
    "Pad Range Round Scan Shape Sign Size Slice Split Sub Sum Tile Unique Where Compress Greater "
    "Gather Clip Transpose Normalizer Scaler Scatter Upsample Resize Binarizer Imputer "
    "Concat".split()
)
_TYPES = ("int64", "uint8", "float16", "bfloat16")
_JOINING = frozenset("And If Not Or Where".split())  # that stand behind any word
_ALIKE = 0.8  # of two words
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

    `Where` and its like are operators, `where` is a word.

    What a row is about counts more than what helps: it stands in front. A word that is an operator
    of ONNX's has a row of its own, of the recipes with rules about it. Where no row holds all that
    was given, it is read as a message: rows that quote it stand in front, then those about the
    operators in it; where there are none, those that have most of its rarer words.

    Raises:
        RecipeError: No row holds them.
    """
    rows = _rows()
    if not words:
        return rows
    found = _that_hold(rows, words)
    if not found:
        alone = _of_operators(words) if len(words) == 1 else []
        return alone or _of_message(rows, " ".join(words))
    found.sort(key=lambda each: _place(each, words))
    about = [each for each in found if _place(each, words) < _IN_HELP]
    return [*about, *_of_operators(words), *found[len(about) :]]


def _that_hold(rows: Sequence[Complaint], wanted: Sequence[str]) -> list[Complaint]:
    return [row for row in rows if all(_holds(" ".join(row), word) for word in wanted)]


def _holds(text: str, word: str, end: str = "") -> bool:
    """Whether a text has a word, in any case; `Where` is the operator, and no `where`.

    Args:
        text: Of a row.
        word: Or a part of one, where it is no operator.
        end: Of a pattern, behind a whole word.
    """
    if word in _JOINING:
        return bool(re.search(rf"\b{word}\b", text))
    begin = r"\b" if end else ""
    return bool(re.search(rf"(?i){begin}{re.escape(word)}{end}", text))


def _of_operators(words: Sequence[str]) -> list[Complaint]:
    """For each operator the recipes with rules about it, where there are any."""
    about = {word: recipes_about(word) for word in words if first_opset(word)}
    about |= {word: recipes_about(_others()[word]) for word in words if word in _others()}
    return [
        Complaint(f"{word}: recipes with rules about it", ", ".join(f"`{name}`" for name in names))
        for word, names in about.items()
        if names
    ]


def _of_message(rows: Sequence[Complaint], message: str) -> list[Complaint]:
    """The rows that a message is quoted in, or that are about the operators or words in it.

    Raises:
        RecipeError: There are none.
    """
    operators = operators_in(message)
    quoted = [
        each
        for each in rows
        if any(_quotes(text, message) for text in _QUOTED.findall(" ".join(each)))
    ]
    names = [rf"\b{re.escape(name)}\b" for name in operators]  # as they are spelled: no words
    names += [rf"`{re.escape(word)}`" for word in set(_WORD.findall(message))]  # attributes
    about = [
        each
        for each in rows
        if each not in quoted and any(re.search(name, each.about) for name in names)
    ]
    if not quoted:  # else one speaks of the message itself
        typed = [rf"\b{kind}\b" for kind in _TYPES if re.search(rf"(?i)\b{kind}\b", message)]
        about += [r for r in rows if r not in about and any(re.search(t, r.about) for t in typed)]
    found = [*quoted, *about, *_of_operators(operators)]
    if not found:  # several words may be given as one, in quotes
        found = _that_hold(rows, message.split()) or _of_words(rows, message)
    if not found:
        what = f"no complaint speaks of `{message}`"
        raise RecipeError(what, where="which", mend=_mend(message, operators, rows))
    return found


def operators_in(message: str) -> list[str]:
    """The operators that a message names, however it spells them.

    ONNX's names count in their own letters, and in others where they are no words of English;
    parsers write `importPad`, `onnx_hardsigmoid` or `ONNX::Range`. A name that is an English word
    too counts where it is quoted, called, or behind `::` or `=`.
    """
    known = {name.casefold(): name for name in known_operators()}
    found: dict[str, None] = {}
    for match in _NAME.finditer(message):
        name = match[0].removeprefix("import")
        own = known.get(name.casefold(), "")
        before = message[max(0, match.start() - _NEAR) : match.start()]
        called = name != match[0] or bool(_CALLED.search(before))
        called |= bool(_CALLS.match(message, match.end()))
        called |= name not in _JOINING and bool(_REFUSED.search(before))
        called |= name not in _JOINING and bool(_LACKED.match(message, match.end()))
        small = name.islower() and len(name) >= _MEANS and _is_compound(own)
        if own and (name == own or small) and (called or own not in _ENGLISH):
            found[own] = None
        elif name in _others():
            found[name] = None
    return list(found)


def _is_compound(name: str) -> bool:
    """Whether a name is no word of English by its letters: `HardSigmoid`, `GRU`, `ReduceL2`."""
    return sum(c.isupper() or c.isdigit() for c in name) > 1


@cache
def _others() -> Mapping[str, str]:
    """Operators of other tools that rules begin at, by their names without a domain."""
    known = {*known_operators()}
    names = {name.rpartition(".")[2]: name for name in roots() if not name.startswith(_FALLBACK)}
    return {
        name: whole for name, whole in names.items() if _is_compound(name) and name not in known
    }


def _quotes(quotation: str, message: str) -> bool:
    """Whether a message is what a row quotes: `...` stands for anything, numbers for any."""
    said, place = _plain(message), 0
    for piece in map(_plain, quotation.split("...")):
        place = said.find(piece, place)
        if place < 0:
            return False
        place += len(piece)
    return len(_plain(quotation).split()) > 1 or said == _plain(quotation)


def _plain(text: str) -> str:
    """Words and signs of words alone, in small letters, without numbers."""
    return " ".join(re.findall(r"[^\W\d_]+", text.casefold()))


def _of_words(rows: Sequence[Complaint], message: str) -> list[Complaint]:
    """The rows that have most of the rarer words; what every row says counts little."""
    said = {_stem(word) for word in _WORD.findall(message.casefold())} - _SAID_ANYWHERE
    held = [
        {_stem(word) for word in _WORD.findall(_QUOTED.sub(" ", each.about).casefold())}
        for each in rows
    ]
    often = {word: sum(word in each for each in held) for word in said}
    worth = {word: log(len(rows) / number) for word, number in often.items() if number}
    points = [sum(worth.get(word, 0) for word in each) for each in held]
    least = max(_LEAST, max(points, default=0) * _NEARLY)
    found = [(number, each) for number, each in zip(points, rows, strict=True) if number >= least]
    return [each for _, each in sorted(found, key=lambda pair: -pair[0])][:_MOST]


def _stem(word: str) -> str:
    return word[:-1] if word.endswith("s") and len(word) > _MEANS else word


def _place(row: Complaint, wanted: Sequence[str]) -> int:
    """Whether a row is about one of the words (0), about one with that in it (1), or about none."""
    if any(_holds(row.about, word, end=r"\b") for word in wanted):
        return 0
    return 1 if any(_holds(row.about, word) for word in wanted) else _IN_HELP


def _mend(message: str, operators: Sequence[str], rows: Sequence[Complaint]) -> str:
    """What to ask for instead: of an operator that no row is about, or the nearest known word."""
    for word in operators:
        if first_opset(word):
            return (
                f"No recipe has rules about {word}. `surgeon inspect MODEL --target NAME` says "
                "where to cut a model in two at what a runtime lacks."
            )
    known = {word for row in rows for word in _WORD.findall(row.about) if len(word) >= _MEANS}
    other = "Ask with fewer words, or `surgeon inspect MODEL` for a file."
    asked = (word for word in _WORD.findall(message) if len(word) >= _MEANS)
    word = next((word for word in asked if word.casefold() not in _SAID_ANYWHERE), "")
    near = [each for each in known.union(known_operators()) if _are_alike(word, each)]
    return suggest(word, near, other) if near else other


def _are_alike(word: str, other: str) -> bool:
    """Whether one may be the other mistyped, or another form of it; of all words one is near."""
    return SequenceMatcher(None, word.casefold(), other.casefold()).ratio() >= _ALIKE


def _rows() -> list[Complaint]:
    text = (come_along("docs") / PAGE).read_text(encoding="utf-8")
    cells = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    plain = [[_LINK.sub(r"\1", cell) for cell in row] for row in cells]
    return [Complaint(*row) for row in plain if len(row) == 2 and row[1] != "recipe"]
