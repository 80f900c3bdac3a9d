"""Views and Transposes of parts and of operands, done once to the whole or to the result.

Query, key and value of one product are each viewed as heads and turned: one view and one Transpose
of the whole do the same, and the Split is of heads then.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import onnx_graphsurgeon as gs

from surgeon import dims
from surgeon.builders.cleaning import order_of
from surgeon.builders.views import as_shape, source_of
from surgeon.dims import Dim
from surgeon.facts import Facts
from surgeon.facts.fact import same_dims
from surgeon.match import Match, attribute_of, is_one_of, producer_of
from surgeon.rewrite import Draft, Refused
from surgeon.standard import STANDARD

Shape = tuple[Dim, ...]


def view_before_split(draft: Draft, match: Match) -> gs.Tensor:
    """Each part of a Split in a view that parts its axis further, as one view of the whole.

    The elements of a part that share their place on the axes in front stand in one piece, in the
    part as in the whole: so the view may come first, if it keeps those axes.
    """
    split, axis, readers = _parted(draft, match, "Reshape")
    whole = split.inputs[0]
    shape = _shape(draft, whole)
    heads: list[int] = []
    tails: list[Shape] = []
    for part, reader in zip(split.outputs, readers, strict=True):
        own, out = _shape(draft, part), _shape(draft, reader.outputs[0])
        if len(out) <= axis or not same_dims(out[:axis], shape[:axis]):
            raise Refused("a view changes the axes in front of that of the Split")
        count, tail = out[axis], out[axis + 1 :]
        if not isinstance(count, int):
            raise Refused("how many there are of a part is known at run time only")
        if dims.equal(dims.product(own[axis:]), dims.product(out[axis:])) is not True:
            raise Refused("a view is not known to keep the elements behind those axes together")
        heads.append(count)
        tails.append(tail)
    if not all(same_dims(tails[0], tail) for tail in tails):
        raise Refused("the views of the parts are of different sizes")
    viewed = as_shape(draft, whole, (*shape[:axis], sum(heads), *tails[0]))
    sizes = draft.constant(heads, "sizes")
    pieces = draft.op("Split", viewed, sizes, outputs=len(heads), axis=axis)
    return handed_out(draft, match.root, readers, pieces)


def transpose_before_split(draft: Draft, match: Match) -> gs.Tensor:
    """Each part of a Split transposed, as one Transpose of the whole; what differs stays behind."""
    split, axis, readers = _parted(draft, match, "Transpose")
    rank = len(_shape(draft, split.inputs[0]))
    orders = [tuple(order_of(n, rank)) for n in readers]
    (order, count), *_ = Counter(orders).most_common(1)
    if count < 2:
        raise Refused("no two parts are transposed alike")
    turned = draft.op("Transpose", split.inputs[0], perm=list(order))
    sizes = draft.constant([_static(draft, part, axis) for part in split.outputs], "sizes")
    at = order.index(axis)
    pieces = list(draft.op("Split", turned, sizes, outputs=len(readers), axis=at))
    for place, own in enumerate(orders):
        if own != order:
            rest = [order.index(i) for i in own]
            pieces[place] = draft.op("Transpose", pieces[place], perm=rest)
    return handed_out(draft, match.root, readers, pieces)


def numbers_as_split(draft: Draft, match: Match) -> gs.Tensor:
    """All numbers of an axis, each picked by a Gather, as a Split of the axis behind it.

    The axis and the one behind it are viewed as one, so that no Split has an axis too many.
    """
    x = match.root.inputs[0]
    shape = _shape(draft, x)
    axis = int(attribute_of(match.root, "axis")) % len(shape)
    readers = _pickers(draft, match.root, axis)
    count = len(readers)
    source, order = x, list(range(len(shape)))
    turn = producer_of(x)
    if turn is not None and turn.op == "Transpose" and not turn.domain and draft.holds(turn):
        source, order = turn.inputs[0], order_of(turn, len(shape))
    before, at = _shape(draft, source), order[axis]
    size = before[at + 1] if at + 1 < len(before) else None
    if not isinstance(size, int):
        raise Refused("the axis behind it has no size that is known")
    merged = as_shape(draft, source, (*before[:at], count * size, *before[at + 2 :]))
    view = producer_of(merged)
    if count == 2 and view is not None and view.inputs[0] is source:
        raise Refused("it is no view that may be another instead, so nothing is saved")
    kept = [i - (i > at) for i in order if i != at]
    turned = merged if kept == sorted(kept) else draft.op("Transpose", merged, perm=kept)
    sizes = draft.constant([size] * count, "sizes")
    pieces = draft.op("Split", turned, sizes, outputs=count, axis=kept.index(at))
    return handed_out(draft, match.root, readers, pieces)


def _pickers(draft: Draft, root: gs.Node, axis: int) -> list[gs.Node]:
    """The Gathers that pick all numbers of an axis, in order, where the root picks the first.

    Raises:
        Refused: Not each number is picked once, or something else reads what they pick from.
    """
    facts, surgery, x = draft.facts, draft.surgery, root.inputs[0]
    shape = _shape(draft, x)
    count = shape[axis]
    own = facts.array(root.inputs[1])
    if own is None or own.ndim or own != 0:
        raise Refused("who picks number 0 takes all of them")
    if not isinstance(count, int) or len(x.outputs) != count or count < 2 or surgery.is_output(x):
        raise Refused("its input is read otherwise than by a Gather of each number of one axis")
    found: dict[int, gs.Node] = {}
    for node in x.outputs:
        number = facts.array(node.inputs[1]) if is_one_of(node, {"Gather"}) else None
        if number is None or number.ndim or node.inputs[0] is not x or not draft.holds(node):
            raise Refused("something else reads its input, or its number is not constant")
        if int(attribute_of(node, "axis")) % len(shape) != axis:
            raise Refused("a Gather is of another axis")
        found[int(number) % count] = node
    if len(found) != count or any(surgery.is_output(n.outputs[0]) for n in found.values()):
        raise Refused("not every number is picked once, or the model gives one out")
    return [found[i] for i in range(count)]


def repeated_lines(draft: Draft, match: Match) -> gs.Tensor:
    """Single slices of a Split, joined again and each as often as it takes, as one Gather.

    So Keras writes the growing of a line to the nearest. It saves the Split and all of its values.
    """
    root, facts = match.root, draft.facts
    split = split_of(draft, root.inputs[0])
    if split is None:
        raise Refused("its first operand is no part of a Split")
    rank = facts.of(split.inputs[0]).rank
    if rank is None:
        raise Refused("its rank is not known")
    axis = int(attribute_of(split, "axis")) % rank
    if int(attribute_of(root, "axis")) % rank != axis or len(root.inputs) <= len(split.outputs):
        raise Refused("it joins along another axis, or repeats none")
    numbers = {piece.name: number for number, piece in enumerate(split.outputs)}
    if any(tensor.name not in numbers for tensor in root.inputs):
        raise Refused("it joins something else too")
    for piece in split.outputs:
        shape = facts.of(piece).shape
        apart = draft.surgery.is_output(piece) or any(each is not root for each in piece.outputs)
        if apart or shape is None or shape[axis] != 1:
            raise Refused("a part of the Split is more than one slice, or is read elsewhere")
    places = np.asarray([numbers[tensor.name] for tensor in root.inputs], np.int64)
    made: gs.Tensor = draft.op(
        "Gather", split.inputs[0], draft.constant(places, "places"), axis=axis
    )
    return made


def picked_part(draft: Draft, match: Match) -> gs.Tensor:
    """The parts of a Split into single slices, without their axis, as Gathers of their numbers.

    It saves the Split where all parts are read so: query, key and value of one product. A part
    that is viewed otherwise as well is viewed behind the Gather.
    """
    root, facts = match.root, draft.facts
    part = root.inputs[0]
    split = split_of(draft, part)
    if split is None:
        raise Refused("its input is no part of a Split")
    rank = facts.of(split.inputs[0]).rank
    if rank is None:
        raise Refused("its rank is not known")
    read = [piece for piece in split.outputs if piece.outputs]
    if part is not read[0] and part is not read[-1]:
        raise Refused("who reads the first or the last part takes all of them")
    if facts.of(read[-1].outputs[-1].outputs[0]).shape is None:
        raise Refused("what is made of the last part is not known yet")
    axis = int(attribute_of(split, "axis")) % rank
    bare = 0
    for piece in split.outputs:
        shape = facts.of(piece).shape
        if draft.surgery.is_output(piece) or shape is None or shape[axis] != 1:
            raise Refused("a part of the Split is more than one slice, or the model gives it out")
        single = shape[:axis] + shape[axis + 1 :]
        dropped = [_drops(facts, reader, single) for reader in piece.outputs]
        bare += bool(dropped) and not any(dropped)
    if bare and not any(_picks(facts, reader, axis) for reader in split.inputs[0].outputs):
        raise Refused("a part of the Split keeps its axis: there would be no node less")
    readers, made = [], []
    for number, piece in enumerate(split.outputs):
        for reader in piece.outputs:
            if not draft.holds(reader):
                raise Refused("a part of the Split is read in a body")
            index = draft.constant(np.asarray(number, np.int64), "index")
            picked: gs.Tensor = draft.op("Gather", split.inputs[0], index, axis=axis)
            behind = facts.of(reader.outputs[0]).shape
            views = reader.op != "Squeeze" and behind is not None
            readers.append(reader)
            made.append(as_shape(draft, picked, behind) if views and behind else picked)
    return handed_out(draft, root, readers, made)


def _drops(facts: Facts, reader: gs.Node, single: Shape) -> bool:
    """Whether a reader of a slice drops the slice's axis, and does no more; else it views it.

    Raises:
        Refused: It does neither, or not by a constant.
    """
    behind = facts.of(reader.outputs[0]).shape
    if behind is not None and (reader.domain or "") in STANDARD:
        if reader.op == "Squeeze" and behind == single:
            return True
        if reader.op == "Reshape" and dims.constant_target(single, behind) is not None:
            return False
    raise Refused("a part of the Split is read otherwise")


def _picks(facts: Facts, reader: gs.Node, axis: int) -> bool:
    """Whether it takes a single slice along this axis: parts of the same Split, picked before."""
    if reader.op != "Gather" or facts.of(reader.inputs[1]).rank != 0:
        return False
    rank = facts.of(reader.inputs[0]).rank or 1
    return bool(int(attribute_of(reader, "axis") or 0) % rank == axis)


def layers_as_concat(draft: Draft, match: Match) -> gs.Tensor:
    """Layers that are stacked in front of an axis and joined with it: put one behind the other."""
    (root, joined), facts = match.nodes[:2], draft.facts
    stacked, out = facts.of(joined.outputs[0]).shape, facts.of(root.outputs[0]).shape
    if stacked is None or out is None:
        raise Refused("a shape is not known")
    axis = int(attribute_of(joined, "axis")) % len(stacked)
    layer = (*stacked[:axis], *stacked[axis + 1 :])
    count = len(joined.inputs)
    if stacked[axis] != count or axis >= len(layer):
        raise Refused("it does not join layers of 1 in front of an axis")
    if not same_dims(out, (*layer[:axis], layer[axis] * count, *layer[axis + 1 :])):
        raise Refused("the view behind does more than join the layers with the next axis")
    if any(reader is not root and reader.op != "Shape" for reader in joined.outputs[0].outputs):
        raise Refused("something else reads the layers as they are stacked")
    layers = []
    for tensor in joined.inputs:
        found = source_of(tensor, facts, layer)
        if found is None or not same_dims(facts.of(found[0]).shape, layer):
            raise Refused(f"`{tensor.name}` is no view of a layer")
        layers.append(found[0])
    y: gs.Tensor = draft.op("Concat", *layers, axis=axis)
    return y


def number_of_transposed(draft: Draft, match: Match) -> gs.Tensor:
    """One step along an axis of a Transpose, straight from what is transposed."""
    root, turn = match.root, match.nodes[1]
    rank = len(_shape(draft, turn.inputs[0]))
    order = order_of(turn, rank)
    axis = order[int(attribute_of(root, "axis")) % rank]
    rest = [i for i in order if i != axis]
    if rest != sorted(rest):
        raise Refused("the other axes are in another order")
    y: gs.Tensor = draft.op("Gather", turn.inputs[0], root.inputs[1], axis=axis)
    return y


def transposes_of_both(draft: Draft, match: Match) -> gs.Tensor:
    """y of two values that are transposed alike, transposed itself.

    It takes a Transpose away where nothing else reads the two, or where one meets the next.
    """
    root, surgery = match.root, draft.surgery
    turns = [t.inputs[0] for t in root.inputs]
    if turns[0] is turns[1]:
        raise Refused("both operands are one value")
    ranks = {len(_shape(draft, t)) for t in root.inputs}
    orders = [list(attribute_of(n, "perm") or ()) for n in turns]
    if len(ranks) > 1 or orders[0] != orders[1] or not orders[0]:
        raise Refused("the two are transposed otherwise")
    alone = [len(n.outputs[0].outputs) == 1 and not surgery.is_output(n.outputs[0]) for n in turns]
    if not all(alone) and not (any(alone) and _meets(draft, root, orders[0])):
        raise Refused("something else reads them as they are, so nothing is saved")
    y = draft.op(root.op, *(n.inputs[0] for n in turns), **root.attrs)
    turned: gs.Tensor = draft.op("Transpose", y, perm=orders[0])
    return turned


def _meets(draft: Draft, node: gs.Node, order: list[int]) -> bool:
    """Whether all that reads a node's result turns it back, so that no Transpose is left."""
    back = [order.index(axis) for axis in range(len(order))]
    readers = node.outputs[0].outputs
    return (
        bool(readers)
        and not draft.surgery.is_output(node.outputs[0])
        and all(
            n.op == "Transpose" and list(attribute_of(n, "perm") or ()) == back for n in readers
        )
    )


