"""Parts of a shape, and arithmetic of sizes, without Gather and without lists."""

from __future__ import annotations

import numpy as np
import onnx_graphsurgeon as gs

from surgeon.builders.bench import LARGEST, TYPE, Bench
from surgeon.match import Match, attribute_of, producer_of
from surgeon.rewrite import Draft, Refused

_LONGEST_LIST = 8  # sizes


def part_of_shape(draft: Draft, match: Match) -> gs.Tensor:
    """Gather or Slice of a shape at constant places: Shape of those axes, or a Slice before 15."""
    c, node = Bench(draft), match.root
    source = producer_of(node.inputs[0])
    if source is None or source.op != "Shape":
        raise Refused("what it takes from is no Shape")
    x = source.inputs[0]
    if node.op == "Slice" and c.opset < 15:
        raise Refused("it is a Slice already")
    rank = c.rank(x)
    begin, end, _ = slice(attribute_of(source, "start") or 0, source.attrs.get("end")).indices(rank)
    axes = list(range(begin, max(begin, end)))
    picked, scalar = _picked(c, node, len(axes))
    runs: list[list[int]] = []
    for axis in (axes[i] for i in picked):
        if runs and axis == runs[-1][-1] + 1:
            runs[-1].append(axis)
        else:
            runs.append([axis])
    if not runs:
        raise Refused("it takes nothing")
    if len(runs) > 1 and c.opset < 15:
        raise Refused("it takes several parts, which needs Shape with start and end, of opset 15")
    parts = [_part(c, x, node.inputs[0], run, axes, rank) for run in runs]
    y = c.concat(parts, 0)
    return c.squeeze(y, [0]) if scalar else y


def _part(
    c: Bench, x: gs.Tensor, shape: gs.Tensor, run: list[int], axes: list[int], rank: int
) -> gs.Tensor:
    if c.opset >= 15:
        bounds = {"end": run[-1] + 1} if run[-1] + 1 < rank else {}
        return c.op("Shape", x, **({"start": run[0]} if run[0] else {}), **bounds)
    place = axes.index(run[0])
    return c.slice(shape, 0, place, place + len(run))


def _picked(c: Bench, node: gs.Node, count: int) -> tuple[list[int], bool]:
    """The places taken, from the front, and whether it is one that becomes a scalar."""
    given = [c.facts.array(t) for t in node.inputs[1:] if not t.is_empty()]
    if any(a is None or a.dtype == object for a in given):
        raise Refused("what it takes is known at run time only")
    arrays = [a for a in given if a is not None]
    if node.op == "Gather":
        if arrays[0].ndim > 1:
            raise Refused("it gives more than a line of sizes")
        places = [int(i) for i in arrays[0].reshape(-1)]
        if any(not -count <= i < count for i in places):
            raise Refused("it takes what is not there")
        return [i % count for i in places], arrays[0].ndim == 0
    start, end = (int(a.reshape(-1)[0]) for a in arrays[:2])
    steps = node.inputs[4:]  # axes in front of them may be left out
    if any(not t.is_empty() and c.facts.array(t) != 1 for t in steps):
        raise Refused("it takes sizes in steps")
    return list(range(count))[slice(start, min(end, LARGEST))], False


def sizes_as_numbers(draft: Draft, match: Match) -> gs.Tensor:
    """Arithmetic of a short list of sizes, size by size, each a number of its own."""
    c, node = Bench(draft), match.root
    y = draft.facts.of(node.outputs[0])
    many = y.shape[0] if y.shape is not None and len(y.shape) == 1 else None
    if y.dtype != TYPE.INT64 or not isinstance(many, int) or not 1 <= many <= _LONGEST_LIST:
        raise Refused("it makes no short list of int64")
    lists = [_numbers(c, t, many) for t in node.inputs]
    made = [c.op(node.op, *pair) for pair in zip(*lists, strict=True)]
    return c.concat([c.unsqueeze(t, [0]) for t in made], 0)


def _numbers(c: Bench, t: gs.Tensor, many: int) -> list[gs.Tensor]:
    """Each element of a list as a scalar, one for all where it is broadcast."""
    array, producer = c.facts.array(t), producer_of(t)
    if array is not None and array.dtype != object:
        return [c.number(v, TYPE.INT64) for v in np.broadcast_to(array, (many,)).tolist()]
    shape = c.shape(t)
    if shape not in ((1,), (many,)):
        raise Refused(f"`{t.name}` is no list of as many")
    if producer is not None and producer.op == "Unsqueeze":
        return [producer.inputs[0]] * many
    places = [0 if shape == (1,) else i for i in range(many)]
    while producer is not None and producer.op in ("Gather", "Slice"):
        source = c.shape(producer.inputs[0])
        if source is None or len(source) != 1 or not isinstance(source[0], int):
            raise Refused(f"`{t.name}` is taken from no list of known length")
        picked, _ = _picked(c, producer, source[0])
        places, t = [picked[i] for i in places], producer.inputs[0]
        producer = producer_of(t)
    if producer is None or producer.op not in ("Shape", "Concat"):
        raise Refused(f"`{t.name}` holds no sizes that a Shape gives")
    return [c.op("Gather", t, c.number(i, TYPE.INT64), axis=0) for i in places]
