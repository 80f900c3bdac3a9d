"""Nodes that are to stay as they are, by operator or by name: no rule touches them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator

import onnx_graphsurgeon as gs

from surgeon.errors import few
from surgeon.links import bodies

DEFAULT = "ai.onnx"  # what the domain without a name is called


class Spared:
    """Which nodes stay, in a run of several steps.

    Attributes:
        asked: What is to stay in every step: operators, with their domain or without, names of
            nodes, and values that nodes give.
    """

    def __init__(self) -> None:
        """Nothing is."""
        self.asked: frozenset[str] = frozenset()
        self._now: frozenset[str] = frozenset()
        self._ever: set[str] = set()
        self._found: set[str] = set()
        self._called: dict[str, str] = {}  # what copies of a node, and their values, were called

    def begin(self, keep: Iterable[str]) -> None:
        """Say what is to stay in the next step, beside what was asked of all."""
        self._now = self.asked.union(keep)
        self._ever |= self._now

    def holds(self, node: gs.Node) -> bool:
        """Whether a node is to stay as it is."""
        if not self._now:
            return False
        for name in self._names(node):
            if name in self._now:
                self._found.add(name)
                return True
        return False

    def holds_inside(self, node: gs.Node) -> bool:
        """Whether a node in its bodies, however deep, is to stay as it is."""
        if not self._now:
            return False
        tops = [value for value in node.attrs.values() if isinstance(value, gs.Graph)]
        graphs = (graph for top in tops for graph in (top, *bodies(top)))
        return any(self.holds(member) for graph in graphs for member in graph.nodes)

    def copied(self, old: str, new: str) -> None:
        """Note that a copy of a node, or of a value, has a name of its own."""
        if old and old != new:
            self._called[new] = self._called.get(old, old)

    def goes_with(
        self,
        nodes: Iterable[gs.Node],
        is_output: Callable[[gs.Tensor], bool],
        read: Collection[int] = (),
    ) -> gs.Node | None:
        """A node that is to stay and that nobody would read any more; None where there is none.

        Args:
            nodes: Those that are about to go.
            is_output: Whether a value is an output of a graph.
            read: Values that are read from then on, by their identity.
        """
        if not self._now:
            return None
        stack = list(nodes)
        going = set(map(id, stack))
        while stack:
            for tensor in stack.pop().inputs:
                maker = tensor.inputs[0] if tensor.inputs else None
                if maker is None or id(maker) in going:
                    continue
                if any(
                    is_output(out)
                    or id(out) in read
                    or any(id(n) not in going for n in out.outputs)
                    for out in maker.outputs
                ):
                    continue
                if self.holds(maker):
                    return maker
                going.add(id(maker))
                stack.append(maker)
        return None

    def unfound(self) -> list[str]:
        """What is said of names that no node had."""
        names = sorted(self._ever - self._found)
        return [f"no node was there to keep for {few(names)}"] if names else []

    def _names(self, node: gs.Node) -> Iterator[str]:
        yield node.op
        yield f"{node.domain or DEFAULT}.{node.op}"
        for name in (node.name, *(tensor.name for tensor in node.outputs)):
            if name:
                yield name
                yield self._called.get(name, name)