def split_of(draft: Draft, part: gs.Tensor) -> gs.Node | None:
    """The Split of this graph that gives a part; None where another node does."""
    split = producer_of(part)
    return split if split is not None and split.op == "Split" and draft.holds(split) else None


def _parted(draft: Draft, match: Match, op_type: str) -> tuple[gs.Node, int, list[gs.Node]]:
    """The Split whose part the root reads, its axis, and the only reader of each part.

    Raises:
        Refused: There is none, or a part is read otherwise.
    """
    part = match.root.inputs[0]
    split = split_of(draft, part)
    if split is None:
        raise Refused("its input is no part of a Split")
    readers: list[gs.Node] = []
    for piece in split.outputs:
        node = piece.outputs[0] if len(piece.outputs) == 1 else None
        if node is None or node.op != op_type or node.inputs[0] is not piece or node.domain:
            raise Refused(f"a part of the Split is read otherwise than by one {op_type}")
        outside = draft.surgery.is_output(piece) or draft.surgery.is_output(node.outputs[0])
        if outside or not draft.holds(node):
            raise Refused("the model gives a part out, or a body reads it")
        readers.append(node)
    if len(readers) < 2:
        raise Refused("the Split has one part")
    return split, int(attribute_of(split, "axis")) % len(_shape(draft, part)), readers


def handed_out(
    draft: Draft, root: gs.Node, nodes: Sequence[gs.Node], made: Sequence[gs.Tensor]
) -> gs.Tensor:
    """The new value in the root's place; those in the places of the others are handed over too."""
    mine: list[gs.Tensor] = []
    for node, tensor in zip(nodes, made, strict=True):
        if node is root:
            mine.append(tensor)
        else:
            draft.also.append((node, [(node.outputs[0], tensor)]))
    return mine[0]


def _shape(draft: Draft, tensor: gs.Tensor) -> Shape:
    shape = draft.facts.of(tensor).shape
    if shape is None:
        raise Refused("a shape is not known")
    return shape


def _static(draft: Draft, tensor: gs.Tensor, axis: int) -> int:
    size = _shape(draft, tensor)[axis]
    if not isinstance(size, int):
        raise Refused("the sizes of the Split are known at run time only")
    return size
