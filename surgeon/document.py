"""Reads YAML with the place of every key and value; knows nothing of what the values mean."""

from __future__ import annotations

import difflib
import re
from bisect import bisect_right
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from surgeon.errors import Location, RecipeError
from surgeon.reading import open_file

MAX_BYTES = 4 * 1024 * 1024
MAX_DEPTH = 40

Scalar = str | int | float | bool | None

_NOT_PRINTABLE = re.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufffe\uffff]"
)  # the opposite of what YAML allows, as that takes 20 times as long to compile
_HALVES = re.compile(r"[\ud800-\udfff]")
_INTEGER = re.compile(r"[-+]?[0-9]+|0o([0-7]+)|0x([0-9a-fA-F]+)")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")


@dataclass(frozen=True, slots=True)
class Value:
    """One YAML value.

    Attributes:
        content: A scalar, a tuple of values, or entries by key.
        location: Where the content begins: of `|` and quoted text its first character.
        source: Of text, the text as it stands in the file from `location` on, with the file's
            own indentation. It is what a pattern or an expression is read from: in it, every line
            and column is the file's, as `location.shifted` computes them.
    """

    content: Scalar | tuple[Value, ...] | Mapping[str, Entry]
    location: Location
    source: str = ""

    def plain(self) -> Any:
        """The value as Python's own dicts, lists and scalars."""
        if isinstance(self.content, tuple):
            return [item.plain() for item in self.content]
        if isinstance(self.content, Mapping):
            return {key: entry.value.plain() for key, entry in self.content.items()}
        return self.content

    def find(self, *path: str | int) -> Value | None:
        """The value at a path of keys and positions; None if there is none."""
        value = self
        for step in path:
            if isinstance(step, str) and isinstance(value.content, Mapping):
                entry = value.content.get(step)
                if entry is None:
                    return None
                value = entry.value
            elif isinstance(step, int) and isinstance(value.content, tuple):
                if not 0 <= step < len(value.content):
                    return None
                value = value.content[step]
            else:
                return None
        return value

    def key_location(self, key: str) -> Location:
        """Where a key of this mapping stands; of a key that is not there, the mapping itself."""
        if isinstance(self.content, Mapping) and key in self.content:
            return self.content[key].location
        return self.location


class _Quoted(Location):
    """The place of a text with escapes in it, which move what is behind them."""

    text: str
    places: list[Location]

    @classmethod
    def of(cls, begin: Location, text: str, places: list[Location]) -> _Quoted:
        """Where a text begins, and where each of its characters is written, if that is known."""
        made = cls(*begin)
        made.text, made.places = text, places
        return made

    def shifted(self, line: int, column: int) -> Location:
        """The place in the file."""
        lines = self.text.split("\n")
        index = sum(len(each) + 1 for each in lines[: line - 1]) + column - 1
        if not self.places:
            return Location(*self).shifted(line, column)
        if index < len(self.places):
            return self.places[max(0, index)]
        return self.places[-1].shifted(1, 2 + index - len(self.places))


# What stands for one character or none in quoted text, and where it goes on in another line.
_WRITTEN: Mapping[str, re.Pattern[str]] = MappingProxyType(
    {
        '"': re.compile(r"\\x.{2}|\\u.{4}|\\U.{8}|\\\n[ \t]*|\\.|[ \t]*(?:\n[ \t]*)+|.", re.DOTALL),
        "'": re.compile(r"''|[ \t]*(?:\n[ \t]*)+|.", re.DOTALL),
    }
)


def _written(raw: str, style: str, length: int) -> list[int]:
    """Where each character of quoted text stands in it as it is written; nothing if in doubt."""
    found: list[int] = []
    for each in _WRITTEN[style].finditer(raw):
        ends = each[0].count("\n")
        count = 0 if each[0].startswith("\\\n") else max(1, ends - 1)
        found.extend([each.start()] * count)
    return found if len(found) == length else []


class Entry(NamedTuple):
    """One entry of a mapping: where its key stands, and its value."""

    location: Location
    value: Value


def nearest(word: str, known: Collection[str]) -> str:
    """The known word that a word may be meant for; "" where none is like it."""
    folded = {name.casefold(): name for name in known}
    if word.casefold() in folded:
        return folded[word.casefold()]
    return next(iter(difflib.get_close_matches(word, sorted(known), n=1, cutoff=0.6)), "")


def suggest(word: str, known: Collection[str], listed: str | None = None) -> str:
    """A mend for a word nobody knows: the nearest known word, or all of them.

    Args:
        word: What nobody knows.
        known: What there is.
        listed: Said in place of all of them, where these are many.
    """
    if near := nearest(word, known):
        return f"Did you mean `{near}`?"
    if not known:
        return f"Remove `{word}`."
    if listed is not None:
        return listed
    names = sorted(known)
    first = ", ".join(f"`{name}`" for name in names[:12])
    return f"Known are {first}{' and others' if len(names) > 12 else ''}."


