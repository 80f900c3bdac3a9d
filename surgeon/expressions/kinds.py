"""Comparisons that are decided before any model is read, since what they compare is of two kinds.

A condition that is never true is a rule that never fires, and nobody is told why.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator, Mapping
from types import MappingProxyType

from surgeon.functions.values import DTYPES, dtype_meant

NUMBER, TEXT, LIST, TRUTH = "a number", "a text", "a list", "true or false"

_OF_PROPERTIES: Mapping[str, str] = MappingProxyType(
    {
        "shape": LIST,
        "rank": NUMBER,
        "dtype": TEXT,
        "consumers": NUMBER,
        "is_constant": TRUTH,
        "maker": TEXT,
        "name": TEXT,
        "node": TEXT,
        "attributes": LIST,
        "views": LIST,
    }
)
_ITEMS: Mapping[str, str] = MappingProxyType({"shape": NUMBER, "attributes": TEXT, "views": LIST})


def kind_of(node: ast.expr) -> str:
    """What kind of value an expression has, where its text alone tells; else ""."""
    match node:
        case ast.Constant(value=bool()):
            return TRUTH
        case ast.Constant(value=int() | float()):
            return NUMBER
        case ast.Constant(value=str()):
            return TEXT
        case ast.List() | ast.Tuple() | ast.ListComp():
            return LIST
        case ast.Name(id=name) if name in DTYPES:
            return TEXT
        case ast.Attribute(attr=name):
            return _OF_PROPERTIES.get(name, "")
        case ast.Subscript(value=ast.Attribute(attr=name), slice=index):
            plain = not isinstance(index, ast.Slice | ast.Tuple)
            return _ITEMS.get(name, "") if plain else _OF_PROPERTIES.get(name, "")
        case ast.Call(func=ast.Name(id="len")):
            return NUMBER
        case _:
            return ""


def is_count(node: ast.expr) -> bool:
    """Whether an expression counts something, as a rank and a size do."""
    match node:
        case ast.Attribute(attr="rank" | "consumers") | ast.Call(func=ast.Name(id="len")):
            return True
        case ast.Subscript(value=ast.Attribute(attr="shape"), slice=index):
            return not isinstance(index, ast.Slice | ast.Tuple)
        case _:
            return False


def number_of(node: ast.expr) -> int | float | None:
    """The finite number that is written here; else None."""
    match node:
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            number = number_of(inner)
            return None if number is None else -number
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            return number if abs(number) < math.inf else None
        case _:
            return None


def faults(symbol: str, left: ast.expr, right: ast.expr) -> Iterator[tuple[ast.expr, str, str]]:
    """Why a comparison has one answer whatever the model: the operand, the fault and the mend.

    Args:
        symbol: As `==`.
        left: The first operand.
        right: The second.
    """
    if symbol in ("in", "not in"):
        if kind_of(right) in (NUMBER, TRUTH):
            what = f"nothing is in `{ast.unparse(right)}`, which is {kind_of(right)}"
            yield right, what, f"Write a list: `[{ast.unparse(right)}]`."
        for item in right.elts if isinstance(right, ast.List | ast.Tuple) else ():
            yield from faults("==", left, item)
        return
    kinds = kind_of(left), kind_of(right)
    if TRUTH not in kinds and all(kinds) and kinds[0] != kinds[1]:
        texts = ast.unparse(left), ast.unparse(right)
        what = f"`{texts[0]}` is {kinds[0]} and `{texts[1]}` {kinds[1]}: they are never equal"
        if symbol not in ("==", "!="):
            what = what.replace("never equal", "in no order")
        yield (
            right,
            what,
            _mend(left, right) or _mend(right, left) or "Compare what is of one kind.",
        )
    for one, other in ((left, right), (right, left)):
        match one, other:
            case ast.Attribute(attr="dtype"), ast.Constant(value=str(name)) if name not in DTYPES:
                yield other, f"`{name}` is no element type", dtype_meant(name)


def _mend(left: ast.expr, right: ast.expr) -> str:
    """How the right one is to be written, where that is plain."""
    match left, right:
        case ast.Attribute(attr="shape", value=value), _ if kind_of(right) == NUMBER:
            return f"Write `{ast.unparse(value)}.rank`, or one size: `{ast.unparse(left)}[0]`."
        case ast.Subscript(value=ast.Attribute(attr="shape")), _ if kind_of(right) == TEXT:
            return "Compare a size with a number, or with that of another value."
        case _, ast.Constant(value=str(text)) if kind_of(left) == NUMBER and _is_number(text):
            return f"Write `{text}`."
    return ""


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def makers_in(left: ast.expr, right: ast.expr) -> Iterator[tuple[ast.expr, str]]:
    """The texts that the `.maker` of a value is compared with, or looked for among."""
    for one, other in ((left, right), (right, left)):
        if isinstance(one, ast.Attribute) and one.attr == "maker":
            items = other.elts if isinstance(other, ast.List | ast.Tuple) else [other]
            yield from (
                (each, each.value)
                for each in items
                if isinstance(each, ast.Constant) and isinstance(each.value, str)
            )
