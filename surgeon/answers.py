"""The page on what `--json` prints, made of the classes that are printed."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType, UnionType
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

from surgeon import (
    adapting,
    complaints,
    dividing,
    explaining,
    extraction,
    inspection,
    listing,
    reducing,
    report,
    sealing,
    standing,
)
from surgeon.batch.row import Row
from surgeon.difference import Change, Difference
from surgeon.ends import Value
from surgeon.misfits import Misfit
from surgeon.reducing.mends import Mend
from surgeon.targets import Beyond, Fit, Refused
from surgeon.verify import Comparison, NotCompared, OutputCheck, Parting, Verdict
from surgeon.weights import Weight

_NONE: Mapping[str, str] = MappingProxyType({})
_ABOUT = """\
Commands that answer take `--json` (`recipes show` and `schema` print a file as it is): they print
one JSON document to stdout and nothing else there; `batch --json` prints a line of JSON for each
file. Progress, warnings and errors go to stderr.
Where a command ends with an error, stdout has `{"error": {"what", "where", "mend", "exit_code"}}`,
beside the report where there is one. A command line that cannot be read at all (an option that is
not there) is answered on stderr alone, with exit code 2. `null` stands for what is not known or was
not asked for, and for numbers that are not finite; a key that is there *only* in some case is else
left out. Later versions may add keys. The Python API gives the same objects with the same
attributes, `surgeon.apply(...).report.changes` say; but `found` of `adapt` is `recipes` there, and
what a command alone knows (`saved`, `whole` and `part` of `reduce`) is not."""


class Answer(NamedTuple):
    """What a command prints.

    Attributes:
        title: The command.
        kind: The class whose attributes are the keys; None where there is none.
        about: A sentence on the whole; empty where the keys say all.
        more: Keys beside the attributes, and what they hold.
        without: Attributes that are not printed.
    """

    title: str
    kind: type | None
    about: str = ""
    more: Mapping[str, str] = _NONE
    without: frozenset[str] = frozenset()


ANSWERS = (
    Answer(
        "surgeon apply",
        report.Report,
        "`--report out.json` writes the same.",
        {
            "status": "That of the verdict; without one `unchanged` or `unchecked`.",
            "contracts": "What the rewrites changed in what the model promises, each once.",
            "saved": "The file that was written, or null.",
            "error": "Only where the run ended with one: `what`, `where`, `mend`, `exit_code`.",
        },
        frozenset({"gone"}),
    ),
    Answer(
        "surgeon adapt",
        None,
        "What `apply` prints, and:",
        {
            "found": "The recipes that were found, in order; none where it passes as it came.",
            "rounds": "List of [Round](#round): what failed on the way, in order.",
            "runs": "How often the check was asked.",
        },
    ),
    Answer(
        "surgeon batch",
        Row,
        "A line for each file, with these keys; `report.jsonl` in DEST has the same lines.",
    ),
    Answer("surgeon extract", extraction.Extraction, without=frozenset({"model"})),
    Answer(
        "surgeon reduce",
        reducing.Reduction,
        more={
            "whole": "How the command ended on the whole model: `status` and `last_line`.",
            "part": "The same on the part.",
        },
        without=frozenset({"model"}),
    ),
    Answer(
        "surgeon verify",
        Verdict,
        more={
            "recorded": "Only with `--record`: the file that was written.",
        },
    ),
    Answer(
        "surgeon diff",
        Difference,
        more={"same": "Whether nothing changed that counts."},
    ),
    Answer(
        "surgeon explain",
        None,
        more={
            "source": "The model's path.",
            "recipes": "Names of the recipes, in order.",
            "opset": "The default opset afterwards.",
            "opset_before": "The default opset of the input.",
            "fired": "List of [Rewrite](#rewrite): the rules that fired.",
            "misses": "List of [Missed](#missed): those that did not, and why.",
            "inside": "List of [Missed](#missed): with `--node`, where no rule ends at such a "
            "node: rules that have one inside, and the nodes further down at which they did not "
            "fire.",
            "failures": "Steps and checks that were left out.",
            "gone": "What became of nodes that are there no longer, by name.",
            "unknown": "Operators that no rule of these recipes is about, with `count` and "
            "`recipes`: bundled ones that have a rule.",
            "untried": "List of [Untried](#untried): rules that were tried at no node.",
        },
    ),
    Answer(
        "surgeon inspect",
        inspection.Inspection,
        more={"division": "Only with `--target`, where no recipe helps: [Division](#division)."},
    ),
    Answer("surgeon inspect --node", standing.Standing, "A list of these."),
    Answer("surgeon inspect --nodes", listing.Written, "A list of these."),
    Answer(
        "surgeon log",
        None,
        "A list of runs, the oldest first; a key is there where there is something to say.",
        {
            "surgeon": "The version.",
            "date": "When, in UTC; not with `--reproducible`.",
            "source": "Of the file that was read: its `sha256`.",
            "recipes": "Each with `name` and `sha256`.",
            "options": "The target, the opset, and what was left out, kept or said of the file: "
            "`target`, `opset`, `without`, `keep`, `metadata`.",
            "allowed": "What was allowed beside what recipes allow.",
            "rules": "How often each fired, by `recipe/rule`.",
            "left out": "`rewrites` by rule, and `steps`.",
            "assumptions": "What the user added of shapes and sizes, as given.",
            "replaced": "Nodes that each rule replaced, where the IR version has no room at nodes.",
            "contracts": "What the rewrites changed in what the model promises, each once.",
            "verdict": "What the comparison found, in a sentence.",
            "data": "Names of files with real inputs.",
            "reference": "Names of files with recorded outputs, or what stood for the original.",
            "extracted": "Of a part that was cut out: between which values, `from` and `to`, "
            "and the operators whose values it gives too, `outputs of`.",
            "file": "Of the file that was written: its `sha256`, and that of its data.",
        },
    ),
    Answer("surgeon log --check", sealing.Seal),
    Answer(
        "surgeon test",
        None,
        "A list of cases.",
        {
            "recipe": "Its name.",
            "case": "The case's title.",
            "location": "file:line:column.",
            "problems": "What is wrong; none where the case holds.",
            "seconds": "Wall-clock time.",
        },
    ),
    Answer(
        "surgeon recipes which",
        complaints.Complaint,
        "A list of complaints.",
    ),
    Answer(
        "surgeon recipes",
        None,
        "A list of recipes.",
        {
            "name": "Its name.",
            "about": "What it is for.",
            "file": "Its path.",
            "allow": "What it allows itself: `contract`, `approximate`.",
            "rules": "Each with `id`, `recipe`, `why`, `exact`, `contract` and `location`.",
            "changes": "The same of changes of what a model computes.",
        },
    ),
    Answer(
        "surgeon recipes functions",
        None,
        more={
            "functions": "Each with `name`, `about`, an `example` and what that `gives`.",
            "properties": "The same of the properties of values.",
        },
    ),
    Answer(
        "surgeon recipes builders",
        None,
        "A list.",
        {
            "name": "The builder, with its arguments.",
            "about": "What it writes.",
            "example": "Null, as is `gives`: cases show them.",
        },
    ),
    Answer(
        "surgeon doctor",
        None,
        more={
            "sound": "Whether it can work.",
            "parts": "Each with `name`, `version`, `needed` and `feature`.",
            "findings": "Each with `severity`, `what` and `mend`.",
        },
    ),
)
# What these hold, by the heading under which it stands.
PARTS: Mapping[str, type] = {
    "Rewrite": report.Change,
    "Missed": report.Missed,
    "Untried": explaining.Untried,
    "Refusal": report.Refusal,
    "Verdict": Verdict,
    "Comparison": Comparison,
    "OutputCheck": OutputCheck,
    "NotCompared": NotCompared,
    "Parting": Parting,
    "Value": Value,
    "Weight": Weight,
    "Misfit": Misfit,
    "ExternalFile": inspection.ExternalFile,
    "Foreign": inspection.Foreign,
    "Fit": Fit,
    "Refused": Refused,
    "Beyond": Beyond,
    "Division": dividing.Division,
    "Wire": standing.Wire,
    "Change": Change,
    "Round": adapting.Round,
    "PartNode": reducing.PartNode,
    "Mend": Mend,
}


def page() -> str:
    """The text of the page."""
    lines = ["# What `--json` prints", "", _ABOUT, ""]
    for answer in ANSWERS:
        lines += [f"## `{answer.title}`", ""]
        lines += [answer.about, ""] if answer.about else []
        lines += [*_table(keys_of(answer)), ""]
    lines += ["## What these hold", ""]
    for name, kind in PARTS.items():
        lines += [f"### {name}", "", f"{_first_line(kind)}", "", *_table(attributes_of(kind)), ""]
    return "\n".join(lines)


def keys_of(answer: Answer) -> dict[str, tuple[str, str]]:
    """The keys that a command prints, each with its type and what it is."""
    found = {} if answer.kind is None else attributes_of(answer.kind)
    kept = {key: told for key, told in found.items() if key not in answer.without}
    return kept | {key: ("", told) for key, told in answer.more.items()}


def _table(keys: Mapping[str, tuple[str, str]]) -> Iterator[str]:
    yield "| key | what it is |"
    yield "|---|---|"
    for key, (kind, told) in keys.items():
        yield f"| `{key}` | {f'({kind}) ' if kind else ''}{told} |"


def attributes_of(kind: type) -> dict[str, tuple[str, str]]:
    """The attributes of a class as its docstring tells them, with their types."""
    text = inspect.getdoc(kind) or ""
    section = re.search(r"^Attributes:\n(.*?)(?:\n\n|\Z)", text, re.DOTALL | re.MULTILINE)
    told = re.split(r"^    (\w+): ", section[1], flags=re.MULTILINE)[1:] if section else []
    words = {key: " ".join(said.split()) for key, said in zip(told[::2], told[1::2], strict=True)}
    # names that a module imports for type checkers alone
    names = {each.__name__: each for each in PARTS.values() if each.__name__ != "Change"}
    hints = get_type_hints(kind, localns=names)
    if dataclasses.is_dataclass(kind):
        hints = {field.name: hints[field.name] for field in dataclasses.fields(kind)}
    said = {key: re.sub(r"\bNone\b", "null", text) for key, text in words.items()}
    return {key: (_type(hint), said[key]) for key, hint in hints.items()}


def _type(hint: Any) -> str:
    """A type as JSON has it, with a link where it is one of `PARTS`."""
    heading = next((name for name, kind in PARTS.items() if kind is hint), None)
    if heading is not None:
        return f"[{heading}](#{heading.lower()})"
    origin, inside = get_origin(hint), [each for each in get_args(hint) if each is not type(None)]
    if origin in (Union, UnionType):
        known = _type(inside[0]) if len(inside) == 1 else ""
        return f"{known} or null" if known and type(None) in get_args(hint) else known
    if origin is tuple:
        inner = _type(inside[0]) if len(inside) == 2 and inside[1] is ... else ""
        return f"list of {inner}" if inner else "list"
    if origin in (dict, Mapping):
        return "object"
    if origin is Literal:
        return "text"
    return {str: "text", int: "number", float: "number", bool: "true or false"}.get(hint, "")


def _first_line(kind: type) -> str:
    return (inspect.getdoc(kind) or "").splitlines()[0]
