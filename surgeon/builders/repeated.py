"""An axis whose parts are repeated: heads of keys and values that several queries share."""

from __future__ import annotations

import math

import numpy as np
import onnx_graphsurgeon as gs

from surgeon import dims
from surgeon.builders.bench import Bench
from surgeon.builders.cleaning import order_of
from surgeon.builders.lists import entries_of, joined_of
from surgeon.builders.views import source_of
from surgeon.dims import Dim
from surgeon.facts.fact import same_dims
from surgeon.match import Match
from surgeon.rewrite import Draft, Refused

Shape = tuple[Dim, ...]
# onnxruntime's Gather takes some 4 ns for each row, however short; Expand copies those of a few
# elements faster (see `pieces`).
_SHORT = 64  # elements of a row
_MOST = 1 << 12  # places of the repeated axis


def repeated_as_gather(draft: Draft, match: Match) -> gs.Tensor:
    """An axis put in, repeated and joined with a neighbour as a Gather along that neighbour.

    Of a neighbour of length 1 an Expand is enough, however often that is repeated.
    """
    c, e = Bench(draft), match.values["e"]
    assert e is not None
    u = e.inputs[0].inputs[0]
    small, large, out = c.shape(u), c.shape(e), c.shape(match.root.outputs[0])
    if small is None or large is None or out is None or len(small) != len(large):
        raise Refused("a shape is not known, or it has fewer axes than what it is expanded to")
    grown = [i for i, (s, d) in enumerate(zip(small, large, strict=True)) if s != d]
    times = large[grown[0]] if len(grown) == 1 and small[grown[0]] == 1 else None
    if times is None or (isinstance(times, int) and times < 2):
        raise Refused("it does not repeat one axis")
    targets = entries_of(c.facts, e.inputs[0].inputs[1])
    for other in (grown[0] - 1, grown[0] + 1):
        found = _joined(c, u, large, out, grown[0], other)
        if found is None:
            continue
        source, axis, length = found
        if length == 1 and not isinstance(times, int):
            if targets is None or len(targets) != len(large):
                raise Refused("its target is not joined of single sizes")
            own = [targets[grown[0]] if i == axis else 1 for i in range(len(out))]
            return c.op("Expand", source, joined_of(draft, own))
        assert isinstance(times, int)  # as a longer neighbour asks for
        if length == 1:
            shape = [times if i == axis else 1 for i in range(len(out))]
            return c.op("Expand", source, c.ints(shape, "shape"))
        row = math.prod(out[axis + 1 :])
        if isinstance(row, int) and row < _SHORT:
            raise Refused(f"rows of {row} elements are copied faster by an Expand")
        order = np.arange(length)
        places = np.repeat(order, times) if other < grown[0] else np.tile(order, times)
        return c.op("Gather", source, c.ints_of(places, "places"), axis=axis)
    if not isinstance(times, int):
        raise Refused("it does not repeat one axis a known number of times")
    raise Refused("the repeated axis is not joined with a neighbour of known length")


def _joined(
    c: Bench, u: gs.Tensor, large: Shape, out: Shape, grown: int, other: int
) -> tuple[gs.Tensor, int, int] | None:
    """A value with the neighbour alone where the result joins both; that axis, and its length.

    None where the result does not join the two, or where no such value is there.
    """
    if not 0 <= other < len(large):
        return None
    length, times = large[other], large[grown]
    if not isinstance(length, int) or (length != 1 and not isinstance(times, int)):
        return None
    if isinstance(times, int) and not 0 < length * times <= _MOST:
        return None
    before = math.prod(large[: min(grown, other)])
    for axis, d in enumerate(out):
        if d != length * times or dims.equal(math.prod(out[:axis]), before) is not True:
            continue
        found = source_of(u, c.facts, (*out[:axis], length, *out[axis + 1 :]))
        if found is not None and same_dims(
            c.shape(found[0]), (*out[:axis], length, *out[axis + 1 :])
        ):
            return found[0], axis, length
    return None


def product_without_expand(draft: Draft, match: Match) -> gs.Tensor:
    """A product of matrices that takes the same one for several of the other operand's."""
    c, root, e = Bench(draft), match.root, match.values["e"]
    assert e is not None
    small = e.inputs[0].inputs[0]
    shapes = [c.shape(t) for t in (small, e, root.outputs[0])]
    others = [c.shape(t) for t in root.inputs if t is not e]
    if not others or any(shape is None or len(shape) < 2 for shape in (*shapes, *others)):
        raise Refused("a shape is not known, or it is no product of matrices")
    own, whole, out = (shape for shape in shapes if shape is not None)
    other = next(shape for shape in others if shape is not None)
    if not same_dims(own[-2:], whole[-2:]):
        raise Refused("its matrices are repeated themselves")
    if max(len(own), len(other)) < len(out):
        raise Refused("nothing else gives the result as many axes")
    batch = (*(1,) * (len(out) - len(own)), *own)[:-2]
    given = (*(1,) * (len(out) - len(other)), *other)[:-2]
    for mine, theirs, wanted in zip(batch, given, out[:-2], strict=True):
        if wanted not in (mine, theirs) or mine not in (1, wanted):
            raise Refused(f"nothing else provably gives the result its axis of {wanted}")
    operands = [small if t is e else t for t in root.inputs]
    y: gs.Tensor = c.op("MatMul", *operands)
    return y


def transpose_before_expand(draft: Draft, match: Match) -> gs.Tensor:
    """A Transpose of what is repeated, of one of them."""
    c, root, e = Bench(draft), match.root, match.values["e"]
    assert e is not None
    x, s = e.inputs[0].inputs
    target, rank = c.facts.array(s), c.facts.of(x).rank
    if target is None or target.dtype == object or rank is None or target.size > rank:
        raise Refused("its shape is known at run time only, or has more axes than what it repeats")
    if target.ndim != 1:
        raise Refused("its shape is no list")
    perm = order_of(root, rank)
    sizes = [*[1] * (rank - target.size), *(int(n) for n in target)]
    y: gs.Tensor = c.op("Transpose", x, perm=list(perm))
    later: gs.Tensor = c.op("Expand", y, c.ints([sizes[axis] for axis in perm], "shape"))
    return later
