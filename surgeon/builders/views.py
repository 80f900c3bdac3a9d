"""Views whose form does not depend on run-time sizes: Reshapes with constant targets above all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import onnx_graphsurgeon as gs

from surgeon import dims
from surgeon.builders.cleaning import order_of
from surgeon.dims import Dim, constant_target
from surgeon.facts import Facts
from surgeon.facts.fact import Array, same_dims
from surgeon.links import maker_of
from surgeon.match import Match, attribute_of
from surgeon.rewrite import Draft, Refused
from surgeon.standard import STANDARD

Shape = tuple[Dim, ...]
KEEP_ORDER = frozenset({"Reshape", "Squeeze", "Unsqueeze", "Flatten", "Identity"})
_LARGEST_CONSTANT = 1 << 16  # elements of a constant that is repeated to stand before a view


class View(NamedTuple):
    """The operator that gives a value other dims without moving an element, and its numbers."""

    op: str
    numbers: Sequence[int]  # a Reshape's target, axes of Squeeze and Unsqueeze, Flatten's one axis

    def draw(self, draft: Draft, x: gs.Tensor) -> gs.Tensor:
        """The value in these dims."""
        if self.op == "Flatten":
            return draft.op("Flatten", x, axis=self.numbers[0])
        numbers = np.array(self.numbers, np.int64)  # none at all, where a single number is left
        if self.op == "Reshape":
            return draft.op("Reshape", x, draft.constant(numbers, "shape"), allowzero=0)
        return draft.op(self.op, x, draft.constant(numbers, "axes"))


def view_between(before: Shape, wanted: Shape) -> View | None:
    """The view that turns one shape into another, whatever the sizes at run time, if there is one.

    A Reshape with a constant target says no more than one size that moves. Unsqueeze, Squeeze and
    Flatten move several, as lengths of 1 come and go or axes join.
    """
    if (target := constant_target(before, wanted)) is not None:
        return View("Reshape", target)
    if (axes := _ones_put_in(before, wanted)) is not None:
        return View("Unsqueeze", axes)
    if (axes := _ones_put_in(wanted, before)) is not None:
        return View("Squeeze", axes)
    if len(wanted) == 2:
        for axis in range(1, len(before)):
            joined = dims.product(before[:axis]), dims.product(before[axis:])
            if same_dims(joined, wanted):
                return View("Flatten", [axis])
    return None


def _ones_put_in(short: Shape, long: Shape) -> list[int] | None:
    """The axes of `long` that have length 1 and are not of `short`, which has all the others."""
    axes: list[int] = []
    rest = list(reversed(short))
    for axis, dim in enumerate(long):
        if rest and dims.equal(rest[-1], dim) is True:
            rest.pop()
        elif dim == 1:
            axes.append(axis)
        else:
            return None
    return None if rest else axes


def keeps_order(node: gs.Node, facts: Facts) -> bool:
    """Whether a node gives the elements of its first operand in their order, in other dims."""
    if (node.domain or "") not in STANDARD:
        return False
    if node.op != "Transpose":
        return node.op in KEEP_ORDER
    shape = facts.of(node.inputs[0]).shape
    if shape is None:
        return False
    perm = order_of(node, len(shape))
    moved = [axis for axis in perm if shape[axis] != 1]
    return moved == sorted(moved)


def source_of(tensor: gs.Tensor, facts: Facts, wanted: Shape) -> tuple[gs.Tensor, View] | None:
    """The value furthest behind order-keeping views that one view turns into `wanted`, and it."""
    found: tuple[gs.Tensor, View] | None = None
    while True:
        shape = facts.of(tensor).shape
        if shape is not None and (between := view_between(shape, wanted)) is not None:
            found = (tensor, between)
        node = maker_of(tensor)
        if node is None or not keeps_order(node, facts):
            return found
        tensor = node.inputs[0]


def as_shape(draft: Draft, tensor: gs.Tensor, wanted: Shape, why: str = "") -> gs.Tensor:
    """The value in another shape: itself, one behind it, or a view of that.

    Raises:
        Refused: No view gives the shape (two dimensions are known at run time only).
    """
    found = source_of(tensor, draft.facts, wanted)
    if found is None:
        text = ", ".join(map(str, wanted))
        raise Refused(f"no constant Reshape gives [{text}]{why}; fix a dimension with `--shape`")
    source, between = found
    if same_dims(draft.facts.of(source).shape, wanted):
        return source
    return between.draw(draft, source)


def view(draft: Draft, match: Match) -> gs.Tensor:
    """`y` in its proven shape, straight from the furthest value behind it of the same order."""
    root, facts = match.root, draft.facts
    shape = facts.of(root.outputs[0]).shape
    if shape is None:
        raise Refused("its shape is not known")
    x = root.inputs[0]
    settled = root.op != "Reshape" or facts.array(root.inputs[1]) is not None
    several = root.op == "Unsqueeze" and len(shape) > 1 + (facts.of(x).rank or len(shape))
    if settled and not several and not (x.inputs and keeps_order(x.inputs[0], facts)):
        if same_dims(facts.of(x).shape, shape):
            return x
        raise Refused("it has this form already")
    found = source_of(x, facts, shape)
    if found is None:
        raise Refused(f"no constant Reshape gives [{', '.join(map(str, shape))}]")
    source, between = found
    if same_dims(facts.of(source).shape, shape):
        return source
    if source is x and settled and not (several and between.op == "Reshape"):
        raise Refused("it has this form already")  # but several axes at once, which runtimes refuse
    return between.draw(draft, source)


def view_transpose(draft: Draft, match: Match) -> gs.Tensor:
    """A Transpose that moves only dimensions of size 1 keeps the order of elements: a view."""
    node = match.root
    shape, out = draft.facts.of(node.inputs[0]).shape, draft.facts.of(node.outputs[0]).shape
    if shape is None or out is None:
        raise Refused("its operand's shape is not known")
    if not keeps_order(node, draft.facts):
        raise Refused("it changes the order of elements")
    return as_shape(draft, node.inputs[0], out)


def squeezed_and_back(draft: Draft, match: Match) -> gs.Tensor:
    """What is in front of a Squeeze whose axes an Unsqueeze puts in again.

    Raises:
        Refused: An axis may have another length (half of the batch, which a trace froze), and
            there the Squeeze stops what would compute something else.
    """
    inner = match.nodes[1]
    x, axes = inner.inputs[0], draft.facts.array(inner.inputs[1])
    shape = draft.facts.of(x).shape
    places = [] if axes is None else axes.reshape(-1).tolist()
    for dim in [] if shape is None else [shape[axis] for axis in places]:
        if dims.named(dim) is None and dims.equal(dim, 1) is not True:
            raise Refused(f"the axis is {dim} long, which may be more than 1")
    same: gs.Tensor = draft.op("Identity", x)
    return same


def unsqueeze_chain(draft: Draft, match: Match) -> gs.Tensor:
    """Axes put in and then others, all at once, whatever the rank: all from one end."""
    outer, inner = match.root, match.nodes[1]
    second, first = (draft.facts.array(node.inputs[1]) for node in (outer, inner))
    if first is None or second is None:
        raise Refused("its axes are computed")
    both = np.concatenate([first.reshape(-1), second.reshape(-1)])
    if not both.size:
        raise Refused("it puts in no axis")
    behind = bool((both < 0).all())
    if not behind and (both < 0).any():
        raise Refused("its axes are counted from both ends")
    last = {-1 - axis if behind else axis for axis in second.reshape(-1).tolist()}
    free = [axis for axis in range(len(both) + int(np.abs(both).max())) if axis not in last]
    moved = [free[-1 - axis if behind else axis] for axis in first.reshape(-1).tolist()]
    x, y = inner.inputs[0], outer.outputs[0]
    before, wanted = draft.facts.of(x).shape, draft.facts.of(y).shape
    if before is not None and wanted is not None and (target := constant_target(before, wanted)):
        return View("Reshape", target).draw(draft, x)  # runtimes refuse several axes at once
    axes = sorted(-1 - axis if behind else axis for axis in (*last, *moved))
    return draft.op("Unsqueeze", x, draft.constant(axes, "axes"))


def joined_before_transpose(draft: Draft, match: Match) -> gs.Tensor:
    """Axes that a Reshape joins behind a Transpose: joined in front, where they stand together.

    So no size is asked for: of [N, C, H, W] the tokens [N, H * W, C] are [N, C, -1], transposed.
    """
    root, turn = match.root, match.nodes[1]
    facts, x = draft.facts, turn.inputs[0]
    before, inside = facts.of(x).shape, facts.of(turn.outputs[0]).shape
    out = facts.of(root.outputs[0]).shape
    if before is None or inside is None or out is None:
        raise Refused("a shape is not known")
    if facts.array(root.inputs[1]) is not None:
        raise Refused("its target is constant")
    perm = order_of(turn, len(before))
    groups = [[perm[place] for place in group] for group in _joining(inside, out)]
    if any(group != list(range(group[0], group[0] + len(group))) for group in groups):
        raise Refused("what it joins does not stand together in front of the Transpose")
    order = sorted(groups)
    merged = tuple(dims.product(before[axis] for axis in group) for group in order)
    joined = as_shape(draft, x, merged)
    y: gs.Tensor = draft.op("Transpose", joined, perm=[order.index(group) for group in groups])
    return y


def _joining(inside: Shape, out: Shape) -> list[list[int]]:
    """The axes of one shape that each axis of another joins, all in their order.

    Raises:
        Refused: It does more than join them.
    """
    groups: list[list[int]] = []
    place = 0
    for size in out:
        group = [place]
        place += 1
        while place < len(inside) and dims.equal(_all(inside, group), size) is not True:
            group.append(place)
            place += 1
        if place > len(inside) or dims.equal(_all(inside, group), size) is not True:
            raise Refused("it does more than join axes")
        groups.append(group)
    if place != len(inside):
        raise Refused("it does more than join axes")
    return groups


def _all(shape: Shape, axes: Sequence[int]) -> Dim:
    return dims.product(shape[axis] for axis in axes)


def sink_view(draft: Draft, match: Match) -> gs.Tensor:
    """A view in front of an operation goes behind it, where it can meet others.

    For elementwise operators with one operand or with a constant, for a Softmax over a last axis
    that the view keeps, and for a MatMul with [1, ..., K, N] constants.
    """
    node, facts = match.root, draft.facts
    behind = match.values["r"]
    source = match.values["x"]
    assert behind is not None
    assert source is not None
    before, after = facts.of(source).shape, facts.of(node.outputs[0]).shape
    inside = facts.of(behind).shape
    if before is None or after is None or inside is None:
        raise Refused("a shape is not known")
    others: dict[int, Any] = {}
    result: Shape = before
    if node.op == "MatMul":
        weight = node.inputs[1]
        array = facts.array(weight)
        if array is None or node.inputs[0] is not behind:
            raise Refused("its second operand is not constant")
        if any(n != 1 for n in array.shape[:-2]) or not before or not inside:
            raise Refused("its constant has more than two dimensions")
        if dims.equal(before[-1], inside[-1]) is not True or len(before) < 2:
            raise Refused("the view does not keep the last dimension")
        if len(before) == array.ndim == 2 and len(inside) == 2:
            raise Refused("it has this form already")
        others[1] = draft.constant(array.reshape(array.shape[-2:]), "weight")
        result = (*before[:-1], array.shape[-1])
    elif node.op == "Softmax":
        axis = attribute_of(node, "axis")
        if axis % len(inside) != len(inside) - 1 or not before:
            raise Refused("it is not over the last axis")
        if dims.equal(before[-1], inside[-1]) is not True:
            raise Refused("the view does not keep the last dimension")
    else:
        for index, tensor in enumerate(node.inputs):
            if tensor is behind:
                continue
            array = facts.array(tensor)
            if array is None:
                raise Refused("its other operand is not constant")
            others[index] = draft.constant(_before_view(array, before, inside), "constant")
    operands = [source if t is behind else others.get(i, t) for i, t in enumerate(node.inputs)]
    attributes = dict(node.attrs)
    if node.op == "Softmax":
        attributes["axis"] = -1
    moved = draft.op(node.op, *operands, **attributes)
    return _after(draft, moved, result, after)


def _before_view(array: Array, before: Shape, inside: Shape) -> Array:
    """A constant operand as it stands in front of the view: a number, or a vector that repeats.

    Raises:
        Refused: The view mixes the leading dimension with others, or the constant would be large.
    """
    if array.size == 1:
        return array.reshape(())
    static = [d for d in (*inside[1:], *before[1:]) if isinstance(d, int)]
    if len(static) != len(inside) + len(before) - 2 or array.ndim >= len(inside):
        raise Refused(
            "its constant is larger than one number, and the view moves dynamic dimensions"
        )
    if not before or dims.equal(before[0], inside[0]) is not True:
        raise Refused(
            "its constant is larger than one number, and the view moves the first dimension"
        )
    rest = [d for d in inside[1:] if isinstance(d, int)]
    if any(n not in (1, d) for n, d in zip(array.shape[::-1], rest[::-1], strict=False)):
        raise Refused("its constant makes the value larger")
    if int(np.prod(rest, dtype=np.int64)) > _LARGEST_CONSTANT:
        raise Refused("its constant would become too large")
    spread = np.broadcast_to(array, rest)
    return np.ascontiguousarray(spread).reshape([d for d in before[1:] if isinstance(d, int)])


def _after(draft: Draft, moved: gs.Tensor, shape: Shape, after: Shape) -> gs.Tensor:
    between = view_between(shape, after)
    if between is None:
        raise Refused("no constant Reshape gives its shape")
    return between.draw(draft, moved)


def constant_slice(draft: Draft, match: Match) -> gs.Tensor:
    """A Slice whose computed bounds are provable: numbers, counted from the end where need be."""
    root, facts = match.root, draft.facts
    shape = facts.of(root.inputs[0]).shape
    if shape is None:
        raise Refused("its operand's shape is not known")
    if all(t.is_empty() or isinstance(t, gs.Constant) for t in root.inputs[1:]):
        raise Refused("it has this form already")
    values = [None if t.is_empty() else facts.of(t).value for t in root.inputs[1:]]
    lists = [None if v is None else v.reshape(-1).tolist() for v in values]
    starts, ends, axes, steps = (lists + [None] * 4)[:4]
    given = [not t.is_empty() for t in root.inputs[1:]] + [False] * 4
    if (
        starts is None
        or ends is None
        or (given[2] and axes is None)
        or (given[3] and steps is None)
    ):
        raise Refused("its bounds are computed at run time and not provable")
    axes = axes or list(range(len(starts)))
    steps = steps or [1] * len(starts)
    if any(not isinstance(step, int) or step < 1 for step in steps):
        raise Refused("a step is not a positive number")
    if any(not isinstance(axis, int) or not -len(shape) <= axis < len(shape) for axis in axes):
        raise Refused("one of its axes is known at run time only, or outside its rank")
    at = [
        (_bound(s, shape[a]), _bound(e, shape[a]))
        for s, e, a in zip(starts, ends, axes, strict=True)
    ]
    return draft.op(
        "Slice",
        root.inputs[0],
        draft.constant([start for start, _ in at], "starts"),
        draft.constant([end for _, end in at], "ends"),
        draft.constant(axes, "axes"),
        draft.constant(steps, "steps"),
    )


def _bound(index: Dim, size: Dim) -> int:
    """A bound of a Slice as a constant: itself, or its distance from the end."""
    if isinstance(index, int):
        return index
    past = index - size
    # Below zero an index counts from the end: `size - 3` of two elements is -1, the last but one.
    if isinstance(past, int) and past < 0 and (past >= -2 or dims.not_negative(index)):
        return past
    if dims.not_negative(past):
        return int(np.iinfo(np.int64).max)
    raise Refused(f"its bound {index} of {size} elements is known at run time only")


def squeeze_where_defined(draft: Draft, match: Match) -> gs.Tensor:
    """A Squeeze without axes, where each dynamic dimension has one size in the model as it came.

    At that size the dimension is not 1 and stays; so it stays at every other: the rank is known.
    """
    facts, x = draft.facts, match.root.inputs[0]
    shape = facts.of(x).shape
    if shape is None:
        raise Refused("its operand's shape is not known")
    if facts.of(match.root.outputs[0]).rank is not None:
        raise Refused("its rank is known")
    axes: list[int] = []
    for axis, dim in enumerate(shape):
        size = dims.substitute(dim, facts.defined_at)
        if not isinstance(size, int) or (size == 1 and not isinstance(dim, int)):
            raise Refused(f"whether axis {axis}, {dim}, is 1 is known at run time only")
        if size == 1:
            axes.append(axis)
    return draft.op("Squeeze", x, draft.constant(axes, "axes")) if axes else x
