"""Nodes that do nothing, and chains of moves that one move says as well."""

from __future__ import annotations

import numpy as np
import onnx_graphsurgeon as gs

from surgeon.builders.known_norms import see_no_untrained_norm
from surgeon.facts.fact import Array, same_dims
from surgeon.facts.kinds import FLOATS, TRUTH, WHOLE, holds_all
from surgeon.links import maker_of
from surgeon.match import Match, attribute_of
from surgeon.rewrite import Draft, Refused

_EITHER = frozenset({"Mul", "Add", "And", "Or", "Xor"})  # whose operands may change places
_FRACTIONS = frozenset({"ReduceMean", "ReduceL2", "ReduceLogSumExp"})  # even of whole numbers
_MOST_PARTS = 16  # of a Concat that several Concats join


def cast_chain(draft: Draft, match: Match) -> gs.Tensor:
    """A Cast of a Cast that lost nothing, as one; of a float that would become an integer, none.

    What a float outside an integer's range becomes is defined nowhere, and differs by the float's
    own type.
    """
    facts, node = draft.facts, match.root
    x = match.values["x"]
    assert x is not None
    source, between = facts.of(x).dtype, facts.of(node.inputs[0]).dtype
    target = facts.of(node.outputs[0]).dtype
    if not (source and between and target):
        raise Refused("a dtype is not known")
    if not holds_all(source, between):
        raise Refused("the first Cast may lose something")
    if target not in TRUTH | WHOLE | FLOATS:
        raise Refused("its target is no number")
    if between in FLOATS and target in WHOLE and not holds_all(source, target):
        raise Refused("what a float outside an integer's range becomes is not defined")
    return x if source == target else draft.op("Cast", x, to=target)


def cast_like(draft: Draft, match: Match) -> gs.Tensor:
    """A Cast to the dtype of the second operand; nothing where the first has it."""
    x, like = match.root.inputs
    source, target = draft.facts.of(x).dtype, draft.facts.of(like).dtype
    if target not in TRUTH | WHOLE | FLOATS:
        raise Refused("the dtype that it casts to is not known, or is no number")
    return x if source == target else draft.op("Cast", x, to=target)


def transpose_chain(draft: Draft, match: Match) -> gs.Tensor:
    """A Transpose of a Transpose as one, or as none."""
    outer, inner = match.root, match.nodes[1]
    rank = draft.facts.of(inner.inputs[0]).rank
    first, second = (order_of(node, rank) for node in (inner, outer))
    order = [first[axis] for axis in second]
    if order == sorted(order):
        return inner.inputs[0]
    return draft.op("Transpose", inner.inputs[0], perm=order)


def order_of(node: gs.Node, rank: int | None) -> list[int]:
    """The order of axes of a Transpose; without one it turns all around."""
    order = attribute_of(node, "perm")
    if order:
        return [int(axis) for axis in order]
    if rank is None:
        raise Refused("its rank is not known")
    return list(range(rank))[::-1]


def reduce_chain(draft: Draft, match: Match) -> gs.Tensor:
    """What is reduced along one axis and then along another, along both at once."""
    outer, inner = match.root, match.nodes[1]
    rank = draft.facts.of(inner.inputs[0]).rank
    if outer.op != inner.op:
        raise Refused("the two are different operators")
    if outer.op in _FRACTIONS and draft.facts.of(outer.outputs[0]).dtype not in FLOATS:
        raise Refused("of whole numbers the first loses fractions, which the second would need")
    if rank is None:
        raise Refused("its rank is not known")
    keeps = [bool(attribute_of(node, "keepdims")) for node in (inner, outer)]
    if keeps[0] and not keeps[1]:
        raise Refused("the first keeps axes of length 1 that the second drops")
    first = reduced(draft, inner, rank)
    left = list(range(rank)) if keeps[0] else [i for i in range(rank) if i not in first]
    second = [left[axis] for axis in reduced(draft, outer, len(left))]
    if keeps[1] and not keeps[0]:
        raise Refused("the second keeps axes of length 1 that the first drops")
    axes = draft.constant(sorted({*first, *second}), "axes")
    return draft.op(outer.op, inner.inputs[0], axes, keepdims=int(keeps[0]))


