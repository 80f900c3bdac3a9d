"""A runtime, and what it takes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Target:
    """A runtime of one version, or an interface of it.

    Attributes:
        name: As the command line has it, `tensorrt-8.6`.
        title: In words.
        source: The document or the source that the list was read from.
        opsets: The oldest and the newest opset that it reads; None where the list does not say.
        taken: Operators as recipes write them, `Conv` and `com.microsoft.Gelu`.
        partly: Those that are taken with limits, which the source tells.
    """

    name: str
    title: str
    source: str
    opsets: tuple[int, int] | None
    taken: frozenset[str]
    partly: frozenset[str]

    def reads(self, opset: int) -> bool:
        """Whether it reads models of this opset, as far as the list says."""
        return self.opsets is None or self.opsets[0] <= opset <= self.opsets[1]

    def told(self) -> list[object]:
        """What the list says, in an order that is always the same."""
        return [self.opsets, sorted(self.taken), sorted(self.partly)]
