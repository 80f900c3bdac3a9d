"""Rotary embeddings of three places a token, of time, height and width, as in Qwen's VL models."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_graphsurgeon as gs

from surgeon.builders.bench import Bench
from surgeon.builders.contrib.attention import turned_heads
from surgeon.builders.contrib.settings import settings, width_of
from surgeon.match import Match
from surgeon.rewrite import Draft, Refused

_USUAL = {
    "mrope_section": (),
    "num_heads": 0,
    "rotary_embedding_dim": 0,
    "interleaved": 0,
    "mrope_layout": 0,
}


def multi_rotary_embedding(draft: Draft, match: Match) -> gs.Tensor:
    """`com.microsoft.MRotaryEmbedding (x, places, cos, sin)`: each pair turned by one of 3 places.

    A table's columns are taken of the rows of time, height and width, and then joined to one row.
    """
    node, c = match.root, Bench(draft)
    given = settings(node, 4, 4, _USUAL, unwritten={"is_packed_batching": 0, "scale": 1.0})
    x, places, cosines, sines = node.inputs[:4]
    half = width_of(draft, cosines, sines, what="its tables are")
    rank, rotary = c.rank(x), int(given["rotary_embedding_dim"])
    if rank not in (3, 4) or (rank == 3 and not int(given["num_heads"])):
        raise Refused("its input has no heads: neither an axis of them nor a number")
    if rotary not in (0, 2 * half):
        raise Refused(f"it turns {rotary} channels by tables of {half}")
    columns = _columns([int(n) for n in given["mrope_section"]], half, int(given["mrope_layout"]))
    cosine, sine = (_rows(c, table, places, columns) for table in (cosines, sines))
    return turned_heads(c, node, cosine, sine, half)


def _columns(sections: Sequence[int], half: int, layout: int) -> list[list[int]]:
    """Which columns of a table belong to each of the three places.

    Raises:
        Refused: They are not all of the table, or are laid out in another way.
    """
    if len(sections) != 3 or min(sections) < 0 or sum(sections) != half:
        raise Refused(f"its sections are {list(sections)} of tables of {half}")
    if layout not in (0, 1):
        raise Refused(f"no layout {layout} of its sections is known")
    if layout == 0:
        first, second = sections[0], sections[0] + sections[1]
        return [list(range(first)), list(range(first, second)), list(range(second, half))]
    others = [
        [n for n in range(at, 3 * sections[at], 3) if n < half] for at in (1, 2)
    ]  # every third one, as long as the section goes; all else is time's
    return [[n for n in range(half) if n not in {*others[0], *others[1]}], *others]


def _rows(
    c: Bench, table: gs.Tensor, places: gs.Tensor, columns: Sequence[Sequence[int]]
) -> gs.Tensor:
    """`[batch, length, half]`: each column of the row that its place names."""
    rows = c.op("Gather", table, places, axis=0)
    parts, order = [], list[int]()
    for which, own in enumerate(columns):
        if not own:
            continue
        of_place = c.op("Gather", rows, c.number(which, int(c.dtype(places))), axis=0)
        if list(own) == list(range(own[0], own[-1] + 1)):
            parts.append(c.slice(of_place, 2, own[0], own[-1] + 1))
        else:
            parts.append(c.op("Gather", of_place, c.ints(own, "columns"), axis=2))
        order += own
    joined = c.concat(parts, 2)
    if order == sorted(order):
        return joined
    back = [order.index(n) for n in range(len(order))]
    made: gs.Tensor = c.op("Gather", joined, c.ints(back, "columns"), axis=2)
    return made
