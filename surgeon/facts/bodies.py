"""What a body may count on of what it is given, and what is known of what comes out of it.

As ONNX has it, the state of a Scan keeps dtype and shape from turn to turn, and what is scanned
comes without the axis along which it is taken apart. What a Loop carries may change its shape:
`carried` tells what of it does not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import onnx_graphsurgeon as gs

from surgeon import dims
from surgeon.dims import Dim
from surgeon.facts import sequences
from surgeon.facts.carried import Carried
from surgeon.facts.fact import BOOL, FIRST_STATE, INT64, UNKNOWN, Fact
from surgeon.facts.inference import Facts
from surgeon.links import current

INWARD, OUTWARD = "scan_input_axes", "scan_output_axes"
SCAN_WITHOUT_BATCH = 9  # the opset from which on a Scan has no axis for the batch


def body_input(
    facts: Facts, node: gs.Node, index: int, tensor: gs.Tensor, carried: Carried, place: str
) -> Fact:
    """What the body of a node, at a place of its own, may count on of one of its inputs.

    The number of a Loop's turn has no dimension, or one of size 1 where the body declares it so.
    """
    if node.op == "Loop" and index < 2:
        shape = (1,) if tensor.shape is not None and len(tensor.shape) == 1 else ()
        return Fact(INT64, shape, not_negative=True) if index == 0 else Fact(BOOL, shape)
    if node.op not in ("Loop", "Scan") or index >= len(node.inputs):
        return UNKNOWN
    given = facts.of(node.inputs[index])
    if given.items is not None:
        # what the body puts into a list is known once it was looked at; its type stays, as any does
        items = carried.items(place, tensor)
        return Fact(items=items._replace(dtype=items.dtype or given.items.dtype))
    if node.op == "Loop":
        return carried.given(facts, node, place, index, tensor.name)
    if facts.opset < SCAN_WITHOUT_BATCH:
        return Fact(given.dtype)
    return Fact(given.dtype, _one_of(node, index, given.shape))


def body_output(
    facts: Facts, node: gs.Node, index: int, carried: Carried | None = None, place: str = ""
) -> Fact:
    """What is known of an output of a node whose bodies were looked at, at that place."""
    tensor = node.outputs[index]
    new_dim = partial(facts.lengths.new, tensor.name)
    if node.op == "If":
        bodies = _possible(facts, node)
        found = [facts.of(body.outputs[index]) for body in bodies]
        lists = [fact.items for fact in found if fact.items is not None]
        if lists:
            return Fact(items=sequences.either(lists)) if len(lists) == len(found) else UNKNOWN
        return meet(found, new_dim)
    body = node.attrs.get("body")
    if node.op == "Loop" and (items := sequences.carried(facts.of, node, index, place)) is not None:
        if carried is not None and isinstance(body, gs.Graph):
            carried.fill(place, body.inputs[index + FIRST_STATE], items)
        return Fact(items=items)
    if node.op == "Loop" and isinstance(body, gs.Graph) and index + 1 < len(body.outputs):
        made = facts.of(body.outputs[index + 1])
        if index + FIRST_STATE >= len(node.inputs):
            return _of_turns(facts, node, made, new_dim, place)
        kept = UNKNOWN if carried is None else carried.behind(facts, node, place, index)
        return kept if kept.shape is not None else Fact(made.dtype)
    if node.op == "Scan" and isinstance(body, gs.Graph) and index < len(body.outputs):
        return _of_scan(facts, node, index, facts.of(body.outputs[index]))
    return facts.of(tensor)


def turns(facts: Facts, node: gs.Node) -> Dim | None:
    """How often the body of a Loop runs, where that is proven."""
    body = node.attrs["body"]
    if len(body.inputs) < 2 or not body.outputs:
        return None
    given = node.inputs[0] if node.inputs else None
    most = None if given is None or given.is_empty() else facts.of(given).value
    if most is None or most.size != 1:
        return None
    count: Dim = most.reshape(-1).tolist()[0]
    if len(node.inputs) > 1 and not node.inputs[1].is_empty():
        go = facts.array(node.inputs[1])
        if go is None or go.size != 1:
            return None
        if not go.any():
            return 0
    again = current(body.outputs[0])
    while again.inputs and again.inputs[0].op == "Identity":
        again = current(again.inputs[0].inputs[0])
    if again is not body.inputs[1]:
        value = facts.array(again)
        if value is None or not value.all():
            return None
    return dims.maximum(count, 0)


def _of_turns(
    facts: Facts, node: gs.Node, made: Fact, new_dim: Callable[[int], Dim], place: str
) -> Fact:
    """What every turn of a Loop gave, one behind the other along a new axis."""
    if made.shape is None:
        return Fact(made.dtype)
    count = turns(facts, node)
    each = [sequences.outside(dim, place) for dim in made.shape]
    rest = [new_dim(axis) if dim is None else dim for axis, dim in enumerate(each, start=1)]
    return Fact(made.dtype, (new_dim(0) if count is None else count, *rest))


def _possible(facts: Facts, node: gs.Node) -> list[gs.Graph]:
    """The branches of an If that may be taken: one where the condition is proven."""
    bodies = {k: value for k, value in node.attrs.items() if isinstance(value, gs.Graph)}
    condition = facts.array(node.inputs[0]) if node.inputs else None
    if condition is not None and condition.size == 1:
        taken = bodies.get("then_branch" if condition.reshape(-1)[0] else "else_branch")
        if taken is not None:
            return [taken]
    return list(bodies.values())


def meet(facts: Sequence[Fact], new_dim: Callable[[int], Dim]) -> Fact:
    """What holds whichever of the facts does; a dimension that differs is a new one."""
    if not facts:
        return UNKNOWN
    first = facts[0]
    dtype = first.dtype if all(f.dtype == first.dtype for f in facts) else 0
    if first.shape is None or any(f.rank != first.rank for f in facts):
        return Fact(dtype)
    columns = zip(*(f.shape for f in facts if f.shape is not None), strict=True)
    shape = [c[0] if len(set(c)) == 1 else new_dim(axis) for axis, c in enumerate(columns)]
    return Fact(dtype, tuple(shape))


def states_of_scan(node: gs.Node) -> int:
    """How many values go from turn to turn; -1 where a function's caller gives an attribute."""
    if any(isinstance(value, gs.Node.AttributeRef) for value in node.attrs.values()):
        return -1
    return len(node.inputs) - int(node.attrs.get("num_scan_inputs", 0))


