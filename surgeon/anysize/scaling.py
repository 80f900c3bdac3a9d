"""What becomes of dynamic sizes where an operator names the sizes that it gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx_graphsurgeon as gs

from surgeon import dims
from surgeon.anysize.sizes import Sizes, told
from surgeon.dims import Dim
from surgeon.frozen import Frozen


def expanded(sizes: Sizes, node: gs.Node) -> None:
    """Expand: an axis that is there stays, and one that is made is as long as what it is for."""
    shape, target = sizes.shape(node.inputs[0]), sizes.numbers(node, 1) or []
    rank = max(len(shape), len(target))
    here: list[Dim] = [*[1] * (rank - len(shape)), *shape]
    wanted: list[Dim] = [*[1] * (rank - len(target)), *target]
    changed = False
    for axis, (dim, given) in enumerate(zip(here, wanted, strict=True)):
        if sizes.is_free(dim):
            if given in (1, dim):
                continue
            if not isinstance(given, int) or given != sizes.number(dim):
                raise Frozen(f"it makes {given} of {told(sizes, dim)}")
            wanted[axis], changed = 1, True
        elif isinstance(given, int) and given not in (1, dim):
            found = _made(sizes, given, axis, here, wanted)
            if found != given:
                wanted[axis], changed = found, True
    if changed:
        draft = sizes.draft(node)
        sizes.again(node, {1: sizes.vector(draft, wanted)}, draft)


def tiled(sizes: Sizes, node: gs.Node) -> None:
    """Tile: the same of how often."""
    shape, repeats = sizes.shape(node.inputs[0]), sizes.numbers(node, 1) or []
    wanted = list(repeats)
    for axis, (dim, given) in enumerate(zip(shape, repeats, strict=True)):
        if isinstance(given, int) and given != 1:
            if sizes.is_free(dim) and sizes.occurs(given):
                raise Frozen(f"it repeats {told(sizes, dim)} {given} times")
            if dim == 1:
                wanted[axis] = _made(sizes, given, axis, shape, repeats)
            elif sizes.occurs(given) or sizes.occurs(given * sizes.number(dim)):
                raise Frozen(f"{given}, how often it repeats, may depend on the sizes")
    if wanted != repeats:
        draft = sizes.draft(node)
        sizes.again(node, {1: sizes.vector(draft, wanted)}, draft)


def _made(sizes: Sizes, number: int, axis: int, here: Sequence[Dim], given: Sequence[Any]) -> Dim:
    """The length that an axis of one is repeated to.

    It depends on the sizes where the last axes are a plane of these, in their order, and channels
    stand before it.

    Args:
        sizes: The graph.
        number: The length at the file's sizes.
        axis: Which axis.
        here: The lengths that there are.
        given: What they become, or how often each is repeated.

    Raises:
        Frozen: It may depend on the sizes, or not.
    """
    rank = len(here)
    found = _in_plane(sizes, number, axis, rank)
    plane = rank == len(sizes.sizes) + 2 and all(
        sizes.is_own(here[at], at, rank)
        or sizes.is_own(given[at], at, rank)
        or (here[at] == 1 and _in_plane(sizes, given[at], at, rank) is not None)
        for at in range(rank - len(sizes.sizes), rank)
    )
    if found is not None and plane:
        return found
    if sizes.occurs(number):
        raise Frozen(f"{number}, which it makes of one, may depend on the sizes")
    return number


def _in_plane(sizes: Sizes, number: Any, axis: int, rank: int) -> Dim | None:
    return sizes.explained(number, axis, rank) if isinstance(number, int) else None


def resized(sizes: Sizes, node: gs.Node) -> None:
    """Resize and Upsample: by factors, or to the sizes of another value."""
    shape = sizes.shape(node.inputs[0])
    upsample = node.op == "Upsample" or len(node.inputs) == 2
    given = None if upsample else sizes.numbers(node, 3)
    axes = [axis % len(shape) for axis in node.attrs.get("axes") or range(len(shape))]
    if node.attrs.get("keep_aspect_ratio_policy", "stretch") != "stretch":
        raise Frozen("it keeps proportions")
    if not given:
        _by_factors(sizes, node, shape, axes, 1 if upsample else 2)
        return
    wanted: list[Dim] = []
    for axis, number in zip(axes, given, strict=True):
        dim = shape[axis]
        if not isinstance(number, int) or number == dim:
            wanted.append(number)
        else:
            wanted.append(_to(sizes, dim, number, axis, shape, dict(zip(axes, given, strict=True))))
    if wanted == given:
        return
    draft = sizes.draft(node)
    factors = [
        dims.exact_quotient(dim, shape[axis]) for axis, dim in zip(axes, wanted, strict=True)
    ]
    if sizes.facts.opset >= 11 and all(isinstance(each, int) and each for each in factors):
        scales = draft.constant(np.array(factors, np.float32), "scales")
        region = node.inputs[1] if node.inputs[1].name else None
        new = draft.op("Resize", node.inputs[0], region, scales, **node.attrs)
        sizes.replace(node, draft, new)
        return
    sizes.again(node, {3: sizes.vector(draft, wanted)}, draft)


def _to(
    sizes: Sizes,
    dim: Dim,
    number: int,
    axis: int,
    shape: Sequence[Dim],
    given: Mapping[int, Any],
) -> Dim:
    """The length that an axis is brought to."""
    if not sizes.is_free(dim):
        if dim == 1:
            wanted = [given.get(at, length) for at, length in enumerate(shape)]
            return _made(sizes, number, axis, shape, wanted)
        if sizes.occurs(number):
            raise Frozen(f"{number}, which it makes of {dim}, may depend on the sizes")
        return number
    length = sizes.number(dim)
    if number == length:
        return dim
    if number < length:
        raise Frozen(f"it makes {number} of {told(sizes, dim)}: a part of it, or of any")
    found = sizes.explained(number, axis, len(shape))
    if found is not None and dims.symbols(found) == dims.symbols(dim):
        return found
    if number % length == 0 and found is None:
        return dim * (number // length)
    raise Frozen(f"it makes {number} of {told(sizes, dim)}, which no value has")


def _by_factors(
    sizes: Sizes, node: gs.Node, shape: Sequence[Dim], axes: Sequence[int], place: int
) -> None:
    scales: Sequence[Any] = sizes.numbers(node, place) or []
    if len(scales) != len(axes):
        raise Frozen("its factors are not known")
    for axis, scale in zip(axes, scales, strict=True):
        dim, factor = shape[axis], float(scale)
        if factor == 1:
            continue
        if not sizes.is_free(dim):
            if isinstance(dim, int) and sizes.occurs(int(dim * factor)) and dim == 1:
                raise Frozen(f"it makes {int(factor)} of one, which may depend on the sizes")
        elif not factor.is_integer():
            part = 1 / factor
            if not part.is_integer():
                raise Frozen(f"its factor {factor:g} may depend on {told(sizes, dim)}")
            sizes.in_steps(dim, int(part))
