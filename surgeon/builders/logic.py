"""Choices and what is made of truth values, in numbers: as bounds, products and comparisons."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_graphsurgeon as gs

from surgeon.facts.fact import Array
from surgeon.match import Match, producer_of
from surgeon.rewrite import Draft, Refused

_BOOL, _FLOAT = onnx.TensorProto.BOOL, onnx.TensorProto.FLOAT
_LARGEST = 1 << 20  # elements of the bounds that a condition and a constant make


def choice_as_bounds(draft: Draft, match: Match) -> gs.Tensor:
    """y = a where a constant condition holds, else b, as the one between bounds that the other is.

    A constant is both bounds of the other side where it is chosen; an infinite one is one bound,
    as nothing lies beyond it. Two computed sides have bounds each.
    """
    root, facts = match.root, draft.facts
    condition, *sides = root.inputs
    chosen = facts.array(condition)
    arrays = [facts.array(side) for side in sides]
    if chosen is None:
        raise Refused("its condition is computed at run time")
    if all(array is not None for array in arrays):
        raise Refused("both its sides are constant, and it is one itself")
    for place, array in enumerate(arrays):
        if array is not None:
            here = chosen if place == 0 else ~chosen
            return _between(draft, sides[1 - place], here, array)
    dtype = onnx.helper.tensor_dtype_to_np_dtype(facts.of(root.outputs[0]).dtype)
    parts = []
    for side, here in zip(sides, (chosen, ~chosen), strict=True):
        bound = np.where(here, -np.inf, np.inf).astype(dtype)
        parts.append(draft.op("Max", side, draft.constant(bound, "least")))
    return draft.op("Min", *parts)


def _between(draft: Draft, x: gs.Tensor, here: Array, number: Array) -> gs.Tensor:
    """The number where a condition holds, else x.

    Raises:
        Refused: The number is NaN somewhere, or the bounds are very large.
    """
    if np.isnan(number).any():
        raise Refused("a number that is NaN bounds nothing")
    if np.broadcast(here, number).size > _LARGEST:
        raise Refused("its bounds would be very large")
    for op, name, infinite in (("Min", "most", np.inf), ("Max", "least", -np.inf)):
        if number.size == 1 and number.reshape(-1)[0] == infinite:
            continue  # nothing lies beyond the other bound
        bound = np.where(here, number, np.array(infinite, number.dtype))
        x = draft.op(op, x, draft.constant(bound, name))
    return x


def logic_as_numbers(draft: Draft, match: Match) -> gs.Tensor:
    """y = And, Or or Xor, of ones and zeros."""
    root = match.root
    _decides_nothing(root)
    a, b = (draft.op("Cast", side, to=_FLOAT) for side in root.inputs)
    if root.op == "Xor":
        number = draft.op("Abs", draft.op("Sub", a, b))
    else:
        number = draft.op("Mul" if root.op == "And" else "Max", a, b)
    y: gs.Tensor = draft.op("Cast", number, to=_BOOL)
    return y


def not_as_less(draft: Draft, match: Match) -> gs.Tensor:
    """y = Not, of ones and zeros."""
    _decides_nothing(match.root)
    number = draft.op("Cast", match.root.inputs[0], to=_FLOAT)
    y: gs.Tensor = draft.op("Less", number, draft.constant(np.array(0.5, np.float32), "half"))
    return y


def _decides_nothing(node: gs.Node) -> None:
    """Check that something reads a truth value beside what it lets run.

    Raises:
        Refused: Nothing does: a runtime with If and Loop has the operator too.
    """
    readers = node.outputs[0].outputs
    if readers and all(reader.op in ("If", "Loop") for reader in readers):
        raise Refused("it decides what runs")


def number_of_number(draft: Draft, match: Match) -> gs.Tensor:
    """The number that a truth value is made of, where it is a one or a zero."""
    number: gs.Tensor = match.nodes[1].inputs[0]
    pending, seen = [number], set[int]()
    while pending:
        tensor = pending.pop()
        if id(tensor) in seen:
            continue
        seen.add(id(tensor))
        node = producer_of(tensor)
        if node is None or node.op not in ("Cast", "Mul", "Max", "Abs"):
            raise Refused("it may be another number")
        if node.op == "Cast":
            if draft.facts.of(node.inputs[0]).dtype != _BOOL:
                raise Refused("it may be another number")
        elif node.op == "Abs":
            apart = producer_of(node.inputs[0])
            if apart is None or apart.op != "Sub":
                raise Refused("it may be another number")
            pending.extend(apart.inputs)
        else:
            pending.extend(node.inputs)
    if draft.facts.of(number).dtype != _FLOAT:
        raise Refused("it is a number of another type")
    draft.premises.append(number)
    return number
