"""New tensors: fills, ranges, identities, triangles."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import onnx
import onnx_graphsurgeon as gs

from surgeon.builders.aten_shape.call import TYPE, Call
from surgeon.builders.aten_shape.steps import LARGEST_CONSTANT, arange, known
from surgeon.builders.triangles import triangle
from surgeon.facts.fact import INTEGERS
from surgeon.facts.kinds import FLOATS
from surgeon.rewrite import Refused


def _fill(c: Call) -> gs.Tensor:
    kind = c.node.op
    stem = kind.removeprefix("new_").removesuffix("_like")
    stem = stem.removesuffix("_strided").removesuffix("_permuted")  # memory has no order in ONNX
    like = c.tensor() if kind.endswith("_like") or kind.startswith("new_") else None
    dtype = c.facts.of(like).dtype if like is not None else TYPE.FLOAT
    value: Any = {"zeros": 0, "ones": 1, "empty": 0}.get(stem)
    fill: gs.Tensor | None = None
    if stem == "full":
        given = c.tensor("fill_value")
        value = None if c.facts.array(given) is None else c.value("fill_value")
        fill = given if value is None else None
        if like is None and not c.facts.model.is_before(1, 6):  # up to 1.5, single precision
            of_fill = c.facts.of(given).dtype
            integral = of_fill in INTEGERS
            dtype = TYPE.BOOL if of_fill == TYPE.BOOL else TYPE.INT64 if integral else TYPE.FLOAT
    dtype = dtype if _names_no_dtype(c) else c.wanted_dtype(dtype)
    if not dtype:
        assert like is not None
        dtype = c.dtype(like)
    sizes = c.op("Shape", like) if kind.endswith("_like") else _sizes(c)
    if fill is not None:
        scalar = c.op("Reshape", c.cast(fill, dtype), c.ints([], "scalar"))
        return c.op("Expand", scalar, sizes)
    numpy = onnx.helper.tensor_dtype_to_np_dtype(dtype)
    return c.op("ConstantOfShape", sizes, value=np.asarray([value]).astype(numpy))


def _names_no_dtype(c: Call) -> bool:
    """Whether what follows the number is how memory is laid out, as `x.fill_(v)` before 1.5."""
    return c.node.op == "full_like" and len(c.node.inputs) == 3 and c.facts.model.is_before(1, 5)


def _sizes(c: Call) -> gs.Tensor:
    try:
        return c.vector(c.listed("size"))
    except Refused:
        given = c.args.given.get("size")
        if not isinstance(given, gs.Tensor):
            raise
        return c.cast(given, TYPE.INT64)


def _dim_arange(c: Call) -> gs.Tensor:
    """As many numbers as an axis is long."""
    like = c.tensor("like")
    return c.count(c.size(like, c.axis(c.integer("dim"), c.rank(like))))


def computed_line(c: Call, dtype: int) -> gs.Tensor:
    """`start` to `end` in as many steps, any of them computed, in single precision at least.

    Counted from the nearer end, as PyTorch counts it; one step alone is the start.
    """
    compute = TYPE.DOUBLE if dtype == TYPE.DOUBLE else TYPE.FLOAT
    ends = []
    for name in ("start", "end"):
        number = c.cast(c.tensor(name), compute)
        plain = c.facts.of(number).rank == 0
        ends.append(number if plain else c.op("Reshape", number, c.ints([], "scalar")))
    start, end = ends
    steps = c.scalar(c.tensor("steps"))
    index, count = c.count(steps), c.vector([steps])
    one = c.ints([1], "one")
    last = c.op("Sub", count, one)
    gaps = c.cast(c.op("Max", last, one), compute)
    by = c.op("Div", c.op("Sub", end, start), gaps)
    up = c.op("Add", start, c.op("Mul", by, c.cast(index, compute)))
    back = c.cast(c.op("Sub", last, index), compute)
    down = c.op("Sub", end, c.op("Mul", by, back))
    half = c.op("Max", c.op("Div", count, c.ints([2], "two")), one)
    made: gs.Tensor = c.op("Where", c.op("Less", index, half), up, down)
    return made


def _linspace(c: Call) -> gs.Tensor:
    start, end, steps = (known(c, n, None) for n in ("start", "end", "steps"))
    dtype = c.wanted_dtype(TYPE.FLOAT)
    if dtype not in FLOATS:
        raise Refused("in integers its rounding is the device's own")
    if None in (start, end, steps):
        return c.cast(computed_line(c, dtype), dtype)
    steps = int(steps)
    if steps == 1:
        array = np.asarray([start], np.float64)
    else:
        index = np.arange(steps)
        by = (end - start) / max(steps - 1, 1)
        array = np.where(index < steps // 2, start + by * index, end - by * (steps - 1 - index))
    return c.draft.constant(array.astype(onnx.helper.tensor_dtype_to_np_dtype(dtype)), "linspace")


def _eye(c: Call) -> gs.Tensor:
    rows = c.scalar(c.tensor("n"))
    columns = c.scalar(c.tensor("m")) if c.has("m") else rows
    dtype = c.wanted_dtype(TYPE.FLOAT)
    if isinstance(rows, int) and isinstance(columns, int) and rows * columns <= LARGEST_CONSTANT:
        numpy = onnx.helper.tensor_dtype_to_np_dtype(dtype)
        return c.draft.constant(np.eye(rows, columns).astype(numpy), "eye")
    on = c.op("Equal", c.unsqueeze(c.count(rows), [1]), c.unsqueeze(c.count(columns), [0]))
    return c.cast(on, dtype)


def _scalar_tensor(c: Call) -> gs.Tensor:
    return c.cast(c.tensor("s"), c.wanted_dtype(TYPE.FLOAT))


def _tensor(c: Call) -> gs.Tensor:
    """Python's numbers as a tensor: floats become float32, unless another dtype is asked for."""
    given: Any = c.args.given.get("data", c.args.given.get("t"))
    if isinstance(given, list):
        if not given or any(c.facts.of(t).rank != 0 for t in given):
            raise Refused("its data is no list of numbers")
        parts = [c.unsqueeze(t, [0]) for t in given]
        given = c.op("Concat", *c.promoted(parts), axis=0)
    kind = c.dtype(given)
    return c.cast(given, c.wanted_dtype(TYPE.FLOAT if kind in FLOATS else kind))


