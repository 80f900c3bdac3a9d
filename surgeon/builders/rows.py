"""Work on rows between two views: a row is the same in every view that keeps the last axis."""

from __future__ import annotations

import onnx_graphsurgeon as gs

from surgeon import dims, opsets
from surgeon.builders.views import KEEP_ORDER, as_shape
from surgeon.match import Match, attribute_of
from surgeon.rewrite import Draft, Refused

_ELEMENTWISE = frozenset(
    "Relu Sigmoid Tanh Exp Log Sqrt Neg Abs HardSwish HardSigmoid Erf Gelu Elu LeakyRelu Softplus "
    "Reciprocal Add Sub Mul Div Pow".split()
)
_OVER_ROWS = frozenset({"Softmax", "LogSoftmax", "LayerNormalization"})
_MOST = 24  # nodes between the views


def rows_between_views(draft: Draft, match: Match) -> gs.Tensor:
    """y = Reshape of what is computed of each row of a view, in the shape that y has."""
    root, facts = match.root, draft.facts
    behind, out = root.inputs[0], facts.of(root.outputs[0]).shape
    inside = facts.of(behind).shape
    if not out or not inside or dims.equal(out[-1], inside[-1]) is not True:
        raise Refused("the view behind does not keep the last axis")
    nodes, entry = _region(draft, root, inside)
    moved: dict[int, gs.Tensor] = {id(entry): as_shape(draft, entry, out)}
    for node in nodes:
        operands = []
        for tensor in node.inputs:
            new = moved.get(id(tensor), tensor)
            array = None if new is not tensor or tensor.is_empty() else facts.array(tensor)
            if array is not None and array.ndim > 1 and node.op in _ELEMENTWISE:
                new = draft.constant(array.reshape(array.shape[-1:]), "row")
            operands.append(new)
        attributes = dict(node.attrs)
        if node.op in _OVER_ROWS:
            attributes["axis"] = -1
        elif node.op == "ReduceMean":
            operands[1:] = [draft.constant([-1], "axes")]
        moved[id(node.outputs[0])] = draft.op(node.op, *operands, **attributes)
    return moved[id(behind)]


def _region(
    draft: Draft, root: gs.Node, shape: tuple[dims.Dim, ...]
) -> tuple[list[gs.Node], gs.Tensor]:
    """The nodes between the root and the one view that all of them come from, producers first.

    Raises:
        Refused: Something else has a part in them, or they do more than compute on rows.
    """
    nodes: dict[int, gs.Node] = {}
    entries: dict[int, gs.Tensor] = {}

    def visit(tensor: gs.Tensor) -> None:
        if tensor.is_empty() or draft.facts.array(tensor) is not None:
            return
        node = tensor.inputs[0] if tensor.inputs else None
        if node is None or not draft.holds(node) or (node.domain or "") not in opsets.STANDARD:
            raise Refused(f"{tensor.name!r} is no view")
        if node.op in KEEP_ORDER:
            entries[id(tensor)] = tensor
        elif id(node) not in nodes:
            _check(draft, node, shape)
            if len(nodes) >= _MOST:
                raise Refused("much lies between the views")
            for operand in node.inputs:
                visit(operand)
            nodes[id(node)] = node

    visit(root.inputs[0])
    if len(entries) != 1 or not nodes:
        raise Refused("what lies between the views comes from no view, or from several")
    (entry,) = entries.values()
    if draft.facts.of(entry).shape != shape:
        raise Refused("the view in front has another shape than the one behind reads")
    inner = {*nodes, id(root)}
    for tensor in (entry, *(n.outputs[0] for n in nodes.values())):
        if draft.surgery.is_output(tensor) or any(id(n) not in inner for n in tensor.outputs):
            raise Refused("something else reads what lies between the views")
    return list(nodes.values()), entry


def _check(draft: Draft, node: gs.Node, shape: tuple[dims.Dim, ...]) -> None:
    """That a node computes each row of its result of the same row of its operands."""
    facts, rank = draft.facts, len(shape)
    out = facts.of(node.outputs[0]).shape
    if len(node.outputs) != 1 or out is None or len(out) != rank or out[:-1] != shape[:-1]:
        raise Refused(f"{node.op} has several results, or one of other rows")
    if node.op in _OVER_ROWS:
        if int(attribute_of(node, "axis")) % rank != rank - 1:
            raise Refused(f"{node.op} is not over rows")
        return
    if node.op == "ReduceMean":
        axes = facts.array(node.inputs[1]) if len(node.inputs) > 1 else None
        if axes is None or axes.size != 1 or int(axes.reshape(())) % rank != rank - 1:
            raise Refused("a mean is not of rows")
        if not attribute_of(node, "keepdims"):
            raise Refused("a mean drops its axis")
        return
    if node.op not in _ELEMENTWISE:
        raise Refused(f"{node.op} may mix rows")
    for tensor in node.inputs:
        array = facts.array(tensor)
        operand = facts.of(tensor).shape
        if array is not None and (array.ndim > rank or any(n != 1 for n in array.shape[:-1])):
            raise Refused("a constant is not the same for every row")
        if array is None and (operand is None or operand[:-1] != shape[:-1]):
            raise Refused("an operand has other rows")
