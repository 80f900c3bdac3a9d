"""A runtime, and what it takes."""

from __future__ import annotations

from dataclasses import dataclass, field

from surgeon.meanings import full_name
from surgeon.recipe import Rule


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
        limits: What nodes must be like that it takes, as rules that write nothing.
        stated: The limits as they are written.
        types: The element types of what it computes; empty where the list does not say.
        axes: The most axes of what it computes; None where the list does not say.
    """

    name: str
    title: str
    source: str
    opsets: tuple[int, int] | None
    taken: frozenset[str]
    partly: frozenset[str]
    limits: tuple[Rule, ...] = field(default=(), hash=False)
    stated: str = ""
    types: frozenset[str] = frozenset()
    axes: int | None = None

    @property
    def operators(self) -> frozenset[str]:
        """All that it takes, those with limits too."""
        return self.taken | self.partly

    @property
    def untold(self) -> frozenset[str]:
        """Those that are taken with limits none of which is among `limits`."""
        told = (limit.match.root for limit in self.limits)
        return self.partly - {full_name(n.domain, op) for n in told for op in n.operators}

    @property
    def count(self) -> int:
        """How many limits it has."""
        return len(self.limits) + bool(self.types) + (self.axes is not None)

    def reads(self, opset: int) -> bool:
        """Whether it reads models of this opset, as far as the list says."""
        return self.opsets is None or self.opsets[0] <= opset <= self.opsets[1]

    def told(self) -> list[object]:
        """What the list says, in an order that is always the same."""
        more = [self.stated, sorted(self.types), self.axes] if self.count else []
        return [self.opsets, sorted(self.taken), sorted(self.partly), *more]