def axis_of_scan(node: gs.Node, key: str, index: int, rank: int) -> int | None:
    """The axis along which one of the scanned values lies, of so many; None where it has none."""
    axes = node.attrs.get(key)
    axis = int(axes[index]) if axes and index < len(axes) else 0
    return axis % rank if -rank <= axis < rank else None


def _one_of(node: gs.Node, index: int, shape: tuple[Dim, ...] | None) -> tuple[Dim, ...] | None:
    """The shape in which a body gets an input of a Scan."""
    states = states_of_scan(node)
    if shape is None or states < 0:
        return None
    if index < states:
        return shape
    axis = axis_of_scan(node, INWARD, index - states, len(shape))
    return None if axis is None else (*shape[:axis], *shape[axis + 1 :])


def _of_scan(facts: Facts, node: gs.Node, index: int, made: Fact) -> Fact:
    states = states_of_scan(node)
    if facts.opset < SCAN_WITHOUT_BATCH or not 0 <= states < len(node.inputs):
        return Fact(made.dtype)
    if index < states:
        return Fact(made.dtype, facts.of(node.inputs[index]).shape)
    scanned = facts.of(node.inputs[states]).shape
    along = None if scanned is None else axis_of_scan(node, INWARD, 0, len(scanned))
    if made.shape is None or scanned is None or along is None:
        return Fact(made.dtype)
    axis = axis_of_scan(node, OUTWARD, index - states, len(made.shape) + 1)
    if axis is None:
        return Fact(made.dtype)
    return Fact(made.dtype, (*made.shape[:axis], scanned[along], *made.shape[axis:]))
