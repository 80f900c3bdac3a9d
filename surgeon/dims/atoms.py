"""What polynomials are made of: atoms, and products of their powers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

# ((atom, power), ...), sorted by the atom's text
Monomial: TypeAlias = tuple[tuple["Atom", int], ...]
Term: TypeAlias = tuple[Monomial, int]  # with its factor


# Sizes of real networks print in some thirty characters and have three terms. What a graph computes
# step by step from one size may double at each, and would take all memory after thirty steps.
_LONGEST_TEXT = 2000
_MOST_TERMS = 64
_HIGHEST_DEGREE = 32


class TooLarge(OverflowError):
    """A polynomial that is larger than any size of a model: it is not known, then."""

    def __str__(self) -> str:
        return "a size is computed in more steps than are followed"


class Atom:
    """An integer that is not a polynomial: a symbol, or a floor division, maximum or minimum.

    Attributes:
        kind: `symbol`, `open` or `counted` (symbols of their own kind), `floor`, `max` or `min`.
        text: How it prints; within a model, equal text means the same atom.
        operands: What a `floor` (dividend, divisor), `max` or `min` is made of.
        low: The least value it can take, or None.
        high: The greatest value it can take, or None.

    Raises:
        TooLarge: Of what it is made is larger than sizes of models are.
    """

    __slots__ = ("_hash", "high", "kind", "low", "operands", "text")

    def __init__(
        self, kind: str, text: str, operands: tuple[Any, ...], low: int | None, high: int | None
    ) -> None:
        if operands and len(text) > _LONGEST_TEXT:
            raise TooLarge
        self.kind, self.text, self.operands, self.low, self.high = kind, text, operands, low, high
        self._hash = hash((kind, text))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        # One name may have other bounds in another model, and answers are kept across models.
        return self is other or (
            isinstance(other, Atom)
            and self.kind == other.kind
            and self.text == other.text
            and self.low == other.low
            and self.high == other.high
            and self.operands == other.operands
        )

    def __repr__(self) -> str:
        return self.text

    @property
    def is_symbol(self) -> bool:
        """Whether it is named, and made of nothing."""
        return not self.operands


def order(term: Term) -> tuple[int, tuple[tuple[str, int], ...]]:
    """Highest degree first, then by name: the order of printing and of exact division."""
    monomial = term[0]
    degree = sum(power for _, power in monomial)
    return -degree, tuple((atom.text, -power) for atom, power in monomial)


def times(left: Monomial, right: Monomial) -> Monomial:
    """The product of the two."""
    if not left:
        return right
    if not right:
        return left
    powers: dict[Atom, int] = dict(left)
    for atom, power in right:
        powers[atom] = powers.get(atom, 0) + power
    return tuple(sorted(powers.items(), key=lambda item: item[0].text))


def over(top: Monomial, bottom: Monomial) -> Monomial | None:
    """What `bottom` has to be multiplied by to be `top`, or None where nothing would do."""
    powers = dict(top)
    for atom, power in bottom:
        left = powers.get(atom, 0) - power
        if left < 0:
            return None
        if left:
            powers[atom] = left
        else:
            del powers[atom]
    return tuple(sorted(powers.items(), key=lambda item: item[0].text))


def hold_small(terms: Sequence[Term]) -> None:
    """Raise where a polynomial of these terms, the highest degree first, is larger than any size.

    Raises:
        TooLarge: It is.
    """
    if len(terms) > _MOST_TERMS or sum(p for _, p in terms[0][0]) > _HIGHEST_DEGREE:
        raise TooLarge


def bounds_of(monomial: Monomial) -> tuple[int | None, int | None]:
    """The least and the greatest value by interval arithmetic; None where there is no bound."""
    low: int | None = 1
    high: int | None = 1
    for atom, power in monomial:
        for _ in range(power):
            if low is not None and low >= 0 and atom.low is not None and atom.low >= 0:
                low = low * atom.low
                high = None if high is None or atom.high is None else high * atom.high
            elif None not in (low, high, atom.low, atom.high):
                corners = [a * b for a in (low, high) for b in (atom.low, atom.high)]  # type: ignore[operator]
                low, high = min(corners), max(corners)
            else:
                return None, None
    return low, high


def text_of(terms: Iterable[Term]) -> str:
    """How a polynomial of these terms prints."""
    parts: list[str] = []
    for monomial, factor in terms:
        body = "*".join(
            (
                f"({atom.text})"
                if atom.kind == "floor" and (len(monomial) > 1 or abs(factor) != 1 or power > 1)
                else atom.text
            )
            + (f"**{power}" if power > 1 else "")
            for atom, power in monomial
        )
        size = abs(factor)
        text = str(size) if not body else body if size == 1 else f"{size}*{body}"
        sign = "-" if factor < 0 else "+"
        parts.append(f" {sign} {text}" if parts else text if factor > 0 else f"-{text}")
    return "".join(parts)
