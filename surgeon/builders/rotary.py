"""Rotary embeddings: pairs of channels turned by an angle that belongs to their place."""

from __future__ import annotations

import onnx_graphsurgeon as gs

from surgeon.builders.bench import LARGEST, Bench, operand
from surgeon.match import Match, attribute_of
from surgeon.rewrite import Draft, Refused


def turned_pairs(
    c: Bench,
    x: gs.Tensor,
    cosine: gs.Tensor,
    sine: gs.Tensor,
    half: int,
    *,
    width: int | None,
    interleaved: bool,
) -> gs.Tensor:
    """The first channels of [.., .., .., width] turned by pairs; the others stay.

    Args:
        c: Where the nodes go.
        x: Of four axes.
        cosine: What broadcasts over half as many channels as are turned; `sine` too.
        sine: See `cosine`.
        half: How many pairs there are.
        width: How many channels; None where it is not known, and may be more than are turned.
        interleaved: Whether a pair is two neighbours, and not a channel and the one `half` behind.
    """
    turned = (_neighbours if interleaved else _halves)(c, x, cosine, sine, half, width)
    if width == 2 * half:
        return turned
    return c.concat([turned, c.slice(x, 3, 2 * half, LARGEST if width is None else width)], 3)


def _halves(
    c: Bench, x: gs.Tensor, cosine: gs.Tensor, sine: gs.Tensor, half: int, width: int | None
) -> gs.Tensor:
    """x * [cos, cos] + [second, first] * [-sin, sin]: every turn of a model shares the tables."""
    first, second = c.slice(x, 3, 0, half), c.slice(x, 3, half, 2 * half)
    swapped = c.concat([second, first], 3)
    whole = x if width == 2 * half else c.slice(x, 3, 0, 2 * half)
    cosines = c.concat([cosine, cosine], 3)
    sines = c.concat([c.op("Neg", sine), sine], 3)
    made: gs.Tensor = c.op("Add", c.op("Mul", whole, cosines), c.op("Mul", swapped, sines))
    return made


def _neighbours(
    c: Bench, x: gs.Tensor, cosine: gs.Tensor, sine: gs.Tensor, half: int, width: int | None
) -> gs.Tensor:
    """Both of each pair turned, and side by side again."""
    first, second = (c.slice(x, 3, start, 2 * half, 2) for start in (0, 1))
    turned = [
        c.op("Sub", c.op("Mul", first, cosine), c.op("Mul", second, sine)),
        c.op("Add", c.op("Mul", first, sine), c.op("Mul", second, cosine)),
    ]
    pairs = c.concat([c.unsqueeze(t, [4]) for t in turned], 4)
    made: gs.Tensor = c.op("Reshape", pairs, c.ints([0, 0, 0, 2 * half], "pairs"))
    return made


def rotary_embedding_as_products(draft: Draft, match: Match) -> gs.Tensor:
    """ONNX's own RotaryEmbedding, of [batch, heads, length, width] or [batch, length, channels]."""
    node, c = match.root, Bench(draft)
    x, cosines, sines = node.inputs[:3]
    places, rank = operand(node, 3), c.rank(x)
    if rank not in (3, 4):
        raise Refused("its input has neither three axes nor four")
    split, axis = x, 1
    if rank == 3:
        heads, axis = attribute_of(node, "num_heads"), 2
        if not heads:
            raise Refused("how many heads it has is not said")
        batch, length, channels = c.sizes(x)
        split = c.reshape(x, [batch, length, heads, c.div(channels, heads)])
    half, width = _pairs(c, node, split, cosines)
    if places is not None:
        cosines, sines = (c.op("Gather", table, places, axis=0) for table in (cosines, sines))
    cosine, sine = (c.unsqueeze(table, [axis]) for table in (cosines, sines))
    interleaved = bool(attribute_of(node, "interleaved"))
    y = turned_pairs(c, split, cosine, sine, half, width=width, interleaved=interleaved)
    return y if rank == 4 else c.reshape(y, c.sizes(x))


def _pairs(c: Bench, node: gs.Node, split: gs.Tensor, cosines: gs.Tensor) -> tuple[int, int | None]:
    """How many pairs of channels are turned, and how many channels a head has, where known."""
    width, turned = c.size(split, 3), int(attribute_of(node, "rotary_embedding_dim") or 0)
    known = width if isinstance(width, int) else None
    shape = c.shape(cosines) or (None,)
    if turned:
        return turned // 2, known
    if known is not None:
        return known // 2, known
    if not isinstance(shape[-1], int):
        raise Refused("how many channels a head has is not known")
    return shape[-1], 2 * shape[-1]
