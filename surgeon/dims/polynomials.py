"""Dimensions and their arithmetic, with the proofs that it needs: bounds and comparisons."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import lru_cache
from typing import TypeAlias, Union

from surgeon.dims import atoms
from surgeon.dims.atoms import Atom, Monomial, Term, TooLarge

Dim: TypeAlias = Union[int, "Expr"]

_SPLITS = 6  # how many nested atoms a comparison may open before it gives up
_KEPT = 20_000  # answers: blocks of a network repeat, and each split asks twice as much


class Expr:
    """A polynomial with integer coefficients that is no plain integer. Immutable, hashable."""

    __slots__ = ("_hash", "_text", "terms")

    def __init__(self, terms: tuple[Term, ...]) -> None:
        self.terms = terms
        self._hash = hash(terms)
        self._text: str | None = None

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, Expr) and self._hash == other._hash and self.terms == other.terms
        )

    def __str__(self) -> str:
        if self._text is None:
            self._text = atoms.text_of(self.terms)
        return self._text

    __repr__ = __str__

    def __add__(self, other: Dim) -> Dim:
        if isinstance(other, int):
            if other == 0:
                return self
            return _normal([*self.terms, ((), int(other))])
        return _normal([*self.terms, *other.terms]) if isinstance(other, Expr) else NotImplemented

    __radd__ = __add__

    def __neg__(self) -> Expr:
        return Expr(tuple((monomial, -factor) for monomial, factor in self.terms))

    def __sub__(self, other: Dim) -> Dim:
        return self + -other

    def __rsub__(self, other: Dim) -> Dim:
        return -self + other

    def __mul__(self, other: Dim) -> Dim:
        if isinstance(other, int):
            if other == 0:
                return 0
            return Expr(tuple((monomial, factor * int(other)) for monomial, factor in self.terms))
        if not isinstance(other, Expr):
            return NotImplemented
        return _normal(
            (atoms.times(left, right), a * b) for left, a in self.terms for right, b in other.terms
        )

    __rmul__ = __mul__

    def __floordiv__(self, other: Dim) -> Dim:
        return floor_divide(self, other)

    def __rfloordiv__(self, other: Dim) -> Dim:
        return floor_divide(other, self)

    def __mod__(self, other: Dim) -> Dim:
        return self - floor_divide(self, other) * other

    def __rmod__(self, other: Dim) -> Dim:
        return other - floor_divide(other, self) * self


def symbol(
    name: str, low: int | None = 0, high: int | None = None, *, kind: str = "symbol"
) -> Expr:
    """A named integer, by default a dimension's: at least 0. One name must keep its bounds.

    Its kind is `symbol` where it is 0 in no model whose inputs have elements, `counted` where it
    says how often something holds, which is 0 for some data, and `open` where neither is known.
    """
    return of_atom(Atom(kind, name, (), low, high))


def floor_divide(dividend: Dim, divisor: Dim) -> Dim:
    """`floor(dividend / divisor)`, exact where the division is.

    Where an exact quotient exists it is taken, also when the divisor could be 0: the original
    has no value there.

    Raises:
        ZeroDivisionError: The divisor is 0.
    """
    if isinstance(divisor, Expr):
        quotient = exact_quotient(dividend, divisor)
        if quotient is not None:
            return quotient
        least = bounds(divisor)[0]
        if least is not None and least >= 0 and dividend in (-1, divisor - 1):
            return -1 if dividend == -1 else 0  # of 1 or more: there is no value for 0
        return _floor_atom(dividend, divisor)
    if divisor < 0:
        dividend, divisor = -dividend, -divisor
    if isinstance(dividend, int):
        return dividend // divisor
    whole: list[Term] = []
    rest: list[Term] = []
    for monomial, factor in dividend.terms:
        quotient, remainder = divmod(factor, divisor)
        whole.append((monomial, quotient))
        rest.append((monomial, remainder))
    remainder_ = _normal(rest)
    if isinstance(remainder_, int):
        return _normal([*whole, ((), remainder_ // divisor)])
    shared = math.gcd(divisor, *(factor for monomial, factor in remainder_.terms if monomial))
    if shared > 1:
        # floor((g*r + c) / (g*m)) = floor((r + floor(c / g)) / m)
        remainder_ = _normal((monomial, factor // shared) for monomial, factor in remainder_.terms)
        divisor //= shared
        if divisor == 1 or isinstance(remainder_, int):
            return _normal(whole) + floor_divide(remainder_, divisor)
    for monomial, factor in remainder_.terms:
        # floor((c + floor(a / m)) / n) = floor((a + c*m) / (m*n)) for integer c, positive m and n
        if factor == 1 and len(monomial) == 1 and monomial[0][1] == 1:
            atom = monomial[0][0]
            if atom.kind == "floor" and isinstance(atom.operands[1], int):
                inner, by = atom.operands[0], atom.operands[1]
                others = remainder_ - of_atom(atom)
                return _normal(whole) + floor_divide(inner + others * by, by * divisor)
    low, high = bounds(remainder_)
    if low is not None and high is not None and low // divisor == high // divisor:
        return _normal(whole) + low // divisor
    return _normal(whole) + _floor_atom(remainder_, divisor)


def exact_quotient(dividend: Dim, divisor: Dim) -> Dim | None:
    """The polynomial `q` with `q * divisor == dividend`, or None where there is none."""
    if dividend == 0:
        return 0
    if isinstance(divisor, int):
        if divisor == 0:
            return None
        if isinstance(dividend, int):
            return dividend // divisor if dividend % divisor == 0 else None
        if any(factor % divisor for _, factor in dividend.terms):
            return None
        return Expr(tuple((monomial, factor // divisor) for monomial, factor in dividend.terms))
    quotient: Dim = 0
    rest: Dim = dividend
    lead, by = _leading(divisor)
    try:
        for _ in range(64):
            if rest == 0:
                return quotient
            top, factor = _leading(rest)
            monomial = atoms.over(top, lead)
            if monomial is None or factor % by:
                return None
            step = _normal([(monomial, factor // by)])
            quotient = quotient + step
            rest = rest - step * divisor
    except TooLarge:
        pass
    return None


def maximum(first: Dim, second: Dim) -> Dim:
    """The greater of the two, as one of them where that is provable."""
    return _extreme("max", first, second)


def minimum(first: Dim, second: Dim) -> Dim:
    """The lesser of the two, as one of them where that is provable."""
    return _extreme("min", first, second)


def at_most(first: Dim, second: Dim) -> bool | None:
    """Whether `first <= second` for every value (True), for none (False); None: not provable."""
    if first == second:
        return True
    try:
        difference = second - first
        if isinstance(difference, int):
            return difference >= 0
        if not_negative(difference):
            return True
        return False if not_negative(-difference - 1) else None
    except TooLarge:
        return None


@lru_cache(maxsize=_KEPT)
def not_negative(dim: Dim) -> bool:
    """Whether `dim >= 0` is provable from the bounds of its atoms and what defines them."""
    try:
        return _not_negative(dim, _SPLITS)
    except TooLarge:
        return False


def bounds(dim: Dim) -> tuple[int | None, int | None]:
    """The least and the greatest value by interval arithmetic; None where there is no bound."""
    if isinstance(dim, int):
        return dim, dim
    low: int | None = 0
    high: int | None = 0
    for monomial, factor in dim.terms:
        least, most = atoms.bounds_of(monomial)
        if factor < 0:
            least, most = most, least
        low = None if low is None or least is None else low + factor * least
        high = None if high is None or most is None else high + factor * most
    return low, high


def of_atom(atom: Atom) -> Expr:
    """The polynomial that is one atom."""
    return Expr(((((atom, 1),), 1),))


def _normal(terms: Iterable[Term]) -> Dim:
    total: dict[Monomial, int] = {}
    for monomial, factor in terms:
        total[monomial] = total.get(monomial, 0) + factor
    kept = [(monomial, factor) for monomial, factor in total.items() if factor]
    if not kept:
        return 0
    if len(kept) == 1 and not kept[0][0]:
        return kept[0][1]
    if len(kept) > 1:
        kept.sort(key=atoms.order)
    atoms.hold_small(kept)
    return Expr(tuple(kept))


def _leading(dim: Dim) -> Term:
    return ((), dim) if isinstance(dim, int) else dim.terms[0]


def _floor_atom(dividend: Dim, divisor: Dim) -> Expr:
    low: int | None = None
    high: int | None = None
    if isinstance(divisor, int):
        least, most = bounds(dividend)
        low = None if least is None else least // divisor
        high = None if most is None else most // divisor
    elif not_negative(dividend) and not_negative(divisor - 1):
        low = 0
    return of_atom(
        Atom("floor", f"{_inner(dividend)}//{_inner(divisor)}", (dividend, divisor), low, high)
    )


@lru_cache(maxsize=_KEPT)
def _extreme(kind: str, first: Dim, second: Dim) -> Dim:
    order = at_most(first, second)
    if order is not None:
        return second if order == (kind == "max") else first
    if at_most(second, first):
        return first if kind == "max" else second
    pair = sorted((first, second), key=str)
    pick = max if kind == "max" else min
    (low1, high1), (low2, high2) = bounds(first), bounds(second)
    if kind == "max":
        low = pick([v for v in (low1, low2) if v is not None], default=None)
        high = None if high1 is None or high2 is None else pick(high1, high2)
    else:
        low = None if low1 is None or low2 is None else pick(low1, low2)
        high = pick([v for v in (high1, high2) if v is not None], default=None)
    text = f"{kind}({pair[0]}, {pair[1]})"
    return of_atom(Atom(kind, text, (pair[0], pair[1]), low, high))


def _not_negative(dim: Dim, splits: int) -> bool:
    low, high = bounds(dim)
    if low is not None and low >= 0:
        return True
    if isinstance(dim, int) or (high is not None and high < 0) or splits == 0:
        return False
    for monomial, factor in dim.terms:
        if len(monomial) != 1 or monomial[0][1] != 1 or monomial[0][0].is_symbol:
            continue
        atom = monomial[0][0]
        others = dim - of_atom(atom) * factor
        if atom.kind == "floor":
            dividend, divisor = atom.operands
            if not isinstance(divisor, int):
                continue
            # m * floor(p / m) lies between p - m + 1 and p
            bound = dividend if factor < 0 else dividend - divisor + 1
            return _not_negative(others * divisor + bound * factor, splits - 1)
        cases = [_not_negative(others + operand * factor, splits - 1) for operand in atom.operands]
        one_is_enough = (atom.kind == "max") == (factor > 0)
        return any(cases) if one_is_enough else all(cases)
    return False


def _inner(dim: Dim) -> str:
    text = str(dim)
    simple = isinstance(dim, int) or (len(dim.terms) == 1 and "*" not in text and "/" not in text)
    return text if simple and not text.startswith("-") else f"({text})"
