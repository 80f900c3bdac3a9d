"""Sliding windows over an input that may come without a batch: pooling, fold and unfold."""

from __future__ import annotations

from dataclasses import dataclass

import onnx_graphsurgeon as gs

from surgeon.builders import parts
from surgeon.builders.parts import Length
from surgeon.rewrite import Draft, Refused


@dataclass(frozen=True, slots=True)
class Window:
    """One axis of a sliding window.

    Attributes:
        kernel: How many elements it takes.
        stride: How far it moves.
        padding: What stands in front of the input, and behind it where `behind` is None.
        dilation: How far its elements are apart.
        ceil: Whether a last window that is not full is kept.
        behind: The padding behind, where it is another than in front.
    """

    kernel: int
    stride: int
    padding: int
    dilation: int
    ceil: bool = False
    behind: int | None = None

    @property
    def pads(self) -> int:
        """The padding of both ends together."""
        return self.padding + (self.padding if self.behind is None else self.behind)

    @property
    def reach(self) -> int:
        """How many elements there are from a window's first to its last."""
        return self.dilation * (self.kernel - 1) + 1

    def count(self, length: int) -> int:
        """How many windows there are over a length."""
        room = length + self.pads - self.reach
        found = room // self.stride + 1
        if self.ceil:
            found = -(-room // self.stride) + 1
            if (found - 1) * self.stride >= length + self.padding:
                found -= 1
        if found < 1 or room < 0:  # PyTorch has a window that is not full there, and ONNX none
            raise Refused(f"no window of {self.reach} fits into {length}")
        return found

    def covered(self, length: int) -> int:
        """How far the last window reaches, padding taken off."""
        return (self.count(length) - 1) * self.stride + self.reach - self.pads

    def floors(self, length: Length) -> bool:
        """Whether the last window is full, so that `ceil_mode` says nothing."""
        if not self.ceil or self.stride == 1:
            return True
        if length.static is None:
            return False
        room = length.static + self.pads - self.reach
        return room // self.stride + 1 == self.count(length.static)

    @property
    def never_drops(self) -> bool:
        """Whether no window can begin behind the input, however long it is."""
        return self.padding + self.stride <= self.reach


def digit_of(operator: str) -> int:
    """How many axes the operator's name says."""
    return int(next(letter for letter in operator if letter.isdigit()))


def with_batch(draft: Draft, x: gs.Tensor, spatial: int) -> tuple[gs.Tensor, bool]:
    """The input with a batch, and whether it had one."""
    rank = parts.rank_of(draft, x)
    if rank not in (spatial + 1, spatial + 2):
        raise Refused(f"its input has rank {rank}, not {spatial + 1} or {spatial + 2}")
    if rank == spatial + 2:
        return x, True
    return parts.unsqueeze(draft, x, 0), False


def adaptive_bins(length: int, out: int) -> list[tuple[int, int]]:
    """The elements [start, end) of each bin of an adaptive pool (ATen AdaptivePooling.h)."""
    return [(i * length // out, -(-(i + 1) * length // out)) for i in range(out)]
