"""A Transpose of five axes and more as Transposes of four, which each let two blocks change places.

Any order comes about by exchanges of neighbours. What stands in front of two blocks of axes, and
behind them, is one axis each: so an exchange has four at most.
"""

from __future__ import annotations

from functools import reduce
from itertools import combinations
from operator import mul

import onnx_graphsurgeon as gs

from surgeon.builders.bench import Bench
from surgeon.builders.cleaning import order_of
from surgeon.builders.views import as_shape
from surgeon.dims import Dim
from surgeon.match import Match
from surgeon.rewrite import Draft, Refused

_MOST_BLOCKS = 7  # whose orders, 5,040, are soon gone through
_MOST_STEPS = 3  # each moves all elements
Order = tuple[int, ...]
Exchange = tuple[
    int, int, int
]  # where the first of two blocks begins, the second, and what is behind


def turned_in_steps(draft: Draft, match: Match) -> gs.Tensor:
    """View, Transpose, view: the same by exchanges of two blocks of axes.

    Raises:
        Refused: It takes more exchanges than three, or a shape is not known.
    """
    c, turned = Bench(draft), match.values["t"]
    assert turned is not None
    node = turned.inputs[0]
    shape, wanted = c.shape(node.inputs[0]), c.shape(match.root.outputs[0])
    if shape is None or wanted is None:
        raise Refused("a shape is not known")
    order = order_of(node, len(shape))
    blocks = _side_by_side(order)
    lengths: list[Dim] = [reduce(mul, (shape[axis] for axis in block)) for block in blocks]
    behind = sorted(range(len(blocks)), key=lambda at: order.index(blocks[at][0]))
    x = node.inputs[0]
    for first, second, last in _exchanges(tuple(behind)):
        parts = [lengths[:first], lengths[first:second], lengths[second:last], lengths[last:]]
        sizes = tuple(reduce(mul, part, 1) for part in parts)
        x = c.permute(as_shape(draft, x, sizes), [0, 2, 1, 3])
        lengths = [*parts[0], *parts[2], *parts[1], *parts[3]]
    return as_shape(draft, x, wanted)


def _side_by_side(order: list[int]) -> list[list[int]]:
    """The axes in front of a Transpose, those together that stay side by side."""
    blocks: list[list[int]] = []
    for axis in range(len(order)):
        if blocks and order.index(axis) == order.index(axis - 1) + 1:
            blocks[-1].append(axis)
        else:
            blocks.append([axis])
    return blocks


def _exchanges(wanted: Order) -> list[Exchange]:
    """The fewest exchanges of neighbouring blocks that bring 0, 1, 2, ... into an order."""
    if len(wanted) > _MOST_BLOCKS:
        raise Refused(f"{len(wanted)} blocks of axes move, and {_MOST_BLOCKS} are tried")
    start = tuple(range(len(wanted)))
    ways: dict[Order, list[Exchange]] = {start: []}
    last = [start]
    for _ in range(_MOST_STEPS):
        found = []
        for order in last:
            for exchange in combinations(range(len(wanted) + 1), 3):
                a, b, c = exchange
                made = (*order[:a], *order[b:c], *order[a:b], *order[c:])
                if made not in ways:
                    ways[made] = [*ways[order], exchange]
                    found.append(made)
        if wanted in ways:
            break
        last = found
    if wanted not in ways:
        raise Refused(f"it takes more than {_MOST_STEPS} exchanges of blocks of axes")
    return ways[wanted]
