"""What became of one file: plain data, for the state, the reports and the caller."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

OUTCOMES = {
    "repaired": "changed, and the result was checked",
    "unchanged": "no rule fired: it needs none of these recipes",
    "refused": "read, and not repaired: the reason says why",
    "broken": "no model that can be read",
    "timeout": "not done within the time limit",
    "memory": "not done within the memory limit",
    "crashed": "native code crashed on it",
    "failed": "not written, or a bug of surgeon",
}
GOOD = ("repaired", "unchanged")
FAILED = tuple(outcome for outcome in OUTCOMES if outcome not in GOOD)

_QUOTED = re.compile(r"'[^']*'")
_NAMED = re.compile(r"`(?!--)[^`]*`(?:, `[^`]*`)*(?: and \d+ more)?")  # but no options
_MORE = re.compile(r" and \d+ more$")
_NAMES = 8  # of a remark on several files
_NUMBER = re.compile(r"(?<![\w`])\d[\d.,]*(?:e[+-]?\d+)?(?![\w`])")


@dataclass(frozen=True, slots=True)
class Row:
    """One file of a batch.

    Attributes:
        name: Its path below SOURCE, with `/` on every system.
        outcome: What became of it: `repaired`, `unchanged`, `refused`, `broken`, `timeout`,
            `memory`, `crashed` or `failed`.
        reason: Why it failed; empty where it did not.
        mend: What would help.
        nodes: How many nodes the input has, and the result; None where it was not read.
        rules: How often each rule fired, by `recipe/rule`.
        verdict: The status of the check and its detail; None where nothing was compared.
        remarks: What the reader should know of it, and what was left out.
        absent: What was to be kept and is not in the file.
        left_out: Of the remarks, those on what was asked for and not done: a target that lacks
            operators of the result, say.
        seconds: Wall-clock time; of an earlier run, where that one did the work.
        size: Bytes of the model file.
        sha256: Of the model file; empty where it was not read.
        same_as: The identical file that was repaired in its stead.
        fresh: Whether this run did the work.
        earlier: Whether DEST still has what an earlier run made of the same bytes.
    """

    name: str
    outcome: str
    reason: str = ""
    mend: str = ""
    nodes: tuple[int, int] | None = None
    rules: Mapping[str, int] = field(default_factory=dict)
    verdict: tuple[str, str] | None = None
    seconds: float = 0.0
    size: int = 0
    sha256: str = ""
    same_as: str | None = None
    fresh: bool = True
    earlier: bool = False
    remarks: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()

    @property
    def good(self) -> bool:
        """Whether the file is repaired or needed nothing."""
        return self.outcome in GOOD

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Row:
        """The row that `to_dict` wrote."""
        pairs = {key: tuple(plain[key]) if plain[key] else None for key in ("nodes", "verdict")}
        texts = {key: tuple(plain.get(key, ())) for key in ("remarks", "absent", "left_out")}
        return cls(**{**plain, **pairs, **texts})


def remarks(rows: Iterable[Row]) -> list[tuple[str, list[Row]]]:
    """What is remarked of files, with the files, the most first; alike as reasons are.

    Those that differ in the names they list are one too, which lists the names of all.
    """
    entries = [("", _NAMED.sub("`...`", said), said, row) for row in rows for said in row.remarks]
    told: dict[str, list[str]] = {}
    for _, form, said, _ in entries:
        texts = told.setdefault(_form_of(form), [])
        texts += [] if said in texts else [said]
    return [(_with_names(said, told.get(said, ())), same) for _, said, same in _by_form(entries)]


def _with_names(form: str, texts: Sequence[str]) -> str:
    """A form of words with the names that its texts have in its places."""
    lists = [_NAMED.findall(text) for text in texts]
    places = iter([_listed(each) for each in zip(*lists, strict=True)])
    return re.sub(r"`\.\.\.`", lambda found: next(places, found[0]), form)


def _listed(lists: Sequence[str]) -> str:
    """Lists of names as one, each name once."""
    names = list(dict.fromkeys(name for each in lists for name in re.findall("`[^`]*`", each)))
    more = len(names) > _NAMES or any(_MORE.search(each) for each in lists)
    return f"{', '.join(names[:_NAMES])}{' and others' if more else ''}"


def grouped(rows: Iterable[Row]) -> list[tuple[str, str, list[Row]]]:
    """Failed rows by outcome and reason, the largest groups first.

    Reasons that differ only in the names of nodes and in numbers are one; its words are then
    those without them.
    """
    return _by_form((row.outcome, row.reason, row.reason, row) for row in rows if not row.good)


def _form_of(words: str) -> str:
    """Words without the numbers and what is quoted in them."""
    return _NUMBER.sub("N", _QUOTED.sub("'...'", words))


def _by_form(entries: Iterable[tuple[str, str, str, Row]]) -> list[tuple[str, str, list[Row]]]:
    """Rows of one kind and one form of words together, with the words where all have the same.

    Args:
        entries: The kind, the words without what does not count, the words, and whose they are.
    """
    texts: dict[tuple[str, str], set[str]] = {}
    groups: dict[tuple[str, str], dict[int, Row]] = {}  # a row once: two recipes may say the same
    for kind, words, said, row in entries:
        key = kind, _form_of(words)
        texts.setdefault(key, set()).add(said)
        groups.setdefault(key, {})[id(row)] = row
    ranked = sorted(groups, key=lambda key: (-len(groups[key]), key))
    return [
        (key[0], min(texts[key]) if len(texts[key]) == 1 else key[1], list(groups[key].values()))
        for key in ranked
    ]
