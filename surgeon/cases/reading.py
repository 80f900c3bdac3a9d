"""Reads `NAME.cases.yaml`: cases with the place of every word; runs none of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from surgeon.cases.text import Filling, Text
from surgeon.document import Value, read, suggest
from surgeon.errors import Location, RecipeError

FILE_KEYS = ("about", "cases")
CASE_KEYS = (
    *("case", "fires", "refuses", "before", "after", "means", "values"),
    *("shape", "assume", "allow", "sizes", "opsets", "tolerance", "differs"),
)
REFUSAL_KEYS = ("rule", "because")
FILLING_KEYS = ("seed", "scale", "between")
LEAST = 3  # letters of a reason
LARGEST = 1e38  # number of a case: what float32 holds


@dataclass(frozen=True, slots=True)
class Refusal:
    """A rule that must not fire, and words that the reason must hold."""

    rule: str
    because: str


@dataclass(frozen=True, slots=True)
class Case:
    """One case of a recipe.

    Attributes:
        title: What it shows.
        location: Where it begins.
        fires: How often each rule must fire; rules that are not named must not.
        fires_any: Whether it is `after` alone that counts: `fires: any`, for recipes that put
            others together.
        refuses: The rule that must not fire, tried by itself.
        before: The model that the recipe is applied to.
        after: The expected result. An input of it that `before` lacks stands for any constant
            of that type and shape.
        means: What `before` computes, said with other operators.
        values: Which inputs of the texts are initializers, and with what numbers.
        shape: As `--shape`.
        assume: As `--assume`.
        allow: As `--allow`, beside what the recipe itself allows.
        sizes: For dynamic dims, the sizes to compare numbers at.
        opsets: The opsets at which `before` is tried; None for the one it declares. `after` is
            compared in the newest form of its operators, so that one text will do.
        tolerance: Error relative to the output's spread, for rules that are approximate.
        differs: Words of the reason for which `apply` refuses a rewrite here: it differs from what
            it replaces on values that the case lacks.
        places: Where the names stand by which `values` and `sizes` are given, by key and name.
        keys: Where each of its keys stands.
    """

    title: str
    location: Location
    before: Text
    fires: Mapping[str, int] = field(default_factory=dict)
    fires_any: bool = False
    refuses: Refusal | None = None
    after: Text | None = None
    means: Text | None = None
    values: Mapping[str, Filling] = field(default_factory=dict)
    shape: Mapping[str, tuple[int | str, ...]] = field(default_factory=dict)
    assume: tuple[str, ...] = ()
    allow: tuple[str, ...] = ()
    sizes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    opsets: tuple[int | None, ...] = (None,)
    tolerance: float | None = None
    differs: str | None = None
    places: Mapping[str, Mapping[str, Location]] = field(default_factory=dict)
    keys: Mapping[str, Location] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Unread:
    """A case that cannot be read, and why.

    Attributes:
        title: What it is called, as far as that is known.
        location: Where it begins.
        error: What is wrong.
    """

    title: str
    location: Location
    error: RecipeError


def read_cases(path: Path, rules: Sequence[str]) -> tuple[Case, ...]:
    """The cases of a file.

    Args:
        path: The file.
        rules: The ids of the recipe's rules, which cases may name.

    Raises:
        RecipeError: The file is no list of cases; names the place.
    """
    cases = []
    for case in read_each(path, rules):
        if isinstance(case, Unread):
            raise case.error
        cases.append(case)
    return tuple(cases)


def read_each(path: Path, rules: Sequence[str]) -> list[Case | Unread]:
    """The cases of a file, in order, those among them that cannot be read.

    Raises:
        RecipeError: The file is no list at all.
    """
    root = read(path, begin="cases:")
    _mapping(root, FILE_KEYS, required=("cases",), what="the document")
    found: list[Case | Unread] = []
    seen: dict[str, Location] = {}
    for item in _list(_at(root, "cases"), "cases"):
        try:
            found.append(_once(_case(item, rules), seen))
        except RecipeError as error:
            title = item.find("case")
            said = title.content if title is not None else None
            found.append(Unread(str(said or "a case"), item.location, error))
    return found


def _once(case: Case, seen: dict[str, Location]) -> Case:
    other = seen.setdefault(case.title, case.location)
    if other is not case.location:
        raise RecipeError(
            f"the case `{case.title}` is here twice, first at {other}",
            where=case.location,
            mend="Give one of them another title.",
        )
    return case


def _case(item: Value, rules: Sequence[str]) -> Case:
    keys = _mapping(item, CASE_KEYS, required=("case", "before"), what="a case")
    if not keys & {"fires", "refuses"}:
        raise RecipeError(
            "the case says neither which rules fire nor which refuses",
            where=item.location,
            mend="Add `fires: RULE` or `refuses: {rule: RULE, because: TEXT}`.",
        )
    found: dict[str, Any] = {"title": _text(_at(item, "case")), "location": item.location}
    for key in ("before", "after", "means"):
        if key in keys:
            found[key] = _model_text(_at(item, key))
    if "fires" in keys and _at(item, "fires").content == "any":
        found["fires_any"] = True
        if "after" not in keys:
            raise RecipeError(
                "whatever may fire, and no result is given",
                where=item.key_location("fires"),
                mend="Add `after: ...`, or name the rules.",
            )
    elif "fires" in keys:
        found["fires"] = _fires(_at(item, "fires"), rules)
    if "refuses" in keys:
        found["refuses"] = _refusal(_at(item, "refuses"), rules)
    if "values" in keys:
        entries = _entries(_at(item, "values"), "values")
        found["values"] = {
            name: _filling(value, seed) for seed, (name, value) in enumerate(entries)
        }
    if "shape" in keys:
        found["shape"] = {n: _shape(v) for n, v in _entries(_at(item, "shape"), "shape")}
    if "sizes" in keys:
        found["sizes"] = {n: _sizes(v, n) for n, v in _entries(_at(item, "sizes"), "sizes")}
    for key in ("assume", "allow"):
        if key in keys:
            found[key] = tuple(_text(value) for value in _list(_at(item, key), key))
    if "opsets" in keys:
        found["opsets"] = _integers(_at(item, "opsets"), "opsets")
    if "tolerance" in keys:
        found["tolerance"] = _above_zero(_at(item, "tolerance"), "tolerance")
    if "differs" in keys:
        found["differs"] = _reason(_at(item, "differs"), "differs")
    found["places"] = {
        key: {name: _at(item, key).key_location(name) for name in found[key]}
        for key in ("values", "sizes")
        if key in keys
    }
    found["keys"] = {key: _at(item, key).location for key in keys}
    return Case(**found)


def _model_text(value: Value) -> Text:
    _text(value)
    return Text(value.source, value.location)


def _fires(value: Value, rules: Sequence[str]) -> dict[str, int]:
    """`fires: RULE` for once, or `fires: {RULE: TIMES}`."""
    if isinstance(value.content, str):
        _known_rule(value.content, value.location, rules)
        return {value.content: 1}
    counts = {}
    for name, times in _entries(value, "fires"):
        _known_rule(name, value.key_location(name), rules)
        if type(times.content) is not int or times.content < 1:
            raise _wrong(times, f"fires.{name}", "a count of 1 or more")
        counts[name] = times.content
    return counts


def _refusal(value: Value, rules: Sequence[str]) -> Refusal:
    if isinstance(value.content, str):
        raise RecipeError(
            "`refuses` is not a mapping",
            where=value.location,
            mend=f"Write `refuses: {{rule: {value.content}, because: ...}}`, a part of the reason.",
        )
    _mapping(value, REFUSAL_KEYS, required=REFUSAL_KEYS, what="refuses")
    rule = _at(value, "rule")
    _known_rule(_text(rule), rule.location, rules)
    return Refusal(_text(rule), _reason(_at(value, "because"), "because"))


def _reason(value: Value, what: str) -> str:
    """Words of a reason: so many that not every reason holds them."""
    words = _text(value).strip()
    if len(words) < LEAST:
        raise _wrong(value, what, f"a part of the reason, of {LEAST} letters or more")
    return words


def _filling(value: Value, seed: int) -> Filling:
    keys = _mapping(value, FILLING_KEYS, required=(), what="values")
    between: tuple[float, float] | None = None
    if "between" in keys:
        items = _list(_at(value, "between"), "between")
        if len(items) != 2:
            raise _wrong(_at(value, "between"), "between", "two numbers")
        between = (_number(items[0], "between"), _number(items[1], "between"))
        if between[0] > between[1]:
            raise _wrong(_at(value, "between"), "between", "two numbers, the lower one first")
        if "scale" in keys:
            raise RecipeError(
                "`scale` is of normal numbers, and `between` of uniform ones",
                where=value.key_location("scale"),
                mend="Leave one of them out.",
            )
    chosen = _at(value, "seed").content if "seed" in keys else seed
    if type(chosen) is not int or chosen < 0:
        raise _wrong(_at(value, "seed"), "seed", "an integer of 0 or more")
    scale = _above_zero(_at(value, "scale"), "scale") if "scale" in keys else 1.0
    return Filling(chosen, scale, between)


def _shape(value: Value) -> tuple[int | str, ...]:
    dims: list[int | str] = []
    for item in _list(value, "shape"):
        if type(item.content) is not int and not isinstance(item.content, str):
            raise _wrong(item, "a dimension", "a number or a name")
        dims.append(item.content)
    return tuple(dims)


def _integers(value: Value, what: str) -> tuple[int, ...]:
    items = _list(value, what)
    for item in items:
        if type(item.content) is not int:
            raise _wrong(item, what, "a list of integers")
    if not items:
        raise _wrong(value, what, "a list with something in it")
    return tuple(item.content for item in items if isinstance(item.content, int))


def _sizes(value: Value, what: str) -> tuple[int, ...]:
    sizes = _integers(value, what)
    if not all(0 <= size < 2**31 for size in sizes):
        raise _wrong(value, what, "a list of sizes, each of 0 or more and below 2^31")
    return sizes


def _known_rule(name: str, where: Location, rules: Sequence[str]) -> None:
    if name not in rules:
        raise RecipeError(
            f"the recipe has no rule `{name}`", where=where, mend=suggest(name, rules)
        )


def _mapping(value: Value, known: Sequence[str], *, required: Sequence[str], what: str) -> set[str]:
    if not isinstance(value.content, Mapping):
        raise _wrong(value, what, "a mapping")
    for key in value.content:
        if key not in known:
            raise RecipeError(
                f"unknown key `{key}`", where=value.key_location(key), mend=suggest(key, known)
            )
    for key in required:
        if key not in value.content:
            raise RecipeError(
                f"the key `{key}` is missing", where=value.location, mend=f"Add `{key}: ...`."
            )
    return set(value.content)


def _entries(value: Value, what: str) -> list[tuple[str, Value]]:
    if not isinstance(value.content, Mapping):
        raise _wrong(value, what, "a mapping")
    return [(key, entry.value) for key, entry in value.content.items()]


def _list(value: Value, what: str) -> tuple[Value, ...]:
    if not isinstance(value.content, tuple):
        raise _wrong(value, what, "a list")
    return value.content


def _at(value: Value, key: str) -> Value:
    found = value.find(key)
    assert found is not None, "its keys were checked"
    return found


def _text(value: Value) -> str:
    if not isinstance(value.content, str):
        raise _wrong(value, "this", "text")
    return value.content


def _number(value: Value, what: str) -> float:
    if isinstance(value.content, bool) or not isinstance(value.content, (int, float)):
        raise _wrong(value, what, "a number")
    if not -LARGEST <= value.content <= LARGEST:  # neither is NaN
        raise _wrong(value, what, "a finite number")
    return float(value.content)


def _above_zero(value: Value, what: str) -> float:
    number = _number(value, what)
    if number <= 0:
        raise _wrong(value, what, "a number above 0")
    return number


def _wrong(value: Value, what: str, wanted: str) -> RecipeError:
    subject = what if " " in what else f"`{what}`"
    return RecipeError(
        f"{subject} is not {wanted}", where=value.location, mend=f"Write {wanted} here."
    )