def reduced(draft: Draft, node: gs.Node, rank: int) -> list[int]:
    """The axes that a reduction reduces, from 0.

    Raises:
        Refused: They are computed, or none are named.
    """
    array = None if len(node.inputs) < 2 else draft.facts.array(node.inputs[1])
    if array is None or not array.size:
        raise Refused("its axes are not named")
    return [int(axis) % rank for axis in array.reshape(-1).tolist()]


def same_as_input(draft: Draft, match: Match) -> gs.Tensor:
    """The input itself, where the result has provably its shape.

    For operators that have one way to give the shape of their input: an Expand to it, a Slice with
    steps of 1, a Tile.
    """
    node, facts = match.root, draft.facts
    x: gs.Tensor = node.inputs[0]
    if not same_dims(facts.of(x).shape, facts.of(node.outputs[0]).shape):
        raise Refused("its result may have another shape than its input")
    if node.op == "Slice" and len(node.inputs) > 4 and not node.inputs[4].is_empty():
        steps = facts.array(node.inputs[4])
        if steps is None or any(step != 1 for step in steps.reshape(-1).tolist()):
            raise Refused("its steps are not all 1")
    return x


def concat_chain(draft: Draft, match: Match) -> gs.Tensor:
    """Concats along the same axis inside a Concat, as one."""
    root, surgery = match.root, draft.surgery
    rank = draft.facts.of(root.outputs[0]).rank

    def axis_of(node: gs.Node) -> int:
        axis = int(node.attrs["axis"])
        if axis >= 0:
            return axis
        if rank is None:
            raise Refused("its rank is not known")
        return axis + rank

    def is_alike(node: gs.Node) -> bool:
        return node.op == "Concat" and not node.domain and axis_of(node) == axis_of(root)

    def dissolves(tensor: gs.Tensor) -> bool:
        """Whether Concats alone read a Concat, so that all may take its parts."""
        inner = maker_of(tensor)
        if inner is None or inner.op != "Concat" or surgery.is_output(tensor):
            return False
        if len(tensor.outputs) > 1 and len(inner.inputs) > _MOST_PARTS:
            return False  # what doubles step by step would be spelled out
        return all(map(is_alike, (inner, *tensor.outputs)))

    out = root.outputs[0]
    if len(out.outputs) == 1 and not surgery.is_output(out) and is_alike(out.outputs[0]):
        raise Refused("the Concat behind it takes the whole chain")
    parts: list[gs.Tensor] = []
    waiting = list(reversed(root.inputs))
    while waiting:
        tensor = waiting.pop()
        if not dissolves(tensor):
            parts.append(tensor)
        elif len(tensor.outputs) == 1:
            waiting.extend(reversed(tensor.inputs[0].inputs))
        else:
            parts.extend(tensor.inputs[0].inputs)
    if len(parts) == len(root.inputs):
        raise Refused("no operand is a Concat along the same axis that Concats alone read")
    return draft.op("Concat", *parts, axis=axis_of(root))


def drop_dropout(draft: Draft, match: Match) -> gs.Tensor:
    """Dropout in inference, or of a share of 0, is its input; one that may drop anything stays."""
    node = match.root
    x: gs.Tensor = node.inputs[0]
    if len(node.inputs) < 3 or node.inputs[2].is_empty():
        return x
    training, ratio = draft.facts.array(node.inputs[2]), None
    if not node.inputs[1].is_empty():
        ratio = draft.facts.array(node.inputs[1])
    if training is not None and not training.any():
        return x
    if ratio is not None and not ratio.any():
        return x
    raise Refused("it trains, or whether it does is known at run time only")


