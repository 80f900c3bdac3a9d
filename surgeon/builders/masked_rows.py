"""One value assigned to every place of a mask, written as fewer updates than there are places."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_graphsurgeon as gs

from surgeon import dims
from surgeon.builders.bench import TYPE, Bench
from surgeon.builders.masks import cut_to, mask_written_to, written
from surgeon.dims import Dim
from surgeon.facts.fact import same_dims
from surgeon.match import Match, attribute_of, producer_of
from surgeon.rewrite import Draft, Refused


def where_of_rows(draft: Draft, match: Match) -> gs.Tensor:
    """A Where whose condition is of the first axes of what it chooses from: a mask of rows."""
    c, node = Bench(draft), match.root
    mask, *chosen = node.inputs
    shape, others = c.shape(mask), [c.shape(x) for x in chosen]
    if shape is None or None in others:
        raise Refused("the rank of an operand is not known")
    whole = max((other for other in others if other is not None), key=len)
    behind = len(whole) - len(shape)
    if behind <= 0 or not shape or not same_dims(shape, whole[: len(shape)]):
        raise Refused("its condition is not of the first axes of what it chooses from")
    pairs = [*zip(shape, whole[behind:], strict=True)]
    if not any(1 not in (a, b) and dims.equal(a, b) is False for a, b in pairs):
        raise Refused("its condition may be of the last axes" + _told(pairs))
    return draft.op("Where", c.unsqueeze(mask, range(len(shape), len(whole))), *chosen)


def _told(pairs: Sequence[tuple[Dim, Dim]]) -> str:
    """How a caller says that sizes which may be equal are not, where one is a number."""
    for size, other in pairs:
        if isinstance(other, int) and other > 1 and isinstance(size, dims.Expr):
            return (
                f", where `{size}` is {other}; `--assume '{size} >= {other + 1}'` says if it is not"
            )
    return ""


def masked_row(draft: Draft, match: Match) -> gs.Tensor:
    """`x[mask] = row` as Where, from a ScatterND that gives the row once for all places.

    Such a node has a value where the mask holds once at most, and that is the Where's. PyTorch
    writes the row as it is, or made flat and cut to as many elements as there are places, of a mask
    that it repeated along the row before.
    """
    c, node = Bench(draft), match.root
    data, indices, updates = node.inputs
    mask, last = mask_written_to(c, node)
    cut = cut_to(c, updates, indices)
    if cut is None:
        return written(c, node, mask, *_row(c, updates, last))
    shape = c.shape(data)
    if last or shape is None:
        raise Refused("its updates are cut to as many as there are places, each of which is a line")
    line, repeated = producer_of(cut), producer_of(mask)
    row = line.inputs[0] if line is not None and line.op == "Reshape" else cut
    one = c.shape(repeated.inputs[0]) if repeated is not None and repeated.op == "Expand" else None
    if repeated is None or one is None or len(one) != len(shape):
        raise Refused("its mask is not repeated along the last axes")
    behind = next((i for i, dim in enumerate(reversed(one)) if dim != 1), len(one))
    row, _ = _row(c, row, shape[len(one) - behind :])
    return written(c, node, repeated.inputs[0], row, 0)


def _row(c: Bench, row: gs.Tensor, behind: tuple[Dim, ...]) -> tuple[gs.Tensor, int]:
    """The row without axes of 1 in front of those behind the mask, and how many these are.

    Raises:
        Refused: It is not provably one value for all places.
    """
    given = c.shape(row)
    if given is None:
        raise Refused(f"the shape of `{row.name}`, which it writes, is not known")
    extra = max(len(given) - len(behind), 0)
    fits = [
        mine == 1 or dims.equal(mine, its) is True
        for mine, its in zip(reversed(given), reversed(behind), strict=False)
    ]
    if any(d != 1 for d in given[:extra]) or not all(fits):
        raise Refused("its updates are not provably one value for all places of the mask")
    return c.squeeze(row, range(extra)) if extra else row, len(behind)


def row_at_places(draft: Draft, match: Match) -> gs.Tensor:
    """`x[places] = row` of places that are numbers, from a ScatterND that gives the row once.

    PyTorch gives the row, or a number for all, the shape of a row for each place, which it has
    where there is one place.
    """
    c, node = Bench(draft), match.root
    data, places, updates = node.inputs
    row = _before_shaping(updates)
    covered, shape, given = c.shape(data), c.shape(places), c.shape(row)
    if covered is None or given is None or not shape or not isinstance(shape[-1], int):
        raise Refused("the shape of its data, its places or its row is not known")
    behind = covered[shape[-1] :]
    count, rows = dims.product(given), dims.product(shape[:-1])
    number = dims.equal(count, 1) is True
    if not number and dims.equal(count, dims.product(behind)) is not True:
        raise Refused("it does not provably write one row, or one number")
    if dims.equal(rows, 1) is True and (not number or dims.equal(dims.product(behind), 1) is True):
        raise Refused("there is one place")
    sizes = [c.size(data, axis) for axis in range(shape[-1], len(covered))]
    lead = [c.size(places, axis) for axis in range(len(shape) - 1)]
    one = c.cast(c.reshape(row, [] if number else sizes), c.dtype(data))
    spread = c.op("Expand", one, c.vector([*lead, *sizes]))
    return draft.op("ScatterND", data, places, spread, **node.attrs)


def _before_shaping(updates: gs.Tensor) -> gs.Tensor:
    """What a Reshape, cast or not, gives the shape of a row for each place."""
    maker = producer_of(updates)
    if maker is not None and maker.op == "Cast":
        maker = producer_of(maker.inputs[0])
    if maker is None or maker.op != "Reshape":
        raise Refused("its updates are not given their shape by a Reshape")
    row: gs.Tensor = maker.inputs[0]
    return row


def mask_as_places(draft: Draft, match: Match) -> gs.Tensor:
    """`x[mask] = value` as Where, from a ScatterND whose places are the mask itself.

    An exporter that does not know the dtype of the index writes so: places are never conditions.
    """
    c, node = Bench(draft), match.root
    data, places, _ = node.inputs
    mask, value = match.values["mask"], match.values["value"]
    assert mask is not None
    assert value is not None
    shape, covered, given = c.shape(mask), c.shape(data), c.shape(value)
    axes = c.facts.array(match.values["axes"] or places)
    if c.dtype(mask) != TYPE.BOOL or attribute_of(node, "reduction") not in (None, "none"):
        raise Refused("its places are numbers")
    if shape is None or covered is None or given is None:
        raise Refused("the shape of its mask, its data or its value is not known")
    if axes is None or axes.reshape(-1).tolist() not in ([-1], [len(shape)]):
        raise Refused("its mask is no line of places")
    if any(d != 1 for d in given):
        raise Refused("it writes more than one value")
    if not same_dims(shape, covered[: len(shape)]):
        raise Refused(f"that the mask `{mask.name}` is as large as the data is not provable")
    wide = c.unsqueeze(mask, range(len(shape), len(covered)))
    row = c.op("Reshape", value, c.ints([], "scalar")) if given else value
    return c.where(wide, c.cast(row, c.dtype(data)), data)
