"""Layers that are stacked along an axis, and what is computed of them along it."""

from __future__ import annotations

import numpy as np
import onnx_graphsurgeon as gs

from surgeon import dims
from surgeon.builders.bench import TYPE
from surgeon.builders.jointly import split_of
from surgeon.builders.linear import FLOATS, bias_of, narrow
from surgeon.builders.own_constants import own_weight
from surgeon.builders.views import as_shape, keeps_order
from surgeon.dims import Dim
from surgeon.facts.fact import Array, same_dims
from surgeon.match import Match, attribute_of, producer_of
from surgeon.rewrite import Draft, Refused

Shape = tuple[Dim, ...]
_OF_VALUES = {"ReduceSum": "Sum", "ReduceMean": "Mean", "ReduceMax": "Max", "ReduceMin": "Min"}


def parts_as_layers(draft: Draft, match: Match) -> gs.Tensor:
    """All parts of a Split, stacked in front of its axis: a view of the whole."""
    root = match.root
    axis, layer = _axis_of(draft, root)
    layers = _layers(draft, root, layer)
    split = split_of(draft, layers[0])
    if split is None:
        raise Refused("what it stacks first is no part of a Split")
    if [id(t) for t in layers] != [id(t) for t in split.outputs]:
        raise Refused("it does not stack all parts of a Split, in their order")
    rank = draft.facts.of(split.inputs[0]).rank
    if rank is None or int(attribute_of(split, "axis")) % rank != axis:
        raise Refused("it does not stack them in front of the axis of the Split")
    shape = draft.facts.of(root.outputs[0]).shape
    assert shape is not None
    return as_shape(draft, split.inputs[0], shape)


def sum_of_layers(draft: Draft, match: Match) -> gs.Tensor:
    """The sum, mean, least or greatest along the axis that layers are stacked on: of the layers."""
    root, facts = match.root, draft.facts
    stack = root.inputs[0].inputs[0]
    axis, layer = _axis_of(draft, stack)
    axes = facts.array(root.inputs[1]) if len(root.inputs) > 1 else None
    rank = facts.of(root.inputs[0]).rank
    assert rank is not None
    if axes is None or [int(n) % rank for n in axes.reshape(-1)] != [axis]:
        raise Refused("it is not along the axis that the layers are stacked on")
    if facts.of(root.inputs[0]).dtype not in FLOATS:
        raise Refused("the layers are no floats")
    if root.op == "ReduceMean" and facts.of(root.inputs[0]).dtype == TYPE.DOUBLE:
        raise Refused("onnxruntime has no `Mean` in double precision")
    kept = bool(attribute_of(root, "keepdims"))
    operands = list(stack.inputs) if kept else _layers(draft, stack, layer)
    each = (*layer[:axis], 1, *layer[axis:])
    if kept and not all(same_dims(facts.of(t).shape, each) for t in operands):
        raise Refused("it joins what is more than one layer each, and nothing")
    operator = _OF_VALUES[root.op]
    operator = "Add" if operator == "Sum" and len(operands) == 2 else operator
    y: gs.Tensor = draft.op(operator, *operands)
    return y


def two_shares(draft: Draft, match: Match) -> gs.Tensor:
    """Two layers, weighted with a Softmax of two: b + sigmoid (u - v) * (a - b).

    What the Softmax is of has to be a product with constant weights, whose difference is one of the
    weights; or two values that are stacked, too.
    """
    facts, (stacked, weights) = draft.facts, (match.values["f"], match.values["s"])
    assert stacked is not None
    assert weights is not None
    stack = producer_of(stacked)
    if stack is None or stack.op != "Concat":
        stacked, weights = weights, stacked
        stack = producer_of(stacked)
    if stack is None or stack.op != "Concat" or len(stacked.outputs) != 1:
        raise Refused("no layers are stacked that nothing else reads")
    axis, layer = _axis_of(draft, stack)
    axes = facts.array(match.root.inputs[1]) if len(match.root.inputs) > 1 else None
    shape = facts.of(stacked).shape
    assert shape is not None
    if axes is None or [int(n) % len(shape) for n in axes.reshape(-1)] != [axis]:
        raise Refused("it is not summed along the axis that the layers are stacked on")
    if len(stack.inputs) != 2 or attribute_of(match.root, "keepdims"):
        raise Refused("there are not two layers, or the axis of the stack is kept")
    first, second = _layers(draft, stack, layer)
    share = draft.op("Sigmoid", _difference(draft, weights, axis, len(shape)))
    gap = draft.op("Mul", share, draft.op("Sub", first, second))
    y: gs.Tensor = draft.op("Add", gap, second)
    return y