def _triangle(c: Call) -> gs.Tensor:
    x = c.tensor()
    upper = c.node.op == "triu"
    dtype = c.dtype(x)
    given = c.args.given.get("diagonal")
    offset = c.scalar(given) if isinstance(given, gs.Tensor) else 0
    if c.opset >= 14 and dtype in (TYPE.FLOAT, TYPE.DOUBLE, TYPE.INT64):
        extra: list[gs.Tensor] = []
        if offset != 0:
            k = c.vector([offset], "k")
            extra = [
                c.number(offset, TYPE.INT64)
                if isinstance(offset, int)
                else c.op("Reshape", k, c.ints([], "scalar"))
            ]
        return c.op("Trilu", x, *extra, upper=int(upper))
    return triangle(c, x, offset, upper=upper)


LOWERINGS: Mapping[str, Callable[[Call], Any]] = {
    **dict.fromkeys(
        (
            *("zeros", "ones", "full", "empty"),
            *("zeros_like", "ones_like", "full_like", "empty_like"),
            *("new_zeros", "new_ones", "new_full", "new_empty"),
            *("empty_strided", "empty_permuted", "new_empty_strided"),
        ),
        _fill,
    ),
    "arange": arange,
    "_dim_arange": _dim_arange,
    "linspace": _linspace,
    "eye": _eye,
    "scalar_tensor": _scalar_tensor,
    "tensor": _tensor,
    "tril": _triangle,
    "triu": _triangle,
}
