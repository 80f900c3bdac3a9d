"""Sizes, views, permutations and expansions of PyTorch as ONNX's."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnx_graphsurgeon as gs

from surgeon import dims
from surgeon.builders.aten_shape.call import TYPE, Call, Size
from surgeon.builders.aten_shape.slices import from_front
from surgeon.builders.bench import dim_of
from surgeon.links import maker_of
from surgeon.rewrite import Refused


def _same(c: Call) -> gs.Tensor:
    return c.tensor()


def _size(c: Call) -> gs.Tensor:
    x = c.tensor()
    shape = c.op("Shape", x)
    if not c.has("dim"):
        return shape
    dim = c.integer("dim")
    if dim < 0:
        dim = c.axis(dim, c.rank(x))
    return c.op("Gather", shape, c.number(dim, TYPE.INT64), axis=0)


def _numel(c: Call) -> gs.Tensor:
    return c.op("Size", c.tensor())


def _item(c: Call) -> gs.Tensor:
    """The one element of a tensor as a number, or whether it is not 0."""
    x = c.tensor()
    if c.node.op == "is_nonzero":
        x = c.cast(x, TYPE.BOOL)
    return x if c.facts.of(x).rank == 0 else c.op("Reshape", x, c.ints([], "scalar"))


def _view(c: Call) -> gs.Tensor:
    x = c.tensor()
    if c.args.schema.overload == "dtype":
        return _same_bits(c, x)
    name = "shape" if c.args.schema.takes("shape") else "size"
    return _viewed(c, x, name)


def _same_bits(c: Call, x: gs.Tensor) -> gs.Tensor:
    """The bits of each element as one of another dtype."""
    before, after = c.dtype(x), c.wanted_dtype(c.dtype(x))
    sizes = [onnx.helper.tensor_dtype_to_np_dtype(dtype).itemsize for dtype in (before, after)]
    if sizes[0] != sizes[1] or after == TYPE.BOOL:
        raise Refused("it reads the bits as a dtype of another width, which no ONNX operator does")
    return x if before == after else c.op("BitCast", x, to=after)


def _viewed(c: Call, x: gs.Tensor, name: str) -> gs.Tensor:
    given = c.args.given.get(name)
    try:
        wanted = c.listed(name)
    except Refused:
        if not isinstance(given, gs.Tensor):
            raise
        extra = {"allowzero": 1} if c.opset >= 14 else {}
        return c.op("Reshape", x, c.cast(given, TYPE.INT64), **extra)
    plain = list(map(dim_of, wanted))
    if plain.count(-1) == 1 and None not in plain:
        whole = _whole(c, x, plain)
        if whole is not None:
            at = plain.index(-1)
            wanted[at] = whole if isinstance(whole, int) else Size(whole, lambda: c.ints([-1]))
    if _may_be_of_samples(c, x) and not all(isinstance(s, int) for s in wanted):
        return c.op("Reshape", x, c.vector(wanted, "target"))
    return c.reshape(x, wanted)


def _may_be_of_samples(c: Call, x: gs.Tensor) -> bool:
    """Whether it is of a ConvTranspose whose groups may be the batch of a trace.

    How many samples there are, the view behind alone says then (`transposed-any-batch`).
    """
    made = maker_of(x)
    return made is not None and made.op == "ConvTranspose" and c.facts.array(made.inputs[1]) is None


def _whole(c: Call, x: gs.Tensor, plain: Sequence[Any]) -> Any:
    """What the -1 stands for, where provable."""
    shape = c.shape(x)
    if shape is None:
        return None
    others = dims.product([d for d in plain if d != -1])
    return None if others == 0 else dims.exact_quotient(dims.product(shape), others)


def _view_as(c: Call) -> gs.Tensor:
    return c.reshape(c.tensor(), c.sizes(c.tensor("other")))


def _flatten(c: Call) -> gs.Tensor:
    if c.args.schema.overload != "using_ints":
        raise Refused("its dims have names")
    x = c.tensor()
    rank = c.rank(x)
    if rank == 0:
        return c.op("Reshape", x, c.ints([1], "target"))
    start, end = (c.axis(c.integer(n), rank) for n in ("start_dim", "end_dim"))
    if start >= end:
        return x
    lengths = c.sizes(x)
    middle = c.product(lengths[start : end + 1])
    return c.reshape(x, [*lengths[:start], middle, *lengths[end + 1 :]])


def _unflatten(c: Call) -> gs.Tensor:
    x = c.tensor()
    axis = c.axis(c.integer("dim"), c.rank(x))
    lengths, parts = c.sizes(x), c.listed("sizes")
    if -1 in parts:
        at = parts.index(-1)
        others = c.product([p for p in parts if p != -1])
        parts[at] = c.div(lengths[axis], others)
    return c.reshape(x, [*lengths[:axis], *parts, *lengths[axis + 1 :]])


def _transposed(c: Call) -> gs.Tensor:
    x = c.tensor()
    rank = c.rank(x)
    if c.node.op in ("t", "numpy_T"):
        if c.node.op == "t" and rank > 2:
            raise Refused(f"its input has rank {rank}, t takes at most 2")
        return c.permute(x, list(range(rank))[::-1])
    if c.node.op in ("mT", "adjoint", "mH"):
        first, second = -2, -1
    else:
        names = ("axis0", "axis1") if c.args.schema.takes("axis0") else None
        both = [c.counted(n) for n in names or ("dim0", "dim1")]
        if any(not isinstance(dim, int) for dim in both):
            return _permuted(c, x, _exchanged(c, both, rank))
        first, second = (c.integer(n) for n in names or ("dim0", "dim1"))
    if rank == 0:
        return x
    first, second = c.axis(first, rank), c.axis(second, rank)
    perm = list(range(rank))
    perm[first], perm[second] = perm[second], perm[first]
    return c.permute(x, perm)


def _permute(c: Call) -> gs.Tensor:
    x = c.tensor()
    rank = c.rank(x)
    given = c.args.given.get("dims")
    known = not isinstance(given, gs.Tensor) or c.facts.of(given).value is not None
    if not known and c.facts.array(given) is None:  # as many as there are axes
        return _permuted(c, x, c.cast(c.flat(given), TYPE.INT64))
    dims = c.listed("dims")
    if all(isinstance(dim, int) for dim in dims):
        return c.permute(x, [c.axis(int(d), rank) for d in c.args.dims("dims")])
    return _permuted(c, x, c.vector(dims, "dims"))


def _exchanged(c: Call, both: Sequence[Size | int], rank: int) -> gs.Tensor:
    """The axes in order, two of them in each other's place, which are known at run time."""
    order = c.count(rank)
    first, second = (from_front(c, c.vector([dim]), rank) for dim in both)
    behind = c.op("Where", c.op("Equal", order, second), first, order)
    return c.op("Where", c.op("Equal", order, first), second, behind)


