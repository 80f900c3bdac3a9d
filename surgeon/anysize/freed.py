"""The sizes that become dynamic, what came of it, and why a model stays as it is."""

from __future__ import annotations

from collections.abc import Mapping
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
        counted = dims.symbol(self.symbol, max(1, self.number // self.step // LEAST))
        return counted * self.step + self.number % self.step

    @property
    def least(self) -> int:
        """The smallest that the result is for."""
        return dims.bounds(self.dim)[0] or 0

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
    """

    model: onnx.ModelProto
    sizes: tuple[Size, ...]
    outputs: Mapping[str, tuple[Dim, ...]]