def read(path: Path, *, begin: str = "surgeon: 1") -> Value:
    """Read a YAML file.

    Args:
        path: The file.
        begin: How what it should hold begins, for a file that is empty.

    Raises:
        RecipeError: The file is missing, is no file, or is not a YAML document as `parse` wants it.
    """
    return parse(read_text(path), file=str(path), begin=begin)


def read_text(path: Path) -> str:
    """The text of a file that is to hold YAML, with line ends as Unix has them.

    Raises:
        RecipeError: The file is missing, unreadable, too large, or not UTF-8 text.
    """
    try:
        if path.is_dir():
            raise RecipeError("it is a folder", where=str(path), mend="Name a YAML file in it.")
        if path.exists() and not path.is_file():
            raise RecipeError("it is no regular file", where=str(path), mend="Name a YAML file.")
        with open_file(path) as stream:
            data = stream.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise RecipeError(
            "there is no such file", where=str(path), mend="Check the path."
        ) from None
    except (OSError, ValueError) as error:  # ValueError: a NUL byte in the path
        raise RecipeError(
            f"it cannot be read: {getattr(error, 'strerror', None) or error}",
            where=str(path),
            mend="Check the path and permissions.",
        ) from None
    if len(data) > MAX_BYTES:
        _refuse_size(str(path))
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        column = error.start - (data.rfind(b"\n", 0, error.start) + 1) + 1
        raise RecipeError(
            "it is not UTF-8 text",
            where=Location(str(path), line, column),
            mend="Name a YAML file; if it is one, save it as UTF-8.",
        ) from None
    return text.replace("\r\n", "\n")


