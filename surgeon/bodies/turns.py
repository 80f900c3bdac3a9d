"""How often a body runs: by the count of a Loop, by its condition, by what a Scan takes apart."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
import onnx_graphsurgeon as gs

from surgeon.facts import Facts
from surgeon.facts.bodies import INWARD, SCAN_WITHOUT_BATCH, axis_of_scan, states_of_scan, turns
from surgeon.facts.fact import BOOL, FIRST_STATE, INT64, Array
from surgeon.facts.values import as_objects, evaluate
from surgeon.links import current, maker_of, toposort

_COUNTING = frozenset({BOOL, onnx.TensorProto.INT32, INT64})
_GROWING = frozenset({"ConstantOfShape", "Expand", "OneHot", "Range", "Tile"})
_MOST = 16  # elements of a value that a condition counts with
_LARGEST = 1 << 31  # of the numbers that a condition counts with: no type of theirs ends below


def turns_of_loop(facts: Facts, node: gs.Node, most: int) -> int | None:
    """How often the body of a Loop runs; None where that is not known, or more often than `most`.

    Args:
        facts: What is known.
        node: The Loop.
        most: Of how many turns it is worth to know.
    """
    counted = turns(facts, node)
    if isinstance(counted, int):
        return counted if counted <= most else None
    return None if counted is not None else _until(facts, node, most)


def in_order(body: gs.Graph) -> Sequence[gs.Node] | None:
    """The body's nodes, producers first."""
    try:
        return toposort(body)
    except ValueError:
        return None  # a cycle, which the sweep of the body names


def _until(facts: Facts, node: gs.Node, most: int) -> int | None:
    """The turns of a Loop whose condition counts, with whole numbers that are known beforehand."""
    body: gs.Graph = node.attrs["body"]
    limit = _limit(facts, node, most)
    go = _known(facts, node, 1, default=np.array(True))
    if limit is None or go is None or go.size != 1:
        return None
    if not go.any():
        return 0
    needed = _needed(body)
    carried = {place: _known(facts, node, FIRST_STATE + place) for place in needed}
    if any(array is None for array in carried.values()) or (order := in_order(body)) is None:
        return None
    for turn in range(limit):
        values: dict[int, Array] = {id(body.inputs[0]): np.array(turn), id(body.inputs[1]): go}
        for place, array in carried.items():
            if array is None:
                return None
            values[id(body.inputs[FIRST_STATE + place])] = array
        _run(facts, order, values)
        again = _value(facts, values, body.outputs[0])
        if again is None or again.size != 1:
            return None
        if not again.any():
            return turn + 1
        carried = {place: _value(facts, values, body.outputs[1 + place]) for place in needed}
    return limit if limit <= most else None


def _limit(facts: Facts, node: gs.Node, most: int) -> int | None:
    """The turns after which a Loop ends whatever its condition says; of more, one above `most`."""
    if not node.inputs or node.inputs[0].is_empty():
        return most + 1
    count = facts.array(node.inputs[0])
    if count is None or count.size != 1:
        return None
    return min(max(int(count.reshape(-1)[0]), 0), most + 1)


def _known(
    facts: Facts, node: gs.Node, place: int, *, default: Array | None = None
) -> Array | None:
    if place >= len(node.inputs) or node.inputs[place].is_empty():
        return default
    return facts.array(node.inputs[place])


def _needed(body: gs.Graph) -> set[int]:
    """Which of the values that are carried the condition depends on, in whatever turn."""
    states = {id(tensor): place for place, tensor in enumerate(body.inputs[FIRST_STATE:])}
    inside = set(map(id, body.nodes))
    needed, stack, seen = set[int](), [current(body.outputs[0])], set[int]()
    while stack:
        tensor = stack.pop()
        if id(tensor) in seen:
            continue
        seen.add(id(tensor))
        place, maker = states.get(id(tensor)), maker_of(tensor)
        if place is not None:
            needed.add(place)
            stack.append(current(body.outputs[1 + place]))
        elif maker is not None and id(maker) in inside:
            stack += map(current, maker.inputs)
    return needed


def _run(facts: Facts, order: Sequence[gs.Node], values: dict[int, Array]) -> None:
    """Compute what whole numbers tell of a turn, into `values`."""
    for node in order:
        operands = [None if t.is_empty() else _value(facts, values, t) for t in node.inputs]
        if node.domain or any(
            array is None and not t.is_empty()
            for array, t in zip(operands, node.inputs, strict=True)
        ):
            continue
        if any(array is not None and array.dtype.kind not in "ib" for array in operands):
            continue
        for tensor, array in zip(node.outputs, _computed(node, operands) or (), strict=False):
            plain = _plain(np.asarray(array)) if facts.of(tensor).dtype in _COUNTING else None
            if plain is not None:
                values[id(tensor)] = plain


def _computed(node: gs.Node, operands: Sequence[Array | None]) -> Sequence[Array] | None:
    if node.op == "Cast" and operands and operands[0] is not None:
        return [operands[0].astype(np.bool_ if node.attrs.get("to") == BOOL else np.int64)]
    if node.op in _GROWING or any(array is not None and array.size > _MOST for array in operands):
        return None
    if any(isinstance(value, gs.Tensor | gs.Graph) for value in node.attrs.values()):
        return None
    objects = [None if array is None else as_objects(array) for array in operands]
    return evaluate(node.op, objects, node.attrs)


def _value(facts: Facts, values: dict[int, Array], tensor: gs.Tensor) -> Array | None:
    tensor = current(tensor)
    found = values.get(id(tensor))
    return facts.array(tensor) if found is None else found


def _plain(array: Array) -> Array | None:
    """Truths or whole numbers as such; None where one is large, or no number."""
    elements = array.reshape(-1).tolist()
    if not all(isinstance(each, int) and abs(each) < _LARGEST for each in elements):
        return None
    truths = all(isinstance(each, bool) for each in elements)
    return array.astype(np.bool_ if truths else np.int64)


def turns_of_scan(facts: Facts, node: gs.Node) -> int | None:
    """How often the body of a Scan runs; None where that is not known, or the node is wrong."""
    states, count = states_of_scan(node), len(node.inputs)
    if facts.opset < SCAN_WITHOUT_BATCH or not 0 <= states < count == len(
        node.attrs["body"].inputs
    ):
        return None
    lengths = set()
    for index, tensor in enumerate(node.inputs[states:]):
        shape = facts.of(current(tensor)).shape
        axis = None if shape is None else axis_of_scan(node, INWARD, index, len(shape))
        if shape is None or axis is None:
            return None
        lengths.add(shape[axis])
    length = lengths.pop()
    return length if isinstance(length, int) and not lengths else None
