"""The sizes that become dynamic, what came of it, and why a model stays as it is."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple

import onnx

from surgeon import dims, frozen
from surgeon.dims import Dim
from surgeon.frozen import Frozen

STEP = "free-sizes"
LEAST = 8  # the part of the file's size that others are at least

refusal = partial(frozen.refusal, STEP)


class Clash(Frozen):
    """Lengths that an operator wants equal, and which at other sizes are not."""


class Finer(Exception):
    """What holds only for sizes that are further apart: the symbol, and how many times as far."""

    def __init__(self, name: str, factor: int) -> None:
        super().__init__(name)
        self.name, self.factor = name, factor


class Size(NamedTuple):
    """A size of the inputs that becomes dynamic.

    Attributes:
        name: Of the dimension.
        number: What the file is for.
        step: How far apart sizes are for which the result is.
    """

    name: str
    number: int
    step: int = 1

    @property
    def dim(self) -> Dim:
        """The size, of a symbol that counts the steps."""
        return dims.symbol(self.symbol, self.first) * self.step + self.number % self.step

    @property
    def first(self) -> int:
        """Of how many steps the others are at least."""
        return max(1, self.number // self.step // LEAST)

    @property
    def symbol(self) -> str:
        """What that is called."""
        return f"{self.name}/{self.step}"


class Freed(NamedTuple):
    """What came of it.

    Attributes:
        model: For any sizes.
        sizes: That are dynamic.
        outputs: The lengths of each output, where they are known.
        lengths: Of all values, those that are no numbers.
    """

    model: onnx.ModelProto
    sizes: tuple[Size, ...]
    outputs: Mapping[str, tuple[Dim, ...]]
    lengths: frozenset[Dim]

    @property
    def least(self) -> tuple[int, ...]:
        """By size, the smallest at which no value becomes empty, the others being as in the file.

        A Conv without padding takes a plane of its window, and no smaller one.
        """
        counts = {size.symbol: size.number // size.step for size in self.sizes}
        known = [dim for dim in self.lengths if counts.keys() >= dims.symbols(dim)]
        full = [dim for dim in known if dims.evaluate(dim, counts) > 0]
        return tuple(_least(size, counts, full) for size in self.sizes)


def _least(size: Size, counts: Mapping[str, int], lengths: Sequence[Dim]) -> int:
    mine = [dim for dim in lengths if size.symbol in dims.symbols(dim)]

    def fits(count: int) -> bool:
        return all(dims.evaluate(dim, {**counts, size.symbol: count}) > 0 for dim in mine)

    counted = range(size.first, counts[size.symbol] + 1)
    return counted[bisect_left(counted, True, key=fits)] * size.step + size.number % size.step
