"""Several tensors put together: joined, stacked, on a diagonal, multiplied block by block."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import onnx_graphsurgeon as gs

from surgeon.builders.aten_shape.call import NARROW, TYPE, Call, Size
from surgeon.rewrite import Refused


def at_least(c: Call, x: gs.Tensor, rank: int) -> gs.Tensor:
    """As numpy's atleast_1d, _2d, _3d."""
    has = c.rank(x)
    if has >= rank:
        return x
    axes = {1: [0], 2: [0, 1][: 2 - has], 3: {0: [0, 1, 2], 1: [0, 2], 2: [2]}.get(has, [])}
    return c.unsqueeze(x, axes[rank])


def _cat(c: Call) -> gs.Tensor:
    tensors = c.promoted(c.args.tensors("tensors"))
    kept = [t for t in tensors if c.shape(t) != (0,)] or tensors[:1]
    rank = max([c.facts.of(t).rank or 0 for t in kept])
    dim = c.integer("dim")
    if dim < 0:
        if not rank:
            raise Refused("the rank of its operands is not known")
        dim = c.axis(dim, rank)
    if any(c.facts.of(t).rank == 1 for t in kept) and rank > 1:
        raise Refused("it skips an operand of rank 1, if that is empty at run time")
    return c.concat(kept, dim)


def _stack(c: Call) -> gs.Tensor:
    tensors = c.promoted(c.args.tensors("tensors"))
    kind = c.node.op
    if kind == "stack":
        axis = c.axis(c.integer("dim"), c.rank(tensors[0]) + 1)
        return c.concat([c.unsqueeze(t, [axis]) for t in tensors], axis)
    if kind == "hstack":
        tensors = [at_least(c, t, 1) for t in tensors]
        return c.concat(tensors, 0 if c.rank(tensors[0]) == 1 else 1)
    if kind == "column_stack":
        columns = [
            c.op("Reshape", t, c.ints([-1, 1], "target")) if c.rank(t) < 2 else t for t in tensors
        ]
        return c.concat(columns, 1)
    rank = {"vstack": 2, "row_stack": 2, "dstack": 3}[kind]
    return c.concat([at_least(c, t, rank) for t in tensors], rank - 1 if rank == 3 else 0)


def _atleast(c: Call) -> gs.Tensor:
    return at_least(c, c.tensor(), int(c.node.op[-2]))


def _kron(c: Call) -> gs.Tensor:
    first, second = c.promoted([c.tensor(), c.tensor("other")])
    rank = max(c.rank(first), c.rank(second))
    first = c.unsqueeze(first, list(range(rank - c.rank(first))))
    second = c.unsqueeze(second, list(range(rank - c.rank(second))))
    total = [c.mul(a, b) for a, b in zip(c.sizes(first), c.sizes(second), strict=True)]
    dtype = c.dtype(first)
    times = "And" if dtype == TYPE.BOOL else "Mul"
    if times == "Mul" and dtype in NARROW:  # which wrap
        first, second = (c.cast(x, TYPE.INT32) for x in (first, second))
    left = c.unsqueeze(first, [2 * i + 1 for i in range(rank)])
    right = c.unsqueeze(second, [2 * i for i in range(rank)])
    made = c.op(times, left, right)
    return c.cast(c.reshape(made, total) if rank else made, dtype)


def _block_diag(c: Call) -> gs.Tensor:
    blocks = []
    for tensor in c.promoted(c.args.tensors("tensors")):
        rank = c.rank(tensor)
        if rank > 2:
            raise Refused(f"an operand has rank {rank}")
        blocks.append(c.unsqueeze(tensor, [0, 1][: 2 - rank]))
    widths = [c.size(b, 1) for b in blocks]
    rows = []
    for index, block in enumerate(blocks):
        height = c.size(block, 0)
        sides = []
        for part in (widths[:index], widths[index + 1 :]):
            width: Size | int = 0
            for one in part:
                width = c.add(width, one)
            sides.append(None if width == 0 else c.filled([height, width], 0, c.dtype(block)))
        rows.append(c.concat([t for t in (sides[0], block, sides[1]) if t is not None], 1))
    return c.concat(rows, 0)


LOWERINGS: Mapping[str, Callable[[Call], Any]] = {
    **dict.fromkeys(("cat", "concat", "concatenate"), _cat),
    **dict.fromkeys(("stack", "hstack", "vstack", "row_stack", "dstack", "column_stack"), _stack),
    **dict.fromkeys(("atleast_1d", "atleast_2d", "atleast_3d"), _atleast),
    "kron": _kron,
    "block_diag": _block_diag,
}
