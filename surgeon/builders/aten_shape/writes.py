"""Writing at indices and masks, by linear places where need be."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import onnx_graphsurgeon as gs

from surgeon import dims
from surgeon.arguments import Arguments
from surgeon.builders.aten_shape.call import NARROW, TYPE, Call
from surgeon.builders.aten_shape.combining import combined_elements, combined_lines, neutral
from surgeon.builders.aten_shape.fitting import as_indexed
from surgeon.builders.aten_shape.indices import (
    MASKS,
    first_axis,
    linear_places,
    masks_of,
    no_old_number,
    place_of,
)
from surgeon.builders.aten_shape.slices import from_front
from surgeon.builders.aten_shape.unflattened import mask_of_axes, side_by_side, without_ones
from surgeon.facts.fact import same_dims
from surgeon.facts.kinds import FLOATS
from surgeon.rewrite import Refused


def _index_put(c: Call) -> gs.Tensor:
    x, values = c.tensor(), c.cast(c.tensor("values"), c.dtype(c.tensor()))
    given = masks_of(c, c.args.tensors("indices"))
    if len(given) == 1 and given[0] is not None:
        given = [mask_of_axes(c, x, given[0], values)]
    elif len(given) > 1:
        given = [without_ones(c, x, given, at) for at in range(len(given))]
        given = side_by_side(c, x, given, values)
    return put_at(c, x, given, values, accumulate=bool(c.value("accumulate")))


def put_at(
    c: Call, x: gs.Tensor, given: list[gs.Tensor | None], values: gs.Tensor, *, accumulate: bool
) -> gs.Tensor:
    """`x` with values written, or added, at indices and masks."""
    while given and given[-1] is None:
        given.pop()
    said = [t for t in given if t is not None]
    if not said:  # as PyTorch 1.5 to 1.10 write `x[:] = v`
        return c.op("Add", x, values) if accumulate else c.op("Expand", values, c.op("Shape", x))
    if len(said) == 1 and c.dtype(said[0]) in MASKS:
        found = _where_masked(c, x, said[0], first_axis(given), values, accumulate=accumulate)
        if found is not None:
            return found
        ordered = not accumulate and c.opset >= 11 and c.shape(values) and c.rank(said[0])
        if len(given) == 1 and ordered:
            return _put_in_order(c, x, said[0], values)
    place = place_of(c, x, given)
    rank, lengths = c.rank(x), c.sizes(x)
    axes, rest = place.axes, [i for i in range(rank) if i not in place.axes]
    linear = linear_places(c, x, place)
    front = c.permute(x, [*axes, *rest])
    whole = c.product([lengths[a] for a in axes])
    behind = [lengths[i] for i in rest]
    flat = c.reshape(front, [whole, *behind])
    begin = axes[0] if place.joined else 0
    values = as_indexed(c, values, linear, [lengths[i] for i in rest], begin, c.shape(x))
    order = [begin + i for i in range(place.rank)]
    others = [i for i in range(place.rank + len(rest)) if i not in order]
    values = c.permute(values, [*order, *others])
    lines = values
    if place.rank != 1:
        many = c.product(c.sizes(linear))
        lines = c.reshape(values, [many, *behind])
    result = _scatter_lines(c, flat, linear, lines, accumulate=accumulate)
    result = c.reshape(result, [*[lengths[a] for a in axes], *behind])
    back = [*axes, *rest]
    return c.permute(result, [back.index(i) for i in range(rank)])


def _put_in_order(c: Call, x: gs.Tensor, mask: gs.Tensor, values: gs.Tensor) -> gs.Tensor:
    """A write through a mask of the first axes, of one line of values for each of its places."""
    found = c.op("NonZero", c.cast(mask, TYPE.BOOL))
    places = c.op("Transpose", found, perm=[1, 0])
    behind, shape = c.sizes(x)[c.rank(mask) :], c.shape(values)
    assert shape is not None
    many = isinstance(shape[0], int) and shape[0] > 1  # else one may stand for all
    if not many or not same_dims(shape[1:], (c.shape(x) or ())[c.rank(mask) :]):
        extra = len(shape) - 1 - len(behind)
        values = c.squeeze(values, list(range(extra)) if extra > 0 else [])
        values = c.op("Expand", values, c.vector([c.size(found, 1), *behind], "sizes"))
    return c.op("ScatterND", x, places, values)


def _where_masked(
    c: Call, x: gs.Tensor, mask: gs.Tensor, axis: int, values: gs.Tensor, *, accumulate: bool
) -> gs.Tensor | None:
    """A write through a mask of values that do not differ from place to place; None elsewhere."""
    rank, depth, shape = c.rank(x), c.rank(mask), c.shape(values)
    if shape is None or depth == 0:
        return None
    behind = rank - axis - depth
    _fitting(c, x, mask, axis)
    at = len(shape) - behind - 1  # the axis of the values that runs over the mask's places
    if at >= 0 and shape[at] != 1:
        return None
    if any(d != 1 for d in shape[:at] if at > 0) and at != axis:
        return None
    if at >= 0:  # one axis for the places becomes one for each of the mask
        values = c.unsqueeze(values, [at + 1 + i for i in range(depth - 1)])
    mask = c.cast(mask, TYPE.BOOL)
    wide = c.unsqueeze(mask, [depth + i for i in range(behind)])
    if accumulate:
        values = c.op("Add", x, values)
    return c.where(wide, values, x)


def _fitting(c: Call, x: gs.Tensor, mask: gs.Tensor, axis: int) -> None:
    """Raises Refused where the mask is provably of another shape than what it covers."""
    sizes, lengths = c.shape(mask), c.shape(x)
    if sizes is None or lengths is None:
        return
    covered = lengths[axis : axis + len(sizes)]
    pairs = zip(sizes, covered, strict=False)
    if len(covered) < len(sizes) or any(dims.equal(a, b) is False for a, b in pairs):
        mine, its = (", ".join(map(str, line)) for line in (sizes, covered))
        raise Refused(f"its mask of [{mine}] does not cover [{its}] of its input")


def _scatter_lines(
    c: Call, x: gs.Tensor, index: gs.Tensor, lines: gs.Tensor, *, accumulate: bool
) -> gs.Tensor:
    """Rows of `x` (its first axis) replaced by, or increased by, rows of `lines`.

    The index may have any rank; its elements stand for the rows in their order.
    """
    if accumulate:
        return combined_lines(c, x, index, lines, "add")
    if c.opset >= 11:
        return c.op("ScatterND", x, c.column(index), lines)
    wide = c.op("Expand", c.column(index, c.rank(lines)), c.op("Shape", lines))
    return c.op("ScatterElements", x, wide, lines, axis=0)


def _line_index(c: Call, x: gs.Tensor, axis: int, index: gs.Tensor) -> gs.Tensor:
    return from_front(c, c.flat(c.cast(index, TYPE.INT64)), c.size(x, axis))


def _lines(c: Call, change: Callable[[gs.Tensor, gs.Tensor, gs.Tensor], gs.Tensor]) -> gs.Tensor:
    """With `change(x, index, source)` made along the first axis instead of `dim`."""
    x, source = c.tensor(), c.cast(c.tensor("source"), c.dtype(c.tensor()))
    rank = c.rank(x)
    axis = c.axis(c.integer("dim"), rank)
    index = _line_index(c, x, axis, c.tensor("index"))
    if c.rank(source) == 0:
        source = c.op("Reshape", source, c.ints([1], "target"))
    there = [axis, *[i for i in range(rank) if i != axis]]
    result = change(c.permute(x, there), index, c.permute(source, there))
    return c.permute(result, [there.index(i) for i in range(rank)])


def _index_copy(c: Call) -> gs.Tensor:
    return _lines(c, lambda x, i, s: _scatter_lines(c, x, i, s, accumulate=False))


def _index_add(c: Call) -> gs.Tensor:
    alpha = c.value("alpha")

    def change(x: gs.Tensor, index: gs.Tensor, source: gs.Tensor) -> gs.Tensor:
        if alpha not in (None, 1):
            kind = TYPE.INT32 if c.dtype(x) in NARROW else c.dtype(x)
            source = c.op("Mul", c.cast(source, kind), c.number(alpha, kind))
            source = c.cast(source, c.dtype(x))
        return _scatter_lines(c, x, index, source, accumulate=True)

    return _lines(c, change)


def _index_fill(c: Call) -> gs.Tensor:
    x = c.tensor()
    rank, dtype = c.rank(x), c.dtype(x)
    axis = c.axis(c.integer("dim"), rank)
    index = _line_index(c, x, axis, c.tensor("index"))
    behind = rank - axis
    places = c.unsqueeze(c.count(c.size(x, axis)), [0, *range(2, behind + 1)])
    hit = c.cast(c.op("Equal", places, c.column(index, behind + 1)), TYPE.FLOAT)
    count = c.size(index, 0)
    if not isinstance(count, int) or count == 0:
        zeros = c.op("Mul", c.cast(places, TYPE.FLOAT), c.number(0, TYPE.FLOAT))
        hit = c.concat([hit, zeros], 0)  # so that no index at all is no maximum of none
    found = c.op("ReduceMax", hit, c.ints([0], "axes"), keepdims=int(axis > 0))
    some = c.op("Greater", found, c.number(0, TYPE.FLOAT))
    given = c.tensor("value")
    value = c.cast(given, dtype)
    array = c.facts.array(given)
    if array is not None:
        value = c.number(array.reshape(-1)[0], dtype)
    return c.where(some, value, x)


def _scatter(c: Call) -> gs.Tensor:
    x, index = c.tensor(), c.cast(c.tensor("index"), TYPE.INT64)
    dtype, rank = c.dtype(x), c.rank(x)
    reduce = {"add": "add", "multiply": "mul"}.get(
        str(c.value("reduce")) if c.args.schema.takes("reduce") else "", "none"
    )
    if c.node.op == "scatter_add":
        reduce = "add"
    given = c.tensor("src" if c.args.schema.takes("src") else "value")
    source = c.cast(given, dtype)
    array = c.facts.array(given)
    if array is not None and array.ndim == 0 and not c.args.schema.takes("src"):
        source = c.number(array, dtype)
    axis = c.axis(c.integer("dim"), rank)
    source = _of_index(c, source, index, spread=not c.args.schema.takes("src"))
    return scatter(c, x, index, source, axis, reduce)


def _of_index(c: Call, source: gs.Tensor, index: gs.Tensor, *, spread: bool) -> gs.Tensor:
    """The source in the shape of the index: a value repeated, or the first elements."""
    if spread or c.facts.of(source).rank == 0:
        return c.op("Expand", source, c.op("Shape", index))
    mine, its = c.shape(source), c.shape(index)
    if mine is None or its is None:
        return source
    for axis, (a, b) in enumerate(zip(mine, its, strict=False)):
        if dims.equal(a, b) is not True:
            source = c.slice(source, axis, 0, c.size(index, axis))
    return source


def scatter(
    c: Call, x: gs.Tensor, index: gs.Tensor, source: gs.Tensor, axis: int, reduce: str
) -> gs.Tensor:
    """Elements written at indices along an axis."""
    if reduce != "none":
        return combined_elements(c, x, index, source, axis, reduce)
    return c.op("ScatterElements", x, index, source, axis=axis)


def _scatter_reduce(c: Call) -> gs.Tensor:
    x, index = c.tensor(), c.cast(c.tensor("index"), TYPE.INT64)
    dtype, rank = c.dtype(x), c.rank(x)
    axis = c.axis(c.integer("dim"), rank)
    source = _of_index(c, c.cast(c.tensor("src"), dtype), index, spread=False)
    return _reduced(c, x, index, source, axis)


def _index_reduce(c: Call) -> gs.Tensor:
    """Whole lines of the source, each to the line that the index names."""
    x, source = c.tensor(), c.cast(c.tensor("source"), c.dtype(c.tensor()))
    rank = c.rank(x)
    if c.rank(source) != rank:
        raise Refused(f"its input has rank {rank}, its source {c.rank(source)}")
    axis = c.axis(c.integer("dim"), rank)
    index = _line_index(c, x, axis, c.tensor("index"))
    behind = c.unsqueeze(index, list(range(1, rank - axis)))
    return _reduced(c, x, c.op("Expand", behind, c.op("Shape", source)), source, axis)


def _reduced(c: Call, x: gs.Tensor, index: gs.Tensor, source: gs.Tensor, axis: int) -> gs.Tensor:
    """What falls on one place, reduced as `reduce` says."""
    dtype = c.dtype(x)
    kind, include = str(c.value("reduce")), bool(c.value("include_self"))
    reduction = {"sum": "add", "prod": "mul", "amax": "max", "amin": "min", "mean": "add"}[kind]
    begin = x
    if not include:
        fill = c.op("Expand", c.number(neutral(dtype, reduction), dtype), c.op("Shape", index))
        begin = scatter(c, x, index, fill, axis, "none")
    result = scatter(c, begin, index, source, axis, reduction)
    if kind != "mean":
        return result
    if dtype == TYPE.BOOL:
        raise Refused("PyTorch has no mean of booleans")
    one = c.op("Expand", c.number(1, dtype), c.op("Shape", index))
    start = c.op("Expand", c.number(1 if include else 0, dtype), c.op("Shape", x))
    count = scatter(c, start, index, one, axis, "add")
    if dtype in FLOATS:
        return c.op("Div", result, c.op("Max", count, c.number(1, dtype)))
    result, count = c.cast(result, TYPE.INT64), c.cast(count, TYPE.INT64)
    count = c.op("Where", c.cast(count, TYPE.BOOL), count, c.number(1, TYPE.INT64))
    below = c.op("Sub", result, c.op("Mod", result, count))  # it rounds down
    return c.cast(c.op("Div", below, count), dtype)


def _put(c: Call) -> gs.Tensor:
    x = c.tensor()
    lengths = c.sizes(x)
    source = c.flat(c.cast(c.tensor("source"), c.dtype(x)))
    index = c.flat(c.cast(c.tensor("index"), TYPE.INT64))
    flat = c.flat(x)
    index = from_front(c, index, c.product(lengths))
    accumulate = bool(c.value("accumulate"))
    return c.reshape(_scatter_lines(c, flat, index, source, accumulate=accumulate), lengths)


def _of_any_rank(lowering: Callable[[Call], gs.Tensor]) -> Callable[[Call], gs.Tensor]:
    """A lowering that takes what has no axis for a line of one element, as PyTorch does."""

    def run(c: Call) -> gs.Tensor:
        if c.rank(c.tensor()) != 0:
            return lowering(c)
        if c.node.op == "index_fill" and not c.facts.model.is_before(1, 5):
            no_old_number(c, 1, 9)
        given = dict(c.args.given)
        for name in ("self", "index", "src", "source"):
            tensor = given.get(name)
            if isinstance(tensor, gs.Tensor) and c.facts.of(tensor).rank == 0:
                given[name] = c.flat(tensor)
        c.args = Arguments(c.args.schema, given, c.args.facts)
        made: gs.Tensor = c.op("Reshape", lowering(c), c.ints([], "scalar"))
        return made

    return run


LOWERINGS: Mapping[str, Callable[[Call], Any]] = {
    **dict.fromkeys(("index_put", "_unsafe_index_put", "_index_put_impl"), _index_put),
    "index_copy": _of_any_rank(_index_copy),
    "index_add": _of_any_rank(_index_add),
    "index_fill": _of_any_rank(_index_fill),
    **dict.fromkeys(("scatter", "scatter_add"), _of_any_rank(_scatter)),
    "scatter_reduce": _of_any_rank(_scatter_reduce),
    "index_reduce": _of_any_rank(_index_reduce),
    "put": _put,
}
