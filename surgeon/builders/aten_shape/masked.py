"""Reading and adding at indices of which a mask says where they count; the rest may be anywhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import onnx_graphsurgeon as gs

from surgeon.builders.aten_shape.call import TYPE, Call, Size
from surgeon.builders.aten_shape.indices import MASKS, masks_of, read_at
from surgeon.builders.aten_shape.writes import put_at
from surgeon.rewrite import Refused


def _limited(c: Call, x: gs.Tensor) -> list[gs.Tensor | None]:
    """The indices, those outside their axis brought to its ends."""
    found: list[gs.Tensor | None] = []
    for axis, index in enumerate(masks_of(c, c.args.tensors("indices"))):
        if index is not None:
            if c.dtype(index) in MASKS:
                raise Refused("PyTorch takes no masks among these indices")
            length = c.size(x, axis)
            index = c.cast(index, TYPE.INT64)
            index = c.op("Max", index, _scalar(c, c.sub(0, length)))
            index = c.op("Min", index, _scalar(c, c.sub(length, 1)))
        found.append(index)
    return found


def _scalar(c: Call, size: Size | int) -> gs.Tensor:
    if isinstance(size, int):
        return c.number(size, TYPE.INT64)
    made: gs.Tensor = c.op("Reshape", size.tensor, c.ints([], "scalar"))
    return made


def _operands(c: Call) -> tuple[gs.Tensor, gs.Tensor]:
    x = c.tensor()
    if any(size == 0 for size in c.sizes(x)):
        raise Refused("its input has no elements")
    return x, c.cast(c.tensor("mask"), TYPE.BOOL)


def _masked_index(c: Call) -> gs.Tensor:
    x, mask = _operands(c)
    taken = read_at(c, x, _limited(c, x))
    return c.where(mask, taken, c.number(c.value("fill"), c.dtype(x)))


def _masked_add(c: Call) -> gs.Tensor:
    x, mask = _operands(c)
    dtype = c.dtype(x)
    values = c.cast(c.tensor("values"), dtype)
    if c.rank(mask) > c.rank(values):
        raise Refused("its mask has more axes than its values")
    values = c.where(mask, values, c.number(0, dtype))
    return put_at(c, x, _limited(c, x), values, accumulate=True)


LOWERINGS: Mapping[str, Callable[[Call], Any]] = {
    "_unsafe_masked_index": _masked_index,
    "_unsafe_masked_index_put_accumulate": _masked_add,
}
