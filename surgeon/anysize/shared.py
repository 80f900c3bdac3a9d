"""Operands beside one another: lengths that have to agree, and constants for one size."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import onnx_graphsurgeon as gs

from surgeon.anysize import grids
from surgeon.anysize.depending import depending
from surgeon.anysize.freed import Clash
from surgeon.anysize.sizes import Sizes, told
from surgeon.dims import Dim
from surgeon.facts.elementwise import BINARY, UNARY
from surgeon.facts.fact import Array
from surgeon.frozen import Frozen

_NUMBERS = 16  # elements of a constant that may be sizes
# Operators that may bring what depends on the size to its share of it, or hold it to an edge.
_SHARING = frozenset("Mul Div Mod Sub Add Max Min Pow Equal Less Greater LessOrEqual".split()) | {
    "GreaterOrEqual",
    "Where",
}


_ADDING = ("Conv", "MatMul", "Gemm", "Einsum", "ConvTranspose", "LSTM", "GRU", "RNN")
EACH = UNARY | BINARY | {"Clip", "Transpose", "Concat", "Slice", "Gather", "Split", "Unsqueeze"}


def broadcast(sizes: Sizes, node: gs.Node) -> None:
    """See that operands agree, and bring constants that are for one size to any."""
    shapes = [sizes.shape(tensor) for tensor in node.inputs]
    computed = [s for t, s in zip(node.inputs, shapes, strict=True) if not _is_known(sizes, t)]
    lengths = agree(sizes, computed)
    made: dict[int, gs.Tensor] = {}
    draft = sizes.draft(node)
    for place, (tensor, shape) in enumerate(zip(node.inputs, shapes, strict=True)):
        for axis, dim in lengths.items():
            if _is_known(sizes, tensor) and len(shape) >= -axis and sizes.number(dim) == 1:
                raise Frozen(f"{sizes.title(tensor)} may be as long as {told(sizes, dim)}")
        along = {
            axis + len(shape): dim
            for axis, dim in lengths.items()
            if len(shape) >= -axis and shape[axis] not in (1, dim)
        }
        if along:
            array = sizes.array(tensor)
            assert array is not None, "the others agree"
            made[place] = grids.for_any(sizes, draft, tensor, array, along)
    if made:
        sizes.again(node, made, draft)
    if node.op in _SHARING:
        _shares(sizes, node)


def _is_known(sizes: Sizes, tensor: gs.Tensor) -> bool:
    return sizes.array(tensor) is not None


def agree(sizes: Sizes, shapes: Sequence[Sequence[Dim]]) -> dict[int, Dim]:
    """See that shapes are brought to one from the right, whatever the sizes.

    Returns:
        The lengths that depend on the sizes, by their axes, counted from the back.

    Raises:
        Clash: They are not.
    """
    found: dict[int, Dim] = {}
    for axis in range(-max(map(len, shapes), default=0), 0):
        lengths = [shape[axis] for shape in shapes if len(shape) >= -axis and shape[axis] != 1]
        free = [dim for dim in lengths if sizes.is_free(dim)]
        if free:
            found[axis] = free[0]
            other = next((dim for dim in lengths if dim != free[0]), free[0])
            if other != free[0]:
                raise Clash(f"it reads {told(sizes, free[0])} beside {told(sizes, other)}")
    return found


def bounds(sizes: Sizes, node: gs.Node) -> None:
    """See that what a value is held between is no edge of an image, or of a plane."""
    edges = _edges(sizes)
    for tensor in node.inputs[1:]:
        array = sizes.array(tensor)
        if array is not None and array.size == 1:
            _not_a_size(sizes, tensor, array, (), edges=edges, pixels=sizes.is_raw(node))


def _edges(sizes: Sizes) -> Iterable[int]:
    return [sizes.number(dim) - 1 for dim in sizes.pool]


def _shares(sizes: Sizes, node: gs.Node) -> None:
    """See that few numbers beside what depends on the sizes are none of them."""
    near: set[int] = set()
    counts: set[int] = set()
    for tensor in node.inputs:
        free = sizes.free_axes(tensor)
        near.update(sizes.number(sizes.shape(tensor)[axis]) for axis in free)
        counts.update(sizes.counts.get(tensor.name, ()))
    edges = _edges(sizes) if node.op in ("Min", "Max") else ()
    for tensor in node.inputs:
        array = sizes.array(tensor)
        if array is not None and 0 < array.size <= _NUMBERS and array.dtype.kind in "fiu":
            if array.dtype.kind in "iu":
                near.update(sizes.number(dim) for dim in sizes.pool)
            _not_a_size(sizes, tensor, array, near, counts, edges, pixels=sizes.is_raw(node))


def _not_a_size(
    sizes: Sizes,
    tensor: gs.Tensor,
    array: Array,
    near: Iterable[int],
    counts: Iterable[int] = (),
    edges: Iterable[int] = (),
    *,
    pixels: bool = False,
) -> None:
    found = depending(sizes, array, near, counts, edges, pixels=pixels)
    if found:
        raise Frozen(f"{sizes.title(tensor)} holds {found[0]:g}, which may depend on the sizes")


def follow(sizes: Sizes, node: gs.Node) -> None:
    """What was added up stays so until weights add it up anew; pixels stay so until they meet."""
    if node.op in EACH and sizes.is_raw(node):
        sizes.raw.update(tensor.name for tensor in node.outputs)
    weighs = any(isinstance(tensor, gs.Constant) for tensor in node.inputs)
    if node.op in _ADDING and (weighs or node.op not in ("MatMul", "Einsum")):
        return
    counts = frozenset[int]().union(*(sizes.counts.get(t.name, ()) for t in node.inputs))
    for tensor in node.outputs:
        if counts and tensor.name:
            sizes.counts[tensor.name] = counts | sizes.counts.get(tensor.name, frozenset())
