"""What is computed of a truth value as a number: one of two numbers, chosen by it."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx_graphsurgeon as gs

from surgeon.builders.bench import TYPE, Bench
from surgeon.builders.fills import holds
from surgeon.facts.fact import INTEGERS, Array, same_dims
from surgeon.links import maker_of
from surgeon.match import Match
from surgeon.rewrite import Draft, Refused
from surgeon.standard import STANDARD

_COMPUTED: dict[str, Any] = {
    "Add": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "Div": np.divide,
}
_VIEWS = frozenset({"Reshape", "Unsqueeze", "Squeeze"})


def choice_of_numbers(draft: Draft, match: Match) -> gs.Tensor:
    """y of a constant and of a condition as 0 and 1, or of a choice between two constants.

    Views between them are views of the condition then. Both numbers are computed here as the
    runtime would: in the element type that the operands have.
    """
    root, facts = match.root, draft.facts
    chosen = match.nodes[1].outputs[0]
    place = 0 if root.inputs[0] is chosen else 1
    constant = facts.array(root.inputs[1 - place])
    rank = facts.of(chosen).rank
    if constant is None or constant.size != 1 or constant.dtype.kind != "f":
        raise Refused("its other operand is no constant float")
    if rank is None or constant.ndim > rank:
        raise Refused("its constant has more axes than the condition")
    views, maker = _maker(draft, chosen)
    numbers = []
    for side in _sides(draft, maker, constant):
        pair = [side.reshape(()), constant.reshape(())]
        with np.errstate(all="ignore"):
            number = _COMPUTED[root.op](*(pair if place == 0 else pair[::-1]))
        if not np.isfinite(number):
            raise Refused("it computes no finite number")
        numbers.append(draft.constant(np.asarray(number, constant.dtype), "number"))
    condition = maker.inputs[0]
    for view in reversed(views):
        condition = draft.op(view.op, condition, *view.inputs[1:], **view.attrs)
    y: gs.Tensor = draft.op("Where", condition, *numbers)
    return y


def settled_truth(draft: Draft, match: Match) -> gs.Tensor:
    """And beside false, Or beside true, and what is not negative beside 0: one truth everywhere."""
    c, facts, node = Bench(draft), draft.facts, match.root
    shape = facts.of(node.outputs[0]).shape
    truth = node.op in ("Or", "GreaterOrEqual", "LessOrEqual")
    if node.op in ("And", "Or"):
        settled = next((t for t in node.inputs if holds(draft, t, truth)), None)
        x = next((t for t in node.inputs if t is not settled), settled)
        if settled is not None and same_dims(facts.of(settled).shape, shape):
            return settled
    else:
        x, settled = node.inputs if node.op in ("Less", "GreaterOrEqual") else node.inputs[::-1]
        if facts.of(x).dtype not in INTEGERS:
            raise Refused("it may be NaN")
        if not (facts.of(x).not_negative and holds(draft, settled, 0)):
            settled = None
    if settled is None:
        raise Refused("both answers are possible")
    if not same_dims(facts.of(x).shape, shape):
        raise Refused("the other operand may make the result larger")
    grows = x is not None and not x.inputs and draft.surgery.is_output(node.outputs[0])
    if grows and not all(isinstance(dim, int) for dim in shape or ()):
        raise Refused("its size is read, which takes a node more, and nothing reads on")
    return c.filled(c.sizes(x), truth, TYPE.BOOL)


def equal_to_truth(draft: Draft, match: Match) -> gs.Tensor:
    """Equal of a condition and a constant: the condition, or its opposite."""
    facts, (x, other) = draft.facts, match.root.inputs
    if facts.array(other) is None:
        x, other = other, x
    array = facts.array(other)
    if array is None or array.dtype.kind != "b":
        raise Refused("no operand is a constant of conditions")
    if not same_dims(facts.of(x).shape, facts.of(match.root.outputs[0]).shape):
        raise Refused("its constant may make the result larger")
    if not array.size or (array != array.item(0)).any():
        raise Refused("some of its conditions hold and others do not")
    return x if array.item(0) else draft.op("Not", x)


def _maker(draft: Draft, chosen: gs.Tensor) -> tuple[list[gs.Node], gs.Node]:
    """The views that lead to a value, the last first, and the node that made what they view.

    Raises:
        Refused: Something else reads what is on the way.
    """
    views: list[gs.Node] = []
    while True:
        node = maker_of(chosen)
        if node is None or not draft.holds(node) or (node.domain or "") not in STANDARD:
            raise Refused("what it views is no choice between two numbers")
        if len(chosen.outputs) != 1 or draft.surgery.is_output(chosen):
            raise Refused("something else reads the numbers")
        if node.op not in _VIEWS:
            return views, node
        views.append(node)
        chosen = node.inputs[0]


def _sides(draft: Draft, maker: gs.Node, like: Array) -> list[Array]:
    """The number where a condition holds, and the one where it does not."""
    facts = draft.facts
    rank = facts.of(maker.inputs[0]).rank
    if maker.op == "Cast" and facts.of(maker.inputs[0]).dtype == onnx.TensorProto.BOOL:
        return [np.ones((), like.dtype), np.zeros((), like.dtype)]
    sides = [facts.array(tensor) for tensor in maker.inputs[1:]] if maker.op == "Where" else []
    found = [side for side in sides if side is not None and side.size == 1]
    if len(found) != 2 or rank is None or any(side.ndim > rank for side in found):
        raise Refused("what it views is no choice between two numbers")
    return found
