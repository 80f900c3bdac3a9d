"""Windows over one line of places, which TensorFlow puts into a plane of one row first.

Its Conv1D is Unsqueeze, Transpose to channels first, Conv with a kernel of 1 along the new axis,
and Squeeze; between two of them converters leave the Transposes out. The operators of ONNX take the
line itself; the Transposes that are left meet others.
PyTorch pools channels, for its local response normalisation, as the first of three axes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_graphsurgeon as gs

from surgeon.builders.cleaning import order_of
from surgeon.builders.own_constants import own_weight
from surgeon.builders.views import Shape, view_between
from surgeon.dims import product
from surgeon.facts.fact import same_dims
from surgeon.match import Match, is_one_of, producer_of
from surgeon.rewrite import Draft, Refused

_POOLS = frozenset({"MaxPool", "AveragePool"})
_BETWEEN = frozenset(
    "Add BatchNormalization Clip Elu Gelu HardSigmoid HardSwish LeakyRelu Mish Mul PRelu Pad Relu "
    "Selu Sigmoid Softplus Sub Tanh".split()
)
_MOST = 8  # operators between the views, and between two of them


def windows_of_line(draft: Draft, match: Match) -> gs.Tensor:
    """Squeeze of Convs and pools of an Unsqueeze or its Transpose, all of one more axis."""
    root = match.root
    chain: list[gs.Node] = []
    value: gs.Tensor = root.inputs[0]
    node = producer_of(value)
    while is_one_of(node, {"Conv", *_POOLS}):
        assert node is not None
        if len(chain) == _MOST or len(node.outputs) > 1:
            raise Refused("more than one value of an operator is read, or there are too many")
        if chain and (len(value.outputs) > 1 or draft.surgery.is_output(value)):
            raise Refused("a value between the views is read elsewhere too")
        chain.append(node)
        value = node.inputs[0]
        node = producer_of(value)
    turn = node if is_one_of(node, {"Transpose"}) else None
    inner = node if turn is None else producer_of(turn.inputs[0])
    if inner is not None and is_one_of(inner, {"Unsqueeze"}):
        if turn is None and not _behind_line(draft, inner.inputs[0]):
            raise Refused("neither a Transpose says that it is TensorFlow's, nor a line before it")
        order = [0, 1, 2, 3] if turn is None else order_of(turn, 4)
        new = _one_axis(draft, inner, 4)
        axis, line = order.index(new), inner.inputs[0]
        left = [place - (place > new) for place in order if place != new]
    elif node is not None and node.op == "Reshape" and all(n.op in _POOLS for n in chain):
        axis, line, left = _one_axis(draft, root, 4), node.inputs[0], [0, 1, 2]
        wide, narrow = (draft.facts.of(t).shape for t in (value, line))
        if wide is None or not same_dims((*wide[:axis], *wide[axis + 1 :]), narrow):
            raise Refused("the view before them does more than to add an axis")
    else:
        raise Refused("what the first of them reads is no Unsqueeze, and no Transpose of one")
    if draft.facts.of(line).rank != 3 or draft.facts.of(value).rank != 4:
        raise Refused("it is no line that becomes a plane")
    if axis < 2 or _one_axis(draft, root, 4) != axis:
        raise Refused("the axis that goes is not the one that came, or is none of places")
    y = line if left == [0, 1, 2] else draft.op("Transpose", line, perm=left)
    for each in reversed(chain):
        y = _along(draft, each, y, axis)
    return y


def _behind_line(draft: Draft, value: gs.Tensor) -> bool:
    """Whether a Conv or pool of a line computes it: the runtime has these, and one more is none.

    Where someone has put every line into a plane (`lines-as-planes`), none does.
    """
    for _ in range(_MOST):
        node = producer_of(value)
        if is_one_of(node, {"Conv", *_POOLS}):
            return draft.facts.of(value).rank == 3
        if not is_one_of(node, _BETWEEN):
            return False
        assert node is not None
        place = 1 if draft.facts.of(node.inputs[0]).concrete is not None else 0
        value = node.inputs[place]
    return False


def _one_axis(draft: Draft, node: gs.Node, rank: int) -> int:
    axes = draft.facts.array(node.inputs[1]) if len(node.inputs) > 1 else None
    if axes is None or axes.size != 1:
        raise Refused(f"the axis of the {node.op} is not one that is known")
    return int(axes.reshape(-1)[0]) % rank


def _along(draft: Draft, node: gs.Node, x: gs.Tensor, axis: int) -> gs.Tensor:
    """The operator without the axis, along which it must do nothing."""
    place = axis - 2
    attributes: dict[str, Any] = dict(node.attrs)
    kernel = attributes.get("kernel_shape")
    weight = None if node.op in _POOLS else own_weight(draft, node)
    size = (kernel or (0, 0))[place] if weight is None else weight.shape[axis]
    pads = attributes.get("pads")
    if size != 1 or (pads is not None and (pads[place] or pads[place + 2])):
        raise Refused(f"the {node.op} has a kernel or pads along the axis that goes")
    for name in ("kernel_shape", "strides", "dilations", "pads"):
        values = attributes.get(name)
        if values is not None:
            attributes[name] = [v for i, v in enumerate(values) if i % 2 != place]
    operands = list(node.inputs[1:])
    if weight is not None:
        operands[0] = draft.constant(np.squeeze(weight, axis), "weight")
    made: gs.Tensor = draft.op(node.op, x, *operands, **attributes)
    return made


def pool_of_plane(draft: Draft, match: Match) -> gs.Tensor:
    """A pool of three axes between views, of two where it does nothing along two side by side."""
    facts, values = draft.facts, match.values
    pool = match.root.inputs[0].inputs[0]
    shapes = [facts.of(values[name]).shape for name in ("q", "v", "p", "y")]
    if any(shape is None for shape in shapes) or len(pool.outputs) > 1:
        raise Refused("a shape is not known, or the places of the largest are read")
    attributes: dict[str, Any] = dict(pool.attrs)
    if attributes.get("auto_pad", "NOTSET") != "NOTSET":
        raise Refused("its pads are worked out by the runtime")
    idle = [_idles(attributes, place) for place in range(3)]
    if not (idle[1] and (idle[0] or idle[2])):
        raise Refused("it does something along one of any two axes side by side")
    joined = 0 if idle[0] else 1  # with the next one
    before, inside, behind, after = (shape or () for shape in shapes)
    into, out = (
        view_between(*pair)
        for pair in ((before, _joined(inside, joined + 2)), (_joined(behind, joined + 2), after))
    )
    if into is None or out is None:
        raise Refused("no Reshape gives the shapes that a plane would need")
    for name in ("kernel_shape", "strides", "dilations", "pads"):
        if (numbers := attributes.get(name)) is not None:
            attributes[name] = [n for i, n in enumerate(numbers) if i % 3 != joined]
    y: gs.Tensor = draft.op(pool.op, into.draw(draft, values["q"]), **attributes)
    return out.draw(draft, y)


def _idles(attributes: dict[str, Any], place: int) -> bool:
    """Whether a pool of three axes gives what it is given along one of them."""
    pads = list(attributes.get("pads") or [0] * 6)
    ones = [list(attributes.get(key) or [1] * 3)[place] for key in ("kernel_shape", "strides")]
    return ones == [1, 1] and pads[place] == pads[place + 3] == 0


def _joined(shape: Shape, axis: int) -> Shape:
    return (*shape[:axis], product(shape[axis : axis + 2]), *shape[axis + 2 :])
