"""Of each row of a batch what its own indices name: `x[arange(batch), places]`, uncounted."""

from __future__ import annotations

import onnx_graphsurgeon as gs

from surgeon import dims
from surgeon.builders.bench import TYPE, Bench
from surgeon.builders.joined import before_views, size_of
from surgeon.builders.meshes import line_through
from surgeon.builders.views import KEEP_ORDER
from surgeon.dims import Dim
from surgeon.facts.fact import INTEGERS, same_dims
from surgeon.match import Match, attribute_of, producer_of
from surgeon.rewrite import Draft, Refused

_INDICES = (TYPE.INT32, TYPE.INT64)  # a Cast to fewer bits may wrap around
_DEEP = 6  # nodes from an index back to what says how large it is


def batch_of_places(draft: Draft, match: Match) -> gs.Tensor:
    """y = GatherND (x, [count of the rows, *places]), of a batch of rows.

    PyTorch's newer exporter writes it so, and TensorFlow's users do.
    """
    c, node = Bench(draft), match.root
    x, indices = node.inputs
    shape, joined = c.shape(x), producer_of(indices)
    if attribute_of(node, "batch_dims") or not shape:
        raise Refused("it has batch dimensions, or a shape is not known")
    if joined is None or joined.op != "Concat" or len(joined.inputs) < 2:
        raise Refused("its indices are not joined of several")
    rank = c.rank(indices)
    if c.axis(int(joined.attrs["axis"]), rank) != rank - 1 or rank < 2:
        raise Refused("its indices are joined along another axis")
    first, *rest = joined.inputs
    if (c.shape(first) or (0,))[-1] != 1:
        raise Refused("the first of its indices are several")
    _need_count(c, first, rank, shape[0])
    draft.premises.append(first)
    places = rest[0] if len(rest) == 1 else c.concat(rest, -1)
    y: gs.Tensor = c.op("GatherND", x, places, batch_dims=1)
    return y


def batch_of_rows(draft: Draft, match: Match) -> gs.Tensor:
    """y = Gather (rows of all batches behind one another, count * rows + places), of the batch.

    PyTorch's older exporter writes it so. A place outside its own batch would be of another.
    """
    c, (flat, places) = Bench(draft), match.root.inputs
    x = before_views(flat)
    shape, whole, rows = c.shape(x), c.shape(places), c.shape(flat)
    total = producer_of(places)
    if attribute_of(match.root, "axis") or shape is None or not whole or len(shape) < 2:
        raise Refused("it is along another axis, or a shape is not known")
    if not same_dims(rows, (dims.product(shape[:2]), *shape[2:])):
        raise Refused("it takes from something else than rows of one batch behind another")
    if total is None or total.op != "Add":
        raise Refused("its indices are no sum")
    for term, own in (total.inputs, total.inputs[::-1]):
        step = producer_of(term)
        if step is None or step.op != "Mul" or not same_dims(c.shape(own), whole):
            continue
        for count, size in (step.inputs, step.inputs[::-1]):
            length = size_of(c, size)
            if length is None or dims.equal(length, shape[1]) is not True:
                continue
            _need_count(c, count, len(whole), shape[0])
            if not _is_below(c, own, shape[1]):
                raise Refused("whether each place is in its own batch is not provable")
            draft.premises += [count, size, own]
            y: gs.Tensor = c.op("GatherND", x, c.unsqueeze(own, [len(whole)]), batch_dims=1)
            return y
    raise Refused("its indices do not begin where each batch does")


def _need_count(c: Bench, t: gs.Tensor, rank: int, length: Dim) -> None:
    """That a tensor counts to this length along the first of so many axes, at run time.

    Raises:
        Refused: It does not, or not provably; or it is a constant.
    """
    line = line_through(c, t)
    if line.along is None or line.along + rank - c.rank(t) != 0:
        raise Refused("its indices do not count along their first axis")
    if line.values is not None:
        raise Refused("its rows are counted beforehand, and some runtimes take no `batch_dims`")
    whole = (line.start, line.limit is not None) == (0, True)
    whole = whole and line.end > 1 << 31 and dims.equal(line.limit or 0, length) is True
    if not whole:
        raise Refused("whether its indices count all the rows is not provable")


def _is_below(c: Bench, t: gs.Tensor, length: Dim) -> bool:
    """Whether all that a tensor holds is provably from 0 to less than this."""
    for _ in range(_DEEP):
        array, node = c.facts.array(t), producer_of(t)
        if array is not None and array.dtype != object:
            return isinstance(length, int) and bool((array >= 0).all() and (array < length).all())
        if node is None:
            return False
        if node.op in ("ArgMax", "ArgMin"):
            shape = c.shape(node.inputs[0])
            axis = int(attribute_of(node, "axis"))
            return shape is not None and dims.equal(shape[axis], length) is True
        if node.op == "Mod" and c.dtype(t) in INTEGERS:
            by = size_of(c, node.inputs[1])
            return not attribute_of(node, "fmod") and dims.equal(by or 0, length) is True
        if node.op not in KEEP_ORDER and not (node.op == "Cast" and c.dtype(t) in _INDICES):
            return False
        t = node.inputs[0]
    return False
