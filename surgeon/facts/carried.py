"""What a Loop carries from turn to turn: in the shape, or of the rank, that it began with.

ONNX lets both change. So it is taken for granted that they do not, and the body is looked at: what
it gives back of what it was given shows it of every turn, by induction. That may take until nodes
behind which nothing is known were replaced; what is not shown by then was taken in vain, and
whatever was done has to be done anew without it.
"""

from __future__ import annotations

from functools import partial

import onnx_graphsurgeon as gs

from surgeon.facts.fact import FIRST_STATE, UNKNOWN, Fact, Items, same_dims
from surgeon.facts.inference import Facts
from surgeon.facts.sequences import ANY_ITEMS

_NOTHING, _RANK, _SHAPE = range(3)  # how much is taken for granted


class Carried:
    """How much is taken for granted of each value that a Loop carries, and how much is shown.

    A value is known by the place of the body, which no other has, and its name in there: which
    number it has among the inputs may change.
    """

    def __init__(self) -> None:
        self._taken: dict[tuple[str, str], int] = {}
        self._shown: dict[tuple[str, str], int] = {}
        self._seen: set[str] = set()
        self._items: dict[tuple[str, str], Items] = {}

    def items(self, place: str, given: gs.Tensor) -> Items:
        """What is known of a list that a body is given, once the body was looked at."""
        return self._items.get((place, given.name), ANY_ITEMS)

    def fill(self, place: str, given: gs.Tensor, items: Items) -> None:
        """Say what a body makes of a list that it is given."""
        self._items[place, given.name] = items

    def is_new(self, place: str) -> bool:
        """Whether nothing was done to a body yet, whatever was taken for granted; says so once."""
        new = place not in self._seen
        self._seen.add(place)
        return new

    def given(self, facts: Facts, node: gs.Node, place: str, index: int, name: str) -> Fact:
        """What holds of a value before every turn, and behind the last.

        Args:
            facts: Of what the Loop begins with.
            node: The Loop.
            place: Of its body.
            index: The number of its input.
            name: For dimensions of which nothing is known.
        """
        begins = facts.of(node.inputs[index])
        taken = self._taken.get((place, node.attrs["body"].inputs[index].name), _SHAPE)
        if begins.shape is None or taken == _NOTHING:
            return Fact(begins.dtype)
        if taken == _SHAPE:
            return Fact(begins.dtype, begins.shape)
        axes = range(len(begins.shape))
        return Fact(begins.dtype, tuple(map(partial(facts.lengths.new, name), axes)))

    def behind(self, facts: Facts, node: gs.Node, place: str, index: int) -> Fact:
        """What holds of an output of a Loop that was carried; UNKNOWN of others."""
        if index + FIRST_STATE >= min(len(node.inputs), len(node.attrs["body"].inputs)):
            return UNKNOWN
        return self.given(facts, node, place, index + FIRST_STATE, node.outputs[index].name)

    def judge(self, facts: Facts, node: gs.Node, place: str, *, final: bool) -> bool:
        """Compare what a body gives with what it was given.

        Args:
            facts: Filled for the body.
            node: The Loop.
            place: Of its body.
            final: Whether nothing was done to the body, and no node of it has to be replaced: what
                is not shown now never is, and nothing was taken in vain.

        Returns:
            Whether less is taken for granted than before, so that the facts of the body are void.
        """
        body, less = node.attrs["body"], False
        for index in range(
            FIRST_STATE, min(len(node.inputs), len(body.inputs), len(body.outputs) + 1)
        ):
            key = place, body.inputs[index].name
            taken = self._taken.get(key, _SHAPE)
            begins, ends = (facts.of(t) for t in (body.inputs[index], body.outputs[index - 1]))
            if begins.shape is None or taken == _NOTHING:
                shown = taken
            elif taken == _SHAPE and same_dims(begins.shape, ends.shape):
                shown = _SHAPE
            else:
                shown = _RANK if begins.rank == ends.rank else _NOTHING
            self._shown[key] = shown
            if final and shown < taken:
                self._taken[key] = shown
                less = True
        if less:
            self._items.clear()  # they may be of what does not hold
        return less

    def in_vain(self) -> bool:
        """Whether more was taken for granted than was shown, which is not taken again."""
        false = {k: shown for k, shown in self._shown.items() if shown < self._taken.get(k, _SHAPE)}
        self._taken |= false
        self._shown.clear()
        self._seen.clear()
        self._items.clear()
        return bool(false)
