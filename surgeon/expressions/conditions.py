"""What is wrong with a list of conditions whatever the model: they ask nothing, or exclude others.

A rule with such a list never fires, or as if the condition were not there, and nobody is told why.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from surgeon.errors import RecipeError
from surgeon.expressions import Expression
from surgeon.expressions.kinds import LIST, NUMBER, TEXT, is_count, kind_of, number_of


def check_conditions(conditions: Sequence[Expression]) -> None:
    """See that each condition can be true in some model and false in another, and all together.

    Raises:
        RecipeError: That is plainly not so; names the place of the condition.
    """
    wanted: dict[str, tuple[str, Expression]] = {}  # what is to be which constant
    for condition in conditions:
        tree = ast.parse(condition.text, mode="eval").body
        _check_asks(condition, tree)
        for part in _parts(tree):
            if what := _never_counted(part):
                raise RecipeError(what, where=condition.location, mend="Compare it with another.")
            match part:
                case ast.Compare(left=left, ops=[ast.Eq()], comparators=[right]):
                    subject, constant = _constant(left, right)
                    if not subject:
                        continue
                    value, first = wanted.setdefault(subject, (constant, condition))
                    if value != constant:
                        raise RecipeError(
                            f"`{subject}` cannot be both {value} and {constant}",
                            where=condition.location,
                            mend=f"Write `{subject} in [{value}, {constant}]`, or two rules; the "
                            f"other condition is in line {first.location.line}.",
                        )


def _check_asks(condition: Expression, tree: ast.expr) -> None:
    kind = kind_of(tree)
    if kind in (NUMBER, TEXT, LIST):
        raise RecipeError(
            f"`{condition.text}` is {kind}, and no condition: it is never true",
            where=condition.location,
            mend="Compare it: `... == ...`.",
        )
    calls = any(isinstance(node, ast.Call) for node in ast.walk(tree))
    if not condition.names and not calls and condition.text != "True":  # which a YAML may say
        raise RecipeError(
            f"`{condition.text}` is the same whatever the model",
            where=condition.location,
            mend="Ask something of a name of the match, or take the condition out.",
        )


_SYMBOLS: Mapping[type[ast.cmpop], str] = MappingProxyType(
    {ast.Eq: "==", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}
)
_TURNED: Mapping[str, str] = MappingProxyType({"<": ">", ">": "<", "<=": ">=", ">=": "<="})


def _never_counted(part: ast.expr) -> str:
    """Why what counts something is never so: it is a whole number, and not below 0; or nothing."""
    match part:
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            symbol = _SYMBOLS.get(type(op), "")
            if is_count(right):
                left, right, symbol = right, left, _TURNED.get(symbol, symbol)
            number = number_of(right) if is_count(left) else None
            if number is None:
                return ""
            if symbol == "==" and number != int(number):
                return f"`{ast.unparse(left)}` is a whole number, and never {number}"
            if (symbol in ("==", "<=") and number < 0) or (symbol == "<" and number <= 0):
                return f"`{ast.unparse(left)}` is never below 0"
    return ""


def _parts(tree: ast.expr) -> Iterator[ast.expr]:
    """The conditions that have to hold for this one to hold."""
    if isinstance(tree, ast.BoolOp) and isinstance(tree.op, ast.And):
        for value in tree.values:
            yield from _parts(value)
    else:
        yield tree


def _constant(left: ast.expr, right: ast.expr) -> tuple[str, str]:
    """What is compared with a number or a text, and that; nothing where it is not so."""
    for one, other in ((left, right), (right, left)):
        text = isinstance(other, ast.Constant) and isinstance(other.value, str)
        if text or (number_of(other) is not None and isinstance(number_of(other), int)):
            return ast.unparse(one), ast.unparse(other)
    return "", ""