def _axis_of(draft: Draft, stack: gs.Node) -> tuple[int, Shape]:
    """The axis along which a Concat joins layers of 1, and the shape of a layer without it.

    Raises:
        Refused: It joins what is more than one layer each.
    """
    shape = draft.facts.of(stack.outputs[0]).shape
    if stack.op != "Concat" or shape is None or len(stack.inputs) < 2:
        raise Refused("it stacks no layers, or its shape is not known")
    axis = int(attribute_of(stack, "axis")) % len(shape)
    if shape[axis] != len(stack.inputs):
        raise Refused("it joins what is more than one layer each")
    return axis, (*shape[:axis], *shape[axis + 1 :])


def _layers(draft: Draft, stack: gs.Node, layer: Shape) -> list[gs.Tensor]:
    """What a Concat stacks, before it got the axis of the stack.

    Raises:
        Refused: A layer stands nowhere without that axis.
    """
    found = []
    for operand in stack.inputs:
        tensor = operand
        while not same_dims(draft.facts.of(tensor).shape, layer):
            node = producer_of(tensor)
            if node is None or not keeps_order(node, draft.facts):
                raise Refused(f"`{operand.name}` is no view of a layer")
            tensor = node.inputs[0]
        found.append(tensor)
    return found


def _difference(draft: Draft, weights: gs.Tensor, axis: int, rank: int) -> gs.Tensor:
    """Of a Softmax of two, behind views maybe, the first that it is of without the second.

    Returns:
        A value that the layers may be multiplied with, without the axis of the stack.
    """
    facts, shape = draft.facts, draft.facts.of(weights).shape
    if shape is None or len(shape) != rank or shape[axis] != 2:
        raise Refused("the weights do not stand along the axis of the stack")
    softmax = _softmax_behind(draft, weights, axis, shape)
    score, wanted = softmax.inputs[0], (*shape[:axis], *shape[axis + 1 :])
    before = facts.of(score).shape
    assert before is not None
    each = (*before[:axis], *before[axis + 1 :])
    stack = producer_of(score)
    if stack is not None and stack.op == "Concat" and draft.holds(stack):
        if _axis_of(draft, stack) != (axis, each):
            raise Refused("the weights are stacked along another axis")
        return as_shape(draft, draft.op("Sub", *_layers(draft, stack, each)), wanted)
    node = _linear_behind(draft, score)
    made = facts.of(node.outputs[0]).shape
    if made is None or axis != 1 or len(made) < 2 or len(each) < 2:
        raise Refused("its scores are no channels of a product, each half behind the other")
    half = dims.exact_quotient(made[1], 2)
    if not isinstance(half, int) or not same_dims(before[:3], (made[0], 2, half)):
        raise Refused("its scores are no channels of a product, each half behind the other")
    return as_shape(draft, _halves_apart(draft, node, half), wanted)


def _softmax_behind(draft: Draft, weights: gs.Tensor, axis: int, shape: Shape) -> gs.Node:
    """The Softmax along the axis of the stack, behind views that keep it where it is."""
    tensor = weights
    while True:
        node = producer_of(tensor)
        if node is None or len(tensor.outputs) != 1 or not draft.holds(node):
            raise Refused("no Softmax gives the weights, or something else reads them, too")
        own = draft.facts.of(tensor).shape
        if own is None or not same_dims(own[: axis + 1], shape[: axis + 1]):
            raise Refused("a view moves the axis that the weights stand on")
        if node.op == "Softmax":
            if int(attribute_of(node, "axis")) % len(own) != axis:
                raise Refused("the weights are no Softmax along the axis of the stack")
            return node
        if not keeps_order(node, draft.facts):
            raise Refused("no Softmax gives the weights")
        tensor = node.inputs[0]


def _linear_behind(draft: Draft, score: gs.Tensor) -> gs.Node:
    """The Conv or Gemm with constant weights that a value is a view of."""
    while True:
        node = producer_of(score)
        if node is None or len(score.outputs) != 1 or not draft.holds(node):
            raise Refused("no product gives its scores, or something else reads them, too")
        if node.op in ("Conv", "Gemm"):
            return node
        if not keeps_order(node, draft.facts):
            raise Refused("no product gives its scores")
        score = node.inputs[0]


def _halves_apart(draft: Draft, node: gs.Node, half: int) -> gs.Tensor:
    """The first half of the channels of a product without the second."""
    weight, bias = own_weight(draft, node), bias_of(draft, node)
    if node.op == "Conv" and int(attribute_of(node, "group") or 1) != 1:
        raise Refused("its channels are of several groups")
    columns = node.op == "Gemm" and not attribute_of(node, "transB")
    operands = [draft.constant(_apart(weight, half, 1 if columns else 0), "weight")]
    if bias is not None:
        whole = np.broadcast_to(bias.reshape(-1), 2 * half)
        operands.append(draft.constant(_apart(whole, half, 0), "bias"))
    y: gs.Tensor = draft.op(node.op, node.inputs[0], *operands, **node.attrs)
    return y


def _apart(array: Array, half: int, axis: int) -> Array:
    first, second = np.split(array.astype(np.float64), [half], axis)
    return narrow(first - second, array)
