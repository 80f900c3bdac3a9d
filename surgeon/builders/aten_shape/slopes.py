"""`gradient`: the slope along each axis, by the neighbours on either side."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx_graphsurgeon as gs

from surgeon.builders.aten_shape.call import LARGEST, TYPE, Call
from surgeon.facts.fact import Array
from surgeon.facts.kinds import FLOATS
from surgeon.rewrite import Refused


def gradient(c: Call, count: int) -> list[gs.Tensor]:
    """The tensors of the list that `gradient` gives, one for each axis."""
    said = c.args.schema.overload == c.node.attrs.get("overload")
    if not said and not _is_plain(c):
        raise Refused("which of its overloads it is, the file does not say; their arguments do not")
    x = c.tensor()
    rank, order = c.rank(x), c.integer("edge_order")
    if c.dtype(x) == TYPE.BOOL or order not in (1, 2):
        raise Refused("PyTorch takes slopes of numbers, of the first or the second order")
    x = x if c.dtype(x) in FLOATS else c.cast(x, TYPE.FLOAT)
    given = c.value("dim")
    dims = list(range(rank)) if given is None else [int(d) for d in np.ravel(given)]
    steps = _steps(c, len(dims))
    pairs = zip(dims, steps, strict=True)
    return [_slope(c, x, c.axis(dim, rank), step, order) for dim, step in pairs]


def _is_plain(c: Call) -> bool:
    """Whether its spacing is left out or one number, which is the same by every overload."""
    spacing = c.args.given.get("spacing")
    plain = spacing is None or (isinstance(spacing, gs.Tensor) and c.facts.of(spacing).rank == 0)
    return c.args.schema.overload.startswith("scalar") and len(c.node.inputs) == 4 and plain


def _steps(c: Call, count: int) -> list[Any]:
    """How far the places of each axis are apart: a number, or where each of them is."""
    if not c.args.schema.takes("spacing") or not c.has("spacing"):
        return [1.0] * count
    parameter = next(p for p in c.args.schema.parameters if p.name == "spacing")
    if parameter.is_tensors:
        places = [c.facts.array(t) for t in c.args.tensors("spacing")]
        if any(p is None or p.ndim != 1 for p in places):
            raise Refused("where its places are is known at run time only")
        found: list[Any] = [p.astype(np.float64) for p in places if p is not None]
    else:
        found = [float(v) for v in np.ravel(c.value("spacing"))]
        found = found * count if len(found) == 1 and not parameter.is_list else found
    if len(found) != count:
        raise Refused(f"`spacing` has {len(found)} entries for {count} axes")
    return found


def _slope(c: Call, x: gs.Tensor, axis: int, step: Any, order: int) -> gs.Tensor:
    """Weighted sums of elements side by side: three within, and `order` + 1 at either border."""
    length = c.size(x, axis)
    if isinstance(length, int) and length < order + 1:
        raise Refused(f"axis {axis} has {length} elements, and needs {order + 1}")
    if isinstance(step, float):
        inside = np.array([[-0.5], [0.0], [0.5]]) / step
        front = (np.array([-1.0, 1.0]) if order == 1 else np.array([-1.5, 2.0, -0.5])) / step
        back = -front[::-1]
    elif not isinstance(length, int) or len(step) != length:
        raise Refused(f"its places are {len(step)}, and axis {axis} is not known to be as long")
    else:
        near, far = np.diff(step)[:-1], np.diff(step)[1:]
        both = near + far
        inside = np.array([-far / (near * both), (far - near) / (near * far), near / (far * both)])
        front, back = _border(step, order), _border(step[::-1], order)[::-1]
    begin = _weighed(c, [c.slice(x, axis, i, i + 1) for i in range(order + 1)], front, axis)
    bounds = [(-i - 1, -i if i else LARGEST) for i in reversed(range(order + 1))]
    end = _weighed(c, [c.slice(x, axis, a, b) for a, b in bounds], back, axis)
    rows = [c.slice(x, axis, 0, -2), c.slice(x, axis, 1, -1), c.slice(x, axis, 2, LARGEST)]
    return c.concat([begin, _weighed(c, rows, inside, axis), end], axis)


def _border(places: Array, order: int) -> Array:
    """What a slope at the first place weighs it and those behind it with."""
    near = places[1] - places[0]
    if order == 1:
        return np.array([-1 / near, 1 / near])
    far = places[2] - places[1]
    both = near + far
    return np.array([-(near + both) / (near * both), both / (near * far), -near / (far * both)])


def _weighed(c: Call, rows: list[gs.Tensor], weights: Array, axis: int) -> gs.Tensor:
    dtype = c.dtype(rows[0])
    kind = onnx.helper.tensor_dtype_to_np_dtype(dtype)
    total: gs.Tensor | None = None
    for row, weight in zip(rows, weights, strict=True):
        line = np.atleast_1d(weight)
        if not line.any():
            continue
        shape = [-1] + [1] * (c.rank(row) - 1 - axis)
        term = c.op("Mul", row, c.draft.constant(line.reshape(shape).astype(kind), "weights"))
        total = term if total is None else c.op("Add", total, term)
    assert total is not None
    return total
