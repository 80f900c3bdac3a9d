"""Work between two views: on rows, which views keep that keep the last axis, or on each element."""

from __future__ import annotations

import onnx_graphsurgeon as gs

from surgeon import dims
from surgeon.builders.reductions import reduced_as
from surgeon.builders.views import KEEP_ORDER, as_shape
from surgeon.facts.elementwise import ELEMENTWISE, REDUCTIONS, UNARY
from surgeon.links import maker_of
from surgeon.match import Match, attribute_of
from surgeon.rewrite import Draft, Refused
from surgeon.standard import STANDARD

Shape = tuple[dims.Dim, ...]
_OVER_ROWS = frozenset({"Softmax", "LogSoftmax", "LayerNormalization"})
_MOST = 24  # nodes between the views


def rows_between_views(draft: Draft, match: Match) -> gs.Tensor:
    """y = a view of what is computed of each row, or element, of another: in the shape that y has.

    Where it is of each element, what keeps or drops the axes that it reduces is such a view too.
    """
    root, facts = match.root, draft.facts
    behind, out = root.inputs[0], facts.of(root.outputs[0]).shape
    inside = facts.of(behind).shape
    if out is None or inside is None:
        raise Refused("a shape is not known")
    rows = bool(out and inside) and dims.equal(out[-1], inside[-1]) is True
    nodes, entry = _region(draft, root, inside, rows=rows)
    maker = entry.inputs[0]
    if maker.op in REDUCTIONS:
        if any(node.op not in UNARY for node in nodes):
            raise Refused(f"{entry.name!r} is no view")
        start = reduced_as(draft, maker, out)
    elif all(node.op in UNARY for node in nodes):
        start = as_shape(draft, entry, out)
    else:
        row = (facts.of(entry).shape or ())[-1]
        start = as_shape(draft, entry, (*out[:-1], row))
    moved: dict[int, gs.Tensor] = {id(entry): start}
    for node in nodes:
        operands = []
        for tensor in node.inputs:
            new = moved.get(id(tensor), tensor)
            plain = new is tensor and not tensor.is_empty() and node.op in ELEMENTWISE
            array = facts.array(tensor) if plain else None
            if array is not None and array.ndim > 1:
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
    draft: Draft, root: gs.Node, shape: Shape, *, rows: bool
) -> tuple[list[gs.Node], gs.Tensor]:
    """The nodes between the root and the one view that all of them come from, producers first.

    Args:
        draft: Where what is known is asked.
        root: The view behind.
        shape: What it views.
        rows: Whether it keeps the last axis; each element has to be computed by itself otherwise.

    Raises:
        Refused: Something else has a part in them, or they do more than compute on rows.
    """
    nodes: dict[int, gs.Node] = {}
    entries: dict[int, gs.Tensor] = {}

    def visit(tensor: gs.Tensor) -> None:
        if tensor.is_empty() or isinstance(tensor, gs.Constant):
            return
        node = maker_of(tensor)
        if node is None or not draft.holds(node) or (node.domain or "") not in STANDARD:
            raise Refused(f"{tensor.name!r} is no view")
        if node.op in KEEP_ORDER or (node.op in REDUCTIONS and not _keeps(node)):
            entries[id(tensor)] = tensor
        elif id(node) not in nodes:
            if not rows and node.op not in UNARY:
                raise Refused("the view behind does not keep the last axis")
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
    if (draft.facts.of(entry).shape or (None,))[:-1] != shape[:-1]:
        raise Refused("the view in front has another shape than the one behind reads")
    inner = {*nodes, id(root)}
    for tensor in (entry, *(n.outputs[0] for n in nodes.values())):
        if draft.surgery.is_output(tensor) or any(id(n) not in inner for n in tensor.outputs):
            raise Refused("something else reads what lies between the views")
    return list(nodes.values()), entry


def _keeps(node: gs.Node) -> bool:
    """Whether a reduction keeps its axes, as lengths of 1."""
    return bool(attribute_of(node, "keepdims"))


def _check(draft: Draft, node: gs.Node, shape: Shape) -> None:
    """That a node computes each row of its result of the same row of its operands."""
    facts, rank = draft.facts, len(shape)
    out = facts.of(node.outputs[0]).shape
    if len(node.outputs) != 1 or out is None or len(out) != rank or out[:-1] != shape[:-1]:
        raise Refused(f"{node.op} has several results, or one of other rows")
    if node.op in _OVER_ROWS:
        if int(attribute_of(node, "axis")) % rank != rank - 1:
            raise Refused(f"{node.op} is not over rows")
        return
    if node.op == "MatMul":
        weight = node.inputs[1]
        if not isinstance(weight, gs.Constant) or facts.of(weight).rank != 2 or rank < 2:
            raise Refused("a product is not of rows and a constant matrix")
        return
    if node.op == "ReduceMean":
        axes = facts.array(node.inputs[1]) if len(node.inputs) > 1 else None
        if axes is None or axes.size != 1 or int(axes.reshape(())) % rank != rank - 1:
            raise Refused("a mean is not of rows")
        return
    if node.op not in ELEMENTWISE:
        raise Refused(f"{node.op} may mix rows")
    for tensor in node.inputs:
        array = facts.array(tensor)
        operand = facts.of(tensor).shape
        if array is not None and (array.ndim > rank or any(n != 1 for n in array.shape[:-1])):
            raise Refused("a constant is not the same for every row")
        if array is None and (operand is None or operand[:-1] != shape[:-1]):
            raise Refused("an operand has other rows")