def out_of_training(draft: Draft, match: Match) -> gs.Tensor:
    """What a Dropout or a BatchNormalization in training mode is in evaluation."""
    node = match.root
    if node.op == "Dropout":
        asked = len(node.inputs) > 2 and not node.inputs[2].is_empty()
        training = draft.facts.array(node.inputs[2]) if asked else None
        if training is None or not training.any():
            raise Refused("it does not train, or whether it does is known at run time only")
        x: gs.Tensor = node.inputs[0]
        return x
    if not node.attrs.get("training_mode", 0):
        raise Refused("it does not train")
    kept = {name: value for name, value in node.attrs.items() if name != "training_mode"}
    y: gs.Tensor = draft.op(node.op, *node.inputs, **kept)
    return y


def beside_constant(draft: Draft, match: Match) -> tuple[gs.Tensor, Array]:
    """The operand that a constant is combined with, and the constant's values.

    Raises:
        Refused: No operand that may be the constant is one.
    """
    facts, node = draft.facts, match.root
    x, c = node.inputs
    array = facts.array(c)
    if array is None and node.op in _EITHER:
        x, c = c, x
        array = facts.array(c)
    if array is None:
        raise Refused("its constant is computed at run time")
    return x, array


def neutral(draft: Draft, match: Match) -> gs.Tensor:
    """x * 1, x / 1, x ** 1, x - 0 and x + -0.0 are x to the bit; not x + 0.0, where x is -0.0.

    So are x and true, x or false.
    """
    facts, node = draft.facts, match.root
    x, array = beside_constant(draft, match)
    if array.ndim and not same_dims(facts.of(x).shape, facts.of(node.outputs[0]).shape):
        raise Refused("its constant may make the result larger")
    plain = 0 if node.op in ("Add", "Sub", "Or", "Xor") else 1
    if (array.size and array.item(0) != plain) or (array != plain).any():  # most differ at once
        raise Refused("its constant changes the value")
    if node.op == "Pow" and facts.of(x).dtype not in FLOATS:
        raise Refused("a power of integers is computed in floats, which round")
    if array.dtype.kind not in "iub":
        if array.dtype.kind != "f":
            raise Refused(f"its dtype is {array.dtype.name}")
        if node.op in ("Add", "Sub") and (np.signbit(array) != (node.op == "Add")).any():
            raise Refused("its zero changes the sign of a zero")
    see_no_untrained_norm(draft, node)
    return x


def transposes_around(draft: Draft, match: Match) -> gs.Tensor:
    """An operation of each element between two Transposes, with one or none.

    A Softmax is along another axis then; one over several axes, as older opsets have it, is another
    operator in the normal form and does not come here.
    """
    outer, work, inner = match.nodes[:3]
    rank = draft.facts.of(inner.inputs[0]).rank
    if rank is None:
        raise Refused("its rank is not known")
    first, second = (order_of(node, rank) for node in (inner, outer))
    attributes = dict(work.attrs)
    if work.op in ("Softmax", "LogSoftmax"):
        attributes["axis"] = first[int(attribute_of(work, "axis")) % rank]
    y: gs.Tensor = draft.op(work.op, inner.inputs[0], **attributes)
    order = [first[axis] for axis in second]
    return y if order == sorted(order) else draft.op("Transpose", y, perm=order)


def drop_empty_operand(draft: Draft, match: Match) -> gs.Tensor:
    """A Concat without its operands of provably no elements."""
    root, facts = match.root, draft.facts
    axis, kept = int(root.attrs["axis"]), []
    for tensor in root.inputs:
        shape = facts.of(tensor).shape
        if shape is None or not -len(shape) <= axis < len(shape) or shape[axis] != 0:
            kept.append(tensor)
    if len(kept) == len(root.inputs) or not kept:
        raise Refused("no operand is provably empty along its axis")
    return draft.op("Concat", *kept, axis=axis) if len(kept) > 1 else kept[0]


def whole_split(draft: Draft, match: Match) -> gs.Tensor:
    """A Split of one part is its input."""
    if len(match.root.outputs) != 1:
        raise Refused("it has several parts")
    x: gs.Tensor = match.root.inputs[0]
    return x
