"""At which sizes the two sides of a rewrite are compared."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence

from surgeon.trial.piece import Piece

# What every symbol is, one set at a time, until both pieces ran on enough of them.
_SIZES: tuple[tuple[int, ...], ...] = (
    (2, 3, 5, 4, 7, 6),
    (3, 5, 4, 7, 2, 6),
    (2,),
    (3,),
    (1,),
    (4,),
    (8,),
    (16,),
    (32,),
    (37, 64, 45),
    (2, 700, 650),  # of sounds: a window of 25 ms is 400 of their samples
    *((700,), (2, 5_000), (5_000,)),
)
# Then longer ones, sizes of 1, equal sizes, and no size at all: where both run.
_FURTHER: tuple[tuple[int, ...], ...] = (
    (5, 7, 9, 8, 11, 6),
    (12, 17, 10),
    (1, 3, 2, 5),
    (4, 1, 3, 1, 2),
    (4,),
    (0, 3, 2),
    (3, 0, 2, 0),
    (2, 3, 0),
)
# What the free symbols are where many values are wanted at once: as many as there are edge values.
_WIDE: Mapping[int, tuple[int, ...]] = {
    1: (101,),
    2: (13, 17),
    3: (23, 3, 4),
    4: (11, 3, 4, 5),
}
_FEW, _MANY = (2, 3), range(4, 13)
_MOST_SIZES = 4  # points beyond numbers in the replacement
_LARGE = 1 << 22  # elements of one run
Point = Mapping[str, int]


def usual(piece: Piece) -> Iterator[Point]:
    """Sizes for the symbols until both sides ran; no large ones, but where there are no others."""
    return _moderate(piece, itertools.chain(_each(piece, _SIZES), _each(piece, _related(piece))))


def further(piece: Piece, at: Point) -> Iterator[Point]:
    """Sizes that few models see, and at which rewrites are wrong.

    Args:
        piece: Both sides.
        at: Sizes at which both ran.
    """
    yield from _each(piece, _FURTHER)
    yield from _beyond(piece, at)
    if piece.counts:
        yield {**at, **dict.fromkeys(piece.counts, 0)}


def wide(piece: Piece, at: Point) -> Point:
    """Sizes at which a piece of few elements has many, where it has a few symbols, all free."""
    free = [name for name, high in piece.symbols.items() if high is None]
    if len(free) != len(piece.symbols) or piece.counts or len(free) not in _WIDE:
        return at
    return piece.fitted(dict(zip(free, _WIDE[len(free)], strict=True)))


def _related(piece: Piece) -> Iterator[tuple[int, ...]]:
    """Sizes of which one follows from the other: so many frames make a sound of one length alone.

    Which of the symbols these are nothing tells: the last two, where there are no more than three.
    """
    if len(piece.symbols) in (2, 3):
        others = (2,) * (len(piece.symbols) - 2)
        for few, many in itertools.product(_FEW, _MANY):
            yield (*others, few, many)
            yield (*others, many, few)


def _each(piece: Piece, choices: Iterable[Sequence[int]]) -> Iterator[Point]:
    """Sizes for the symbols, each choice once; a symbol is no larger than it may be."""
    seen = set()
    for sizes in choices:
        turns = itertools.cycle(sizes)
        point = {
            name: min(size, size if high is None else high)
            for (name, high), size in zip(piece.symbols.items(), turns, strict=False)
        }
        point = piece.fitted(point)
        key = tuple(point.values())
        if key not in seen:
            seen.add(key)
            yield point


def _moderate(piece: Piece, points: Iterator[Point]) -> Iterator[Point]:
    """Those at which no run is large; where all are, the one with the smallest."""
    some, large = False, []
    for point in points:
        size = piece.elements(point)
        if size <= _LARGE:
            some = True
            yield point
        else:
            large.append((size, point))
    if not some:
        yield min(large, key=lambda each: each[0])[1]


def _beyond(piece: Piece, at: Point) -> Iterator[Point]:
    """One symbol after the other a little larger than a number that the replacement holds."""
    free = [name for name, high in piece.symbols.items() if high is None]
    wanted = [(name, size) for size in piece.sizes for name in free]
    for name, size in wanted[:_MOST_SIZES]:
        yield piece.fitted({**at, name: size + 1})
