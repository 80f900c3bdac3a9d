"""Sliding windows and every other place by Gather, and products of many axes with a matrix."""

from __future__ import annotations

import numpy as np
import onnx_graphsurgeon as gs

from surgeon.builders.bench import Bench
from surgeon.builders.chains import bounds_of
from surgeon.builders.views import Shape, view_between
from surgeon.dims import product
from surgeon.match import Match
from surgeon.rewrite import Draft, Refused

_LARGEST = 1 << 16  # places of a constant index


def windows_at_once(draft: Draft, match: Match) -> gs.Tensor:
    """y = Reshape (Transpose (Gather (Gather (x)))) of windows over a plane, by one index.

    `i` holds the rows of each window, [in the window, of the windows], and `j` the columns.
    """
    facts, values = draft.facts, match.values
    shape, after = facts.of(values["x"]).shape, facts.of(match.root.outputs[0]).shape
    rows, columns = (facts.array(values[name]) for name in "ij")
    if rows is None or columns is None or rows.ndim != 2 or columns.ndim != 2:
        raise Refused("its places are computed, or are not those of windows")
    if shape is None or after is None:
        raise Refused("a shape is not known")
    height, width = shape[2:]
    if not isinstance(height, int) or not isinstance(width, int):
        raise Refused("the plane is of a size of run time")
    if rows.size * columns.size > _LARGEST:
        raise Refused("its index would be very large")
    places = (rows % height)[:, None, :, None] * width + (columns % width)[None, :, None, :]
    flat: Shape = (*shape[:2], height * width)
    into = view_between(shape, flat)
    out = view_between((*shape[:2], places.size), after)
    if into is None or out is None:
        raise Refused("no Reshape gives the shapes of one index")
    index = draft.constant(places.reshape(-1).astype(np.int64), "places")
    return out.draw(draft, draft.op("Gather", into.draw(draft, values["x"]), index, axis=2))


def product_of_few_axes(draft: Draft, match: Match) -> gs.Tensor:
    """y = MatMul of a value and a matrix, with all the axes in front as one."""
    a, b = match.root.inputs
    shapes = [draft.facts.of(t).shape for t in (a, b, match.root.outputs[0])]
    if any(shape is None for shape in shapes):
        raise Refused("a shape is not known")
    left, right, after = (shape or () for shape in shapes)
    if min(len(left), len(right)) != 2:
        raise Refused("none of its operands is a matrix")
    behind = len(right) == 2
    many, kept = (left, 1) if behind else (right, 2)
    view = view_between(many, (product(many[:-kept]), *many[-kept:]))
    out = view_between((product(after[:-kept]), *after[-kept:]), after)
    if view is None or out is None:
        raise Refused("no Reshape gives the shapes of fewer axes")
    if behind:
        return out.draw(draft, draft.op("MatMul", view.draw(draft, a), b))
    return out.draw(draft, draft.op("MatMul", a, view.draw(draft, b)))


def products_along_one_axis(draft: Draft, match: Match) -> gs.Tensor:
    """y = MatMul of two values of the same axes in front, with these as one.

    What is repeated along one of these axes would have to be written out.
    """
    a, b = match.root.inputs
    shapes = [draft.facts.of(t).shape for t in (a, b, match.root.outputs[0])]
    if any(shape is None for shape in shapes):
        raise Refused("a shape is not known")
    left, right, after = (shape or () for shape in shapes)
    if min(len(left), len(right)) < 3 or left[:-2] != right[:-2]:
        raise Refused("the axes in front are not the same in both")
    views = [view_between(shape, (product(shape[:-2]), *shape[-2:])) for shape in (left, right)]
    out = view_between((product(after[:-2]), *after[-2:]), after)
    if None in views or out is None:
        raise Refused("no Reshape gives the shapes of fewer axes")
    one, other = (view.draw(draft, t) for view, t in zip(views, (a, b), strict=True) if view)
    made: gs.Tensor = out.draw(draft, draft.op("MatMul", one, other))
    return made


def steps_as_gather(draft: Draft, match: Match, backward: bool = False) -> gs.Tensor:
    """A Slice with steps: of each such axis a Gather of its places, behind a Slice of the rest.

    Args:
        draft: Where the nodes go.
        match: The Slice.
        backward: Whether only steps below 0 are meant.
    """
    c, root = Bench(draft), match.root
    y: gs.Tensor = root.inputs[0]
    shape = c.shape(y)
    if shape is None:
        raise Refused("a shape is not known")
    cuts = bounds_of(draft, root, len(shape))
    plain = [cut for cut in cuts if cut[3] == 1 or (backward and cut[3] > 0)]
    if len(plain) == len(cuts):
        raise Refused("no step is below 0" if backward else "what it takes lies side by side")
    if plain:
        starts, ends, axes, steps = zip(*plain, strict=True)
        bounds = [c.ints(starts, "starts"), c.ints(ends, "ends"), c.ints(axes, "axes")]
        y = c.op("Slice", y, *bounds, *([] if set(steps) == {1} else [c.ints(steps, "steps")]))
    for start, end, axis, step in cuts:
        if (start, end, axis, step) in plain:
            continue
        length = shape[axis]
        if not isinstance(length, int):
            raise Refused("a length is known at run time only")
        places = range(length)[start:end:step]
        if not 0 < len(places) <= _LARGEST:
            raise Refused("it takes nothing, or very many places")
        y = c.op("Gather", y, c.ints(places, "places"), axis=axis)
    return y
