"""ONNX's Col2Im as operators that runtimes without it have."""

from __future__ import annotations

import onnx_graphsurgeon as gs

from surgeon.builders import parts
from surgeon.builders.columns import add_up, side_by_side
from surgeon.builders.parts import Length
from surgeon.builders.windows import Window
from surgeon.match import Match, attribute_of
from surgeon.rewrite import Draft, Refused

_BLOCKS = frozenset({"float32", "float64"})  # what onnxruntime's DepthToSpace takes everywhere


def col2im_as_conv_transpose(draft: Draft, match: Match) -> gs.Tensor:
    """`Col2Im (x, image_shape, block_shape)`, x [N, C * product of block_shape, L].

    Square blocks side by side are a DepthToSpace; see `columns` for the rest.
    """
    node, facts = match.root, draft.facts
    x, image, block = node.inputs
    kernels = facts.array(block)
    if kernels is None:
        raise Refused("its block_shape is computed at run time")
    windows = _windows(node, [int(k) for k in kernels.reshape(-1)])
    outs = _lengths(draft, image, len(windows))
    if facts.of(x).rank not in (None, 3):
        raise Refused(f"its input has rank {facts.of(x).rank}, not 3")
    dtype = parts.numpy_dtype(draft, x)
    if dtype.kind in "bUOSTc":
        raise Refused(f"no standard operators add up {dtype.name}")
    columns = parts.lengths_of(draft, x, 3)[1].static
    sides = {w.kernel for w in windows}
    square = len(windows) == 2 and len(sides) == 1 and dtype.name in _BLOCKS
    if square and side_by_side(windows, outs) and columns is not None:
        side = windows[0].kernel
        if columns % side**2:
            raise Refused(f"{columns} columns are no multiple of a kernel of {side**2}")
        high, wide = ((n.static or 0) // side for n in outs)
        flat = parts.reshape(draft, x, [0, columns, high, wide])
        return draft.op("DepthToSpace", flat, blocksize=side, mode="CRD") if side > 1 else flat
    return add_up(draft, x, windows, outs)


def _windows(node: gs.Node, kernels: list[int]) -> list[Window]:
    axes = len(kernels)
    strides = attribute_of(node, "strides") or [1] * axes
    dilations = attribute_of(node, "dilations") or [1] * axes
    pads = attribute_of(node, "pads") or [0] * 2 * axes
    if not len(strides) == len(dilations) == len(pads) // 2 == axes:
        raise Refused(f"its attributes are not for {axes} axes")
    return [
        Window(kernels[i], strides[i], pads[i], dilations[i], behind=pads[i + axes])
        for i in range(axes)
    ]


def _lengths(draft: Draft, image: gs.Tensor, axes: int) -> list[Length]:
    """The lengths of the spatial axes, computed ones included."""
    known = parts.dims_in(draft, image)
    if known is not None and len(known) != axes:
        raise Refused(f"its image_shape has {len(known)} numbers for {axes} axes")
    return [
        parts.element(draft, lambda: image, index, dim)
        for index, dim in enumerate(known or [None] * axes)
    ]