def _permuted(c: Call, x: gs.Tensor, dims: gs.Tensor) -> gs.Tensor:
    """Each element from the place where it stands in memory: dims are known at run time only."""
    rank, lengths = c.rank(x), c.sizes(x)
    many = c.size(dims, 0)
    if isinstance(many, int) and many != rank:
        raise Refused(f"it has {many} dims where {rank} are needed")
    dims = from_front(c, dims, rank)
    steps = c.vector([c.product(lengths[axis + 1 :]) for axis in range(rank)], "steps")
    sizes, steps = (c.op("Gather", each, dims, axis=0) for each in (c.vector(lengths), steps))
    places = None
    for axis in range(rank):
        size, step = (c.slice(each, 0, axis, axis + 1) for each in (sizes, steps))
        along = c.op("Mul", c.count(Size(None, lambda size=size: size)), step)  # type: ignore[misc]
        along = c.unsqueeze(along, [n for n in range(rank) if n != axis])
        places = along if places is None else c.op("Add", places, along)
    return x if places is None else c.op("Gather", c.flat(x), places, axis=0)


def _movedim(c: Call) -> gs.Tensor:
    x = c.tensor()
    rank = c.rank(x)
    source, destination = (
        [c.axis(int(d), rank) for d in c.args.dims(n)] for n in ("source", "destination")
    )
    if rank == 0:
        return x
    perm = [-1] * rank
    for s, d in zip(source, destination, strict=True):
        perm[d] = s
    rest = iter([i for i in range(rank) if i not in source])
    return c.permute(x, [p if p >= 0 else next(rest) for p in perm])


def _unsqueeze(c: Call) -> gs.Tensor:
    x, dim = c.tensor(), c.integer("dim")
    return c.unsqueeze(x, [dim if dim >= 0 else c.axis(dim, c.rank(x) + 1)])


def _squeeze(c: Call) -> gs.Tensor:
    x = c.tensor()
    shape = c.shape(x)
    if not c.has("dim"):
        if shape is not None and all(dims.equal(d, 1) is not None for d in shape):
            return c.squeeze(x, [i for i, d in enumerate(shape) if d == 1])
        return c.op("Squeeze", x)
    rank = c.rank(x)
    assert shape is not None
    if rank == 0:
        return x
    asked = sorted(c.axis(int(d), rank) for d in c.args.dims("dim"))
    are_one = [dims.equal(shape[axis], 1) for axis in asked]
    if None in are_one:
        are_one = [dims.equal(dims.substitute(shape[a], c.facts.defined_at), 1) for a in asked]
    if None in are_one:
        return squeezed_at_run_time(c, x, asked)
    return c.squeeze(x, [axis for axis, is_one in zip(asked, are_one, strict=True) if is_one])


def squeezed_at_run_time(c: Call, x: gs.Tensor, asked: Sequence[int]) -> gs.Tensor:
    """Without those of the axes that are 1; how many are left is known at run time only."""
    sizes = c.op("Shape", x)
    others = c.draft.constant(np.array([axis not in asked for axis in range(c.rank(x))]), "others")
    kept = c.op("Or", others, c.op("Not", c.op("Equal", sizes, c.ints([1], "one"))))
    extra = {"allowzero": 1} if c.opset >= 14 else {}
    return c.op("Reshape", x, c.op("Compress", sizes, kept, axis=0), **extra)


