"""TorchScript's arithmetic of numbers with fractions, which are doubles as Python's are.

The tensors of ATen's operators of the same names are another thing: a double beside whole numbers
is in single precision there, and 100 * 0.29 is 29 and not a little less.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from surgeon.builders.aten_scripts.operands import required, scalar
from surgeon.builders.bench import TYPE, Bench
from surgeon.facts.kinds import FLOATS
from surgeon.match import Match
from surgeon.rewrite import Draft, Refused

_MIXED = ("float", "int_float", "float_int")
# The overloads of numbers, of whole ones alone where fractions come of them.
_ARITHMETIC: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("add", "sub", "mul"), _MIXED),
    "div": ("int", "float"),
    "pow": ("int", *_MIXED, "Scalar_Scalar"),
}
_OPERATORS: Mapping[str, str] = {
    "add": "Add",
    "sub": "Sub",
    "mul": "Mul",
    "div": "Div",
    "pow": "Pow",
    "floor": "Floor",
    "ceil": "Ceil",
}
_TO_WHOLE = ("int", "float", "Scalar")  # the overloads of `floor` and `ceil`


def script_fraction(draft: Draft, match: Match) -> Any:
    """Arithmetic of Python's numbers in double precision; `floor` and `ceil` give whole ones."""
    c, node = Bench(draft), match.root
    overloads = _ARITHMETIC.get(node.op, _TO_WHOLE)
    if node.attrs.get("overload") not in overloads:
        raise Refused("it is no arithmetic of Python's fractions")
    given = [required(node, index) for index in range(len(node.inputs))]
    kinds = {c.dtype(x) for x in given}
    if kinds & FLOATS - {TYPE.DOUBLE}:
        raise Refused("one of its numbers is in another precision than Python's")
    numbers = [scalar(c, x, TYPE.DOUBLE) for x in given]
    if overloads is not _TO_WHOLE:
        return c.op(_OPERATORS[node.op], *numbers)
    if not kinds & FLOATS:
        return scalar(c, given[0], TYPE.INT64)
    return c.op("Cast", c.op(_OPERATORS[node.op], *numbers), to=TYPE.INT64)
