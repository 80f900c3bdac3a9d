"""What is asked of dimensions: equality, their symbols, their values, the target of a Reshape."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache

from surgeon.dims.atoms import Atom, TooLarge
from surgeon.dims.polynomials import (
    Dim,
    Expr,
    at_most,
    floor_divide,
    maximum,
    minimum,
    of_atom,
)

_COMBINE: Mapping[str, Callable[[int, int], int]] = {
    "floor": operator.floordiv,
    "max": max,
    "min": min,
}


def equal(first: Dim, second: Dim) -> bool | None:
    """Whether the two are equal for every value of their symbols; None if that is not provable.

    False means that they differ for *every* value.
    """
    if first == second:
        return True
    if isinstance(first, int) and isinstance(second, int):
        return False
    try:
        difference = first - second
    except TooLarge:
        return None
    if isinstance(difference, int):
        return difference == 0
    constant = sum(factor for monomial, factor in difference.terms if not monomial)
    shared = math.gcd(*(factor for monomial, factor in difference.terms if monomial))
    if constant % shared or at_most(1, difference) or at_most(difference, -1):
        return False
    return None


def is_cut_off(dim: Dim, whole: Dim) -> bool:
    """Whether `dim` is `whole`, but a number of 1 or more where that is less.

    So long is a table that is cut to the length of something. The two broadcast to `whole`: where
    the number is less it is 1, or they do not broadcast at all.
    """
    if isinstance(dim, int) or len(dim.terms) != 1:
        return False
    monomial, factor = dim.terms[0]
    if factor != 1 or len(monomial) != 1 or monomial[0][1] != 1 or monomial[0][0].kind != "min":
        return False
    operands = monomial[0][0].operands
    rest = [other for other in operands if other != whole]
    return len(rest) == 1 and isinstance(rest[0], int) and rest[0] >= 1


def symbols(dim: Dim) -> frozenset[str]:
    """The names of the symbols that the value depends on."""
    return frozenset(limits(dim))


def named(dim: Dim) -> str | None:
    """The name of the symbol that a dim is; None where it is a number, or computed."""
    match () if isinstance(dim, int) else dim.terms:
        case ((((Atom(is_symbol=True, text=name), 1),), 1),):
            return name
    return None


def limits(dim: Dim) -> dict[str, int | None]:
    """The symbols that the value depends on, each with the greatest number it may be, or None."""
    return {atom.text: atom.high for atom in _symbols(dim)}


def counts(dim: Dim) -> frozenset[str]:
    """Those of its symbols that say how often something holds, which the data decide."""
    return frozenset(atom.text for atom in _symbols(dim) if atom.kind == "counted")


def _symbols(dim: Dim) -> tuple[Atom, ...]:
    return () if isinstance(dim, int) else _symbols_of(dim)


@lru_cache(maxsize=1 << 14)  # what is nested is asked again and again
def _symbols_of(dim: Expr) -> tuple[Atom, ...]:
    found: dict[Atom, None] = {}
    for monomial, _ in dim.terms:
        for atom, _power in monomial:
            if atom.is_symbol:
                found[atom] = None
            for operand in atom.operands:
                found.update(dict.fromkeys(_symbols(operand)))
    return tuple(found)


def substitute(dim: Dim, values: Mapping[str, Dim]) -> Dim:
    """The value with symbols replaced; a symbol without an entry stays."""
    if isinstance(dim, int):
        return dim
    total: Dim = 0
    for monomial, factor in dim.terms:
        term: Dim = factor
        for atom, power in monomial:
            value = _substitute_atom(atom, values)
            for _ in range(power):
                term = term * value
        total = total + term
    return total


def evaluate(dim: Dim, values: Mapping[str, int]) -> int:
    """The number that the value is at the given symbols.

    Raises:
        KeyError: A symbol has no entry; names it.
        ValueError: It is a number divided by 0 there.
    """
    if open_ := symbols(dim) - values.keys():  # bounds of what is left would take their time
        raise KeyError(min(open_))
    try:
        return _number(dim, values, {})
    except ZeroDivisionError as error:
        raise ValueError(str(error)) from None


def _number(dim: Dim, values: Mapping[str, int], known: dict[Atom, int]) -> int:
    """The number that the value is; each atom is computed once, however often it stands there."""
    if isinstance(dim, int):
        return dim
    total = 0
    for monomial, factor in dim.terms:
        for atom, power in monomial:
            if atom not in known:
                operands = [_number(operand, values, known) for operand in atom.operands]
                known[atom] = _COMBINE[atom.kind](*operands) if operands else values[atom.text]
            factor *= known[atom] ** power
        total += factor
    return total


def constant_target(source: Sequence[Dim], wanted: Sequence[Dim]) -> list[int] | None:
    """A constant second operand of Reshape that turns `source` into `wanted`; None without one.

    The element counts must agree. 0 copies the dimension in the same place; at most one is -1, and
    none beside a length that may be 0 (`infers`): without elements any length would do.
    """
    target: list[int] = []
    for axis, dim in enumerate(wanted):
        if isinstance(dim, int) and dim != 0:
            target.append(dim)
        elif axis < len(source) and equal(source[axis], dim) is True:
            target.append(0)
        elif -1 not in target and dim != 0:
            target.append(-1)
        else:
            return None
    return None if -1 in target and not infers(source, wanted, target.index(-1)) else target


def infers(source: Sequence[Dim], wanted: Sequence[Dim], axis: int) -> bool:
    """Whether a Reshape of `source` finds the length of this axis of `wanted` from the others.

    None of them may be 0, and none is where `source` has elements.
    """
    others = [dim for place, dim in enumerate(wanted) if place != axis]
    return all(map(is_filled, others)) or all(map(is_filled, source))


def is_filled(dim: Dim) -> bool:
    """Whether a length is 0 in no model whose inputs have elements.

    So symbols are taken for 1 or more. But `b // 2` is 0 where b is 1, and a mask may hold nowhere.
    """
    whole = {a.text: of_atom(a) + 1 for a in _symbols(dim) if a.kind == "symbol"}
    try:
        return at_most(1, substitute(dim, whole)) is True
    except TooLarge:
        return False


def solve(dim: Dim) -> tuple[str, int] | None:
    """The symbol and its only value where `dim == 0`, if that is a*symbol + b; else None."""
    if isinstance(dim, int):
        return None
    constant = sum(factor for monomial, factor in dim.terms if not monomial)
    rest = [(monomial, factor) for monomial, factor in dim.terms if monomial]
    if len(rest) != 1 or len(rest[0][0]) != 1 or constant % rest[0][1]:
        return None
    (atom, power), factor = rest[0][0][0], rest[0][1]
    if power != 1 or not atom.is_symbol:
        return None
    return atom.text, -constant // factor


def product(dims: Iterable[Dim]) -> Dim:
    """The product; 1 for none."""
    total: Dim = 1
    for dim in dims:
        total = total * dim
    return total


def _substitute_atom(atom: Atom, values: Mapping[str, Dim]) -> Dim:
    if atom.is_symbol:
        return values.get(atom.text, of_atom(atom))
    operands = [substitute(operand, values) for operand in atom.operands]
    combine: Callable[[Dim, Dim], Dim] = {
        "floor": floor_divide,
        "max": maximum,
        "min": minimum,
    }[atom.kind]
    return combine(operands[0], operands[1])
