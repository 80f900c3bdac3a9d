"""Grids of anchors as detectors compute them: lines repeated along each other, and stacked."""

from __future__ import annotations

import onnx_graphsurgeon as gs

from surgeon import dims
from surgeon.builders.cleaning import order_of
from surgeon.builders.fills import number_of
from surgeon.builders.lists import entries_of, sizes_of
from surgeon.builders.views import Shape, as_shape, keeps_order, view_between
from surgeon.dims import Dim
from surgeon.facts import Facts
from surgeon.links import maker_of
from surgeon.match import Match, attribute_of
from surgeon.rewrite import Draft, Refused
from surgeon.standard import STANDARD

_TAKING = frozenset({"Gather", "Squeeze", "Slice", "Cast", "Identity"})  # a size out of a shape


def axes_before_expand(draft: Draft, match: Match) -> gs.Tensor:
    """Axes of 1 in front of what is repeated, put in before it is: what repeats it stays."""
    root, e = match.root, match.values["e"]
    assert e is not None
    facts, (x, target) = draft.facts, e.inputs[0].inputs
    own, repeated = facts.of(x).shape, facts.of(e).shape
    axes = facts.array(root.inputs[1])
    if own is None or repeated is None or axes is None or len(own) != len(repeated):
        raise Refused("a shape is not known, or it is repeated along further axes")
    count = axes.size
    if sorted(int(a) % (len(own) + count) for a in axes.reshape(-1)) != list(range(count)):
        raise Refused("it puts axes in behind others")
    node = maker_of(x)
    if node is None or len(x.outputs) > 1 or not keeps_order(node, facts):
        raise Refused("nothing in front of it takes the axes in")
    y: gs.Tensor = draft.op("Expand", as_shape(draft, x, (*[1] * count, *own)), target)
    return y


def stack_in_rows(draft: Draft, match: Match) -> gs.Tensor:
    """y = Transpose of pairs, or of more, that layers stacked along a last axis are: rows of these.

    The pairs may be joined from several stacks, as those of the levels of a pyramid are.
    """
    facts, x = draft.facts, match.root.inputs[0]
    if facts.of(x).rank != 2 or order_of(match.root, 2) != [1, 0]:
        raise Refused("it is not of pairs")
    joined = _alone(draft, x)
    levels = [x]
    if joined is not None and joined.op == "Concat" and attribute_of(joined, "axis") in (0, -2):
        levels = list(joined.inputs)
    rows = [_rows(draft, level) for level in levels]
    draft.premises.append(x)
    y: gs.Tensor = rows[0] if len(rows) == 1 else draft.op("Concat", *rows, axis=1)
    return y


def _rows(draft: Draft, pairs: gs.Tensor) -> gs.Tensor:
    """The layers that were stacked along a last axis, each as a row.

    Raises:
        Refused: It is not stacked so.
    """
    facts = draft.facts
    view = _alone(draft, pairs)
    stack = None if view is None or view.op != "Reshape" else _alone(draft, view.inputs[0])
    if stack is None or stack.op != "Concat":
        raise Refused("it is not of layers that are stacked")
    shape, out = facts.of(stack.outputs[0]).shape, facts.of(pairs).shape
    count = len(stack.inputs)
    if shape is None or out is None or len(shape) < 2:
        raise Refused("a shape is not known")
    if int(attribute_of(stack, "axis")) % len(shape) != len(shape) - 1:
        raise Refused("its layers are not stacked along the last axis")
    layers = [facts.of(tensor).shape for tensor in stack.inputs]
    if any(layer is None or layer[-1] != 1 for layer in layers) or out[1] != count:
        raise Refused("its layers are not stacked along the last axis, or parted behind")
    nodes = [_alone(draft, tensor) for tensor in stack.inputs]
    if any(node is None or node.op not in ("Unsqueeze", "Reshape") for node in nodes):
        raise Refused("its layers are no views")
    layer = (1, *shape[:-1])
    stood = [as_shape(draft, tensor, layer) for tensor in stack.inputs]
    return as_shape(draft, draft.op("Concat", *stood, axis=0), (count, out[0]))


def _alone(draft: Draft, tensor: gs.Tensor) -> gs.Node | None:
    """What computes a value that one node reads."""
    node = maker_of(tensor)
    if node is None or not draft.holds(node) or (node.domain or "") not in STANDARD:
        return None
    if len(tensor.outputs) != 1 or draft.surgery.is_output(tensor):
        return None
    return node


def fill_as_view(draft: Draft, match: Match) -> gs.Tensor:
    """y = ConstantOfShape of products of sizes that follow one another: a view of as many."""
    root, facts = match.root, draft.facts
    target, out = root.inputs[0], facts.of(root.outputs[0]).shape
    entries = entries_of(facts, target)
    if entries is None or out is None or len(target.outputs) != 1:
        raise Refused("its sizes are not joined, or read elsewhere as well")
    computed = [entry for entry in entries if isinstance(entry, gs.Tensor)]
    if len(computed) != 1 or len(entries) == 1:
        raise Refused("it has no size that is computed, more than one, or no other")
    x, first, end = _axes_of(draft, computed[0])
    shape = facts.of(x).shape
    assert shape is not None  # `_axes_of` has asked
    own = shape[first:end]
    if dims.equal(dims.product(own), dims.product(out)) is not True:
        raise Refused("it fills more than those axes have places")
    between = view_between(own, out)
    if between is None:
        raise Refused("no constant Reshape gives its shape")
    draft.premises.append(target)
    sizes = sizes_of(draft, x, first, end)
    made = draft.op("ConstantOfShape", sizes, value=number_of(root))
    return between.draw(draft, made)


def _axes_of(draft: Draft, size: gs.Tensor) -> tuple[gs.Tensor, int, int]:
    """Whose axes, from which to which, have together as many elements as a computed size says.

    Raises:
        Refused: None of those have that its size is computed from, or something else reads it.
    """
    facts, value = draft.facts, draft.facts.of(size).value
    wanted: Dim = 0 if value is None else value.reshape(-1).tolist()[0]
    if (node := _alone(draft, size)) is not None and node.op != "Mul":
        node = _alone(draft, node.inputs[0])
    if node is None or node.op != "Mul":
        raise Refused("it is no product of sizes, or read elsewhere as well")
    for tensor in node.inputs:
        while tensor.inputs and tensor.inputs[0].op in _TAKING:
            tensor = tensor.inputs[0].inputs[0]
        shape = _measured(facts, tensor)
        for first in range(len(shape or ())):
            for end in range(first + 2, len(shape or ()) + 1):
                if shape and dims.equal(dims.product(shape[first:end]), wanted) is True:
                    return tensor.inputs[0].inputs[0], first, end
    raise Refused("it is no product of sizes that follow one another")


def _measured(facts: Facts, sizes: gs.Tensor) -> Shape | None:
    """The shape that a Shape gives."""
    node = maker_of(sizes)
    if node is None or node.op != "Shape" or (node.domain or "") not in STANDARD:
        return None
    return facts.of(node.inputs[0]).shape
