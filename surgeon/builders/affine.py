"""Chains of additions and multiplications with constants, as one of each."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import onnx_graphsurgeon as gs

from surgeon.facts import Facts
from surgeon.facts.fact import INTEGERS, Array, same_dims
from surgeon.match import VIEWS, Match, producer_of
from surgeon.rewrite import Draft, Refused

_STEPS = frozenset({"Add", "Sub", "Mul", "Div"})
_FLOATS = "f"
_ROUND = frozenset({"Floor", "Ceil", "Round", "QuantizeLinear", "DynamicQuantizeLinear"})
_LIMIT = frozenset({"Clip", "Min", "Max", "Relu", "Concat", "Where", "Abs", "Neg"})


def affine_chain(draft: Draft, match: Match) -> gs.Tensor:
    """y = ((x * a + b) * c + d) ... with constants as x * A + B.

    Views inside the chain are kept where they stand, in front; the constants before a view must be
    single numbers, which no view moves, and may not add axes. Every step but the last is read by
    the chain alone. In front of what rounds to whole numbers the steps stay as they are.
    """
    if _goes_on(draft, match.root):
        raise Refused("the step behind it takes the whole chain")
    steps, views, tensor = _walk(draft, match.root)
    if len(steps) < 2:
        raise Refused("it is one step")
    dtype = steps[0][1].dtype
    if any(constant.dtype != dtype for _, constant, _ in steps):
        raise Refused("its constants have different dtypes")
    if any(node.op in ("Add", "Sub") and rounds(constant) for node, constant, _ in steps):
        raise Refused("a summand is so large that what it is added to is rounded to whole numbers")
    factor, offset, scaled, moved = _composed(steps)
    # C - x is one step, but where a guard against 0 would be lost in C
    turned = bool(scaled and moved and (factor == -1).all()) and not _lost(steps)
    if scaled + moved - turned >= len(steps):
        raise Refused("it has the fewest steps already")
    if ((np.abs(factor) < np.finfo(dtype).tiny) & (factor != 0)).any():
        raise Refused(f"its factor is too small for {dtype.name}")
    factor, offset = _narrow(factor, dtype), _narrow(offset, dtype)
    rounding = _rounded_by(draft.facts, match.root.outputs[0])
    if rounding is not None:
        raise Refused(
            f"`{rounding.op}` behind it rounds, and the least difference may be one there"
        )
    y: gs.Tensor = tensor
    for node in reversed(views):
        y = draft.op(node.op, y, *node.inputs[1:], **node.attrs)
    if turned:  # the factor goes, and may be what makes the result so large
        offset = np.broadcast_to(offset, np.broadcast_shapes(factor.shape, offset.shape))
        return draft.op("Sub", draft.constant(offset, "offset"), y)
    if scaled:
        y = draft.op("Mul", y, draft.constant(factor, "factor"))
    if moved:
        y = draft.op("Add", y, draft.constant(offset, "offset"))
    return y


def summands_of_both(draft: Draft, match: Match) -> gs.Tensor:
    """(u + c) + (v + d) with constants as (u + v) + C."""
    bare, constants = [], []
    for pair in (("u", "c"), ("v", "d")):
        tensors = [tensor for key in pair if (tensor := match.values[key]) is not None]
        arrays = [draft.facts.array(tensor) for tensor in tensors]
        found = [array for array in arrays if array is not None]
        if len(tensors) != 2 or len(found) != 1:
            raise Refused("not one summand of each is constant")
        constants.append(found[0])
        bare.append(tensors[0 if arrays[0] is None else 1])
    first, second = constants
    if first.dtype.kind not in _FLOATS or rounds(first) or rounds(second):
        raise Refused("its constants are no floats, or so large that they round")
    if first.shape != second.shape:
        raise Refused("its constants are of different shapes")
    total = _narrow(first.astype(np.float64) + second, first.dtype)
    summed = draft.op("Add", *bare)
    y: gs.Tensor = draft.op("Add", summed, draft.constant(total, "summand"))
    return y


def _goes_on(draft: Draft, node: gs.Node) -> bool:
    """Whether another step alone reads a step: who walked the chain at each took the square."""
    out = node.outputs[0]
    if len(out.outputs) != 1 or draft.surgery.is_output(out):
        return False
    found = _step(draft, out.outputs[0])
    return found is not None and found[2] is out


def _rounded_by(facts: Facts, tensor: gs.Tensor) -> gs.Node | None:
    """What makes whole numbers of a value, directly or behind what moves, scales or limits it."""
    waiting, seen = [tensor], {id(tensor)}
    while waiting:
        for node in waiting.pop().outputs:
            if node.op in _ROUND or (
                node.op == "Cast" and facts.of(node.outputs[0]).dtype in INTEGERS
            ):
                return node
            scales = node.op in _STEPS and any(facts.array(t) is not None for t in node.inputs)
            if scales or node.op in VIEWS or node.op in _LIMIT:
                waiting += [t for t in node.outputs if id(t) not in seen]
                seen.update(map(id, node.outputs))
    return None


def _lost(steps: list[tuple[gs.Node, Array, bool]]) -> bool:
    """Whether a summand is as good as nothing beside another, as 1e-6 in (1 - x * x) + 1e-6."""
    sizes = [np.abs(c.astype(np.float64)) for node, c, _ in steps if node.op in ("Add", "Sub")]
    least = min(float(size.min()) for size in sizes if size.size)
    return least < max(float(size.max()) for size in sizes if size.size) * 2.0**-10


def rounds(constant: Any) -> bool:
    """Whether digits behind the point are lost beside it, which (x + m) - m is written for."""
    digits = ml_dtypes.finfo(constant.dtype).nmant  # type: ignore[no-untyped-call]
    return bool((np.abs(constant) >= 2.0 ** (digits - 1)).any())


def _composed(steps: list[tuple[gs.Node, Array, bool]]) -> tuple[Array, Array, bool, bool]:
    """Factor and offset of all steps, in float64, and whether each is needed at all."""
    factor: Array = np.ones((), np.float64)
    offset: Array = np.zeros((), np.float64)
    scaled = moved = False
    with np.errstate(all="ignore"):
        for node, constant, constant_first in reversed(steps):
            value = constant.astype(np.float64)
            if node.op in ("Mul", "Div"):
                by = np.multiply if node.op == "Mul" else np.divide
                factor, scaled = by(factor, value), True
                offset = by(offset, value) if moved else offset
            elif node.op == "Add":
                offset, moved = offset + value, True
            else:
                sign = -1.0 if constant_first else 1.0
                factor, offset = factor * sign, offset * sign - value * sign
                moved, scaled = True, scaled or constant_first
    return factor, offset, scaled, moved


def _narrow(array: Array, dtype: np.dtype[Any]) -> Array:
    """The numbers in a dtype.

    Raises:
        Refused: They are not finite in it.
    """
    with np.errstate(all="ignore"):
        narrow = array.astype(dtype)
    if not np.isfinite(narrow).all():
        raise Refused(f"its constants are not finite in {dtype.name}")
    return narrow


def _walk(
    draft: Draft, root: gs.Node
) -> tuple[list[tuple[gs.Node, Array, bool]], list[gs.Node], gs.Tensor]:
    """The steps (last first) with their constants, the views between, and what they start on."""
    facts, surgery = draft.facts, draft.surgery
    steps: list[tuple[gs.Node, Array, bool]] = []
    views: list[gs.Node] = []
    pending: list[gs.Node] = []
    node = root
    while True:
        found = _step(draft, node)
        if found is None:
            break
        constant, first, data = found
        if views or pending:
            if constant.size != 1 or not _keeps_shape(facts, node, data):
                break
            constant = constant.reshape(())  # behind the views it has other axes beside it
        steps.append((node, constant, first))
        views.extend(pending)
        tensor, pending = data, []
        before: gs.Node | None = node
        while True:
            before = producer_of(tensor)
            if before is None or len(tensor.outputs) != 1 or surgery.is_output(tensor):
                return steps, views, data
            if before.op not in VIEWS - {"Cast"}:
                break
            pending.append(before)
            tensor = before.inputs[0]
        if views or pending:
            shapes = [facts.of(n.inputs[0]).shape for n in (*views, *pending)]
            if any(s is None for s in shapes):
                return steps, views, data
        if before.op not in _STEPS:
            return steps, views, data
        node = before
    return (
        steps,
        views,
        steps[-1][0].inputs[_data_index(draft, steps[-1][0])] if steps else root.inputs[0],
    )


def _data_index(draft: Draft, node: gs.Node) -> int:
    return 1 if draft.facts.array(node.inputs[0]) is not None else 0


def _step(draft: Draft, node: gs.Node) -> tuple[Array, bool, gs.Tensor] | None:
    """(constant, whether it comes first, the other operand) of an affine step of floats."""
    if node.op not in _STEPS or len(node.inputs) != 2:
        return None
    index = _data_index(draft, node)
    data, other = node.inputs[index], node.inputs[1 - index]
    constant = draft.facts.array(other)
    if constant is None or constant.dtype.kind not in _FLOATS or (node.op == "Div" and index == 1):
        return None
    if draft.facts.array(data) is not None:
        return None
    return constant, index == 1, data


def _keeps_shape(facts: Facts, node: gs.Node, data: gs.Tensor) -> bool:
    """Whether the constant is proven not to make the value larger."""
    shape = facts.of(data).shape
    return shape is not None and same_dims(shape, facts.of(node.outputs[0]).shape)
