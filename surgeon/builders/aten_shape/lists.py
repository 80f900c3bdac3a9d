"""Lists of tensors: what splits a tensor into one, and what takes its elements out again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import onnx_graphsurgeon as gs

from surgeon.arguments import CONSTRUCTORS
from surgeon.builders.aten_shape.call import LARGEST, TYPE, Call, Size
from surgeon.builders.aten_shape.histograms import edges_of_several
from surgeon.builders.aten_shape.joins import at_least
from surgeon.builders.aten_shape.slices import select
from surgeon.builders.aten_shape.slopes import gradient
from surgeon.builders.bench import Bench
from surgeon.links import maker_of
from surgeon.match import Match
from surgeon.rewrite import Draft, Refused

MOST_PARTS = 32  # as many outputs as the recipe's pattern names

MOST_SLOPES = 8
_MOST_PIECES = 64  # that a list is made of


def _even(length: Size | int, parts: int) -> list[int]:
    if not isinstance(length, int):
        raise Refused(
            f"its axis has {length.dim} elements, so the parts' sizes are known at run time only; "
            "fix it with `--shape`"
        )
    if parts < 1:
        raise Refused(f"it asks for parts of {parts} elements")
    return [parts] * (length // parts) + ([length % parts] if length % parts else [])


# The least rank, and the axis; a row is split along its only axis (torch.hsplit).
_SPLIT_ALONG = {"hsplit": (1, 1), "vsplit": (2, 0), "dsplit": (3, 2)}


def _parts(c: Call, count: int) -> list[gs.Tensor]:
    """The tensors of the list that a splitting operator makes."""
    x, kind = c.tensor(), c.node.op
    rank = c.rank(x)
    if kind in _SPLIT_ALONG:
        least, axis = _SPLIT_ALONG[kind]
        if rank < least:
            raise Refused(f"its input has rank {rank}, not {least}")
        axis = 0 if rank == 1 else axis
        return _tensor_split(c, x, axis, count)
    axis = c.axis(c.integer("dim"), rank)
    length = c.size(x, axis)
    if kind in ("unbind", "unbind_copy"):
        return [select(c, x, axis, i) for i in range(count)]
    if kind in ("split", "split_with_sizes", "split_copy"):
        name = "split_sizes" if c.args.schema.takes("split_sizes") else "split_size"
        wanted = c.listed(name)
        is_list = next(p.is_list for p in c.args.schema.parameters if p.name == name)
        given = c.args.given.get(name)
        if is_list and isinstance(given, gs.Tensor) and c.facts.of(given).rank == 0:
            is_list = False
        if is_list:
            return _pieces(c, x, axis, wanted)
        size = wanted[0]
        if isinstance(size, int) and isinstance(length, int):
            return _pieces(c, x, axis, _even(length, size) or [0])
        last = c.sub(length, c.mul(size, count - 1))
        return _pieces(c, x, axis, [size] * (count - 1) + [last])
    if kind == "chunk":
        return _chunks(c, x, axis, c.integer("chunks"), count)
    return _tensor_split(c, x, axis, count)


def _chunks(c: Bench, x: gs.Tensor, axis: int, chunks: int, count: int) -> list[gs.Tensor]:
    length = c.size(x, axis)
    if isinstance(length, int):
        each = max(-(-length // chunks), 1)
        return _pieces(c, x, axis, _even(length, each) if length else [0] * chunks)
    if count != chunks:
        _even(length, chunks)
    size = c.div(c.add(length, chunks - 1), chunks)
    return _pieces(c, x, axis, [size] * (count - 1) + [c.sub(length, c.mul(size, count - 1))])


def constant_chunk(draft: Draft, match: Match) -> Any:
    """`prim.ConstantChunk`, with the number of parts and their axis as attributes."""
    c, node = Bench(draft), match.root
    x, chunks, count = node.inputs[0], int(node.attrs["chunks"]), len(node.outputs)
    if chunks < 1:
        raise Refused(f"it asks for {chunks} parts")
    return _in_place(_chunks(c, x, c.axis(int(node.attrs["dim"]), c.rank(x)), chunks, count), count)


def _tensor_split(c: Call, x: gs.Tensor, axis: int, count: int) -> list[gs.Tensor]:
    """At indices, or into so many sections, of which the first ones have an element more."""
    names = [p.name for p in c.args.schema.parameters]
    name = names[1]
    given = c.args.given[name]
    if name == "indices" or not isinstance(given, gs.Tensor) or c.rank(given) != 0:
        return [c.slice(x, axis, a, b) for a, b in pairwise(_bounds(c, name, given, count))]
    length, sections = c.size(x, axis), c.scalar(given)
    short = c.div(length, sections)
    if isinstance(length, int) and isinstance(short, int) and isinstance(sections, int):
        long = length % sections
        return _pieces(c, x, axis, [short + (i < long) for i in range(sections)])
    many = sections if isinstance(sections, int) else count
    long_ = c.sub(length, c.mul(short, sections))
    ends: list[Size | int] = []
    for i in range(1, many + 1):
        least = c.op("Min", c.vector([i]), c.vector([long_]))
        ends.append(c.add(c.mul(short, i), Size(None, lambda t=least: t)))  # type: ignore[misc]
    return [c.slice(x, axis, a, b) for a, b in pairwise([0, *ends])]


def _bounds(c: Call, name: str, given: Any, count: int) -> list[Size | int]:
    """Where parts begin and end; of a list of unknown length, those of the first parts."""
    shape = c.shape(given) if isinstance(given, gs.Tensor) else None
    if not isinstance(given, gs.Tensor) or (shape is not None and isinstance(shape[0], int)):
        return [0, *c.listed(name), LARGEST]
    line = c.concat([c.ints([0]), c.cast(given, TYPE.INT64), c.ints([LARGEST])], 0)
    places = [c.op("Gather", line, c.ints([i], "index"), axis=0) for i in range(count + 1)]
    return [Size(None, lambda t=t: t) for t in places]  # type: ignore[misc]


def _pieces(c: Bench, x: gs.Tensor, axis: int, sizes: Sequence[Size | int]) -> list[gs.Tensor]:
    if len(sizes) == 1:
        return [x]
    known = all(isinstance(s, int) for s in sizes)
    if known or c.opset >= 13:
        parts = c.op("Split", x, c.vector(sizes, "split"), outputs=len(sizes), axis=axis)
        return list(parts)
    pieces: list[gs.Tensor] = []
    at: Size | int = 0
    for index, size in enumerate(sizes):
        end = c.add(at, size)
        pieces.append(c.slice(x, axis, at, LARGEST if index == len(sizes) - 1 else end))
        at = end
    return pieces


def _meshgrid(c: Call, count: int) -> list[gs.Tensor]:
    tensors = [c.flat(t) for t in c.args.tensors("tensors")]
    swapped = False
    if c.args.schema.takes("indexing"):
        swapped = c.value("indexing") == "xy" and len(tensors) > 1
    return mesh(c, tensors, swapped=swapped)


def mesh(c: Call, tensors: Sequence[gs.Tensor], *, swapped: bool = False) -> list[gs.Tensor]:
    """Each vector along an axis of its own, repeated along those of the others."""
    order = list(range(len(tensors)))
    if swapped:
        order[0], order[1] = 1, 0
    lengths: list[Size | int] = [0] * len(tensors)
    for tensor, axis in zip(tensors, order, strict=True):
        lengths[axis] = c.size(tensor, 0)
    found = []
    for tensor, axis in zip(tensors, order, strict=True):
        line = c.unsqueeze(tensor, [i for i in range(len(tensors)) if i != axis])
        found.append(c.op("Expand", line, c.vector(lengths, "sizes")))
    return found


def _broadcast_tensors(c: Call, count: int) -> list[gs.Tensor]:
    tensors = c.args.tensors("tensors")
    target: gs.Tensor | None = None
    rank = max(c.rank(t) for t in tensors)
    for tensor in tensors:  # the common shape, by broadcasting ones
        shape = c.op("Shape", c.unsqueeze(tensor, list(range(rank - c.rank(tensor)))))
        if target is None:
            target = shape
            continue
        ones = c.op("Equal", target, c.ints([1], "one"))
        target = c.op("Where", ones, shape, target)
    assert target is not None
    return [c.op("Expand", t, target) for t in tensors]


def _each_at_least(c: Call, count: int) -> list[gs.Tensor]:
    if not c.args.schema.takes("tensors"):
        raise Refused("it is of one tensor, and gives no list")
    return [at_least(c, tensor, int(c.node.op[-2])) for tensor in c.args.tensors("tensors")]


def _nonzero_lists(c: Call, count: int) -> list[gs.Tensor]:
    x = c.tensor("condition" if c.node.op == "where" else "self")
    if c.node.op == "where" and c.has("self"):
        raise Refused("it chooses between two tensors: it gives no list")
    holds = c.cast(x, TYPE.BOOL)
    if c.rank(x) == 0:  # a line of one element
        holds = c.op("Reshape", holds, c.ints([1], "line"))
    places = c.op("NonZero", holds)
    return [c.op("Gather", places, c.number(i, TYPE.INT64), axis=0) for i in range(count)]


def _like_flattened(c: Call, count: int) -> list[gs.Tensor]:
    """A row cut into pieces of the shapes of some tensors."""
    flat, found = c.tensor("flat"), []
    at: Size | int = 0
    for like in c.args.tensors("tensors"):
        sizes = c.sizes(like)
        end = c.add(at, c.product(sizes))
        found.append(c.reshape(c.slice(flat, 0, at, end), sizes))
        at = end
    return found


LISTS: Mapping[str, Callable[[Call, int], list[gs.Tensor]]] = {
    **dict.fromkeys(
        ("split", "split_with_sizes", "chunk", "unbind", "tensor_split", "split_copy"), _parts
    ),
    **dict.fromkeys(_SPLIT_ALONG, _parts),
    "meshgrid": _meshgrid,
    "broadcast_tensors": _broadcast_tensors,
    **dict.fromkeys(("atleast_1d", "atleast_2d", "atleast_3d"), _each_at_least),
    **dict.fromkeys(("nonzero_numpy", "where"), _nonzero_lists),
    "unflatten_dense_tensors": _like_flattened,
    **dict.fromkeys(("histogramdd", "_histogramdd_bin_edges"), edges_of_several),
}


_BY_THEMSELVES = frozenset(
    "unbind tensor_split split_with_sizes meshgrid broadcast_tensors nonzero_numpy where hsplit "
    "vsplit dsplit unflatten_dense_tensors histogramdd _histogramdd_bin_edges "
    "atleast_1d atleast_2d atleast_3d".split()
)


def _part(c: Call, x: gs.Tensor, length: Size, index: int) -> gs.Tensor:
    """One of as many parts as an axis of run time has; nothing, where PyTorch finds none there."""
    each: Size | int | None = None
    if c.node.op == "chunk" and index < c.integer("chunks"):
        chunks = c.integer("chunks")
        each = c.div(c.add(length, chunks - 1), chunks)
    elif c.node.op == "split":
        name = "split_sizes" if c.args.schema.takes("split_sizes") else "split_size"
        given = c.args.given.get(name)
        is_list = isinstance(given, gs.Tensor) and c.rank(given) != 0
        each = None if is_list else c.listed(name)[0]
    if each is None:
        raise Refused(f"how many parts {length.dim} elements have is known at run time only")
    axis = c.axis(c.integer("dim"), c.rank(x))
    return c.slice(x, axis, c.mul(each, index), c.mul(each, index + 1))


def every_part(c: Call) -> list[gs.Tensor]:
    """All elements of the list that an operator makes.

    Raises:
        Refused: How many it has is known at run time only, or they are many.
    """
    found = LISTS[c.node.op](c, _count(c))
    if len(found) > _MOST_PIECES:
        raise Refused(f"it has {len(found)} parts, of which one is taken at run time")
    return found


def _count(c: Call) -> int:
    """How many elements it has, where the operator has to be told."""
    kind = c.node.op
    if kind in ("nonzero_numpy", "where"):
        return max(c.rank(c.tensor("condition" if kind == "where" else "self")), 1)
    if kind in ("tensor_split", *_SPLIT_ALONG):
        return _sections(c)
    if kind in _BY_THEMSELVES and kind != "unbind":
        return 0
    x = c.tensor()
    length = c.size(x, c.axis(c.integer("dim"), c.rank(x)))
    if not isinstance(length, int):
        raise Refused(f"how many parts {length.dim} elements have is known at run time only")
    return length


def _sections(c: Call) -> int:
    name = c.args.schema.parameters[1].name
    given = c.args.given[name]
    if name != "indices" and isinstance(given, gs.Tensor) and c.rank(given) == 0:
        number = c.scalar(given)
        if isinstance(number, int):
            return number
    elif isinstance(given, list):
        return len(given) + 1
    elif given is not None and (shape := c.shape(given)) and isinstance(shape[0], int):
        return shape[0] + 1
    raise Refused("how many parts it makes is known at run time only")


def element(c: Call, index: int) -> gs.Tensor:
    """One element of the list that an operator makes; counted from the end where it is below 0.

    Raises:
        Refused: There is none, or which it is is known at run time only.
    """
    if index >= 0 and c.node.op not in _BY_THEMSELVES:
        x = c.tensor()
        length = c.size(x, c.axis(c.integer("dim"), c.rank(x)))
        if not isinstance(length, int):
            return _part(c, x, length, index)
    parts = every_part(c) if index < 0 else LISTS[c.node.op](c, index + 1)
    if not -len(parts) <= index < len(parts):
        raise Refused(f"its list has {len(parts)} elements")
    return parts[index]


def list_element(draft: Draft, match: Match) -> gs.Tensor:
    """`SequenceAt` on the list that an ATen operator makes."""
    source, position = match.values["list"], match.values["position"]
    assert source is not None
    assert position is not None
    producer = maker_of(source)
    array = draft.facts.array(position)
    if producer is None or producer.domain != "aten" or producer.op not in LISTS:
        raise Refused("no ATen operator makes its list")
    if array is None:
        raise Refused("its position is not known")
    return element(Call(draft, producer), int(array.item()))


def slope(draft: Draft, match: Match) -> Any:
    """`SequenceAt` on the list of slopes that `gradient` gives."""
    root = match.root
    array = draft.facts.array(root.inputs[1])
    if array is None:
        raise Refused("its position is not known")
    found = gradient(Call(draft, root.inputs[0].inputs[0]), MOST_SLOPES)
    if not -len(found) <= array.item() < len(found):
        raise Refused(f"its list has {len(found)} elements")
    return found[int(array.item())]


def unpack_slopes(draft: Draft, match: Match) -> Any:
    """The slopes that `gradient` gives, each in its place; other lists compute nothing."""
    source, count = match.root.inputs[0], len(match.root.outputs)
    producer = maker_of(source)
    if producer is None or producer.domain != "aten" or producer.op != "gradient":
        raise Refused("its list holds no slopes")
    return _in_place(gradient(Call(draft, producer), count), count, MOST_SLOPES)


def unpack_list(draft: Draft, match: Match) -> Any:
    """The tensors of a list, each in its place: `prim.ListUnpack` and what made the list."""
    unpack = match.root
    count = len(unpack.outputs)
    source = unpack.inputs[0]
    producer = maker_of(source)
    found: list[gs.Tensor]
    if producer is not None and producer.op in CONSTRUCTORS:
        found = list(producer.inputs)
    elif producer is not None and producer.domain == "aten":
        lower = LISTS.get(producer.op)
        if lower is None:
            raise Refused(f"its list is made by `aten.{producer.op}`, which is no list of tensors")
        found = lower(Call(draft, producer), count)
    else:
        fact = draft.facts.of(source)
        if fact.rank is None:
            raise Refused("what its list is made of is not known")
        found = [
            draft.op("Gather", source, draft.constant(np.asarray(i, np.int64), "index"), axis=0)
            for i in range(count)
        ]
    return _in_place(found, count)


def unpacked(draft: Draft, match: Match) -> Any:
    """The elements of a list that the operator gives out itself (the attribute `_outputs`)."""
    count = len(match.root.outputs)
    return _in_place(LISTS[match.root.op](Call(draft, match.root), count), count)


def _in_place(found: list[gs.Tensor], count: int, most: int = MOST_PARTS) -> tuple[gs.Tensor, ...]:
    if len(found) != count:
        raise Refused(f"its list has {len(found)} elements for {count} outputs")
    return as_many(found, most)


def as_many(values: Sequence[gs.Tensor], most: int) -> tuple[gs.Tensor, ...]:
    """As many values as a rule names: the first stands for those that its node lacks."""
    return (*values, *[values[0]] * (most - len(values)))
