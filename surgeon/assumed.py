"""What is assumed of dimensions, as texts say it: `t % 32 == 0`, `h == w`, `t >= 64`."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from surgeon import dims
from surgeon.dims import Dim
from surgeon.document import suggest
from surgeon.errors import RecipeError
from surgeon.numerals import NO_LENGTH

_NAME = r"([A-Za-z_][\w.\-/:]*)"
_NUMBER = r"([0-9]{1,10})"
_FORMS = (
    (re.compile(rf"^{_NAME}\s*%\s*{_NUMBER}\s*==\s*0$"), "multiple"),
    (re.compile(rf"^{_NAME}\s*%\s*{_NUMBER}\s*==\s*{_NUMBER}$"), "remainder"),
    (re.compile(rf"^{_NAME}\s*==\s*{_NUMBER}$"), "number"),
    (re.compile(rf"^{_NAME}\s*==\s*{_NAME}$"), "same"),
    (re.compile(rf"^{_NAME}\s*>=\s*{_NUMBER}$"), "least"),
    (re.compile(rf"^{_NAME}\s*>\s*{_NUMBER}$"), "more"),
    (re.compile(rf"^{_NAME}\s*<=\s*{_NUMBER}$"), "most"),
    (re.compile(rf"^{_NAME}\s*<\s*{_NUMBER}$"), "less"),
)
_OF_FORMULA = re.compile(rf"^(\S.*?)\s*==\s*{_NUMBER}$")
_LONGEST = 200  # characters of a name that is looked at as a formula
_ARITHMETIC: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
}
_HOLDS = {"least": operator.ge, "more": operator.gt, "most": operator.le, "less": operator.lt}


def assumed(
    known: set[str], assume: Sequence[str], numbers: Mapping[str, int]
) -> tuple[dict[str, Dim], dict[str, tuple[int, ...] | str]]:
    """What stands for each dimension of which something is said, or its name says something.

    Beside it sizes of those of which something is said.

    Args:
        known: The dimensions.
        assume: What is assumed of them.
        numbers: Those that have a number, whatever is assumed.

    Raises:
        RecipeError: Something cannot be used, or not with the rest.
    """
    symbols: dict[str, Dim] = {}
    sizes: dict[str, tuple[int, ...] | str] = {}
    said: dict[str, dict[str, tuple[str, ...]]] = {}
    for text in assume:
        form, match = _read(text, known)
        name, other = match.group(1), match.group(2)
        for used in [name, other] if form == "same" else [name]:
            if used not in known:
                raise RecipeError(
                    f"no input has a dimension named `{used}`",
                    where="--assume",
                    mend=suggest(used, known) or f"The dimensions are {', '.join(sorted(known))}.",
                )
        kind = {"remainder": "multiple", "more": "least", "less": "most"}.get(form, form)
        about = said.setdefault(name, {})
        if kind in about or (about and {"number", "same"} & {kind, *about}):
            raise RecipeError(
                f"two assumptions about `{name}` do not go together: `{text}` is the second",
                where="--assume",
                mend="Give one that says both.",
            )
        off = {"more": 1, "less": -1}.get(form)
        about[kind] = match.groups()[1:] if off is None else (str(int(other) + off),)
    for name, about in said.items():
        symbols[name], sizes[name] = _said(name, about)
        if not sizes[name]:
            raise RecipeError(
                f"no size of `{name}` meets what is assumed of it",
                where="--assume",
                mend="Give bounds that leave one.",
            )
    symbols |= numbers
    whole = {name: dims.substitute(value, symbols) for name, value in symbols.items()}
    whole |= _formulas(known, whole)
    fixed = {name: (value,) for name, value in whole.items() if isinstance(value, int)}
    return whole, sizes | fixed


def formula_value(text: str, numbers: Mapping[str, int]) -> int | None:
    """What a formula of names gives, in `+`, `-`, `*` and `//`; None of anything else.

    Args:
        text: What may be one, the name of a dimension say.
        numbers: By name; of another name there is no value.
    """
    found: int | None = _computed(text, numbers)
    return found


def follows(text: str) -> bool:
    """Whether a formula gives a size whatever those in it are: a sum, a product."""
    return not set("-/") & set(text)


def _formulas(known: Collection[str], symbols: Mapping[str, Dim]) -> dict[str, Dim]:
    """Dimensions that are called by a formula of others: what they are, by their names.

    `past_sequence_length + sequence_length` is what optimum calls the length of a mask, `s0 + s1`
    what `torch.export` does. Differences and quotients are known of numbers alone.

    Args:
        known: The dimensions.
        symbols: What stands for those of which something is known.
    """
    values = {name: symbols.get(name, dims.symbol(name)) for name in known}
    numbers = {name: value for name, value in symbols.items() if isinstance(value, int)}
    found = {}
    for name in known:
        value = _computed(name, values if follows(name) else numbers)
        lacks = isinstance(value, int) and not 0 <= value < NO_LENGTH
        if name not in symbols and value is not None and not lacks:
            found[name] = value
    return found


def _computed(text: str, values: Mapping[str, Any]) -> Any:
    """What a formula of names gives; None where it is none, or not of these names."""
    if len(text) > _LONGEST:
        return None
    try:
        formula = ast.parse(text.strip(), mode="eval").body
        named = any(isinstance(part, ast.Name) for part in ast.walk(formula))
        return _of(formula, values) if named and isinstance(formula, ast.BinOp) else None
    except (KeyError, SyntaxError, ValueError, ZeroDivisionError):
        return None


def _of(node: ast.expr, values: Mapping[str, Any]) -> Any:
    if isinstance(node, ast.Name):
        return values[node.id]
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    if isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC:
        return _ARITHMETIC[type(node.op)](_of(node.left, values), _of(node.right, values))
    raise ValueError(ast.dump(node))


def _read(text: str, known: Collection[str]) -> tuple[str, re.Match[str]]:
    """The form of an assumption, and its parts.

    Args:
        text: The assumption.
        known: Names, those that are formulas too.

    Raises:
        RecipeError: It has none of the forms.
    """
    formula = _OF_FORMULA.match(text.strip())
    if formula and formula[1] in known and int(formula[2]) < NO_LENGTH:
        return "number", formula
    for pattern, form in _FORMS:
        match = pattern.match(text.strip())
        if match and form == "same":
            return form, match
        if match and _possible(form, *(int(number) for number in match.groups()[1:])):
            return form, match
    raise RecipeError(
        f"surgeon cannot use the assumption `{text}`",
        where="--assume",
        mend="Write it as `t % 32 == 0`, `t == 64`, `h == w`, `t >= 16` or `t <= 512`.",
    )


def _possible(form: str, number: int, rest: int = 0) -> bool:
    """Whether lengths are of these numbers, and a remainder is below what is divided by."""
    return number < NO_LENGTH and (rest < number or form not in ("multiple", "remainder"))


def _said(name: str, about: Mapping[str, Sequence[str]]) -> tuple[Dim, tuple[int, ...] | str]:
    """What stands for a dimension, and sizes that meet what is said about it."""
    if "same" in about:
        return dims.symbol(about["same"][0]), about["same"][0]
    if "number" in about:
        number = int(about["number"][0])
        return number, (number,)
    least = int(about["least"][0]) if "least" in about else 0
    most = int(about["most"][0]) if "most" in about else None
    step, rest = 1, 0
    if "multiple" in about:
        step, *more = (int(n) for n in about["multiple"])
        rest = more[0] if more else 0
    first = max(0, -((rest - least) // step))  # the least n with step * n + rest >= least
    begin = max(first, 1)
    tries: tuple[int, ...] = tuple(step * n + rest for n in range(begin, begin + 3))
    if "multiple" not in about:
        tries = (max(least, 1), least + 1, least + 7)
    high = None if most is None else (most - rest) // step - first
    symbol = dims.symbol(_named(name, about, first, most), 0, high)
    sizes = tuple(n for n in tries if most is None or n <= most)
    if high is not None and high >= 0 and len(set(sizes)) < len(tries):
        sizes = tuple(dict.fromkeys([*sizes, step * (first + high) + rest]))
    return (symbol + first) * step + rest, sizes


def _named(name: str, about: Mapping[str, Sequence[str]], first: int, most: int | None) -> str:
    """The symbol for what is over the least value, in steps: another for each thing assumed."""
    text = f"{name}/{about['multiple'][0]}" if "multiple" in about else name
    if first or ("multiple" not in about and "least" in about):
        text += f"-{first}"
    return text if most is None else f"{text}<={most}"


def unmet(assume: Sequence[str], sizes: Mapping[str, int], known: Collection[str]) -> str | None:
    """The first assumption that sizes contradict.

    Args:
        assume: What is assumed.
        sizes: By name; names without one contradict nothing.
        known: The dimensions.
    """
    for text in assume:
        form, match = _read(text, known)
        name, *rest = match.groups()
        if name not in sizes or (form == "same" and rest[0] not in sizes):
            continue
        size, number = sizes[name], sizes[rest[0]] if form == "same" else int(rest[0])
        if form in ("multiple", "remainder"):
            holds = size % number == int(rest[1] if form == "remainder" else 0)
        else:
            holds = _HOLDS.get(form, operator.eq)(size, number)
        if not holds:
            return text
    return None
