"""The smallest part of a list of nodes that still fails: halves first, then what can be left out.

The second half is delta debugging (Zeller and Hildebrandt, Simplifying and Isolating
Failure-Inducing Input, 2002). A part that is kept was seen to fail, whatever the others do.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from surgeon.extraction.parts import Nodes


class Spent(Exception):
    """No more may be tried."""


class Search:
    """Looks for the smallest part that fails.

    Args:
        fails: Whether a part fails; asked once for each. May raise `Spent`.
        whole: A part without which some of its nodes have no meaning: they and those nodes.
        makes: All nodes that a node needs, itself included, among those of a part.
    """

    def __init__(
        self,
        fails: Callable[[Nodes], bool],
        whole: Callable[[Collection[int]], Nodes],
        makes: Callable[[int, Nodes], Nodes],
    ) -> None:
        self._fails, self._whole, self._makes = fails, whole, makes
        self._known: dict[Nodes, bool] = {}

    def smallest(self, nodes: Sequence[int]) -> Nodes:
        """The smallest part found; all of them where none smaller fails.

        Args:
            nodes: All, makers before readers. That these fail is not asked.
        """
        self.kept: Nodes = frozenset(nodes)
        if not nodes:
            return self.kept
        try:
            self._end(nodes)
            self._begin()
            self._leave_out()
        except Spent:
            pass
        return self.kept

    def _end(self, nodes: Sequence[int]) -> None:
        """The shortest beginning that fails, and of it what its last node needs."""
        passing, failing = 0, len(nodes)
        while failing - passing > 1:
            middle = (passing + failing) // 2
            if self._try(nodes[:middle]):
                failing = middle
            else:
                passing = middle
        self._try(self._makes(nodes[failing - 1], self.kept))

    def _begin(self) -> None:
        """The shortest end of that."""
        nodes = sorted(self.kept)
        failing, passing = 0, len(nodes)
        while passing - failing > 1:
            middle = (passing + failing) // 2
            if self._try(nodes[middle:]):
                failing = middle
            else:
                passing = middle

    def _leave_out(self) -> None:
        """What else can be left out, in pieces that grow smaller."""
        size = max(len(self.kept) // 2, 1)
        while True:
            before = self.kept
            nodes = sorted(before, reverse=True)
            for start in range(0, len(nodes), size):
                self._try(self.kept.difference(nodes[start : start + size]))
            if self.kept == before:
                if size == 1:
                    return
                size //= 2

    def _try(self, nodes: Collection[int]) -> bool:
        """Keep a part if it is smaller and fails; gives whether it fails."""
        part = self._whole(nodes)
        if part == self.kept:
            return True
        if not part or not part < self.kept:
            return False
        if part not in self._known:
            self._known[part] = self._fails(part)
        if self._known[part]:
            self.kept = part
        return self._known[part]
