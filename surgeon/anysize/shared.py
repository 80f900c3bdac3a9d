"""Operands beside one another: lengths that have to agree, and constants for one size."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import onnx_graphsurgeon as gs

from surgeon.anysize import grids
from surgeon.anysize.sizes import Clash, Sizes, told
from surgeon.dims import Dim
from surgeon.frozen import Frozen

_NUMBERS = 16  # elements of a constant that may be sizes
_LEAST = 7  # numbers below are everywhere
_LARGE = 16  # sizes of inputs from which on a number that is one is no chance
_PIXELS = (255, 256)  # what bytes are divided by
_NEAR = 1e-6
# Operators that may bring what depends on the size to its share of it, or hold it to an edge.
_SHARING = frozenset("Mul Div Mod Sub Add Max Min Pow Equal Less Greater LessOrEqual".split()) | {
    "GreaterOrEqual",
    "Where",
}


def broadcast(sizes: Sizes, node: gs.Node) -> None:
    """See that operands agree, and bring constants that are for one size to any."""
    shapes = [sizes.shape(tensor) for tensor in node.inputs]
    rank = max(map(len, shapes))
    made: dict[int, gs.Tensor] = {}
    draft = sizes.draft(node)
    for axis in range(-rank, 0):
        lengths = [shape[axis] if len(shape) >= -axis else 1 for shape in shapes]
        free = {dim for dim in lengths if sizes.is_free(dim)}
        if not free:
            continue
        if len(free) > 1:
            raise Clash(f"its operands are {' and '.join(map(str, free))} long")
        (dim,) = free
        for place, (tensor, length) in enumerate(zip(node.inputs, lengths, strict=True)):
            if length in (1, dim):
                continue
            given = made.get(place, tensor)
            array = sizes.array(given)
            if array is None or not isinstance(length, int):
                raise Clash(
                    f"{sizes.title(tensor)} has {length} elements along {told(sizes, dim)}"
                )
            made[place] = grids.for_any(sizes, draft, given, array, axis, dim)
    if made:
        sizes.again(node, made, draft)
    if node.op in _SHARING:
        _shares(sizes, node)


def agree(sizes: Sizes, node: gs.Node, shapes: Sequence[Sequence[Dim]]) -> None:
    """See that shapes are brought to one from the right, whatever the sizes."""
    rank = max(map(len, shapes))
    for axis in range(-rank, 0):
        lengths = {shape[axis] for shape in shapes if len(shape) >= -axis} - {1}
        if len(lengths) > 1 and any(map(sizes.is_free, lengths)):
            raise Clash(f"its operands are {' and '.join(map(str, lengths))} long")


def bounds(sizes: Sizes, node: gs.Node) -> None:
    """See that what a value is held between is no edge of an image."""
    for tensor in node.inputs[1:]:
        array = sizes.array(tensor)
        if array is not None and array.size == 1:
            _not_a_size(sizes, tensor, array, ())


def _shares(sizes: Sizes, node: gs.Node) -> None:
    """See that few numbers beside what hangs on the sizes are none of them."""
    near: set[int] = set()
    counts: set[int] = set()
    for tensor in node.inputs:
        free = sizes.free_axes(tensor)
        near.update(sizes.number(sizes.shape(tensor)[axis]) for axis in free)
        counts.update(sizes.counts.get(tensor.name, ()))
    for tensor in node.inputs:
        array = sizes.array(tensor)
        if array is not None and 0 < array.size <= _NUMBERS and array.dtype.kind in "fiu":
            if array.dtype.kind in "iu":
                near.update(sizes.number(dim) for dim in sizes.pool)
            _not_a_size(sizes, tensor, array, near, counts)


def _not_a_size(
    sizes: Sizes,
    tensor: gs.Tensor,
    array: np.ndarray,
    near: Iterable[int],
    counts: Iterable[int] = (),
) -> None:
    known = {number for number in near if number >= _LEAST}
    known |= {number - 1 for number in near if number > _LEAST}
    known |= {number for number in counts if number > 2}
    known |= {size.number for size in sizes.sizes if size.number >= _LARGE}
    known -= set(_PIXELS)
    for element in np.abs(array.astype(np.float64)).ravel().tolist():
        for number in (element, 1 / element if element else 0, 2 / element if element else 0):
            nearest = round(number) if np.isfinite(number) else 0
            if nearest in known and abs(number - nearest) <= _NEAR * nearest:
                raise Frozen(
                    f"{sizes.title(tensor)} holds {element:g}, which may hang on the sizes"
                )


def follow(sizes: Sizes, node: gs.Node) -> None:
    """What was added up stays so behind operators that do not add up anew."""
    if node.op in ("Conv", "MatMul", "Gemm", "ConvTranspose", "LSTM", "GRU"):
        return
    counts = frozenset().union(*(sizes.counts.get(t.name, frozenset()) for t in node.inputs))
    for tensor in node.outputs:
        if counts and tensor.name:
            sizes.counts[tensor.name] = counts | sizes.counts.get(tensor.name, frozenset())