def parse(text: str, *, file: str = "<text>", begin: str = "surgeon: 1") -> Value:
    """Read one YAML 1.2 document (core schema).

    Raises:
        RecipeError: The text is not YAML, or uses what a recipe has no need of: repeated keys,
            tags, anchors and aliases, keys that are not text, several documents, more than
            `MAX_DEPTH` levels, more than `MAX_BYTES`.
    """
    if len(text) > MAX_BYTES:
        _refuse_size(file)
    text = text.lstrip("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    return _Reader(text, file, begin).document()


def _refuse_size(file: str) -> None:
    raise RecipeError(
        f"it is larger than {MAX_BYTES // 2**20} MiB",
        where=file,
        mend="Name a recipe; models and weights do not belong in one.",
    )


class _Reader:
    """Builds values from PyYAML's events, one at a time, so that limits hold while it reads.

    Of marks only the index is used, which counts characters in every parser: for YAML 1.1 a line
    ends at more characters than for an editor.
    """

    def __init__(self, text: str, file: str, begin: str) -> None:
        import yaml

        self._begin = begin
        self._text, self._file, self._yaml = text, file, yaml
        self._lines = [0, *(found.end() for found in re.finditer("\n", text))]
        self._events: Iterator[Any] = iter(())

    def document(self) -> Value:
        """The document as libyaml reads it.

        What libyaml refuses, PyYAML's own parser reads, or says what it found there: it is the
        slower by ten times, and the only one where PyYAML was built without libyaml.
        """
        if bad := _NOT_PRINTABLE.search(self._text):
            what = f"the character {bad[0]!r} is not allowed"
            raise self._not_yaml(what, self._place(bad.start()))
        if self._yaml.__with_libyaml__:
            with suppress(self._yaml.YAMLError):
                return self._document(self._yaml.parse(self._text, self._yaml.CSafeLoader))
        return self._document(self._own_events())

    def _document(self, given: Iterator[Any]) -> Value:
        self._events = given
        next(self._events)  # the stream's start
        start = next(self._events)
        if isinstance(start, self._yaml.StreamEndEvent):
            raise RecipeError(
                "it is empty", where=Location(self._file), mend=f"Write `{self._begin}` and go on."
            )
        if start.version not in (None, (1, 2)) or start.tags:
            raise RecipeError(
                "YAML directives are not read here",
                where=Location(self._file),
                mend="Remove the lines that begin with `%`.",
            )
        value = self._value(next(self._events), 1, Location(self._file))
        next(self._events)  # the document's end
        after = next(self._events)
        if not isinstance(after, self._yaml.StreamEndEvent):
            raise RecipeError(
                "a second document begins here",
                where=self._place(after.start_mark.index),
                mend="Put each document into a file of its own.",
            )
        return value

    def _own_events(self) -> Iterator[Any]:
        try:
            yield from self._yaml.parse(self._text, self._yaml.SafeLoader)
        except self._yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            what = " ".join(filter(None, (error.context, error.problem)))
            raise self._not_yaml(what, self._place(mark.index if mark else 0)) from None
        except (ValueError, OverflowError) as error:  # an escape that is no character
            raise self._not_yaml(str(error), Location(self._file)) from None

    @staticmethod
    def _not_yaml(what: str, where: Location) -> RecipeError:
        return RecipeError(
            f"it is not YAML: {what}",
            where=where,
            mend="Check indentation and quotes; text with `: ` or ` #` in it, or that begins with "
            "`[`, `{` or a quote, needs quotes around it or `|` in front.",
        )

    def _place(self, index: int) -> Location:
        line = bisect_right(self._lines, index)
        return Location(self._file, line, index - self._lines[line - 1] + 1)

    def _value(self, event: Any, depth: int, fallback: Location) -> Value:
        where = self._place(event.start_mark.index)
        if isinstance(event, self._yaml.AliasEvent) or event.anchor is not None:
            raise RecipeError(
                f"anchors and aliases (`{event.anchor}`) are not read here",
                where=where,
                mend="Write the value out where it is needed.",
            )
        if event.tag is not None:
            raise RecipeError(
                f"unknown tag `{event.tag}`",
                where=where,
                mend="Remove the tag; put quotes around a value to make it text.",
            )
        if depth > MAX_DEPTH:
            raise RecipeError(
                f"more than {MAX_DEPTH} levels of nesting", where=where, mend="Make it flatter."
            )
        if isinstance(event, self._yaml.ScalarEvent):
            return self._scalar(event, where, fallback)
        if isinstance(event, self._yaml.SequenceStartEvent):
            items = []
            while not isinstance(event := next(self._events), self._yaml.SequenceEndEvent):
                items.append(self._value(event, depth + 1, self._place(event.start_mark.index)))
            return Value(tuple(items), where)
        return Value(self._mapping(depth), where)

    def _mapping(self, depth: int) -> Mapping[str, Entry]:
        entries: dict[str, Entry] = {}
        while not isinstance(event := next(self._events), self._yaml.MappingEndEvent):
            where = self._place(event.start_mark.index)
            key = self._value(event, depth + 1, where).content
            if not isinstance(key, str):
                raise RecipeError(
                    "a key is not text", where=where, mend="Put quotes around the key."
                )
            if key in entries:
                raise RecipeError(
                    f"the key `{key}` is here twice, first in line {entries[key].location.line}",
                    where=where,
                    mend="Keep one of them.",
                )
            after = self._place(event.end_mark.index).shifted(1, 2)  # behind the key's colon
            entries[key] = Entry(where, self._value(next(self._events), depth + 1, after))
        return MappingProxyType(entries)

    def _scalar(self, event: Any, where: Location, fallback: Location) -> Value:
        text: str = event.value
        begin, end = event.start_mark.index, event.end_mark.index
        if _HALVES.search(text):
            raise self._not_yaml("an escape in it is half a character", where)
        if event.style in ("|", ">"):
            return self._block(event, text)
        if event.style in ("'", '"'):
            raw = self._text[begin + 1 : end - 1]
            if not ("\\" in raw if event.style == '"' else "''" in raw):
                return Value(text, where.shifted(1, 2), raw)
            places = [self._place(begin + 1 + at) for at in _written(raw, event.style, len(text))]
            return Value(text, _Quoted.of(where.shifted(1, 2), text, places), text)
        if begin == end:
            return Value(None, fallback)
        return Value(self._resolve(text, where), where, self._text[begin:end])

    def _block(self, event: Any, text: str) -> Value:
        header_end = self._text.find("\n", event.start_mark.index)
        if header_end < 0:
            return Value(text, self._place(event.start_mark.index), text)
        begin, end = header_end + 1, event.end_mark.index
        raw = self._text[begin : max(begin, end)]
        first = next((line for line in raw.split("\n") if line.strip(" ")), "")
        kept = next((line for line in text.split("\n") if line.strip(" ")), "")
        indent = len(first) - len(first.lstrip(" ")) - (len(kept) - len(kept.lstrip(" ")))
        skipped = min(indent, len(raw) - len(raw.lstrip(" ")))
        return Value(text, self._place(begin).shifted(1, 1 + skipped), raw[skipped:])

    def _resolve(self, text: str, where: Location) -> Scalar:
        """A plain scalar by the core schema of YAML 1.2: `no` is text and `010` is ten."""
        if text in ("null", "Null", "NULL", "~"):
            return None
        if text in ("true", "True", "TRUE", "false", "False", "FALSE"):
            return text.lower() == "true"
        if match := _INTEGER.fullmatch(text):
            digits, base = (match[1], 8) if match[1] else (match[2], 16) if match[2] else (text, 10)
            if len(digits) > 64 or not -(2**63) <= int(digits, base) < 2**64:
                raise RecipeError(
                    "the integer does not fit 64 bits", where=where, mend="Write a smaller one."
                )
            return int(digits, base)
        if _FLOAT.fullmatch(text):
            return float(text)
        if match := re.fullmatch(r"([-+]?)\.(inf|Inf|INF)", text):
            return float(f"{match[1]}inf")
        return float("nan") if text in (".nan", ".NaN", ".NAN") else text