def _expand(c: Call) -> gs.Tensor:
    x = c.tensor()
    try:
        wanted = c.listed("size")
    except Refused:
        given = c.args.given.get("size")
        if not isinstance(given, gs.Tensor):
            raise
        return c.op("Expand", x, _without_minus(c, c.cast(given, TYPE.INT64)))
    shape = c.shape(x)
    lengths: list[Size | int] = []
    for index, size in enumerate(wanted):
        if size == -1:
            lengths.append(1)
        elif isinstance(size, Size) and (size.dim is None or not dims.not_negative(size.dim)):
            lengths.append(
                Size(size.dim, lambda s=size: _without_minus(c, s.tensor))  # type: ignore[misc]
            )
        else:
            axis = index - len(wanted) + (len(shape) if shape is not None else 0)
            same = (
                shape is not None
                and axis >= 0
                and (dim := dim_of(size)) is not None
                and dims.equal(shape[axis], dim) is True
            )
            lengths.append(1 if same else size)
    if shape is not None and len(wanted) == len(shape) and all(n == 1 for n in lengths):
        return x
    return c.op("Expand", x, c.vector(lengths, "target"))


def _without_minus(c: Call, sizes: gs.Tensor) -> gs.Tensor:
    """-1 keeps a dimension in PyTorch; in ONNX that is 1."""
    keep = c.op("Equal", sizes, c.ints([-1], "keep"))
    return c.op("Where", keep, c.ints([1], "one"), sizes)


def _expand_as(c: Call) -> gs.Tensor:
    return c.op("Expand", c.tensor(), c.op("Shape", c.tensor("other")))


def _repeat(c: Call) -> gs.Tensor:
    x = c.tensor()
    name = "dims" if c.args.schema.takes("dims") else "repeats"
    times, rank = c.listed(name), c.rank(x)
    if len(times) < rank:
        if c.node.op == "repeat":
            raise Refused(f"{len(times)} numbers for an input of rank {rank}")
        times = [*[1] * (rank - len(times)), *times]
    x = c.unsqueeze(x, list(range(len(times) - rank)))
    if all(n == 1 for n in times):
        return x
    return c.op("Tile", x, c.vector(times, "repeats"))


def _pixel_shuffle(c: Call) -> gs.Tensor:
    x, r = c.tensor(), c.integer("upscale_factor")
    rank = c.rank(x)
    if r == 1:
        return x
    if rank == 4 and c.opset >= 11 and c.dtype(x) == TYPE.FLOAT:
        return c.op("DepthToSpace", x, blocksize=r, mode="CRD")
    *batch, channels, height, width = c.sizes(x)
    deep = c.div(channels, r * r)
    n = len(batch)
    split = c.reshape(x, [*batch, deep, r, r, height, width])
    moved = c.permute(split, [*range(n + 1), n + 3, n + 1, n + 4, n + 2])
    return c.reshape(moved, [*batch, deep, c.mul(height, r), c.mul(width, r)])


def _pixel_unshuffle(c: Call) -> gs.Tensor:
    x, r = c.tensor(), c.integer("downscale_factor")
    if r == 1:
        return x
    *batch, channels, height, width = c.sizes(x)
    low, narrow = c.div(height, r), c.div(width, r)
    n = len(batch)
    split = c.reshape(x, [*batch, channels, low, r, narrow, r])
    moved = c.permute(split, [*range(n + 1), n + 2, n + 4, n + 1, n + 3])
    return c.reshape(moved, [*batch, c.mul(channels, r * r), low, narrow])


def _channel_shuffle(c: Call) -> gs.Tensor:
    x, groups = c.tensor(), c.integer("groups")
    batch, channels, *rest = c.sizes(x)
    each = c.div(channels, groups)
    split = c.reshape(x, [batch, groups, each, c.product(rest)])
    return c.reshape(c.permute(split, [0, 2, 1, 3]), [batch, channels, *rest])


LOWERINGS: Mapping[str, Callable[[Call], Any]] = {
    **dict.fromkeys(("contiguous", "clone", "detach", "alias", "lift_fresh"), _same),
    "size": _size,
    "_shape_as_tensor": lambda c: c.op("Shape", c.tensor()),
    "numel": _numel,
    **dict.fromkeys(("view", "reshape", "_unsafe_view", "_reshape_alias"), _view),
    **dict.fromkeys(("item", "is_nonzero"), _item),
    **dict.fromkeys(("view_as", "reshape_as"), _view_as),
    "flatten": _flatten,
    "unflatten": _unflatten,
    **dict.fromkeys(("t", "numpy_T", "mT", "transpose", "swapaxes", "swapdims"), _transposed),
    "permute": _permute,
    **dict.fromkeys(("movedim", "moveaxis"), _movedim),
    "unsqueeze": _unsqueeze,
    "squeeze": _squeeze,
    **dict.fromkeys(("expand", "broadcast_to"), _expand),
    "expand_as": _expand_as,
    **dict.fromkeys(("repeat", "tile"), _repeat),
    "pixel_shuffle": _pixel_shuffle,
    "pixel_unshuffle": _pixel_unshuffle,
    "channel_shuffle": _channel_shuffle,
}
