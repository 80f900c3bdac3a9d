"""What becomes of dynamic sizes where a value's shape changes, and its elements stay."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_graphsurgeon as gs

from surgeon import dims
from surgeon.anysize.freed import Clash
from surgeon.anysize.sizes import Sizes, factors, told
from surgeon.dims import Dim
from surgeon.facts.values import is_to_the_end
from surgeon.frozen import Frozen

_FEW = 8  # elements that a Slice may leave out at an end, whatever the size
_ROUNDED = 2  # what twice a half may differ by, in either direction
_LAST = 2**31 - 1


def reshaped(sizes: Sizes, node: gs.Node) -> None:
    """Reshape: the elements stay in their order, so its axes are those of before, split or joined.

    A length that depends on the sizes stays whole; only numbers are split.
    """
    before = sizes.shape(node.inputs[0])
    target = sizes.numbers(node, 1)
    assert target is not None, "it has two operands"
    if node.attrs.get("allowzero") and 0 in target:
        raise Frozen("it is empty")
    numbers = _numbers(sizes, before, target)
    wanted = _regrouped(sizes, before, numbers)
    for given, dim in zip(target, wanted, strict=True):
        if not isinstance(given, int) and given != dim:
            raise Frozen(f"it is to be {given} long, and there is {dim}")
    if all(given in (0, -1) or given == dim for given, dim in zip(target, wanted, strict=True)):
        copies = all(
            given != 0 or before[axis] == wanted[axis] for axis, given in enumerate(target)
        )
        if copies and (-1 not in target or dims.infers(before, wanted, target.index(-1))):
            return
    draft = sizes.draft(node)
    constant = dims.constant_target(before, wanted)
    if constant is not None:
        operand = draft.constant(constant, "shape")
    else:
        operand = sizes.vector(draft, _with_rest(sizes, before, wanted))
    new = draft.op("Reshape", node.inputs[0], operand)
    sizes.replace(node, draft, new)


def _numbers(sizes: Sizes, before: Sequence[Dim], target: Sequence[Dim]) -> list[int]:
    """The lengths that a Reshape gives at the sizes of the file."""
    out = [
        sizes.number(before[axis]) if given == 0 else sizes.number(given)
        for axis, given in enumerate(target)
    ]
    if -1 in out:
        place, whole = out.index(-1), sizes.number(dims.product(before))
        rest = 1
        for at, number in enumerate(out):
            rest *= number if at != place else 1
        if not rest or whole % rest:
            raise Frozen("its sizes do not go into what it reads")
        out[place] = whole // rest
    return out


def _regrouped(sizes: Sizes, before: Sequence[Dim], numbers: Sequence[int]) -> list[Dim]:
    """The lengths of these numbers, of those of before in their order."""
    left = [factor for dim in before for factor in factors(sizes, dim) if factor != 1]
    out: list[Dim] = []
    for number in numbers:
        parts: list[Dim] = []
        rest = number
        while rest > 1:
            if not left:
                raise Frozen("its sizes do not go into what it reads")
            first, length = left[0], sizes.number(left[0])
            if length == 1:
                raise Frozen(f"{told(sizes, first)} is 1 at the size of the file")
            if rest % length == 0:
                parts.append(left.pop(0))
                rest //= length
            elif (
                isinstance(first, int)
                and first % rest == 0
                and all(isinstance(part, int) for part in parts)
            ):
                parts.append(rest)
                left[0] = first // rest
                rest = 1
            else:
                raise Frozen(f"{number} of its sizes is a part of {told(sizes, first)}")
        product = dims.product(parts)
        if sizes.is_free(product):
            sizes.remember(product, parts)
        out.append(product)
    if left:
        raise Frozen("its sizes do not go into what it reads")
    return out


def _with_rest(sizes: Sizes, before: Sequence[Dim], wanted: Sequence[Dim]) -> list[Dim]:
    """The same with -1 for the length that costs most to ask for, where that is found."""
    costly = [axis for axis, dim in enumerate(wanted) if not isinstance(dim, int)]
    costly.sort(key=lambda axis: wanted[axis] in sizes.pool)
    for axis in costly:
        if dims.infers(before, wanted, axis):
            return [-1 if place == axis else dim for place, dim in enumerate(wanted)]
    return list(wanted)


def flattened(sizes: Sizes, node: gs.Node) -> None:
    """Flatten: what is joined is remembered."""
    shape = sizes.shape(node.inputs[0])
    axis = node.attrs.get("axis", 1)
    axis = axis + len(shape) if axis < 0 else axis
    for part in (shape[:axis], shape[axis:]):
        product = dims.product(part)
        if sizes.is_free(product):
            sizes.remember(product, [each for dim in part for each in factors(sizes, dim)])


def squeezed(sizes: Sizes, node: gs.Node) -> None:
    """Squeeze: of axes that are named, or of those that are one long at any size."""
    if len(node.inputs) > 1 and node.inputs[1].name:
        shape = sizes.shape(node.inputs[0])
        if any(sizes.is_free(shape[axis % len(shape)]) for axis in sizes.numbers(node, 1) or ()):
            raise Frozen("it takes an axis away that is longer at other sizes")
        return
    shape = sizes.shape(node.inputs[0])
    if any(not isinstance(dim, int) and sizes.number(dim) == 1 for dim in shape):
        raise Frozen("an axis of it is 1 at the size of the file alone")
    draft = sizes.draft(node)
    axes = [axis for axis, dim in enumerate(shape) if dim == 1]
    taken = [draft.constant(axes, "axes")] if axes else []  # of an empty list no two agree
    sizes.replace(node, draft, draft.op("Squeeze" if axes else "Identity", node.inputs[0], *taken))


def joined(sizes: Sizes, node: gs.Node) -> None:
    """Concat: other axes are as long in all, and what is joined is remembered."""
    shapes = [sizes.shape(tensor) for tensor in node.inputs]
    rank = len(shapes[0])
    along = node.attrs["axis"] % rank
    for axis in range(rank):
        if axis != along:
            _alike(sizes, node, [shape[axis] for shape in shapes])
    parts = [shape[along] for shape in shapes]
    if not any(map(sizes.is_free, parts)):
        return
    for tensor, dim in zip(node.inputs, parts, strict=True):
        if isinstance(dim, int) and dim > 1 and sizes.occurs(dim):
            raise Frozen(f"{sizes.title(tensor)} has {dim} along what is joined")
    sizes.join(parts)


def _alike(sizes: Sizes, node: gs.Node, lengths: Sequence[Dim]) -> None:
    """See that lengths are one."""
    if len(set(lengths)) > 1 and any(map(sizes.is_free, lengths)):
        free = next(filter(sizes.is_free, lengths))
        place = next(at for at, dim in enumerate(lengths) if dim != free)
        raise Clash(
            f"{sizes.title(node.inputs[place])} has {lengths[place]} beside {told(sizes, free)}"
        )


def split(sizes: Sizes, node: gs.Node) -> None:
    """Split of other axes."""
    shape = sizes.shape(node.inputs[0])
    if sizes.is_free(shape[node.attrs.get("axis", 0) % len(shape)]):
        raise Frozen("its parts may depend on the sizes")


def sliced(sizes: Sizes, node: gs.Node) -> None:
    """Slice: of an axis that depends on the sizes all but a few elements, or few."""
    if not sizes.free_axes(node.inputs[0]):
        return
    shape = sizes.shape(node.inputs[0])
    starts, ends = sizes.numbers(node, 1) or [], sizes.numbers(node, 2) or []
    axes = sizes.numbers(node, 3) or list(range(len(starts)))
    steps = sizes.numbers(node, 4) or [1] * len(starts)
    changed = False
    for place, axis in enumerate(axes):
        dim = shape[axis % len(shape)]
        if not sizes.is_free(dim):
            continue
        if not isinstance(starts[place], int) or not isinstance(ends[place], int):
            continue  # it asks for them
        if steps[place] < 0:
            raise Frozen("it goes backwards")
        if steps[place] > 1:
            sizes.in_steps(dim, steps[place])
        length = sizes.number(dim)
        starts[place], moved = _bound(sizes, dim, starts[place])
        changed = changed or moved
        if is_to_the_end(ends[place], 1) or ends[place] >= _LAST:
            continue
        if ends[place] >= length:
            if ends[place] > length:
                raise Frozen(
                    f"it ends at {ends[place]} of {length}, which may be enough of another"
                )
            ends[place], changed = _LAST, True
        else:
            ends[place], moved = _bound(sizes, dim, ends[place])
            changed = changed or moved
    if changed:
        draft = sizes.draft(node)
        bounds = {1: draft.constant(starts, "starts"), 2: draft.constant(ends, "ends")}
        sizes.again(node, bounds, draft)


def _bound(sizes: Sizes, dim: Dim, bound: int) -> tuple[int, bool]:
    """A bound that lies so near an end that it is told from there; and whether it was not.

    Raises:
        Frozen: It lies in the midst, or is some other length.
    """
    length = sizes.number(dim)
    if abs(bound) <= _FEW and 2 * abs(bound) < length:
        return bound, False
    left = length - bound
    others = {each for each in sizes.pool if sizes.number(each) == bound} - {dim - left}
    if 0 < left <= _FEW and bound > 4 * _FEW and not others:
        return -left, True
    raise Frozen(f"{bound} of its bounds may depend on {told(sizes, dim)}")


def gathered(sizes: Sizes, node: gs.Node) -> None:
    """Gather: of such an axis the first or last element, or what is found at run time."""
    data, indices = node.inputs[:2]
    shape = sizes.shape(data)
    if not sizes.is_free(shape[node.attrs.get("axis", 0) % len(shape)]):
        by_places(sizes, indices)
        return
    known = sizes.array(indices)
    if known is not None and any(index not in (0, -1) for index in known.ravel().tolist()):
        raise Frozen(f"{sizes.title(indices)} picks elements that may depend on the sizes")


def by_places(sizes: Sizes, places: gs.Tensor) -> None:
    """See that what is as long as a number is not picked by places in planes."""
    if places.name in sizes.counts:
        raise Frozen(f"{sizes.title(places)} is a place in planes, and there are as many as before")


def padded(sizes: Sizes, node: gs.Node) -> None:
    """Pad: not up to a length."""
    shape = sizes.shape(node.inputs[0])
    pads = sizes.numbers(node, 1) or list(node.attrs.get("pads") or ())
    axes = [axis % len(shape) for axis in sizes.numbers(node, 3) or range(len(shape))]
    for place, axis in enumerate(axes):
        begin, end = pads[place], pads[place + len(axes)]
        if not sizes.is_free(shape[axis]):
            continue
        if not isinstance(begin, int) or not isinstance(end, int):
            continue  # it asks for them
        if end - begin > _FEW:
            raise Frozen(f"it puts {end} behind {told(sizes, shape[axis])}, as up to a length")
        for pad in (abs(begin), abs(end)):
            half = abs(2 * pad - sizes.number(shape[axis])) <= _ROUNDED
            if pad > 1 and (half or sizes.is_near(pad, shape[axis])):
                raise Frozen(f"it puts {pad} beside {told(sizes, shape[axis])}, a part of that")
