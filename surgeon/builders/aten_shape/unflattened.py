"""Indices and masks of a write in the axes that they had before an exporter viewed them."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_graphsurgeon as gs

from surgeon import dims
from surgeon.builders.aten_shape.call import TYPE, Call
from surgeon.builders.aten_shape.indices import MASKS
from surgeon.facts.fact import same_dims
from surgeon.links import maker_of
from surgeon.rewrite import Refused

_FLATTENING = ("Reshape", "Flatten", "reshape", "view", "flatten")
_FLATTENED = (1, 9)  # the release from which on indices are no longer flattened


def mask_of_axes(c: Call, x: gs.Tensor, mask: gs.Tensor, values: gs.Tensor) -> gs.Tensor:
    """The mask of several axes of `x` behind a flattened one.

    PyTorch 1.5 to 1.8 flatten the indices of a write, masks too, but not what is written to. A mask
    of one axis must be as long as that axis, so that a flattened one says nothing else, but where
    its further axes are 1 each; there the rank of the values tells.
    """
    made = maker_of(mask)
    if made is None or made.op not in _FLATTENING or c.facts.of(mask).rank != 1:
        return mask
    whole = made.inputs[0]
    shape, sizes, lines = c.shape(whole), c.shape(x), c.shape(values)
    if c.dtype(mask) not in MASKS or shape is None or sizes is None or lines is None:
        return mask
    fits = len(lines) <= len(sizes) - len(shape) + 1 and same_dims(shape, sizes[: len(shape)])
    return c.cast(whole, TYPE.BOOL) if len(shape) > 1 and fits else mask


def without_ones(c: Call, x: gs.Tensor, given: list[gs.Tensor | None], at: int) -> gs.Tensor | None:
    """The mask of one axis that others were added to, as if it were a line of places.

    PyTorch 1.9 to 2.15 write `x[mask, 1] = v` so. Beside a slice, `x[mask, 1:] = v`, these are the
    axes of the columns, and the places are a column themselves.
    """
    mask = given[at]
    made = None if mask is None else maker_of(mask)
    if mask is None or made is None or made.op not in _FLATTENING or c.dtype(mask) not in MASKS:
        return mask
    line, shape, sizes = made.inputs[0], c.shape(mask), c.shape(x)
    ones = shape is not None and len(shape) > 1 and all(size == 1 for size in shape[1:])
    covers = sizes is None or sizes[at + 1 : at + 2] == (1,)
    if shape is None or not ones or covers or c.facts.of(line).rank != 1:
        return mask
    others = [c.shape(t) for t in given if t is not None and t is not mask]
    if all(other is not None and all(size == 1 for size in other) for other in others):
        return c.cast(line, TYPE.BOOL)
    places = c.op("NonZero", c.cast(line, TYPE.BOOL))
    return c.op("Reshape", places, c.ints([-1, *[1] * (len(shape) - 1)], "column"))


def side_by_side(
    c: Call, x: gs.Tensor, given: list[gs.Tensor | None], values: gs.Tensor
) -> list[gs.Tensor | None]:
    """The indices, flattened ones in the axes that the values say.

    PyTorch 1.5 to 1.8 flatten them all, `x[i[:, None], j]` too: what were rows and columns are
    pairs then, or of different lengths.

    Raises:
        Refused: Those of unequal shapes are flattened, and the values have no axes for them.
    """
    shapes = _before(c, given) if c.facts.model.is_before(*_FLATTENED) else []
    if all(same_dims(shape, shapes[0]) for shape in shapes[1:]):
        return given
    found = _as_values_say(c, x, given, values)
    if found is None:
        lines = " and ".join(f"[{', '.join(map(str, shape))}]" for shape in shapes)
        raise Refused(
            f"its indices of {lines} are flattened, as PyTorch up to 1.8 does, and no longer "
            "say which belong together; export with a newer one"
        )
    return found


def _before(c: Call, given: Sequence[gs.Tensor | None]) -> list[tuple[dims.Dim, ...]]:
    """The shapes that lines of places had, without ones in front; one place goes with any."""
    shapes: list[tuple[dims.Dim, ...]] = []
    for t in given:
        if t is None or c.dtype(t) in MASKS or c.facts.of(t).rank != 1:
            continue
        made = maker_of(t)
        flat = made is not None and made.op in _FLATTENING
        shape = c.shape(made.inputs[0] if made is not None and flat else t)
        first = next((i for i, size in enumerate(shape or ()) if size != 1), None)
        if shape is not None and first is not None:
            shapes.append(shape[first:])
    return shapes


def _as_values_say(
    c: Call, x: gs.Tensor, given: Sequence[gs.Tensor | None], values: gs.Tensor
) -> list[gs.Tensor | None] | None:
    """Lines in the axes of the values that stand for them; None where they have no such axes.

    A line is as long as all of these together, or as one of them and no other.
    """
    at = [i for i, t in enumerate(given) if t is not None]
    shape = c.shape(values) or ()
    room = len(shape) - c.rank(x) + len(at)
    if room < 2 or at[-1] - at[0] != len(at) - 1:
        return None
    axes, sizes = shape[at[0] : at[0] + room], c.sizes(values)[at[0] : at[0] + room]
    found = list(given)
    for i in at:
        line = given[i]
        length = None if line is None else c.shape(line)
        if line is None or c.dtype(line) in MASKS or length is None or len(length) != 1:
            return None
        alike = [a for a, size in enumerate(axes) if dims.equal(size, length[0]) is True]
        if dims.equal(dims.product(axes), length[0]) is True:
            found[i] = c.reshape(line, sizes)
        elif len(alike) == 1:
            found[i] = c.unsqueeze(line, [a for a in range(room) if a != alike[0]])
        elif length[0] != 1:
            return None
    return found
