"""Sums at indices as PyTorch's exporter writes them, with what it loses.

`index_add`, `scatter_add` and `index_put(accumulate=True)` add up what falls on one place. The
exporter writes it into zeros and adds these (`index_add` of torch/onnx/symbolic_opset9.py,
`index_put` of symbolic_opset11.py, `scatter_add` of both), so that the last alone counts.
"""

from __future__ import annotations

import onnx_graphsurgeon as gs

from surgeon.builders.aten_shape.combining import combined_elements, combined_lines
from surgeon.builders.bench import TYPE, Bench
from surgeon.builders.fills import holds
from surgeon.facts.fact import same_dims
from surgeon.match import Match, attribute_of, producer_of
from surgeon.rewrite import Draft, Refused

_REDUCES = 16  # the opset from which a Scatter may add


def sums_put_right(draft: Draft, match: Match) -> gs.Tensor:
    """y = x + Scatter (zeros, i, v), ScatterElements or ScatterND, as x with v added at i."""
    c, values = Bench(draft), match.values
    x, written = (values[name] for name in ("x", "s"))
    assert x is not None
    assert written is not None
    write = written.inputs[0]
    zeros, index, source = write.inputs[:3]
    if not holds(draft, zeros, 0):
        raise Refused("what it writes into is not known to be zeros")
    if not _are_as_large(c, zeros, x):
        raise Refused("the zeros are not known to be as large as what is added to them")
    index = c.cast(index, TYPE.INT64)
    if write.op != "ScatterND" and c.opset >= _REDUCES and c.facts.of(x).rank is None:
        said = {"axis": attribute_of(write, "axis") or 0, "reduction": "add"}
        return c.op("ScatterElements", x, index, source, **said)
    if write.op != "ScatterND":
        axis = c.axis(int(attribute_of(write, "axis") or 0), c.rank(x))
        return combined_elements(c, x, index, source, axis, "add")
    return _lines(c, x, index, source)


def _are_as_large(c: Bench, zeros: gs.Tensor, x: gs.Tensor) -> bool:
    """Whether zeros are as large as a value, as is proven or as they are made of its Shape."""
    if same_dims(c.shape(x), c.shape(zeros)):
        return True
    maker = producer_of(zeros)
    size = None if maker is None or maker.op != "ConstantOfShape" else producer_of(maker.inputs[0])
    return size is not None and size.op == "Shape" and not size.attrs and size.inputs[0] is x


def _lines(c: Bench, x: gs.Tensor, index: gs.Tensor, source: gs.Tensor) -> gs.Tensor:
    """What `index_put` adds: lines of x behind the axes that the last axis of the index names."""
    if c.opset >= _REDUCES:
        made: gs.Tensor = c.op("ScatterND", x, index, source, reduction="add")
        return made
    count = (c.shape(index) or (None,))[-1]
    if not isinstance(count, int) or count < 1:
        raise Refused("how many axes its index names is not known")
    sizes = c.sizes(x)
    place: gs.Tensor | None = None
    for axis in range(count):
        length = c.vector([sizes[axis]])
        part = c.squeeze(c.slice(index, c.rank(index) - 1, axis, axis + 1), [c.rank(index) - 1])
        behind = c.op("Add", part, length)
        part = c.where(c.op("Less", part, c.number(0, TYPE.INT64)), behind, part)
        place = part if place is None else c.op("Add", c.op("Mul", place, length), part)
    assert place is not None
    flat = c.reshape(x, [c.product(sizes[:count]), *sizes[count:]])
    lines = c.reshape(source, [c.product(c.sizes(source)[: c.rank(index) - 1]), *sizes[count:]])
    return c.reshape(combined_lines(c, flat, c.flat(place), lines, "add"), sizes)
