"""The fewest values at which a graph is cut so that nothing comes from some nodes to others.

A minimum cut, by augmenting paths (Ford and Fulkerson, Maximal flow through a network, 1956), each
value carrying one path at most. Few paths are looked for, each in the time of the graph.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

Place = tuple[str, object]  # `node` and where it stands; `in` or `out` and the name of a value
_Flow = Counter[tuple[Place, Place]]


class Graph:
    """Nodes and values, as a cut sees them.

    Args:
        reads: What each node reads, of values that nodes make.
        gives: What each gives.
        can_be_cut: Whether a cut may go through a value.
    """

    def __init__(
        self,
        reads: Mapping[int, Sequence[str]],
        gives: Mapping[int, Sequence[str]],
        can_be_cut: Callable[[str], bool],
    ) -> None:
        self.reads, self.gives, self.can_be_cut = reads, gives, can_be_cut
        self.makers = {name: at for at, names in gives.items() for name in names}
        self.readers: dict[str, list[int]] = {}
        for at, names in reads.items():
            for name in names:
                self.readers.setdefault(name, []).append(at)

    def cut(
        self, sources: Collection[int], sinks: Collection[int], *, most: int, late: bool
    ) -> list[str] | None:
        """The values of a smallest cut; None where more are needed than that.

        Args:
            sources: Nodes in front of it.
            sinks: Nodes behind it.
            most: How many values it may have.
            late: Whether it is the one nearest to the sinks, else to the sources.
        """
        flow: _Flow = Counter()
        ends = frozenset(sinks)
        starts: list[Place] = [("node", at) for at in sources]
        for _ in range(most + 1):
            came = self._paths(starts, flow, self._further)
            end = next((p for p in came if p[0] == "node" and p[1] in ends), None)
            if end is None:
                break
            self._send(end, came, flow)
        else:
            return None
        if late:
            inside = self._paths([("node", at) for at in sinks], flow, self._back)
            cut = [n for n in self.makers if ("out", n) in inside and ("in", n) not in inside]
        else:
            inside = self._paths(starts, flow, self._further)
            cut = [n for n in self.makers if ("in", n) in inside and ("out", n) not in inside]
        return cut

    def _paths(
        self,
        starts: Sequence[Place],
        flow: _Flow,
        steps: Callable[[Place, _Flow], Iterator[Place]],
    ) -> dict[Place, Place | None]:
        """Every place that can be reached, with the one that it was reached from."""
        came: dict[Place, Place | None] = dict.fromkeys(starts)
        pending = deque(starts)
        while pending:
            place = pending.popleft()
            for other in steps(place, flow):
                if other not in came:
                    came[other] = place
                    pending.append(other)
        return came

    def _send(self, end: Place, came: Mapping[Place, Place | None], flow: _Flow) -> None:
        """One path more, or a part of one taken back."""
        here: Place | None = end
        while here is not None and (before := came[here]) is not None:
            if flow[here, before]:
                flow[here, before] -= 1
            else:
                flow[before, here] += 1
            here = before

    def _edges(self, place: Place) -> tuple[list[Place], list[Place]]:
        """The places behind one, and those in front of it."""
        kind, name = place
        if kind == "node":
            assert isinstance(name, int)
            gives: list[Place] = [("in", each) for each in self.gives.get(name, ())]
            return gives, [("out", each) for each in self.reads.get(name, ())]
        assert isinstance(name, str)
        if kind == "in":
            return [("out", name)], [("node", self.makers[name])]
        return [("node", at) for at in self.readers.get(name, ())], [("in", name)]

    def _is_free(self, here: Place, there: Place, flow: _Flow) -> bool:
        """Whether one path more can go from one place to the next."""
        through = here[0] == "in" and there[0] == "out"
        return not (through and self.can_be_cut(str(here[1])) and flow[here, there])

    def _further(self, place: Place, flow: _Flow) -> Iterator[Place]:
        behind, before = self._edges(place)
        yield from (each for each in behind if self._is_free(place, each, flow))
        yield from (each for each in before if flow[each, place])

    def _back(self, place: Place, flow: _Flow) -> Iterator[Place]:
        """Places from which one can be reached."""
        behind, before = self._edges(place)
        yield from (each for each in before if self._is_free(each, place, flow))
        yield from (each for each in behind if flow[place, each])
