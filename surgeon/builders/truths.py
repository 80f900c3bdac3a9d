"""What is computed of a truth value as a number: one of two numbers, chosen by it."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_graphsurgeon as gs

from surgeon.match import Match, attribute_of
from surgeon.rewrite import Draft, Refused

_COMPUTED: dict[str, Any] = {
    "Add": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "Div": np.divide,
}


def choice_of_numbers(draft: Draft, match: Match) -> gs.Tensor:
    """y of a constant and of a condition as 0 and 1, or of a choice between two constants.

    Both numbers are computed here as the runtime would: in the element type that the operands have.
    """
    root, inner = match.nodes[:2]
    facts, chosen = draft.facts, inner.outputs[0]
    place = 0 if root.inputs[0] is chosen else 1
    constant = facts.array(root.inputs[1 - place])
    condition = inner.inputs[0]
    if constant is None or constant.size != 1 or constant.dtype.kind != "f":
        raise Refused("its other operand is no constant float")
    if constant.ndim > (facts.of(condition).rank or 0):
        raise Refused("its constant has more axes than the condition")
    if inner.op == "Where":
        sides = [facts.array(tensor) for tensor in inner.inputs[1:]]
    else:
        sides = [np.ones((), constant.dtype), np.zeros((), constant.dtype)]
    numbers = []
    for side in sides:
        if side is None or side.size != 1 or side.ndim > (facts.of(condition).rank or 0):
            raise Refused("what it chooses between are no two constants")
        pair = [side.reshape(()), constant.reshape(())]
        with np.errstate(all="ignore"):
            number = _COMPUTED[root.op](*(pair if place == 0 else pair[::-1]))
        if not np.isfinite(number):
            raise Refused("it computes no finite number")
        numbers.append(draft.constant(np.asarray(number, constant.dtype), "number"))
    y: gs.Tensor = draft.op("Where", condition, *numbers)
    return y


def cast_behind_view(draft: Draft, match: Match) -> gs.Tensor:
    """A view of a condition as numbers: of the condition, which is narrower, and cast behind it."""
    root, cast = match.nodes[:2]
    viewed = draft.op(root.op, cast.inputs[0], *root.inputs[1:], **root.attrs)
    y: gs.Tensor = draft.op("Cast", viewed, to=attribute_of(cast, "to"))
    return y
