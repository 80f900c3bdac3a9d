"""`gradient`: the slope along each axis, by the neighbours on either side."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
import onnx_graphsurgeon as gs

from surgeon.builders.aten_shape.call import LARGEST, TYPE, Call
from surgeon.facts.kinds import FLOATS, HALVES
from surgeon.rewrite import Refused


def gradient(c: Call, count: int) -> list[gs.Tensor]:
    """The tensors of the list that `gradient` gives, one for each axis."""
    if not _is_told(c):
        raise Refused("which of its overloads it is, the file does not say; their arguments do not")
    x = c.tensor()
    rank, order = c.rank(x), c.integer("edge_order")
    if c.dtype(x) in (TYPE.BOOL, TYPE.UINT8) or order not in (1, 2):
        raise Refused("PyTorch takes slopes of numbers, of the first or the second order")
    if c.dtype(x) in (TYPE.INT8, TYPE.INT16):
        raise Refused("PyTorch takes differences in its own dtype, which wrap")
    given = c.value("dim")
    dims = list(range(rank)) if given is None else [int(d) for d in np.ravel(given)]
    steps = _steps(c, len(dims))
    pairs = zip(dims, steps, strict=True)
    return [_slope(c, x, c.axis(dim, rank), step, order) for dim, step in pairs]


def _is_told(c: Call) -> bool:
    """Whether the arguments say which overload it is: PyTorch writes each of a call's."""
    overload, spacing = c.args.schema.overload, c.args.given.get("spacing")
    if overload == c.node.attrs.get("overload"):
        return True
    if len(c.node.inputs) != len(c.args.schema.parameters):
        return False
    if overload == "array":  # the only one of three
        return True
    if spacing is None:
        return overload == "scalarint"
    if isinstance(spacing, list):
        rank = 1 if overload.startswith("tensor") else 0
        return all(c.facts.of(each).rank == rank for each in spacing)
    rank = 0 if overload in ("scalarint", "scalararray") else 1
    return c.facts.of(spacing).rank == rank


def _steps(c: Call, count: int) -> list[float | gs.Tensor]:
    """How far the places of each axis are apart: a number, or where each of them is."""
    if not c.args.schema.takes("spacing") or not c.has("spacing"):
        return [1.0] * count
    parameter = next(p for p in c.args.schema.parameters if p.name == "spacing")
    found: list[float | gs.Tensor]
    if parameter.is_tensors:
        found = list(c.args.tensors("spacing"))
        if any(c.facts.of(places).rank != 1 for places in found):
            raise Refused("its places are no vectors")
    elif isinstance(given := c.args.given["spacing"], list):
        found = [c.facts.array(each) for each in given]
        if any(step is None for step in found):
            raise Refused("an element of `spacing` is known at run time only")
        found = [float(step) for step in found]
    else:
        found = [float(v) for v in np.ravel(c.value("spacing"))]
        found = found * count if len(found) == 1 and not parameter.is_list else found
    if len(found) != count:
        raise Refused(f"`spacing` has {len(found)} entries for {count} axes")
    return found


