"""What stands behind a recurrent layer, in the form by which converters know the layer."""

from __future__ import annotations

import onnx_graphsurgeon as gs

from surgeon import dims
from surgeon.builders.bench import Bench
from surgeon.builders.cleaning import order_of
from surgeon.builders.views import view_between
from surgeon.facts.fact import same_dims
from surgeon.match import Match
from surgeon.rewrite import Draft, Refused

_STEPS, _DIRECTIONS, _BATCH, _FEATURES = range(4)  # the axes of what the layer gives


def directions_joined(draft: Draft, match: Match) -> gs.Tensor:
    """A view of what a recurrent layer gives, by way of [steps, batch, features of both]."""
    c, view = Bench(draft), match.root
    mover = match.nodes[1] if match.nodes[1].op == "Transpose" else None
    y = (mover or view).inputs[0]
    shape, wanted = draft.facts.of(y).shape, draft.facts.of(view.outputs[0]).shape
    if shape is None or wanted is None:
        raise Refused("a shape is not known")
    directions = shape[_DIRECTIONS]
    if not isinstance(directions, int) or directions not in (1, 2):
        raise Refused("how many directions it has is not known")
    order = list(range(4)) if mover is None else order_of(mover, 4)
    joined = _joined(order, shape, directions)
    sizes = shape[_STEPS], shape[_BATCH], dims.product([directions, shape[_FEATURES]])
    if directions == 1:
        known = c.squeeze(y, [_DIRECTIONS])
    else:
        if order == [0, 2, 1, 3] and same_dims(wanted, sizes):
            raise Refused("its directions are joined first")
        beside = c.permute(y, [0, 2, 1, 3])
        known = c.op("Reshape", beside, c.ints([0, 0, -1], "joined"))
    before = tuple(sizes[axis] for axis in joined)
    moved = c.permute(known, joined)
    if same_dims(before, wanted):
        return moved
    between = view_between(before, wanted)
    if between is None:
        raise Refused("no constant gives its shape")
    return between.draw(draft, moved)


def _joined(order: list[int], shape: tuple[dims.Dim, ...], directions: int) -> list[int]:
    """The order of steps, batch and joined features in which they are the view's elements.

    Raises:
        Refused: They are not: something stands between the directions and their features.
    """
    if directions == 2:
        seen = [axis for axis in order if shape[axis] != 1 or axis in (_DIRECTIONS, _FEATURES)]
        at = seen.index(_DIRECTIONS)
        if seen[at + 1 : at + 2] != [_FEATURES]:
            raise Refused("its directions are not in front of their features")
    places = {_STEPS: 0, _BATCH: 1, _FEATURES: 2}
    return [places[axis] for axis in order if axis != _DIRECTIONS]


def with_last_state(draft: Draft, match: Match) -> gs.Tensor:
    """A recurrent layer that names its last state too, which nobody reads."""
    node = match.root
    if len(node.outputs) != 1:
        raise Refused("it names more than its steps")
    y: gs.Tensor
    y, _ = draft.op(node.op, *node.inputs, outputs=["steps", "state"], **node.attrs)
    return y