def _slope(c: Call, x: gs.Tensor, axis: int, step: float | gs.Tensor, order: int) -> gs.Tensor:
    """Weighted sums of elements side by side: three within, and `order` + 1 at either border."""
    length = c.size(x, axis)
    if isinstance(length, int) and length < order + 1:
        raise Refused(f"axis {axis} has {length} elements, and needs {order + 1}")
    if isinstance(step, float):
        x = x if c.dtype(x) in FLOATS else c.cast(x, TYPE.FLOAT)
        inside = [-0.5 / step, 0.0, 0.5 / step]
        front = [n / step for n in ((-1.0, 1.0) if order == 1 else (-1.5, 2.0, -0.5))]
        return _joined(c, x, axis, [front, inside, [-weight for weight in reversed(front)]])
    places = c.size(step, 0)
    if isinstance(length, int) and isinstance(places, int) and places != length:
        raise Refused(f"its places are {places}, and axis {axis} has {length} elements")
    if c.dtype(step) in HALVES and c.dtype(x) != c.dtype(step):
        raise Refused("PyTorch weighs its elements with halves, which are coarse")
    kind = _promoted(c.dtype(x), c.dtype(step))
    wide = TYPE.FLOAT if kind in HALVES else kind
    apart = c.op("Sub", c.slice(step, 0, 1, LARGEST), c.slice(step, 0, 0, -1))
    apart = c.unsqueeze(c.cast(apart, wide), list(range(1, c.rank(x) - axis)))
    weights = [
        _border(c, [c.slice(apart, 0, n, n + 1) for n in range(order)]),
        _inside(c, c.slice(apart, 0, 0, -1), c.slice(apart, 0, 1, LARGEST)),
        _border(c, [c.slice(apart, 0, -n - 1, -n or LARGEST) for n in range(order)]),
    ]
    weights[2] = [c.op("Neg", weight) for weight in reversed(weights[2])]
    return c.cast(_joined(c, c.cast(x, wide), axis, weights), kind)


def _promoted(values: int, places: int) -> int:
    """The dtype of a slope: integers are divided in single precision."""
    kinds = [kind for kind in (values, places) if kind in FLOATS]
    if len(kinds) == 1 and values in FLOATS:  # weights of whole places are no halves
        kinds.append(TYPE.FLOAT)
    if len(set(kinds)) == 1:
        return kinds[0]
    return TYPE.DOUBLE if TYPE.DOUBLE in kinds else TYPE.FLOAT


def _inside(c: Call, near: gs.Tensor, far: gs.Tensor) -> list[gs.Tensor]:
    """What a slope weighs the one before, the place itself and the one behind it with."""
    both = c.op("Add", near, far)
    return [
        c.op("Neg", c.op("Div", far, c.op("Mul", near, both))),
        c.op("Div", c.op("Sub", far, near), c.op("Mul", near, far)),
        c.op("Div", near, c.op("Mul", far, both)),
    ]


def _border(c: Call, apart: list[gs.Tensor]) -> list[gs.Tensor]:
    """What a slope at the first place weighs it and those behind it with."""
    near = apart[0]
    if len(apart) == 1:
        one = c.op("Reciprocal", near)
        return [c.op("Neg", one), one]
    far = apart[1]
    both = c.op("Add", near, far)
    return [
        c.op("Neg", c.op("Div", c.op("Add", near, both), c.op("Mul", near, both))),
        c.op("Div", both, c.op("Mul", near, far)),
        c.op("Neg", c.op("Div", near, c.op("Mul", far, both))),
    ]


def _joined(
    c: Call, x: gs.Tensor, axis: int, weights: Sequence[Sequence[float | gs.Tensor]]
) -> gs.Tensor:
    """The slopes at the front, within, and at the back, whose weights these are."""
    front, inside, back = weights
    order = len(front) - 1
    begin = _weighed(c, [c.slice(x, axis, i, i + 1) for i in range(order + 1)], front)
    bounds = [(-i - 1, -i if i else LARGEST) for i in reversed(range(order + 1))]
    end = _weighed(c, [c.slice(x, axis, a, b) for a, b in bounds], back)
    rows = [c.slice(x, axis, 0, -2), c.slice(x, axis, 1, -1), c.slice(x, axis, 2, LARGEST)]
    return c.concat([begin, _weighed(c, rows, inside), end], axis)


def _weighed(c: Call, rows: Sequence[gs.Tensor], weights: Sequence[float | gs.Tensor]) -> gs.Tensor:
    kind = onnx.helper.tensor_dtype_to_np_dtype(c.dtype(rows[0]))
    total: gs.Tensor | None = None
    for row, weight in zip(rows, weights, strict=True):
        if isinstance(weight, float):
            if not weight:
                continue
            weight = c.draft.constant(np.array(weight, kind), "weight")
        term = c.op("Mul", row, weight)
        total = term if total is None else c.op("Add", total, term)
    assert total is not None
    return total
